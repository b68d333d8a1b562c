//! Of `uuid`: as text, with hyphens, which every database shows and PostgreSQL's and MariaDB's `uuid` take; taken also from 16 bytes.
//! Where a column holds the bytes, `*id.as_bytes()` is the parameter.

use uuid::Uuid;

use super::given;
use crate::Value;
use crate::from_value::taken;

given! {
    [] Uuid: id => Value::Text(id.to_string());
}

taken! {
    Uuid, "a UUID": Value::Text(text) => text.parse().ok(), Value::Blob(bytes) => Self::from_slice(bytes).ok();
}
