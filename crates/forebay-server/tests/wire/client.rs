//! A PostgreSQL client of raw messages: says what it is told to, byte by byte, and keeps every answer as it came.
//!
//! Blocking, with a bound on every wait. Knows how messages are framed, not when they are allowed: that is what the tests
//! find out.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest wait for an answer: far beyond what any needs, so that only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
}

/// What an ErrorResponse says, by the letters of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(BTreeMap<u8, String>);

impl Failure {
    pub(crate) fn field(&self, letter: u8) -> Option<&str> {
        self.0.get(&letter).map(String::as_str)
    }

    pub(crate) fn sqlstate(&self) -> &str {
        self.field(b'C').unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.field(b'M').unwrap_or_default()
    }

    pub(crate) fn position(&self) -> Option<usize> {
        self.field(b'P')?.parse().ok()
    }
}

/// What came up to and with one ReadyForQuery.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) messages: Vec<Message>,
    /// I, T or E.
    pub(crate) status: char,
}

/// A text value of each column.
pub(crate) type Row = Vec<Option<String>>;

impl Answer {
    /// The kinds of all messages but the last, as a word.
    pub(crate) fn kinds(&self) -> String {
        self.messages.iter().map(|message| char::from(message.kind)).collect()
    }

    pub(crate) fn error(&self) -> Option<Failure> {
        self.messages
            .iter()
            .find(|message| message.kind == b'E')
            .map(Message::failure)
    }

    pub(crate) fn notice(&self) -> Option<Failure> {
        self.messages
            .iter()
            .find(|message| message.kind == b'N')
            .map(Message::failure)
    }

    /// The SQLSTATE of the error; `00000` without one.
    pub(crate) fn sqlstate(&self) -> String {
        self.error()
            .map_or_else(|| "00000".to_owned(), |error| error.sqlstate().to_owned())
    }

    /// Panics with the error if there is one.
    pub(crate) fn expect(self, what: &str) -> Self {
        assert!(self.error().is_none(), "{what}: {:?}", self.error());
        self
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.messages
            .iter()
            .filter(|message| message.kind == b'D')
            .map(Message::row)
            .collect()
    }

    /// The first column of the first row.
    pub(crate) fn value(&self) -> Option<String> {
        self.rows().into_iter().next()?.into_iter().next()?
    }

    pub(crate) fn tags(&self) -> Vec<String> {
        self.messages
            .iter()
            .filter(|message| message.kind == b'C')
            .map(Message::text)
            .collect()
    }

    /// Changed settings, as reported.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        self.messages
            .iter()
            .filter(|message| message.kind == b'S')
            .map(Message::setting)
            .collect()
    }
}

impl Message {
    /// The body up to its first NUL.
    pub(crate) fn text(&self) -> String {
        let end = self.body.iter().position(|byte| *byte == 0).unwrap_or(self.body.len());
        String::from_utf8(self.body[..end].to_vec()).expect("the server speaks UTF-8")
    }

    pub(crate) fn failure(&self) -> Failure {
        let fields = self.body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let text = |field: &[u8]| String::from_utf8(field[1..].to_vec()).expect("the server speaks UTF-8");
        Failure(fields.map(|field| (field[0], text(field))).collect())
    }

    fn row(&self) -> Row {
        let count = u16::from_be_bytes([self.body[0], self.body[1]]);
        let mut rest = &self.body[2..];
        let mut row = Vec::new();
        for _ in 0..count {
            let (length, behind) = rest.split_at(4);
            let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
            rest = behind;
            row.push(usize::try_from(length).ok().map(|length| {
                let (value, behind) = rest.split_at(length);
                rest = behind;
                String::from_utf8_lossy(value).into_owned()
            }));
        }
        assert!(rest.is_empty(), "bytes left over in a DataRow");
        row
    }

    fn setting(&self) -> (String, String) {
        let mut texts = self
            .body
            .split(|byte| *byte == 0)
            .map(|text| String::from_utf8_lossy(text).into_owned());
        (texts.next().unwrap_or_default(), texts.next().unwrap_or_default())
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
    pub(crate) process: i32,
    pub(crate) secret: Vec<u8>,
    pub(crate) settings: BTreeMap<String, String>,
}

impl Client {
    /// A connection on which nothing was said yet.
    pub(crate) fn raw(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout is set");
        stream.set_nodelay(true).expect("nodelay is set");
        Self {
            stream,
            address,
            buffer: Vec::new(),
            process: 0,
            secret: Vec::new(),
            settings: BTreeMap::new(),
        }
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &[]).unwrap_or_else(|error| panic!("refused: {error:?}"))
    }

