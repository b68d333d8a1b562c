//! Learning: what a statement may set off is asked of the catalog, by whoever has asked it, on the connection that it has, once it is answered.
//!
//! Promises: nobody is lent a connection for that, and none is made. Where the asking is refused or ends before its time, nothing is known.

use std::hash::BuildHasher;

use bytes::Bytes;
use forebay_sql::Effect;

use super::company::Company;
use super::facts::{self, Found, Terms};
use super::followed::{Followed, LOOKS_MAX};
use super::plan::Plan;
use crate::asking::{Lost, ask, read, read_first};
use crate::frames::{self, HEADER_BYTES};
use crate::replies::Asked;
use crate::server::Server;
use crate::settings::AT_ONCE;
use crate::statements::{Statement, server_name};

/// Asks what is to be known of a statement, on a connection that is set as its company is. Whether the catalog says something else than it did, though
/// nobody has changed it through the proxy.
pub(crate) async fn learn(company: &Company, plan: &Plan, server: &mut Server) -> Result<bool, Lost> {
    let Ok(touches) = &plan.touches else { return Ok(false) };
    let terms = ask_texts(server, facts::ASK_SESSION).await?;
    // Where that was refused, or cancelled, what was known before still holds.
    if let Some(terms) = terms {
        company.learn(terms.first().map_or(Terms::NONE, Terms::of));
    }
    let table = match &touches.effect {
        Effect::Reads => None,
        Effect::Changes(change) => {
            let rows = ask_texts(server, &facts::ask_table(&change.table)).await?;
            rows.and_then(|rows| rows.first()?.1.parse().ok())
        }
    };
    let mut followed = Followed::of(touches, plan.depends_on());
    let mut looks = 0;
    let mut hash = 0;
    let found = loop {
        let rows = ask_texts(server, &facts::ask(&followed.touches, table, plan.restricted_to())).await?;
        looks += 1;
        match rows {
            Some(rows) if followed.take(&rows) => {
                if looks == LOOKS_MAX {
                    break Some(Found::Matter("views of views without an end".to_owned()));
                }
            }
            rows => {
                hash = rows.as_deref().map_or(0, hash_of);
                break rows.map(|rows| facts::found(&followed, &rows));
            }
        }
    };
    Ok(plan.learn(found, hash))
}

/// What tells rows from others, in whatever order they come; not 0.
fn hash_of(rows: &[(String, String)]) -> u64 {
    let state = foldhash::fast::FixedState::default();
    rows.iter().fold(1, |sum, row| state.hash_one(row).wrapping_add(sum)) | 1
}

/// Asks a query of ours; its rows of two texts, or none if it was refused or has other rows.
async fn ask_texts(server: &mut Server, sql: &str) -> Result<Option<Vec<(String, String)>>, Lost> {
    let rows = ask(server, &format!("{AT_ONCE}{sql}")).await?;
    Ok(rows.and_then(|rows| rows.iter().map(|row| facts::row(row)).collect()))
}

/// Reads the answer to a query of ours that others were sent behind: its row of two texts, or none if it was refused or has other rows.
pub(crate) async fn first_answer(server: &mut Server) -> Result<Option<(String, String)>, Lost> {
    let mut told = None;
    let is_done = read_first(server, |tag, message| {
        if tag == b'D' {
            told = facts::row(message);
        }
    });
    Ok(is_done.await?.then_some(told).flatten())
}

/// Has the server describe a statement: the types of its parameters, and the body of its RowDescription, which is empty where it tells no
/// rows. None where it was refused.
pub(crate) async fn describe(server: &mut Server, statement: &Statement) -> Result<Option<(Vec<u32>, Bytes)>, Lost> {
    let refused = server.prepare(statement);
    debug_assert!(refused.is_none(), "nothing is passed over between two trips");
    let name = server_name(statement.number());
    frames::put(&mut server.output, b'D', &[b"S", name.as_bytes(), &[0]]);
    frames::put(&mut server.output, b'S', &[]);
    for asked in [Asked::Describe, Asked::Sync] {
        let refused = server.replies.ask(asked, true, None);
        debug_assert!(refused.is_none(), "nothing is passed over between two trips");
    }
    let (mut parameters, mut columns) = (Vec::new(), Bytes::new());
    let mut is_typed = false;
    let is_done = read(server, |tag, message| {
        let body = &message[HEADER_BYTES..];
        match tag {
            b't' => {
                is_typed = statement.learn_types(body);
                let types = body.get(2..).unwrap_or_default().chunks_exact(4);
                parameters = types
                    .map(|number| u32::from_be_bytes(number.try_into().expect("four")))
                    .collect();
            }
            b'T' => columns = Bytes::copy_from_slice(body),
            _ => {}
        }
    });
    let is_done = is_done.await?;
    if is_typed {
        server.prepared.is_typed(statement.number());
    }
    Ok(is_done.then_some((parameters, columns)))
}
