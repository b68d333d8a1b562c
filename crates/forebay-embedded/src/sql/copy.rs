//! COPY: what is copied where, and how it is written.
//!
//! Promises: PostgreSQL 15's options, old and new spelling, with its errors for those that do not go together. Files and programs of the
//! server's machine are refused. Knows nothing of data.

use super::error::SqlError;
use super::lexer::Kind as TokenKind;
use super::token_cursor::TokenCursor;

/// What a COPY statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// What is copied.
    pub subject: Subject,
    /// FROM STDIN, not TO STDOUT.
    pub from: bool,
    /// How it is written.
    pub format: Format,
    /// Only into a table that the transaction has made or truncated. Nothing else comes of it here: no row is ever to be frozen.
    pub freeze: bool,
    /// The first line has the columns' names.
    pub header: Header,
    /// Between values; of text and CSV.
    pub delimiter: u8,
    /// What stands for NULL; of text and CSV.
    pub null: String,
    /// Around values; of CSV.
    pub quote: u8,
    /// Before quotes inside values; of CSV.
    pub escape: u8,
    /// Columns that are quoted always, or all.
    pub force_quote: Forced,
    /// Columns that are never NULL.
    pub force_not_null: Forced,
    /// Columns that are NULL also where that is quoted.
    pub force_null: Forced,
}

/// What is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A table.
    Table {
        /// As it was written.
        written: String,
        /// The schema, if one was written.
        schema: Option<String>,
        /// Its name.
        name: String,
        /// The columns that were listed, if any were.
        columns: Option<Vec<String>>,
    },
    /// The rows of a query, by its text and where that begins in the statement.
    Query(String),
}

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are PostgreSQL's own")]
pub enum Format {
    Text,
    Csv,
    Binary,
}

/// Whether the first line has names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// It is data.
    None,
    /// It has names, which nobody looks at.
    Skipped,
    /// It has the names of the columns.
    Matching,
}

/// The columns an option is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forced {
    /// All of them.
    All,
    /// These, maybe none.
    Columns(Vec<String>),
}

impl Forced {
    fn is_none(&self) -> bool {
        *self == Self::Columns(Vec::new())
    }
}

/// The options as they are read; what was not said is not there.
#[derive(Default)]
struct Options {
    format: Option<Format>,
    freeze: Option<bool>,
    header: Option<Header>,
    delimiter: Option<String>,
    null: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    encoding: Option<String>,
    force_quote: Option<Forced>,
    force_not_null: Option<Forced>,
    force_null: Option<Forced>,
}

fn fault<T>(sqlstate: &'static str, message: impl Into<String>) -> Result<T, SqlError> {
    Err(SqlError::Fault {
        sqlstate,
        message: message.into(),
        detail: None,
        hint: None,
        position: None,
    })
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), SqlError> {
    if place.is_some() {
        return fault("42601", "conflicting or redundant options");
    }
    *place = Some(value);
    Ok(())
}

/// The statement whose first word was taken already.
pub(super) fn understand(cursor: &mut TokenCursor<'_>) -> Result<Copy, SqlError> {
    let mut options = Options::default();
    if cursor.take_words(&["BINARY"]) {
        options.format = Some(Format::Binary);
    }
    let subject = subject(cursor)?;
    let from = cursor.take_words(&["FROM"]);
    if !from && !cursor.take_words(&["TO"]) {
        return cursor.expected("FROM or TO");
    }
    if from && matches!(subject, Subject::Query(_)) {
        return cursor.expected("TO");
    }
    if cursor.peek_word() == "PROGRAM" || cursor.string()?.is_some() {
        return Err(SqlError::unsupported_but(
            "COPY of a file on the server's machine",
            "Write FROM STDIN or TO STDOUT; psql's \\copy reads and writes files on the client's.",
        ));
    }
    if !cursor.take_words(&["STDIN"]) && !cursor.take_words(&["STDOUT"]) {
        return cursor.expected("STDIN or STDOUT");
    }
    if cursor.take_words(&["USING"]) {
        if !cursor.take_words(&["DELIMITERS"]) {
            return cursor.expected("DELIMITERS");
        }
        once(&mut options.delimiter, text(cursor)?)?;
    } else if cursor.take_words(&["DELIMITERS"]) {
        once(&mut options.delimiter, text(cursor)?)?;
    }
    cursor.take_words(&["WITH"]);
    if cursor.take_sign("(") {
        loop {
            option(cursor, &mut options)?;
            if !cursor.take_sign(",") {
                break;
            }
        }
        if !cursor.take_sign(")") {
            return cursor.expected(")");
        }
    } else {
        while !cursor.is_at_end() && cursor.peek_word() != "WHERE" {
            old_option(cursor, &mut options)?;
        }
    }
    if cursor.peek_word() == "WHERE" {
        return Err(SqlError::unsupported_but(
            "WHERE of a COPY",
            "Copy into another table, and INSERT … SELECT from it.",
        ));
    }
    finish(subject, from, options)
}