    /// A session with these start-up parameters, or the server's refusal.
    pub(crate) fn connect_with(address: SocketAddr, parameters: &[(&str, &str)]) -> Result<Self, Failure> {
        let mut client = Self::raw(address);
        client.send(&startup(parameters));
        let answer = loop {
            match client.read() {
                Ok(message) if message.kind == b'E' => return Err(message.failure()),
                Ok(message) if message.kind == b'Z' => break message,
                Ok(message) => client.remember(&message),
                Err(error) => panic!("no session: {error}"),
            }
        };
        assert_eq!(answer.body, b"I");
        Ok(client)
    }

    fn remember(&mut self, message: &Message) {
        match message.kind {
            b'S' => drop(self.settings.insert(message.setting().0, message.setting().1)),
            b'K' => {
                self.process = i32::from_be_bytes(message.body[..4].try_into().expect("four bytes"));
                self.secret = message.body[4..].to_vec();
            }
            _ => {}
        }
    }

    /// Sends bytes. That the server has hung up shows when its answer is read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn read(&mut self) -> io::Result<Message> {
        self.gather(5)?;
        let length = u32::from_be_bytes(self.buffer[1..5].try_into().expect("four bytes")) as usize;
        self.gather(length + 1)?;
        let mut frame: Vec<u8> = self.buffer.drain(..length + 1).collect();
        let body = frame.split_off(5);
        Ok(Message { kind: frame[0], body })
    }

    /// The next message, if it comes within that time.
    pub(crate) fn read_within(&mut self, time: Duration) -> Option<io::Result<Message>> {
        self.stream.set_read_timeout(Some(time)).expect("a timeout is set");
        let read = self.read();
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
        match read {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => None,
            read => Some(read),
        }
    }

    /// Reads until that many bytes are there. They stay, so that a wait that is given up loses nothing.
    fn gather(&mut self, count: usize) -> io::Result<()> {
        let mut piece = [0; 64 * 1024];
        while self.buffer.len() < count {
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.buffer.extend_from_slice(&piece[..read]),
            }
        }
        Ok(())
    }

    /// Everything up to the next ReadyForQuery.
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer()
            .unwrap_or_else(|(error, messages)| panic!("{error} after {messages:?}"))
    }

    /// As `answer`; or how the connection ended, and what came before.
    pub(crate) fn try_answer(&mut self) -> Result<Answer, (io::Error, Vec<Message>)> {
        let mut messages = Vec::new();
        loop {
            match self.read() {
                Ok(message) if message.kind == b'Z' => {
                    return Ok(Answer {
                        messages,
                        status: char::from(message.body[0]),
                    });
                }
                Ok(message) => messages.push(message),
                Err(error) => return Err((error, messages)),
            }
        }
    }

    /// What is said until the server hangs up.
    pub(crate) fn last_words(&mut self) -> Vec<Message> {
        match self.try_answer() {
            Ok(answer) => panic!("not hung up, but {answer:?}"),
            Err((error, messages)) => {
                let waited = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                assert!(!waited, "not hung up after {messages:?}");
                messages
            }
        }
    }

    /// Everything until the server hangs up, which it must.
    pub(crate) fn last_words_or_answers(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            match self.read() {
                Ok(message) => messages.push(message),
                Err(error) => {
                    let waited = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                    assert!(!waited, "not hung up after {messages:?}");
                    return messages;
                }
            }
        }
    }

    /// A simple query and its answer.
    pub(crate) fn query(&mut self, sql: &str) -> Answer {
        self.send(&query(sql));
        self.answer()
    }

    /// A simple query that must succeed.
    pub(crate) fn run(&mut self, sql: &str) -> Answer {
        self.query(sql).expect(sql)
    }

    /// The one value of a query that must succeed.
    pub(crate) fn ask(&mut self, sql: &str) -> String {
        self.run(sql).value().unwrap_or_else(|| panic!("no value: {sql}"))
    }

    /// Sends messages and a Sync; the answer.
    pub(crate) fn pipeline(&mut self, messages: &[Vec<u8>]) -> Answer {
        let mut all = messages.concat();
        all.extend(sync());
        self.send(&all);
        self.answer()
    }

    /// Asks, on a connection of its own, to cancel what this one runs.
    pub(crate) fn cancel(&self, secret: &[u8]) {
        let mut other = Self::raw(self.address);
        let mut packet = (12 + secret.len() as u32).to_be_bytes().to_vec();
        packet.extend(80_877_102_u32.to_be_bytes());
        packet.extend(self.process.to_be_bytes());
        packet.extend(secret);
        other.send(&packet);
        // Until the server has read it and hung up.
        let _ = other.stream.read(&mut [0]);
    }

    /// Cancels until there is an answer: what is cancelled may only be about to run.
    pub(crate) fn cancel_until_answered(&mut self) -> Answer {
        let begun = Instant::now();
        let mut messages = Vec::new();
        loop {
            assert!(begun.elapsed() < PATIENCE, "not cancelled");
            let secret = self.secret.clone();
            self.cancel(&secret);
            while let Some(message) = self.read_within(Duration::from_millis(20)) {
                let message = message.expect("the connection stays");
                if message.kind == b'Z' {
                    return Answer {
                        messages,
                        status: char::from(message.body[0]),
                    };
                }
                messages.push(message);
            }
        }
    }
}

