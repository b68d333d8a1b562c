//! Reader: numbers, texts and lengths, as packets have them.
//!
//! Promises: what is read is borrowed from the bytes it came in; past their end is [`Malformed`], never a panic. Knows no packet.

/// A packet is not what the protocol says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a packet of the server's is cut short, or its lengths disagree")]
pub struct Malformed;

/// Reads a body from its beginning. Numbers have their lowest byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number in as many bytes as it needs; none for the byte that says NULL.
    pub(crate) fn length(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(Some(match self.u8()? {
            short @ 0..=0xfa => u64::from(short),
            0xfb => return Ok(None),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => self.array().map(u64::from_le_bytes)?,
            0xff => return Err(Malformed),
        }))
    }

    /// Bytes behind their length; none for NULL.
    pub(crate) fn length_encoded(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.length()? {
            None => Ok(None),
            Some(length) => self.bytes(usize::try_from(length).map_err(|_| Malformed)?).map(Some),
        }
    }

    /// What ends with a zero byte, without it.
    pub(crate) fn zero_terminated(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
        let (taken, rest) = self.0.split_at(length);
        self.0 = &rest[1..];
        Ok(taken)
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        self.0.is_empty().then_some(()).ok_or(Malformed)
    }
}
