//! What runs in a database, for traits that every database implements. Knows nothing of what it is.

use std::future::Future;
use std::pin::Pin;

/// Something that runs in a database and ends with a `T`.
pub type Running<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
