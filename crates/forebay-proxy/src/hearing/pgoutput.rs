//! Pgoutput: what a stream of logical replication tells, message by message.
//!
//! Promises: a message that is cut short, or of a kind that was not asked for, is an error, never a panic.
//!
//! The formats are those of PostgreSQL's documentation, "Streaming Replication Protocol" and "Logical Replication Message Formats" (version 1).

/// A position in the database's log, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(pub(crate) u64);

impl Position {
    /// Of its form `X/Y`, in hexadecimal.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (high, low) = text.split_once('/')?;
        let part = |text| u32::from_str_radix(text, 16).ok().map(u64::from);
        Some(Self(part(high)? << 32 | part(low)?))
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:X}/{:X}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// What one CopyData of the stream tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told<'a> {
    /// All that was committed before this position has been told.
    Alive { until: Position },
    /// A transaction of this number is told from here on.
    Begun { transaction: u32 },
    /// All of it was told, and so was all that was committed before this position.
    Committed { end: Position },
    /// The table of this number is called so, without its schema, and has these columns.
    Named {
        table: u32,
        name: &'a str,
        columns: Vec<Column<'a>>,
    },
    /// A row of this table was changed: as it is now, if it is, and what of it tells it from others as it was, if that is another.
    Changed {
        table: u32,
        old: Option<Tuple<'a>>,
        new: Option<Tuple<'a>>,
    },
    /// All rows of these are gone: numbers of four bytes each.
    Truncated { tables: &'a [u8] },
    /// Somebody has written a note of this kind into the log, with the transaction that is told.
    Noted { kind: &'a str },
    /// Nothing that matters here.
    Nothing,
}

/// A column of a table that is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    /// Its type's number.
    pub(crate) of: u32,
    /// It is of what tells a row from others.
    pub(crate) is_identity: bool,
}

/// A row, of the columns that were told, as it stands in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuple<'a>(&'a [u8]);

impl<'a> Tuple<'a> {
    /// What the column at this place has, as a text; none where it has NULL, what was not told again, or what is no UTF-8.
    pub(crate) fn text(&self, at: usize) -> Option<&'a str> {
        let mut reader = Reader(self.0);
        let mut value = None;
        for _ in 0..=at {
            value = reader.value().ok()?;
        }
        std::str::from_utf8(value?).ok()
    }
}

/// It is not as it is documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn position(&mut self) -> Result<Position, Malformed> {
        self.bytes().map(u64::from_be_bytes).map(Position)
    }

    fn count(&mut self) -> Result<u16, Malformed> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn columns(&mut self) -> Result<Vec<Column<'a>>, Malformed> {
        let count = self.count()?;
        let column = |_| {
            let flags = self.byte()?;
            let name = self.text()?;
            let of = self.number()?;
            let _modifier = self.number()?;
            let is_identity = flags & 1 != 0;
            Ok(Column { name, of, is_identity })
        };
        (0..count).map(column).collect()
    }

    fn tuple(&mut self) -> Result<Tuple<'a>, Malformed> {
        let count = self.count()?;
        let all = self.0;
        for _ in 0..count {
            self.value()?;
        }
        Ok(Tuple(&all[..all.len() - self.0.len()]))
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.byte()? {
            b'n' | b'u' => Ok(None),
            b't' => {
                let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
                let (text, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
                self.0 = rest;
                Ok(Some(text))
            }
            _ => Err(Malformed),
        }
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = std::str::from_utf8(&self.0[..end]).map_err(|_| Malformed)?;
        self.0 = &self.0[end + 1..];
        Ok(text)
    }
}

/// What the body of a CopyData tells.
pub(crate) fn read(body: &[u8]) -> Result<Told<'_>, Malformed> {
    let mut reader = Reader(body);
    match reader.byte()? {
        b'k' => {
            let until = reader.position()?;
            let _clock_and_whether_to_reply: [u8; 9] = reader.bytes()?;
            Ok(Told::Alive { until })
        }
        b'w' => {
            let _from_until_and_clock: [u8; 24] = reader.bytes()?;
            change(reader)
        }
        _ => Err(Malformed),
    }
}

fn change(mut reader: Reader<'_>) -> Result<Told<'_>, Malformed> {
    match reader.byte()? {
        b'B' => {
            let _end_and_clock: [u8; 16] = reader.bytes()?;
            let transaction = reader.number()?;
            Ok(Told::Begun { transaction })
        }
        b'C' => {
            let _flags_and_begin: [u8; 9] = reader.bytes()?;
            let end = reader.position()?;
            Ok(Told::Committed { end })
        }
        b'R' => {
            let table = reader.number()?;
            let _schema = reader.text()?;
            let name = reader.text()?;
            let _identity = reader.byte()?;
            let columns = reader.columns()?;
            Ok(Told::Named { table, name, columns })
        }
        b'I' | b'U' | b'D' => {
            let table = reader.number()?;
            let (mut old, mut new) = (None, None);
            while !reader.0.is_empty() {
                match reader.byte()? {
                    b'K' | b'O' if old.is_none() && new.is_none() => old = Some(reader.tuple()?),
                    b'N' if new.is_none() => new = Some(reader.tuple()?),
                    _ => return Err(Malformed),
                }
            }
            Ok(Told::Changed { table, old, new })
        }
        b'T' => {
            let count = reader.number()?;
            let _options = reader.byte()?;
            let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(4));
            let tables = bytes.and_then(|bytes| reader.0.get(..bytes)).ok_or(Malformed)?;
            Ok(Told::Truncated { tables })
        }
        b'M' => {
            let flags = reader.byte()?;
            let _position = reader.position()?;
            let kind = reader.text()?;
            // Without a transaction it is told where it stands.
            let is_of_it = flags & 1 != 0;
            Ok(if is_of_it { Told::Noted { kind } } else { Told::Nothing })
        }
        // Where it is from, and types.
        b'O' | b'Y' => Ok(Told::Nothing),
        _ => Err(Malformed),
    }
}

