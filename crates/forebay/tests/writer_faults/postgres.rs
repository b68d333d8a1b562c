//! PostgreSQL, as the tests reach it.

use std::sync::Arc;

use forebay::postgres::{ConnectError, Postgres};
use forebay::write::{Outcome, ReadError};
use testbed::{ForTests, Shared, is_left_over};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::place::{Plain, SUITE, Settings, Site};

pub(crate) struct Pg;

impl Site for Pg {
    type Server = testbed::Postgres;
    type Handle = Postgres;
    type Plain = Client;
    const INSERT: &'static str = "INSERT INTO t (n) VALUES ($1)";
    const INSERT_WORDS: &'static str = "INSERT INTO t (n, words) VALUES ($1, $2)";

    fn start(settings: &[(&str, &str)]) -> testbed::Postgres {
        let builder = testbed::Postgres::builder();
        let builder = settings
            .iter()
            .fold(builder, |builder, (name, value)| builder.setting(name, value));
        builder.start().unwrap()
    }

    fn shared() -> Arc<ForTests<testbed::Postgres>> {
        static SERVER: Shared<ForTests<testbed::Postgres>> = Shared::new(testbed::Postgres::for_tests);
        SERVER.server().unwrap()
    }

    fn url(server: &testbed::Postgres) -> String {
        server.url()
    }

    fn kill(server: &mut testbed::Postgres) {
        server.kill9().unwrap();
    }

    fn restart(server: &mut testbed::Postgres) {
        server.restart().unwrap();
    }

    fn url_of(server: &str, name: &str, options: &str) -> String {
        let options = format!("-c search_path={name} {options}")
            .replace(' ', "%20")
            .replace('=', "%3D");
        let mark = if server.contains('?') { '&' } else { '?' };
        format!("{server}{mark}options={options}")
    }

    async fn make(server: &str, name: &str) {
        static SWEPT: OnceCell<()> = OnceCell::const_new();
        let mut plain = Self::plain(server).await.unwrap();
        SWEPT
            .get_or_init(async || {
                let mut plain = Self::plain(server).await.unwrap();
                for name in plain.read("SELECT nspname FROM pg_namespace").await {
                    if is_left_over(SUITE, &name) {
                        plain.say(&format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await;
                    }
                }
            })
            .await;
        plain.say(&format!("CREATE SCHEMA {name}")).await;
    }

    async fn open(url: &str, settings: &Settings) -> Result<Postgres, ConnectError> {
        Postgres::builder(url)?
            .max_connections(settings.connections)
            .answer_timeout(settings.answer_timeout)
            .retry_for(settings.retry_for)
            .lock_timeout(settings.lock_timeout)
            .connect()
            .await
    }

    async fn query(handle: &Postgres, sql: &'static str) -> Result<Outcome, ReadError> {
        handle.query(sql, ()).await
    }

    async fn plain(url: &str) -> Option<Client> {
        let (client, driver) = tokio_postgres::connect(url, NoTls).await.ok()?;
        tokio::spawn(driver);
        Some(client)
    }
}

impl Plain for Client {
    async fn try_say(&mut self, sql: &str) -> Result<(), String> {
        self.batch_execute(sql).await.map_err(|error| format!("{error:?}"))
    }

    async fn read(&mut self, sql: &str) -> Vec<String> {
        let rows = self.simple_query(sql).await.unwrap();
        let rows = rows.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        rows.map(|row| {
            let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
            values.collect::<Vec<_>>().join("|")
        })
        .collect()
    }
}
