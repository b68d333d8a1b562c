//! Lookup: a query that says what the database has of a user's password.
//!
//! Promises: what it said of a user is believed for as long as it was [told](Lookup::keeping) and no longer, nor beyond the password's `VALID
//! UNTIL`; where a proof fails by what was kept it is asked anew. Of who is nobody nothing is kept, and of others only so many. It runs on a connection of the proxy's own user,
//! with no setting of any client, and with `search_path = pg_catalog`, so that nobody's names stand before the catalog's. Who may not log in by
//! the database's own catalog (`VALID UNTIL` is past) has no password, whatever the query says.

use std::collections::HashMap;
use std::str;
use std::time::{Duration, Instant};

use forebay_pg_link::{ConnectError, Connector, IsNull, Link, LinkError, Message, ServerError, Tag};
use forebay_pg_wire::gate::Decoy;
use forebay_pg_wire::verifier::StoredPassword;
use tokio::sync::Mutex;

/// `text`, which the user's name is sent as.
const TEXT: u32 = 25;

/// Whether somebody may, of those whom the catalog knows, and for how many seconds, if that has an end: a name that it does not know is
/// nobody whom it forbids.
const MAY: &str = "SELECT CASE WHEN rolcanlogin THEN 'yes' ELSE 'no' END, \
CASE WHEN pg_catalog.isfinite(rolvaliduntil) THEN pg_catalog.date_part('epoch', rolvaliduntil - pg_catalog.now())::pg_catalog.text \
WHEN rolvaliduntil < pg_catalog.now() THEN '-1' END \
FROM pg_catalog.pg_roles WHERE rolname = $1";

/// Of so many users it is kept what was said.
const KEPT_MAX: usize = 10_000;

/// Why nothing is known of a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("{0}")]
    Server(Box<ServerError>),
    #[error("auth_query gives {0}, where it is to give a name and what is stored of the password")]
    Shape(&'static str),
}

/// A query, and a connection to ask it on.
#[derive(Debug)]
pub(crate) struct Lookup {
    query: String,
    connector: Connector,
    /// Clients log in to the database as themselves.
    is_theirs: bool,
    link: Mutex<Option<Link>>,
    /// For names that are nobody's.
    decoy: Decoy,
    keeps_for: Duration,
    /// What was said of users.
    kept: parking_lot::Mutex<HashMap<String, Kept, foldhash::fast::RandomState>>,
}

/// What was said of a user.
#[derive(Debug)]
struct Kept {
    stored: StoredPassword,
    until: Instant,
    /// It was given to somebody who did not ask.
    was_given: bool,
}

/// What is said of a user, and for how long it may be so.
struct Said {
    stored: Option<StoredPassword>,
    holds_for: Duration,
}

impl Lookup {
    /// `secret` makes answers to names that are nobody's, the same after a restart.
    pub(crate) fn new(query: &str, connector: &Connector, is_theirs: bool, secret: &[u8]) -> Self {
        let settings = [("search_path".to_owned(), "pg_catalog".to_owned())];
        Self {
            query: query.to_owned(),
            connector: connector.beginning(&settings, None),
            is_theirs,
            link: Mutex::default(),
            decoy: Decoy::of(secret),
            keeps_for: Duration::ZERO,
            kept: parking_lot::Mutex::default(),
        }
    }

    /// The same, which believes for so long what was said.
    pub(crate) fn keeping(self, keeps_for: Duration) -> Self {
        Self { keeps_for, ..self }
    }

    /// What is stored of the user's password, or what nobody can prove.
    ///
    /// # Cancel safety
    /// Dropped, the next who asks connects anew.
    pub(crate) async fn of(&self, user: &str) -> Result<StoredPassword, LookupError> {
        if let Some(stored) = self.kept(user) {
            return Ok(stored);
        }
        let mut link = self.link.lock().await;
        // Somebody else may have asked meanwhile.
        if let Some(stored) = self.kept(user) {
            return Ok(stored);
        }
        let said = self.asked(&mut link, user).await?;
        Ok(said.unwrap_or_else(|| self.decoy.for_user(user)))
    }

    /// A proof has failed: what is stored by now, or none where that was not said from memory.
    ///
    /// # Cancel safety
    /// As [`of`](Self::of).
    pub(crate) async fn again(&self, user: &str) -> Result<Option<StoredPassword>, LookupError> {
        {
            let mut kept = self.kept.lock();
            if !kept.get(user).is_some_and(|kept| kept.was_given) {
                return Ok(None);
            }
            kept.remove(user);
        }
        let mut link = self.link.lock().await;
        self.asked(&mut link, user).await
    }

