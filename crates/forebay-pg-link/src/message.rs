//! Message: one of the server's, as it came.
//!
//! Promises: what is read of a message is borrowed from the bytes it came in; a message that is cut short or whose lengths
//! disagree is [`Malformed`], never a panic. Knows no connection: whose answer it is, and what comes next, is the link's to say.
//!
//! The formats are those of PostgreSQL's documentation, "Message Formats".

/// The first byte of a message: what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(pub u8);

#[allow(missing_docs, reason = "the names are the protocol's own")]
impl Tag {
    pub const AUTHENTICATION: Self = Self(b'R');
    pub const BACKEND_KEY_DATA: Self = Self(b'K');
    pub const BIND_COMPLETE: Self = Self(b'2');
    pub const CLOSE_COMPLETE: Self = Self(b'3');
    pub const COMMAND_COMPLETE: Self = Self(b'C');
    pub const COPY_BOTH_RESPONSE: Self = Self(b'W');
    pub const COPY_DATA: Self = Self(b'd');
    pub const COPY_DONE: Self = Self(b'c');
    pub const COPY_IN_RESPONSE: Self = Self(b'G');
    pub const COPY_OUT_RESPONSE: Self = Self(b'H');
    pub const DATA_ROW: Self = Self(b'D');
    pub const EMPTY_QUERY_RESPONSE: Self = Self(b'I');
    pub const ERROR_RESPONSE: Self = Self(b'E');
    pub const NEGOTIATE_PROTOCOL_VERSION: Self = Self(b'v');
    pub const NO_DATA: Self = Self(b'n');
    pub const NOTICE_RESPONSE: Self = Self(b'N');
    pub const NOTIFICATION_RESPONSE: Self = Self(b'A');
    pub const PARAMETER_DESCRIPTION: Self = Self(b't');
    pub const PARAMETER_STATUS: Self = Self(b'S');
    pub const PARSE_COMPLETE: Self = Self(b'1');
    pub const PORTAL_SUSPENDED: Self = Self(b's');
    pub const READY_FOR_QUERY: Self = Self(b'Z');
    pub const ROW_DESCRIPTION: Self = Self(b'T');
}

impl Tag {
    /// Whether it may come at any time and answers nothing.
    pub fn is_asynchronous(self) -> bool {
        matches!(
            self,
            Self::NOTICE_RESPONSE | Self::PARAMETER_STATUS | Self::NOTIFICATION_RESPONSE
        )
    }
}

impl std::fmt::Display for Tag {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "'{}'", self.0.escape_ascii())
    }
}

/// The bytes of a message before its body: the tag, and a length that counts itself and the body.
pub const HEADER_BYTES: usize = 5;

/// A message that the server sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    tag: Tag,
    bytes: &'a [u8],
    length: usize,
}

impl<'a> Message<'a> {
    /// Of its bytes, header included.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() >= HEADER_BYTES);
        Self {
            tag: Tag(bytes[0]),
            bytes,
            length: bytes.len(),
        }
    }

    /// One that was longer than is taken, and whose body was discarded as it came.
    pub(crate) fn discarded(tag: Tag, length: usize) -> Self {
        Self {
            tag,
            bytes: &[],
            length,
        }
    }

    /// What it is.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// How many bytes it took on the wire, header included.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether its body was longer than is taken, so that nothing of it is left but its [length](Self::length).
    pub fn is_discarded(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All of its bytes, header included, to be passed on; none if it was discarded.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What follows its header.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The values of a DataRow.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn row(&self) -> Result<Row<'a>, Malformed> {
        Row::read(self.body())
    }

    /// The columns of a RowDescription.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn columns(&self) -> Result<Vec<ColumnDescription<'a>>, Malformed> {
        let mut reader = Reader(self.body());
        let count = reader.count()?;
        let columns = (0..count).map(|_| ColumnDescription::read(&mut reader)).collect();
        reader.end().and(columns)
    }

    /// The types of parameters of a ParameterDescription.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parameter_types(&self) -> Result<Vec<u32>, Malformed> {
        let mut reader = Reader(self.body());
        let count = reader.count()?;
        let types = (0..count).map(|_| reader.u32()).collect();
        reader.end().and(types)
    }

    /// The tag of a CommandComplete, as `INSERT 0 1`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn command_tag(&self) -> Result<&'a str, Malformed> {
        let mut reader = Reader(self.body());
        let tag = reader.text()?;
        reader.end().map(|()| tag)
    }

    /// The rows that the tag of a CommandComplete counts; none for commands that count none.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn command_count(&self) -> Result<u64, Malformed> {
        let tag = self.command_tag()?;
        Ok(tag.rsplit(' ').next().and_then(|last| last.parse().ok()).unwrap_or(0))
    }

    /// Name and value of a ParameterStatus. The value is in the encoding that the session has asked for, as is the name of a role.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parameter_status(&self) -> Result<(&'a str, &'a [u8]), Malformed> {
        let mut reader = Reader(self.body());
        let (name, value) = (reader.text()?, reader.zero_terminated()?);
        reader.end().map(|()| (name, value))
    }
}

/// A message is not what the protocol says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of the server's is cut short, or its lengths disagree")]
pub struct Malformed;

/// The values of one row, in the order of its columns: an iterator over them, `None` for NULL.
///
/// Their lengths were seen to agree with the message's when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    left: usize,
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// Of a DataRow's [body](Message::body).
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let left = reader.count()?;
        let bytes = reader.0;
        for _ in 0..left {
            reader.value()?;
        }
        reader.end().map(|()| Self { left, bytes })
    }
}

