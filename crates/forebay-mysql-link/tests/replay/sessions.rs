//! Sessions: what is asked of a server, and what was heard of it.
//!
//! Promises: a session asks the same each time, but for what the server calls a statement; it ends when all is answered or the link
//! has ended. What is heard is told packet by packet, in their order. A link that ends says so
//! from then on, or this panics. Knows no server.

use bytes::BytesMut;
use forebay_mysql_link::{ColumnType, ConnectError, Connector, Link, LinkError, Packet, Parameter, put_length_encoded};

use super::decode::{Described, Format};

/// All there are, by their names.
pub(crate) const SESSIONS: [&str; 5] = ["text", "prepared", "large", "procedure", SWITCHED];
/// One whose user proves his password in another way than was offered first.
pub(crate) const SWITCHED: &str = "switched";

/// What came of a session.
#[derive(Debug)]
pub(crate) struct Heard {
    /// A line for each packet behind the handshake.
    pub(crate) lines: Vec<String>,
    pub(crate) end: End,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum End {
    /// All was answered.
    Answered,
    /// There was no link.
    NotConnected(ConnectError),
    /// The link ended before.
    Link(LinkError),
}

/// Connects, and asks all there is to be asked in the session of this name.
pub(crate) async fn run(session: &str, connector: &Connector) -> Heard {
    let link = match connector.connect().await {
        Ok(link) => link,
        Err(error) => {
            return Heard {
                lines: Vec::new(),
                end: End::NotConnected(error),
            };
        }
    };
    let mut talk = Talk {
        link,
        lines: Vec::new(),
    };
    let asked = match session {
        "text" => talk.text().await,
        "prepared" => talk.prepared().await,
        "large" => talk.large().await,
        "procedure" => talk.procedure().await,
        SWITCHED => talk.query("SELECT CURRENT_USER()").await,
        other => panic!("there is no session {other}"),
    };
    assert_eq!(asked.is_err(), talk.link.is_over(), "{asked:?}");
    assert!(asked.is_ok() || !talk.link.is_idle(), "{asked:?}");
    talk.link.close().await;
    Heard {
        lines: talk.lines,
        end: asked.map_or_else(End::Link, |()| End::Answered),
    }
}

/// What is prepared.
#[derive(Default)]
struct Statement {
    id: u32,
    described: Described,
}

struct Talk {
    link: Link,
    lines: Vec<String>,
}

impl Talk {
    /// All packets of one answer.
    async fn answer(&mut self, statement: &mut Statement, format: Format) -> Result<(), LinkError> {
        loop {
            let packet = self.link.next().await?;
            if let Packet::Prepared(prepared) = &packet {
                statement.id = prepared.id;
            }
            self.lines.push(statement.described.told(&packet, format));
            if !self.link.is_in_answer() {
                return Ok(());
            }
        }
    }

