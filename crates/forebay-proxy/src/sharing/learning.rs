//! Learning: what a statement may set off is asked of the catalog, by whoever has asked it, on the connection that it has, once it is answered.
//!
//! Promises: nobody is lent a connection for that, and none is made. Where the asking is refused or ends before its time, nothing is known.

use bytes::{Buf, Bytes};
use forebay_sql::Effect;

use super::company::Company;
use super::facts::{self, Terms};
use super::plan::Plan;
use super::trip::{Lost, fill};
use crate::frames;
use crate::server::{Note, Server};

/// Asks what is to be known of a statement, on a connection that is set as its company is.
pub(crate) async fn learn(company: &Company, plan: &Plan, server: &mut Server) -> Result<(), Lost> {
    let Ok(touches) = &plan.touches else { return Ok(()) };
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
    let rows = ask_texts(server, &facts::ask(touches, table)).await?;
    plan.learn(rows.map(|rows| facts::found(touches, &rows)));
    Ok(())
}

/// Asks a query of ours; its rows of two texts, or none if it was refused or has other rows.
async fn ask_texts(server: &mut Server, sql: &str) -> Result<Option<Vec<(String, String)>>, Lost> {
    let rows = ask(server, sql).await?;
    Ok(rows.and_then(|rows| rows.iter().map(|row| facts::row(row)).collect()))
}

/// Asks a query of ours; its rows, or none if it was refused.
pub(crate) async fn ask(server: &mut Server, sql: &str) -> Result<Option<Vec<Bytes>>, Lost> {
    server.ask(sql, Note::Set);
    let mut rows = Some(Vec::new());
    let mut undone = Vec::new();
    loop {
        fill(server).await?;
        let mut at = 0;
        let mut is_over = false;
        while !is_over {
            let bytes = &server.input[at..];
            let Some(frame) = frames::frame(bytes).map_err(|_| Lost)? else {
                break;
            };
            if bytes.len() < frame.length {
                break;
            }
            if !matches!(frame.tag, b'S' | b'A') {
                server.replies.receive(frame.tag, &mut undone).map_err(|_| Lost)?;
            }
            let length = frame.length;
            match frame.tag {
                b'D' => {
                    if let Some(rows) = &mut rows {
                        rows.push(Bytes::copy_from_slice(&bytes[..length]));
                    }
                }
                b'E' => rows = None,
                b'S' => {
                    server.input.advance(at);
                    at = 0;
                    server.report(length);
                }
                b'Z' => {
                    server.status = bytes[frames::HEADER_BYTES];
                    is_over = true;
                }
                _ => {}
            }
            at += length;
        }
        server.input.advance(at);
        if is_over {
            return if server.is_settled() { Ok(rows) } else { Err(Lost) };
        }
    }
}