    fn kept(&self, user: &str) -> Option<StoredPassword> {
        let mut kept = self.kept.lock();
        let kept = kept.get_mut(user).filter(|kept| Instant::now() < kept.until)?;
        kept.was_given = true;
        Some(kept.stored.clone())
    }

    /// Asks, and keeps what is said.
    async fn asked(&self, link: &mut Option<Link>, user: &str) -> Result<Option<StoredPassword>, LookupError> {
        let Said { stored, holds_for } = self.said(link, user).await?;
        let keeps_for = self.keeps_for.min(holds_for);
        if let Some(stored) = stored.as_ref().filter(|_| !keeps_for.is_zero()) {
            let mut kept = self.kept.lock();
            let now = Instant::now();
            if kept.len() >= KEPT_MAX {
                kept.retain(|_, kept| now < kept.until);
            }
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            let fresh = Kept {
                stored: stored.clone(),
                until: now + keeps_for,
                was_given: false,
            };
            kept.insert(user.to_owned(), fresh);
        }
        Ok(stored)
    }

    async fn said(&self, kept: &mut Option<Link>, user: &str) -> Result<Said, LookupError> {
        if let Some(mut link) = kept.take() {
            match self.ask(&mut link, user).await {
                // It was closed while nobody asked.
                Err(LookupError::Link(LinkError::Lost(_))) => {}
                asked => {
                    *kept = Some(link).filter(Link::is_idle);
                    return asked;
                }
            }
        }
        let mut link = self.connector.connect().await?;
        let asked = self.ask(&mut link, user).await;
        *kept = Some(link).filter(Link::is_idle);
        asked
    }

    async fn ask(&self, link: &mut Link, user: &str) -> Result<Said, LookupError> {
        let stored = rows(link, &self.query, user, |row, stored: &mut Option<StoredPassword>| {
            let row = row.row().map_err(LinkError::from)?;
            let columns: Vec<_> = row.collect();
            let [name, password] = columns[..] else {
                return Err(LookupError::Shape("another number of columns"));
            };
            if stored.is_some() {
                return Err(LookupError::Shape("more than one row"));
            }
            if name != Some(user.as_bytes()) {
                return Err(LookupError::Shape("another name than the one that it was asked for"));
            }
            if let Some(password) = password {
                let text = str::from_utf8(password).ok();
                let known = text.and_then(|text| text.parse().ok());
                *stored = Some(known.ok_or(LookupError::Shape("what is no password that PostgreSQL stores"))?);
            }
            Ok(())
        })
        .await?;
        let may = rows(link, MAY, user, |row, may: &mut Option<(bool, Option<Duration>)>| {
            let row = row.row().map_err(LinkError::from)?;
            let columns: Vec<_> = row.collect();
            let [Some(can_log_in), seconds] = columns[..] else {
                return Err(LookupError::Shape("a catalog of another shape"));
            };
            let seconds = seconds.and_then(|text| str::from_utf8(text).ok()?.parse::<f64>().ok());
            // What is over is over; what no clock can count to has no end.
            let left = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
            *may = Some((can_log_in == b"yes", left));
            Ok(())
        })
        .await?;
        let (can_log_in, left) = may.unwrap_or((true, None));
        let may = (can_log_in || !self.is_theirs) && left.is_none_or(|left| !left.is_zero());
        Ok(Said {
            stored: stored.filter(|_| may),
            holds_for: left.unwrap_or(Duration::MAX),
        })
    }
}

/// Asks of a user and gathers what the rows say. All is read, also where something fails.
async fn rows<T: Default>(
    link: &mut Link,
    query: &str,
    user: &str,
    mut gather: impl FnMut(&Message<'_>, &mut T) -> Result<(), LookupError>,
) -> Result<T, LookupError> {
    let outbox = link.outbox();
    let sent = outbox.parse("", query, &[TEXT]).and_then(|()| {
        let encode = |user: &str, bytes: &mut bytes::BytesMut| {
            bytes.extend_from_slice(user.as_bytes());
            Ok(IsNull::No)
        };
        outbox.bind("", "", [], [user], encode, [])?;
        outbox.execute("", 0)
    });
    outbox.sync();
    sent.map_err(|_| LookupError::Shape("nothing: query or name cannot be sent"))?;
    let mut gathered = Ok(T::default());
    loop {
        let message = link.answer().await?;
        match message.tag() {
            Tag::DATA_ROW => {
                if let Ok(so_far) = &mut gathered
                    && let Err(error) = gather(&message, so_far)
                {
                    gathered = Err(error);
                }
            }
            Tag::ERROR_RESPONSE => {
                let error = ServerError::read(&message).map_err(LinkError::from)?;
                gathered = Err(LookupError::Server(Box::new(error)));
            }
            Tag::READY_FOR_QUERY => return gathered,
            _ => {}
        }
    }
}
