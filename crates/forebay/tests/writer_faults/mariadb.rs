//! MariaDB, as the tests reach it.

use std::sync::Arc;

use forebay::mysql::{ConnectError, MySql};
use forebay::write::{Outcome, ReadError};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};
use testbed::{ForTests, MariaDb, Shared, is_left_over};
use tokio::sync::OnceCell;

use crate::place::{Plain, SUITE, Settings, Site};

pub(crate) struct Maria;

impl Site for Maria {
    type Server = MariaDb;
    type Handle = MySql;
    type Plain = Conn;
    const INSERT: &'static str = "INSERT INTO t (n) VALUES (?)";
    const INSERT_WORDS: &'static str = "INSERT INTO t (n, words) VALUES (?, ?)";

    fn start(settings: &[(&str, &str)]) -> MariaDb {
        let builder = MariaDb::builder().survives_kills();
        let builder = settings
            .iter()
            .fold(builder, |builder, (name, value)| builder.setting(name, value));
        builder.start().unwrap()
    }

    fn shared() -> Arc<ForTests<MariaDb>> {
        static SERVER: Shared<ForTests<MariaDb>> = Shared::new(MariaDb::for_tests);
        SERVER.server().unwrap()
    }

    fn url(server: &MariaDb) -> String {
        server.url()
    }

    fn kill(server: &mut MariaDb) {
        server.kill9().unwrap();
    }

    fn restart(server: &mut MariaDb) {
        server.restart().unwrap();
    }

    fn url_of(server: &str, name: &str, _: &str) -> String {
        format!("{}/{name}", server.rsplit_once('/').unwrap().0)
    }

    async fn make(server: &str, name: &str) {
        static SWEPT: OnceCell<()> = OnceCell::const_new();
        let mut plain = Self::plain(server).await.unwrap();
        SWEPT
            .get_or_init(async || {
                let mut plain = Self::plain(server).await.unwrap();
                for name in plain.read("SHOW DATABASES").await {
                    if is_left_over(SUITE, &name) {
                        plain.say(&format!("DROP DATABASE IF EXISTS {name}")).await;
                    }
                }
            })
            .await;
        plain
            .say(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"))
            .await;
    }

    async fn open(url: &str, settings: &Settings) -> Result<MySql, ConnectError> {
        MySql::builder(url)?
            .max_connections(settings.connections)
            .answer_timeout(settings.answer_timeout)
            .retry_for(settings.retry_for)
            .lock_timeout(settings.lock_timeout)
            .connect()
            .await
    }

    async fn query(handle: &MySql, sql: &'static str) -> Result<Outcome, ReadError> {
        handle.query(sql, ()).await
    }

    async fn plain(url: &str) -> Option<Conn> {
        let options = OptsBuilder::from_opts(Opts::from_url(url).unwrap());
        Conn::new(options.prefer_socket(false)).await.ok()
    }
}

impl Plain for Conn {
    async fn try_say(&mut self, sql: &str) -> Result<(), String> {
        self.query_drop(sql).await.map_err(|error| error.to_string())
    }

    async fn read(&mut self, sql: &str) -> Vec<String> {
        let rows: Vec<Row> = self.query(sql).await.unwrap();
        rows.into_iter()
            .map(|row| {
                let texts = row.unwrap().into_iter().map(|value| match value {
                    Value::NULL => "NULL".to_owned(),
                    Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    other => other.as_sql(true),
                });
                texts.collect::<Vec<_>>().join("|")
            })
            .collect()
    }
}
