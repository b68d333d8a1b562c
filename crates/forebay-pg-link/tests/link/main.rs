//! A link to a real server: what is asked, and what comes back.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod faults;
mod pipelines;

use std::sync::OnceLock;

use forebay_pg_link::{Config, Link, LinkError, ServerError, Tag, connect};
use testbed::{ForTests, Postgres};

fn server_url() -> String {
    static SERVER: OnceLock<ForTests<Postgres>> = OnceLock::new();
    SERVER
        .get_or_init(|| Postgres::for_tests().expect("PostgreSQL starts"))
        .url()
}

async fn link() -> Link {
    link_to(&server_url()).await
}

async fn link_to(url: &str) -> Link {
    connect(&url.parse::<Config>().unwrap()).await.unwrap()
}

/// What came up to the next ReadyForQuery: a letter a message, values of rows, codes of errors.
async fn answers(link: &mut Link) -> Result<String, LinkError> {
    let mut told = String::new();
    loop {
        let message = link.answer().await?;
        match message.tag() {
            Tag::DATA_ROW if message.is_discarded() => told.push_str("D..."),
            Tag::DATA_ROW => {
                let values: Vec<String> = message
                    .row()?
                    .map(|value| value.map_or("NULL".to_owned(), |value| String::from_utf8_lossy(value).into_owned()))
                    .collect();
                told.push_str(&format!("D({})", values.join(",")));
            }
            Tag::ERROR_RESPONSE => told.push_str(&format!("E({})", ServerError::read(&message)?.code)),
            Tag::COMMAND_COMPLETE => told.push_str(&format!("C({})", message.command_tag()?)),
            Tag::READY_FOR_QUERY => {
                told.push_str(&format!("Z{}", char::from(message.body()[0])));
                return Ok(told);
            }
            tag => told.push(char::from(tag.0)),
        }
    }
}

async fn query(link: &mut Link, sql: &str) -> String {
    link.outbox().query(sql).unwrap();
    answers(link).await.unwrap()
}
