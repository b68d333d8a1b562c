//! Writer: many callers write at once, one commit, each caller its own true outcome.
mod value;
pub use value::{Parameters, Value};
