//! What a statement's text says: its verb, its role in a transaction, what it leaves in its session; and its shape, as a real SQL
//! parser shows it.
//!
//! Promises: verb and role are told by tokens, never by those of a comment or a quoted name. A shape was read off a syntax tree; where
//! the parser does not understand a text, or sees more than is asked for, the answer is "not shown", never a guess. Knows dialects' grammar; knows no connection, table or value.

mod bound;
mod commit;
mod control;
mod dialect;
mod form;
mod hints;
mod insert;
mod keyed;
mod lateral;
mod leftover;
mod lexer;
mod listed;
mod making;
mod moment;
mod normal;
mod opening;
mod plain;
mod point;
mod reading;
mod restricted;
mod role;
mod row;
mod session;
mod settings;
mod syntax;
mod touches;
mod verb;

pub use bound::{asks_of_before, has_parameters, locks_what_it_reads, reads, uses_its_session};
pub use commit::{commits_before, may_commit_within};
pub use control::{begins_read_committed, only_controls};
pub use dialect::Dialect;
pub use form::{form, without_literals};
pub use hints::{Caller, Hints, hints, hints_and_caller};
pub use insert::{Cell, Insert, insert};
pub use keyed::{Keyed, keyed, keyed_many};
pub use lateral::{Lateral, Parameter, lateral};
pub use leftover::{
    body_may_leave_something, definition_may_leave_something, ends_by_resetting_all, is_unclosed, leaving_by_name,
    may_leave_something, mentioned, settings_named, settings_named_in_body, settings_named_in_what_it_makes,
};
pub use listed::{Listed, listed};
pub use making::{may_change_tables, may_make_tables};
pub use moment::{mentions_a_moment, names_a_moment};
pub use normal::{normal, without_comments};
pub use point::{Compared, Literal, Point, With, literals, point};
pub use reading::{is_read_by_settings, may_ask_for_settings, may_set_folding, may_set_reading, plans_nothing};
pub use restricted::{Restricted, Restriction, To, restricted};
pub use role::{Role, role};
pub use row::{Row, row, rows};
pub use session::{belongs_to_a_transaction, changes_session, deallocates, describes_nothing, executes};
pub use settings::{FOLDING, READING};
pub use touches::{Change, ChangeKind, Effect, NotShown, Touches, called, calls_in_a_schema, clip, names, touches};
pub use verb::{Verb, verb};
