//! What a definition depends on: the columns behind each `*` of a view's query, the relations it reads, and the literals whose meaning
//! is the session's.
//!
//! Filled in while a definition is compiled; knows nothing of what is made of it.

use std::collections::HashMap;

use sqlparser::tokenizer::Location;

/// By line and column of each `*`: relation and name of the columns that it stands for.
pub(super) type Stars = HashMap<(u64, u64), Vec<(Option<String>, String)>>;

/// See the module.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) stars: Stars,
    pub(super) reads: Vec<Read>,
}

/// A relation that a query names.
pub(super) struct Read {
    pub(super) relation: String,
    /// Its columns: their names, and what they are in SQLite's text.
    pub(super) columns: Vec<(String, String)>,
}

/// A literal, and the text that means the same to everybody.
pub(super) struct Literal {
    pub(super) at: Location,
    pub(super) text: String,
    pub(super) of_zone: bool,
}
