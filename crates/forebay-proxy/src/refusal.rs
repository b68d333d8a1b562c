//! Refusal: why there is no session for a client that the proxy itself has let in.
//!
//! Promises: whoever serves is told who refused: the database, whom the proxy asked in the client's name, or the proxy. The client is told what the
//! database said, and more only if it has proven a password to the proxy: a stranger learns nothing of how the proxy knows its users.

use forebay_pg_link::ConnectError;
use forebay_pg_wire::error::WireError;

use crate::end::wire_error;
use crate::pool::Unavailable;
use crate::upstream::UpstreamSettings;

/// What the client is told, and what is to be logged of it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) told: WireError,
    pub(crate) logged: WireError,
}

impl From<WireError> for Refusal {
    /// By the proxy, which has nothing to add.
    fn from(error: WireError) -> Self {
        Self {
            logged: error.clone(),
            told: error,
        }
    }
}

impl Refusal {
    /// There is no connection for a client who is this user here, and has proven it by a password or not.
    pub(crate) fn of(error: &Unavailable, user: &str, is_proven: bool, settings: &UpstreamSettings) -> Self {
        let mut refusal = Self::from(wire_error(error));
        let Unavailable::Connect(
            refused @ (ConnectError::Server(_) | ConnectError::Authentication(_) | ConnectError::NoPassword),
        ) = error
        else {
            return refusal;
        };
        let there = settings.user_there(user);
        refusal.logged.message = format!("the database refused the proxy as \"{there}\": {refused}");
        if is_proven && refusal.told.sqlstate.starts_with("28") {
            let told = &mut refusal.told;
            let detail = format!("The proxy has let you in; the database refused the proxy as user \"{there}\".");
            told.detail.get_or_insert(detail);
            if settings.takes_proofs_from_clients(user) {
                let hint = "A verifier in the proxy's users file lets the proxy in only where it is the database's own, copied from \
                            rolpassword of pg_authid.";
                told.hint.get_or_insert(hint.to_owned());
            }
        }
        refusal
    }
}
