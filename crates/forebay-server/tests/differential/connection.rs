//! A client of the raw protocol that sends many statements before it reads the first answer.
//!
//! Promises: each statement stands behind a Sync of its own, so that an error is its own; a batch of any size goes through,
//! because one thread writes while another reads; a server that hangs up loses the case that it was at and no other.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::tree::{Oid, Rendered};

/// Beyond the servers' own limit of a statement's time: only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is reached.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) address: SocketAddr,
    pub(crate) user: String,
    pub(crate) database: String,
}

impl Address {
    /// From `postgresql://user@host:port/database`. Passwords are not known here.
    pub(crate) fn of_url(url: &str) -> Self {
        use std::net::ToSocketAddrs;
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (user, rest) = rest.rsplit_once('@').unwrap_or(("postgres", rest));
        let (host, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
        let mut addresses = host.to_socket_addrs().unwrap_or_else(|error| panic!("{url}: {error}"));
        Self {
            address: addresses.next().unwrap_or_else(|| panic!("{url}: no address")),
            user: user.split(':').next().unwrap_or(user).to_owned(),
            database: database.split('?').next().unwrap_or(database).to_owned(),
        }
    }
}

/// One statement as it is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Send {
    pub(crate) rendered: Rendered,
    pub(crate) is_simple: bool,
    /// Whether result columns are asked for in binary.
    pub(crate) binary: bool,
}

/// A result column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) oid: Oid,
    pub(crate) modifier: i32,
}

pub(crate) type Row = Vec<Option<Vec<u8>>>;

/// What a server said to one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The types of the parameters; not told in the simple protocol.
    pub(crate) parameters: Vec<Oid>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    pub(crate) tag: String,
    pub(crate) error: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    /// What else it tells, by the letters of the protocol: detail, hint, schema, table, column, constraint.
    pub(crate) told: BTreeMap<char, String>,
}

/// The SQLSTATE, of no server's, of a connection that ended.
pub(crate) const LOST: &str = "*LOST";

#[derive(Debug)]
pub(crate) struct Connection {
    to: Address,
    /// Said anew on each connection.
    settings: Vec<String>,
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(to: &Address) -> Self {
        let stream = dial(to).unwrap_or_else(|error| panic!("{to:?}: {error}"));
        Self {
            to: to.clone(),
            settings: Vec::new(),
            stream,
        }
    }

    /// Sets something for this session and those that follow it; whether the server did.
    pub(crate) fn set(&mut self, statement: &str) -> bool {
        let done = self.query(statement).error.is_none();
        if done {
            self.settings.push(statement.to_owned());
        }
        done
    }

    pub(crate) fn query(&mut self, sql: &str) -> Answer {
        let send = Send {
            rendered: Rendered {
                sql: sql.to_owned(),
                parameters: Vec::new(),
            },
            is_simple: true,
            binary: false,
        };
        self.run(&[vec![send]]).remove(0).remove(0)
    }

    /// Each case's answers.
    pub(crate) fn run(&mut self, cases: &[Vec<Send>]) -> Vec<Vec<Answer>> {
        let mut answers = Vec::with_capacity(cases.len());
        while answers.len() < cases.len() {
            let rest = &cases[answers.len()..];
            if self.run_until_lost(rest, &mut answers).is_err() {
                self.reconnect();
            }
        }
        answers
    }

    fn run_until_lost(&mut self, cases: &[Vec<Send>], answers: &mut Vec<Vec<Answer>>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for send in cases.iter().flatten() {
            write_statement(send, &mut bytes);
        }
        let mut writer = self.stream.get_ref().try_clone()?;
        let reader = &mut self.stream;
        std::thread::scope(|scope| {
            // That the server has hung up shows when its answers are read.
            scope.spawn(move || writer.write_all(&bytes));
            for case in cases {
                let mut told = Vec::with_capacity(case.len());
                for _ in case {
                    match read_answer(reader) {
                        Ok(answer) => told.push(answer),
                        Err(error) => {
                            told.resize_with(case.len(), || lost(&error));
                            answers.push(told);
                            // Frees the writer, should it still wait.
                            let _ = reader.get_ref().shutdown(std::net::Shutdown::Both);
                            return Err(error);
                        }
                    }
                }
                answers.push(told);
            }
            Ok(())
        })
    }

    fn reconnect(&mut self) {
        let mut fresh = Self::open(&self.to);
        for setting in &self.settings {
            fresh.set(setting);
        }
        *self = fresh;
    }
}

