//! Errors of tiers. A reader of the cache never sees one; whoever writes a tier or opens one does.

use std::time::Duration;

/// What the system, a driver or a server said.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a tier did not do what it was asked. The cache counts it, skips the tier, and tries again what it must.
///
/// ```
/// use std::io;
/// use forebay::cache::tier::TierError;
///
/// // What a tier of one's own answers when its backend fails.
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// let error = TierError::failed("ask the shelf", refused);
/// assert_eq!(error.to_string(), "could not ask the shelf: connection refused");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TierError {
    /// The backend was not reached, or did not do it. Look at the cause; the cache tries again by itself.
    #[error("could not {what}: {cause}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the backend or its driver said.
        cause: Cause,
    },
    /// It took longer than the settings' timeout. When this is the rule, the backend is overloaded or the timeout too short.
    #[error("no answer within {} ms", after.as_millis())]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// More calls wait for the backend than it takes. Fewer at a time, or a faster backend.
    #[error("too many calls wait for this tier")]
    Overloaded,
    /// The tier was closed; nothing more is taken.
    #[error("the tier is closed")]
    Closed,
    /// The tier answered for more or fewer keys than it was asked for: a defect of that tier.
    #[error("{answered} answers for {asked} keys")]
    Miscounted {
        /// Keys it was asked for.
        asked: usize,
        /// Answers it gave.
        answered: usize,
    },
    /// The tier's code, or the decoding of a value, panicked: a defect of that code.
    #[error("the tier panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
}

impl TierError {
    /// A failure of the backend; `what` completes "could not …".
    pub fn failed(what: &'static str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self::Failed { what, cause }
    }
}

/// Why a tier cannot be made as it was described.
///
/// ```
/// use forebay::cache::tier::{Form, KeyForm, OpenError, Postcard, sqlite::SqliteTier};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.cache");
/// let open = || SqliteTier::builder(&path, Form::<u64, u64>::new("squares", KeyForm::display(), Postcard)).open();
/// let _tier = open()?;
/// match open() {
///     Err(OpenError::InUse { path }) => println!("each process needs a file of its own: {path}"),
///     other => panic!("it is open already: {other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A name or address that cannot be used; the message says which and what would do. Mend it.
    #[error("{problem}")]
    Unusable {
        /// What is wrong with it.
        problem: String,
    },
    /// The file is another program's database. Name another path: nothing of it was touched.
    #[error("{path} is a database that is not a cache tier's; name another path")]
    Foreign {
        /// The file.
        path: String,
    },
    /// Another process, or another tier of this one, has the file open. Give each process a path of its own.
    #[error("{path} is in use; each process needs a tier file of its own")]
    InUse {
        /// The file.
        path: String,
    },
    /// The backend or the file system refused. Look at the cause.
    #[error("could not open {what}: {cause}")]
    Failed {
        /// What was to be opened.
        what: String,
        /// What the system said.
        cause: Cause,
    },
}