    async fn query(&mut self, sql: &str) -> Result<(), LinkError> {
        self.link.outbox().query(sql).unwrap();
        self.answer(&mut Statement::default(), Format::Text).await
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement, LinkError> {
        let mut statement = Statement::default();
        self.link.outbox().prepare(sql).unwrap();
        self.answer(&mut statement, Format::Binary).await?;
        Ok(statement)
    }

    /// With parameters in text.
    fn execute(&mut self, statement: &Statement, parameters: &[Option<&str>]) {
        let encode = |value: &Option<&str>, bytes: &mut BytesMut| match value {
            None => Parameter::Null,
            Some(value) => {
                put_length_encoded(bytes, value.as_bytes());
                Parameter::Of(ColumnType::MYSQL_TYPE_VAR_STRING, false)
            }
        };
        let outbox = self.link.outbox();
        outbox.execute(statement.id, parameters.iter(), encode).unwrap();
    }

    async fn text(&mut self) -> Result<(), LinkError> {
        for sql in [
            "SELECT 1 AS one, NULL, 'text', ''",
            "",
            "CREATE TEMPORARY TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9) UNIQUE)",
            "INSERT INTO t (b) VALUES ('a'), ('b'), (NULL)",
            "INSERT INTO t (b) VALUES ('a')",
            "UPDATE t SET b = 'c' WHERE a > 1 AND b IS NULL",
            "SELECT a, b FROM t ORDER BY a",
            "SELECT a FROM t WHERE a > 100",
            "SELECT 1 / 0",
            "SELECT 1; DO 1; SELECT a FROM t; SELECT x; SELECT 2",
            "START TRANSACTION",
            "SELEC",
            "ROLLBACK",
        ] {
            self.query(sql).await?;
        }
        self.link.outbox().ping();
        self.answer(&mut Statement::default(), Format::Text).await?;
        self.link.outbox().reset_connection();
        self.answer(&mut Statement::default(), Format::Text).await
    }

    /// Each is prepared and then executed twice.
    async fn prepared(&mut self) -> Result<(), LinkError> {
        let columns = "a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(9, 2), i DATE, \
                       j DATETIME(6), k TIME, l YEAR, m VARCHAR(20), n BLOB, o ENUM('x', 'y'), p BIT(9)";
        let values = "(-1, 65535, -3, 4, -5, 1.5, 2.5, 123.45, '2024-02-29', '2024-02-29 12:34:56.789', '-101:02:03', 2024, 'text', \
                      'bytes', 'y', b'101010101')";
        self.query(&format!("CREATE TEMPORARY TABLE t ({columns})")).await?;
        self.query(&format!("INSERT INTO t VALUES {values}")).await?;
        self.query("INSERT INTO t (a, j, k) VALUES (0, '0000-00-00', '0:0:0')")
            .await?;
        for (sql, parameters) in [
            ("SELECT * FROM t ORDER BY a", &[][..]),
            ("SELECT ? + 1, ?, CONCAT(?, 'c')", &[Some("41"), None, Some("ab")]),
            ("INSERT INTO t (a) VALUES (?)", &[Some("no number")]),
            ("SELECT a FROM t WHERE a > ?", &[Some("100")]),
        ] {
            let mut statement = self.prepare(sql).await?;
            for _ in 0..2 {
                self.execute(&statement, parameters);
                self.answer(&mut statement, Format::Binary).await?;
            }
            self.link.outbox().close(statement.id);
        }
        self.prepare("SELECT no_such_column FROM t").await?;
        let closed = Statement {
            id: 7777,
            ..Statement::default()
        };
        // All at once, with an error before the end.
        let mut statement = self.prepare("SELECT ?").await?;
        self.execute(&statement, &[Some("1")]);
        self.execute(&closed, &[Some("2")]);
        self.execute(&statement, &[None]);
        for _ in 0..3 {
            self.answer(&mut statement, Format::Binary).await?;
        }
        Ok(())
    }

    /// Rows of all lengths of lengths, and longer than what is read at once, of which some are discarded.
    async fn large(&mut self) -> Result<(), LinkError> {
        let lengths = |lengths: &str, letter: &str| {
            format!(
                "SELECT LENGTH(b), b FROM (SELECT REPEAT('{letter}', seq) AS b FROM seq_0_to_9000 WHERE seq IN ({lengths})) AS t"
            )
        };
        self.query(&lengths("0, 250, 251, 9000", "x")).await?;
        self.link.discard_rows_beyond(100);
        self.query(&lengths("90, 96, 97, 2000", "y")).await?;
        self.link.discard_rows_beyond(usize::MAX);
        let mut statement = self.prepare(&lengths("0, 250, 251", "z")).await?;
        self.execute(&statement, &[]);
        self.answer(&mut statement, Format::Binary).await
    }

    /// Several results of one command, in text and in binary.
    async fn procedure(&mut self) -> Result<(), LinkError> {
        let body =
            "BEGIN SELECT n; SELECT n + 1 AS a, NULL AS b; SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'a warning'; END";
        self.query("DROP PROCEDURE IF EXISTS recorded").await?;
        self.query(&format!("CREATE PROCEDURE recorded (n INT) {body}")).await?;
        self.query("CALL recorded(1)").await?;
        let mut statement = self.prepare("CALL recorded(?)").await?;
        for number in ["2", "3"] {
            self.execute(&statement, &[Some(number)]);
            self.answer(&mut statement, Format::Binary).await?;
        }
        self.query("DROP PROCEDURE recorded").await
    }
}
