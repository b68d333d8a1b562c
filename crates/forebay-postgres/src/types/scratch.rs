//! Scratch: the digits of a number, without an allocation.

use std::fmt::Write;

/// Digits without an allocation.
pub(super) struct Scratch {
    bytes: [u8; 32],
    /// `length <= bytes.len()`, and so many of them are ASCII.
    length: usize,
}

impl Scratch {
    /// The shortest digits that read back as the number, `d.ddde±x`; such a text has at most 24 characters.
    pub(super) fn scientific(real: impl std::fmt::LowerExp) -> Self {
        let mut scratch = Self {
            bytes: [0; 32],
            length: 0,
        };
        write!(scratch, "{real:e}").expect("24 characters fit into 32");
        scratch
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for Scratch {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
