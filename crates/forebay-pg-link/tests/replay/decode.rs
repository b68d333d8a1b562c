//! Decode: all that a message says, in a line of text.
//!
//! Promises: every part that can be read is read, also of a message that says nothing meaningful; one that is read was read to its
//! last byte, or this panics.

use forebay_pg_link::{HEADER_BYTES, Message, ServerError, Tag};

/// Longer values are told by their length and their sum.
const SHOWN_BYTES_MAX: usize = 80;

/// What it says; `malformed` where it is no message of its tag.
pub(crate) fn told(message: &Message<'_>) -> String {
    let tag = message.tag();
    if message.is_discarded() {
        return format!("{tag} discarded, {} bytes", message.length());
    }
    let read = match tag {
        Tag::DATA_ROW => message.row().map(|row| {
            let values: Vec<Option<&[u8]>> = row.collect();
            let lengths = values.iter().map(|value| 4 + value.map_or(0, <[u8]>::len));
            check_length(message, 2 + lengths.sum::<usize>());
            let shown = values.into_iter().map(|value| value.map_or("NULL".to_owned(), shown));
            shown.collect::<Vec<_>>().join(", ")
        }),
        Tag::ROW_DESCRIPTION => message.columns().map(|columns| {
            let lengths = columns.iter().map(|column| column.name.len() + 1 + 18);
            check_length(message, 2 + lengths.sum::<usize>());
            format!("{columns:?}")
        }),
        Tag::PARAMETER_DESCRIPTION => message.parameter_types().map(|types| {
            check_length(message, 2 + 4 * types.len());
            format!("{types:?}")
        }),
        Tag::COMMAND_COMPLETE => message.command_tag().and_then(|tag| {
            check_length(message, tag.len() + 1);
            Ok(format!("{tag}: {}", message.command_count()?))
        }),
        Tag::PARAMETER_STATUS => message.parameter_status().map(|(name, value)| {
            check_length(message, name.len() + value.len() + 2);
            format!("{name}={}", value.escape_ascii())
        }),
        Tag::ERROR_RESPONSE | Tag::NOTICE_RESPONSE => ServerError::read(message).map(|error| format!("{error:?}")),
        _ => Ok(shown(message.body())),
    };
    format!("{tag} {}", read.unwrap_or_else(|_| "malformed".to_owned()))
}

fn check_length(message: &Message<'_>, body_bytes: usize) {
    let length = HEADER_BYTES + body_bytes;
    assert_eq!(length, message.length(), "some of it was not read");
}

fn shown(value: &[u8]) -> String {
    if value.len() <= SHOWN_BYTES_MAX {
        return format!("\"{}\"", value.escape_ascii());
    }
    let sum = value
        .iter()
        .fold(0_u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} bytes, {sum:08x}", value.len())
}