fn lost(error: &io::Error) -> Answer {
    Answer {
        error: Some(Failure {
            sqlstate: LOST.to_owned(),
            message: format!("the connection ended: {error}"),
            told: BTreeMap::new(),
        }),
        ..Answer::default()
    }
}

fn dial(to: &Address) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&to.address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(256 * 1024, stream);
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    for text in ["user", &to.user, "database", &to.database, "client_encoding", "UTF8"] {
        body.extend(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    let mut startup = length(&body);
    startup.extend(body);
    stream.get_mut().write_all(&startup)?;
    match read_answer(&mut stream)?.error {
        Some(failure) => Err(io::Error::other(failure.message)),
        None => Ok(stream),
    }
}

fn length(body: &[u8]) -> Vec<u8> {
    u32::try_from(body.len() + 4)
        .expect("statements are short")
        .to_be_bytes()
        .to_vec()
}

fn message(kind: u8, body: &[u8], into: &mut Vec<u8>) {
    into.push(kind);
    into.extend(length(body));
    into.extend(body);
}

fn count(count: usize) -> [u8; 2] {
    u16::try_from(count)
        .expect("statements have few parameters")
        .to_be_bytes()
}

fn write_statement(send: &Send, into: &mut Vec<u8>) {
    let sql = [send.rendered.sql.as_bytes(), b"\0"].concat();
    if send.is_simple {
        message(b'Q', &sql, into);
        return;
    }
    let parameters = &send.rendered.parameters;
    let mut parse = [b"\0".as_slice(), &sql].concat();
    parse.extend(count(parameters.len()));
    for parameter in parameters {
        parse.extend(parameter.declared.to_be_bytes());
    }
    message(b'P', &parse, into);
    message(b'D', b"S\0", into);
    let mut bind = b"\0\0".to_vec();
    bind.extend(count(parameters.len()));
    for parameter in parameters {
        bind.extend(u16::from(parameter.is_binary).to_be_bytes());
    }
    bind.extend(count(parameters.len()));
    for parameter in parameters {
        match &parameter.value {
            None => bind.extend((-1_i32).to_be_bytes()),
            Some(value) => {
                bind.extend(u32::try_from(value.len()).expect("values are short").to_be_bytes());
                bind.extend(value);
            }
        }
    }
    bind.extend([0, 1, 0, u8::from(send.binary)]);
    message(b'B', &bind, into);
    message(b'E', b"\0\0\0\0\0", into);
    message(b'S', b"", into);
}

/// Everything up to the next ReadyForQuery.
fn read_answer(stream: &mut impl Read) -> io::Result<Answer> {
    let mut answer = Answer::default();
    let mut body = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        body.resize(length.saturating_sub(4), 0);
        stream.read_exact(&mut body)?;
        let mut reader = Reader(&body);
        match head[0] {
            b'Z' => return Ok(answer),
            b'R' if reader.i32() != 0 => return Err(io::Error::other("the server asks for a password")),
            b't' => {
                let count = reader.u16();
                answer.parameters = (0..count).map(|_| reader.u32()).collect();
            }
            b'T' => {
                let count = reader.u16();
                answer.columns = (0..count).map(|_| reader.column()).collect();
            }
            b'D' => {
                let count = reader.u16();
                answer.rows.push((0..count).map(|_| reader.value()).collect());
            }
            b'C' => answer.tag = reader.text(),
            b'E' => {
                let mut fields = BTreeMap::new();
                loop {
                    match reader.take(1)[0] {
                        0 => break,
                        letter => fields.insert(letter, reader.text()),
                    };
                }
                answer.error = Some(Failure {
                    sqlstate: fields.remove(&b'C').unwrap_or_default(),
                    message: fields.remove(&b'M').unwrap_or_default(),
                    told: fields
                        .into_iter()
                        .map(|(letter, text)| (char::from(letter), text))
                        .filter(|(letter, _)| "DHstcn".contains(*letter))
                        .collect(),
                });
            }
            _ => {}
        }
    }
}

/// The fields of a message, one after another.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = String::from_utf8_lossy(self.take(end)).into_owned();
        self.take(1);
        text
    }

    fn column(&mut self) -> Column {
        let name = self.text();
        // The table and the number of the column in it: OIDs differ from server to server.
        self.take(6);
        let oid = self.u32();
        self.take(2);
        let modifier = self.i32();
        self.take(2);
        Column { name, oid, modifier }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.i32()).ok()?;
        Some(self.take(length).to_vec())
    }
}