fn subject(cursor: &mut TokenCursor<'_>) -> Result<Subject, SqlError> {
    let source = cursor.source;
    if cursor.take_sign("(") {
        let start = cursor.peek().map_or(0, |token| token.range.start);
        let (mut depth, mut end) = (1_usize, start);
        while let Some(token) = cursor.next() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(Subject::Query(source[start..end].to_owned()));
            }
            end = token.range.end;
        }
        return cursor.expected(")");
    }
    let start = cursor.peek().map_or(0, |token| token.range.start);
    let mut end = cursor.peek().map_or(0, |token| token.range.end);
    let (mut schema, mut name) = (None, cursor.name("a table")?);
    while cursor.take_sign(".") {
        end = cursor.peek().map_or(end, |token| token.range.end);
        schema = Some(std::mem::replace(&mut name, cursor.name("a table")?));
    }
    let columns = if cursor.take_sign("(") {
        Some(names(cursor)?)
    } else {
        None
    };
    Ok(Subject::Table {
        written: source[start..end].to_owned(),
        schema,
        name,
        columns,
    })
}

/// Names up to the closing parenthesis.
fn names(cursor: &mut TokenCursor<'_>) -> Result<Vec<String>, SqlError> {
    let mut names = Vec::new();
    loop {
        names.push(cursor.name("a column")?);
        if !cursor.take_sign(",") {
            break;
        }
    }
    if !cursor.take_sign(")") {
        return cursor.expected(")");
    }
    Ok(names)
}

fn text(cursor: &mut TokenCursor<'_>) -> Result<String, SqlError> {
    match cursor.string()? {
        Some(text) => Ok(text),
        None => cursor.expected("a string"),
    }
}

/// A word, a number or a string; nothing before a comma or the end.
fn value(cursor: &mut TokenCursor<'_>) -> Result<Option<String>, SqlError> {
    if let Some(text) = cursor.string()? {
        return Ok(Some(text));
    }
    let Some(token) = cursor.peek() else { return Ok(None) };
    match token.kind {
        TokenKind::Number => {
            let text = token.text(cursor.source).to_owned();
            cursor.next();
            Ok(Some(text))
        }
        TokenKind::Word | TokenKind::QuotedName => cursor.name("a value").map(Some),
        _ => Ok(None),
    }
}

fn boolean(name: &str, value: Option<&str>) -> Result<bool, SqlError> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        _ => fault("42601", format!("{name} requires a Boolean value")),
    }
}

fn format(value: &str) -> Result<Format, SqlError> {
    match value {
        "text" => Ok(Format::Text),
        "csv" => Ok(Format::Csv),
        "binary" => Ok(Format::Binary),
        other => fault("22023", format!("COPY format \"{other}\" not recognized")),
    }
}

fn forced(cursor: &mut TokenCursor<'_>, name: &str, star: bool) -> Result<Forced, SqlError> {
    if star && cursor.take_sign("*") {
        return Ok(Forced::All);
    }
    if cursor.take_sign("(") {
        return names(cursor).map(Forced::Columns);
    }
    fault(
        "22023",
        format!("argument to option \"{name}\" must be a list of column names"),
    )
}

