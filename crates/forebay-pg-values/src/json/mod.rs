//! json and jsonb: text, documents, paths, and what PostgreSQL's functions make of them.
//!
//! Promises: a json keeps its text; a jsonb has one text a document, as PostgreSQL prints it. Functions of jsonpath are not here.

mod aggregate;
mod build;
mod functions;
pub mod jsonb;
mod number;
mod path;
mod rows;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use aggregate::AGGREGATES;
pub(crate) use functions::FUNCTIONS;
pub use rows::{array_elements, array_elements_text, each, each_text, object_keys};
pub use text::{DEPTH_MAX, Shape, elements, members, shape, validate};
pub(crate) use text::{quote, unquote};

/// Which of the two types a document is of; several functions differ in what they say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are PostgreSQL's own")]
pub enum Flavor {
    Json,
    Jsonb,
}
