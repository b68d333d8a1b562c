//! Prepared: a statement that one connection's server knows.
//!
//! Promises: the server forgets it when the last clone is dropped here: its name is told to the connection, which closes it before
//! it prepares another. Knows no connection.

use std::sync::Arc;

use parking_lot::Mutex;
use postgres_types::Type;

/// A statement that the server knows. Clones are the same one.
#[derive(Clone)]
pub(super) struct Prepared {
    name: Arc<Name>,
    /// The types of its parameters.
    pub(super) parameters: Arc<[Type]>,
    /// The types of the columns that it returns.
    pub(super) columns: Arc<[Type]>,
    /// Their names.
    pub(super) column_names: Arc<[String]>,
}

/// The names of statements that nobody uses any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Unused(Arc<Mutex<Vec<String>>>);

struct Name {
    name: String,
    unused: Unused,
}

impl Drop for Name {
    fn drop(&mut self) {
        self.unused.0.lock().push(std::mem::take(&mut self.name));
    }
}

impl Unused {
    /// Takes them.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Prepared {
    pub(super) fn new(name: String, unused: &Unused, parameters: Vec<Type>, columns: Vec<(String, Type)>) -> Self {
        let (column_names, columns): (Vec<String>, Vec<Type>) = columns.into_iter().unzip();
        Self {
            name: Arc::new(Name {
                name,
                unused: unused.clone(),
            }),
            parameters: parameters.into(),
            columns: columns.into(),
            column_names: column_names.into(),
        }
    }

    /// What the server calls it.
    pub(super) fn name(&self) -> &str {
        &self.name.name
    }
}
