//! Why a load has no outcome from its source, told apart by what the caller should do.
//!
//! Promises: `E` need not be `Clone`, `Error` or even `Debug` for a loader to work; one failure of a fetch is shared by all
//! callers of that fetch, and by nobody else.
//!
//! `Display` and `Error` are written out instead of derived: a derive would ask `E: Error` of every user and hide `E` behind `Arc<E>` as
//! the source.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

/// Why a load did not end with a value, or with the knowledge that there is none.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use forebay::load::{LoadError, Loader};
///
/// let odd = Loader::new(async |keys: Vec<u32>| {
///     let each = keys.into_iter().map(|key| if key % 2 == 0 { Err("even") } else { Ok(Some(key)) });
///     Ok(each.collect::<Vec<_>>())
/// });
/// assert_eq!(odd.load(1).await.unwrap(), Some(1));
/// assert!(matches!(odd.load(2).await, Err(LoadError::Key(error)) if *error == "even")); // its own, and no neighbour's
/// # }
/// ```
#[derive(Debug)]
#[derive_where(Clone)]
#[non_exhaustive]
pub enum LoadError<E> {
    /// The source's answer for this key was an error; other keys of the same fetch have their own outcomes.
    Key(Arc<E>),
    /// The fetch failed as a whole. Every load of that fetch has this error; the next load asks again.
    Fetch(Arc<E>),
    /// The fetch panicked; this is the panic's message. A bug in the fetch.
    Panicked(Arc<str>),
    /// The fetch answered with a list of the wrong length, so that nobody can tell whose value is whose. A bug in the fetch.
    WrongCount {
        /// How many keys the fetch was given.
        expected: usize,
        /// How many outcomes it returned.
        returned: usize,
    },
    /// The fetch took longer than `LoaderBuilder::fetch_timeout`, and was dropped. Try again, later or with fewer keys.
    TimedOut(Duration),
    /// The loader was drained before this load entered. The key was not fetched.
    Closed,
    /// Fetches that load have begun one another a thousand deep: one of them, most likely, asks for what it is itself to
    /// answer. A bug in the fetch.
    TooDeep,
    /// No tokio runtime ran the fetch to its end: the runtime has shut down, or the load was polled outside of one and the
    /// loader has none of its own (`LoaderBuilder::runtime`).
    Stopped,
}

impl<E> LoadError<E> {
    /// The source's own error, whether of this key or of the whole fetch.
    pub fn source_error(&self) -> Option<&E> {
        match self {
            Self::Key(error) | Self::Fetch(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for LoadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(error) => write!(f, "the key could not be loaded: {error}"),
            Self::Fetch(error) => write!(f, "the fetch failed: {error}"),
            Self::Panicked(message) => write!(f, "the fetch panicked: {message}"),
            Self::WrongCount { expected, returned } => write!(
                f,
                "the fetch returned {returned} outcomes for {expected} keys; a list must have one a key"
            ),
            Self::TimedOut(limit) => write!(f, "the fetch took longer than {} ms", limit.as_millis()),
            Self::Closed => f.write_str("the loader is closed: the key was not fetched"),
            Self::TooDeep => {
                f.write_str("the fetch was begun by a fetch, and so on, too deep; does one ask for its own key?")
            }
            Self::Stopped => {
                f.write_str("no tokio runtime ran the fetch to its end: it has shut down, or there was none")
            }
        }
    }
}

impl<E: Error + 'static> Error for LoadError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Key(error) | Self::Fetch(error) => Some(&**error),
            _ => None,
        }
    }
}