/// A StartupMessage of protocol 3.0.
pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    let user: &[(&str, &str)] = if parameters.iter().any(|(name, _)| *name == "user") {
        &[]
    } else {
        &[("user", "test")]
    };
    for (name, value) in user.iter().chain(parameters) {
        body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
    }
    body.push(0);
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend(body);
    packet
}

/// A message of that kind.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

pub(crate) fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), b"\0"].concat())
}

pub(crate) fn parse(name: &str, sql: &str) -> Vec<u8> {
    parse_typed(name, sql, &[])
}

pub(crate) fn parse_typed(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [name.as_bytes(), b"\0", sql.as_bytes(), b"\0"].concat();
    body.extend((types.len() as u16).to_be_bytes());
    body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
    message(b'P', &body)
}

/// Binds texts; the result in text.
pub(crate) fn bind(portal: &str, statement: &str, parameters: &[&str]) -> Vec<u8> {
    let parameters: Vec<Option<&[u8]>> = parameters.iter().map(|text| Some(text.as_bytes())).collect();
    bind_raw(portal, statement, &[], &parameters, &[])
}

pub(crate) fn bind_raw(
    portal: &str,
    statement: &str,
    formats: &[u16],
    parameters: &[Option<&[u8]>],
    result_formats: &[u16],
) -> Vec<u8> {
    let mut body = [portal.as_bytes(), b"\0", statement.as_bytes(), b"\0"].concat();
    body.extend((formats.len() as u16).to_be_bytes());
    body.extend(formats.iter().flat_map(|format| format.to_be_bytes()));
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        match parameter {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(bytes) => {
                body.extend((bytes.len() as u32).to_be_bytes());
                body.extend(*bytes);
            }
        }
    }
    body.extend((result_formats.len() as u16).to_be_bytes());
    body.extend(result_formats.iter().flat_map(|format| format.to_be_bytes()));
    message(b'B', &body)
}

/// Describes a statement (`S`) or a portal (`P`).
pub(crate) fn describe(target: u8, name: &str) -> Vec<u8> {
    message(b'D', &[&[target], name.as_bytes(), b"\0"].concat())
}

pub(crate) fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    let mut body = [portal.as_bytes(), b"\0"].concat();
    body.extend(rows_max.to_be_bytes());
    message(b'E', &body)
}

pub(crate) fn close(target: u8, name: &str) -> Vec<u8> {
    message(b'C', &[&[target], name.as_bytes(), b"\0"].concat())
}

pub(crate) fn sync() -> Vec<u8> {
    message(b'S', &[])
}

pub(crate) fn flush() -> Vec<u8> {
    message(b'H', &[])
}

/// Parse, Bind and Execute of the unnamed statement.
pub(crate) fn whole(sql: &str, parameters: &[&str]) -> Vec<u8> {
    [parse("", sql), bind("", "", parameters), execute("", 0)].concat()
}
