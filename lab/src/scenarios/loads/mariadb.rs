//! The rows on MariaDB, and how they are read: by plain connections and by Forebay.

use std::sync::Arc;

use forebay::mysql::MySql;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Statement};
use tokio::sync::Mutex;

use super::source::{Forebay, ROWS, Source, key, told};
use crate::closed_loop::{Ask, two_workers};
use crate::failure::Failure;
use crate::scenario::Stage;

const SELECT: &str = "SELECT value FROM entry WHERE id = ?";

/// The server.
pub(super) struct Server {
    server: testbed::MariaDb,
}

impl Server {
    /// A server in the stage's folder, the table filled.
    pub(super) fn start(stage: &Stage<'_>) -> Result<Self, Failure> {
        let server = testbed::MariaDb::builder().folder_in(stage.folder).start()?;
        let fill = async {
            let mut connection = connect(&server.url()).await?;
            let fill = format!(
                "CREATE TABLE entry (id INT PRIMARY KEY, value BIGINT); \
                 INSERT INTO entry SELECT seq, seq * 3 + 7 FROM seq_0_to_{}; ANALYZE TABLE entry",
                ROWS - 1
            );
            for statement in fill.split("; ") {
                connection.query_drop(statement).await?;
            }
            Ok::<_, Failure>(connection.disconnect().await?)
        };
        two_workers()?.block_on(fill)?;
        Ok(Self { server })
    }
}

/// A connection over TCP, as all systems have it.
async fn connect(url: &str) -> Result<Conn, Failure> {
    let options = mysql_async::Opts::from_url(url).map_err(mysql_async::Error::from)?;
    Ok(Conn::new(OptsBuilder::from_opts(options).prefer_socket(false)).await?)
}

impl Source for Server {
    type Pool = Pool;

    async fn pool(&self, connections: u32) -> Result<Pool, Failure> {
        let mut pool = Vec::new();
        for _ in 0..connections {
            let mut connection = connect(&self.server.url()).await?;
            let select = connection.prep(SELECT).await?;
            pool.push(Mutex::new((connection, select)));
        }
        Ok(Pool {
            connections: pool.into(),
        })
    }

    async fn loader(&self) -> Result<Forebay, Failure> {
        let mysql = MySql::connect(&self.server.url()).await;
        let mysql = mysql.map_err(|error| Failure::Wrong(error.to_string()))?;
        Ok(Forebay {
            loader: mysql.loader(SELECT),
        })
    }
}

/// Each caller always on the same connection.
#[derive(Clone)]
pub(super) struct Pool {
    connections: Arc<[Mutex<(Conn, Statement)>]>,
}

impl Ask for Pool {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        let caller = usize::try_from(item >> 32).expect("callers are counted in 32 bits");
        let (connection, select) = &mut *self.connections[caller % self.connections.len()].lock().await;
        let row: Option<i64> = connection
            .exec_first(&*select, (key(item),))
            .await
            .map_err(|error| error.to_string())?;
        told(item, row)
    }
}
