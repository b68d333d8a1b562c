//! One write as it is handed over: text, parameters, and the limits its caller sets.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::{CancelToken, IntoParameters, Outcome, Parameters, WriteError};

/// The text of one statement. Made from a `&'static str`, a `String`, a `&String` or an `Arc<str>`; the first and the last cost no
/// allocation a call. Of a `&str` that does not live for ever, give `text.to_owned()`.
///
/// ```
/// use std::sync::Arc;
///
/// use forebay::write::Sql;
///
/// let text = format!("SELECT * FROM {}", "users");
/// let made: Sql = (&text).into();
/// let shared: Sql = Arc::<str>::from("SELECT * FROM users").into();
/// assert_eq!(made, shared);
/// assert!(made.starts_with("SELECT"));
/// ```
#[derive(Debug, Clone, Eq)]
pub enum Sql {
    /// A literal in the program.
    Static(&'static str),
    /// Text made at run time, shared.
    Shared(Arc<str>),
}

impl Deref for Sql {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Sql {
    fn eq(&self, other: &Self) -> bool {
        let (one, two): (&str, &str) = (self, other);
        std::ptr::eq(one, two) || one == two
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl From<&String> for Sql {
    fn from(text: &String) -> Self {
        Self::Shared(text.as_str().into())
    }
}

impl From<Arc<str>> for Sql {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

/// One statement to write, with its parameters and its caller's limits.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use std::time::Duration;
///
/// use forebay::sqlite::Sqlite;
/// use forebay::write::{Write, Writer};
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE hits (page TEXT)", ()).await?;
/// let page = "/";
/// let write = Write::new("INSERT INTO hits VALUES (?1)", page)
///     .ordered_by(page) // behind what came before for this page
///     .max_wait(Duration::from_millis(5)); // for company
/// assert_eq!(writer.submit(write).await?.rows_affected, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Write {
    sql: Sql,
    parameters: Parameters,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    acceptance: Option<Acceptance>,
    /// The version of the schema that it is for.
    schema: Option<i64>,
    /// The hash of the key that it is ordered by.
    order: Option<u64>,
}

/// Whether the caller takes an outcome; if not, why.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::{Write, WriteError, Writer};
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE seats (number INTEGER, taken INTEGER)", ()).await?;
/// let take = Write::new("UPDATE seats SET taken = 1 WHERE number = ?1", 7).accept_if(|outcome| {
///     if outcome.rows_affected == 1 { Ok(()) } else { Err("there is no such seat".to_owned()) }
/// });
/// let refused = writer.submit(take).await.unwrap_err();
/// assert!(matches!(refused, WriteError::Refused { reason } if reason == "there is no such seat"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Acceptance(Arc<Accept>);

/// Looks at an outcome before it is committed; the text says why it is not taken.
type Accept = dyn Fn(&Outcome) -> Result<(), String> + Send + Sync;

impl Acceptance {
    /// What the caller says of this outcome, which is not committed yet.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: what was done is to be undone.
    pub fn of(&self, outcome: &Outcome) -> Result<(), WriteError> {
        (self.0)(outcome).map_err(|reason| WriteError::Refused { reason })
    }
}

/// The same in every process and for every writer: nothing depends on it but which writes wait for one another.
fn order_of(key: &(impl Hash + ?Sized)) -> u64 {
    foldhash::fast::FixedState::default().hash_one(key)
}

impl fmt::Debug for Acceptance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Acceptance")
    }
}

impl Write {
    /// A statement and its parameters: `?1`, `$1` is the first of them, whatever the order they stand in the text.
    pub fn new(sql: impl Into<Sql>, parameters: impl IntoParameters) -> Self {
        Self {
            sql: sql.into(),
            parameters: parameters.into_parameters(),
            max_wait: None,
            cancel: None,
            acceptance: None,
            schema: None,
            order: None,
        }
    }

    /// Is for this version of SQLite's schema only: under any other it is not executed, and its outcome is
    /// [`WriteError::SchemaChanged`]. Writers of other databases take no notice.
    #[must_use]
    pub fn under_schema(mut self, version: i64) -> Self {
        self.schema = Some(version);
        self
    }

    /// Its own window: the longest it may wait for others to share its commit. Zero: at once.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    /// Can be cancelled, or has a deadline.
    #[must_use]
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Keeps its place among the writes of the same key: they are committed in the order of their arrival, also where several
    /// batches are in flight. Equal keys are those that hash alike; a few different ones do too, which only costs speed.
    ///
    /// Without a key, order is kept among writes of the same text, unless it is a plain INSERT of one row: those are in nobody's
    /// order, as on connections of a pool. Where one batch is in flight at a time, as with SQLite, all writes are in order.
    #[must_use]
    pub fn ordered_by(mut self, key: impl Hash) -> Self {
        self.order = Some(order_of(&key));
        self
    }

    /// Its text.
    pub fn sql(&self) -> &Sql {
        &self.sql
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Whether it has a key that it is [ordered by](Self::ordered_by).
    pub fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// What its caller takes for an outcome, if not anything.
    pub fn acceptance(&self) -> Option<&Acceptance> {
        self.acceptance.as_ref()
    }

    /// The version of the schema that it is [for](Self::under_schema), if not for any.
    pub fn schema(&self) -> Option<i64> {
        self.schema
    }

    /// The token that cancels it, if it has one.
    pub fn cancel_token(&self) -> Option<&CancelToken> {
        self.cancel.as_ref()
    }

    /// As [`CancelToken::claim`] of its token, if it has one.
    ///
    /// # Errors
    /// [`WriteError::Cancelled`], [`WriteError::TimedOut`].
    pub fn claim(&self) -> Result<(), WriteError> {
        self.cancel.as_ref().map_or(Ok(()), CancelToken::claim)
    }

    /// What it is ordered by.
    pub(crate) fn order(&self) -> u64 {
        self.order.unwrap_or_else(|| order_of(&*self.sql))
    }

    /// Asks `accept` before the commit. An outcome that it does not take is undone, and its reason is the caller's
    /// [`WriteError::Refused`]. It runs on the database's thread, so it must be quick and must not panic.
    #[must_use]
    pub fn accept_if(mut self, accept: impl Fn(&Outcome) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.acceptance = Some(Acceptance(Arc::new(accept)));
        self
    }

    /// Bytes that this write holds while it waits; what `max_weight` counts.
    pub(crate) fn weight(&self) -> usize {
        let text = match &self.sql {
            Sql::Static(_) => 0,
            Sql::Shared(text) => text.len(),
        };
        size_of::<Self>()
            + text
            + self
                .parameters
                .values()
                .iter()
                .map(|value| size_of_val(value) + value.heap_bytes())
                .sum::<usize>()
    }
}