/// `name value` of the list in parentheses.
fn option(cursor: &mut TokenCursor<'_>, options: &mut Options) -> Result<(), SqlError> {
    let name = cursor.name("an option")?;
    let wanted = |cursor: &mut TokenCursor<'_>| match value(cursor)? {
        Some(value) => Ok(value),
        None => fault("42601", format!("{name} requires a parameter")),
    };
    match name.as_str() {
        "format" => {
            let written = wanted(cursor)?;
            once(&mut options.format, format(&written)?)
        }
        "freeze" => {
            let written = value(cursor)?;
            once(&mut options.freeze, boolean(&name, written.as_deref())?)
        }
        "delimiter" => {
            let written = wanted(cursor)?;
            once(&mut options.delimiter, written)
        }
        "null" => {
            let written = wanted(cursor)?;
            once(&mut options.null, written)
        }
        "header" => {
            let written = value(cursor)?;
            let header = match written.as_deref().map(str::to_ascii_lowercase).as_deref() {
                Some("match") => Header::Matching,
                _ => match boolean(&name, written.as_deref()) {
                    Ok(true) => Header::Skipped,
                    Ok(false) => Header::None,
                    Err(_) => return fault("42601", "header requires a Boolean value or \"match\""),
                },
            };
            once(&mut options.header, header)
        }
        "quote" => {
            let written = wanted(cursor)?;
            once(&mut options.quote, written)
        }
        "escape" => {
            let written = wanted(cursor)?;
            once(&mut options.escape, written)
        }
        "encoding" => {
            let written = wanted(cursor)?;
            once(&mut options.encoding, written)
        }
        "force_quote" => {
            let columns = forced(cursor, &name, true)?;
            once(&mut options.force_quote, columns)
        }
        "force_not_null" => {
            let columns = forced(cursor, &name, false)?;
            once(&mut options.force_not_null, columns)
        }
        "force_null" => {
            let columns = forced(cursor, &name, false)?;
            once(&mut options.force_null, columns)
        }
        _ => fault("42601", format!("option \"{name}\" not recognized")),
    }
}

/// One option of the spelling before PostgreSQL 9.0.
fn old_option(cursor: &mut TokenCursor<'_>, options: &mut Options) -> Result<(), SqlError> {
    let string = |cursor: &mut TokenCursor<'_>| {
        cursor.take_words(&["AS"]);
        text(cursor)
    };
    if cursor.take_words(&["BINARY"]) {
        once(&mut options.format, Format::Binary)
    } else if cursor.take_words(&["CSV"]) {
        once(&mut options.format, Format::Csv)
    } else if cursor.take_words(&["FREEZE"]) {
        once(&mut options.freeze, true)
    } else if cursor.take_words(&["HEADER"]) {
        once(&mut options.header, Header::Skipped)
    } else if cursor.take_words(&["DELIMITER"]) {
        once(&mut options.delimiter, string(cursor)?)
    } else if cursor.take_words(&["NULL"]) {
        once(&mut options.null, string(cursor)?)
    } else if cursor.take_words(&["QUOTE"]) {
        once(&mut options.quote, string(cursor)?)
    } else if cursor.take_words(&["ESCAPE"]) {
        once(&mut options.escape, string(cursor)?)
    } else if cursor.take_words(&["ENCODING"]) {
        once(&mut options.encoding, text(cursor)?)
    } else if cursor.take_words(&["FORCE", "QUOTE"]) {
        let columns = if cursor.take_sign("*") {
            Forced::All
        } else {
            Forced::Columns(listed(cursor)?)
        };
        once(&mut options.force_quote, columns)
    } else if cursor.take_words(&["FORCE", "NOT", "NULL"]) {
        once(&mut options.force_not_null, Forced::Columns(listed(cursor)?))
    } else if cursor.take_words(&["FORCE", "NULL"]) {
        once(&mut options.force_null, Forced::Columns(listed(cursor)?))
    } else {
        cursor.expected("an option of COPY")
    }
}

