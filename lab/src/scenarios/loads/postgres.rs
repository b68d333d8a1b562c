//! The rows on PostgreSQL, and how they are read: by plain connections and by Forebay.

use std::sync::Arc;

use forebay::postgres::Postgres;
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, Statement};

use super::source::{Forebay, ROWS, Source, key, told};
use crate::closed_loop::{Ask, two_workers};
use crate::failure::Failure;
use crate::scenario::Stage;

const SELECT: &str = "SELECT value FROM entry WHERE id = $1";

/// The server.
pub(super) struct Server {
    server: testbed::Postgres,
}

impl Server {
    /// A server in the stage's folder, the table filled.
    pub(super) fn start(stage: &Stage<'_>) -> Result<Self, Failure> {
        let server = testbed::Postgres::builder().folder_in(stage.folder).start()?;
        let fill = async {
            let fill = format!(
                "CREATE TABLE entry AS SELECT id, id::bigint * 3 + 7 AS value FROM generate_series(0, {ROWS} - 1) AS id; \
                 ALTER TABLE entry ADD PRIMARY KEY (id); VACUUM (ANALYZE) entry"
            );
            let client = connect(&server.url()).await?;
            for statement in fill.split("; ") {
                client.batch_execute(statement).await?;
            }
            Ok::<_, Failure>(())
        };
        two_workers()?.block_on(fill)?;
        Ok(Self { server })
    }
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Whoever asks the client sees why the connection ended.
    tokio::spawn(connection);
    Ok(client)
}

impl Source for Server {
    type Pool = Pool;

    async fn pool(&self, connections: u32) -> Result<Pool, Failure> {
        let mut pool = Vec::new();
        for _ in 0..connections {
            let client = connect(&self.server.url()).await?;
            let select = client.prepare(SELECT).await?;
            pool.push(Mutex::new((client, select)));
        }
        Ok(Pool {
            connections: pool.into(),
        })
    }

    async fn loader(&self) -> Result<Forebay, Failure> {
        let postgres = Postgres::connect(&self.server.url()).await;
        let postgres = postgres.map_err(|error| Failure::Wrong(error.to_string()))?;
        Ok(Forebay {
            loader: postgres.loader(SELECT),
        })
    }
}

/// Each caller always on the same connection.
#[derive(Clone)]
pub(super) struct Pool {
    connections: Arc<[Mutex<(Client, Statement)>]>,
}

impl Ask for Pool {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        let caller = usize::try_from(item >> 32).expect("callers are counted in 32 bits");
        let connection = self.connections[caller % self.connections.len()].lock().await;
        let (client, select) = &*connection;
        let row = client.query_opt(select, &[&key(item)]).await;
        let row = row.map_err(|error| error.to_string())?;
        told(item, row.map(|row| row.get(0)))
    }
}
