//! Cuts the data of the text and CSV formats into lines, however its messages are cut.
//!
//! Promises: all lines end as the first one does: by a newline, a carriage return, or both; any other end is an error. In the text format a
//! backslash keeps the character behind it in the line, in CSV quotes keep line ends in it. `\.` alone on a line ends the data. A line is no
//! longer than a message may be.

use bytes::{Buf, Bytes, BytesMut};

use super::bad_format;
use forebay_pg_wire::error::WireError;

/// How lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Newline,
    Return,
    Both,
}

/// What CSV is quoted by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoting {
    pub(super) quote: u8,
    pub(super) escape: u8,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// Up to here the line that begins the buffer was looked at.
    looked: usize,
    ending: Option<Ending>,
    /// None for text.
    quoting: Option<Quoting>,
    in_quote: bool,
    last_was_escape: bool,
    line_bytes_max: usize,
    /// Nothing more comes.
    finished: bool,
    /// `\.` was met.
    ended: bool,
}

impl Lines {
    pub(super) fn new(quoting: Option<Quoting>, line_bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            looked: 0,
            ending: None,
            quoting,
            in_quote: false,
            last_was_escape: false,
            line_bytes_max,
            finished: false,
            ended: false,
        }
    }

    pub(super) fn feed(&mut self, data: &[u8]) {
        if !self.ended {
            self.buffer.extend_from_slice(data);
        }
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// The next line without its end; none if it is not there whole, or was the last.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, WireError> {
        if self.ended {
            return Ok(None);
        }
        let Some((length, end)) = self.look()? else {
            if self.buffer.len() > self.line_bytes_max {
                let message = format!("a line of COPY has at most {} bytes", self.line_bytes_max);
                return Err(WireError::new("54000", message));
            }
            return Ok(None);
        };
        let line = self.buffer.split_to(length).freeze();
        self.buffer.advance(end);
        (self.looked, self.in_quote, self.last_was_escape) = (0, false, false);
        // In CSV it is a value if its line has no end, as PostgreSQL has it.
        if line.as_ref() == b"\\." && (self.quoting.is_none() || end > 0) {
            self.ended = true;
            self.buffer.clear();
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// The length of the line and of its end.
    fn look(&mut self) -> Result<Option<(usize, usize)>, WireError> {
        let is_csv = self.quoting.is_some();
        while let Some(&byte) = self.buffer.get(self.looked) {
            match self.quoting {
                Some(Quoting { quote, escape }) => {
                    // An escape that is the quote itself is seen as one quote behind another.
                    let escape = (escape != quote).then_some(escape);
                    if self.in_quote && Some(byte) == escape {
                        self.last_was_escape = !self.last_was_escape;
                    }
                    if byte == quote && !self.last_was_escape {
                        self.in_quote = !self.in_quote;
                    }
                    if Some(byte) != escape {
                        self.last_was_escape = false;
                    }
                }
                None if byte == b'\\' => {
                    // What is behind it is no end of a line, unless it ends the data.
                    match self.buffer.get(self.looked + 1) {
                        None if self.finished => return Ok(Some((self.buffer.len(), 0))),
                        None => return Ok(None),
                        Some(b'.') => {
                            let alone = self.looked == 0;
                            match self.buffer.get(self.looked + 2) {
                                None if !self.finished => return Ok(None),
                                None | Some(b'\n' | b'\r') if alone => {}
                                _ => return Err(bad_format("end-of-copy marker corrupt")),
                            }
                        }
                        Some(_) => {}
                    }
                    self.looked += 2;
                    continue;
                }
                None => {}
            }
            if self.in_quote {
                self.looked += 1;
                continue;
            }
            match byte {
                b'\r' => {
                    if self.ending.is_none_or(|ending| ending == Ending::Both) {
                        match self.buffer.get(self.looked + 1) {
                            None if !self.finished => return Ok(None),
                            Some(b'\n') => {
                                self.ending = Some(Ending::Both);
                                return Ok(Some((self.looked, 2)));
                            }
                            _ if self.ending.is_none() => self.ending = Some(Ending::Return),
                            _ => return Err(stray(is_csv, "carriage return", "\\r")),
                        }
                    } else if self.ending == Some(Ending::Newline) {
                        return Err(stray(is_csv, "carriage return", "\\r"));
                    }
                    return Ok(Some((self.looked, 1)));
                }
                b'\n' => {
                    if !matches!(self.ending, None | Some(Ending::Newline)) {
                        return Err(stray(is_csv, "newline", "\\n"));
                    }
                    self.ending = Some(Ending::Newline);
                    return Ok(Some((self.looked, 1)));
                }
                _ => self.looked += 1,
            }
        }
        let last = self.finished && !self.buffer.is_empty();
        Ok(last.then(|| (self.buffer.len(), 0)))
    }
}

fn stray(is_csv: bool, what: &str, escaped: &str) -> WireError {
    if is_csv {
        bad_format(format!("unquoted {what} found in data"))
            .with_hint(format!("Use quoted CSV field to represent {what}."))
    } else {
        bad_format(format!("literal {what} found in data")).with_hint(format!("Use \"{escaped}\" to represent {what}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(data: &[u8], csv: bool, pieces: usize) -> Result<Vec<String>, String> {
        let quoting = csv.then_some(Quoting {
            quote: b'"',
            escape: b'"',
        });
        let mut lines = Lines::new(quoting, 1_000);
        let mut found = Vec::new();
        let mut take = |lines: &mut Lines| -> Result<(), String> {
            while let Some(line) = lines.next().map_err(|error| error.message.clone())? {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
            Ok(())
        };
        for piece in data.chunks(pieces) {
            lines.feed(piece);
            take(&mut lines)?;
        }
        lines.finish();
        take(&mut lines)?;
        Ok(found)
    }

    #[test]
    fn lines_are_the_same_however_the_data_is_cut() {
        type Case<'a> = (&'a [u8], bool, Result<&'a [&'a str], &'a str>);
        let cases: [Case<'_>; 13] = [
            (b"a\nb\n", false, Ok(&["a", "b"])),
            (b"a\r\nb\r\n", false, Ok(&["a", "b"])),
            (b"a\rb", false, Ok(&["a", "b"])),
            (b"a\\\nb\nc\n", false, Ok(&["a\\\nb", "c"])),
            (b"a\n\\.\nb\n", false, Ok(&["a"])),
            (b"a\n\\.", false, Ok(&["a"])),
            (b"a\n\\.x\n", false, Err("end-of-copy marker corrupt")),
            (b"a\nb\r\n", false, Err("literal carriage return found in data")),
            (b"a\r\nb\n", true, Err("unquoted newline found in data")),
            (b"\"a\nb\",\"\"\"\n\"\n\nc", true, Ok(&["\"a\nb\",\"\"\"\n\"", "", "c"])),
            (b"\\.\n", true, Ok(&[])),
            (b"a\n\\.", true, Ok(&["a", "\\."])),
            (b"\\x\n", true, Ok(&["\\x"])),
        ];
        for (data, csv, wanted) in cases {
            let wanted = wanted
                .map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
                .map_err(str::to_owned);
            for pieces in 1..=data.len() {
                assert_eq!(
                    cut(data, csv, pieces),
                    wanted,
                    "{} by {pieces}",
                    String::from_utf8_lossy(data)
                );
            }
        }
    }
}
