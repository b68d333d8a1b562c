//! A link to a server, real or scripted: what is asked, and what comes back.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod faults;
mod pipelines;
mod scripted;

use std::sync::OnceLock;

use forebay_mysql_link::{BinaryRow, Column, Config, Link, LinkError, Packet, TextRow, connect};
use testbed::{ForTests, MariaDb};

fn server_url() -> String {
    static SERVER: OnceLock<ForTests<MariaDb>> = OnceLock::new();
    SERVER
        .get_or_init(|| MariaDb::for_tests().expect("MariaDB starts"))
        .url()
}

async fn link() -> Link {
    link_to(&server_url()).await
}

async fn link_to(url: &str) -> Link {
    connect(&url.parse::<Config>().unwrap()).await.unwrap()
}

fn shown(values: Vec<Option<&[u8]>>) -> String {
    let values: Vec<String> = values
        .into_iter()
        .map(|value| value.map_or("NULL".to_owned(), |value| String::from_utf8_lossy(value).into_owned()))
        .collect();
    values.join(",")
}

/// What came up to the end of one answer: a letter a packet, values of rows in text, codes of errors.
async fn answer(link: &mut Link) -> Result<String, LinkError> {
    let (mut told, mut count) = (String::new(), 0);
    loop {
        match link.next().await? {
            Packet::Columns { count: columns, .. } => {
                count = columns;
                told.push('T');
            }
            Packet::Prepared(prepared) => told.push_str(&format!("S({},{})", prepared.parameters, prepared.columns)),
            Packet::Parameter(_) | Packet::Column(_) | Packet::DescriptionEnd => {}
            Packet::Row(bytes) => {
                let values: Result<Vec<_>, _> = TextRow::new(bytes, count).collect();
                told.push_str(&format!("D({})", shown(values?)));
            }
            Packet::DiscardedRow(length) => told.push_str(&format!("D...({length})")),
            Packet::RowsEnd(_) => told.push('E'),
            Packet::Ok(ok) => told.push_str(&format!("O({})", ok.affected_rows)),
            Packet::Error(error) => told.push_str(&format!("X({})", error.code)),
        }
        if !link.is_in_answer() {
            return Ok(told);
        }
    }
}

async fn query(link: &mut Link, sql: &str) -> String {
    link.outbox().query(sql).unwrap();
    answer(link).await.unwrap()
}

/// Prepares a statement: what it is called, and its columns.
async fn prepare(link: &mut Link, sql: &str) -> (u32, Vec<Column>) {
    link.outbox().prepare(sql).unwrap();
    let (mut id, mut columns) = (0, Vec::new());
    loop {
        match link.next().await.unwrap() {
            Packet::Prepared(prepared) => id = prepared.id,
            Packet::Column(definition) => columns.push(definition.read().unwrap()),
            Packet::Error(error) => panic!("{sql}: {error}"),
            _ => {}
        }
        if !link.is_in_answer() {
            return (id, columns);
        }
    }
}

/// The rows of what was executed, and whether its columns were described anew.
async fn rows(link: &mut Link, columns: &mut Vec<Column>) -> (String, bool) {
    let (mut told, mut was_described) = (String::new(), false);
    loop {
        match link.next().await.unwrap() {
            Packet::Columns {
                are_described: true, ..
            } => {
                was_described = true;
                columns.clear();
            }
            Packet::Column(definition) => columns.push(definition.read().unwrap()),
            Packet::Row(bytes) => {
                let values: Vec<_> = BinaryRow::new(bytes, columns).unwrap().map(Result::unwrap).collect();
                told.push_str(&format!("D({})", shown(values)));
            }
            Packet::Error(error) => told.push_str(&format!("X({})", error.code)),
            _ => {}
        }
        if !link.is_in_answer() {
            return (told, was_described);
        }
    }
}