impl<'a> Iterator for Row<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut reader = Reader(self.bytes);
        let value = reader.value().expect("all lengths were read when the row was made");
        self.bytes = reader.0;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Row<'_> {}

/// A column as a RowDescription tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDescription<'a> {
    /// Its name.
    pub name: &'a str,
    /// The table that it is of, 0 if it is of none.
    pub table: u32,
    /// Its number in that table, 0 if it is of none.
    pub number: i16,
    /// The OID of its type.
    pub type_oid: u32,
    /// The length of the type's values, negative where they differ.
    pub type_length: i16,
    /// What the type was declared with, as the 20 of `varchar(20)`, in the type's own coding; -1 for nothing.
    pub type_modifier: i32,
    /// 0 for text, 1 for binary.
    pub format: i16,
}

impl<'a> ColumnDescription<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            name: reader.text()?,
            table: reader.u32()?,
            number: reader.i16()?,
            type_oid: reader.u32()?,
            type_length: reader.i16()?,
            type_modifier: reader.i32()?,
            format: reader.i16()?,
        })
    }
}

/// Reads a body from its beginning.
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
        self.array().map(u8::from_be_bytes)
    }

    fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A count in two bytes, which go to 65,535.
    fn count(&mut self) -> Result<usize, Malformed> {
        self.array().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.bytes(usize::try_from(length).map_err(|_| Malformed)?).map(Some),
        }
    }

    /// What ends with a zero byte, without it.
    pub(crate) fn zero_terminated(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
        let (taken, rest) = self.0.split_at(length);
        self.0 = &rest[1..];
        Ok(taken)
    }

    /// A text that ends with a zero byte. Links ask for UTF-8, and the server keeps to it.
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.zero_terminated()?).map_err(|_| Malformed)
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        self.0.is_empty().then_some(()).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag], &length.to_be_bytes()[..], body].concat()
    }

    fn row_body(values: &[Option<Vec<u8>>]) -> Vec<u8> {
        let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            match value {
                None => body.extend((-1_i32).to_be_bytes()),
                Some(value) => {
                    body.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                    body.extend(value);
                }
            }
        }
        body
    }

    fn read_in_every_way(bytes: &[u8]) {
        let message = Message::whole(bytes);
        let _ = message.row().map(Iterator::count);
        let _ = message.columns();
        let _ = message.parameter_types();
        let _ = message.command_count();
        let _ = message.parameter_status();
    }

    proptest! {
        #[test]
        fn a_row_gives_back_the_values_it_was_made_of(
            values in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)), 0..40),
        ) {
            let bytes = message(b'D', &row_body(&values));
            let row = Message::whole(&bytes).row().unwrap();
            prop_assert_eq!(row.len(), values.len());
            let read: Vec<Option<Vec<u8>>> = row.map(|value| value.map(<[u8]>::to_vec)).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn a_row_that_is_cut_or_has_something_behind_it_is_malformed(
            values in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..6)), 0..6),
            behind in 1_usize..4,
        ) {
            let body = row_body(&values);
            for cut in 0..body.len() {
                let bytes = message(b'D', &body[..cut]);
                prop_assert_eq!(Message::whole(&bytes).row(), Err(Malformed));
            }
            let bytes = message(b'D', &[body, vec![0; behind]].concat());
            prop_assert_eq!(Message::whole(&bytes).row(), Err(Malformed));
        }

        #[test]
        fn no_bytes_are_too_odd_to_be_read(tag: u8, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_in_every_way(&message(tag, &body));
        }
    }

    #[test]
    fn what_a_command_counts_is_the_last_word_of_its_tag() {
        for (tag, count) in [
            ("INSERT 0 3", 3),
            ("UPDATE 17", 17),
            ("COPY 18446744073709551615", u64::MAX),
            ("CREATE TABLE", 0),
            ("BEGIN", 0),
            ("", 0),
        ] {
            let bytes = message(b'C', format!("{tag}\0").as_bytes());
            assert_eq!(Message::whole(&bytes).command_count(), Ok(count), "{tag}");
            assert_eq!(Message::whole(&bytes).command_tag(), Ok(tag));
        }
    }

    #[test]
    fn columns_and_parameters_are_told_as_the_server_told_them() {
        let mut body = vec![0, 1];
        body.extend(b"name\0\0\0\x40\x01\0\x02\0\0\x04\x13\xff\xff\0\0\0\x18\0\x01");
        let bytes = message(b'T', &body);
        let column = ColumnDescription {
            name: "name",
            table: 0x4001,
            number: 2,
            type_oid: 1043,
            type_length: -1,
            type_modifier: 24,
            format: 1,
        };
        assert_eq!(Message::whole(&bytes).columns(), Ok(vec![column]));
        let bytes = message(b't', &[0, 2, 0, 0, 0, 23, 0, 0, 0, 25]);
        assert_eq!(Message::whole(&bytes).parameter_types(), Ok(vec![23, 25]));
        let bytes = message(b'S', b"TimeZone\0UTC\0");
        assert_eq!(Message::whole(&bytes).parameter_status(), Ok(("TimeZone", &b"UTC"[..])));
        // A role's name in LATIN1, for who has asked for that.
        let bytes = message(b'S', b"session_authorization\0ren\xe9\0");
        assert_eq!(
            Message::whole(&bytes).parameter_status(),
            Ok(("session_authorization", &b"ren\xe9"[..]))
        );
    }
}