/// The body of a CopyData that tells the server how far the stream was heard; `asks`: it is to say at once how far it has told it.
pub(crate) fn heard(until: Position, asks: bool) -> [u8; 34] {
    let mut body = [0; 34];
    body[0] = b'r';
    for part in body[1..25].chunks_exact_mut(8) {
        part.copy_from_slice(&until.0.to_be_bytes());
    }
    body[33] = asks.into();
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_the_stream(message: &[u8]) -> Vec<u8> {
        [&b"w"[..], &[0; 24], message].concat()
    }

    #[test]
    fn what_is_told_is_read() {
        let clock = [7; 8];
        let position = 0x1_0000_0002_u64.to_be_bytes();
        let begin = [&b"B"[..], &[0; 8], &clock, &[0, 0, 3, 1]].concat();
        let commit = [&b"C\0"[..], &[0; 8], &position, &clock].concat();
        let columns = [
            &[0, 2, 1][..],
            b"id\0",
            &[0, 0, 0, 23, 255, 255, 255, 255, 0],
            b"n\0",
            &[0, 0, 0, 25],
            &[0; 4],
        ]
        .concat();
        let relation = [&b"R"[..], &[0, 0, 0x40, 0], b"public\0stock\0d", &columns].concat();
        let row = |id: &[u8]| [&[0, 2, b't', 0, 0, 0, id.len() as u8][..], id, b"n"].concat();
        let insert = [&b"I"[..], &[0, 0, 0x40, 0], b"N", &row(b"57")].concat();
        let update = [&b"U"[..], &[0, 0, 0x40, 0], b"K", &row(b"5"), b"N", &row(b"57")].concat();
        let delete = [&b"D"[..], &[0, 0, 0x40, 0], b"K", &row(b"5")].concat();
        let truncate = [&b"T"[..], &[0, 0, 0, 2, 0], &[0, 0, 0, 1], &[0, 0, 0, 2]].concat();
        let end = Position(0x1_0000_0002);
        for (message, told) in [
            (&begin, Told::Begun { transaction: 0x301 }),
            (&commit, Told::Committed { end }),
            (
                &relation,
                Told::Named {
                    table: 0x4000,
                    name: "stock",
                    columns: vec![
                        Column {
                            name: "id",
                            of: 23,
                            is_identity: true,
                        },
                        Column {
                            name: "n",
                            of: 25,
                            is_identity: false,
                        },
                    ],
                },
            ),
            (
                &truncate,
                Told::Truncated {
                    tables: &[0, 0, 0, 1, 0, 0, 0, 2],
                },
            ),
        ] {
            assert_eq!(read(&in_the_stream(message)), Ok(told));
        }
        for (message, before, after) in [
            (&insert, None, Some("57")),
            (&update, Some("5"), Some("57")),
            (&delete, Some("5"), None),
        ] {
            let whole = in_the_stream(message);
            let Ok(Told::Changed {
                table: 0x4000,
                old,
                new,
            }) = read(&whole)
            else {
                panic!("{message:?}");
            };
            let texts = |row: Option<Tuple<'_>>| row.map(|row| [0, 1, 2].map(|at| row.text(at).map(str::to_owned)));
            let is = |id: Option<&str>| id.map(|id| [Some(id.to_owned()), None, None]);
            assert_eq!((texts(old), texts(new)), (is(before), is(after)));
        }
        let twice = [&insert[..], &insert[5..]].concat();
        assert_eq!(read(&in_the_stream(&twice)), Err(Malformed));
        let alive = [&b"k"[..], &position, &clock, &[1]].concat();
        assert_eq!(read(&alive), Ok(Told::Alive { until: end }));
        // Cut anywhere, none of them is another one.
        for message in [
            in_the_stream(&begin),
            in_the_stream(&relation),
            in_the_stream(&update),
            in_the_stream(&truncate),
            alive,
        ] {
            let needed = (0..message.len()).filter(|&length| read(&message[..length]).is_ok());
            assert!(needed.clone().count() <= 8, "{needed:?}");
        }
        assert_eq!(read(&in_the_stream(b"S")), Err(Malformed), "it was not asked for");
        assert_eq!(read(&in_the_stream(b"T\xff\xff\xff\xff\0")), Err(Malformed));
    }

    #[test]
    fn positions_are_told_as_the_server_tells_them() {
        for text in ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Position::parse("1/10"), Some(Position((1 << 32) + 16)));
        for text in ["", "1", "/", "1/", "x/1", "1/123456789"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_heard_is_told_three_times() {
        let body = heard(Position(5), true);
        assert_eq!((body[0], body[8], body[16], body[24], body[33]), (b'r', 5, 5, 5, 1));
    }
}
