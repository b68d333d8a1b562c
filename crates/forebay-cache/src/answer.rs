//! What a lookup answers, and what an entry says. Does not know how they were found.

use std::time::Duration;

/// A value, or that there is none, and how the cache came by it.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, State};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::new(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) });
/// squares.get(&12).await?;
/// let answer = squares.lookup(&12).await?;
/// assert_eq!((answer.value, answer.state), (Some(144), State::Fresh));
/// assert!(answer.age < Duration::from_secs(60)); // the header `Age`, for example
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<V> {
    /// The value; `None`: the source has none.
    pub value: Option<V>,
    /// How the cache came by it.
    pub state: State,
    /// How long ago the fetch that brought it began. To the resolution of the clock, some milliseconds.
    pub age: Duration,
}

/// What an entry says of its key.
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::{Cache, Entry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::new(|n: u64| async move { Ok::<_, Infallible>((n < 100).then_some(n * n)) });
/// assert_eq!(squares.get_if_fresh(&404), None); // Memory knows nothing of it.
/// squares.get(&12).await?;
/// squares.get(&404).await?;
/// assert_eq!(squares.get_if_fresh(&12), Some(Entry::Present(144)));
/// assert_eq!(squares.get_if_fresh(&404), Some(Entry::Missing)); // It knows that there is none.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<V> {
    /// The key has this value.
    Present(V),
    /// The source has no value for the key.
    Missing,
}

impl<V> Entry<V> {
    /// The value, if there is one.
    pub fn into_value(self) -> Option<V> {
        match self {
            Self::Present(value) => Some(value),
            Self::Missing => None,
        }
    }
}

/// From what a source answers.
impl<V> From<Option<V>> for Entry<V> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Missing, Self::Present)
    }
}

/// How a cache came by an answer.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, State};
///
/// /// The header `X-Cache`.
/// fn header(state: State) -> &'static str {
///     match state {
///         State::Fresh => "HIT",
///         State::Stale => "HIT; refreshing",
///         State::Rescued => "STALE; the source fails",
///         _ => "MISS",
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///     .stale_for(Duration::from_secs(3600))
///     .build();
/// assert_eq!(header(squares.lookup(&12).await?.state), "MISS");
/// assert_eq!(header(squares.lookup(&12).await?.state), "HIT");
/// squares.mark_stale(&12).await;
/// assert_eq!(header(squares.lookup(&12).await?.state), "HIT; refreshing");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It was there, and fresh.
    Fresh,
    /// It was there, and stale: a refresh runs in the background, or will after its back-off.
    Stale,
    /// It was brought for this lookup, by the source or a tier, or for another that this one joined. One that a tier had kept,
    /// or a source that is itself a cache, has an age; [`Stats::flights_by_tier`](super::Stats::flights_by_tier) counts the former.
    Fetched,
    /// It was there and had expired, and the source failed, or took longer than the soft timeout.
    Rescued,
}
