//! A future that runs in a database, as the traits that every database implements return it. Knows nothing of what runs.

use std::future::Future;
use std::pin::Pin;

/// Something that runs in a database and ends with a `T`.
pub type Running<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
