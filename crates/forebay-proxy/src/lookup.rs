//! Lookup: a query that says what the database has of a user's password.
//!
//! Promises: it is asked for each login, so that a password that was changed is known at once. It runs on a connection of the proxy's own user,
//! with no setting of any client, and with `search_path = pg_catalog`, so that nobody's names stand before the catalog's. Who may not log in by
//! the database's own catalog (`VALID UNTIL` is past) has no password, whatever the query says.

use std::str;

use forebay_pg_link::{ConnectError, Connector, IsNull, Link, LinkError, Message, ServerError, Tag};
use forebay_pg_wire::gate::Decoy;
use forebay_pg_wire::verifier::StoredPassword;
use tokio::sync::Mutex;

/// `text`, which the user's name is sent as.
const TEXT: u32 = 25;

/// Who may not, of those whom the catalog knows: a name that it does not know is nobody whom it forbids.
const MAY_NOT: &str =
    "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1 AND (rolvaliduntil < pg_catalog.now() OR NOT rolcanlogin)";

/// The same, of clients that are another user at the database.
const IS_EXPIRED: &str = "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1 AND rolvaliduntil < pg_catalog.now()";

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
        }
    }

    /// What is stored of the user's password, or what nobody can prove.
    ///
    /// # Cancel safety
    /// Dropped, the next who asks connects anew.
    pub(crate) async fn of(&self, user: &str) -> Result<StoredPassword, LookupError> {
        let mut kept = self.link.lock().await;
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

    async fn ask(&self, link: &mut Link, user: &str) -> Result<StoredPassword, LookupError> {
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
        let forbidding = if self.is_theirs { MAY_NOT } else { IS_EXPIRED };
        let is_forbidden = rows(link, forbidding, user, |_, is_forbidden: &mut bool| {
            *is_forbidden = true;
            Ok(())
        })
        .await?;
        let stored = stored.filter(|_| !is_forbidden);
        Ok(stored.unwrap_or_else(|| self.decoy.for_user(user)))
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
