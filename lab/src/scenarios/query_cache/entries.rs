//! What the proxy's memory takes beside what answers are long: of rows that are each asked for once, by their key.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::proxy::system::System;
use super::load::{connect, fill};
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Stage, Trial};

pub(super) const ENTRIES: &str = "rows by their key, each remembered";
pub(super) const BESIDE: &str = "memory an answer, beside its bytes";

/// What the proxy is told of the table.
pub(super) const RULES: &str = "admin_users = [\"postgres\"]\ncache_memory = \"1GiB\"\n\
                                [[rule]]\nname = \"all\"\ntable = \"ware_sold\"\nfresh = \"1h\"\n";

const COUNT: i64 = 100_000;
/// In a turn that only shows that it works.
const TINY_COUNT: i64 = 500;
const READ: &str = "SELECT id, price FROM ware_sold WHERE id = $1";
/// What an answer is long (BindComplete, a row of two bigints, `SELECT 1`), and what is bound: formats, one bigint, formats of two columns.
const BYTES: f64 = (5 + (7 + 2 * 12) + 14) as f64 + (2 + 2 + 2 + 4 + 8 + 2 + 2) as f64;
/// All are known in this time, or never.
const LEARNT_WITHIN: Duration = Duration::from_secs(60);

pub(super) struct EntriesTrial {
    pub(super) server: Rc<testbed::Postgres>,
    pub(super) program: PathBuf,
    /// The proxy's configuration.
    pub(super) config: PathBuf,
}

impl Trial for EntriesTrial {
    fn system(&self) -> &str {
        FOREBAY
    }

    fn case(&self) -> &str {
        ENTRIES
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        // Each time anew: what others have left in its memory would hide what these take.
        let running = System::forebay_told(FOREBAY, &self.program, &self.config)?;
        let wanted = if stage.effort.meaningful { COUNT } else { TINY_COUNT };
        let runtime = crate::closed_loop::two_workers()?;
        runtime.block_on(async {
            fill(&connect(&self.server.url()).await?, stage.effort.meaningful).await?;
            let (client, admin) = (connect(&running.url).await?, connect(&running.url).await?);
            let statement = client.prepare(READ).await?;
            let begun = Instant::now();
            // One that is asked for again and again until its statement is known.
            while answers(&admin).await? == 0 {
                if begun.elapsed() > LEARNT_WITHIN {
                    return Err(Failure::Wrong("nothing is remembered".to_owned()));
                }
                client.query_one(&statement, &[&1_i64]).await?;
            }
            let (there, before) = (answers(&admin).await?, running.resident_kib()?);
            for id in 2..=wanted {
                let told: i64 = client.query_one(&statement, &[&id]).await?.get(0);
                if told != id {
                    return Err(Failure::Wrong(format!("{id} was told {told}")));
                }
            }
            let (count, after) = (answers(&admin).await?, running.resident_kib()?);
            if count != wanted as u64 {
                return Err(Failure::Wrong(format!("{count} of {wanted} are remembered")));
            }
            let each = after.saturating_sub(before) as f64 * 1024.0 / (count - there) as f64;
            Ok(vec![Reading::new(BESIDE, "B", each - BYTES)])
        })
    }
}

/// How many answers the proxy has.
async fn answers(admin: &tokio_postgres::Client) -> Result<u64, Failure> {
    let shown = admin.simple_query("SHOW FOREBAY STATUS").await?;
    let count = shown.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) if row.get(0) == Some("cache_answers") => row.get(1)?.parse().ok(),
        _ => None,
    });
    count.ok_or_else(|| Failure::Wrong("the console tells no answers".to_owned()))
}
