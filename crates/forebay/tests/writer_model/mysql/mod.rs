//! The model on MariaDB.

mod grammar;
mod twin;

use std::time::Duration;

use forebay::mysql::MySql;
use forebay::write::Writer;
use futures_util::future::join_all;
use testbed::{MariaDb, Shared};

use self::twin::Twin;
use crate::case::{Case, cases};
use crate::judge::Judge;
use crate::search::{in_time, search};

/// Durability is shown elsewhere; here it would only cost time.
static SERVER: Shared<MariaDb> = Shared::new(|| {
    let settings = [
        ("innodb-flush-log-at-trx-commit", "0"),
        ("innodb-doublewrite", "0"),
        ("innodb-flush-method", "nosync"),
        // Else what is known of a table by chance decides by which index an UPDATE goes, and so in which order a trigger sees its rows.
        ("innodb-stats-auto-recalc", "OFF"),
    ];
    let builder = settings.iter().fold(MariaDb::builder(), |builder, (name, value)| {
        builder.setting(name, value)
    });
    builder.start()
});

#[test]
fn every_outcome_and_every_table_is_as_if_each_had_been_alone() {
    let server = SERVER.server().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let cases = cases(grammar::schemas(), grammar::TEMPLATES);
    let mut number = 0;
    search("MariaDB", &cases, &mut |case| {
        number += 1;
        runtime.block_on(in_time(compare(&server.url(), number, case)))
    });
}

async fn compare(server: &str, number: usize, case: &Case) -> Result<(), String> {
    let mut here = Twin::make(server, &format!("here_{number}"), &case.schema).await;
    let mut alone = Twin::make(server, &format!("alone_{number}"), &case.schema).await;
    let compared = async {
        let mysql = MySql::connect(&here.url).await.unwrap();
        // Full batches go at once, the last by the drain.
        let writer = Writer::builder()
            .max_items(case.max_items)
            .max_in_flight(1)
            .max_wait(Duration::from_secs(600))
            .build(mysql.clone());
        let calls = join_all(case.steps.iter().map(|step| writer.submit(step.write())));
        let (mut told, ()) = tokio::join!(calls, writer.drain());
        mysql.close().await;
        let mut judge = Judge::default();
        for (position, (step, told)) in case.steps.iter().zip(&mut told).enumerate() {
            let alone = alone.execute(step).await;
            here.without_its_name(told);
            judge
                .told(&step.sql, told, &alone)
                .map_err(|reason| format!("statement {position}, {step:?}: {reason}"))?;
        }
        for (name, order) in grammar::TABLES {
            let (here, alone) = (here.table(name, order).await, alone.table(name, order).await);
            judge
                .tables(&here, &alone)
                .map_err(|reason| format!("table {name}: {reason}"))?;
        }
        judge.order()
    };
    let compared = compared.await;
    here.remove().await;
    alone.remove().await;
    compared
}