fn listed(cursor: &mut TokenCursor<'_>) -> Result<Vec<String>, SqlError> {
    let mut names = vec![cursor.name("a column")?];
    while cursor.take_sign(",") {
        names.push(cursor.name("a column")?);
    }
    Ok(names)
}

/// What the options mean together.
fn finish(subject: Subject, from: bool, options: Options) -> Result<Copy, SqlError> {
    let format = options.format.unwrap_or(Format::Text);
    let csv = format == Format::Csv;
    let binary = format == Format::Binary;
    if binary && options.delimiter.is_some() {
        return fault("42601", "cannot specify DELIMITER in BINARY mode");
    }
    if binary && options.null.is_some() {
        return fault("42601", "cannot specify NULL in BINARY mode");
    }
    let one_byte = |what: &str, value: &str| match value.as_bytes() {
        [byte] => Ok(*byte),
        _ => fault("0A000", format!("COPY {what} must be a single one-byte character")),
    };
    let delimiter = one_byte(
        "delimiter",
        options.delimiter.as_deref().unwrap_or(if csv { "," } else { "\t" }),
    )?;
    if matches!(delimiter, b'\n' | b'\r') {
        return fault("22023", "COPY delimiter cannot be newline or carriage return");
    }
    let null = options.null.unwrap_or_else(|| if csv { "" } else { "\\N" }.to_owned());
    if null.contains(['\n', '\r']) {
        return fault(
            "22023",
            "COPY null representation cannot use newline or carriage return",
        );
    }
    let shown = char::from(delimiter);
    if !csv && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || matches!(delimiter, b'\\' | b'.')) {
        return fault("22023", format!("COPY delimiter cannot be \"{shown}\""));
    }
    let header = options.header.unwrap_or(Header::None);
    if binary && header != Header::None {
        return fault("0A000", "cannot specify HEADER in BINARY mode");
    }
    if header == Header::Matching && !from {
        return fault("0A000", "cannot use \"match\" with HEADER in COPY TO");
    }
    if !csv && options.quote.is_some() {
        return fault("0A000", "COPY quote available only in CSV mode");
    }
    let quote = one_byte("quote", options.quote.as_deref().unwrap_or("\""))?;
    if csv && delimiter == quote {
        return fault("22023", "COPY delimiter and quote must be different");
    }
    if !csv && options.escape.is_some() {
        return fault("0A000", "COPY escape available only in CSV mode");
    }
    let escape = match &options.escape {
        Some(escape) => one_byte("escape", escape)?,
        None => quote,
    };
    let force_quote = options.force_quote.unwrap_or(Forced::Columns(Vec::new()));
    let force_not_null = options.force_not_null.unwrap_or(Forced::Columns(Vec::new()));
    let force_null = options.force_null.unwrap_or(Forced::Columns(Vec::new()));
    for (what, forced, of_from) in [
        ("force quote", &force_quote, false),
        ("force not null", &force_not_null, true),
        ("force null", &force_null, true),
    ] {
        if !csv && !forced.is_none() {
            return fault("0A000", format!("COPY {what} available only in CSV mode"));
        }
        if !forced.is_none() && of_from != from {
            let direction = if of_from { "FROM" } else { "TO" };
            return fault("0A000", format!("COPY {what} only available using COPY {direction}"));
        }
    }
    if !binary && null.as_bytes().contains(&delimiter) {
        return fault("0A000", "COPY delimiter must not appear in the NULL specification");
    }
    if csv && null.as_bytes().contains(&quote) {
        return fault("0A000", "CSV quote character must not appear in the NULL specification");
    }
    if let Some(encoding) = options.encoding
        && !["utf8", "utf-8", "unicode"]
            .iter()
            .any(|name| encoding.eq_ignore_ascii_case(name))
    {
        return Err(SqlError::unsupported(format!("COPY in the encoding \"{encoding}\"")));
    }
    Ok(Copy {
        subject,
        from,
        format,
        freeze: options.freeze == Some(true),
        header,
        delimiter,
        null,
        quote,
        escape,
        force_quote,
        force_not_null,
        force_null,
    })
}
