//! Why a get has no value from the source, told apart by what the caller should do.
//!
//! Promises: `E` need not be `Clone`, `Error` or even `Debug` for a cache to work; one failure is shared by all who waited for
//! the same flight, and is not cached.
//!
//! `Display` and `Error` are written out instead of derived: a derive would ask `E: Error` of every user and hide `E` behind `Arc<E>` as
//! the source.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

/// Why a get did not end with a value, or with the knowledge that there is none.
#[derive(Debug)]
#[derive_where(Clone)]
#[non_exhaustive]
pub enum CacheError<E> {
    /// The source's own error. The next get asks again.
    Source(Arc<E>),
    /// The fetch panicked; this is the panic's message. A bug in the source.
    Panicked(Arc<str>),
    /// The source's `fetch_many` returned a list of the wrong length, so that nobody can tell whose value is whose. A bug in
    /// the source.
    WrongCount {
        /// How many keys the source was asked for.
        expected: usize,
        /// How many outcomes it returned.
        returned: usize,
    },
    /// The fetch took longer than `CacheBuilder::fetch_timeout`, and was dropped. Try again later.
    TimedOut(Duration),
    /// This reader waited as long as it was willing to ([`Cache::get_within`](super::Cache::get_within)); the flight goes on.
    WaitedTooLong(Duration),
    /// As many flights as `CacheBuilder::max_flights` allows are in the air or in line. Try again later, or shed load.
    Overloaded,
    /// The get was made inside of a fetch that it would wait for, directly or over others: it would never end. A bug in the source, which is to
    /// ask for what its own answer does not depend on.
    Circle,
    /// No tokio runtime ran the fetch to its end: the runtime has shut down, or the get was polled outside of one and the cache
    /// has none of its own (`CacheBuilder::runtime`).
    Stopped,
}

impl<E> CacheError<E> {
    /// The source's own error, if it is that.
    pub fn source_error(&self) -> Option<&E> {
        match self {
            Self::Source(error) => Some(error),
            _ => None,
        }
    }

    /// The source's own error as it is, for who waited for it alone and has not cloned this: nothing is copied. Otherwise this again: it
    /// is another error, or others hold the same.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use forebay::cache::Cache;
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Down; // not Clone
    ///
    /// let cache = Cache::new(|_key: u32| async { Err::<Option<String>, Down>(Down) });
    /// let error = cache.get(&1).await.unwrap_err();
    /// assert_eq!(error.into_source_error().ok(), Some(Down));
    /// # }
    /// ```
    ///
    /// # Errors
    /// Itself, where the source's error cannot be had.
    pub fn into_source_error(self) -> Result<E, Self> {
        match self {
            Self::Source(error) => Arc::try_unwrap(error).map_err(Self::Source),
            other => Err(other),
        }
    }
}

impl<E: fmt::Display> fmt::Display for CacheError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(f, "the source failed: {error}"),
            Self::Panicked(message) => write!(f, "the fetch panicked: {message}"),
            Self::WrongCount { expected, returned } => write!(
                f,
                "the source returned {returned} outcomes for {expected} keys; a list must have one a key"
            ),
            Self::TimedOut(limit) => write!(f, "the fetch took longer than {} ms", limit.as_millis()),
            Self::WaitedTooLong(limit) => write!(f, "no value came within {} ms", limit.as_millis()),
            Self::Overloaded => f.write_str("too many flights are in the air or in line"),
            Self::Circle => {
                f.write_str("the fetch of the key waits for this get: they would wait for one another for ever")
            }
            Self::Stopped => {
                f.write_str("no tokio runtime ran the fetch to its end: it has shut down, or there was none")
            }
        }
    }
}

impl<E: Error + 'static> Error for CacheError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Source(error) => Some(&**error),
            _ => None,
        }
    }
}
