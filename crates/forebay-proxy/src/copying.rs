//! Copying: a COPY from the client that the extended protocol has begun.
//!
//! Promises: it is known whether the server has taken notice of a Sync behind its beginning. The server passes over Syncs while it copies in, and
//! answers one where the copy has failed before; so none is sent before it has said that it copies, and none while it does. Source:
//! `CopyGetData` in PostgreSQL's `copyfromparse.c`.

use bytes::Bytes;

/// `ERRCODE_QUERY_CANCELED`: it was waiting for rows, and had passed over what stood before them.
const CANCELLED: &[u8] = b"57014";

/// What of it the client has sent.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    /// Portals of statements that may copy in.
    portals: Vec<Bytes>,
    /// The place of the Execute of one.
    executed_at: Option<u64>,
    /// A Sync came behind it, and was not sent.
    has_early_sync: bool,
    /// What is copied was sent.
    has_sent: bool,
    /// The place of the Execute of a copy that had a Sync among its rows, which was not sent.
    had_late_sync_at: Option<u64>,
    /// Something was sent that is nothing of a copy.
    is_broken: bool,
}

/// What an error says of the Syncs that were not sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The server would not have answered one.
    Nothing,
    /// It would now answer one.
    SyncIsDue,
    /// It failed at rows before or behind one: nobody can tell.
    Uncertain,
}

impl Copying {
    /// This portal is of a statement that may copy in, or of one that does not.
    pub(crate) fn bind(&mut self, portal: &[u8], may_copy_in: bool) {
        self.portals.retain(|known| known != portal);
        if may_copy_in {
            self.portals.push(Bytes::copy_from_slice(portal));
        }
    }

    /// Whether the portal may copy in; if so what comes behind its Execute, which has this place, waits.
    pub(crate) fn execute(&mut self, portal: &[u8], place: u64) -> bool {
        let may_copy_in = self.portals.iter().any(|known| known == portal);
        if may_copy_in {
            (self.executed_at, self.has_early_sync, self.has_sent) = (Some(place), false, false);
        }
        may_copy_in
    }

    /// The Execute that is to be answered, or begun, before what comes behind it is sent.
    pub(crate) fn executed_at(&self) -> Option<u64> {
        self.executed_at
    }

    /// It is answered.
    pub(crate) fn end(&mut self) {
        self.executed_at = None;
    }

    /// Whether the server ends the session, in its own words, at this or at something before it: it is owed rows and gets something else.
    pub(crate) fn breaks(&mut self, tag: u8, is_owed_rows: bool) -> bool {
        self.is_broken |= is_owed_rows && !matches!(tag, b'd' | b'c' | b'f' | b'H' | b'S');
        self.is_broken
    }

    /// Something of the client's while the server copies in; false if it is not to be sent.
    pub(crate) fn pass(&mut self, tag: u8) -> bool {
        match tag {
            b'S' if self.has_sent => self.had_late_sync_at = self.executed_at,
            b'S' => self.has_early_sync = true,
            b'd' => self.has_sent = true,
            b'c' | b'f' => {
                self.has_sent = true;
                self.end();
            }
            _ => {}
        }
        tag != b'S'
    }

    /// What has this place has failed with this code.
    pub(crate) fn fail(&mut self, place: u64, code: &[u8]) -> Failed {
        let is_copying = self.executed_at == Some(place);
        if is_copying {
            self.executed_at = None;
        }
        if self.had_late_sync_at == Some(place) {
            Failed::Uncertain
        } else if is_copying && self.has_early_sync && !self.has_sent && code != CANCELLED {
            Failed::SyncIsDue
        } else {
            Failed::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Copying {
        let mut copying = Copying::default();
        copying.bind(b"p", true);
        assert!(!copying.execute(b"other", 3) && copying.execute(b"p", 4));
        assert_eq!(copying.executed_at(), Some(4));
        copying
    }

    #[test]
    fn a_sync_that_the_server_has_passed_over_is_not_answered() {
        for (tags, code, failed) in [
            ("S", "P0001", Failed::SyncIsDue),
            ("S", "57014", Failed::Nothing),
            ("", "P0001", Failed::Nothing),
            ("Sd", "22P04", Failed::Nothing),
            ("Sdf", "57014", Failed::Nothing),
            ("dSd", "22P04", Failed::Uncertain),
            ("dSc", "22P04", Failed::Uncertain),
        ] {
            let mut copying = begun();
            for tag in tags.bytes() {
                assert_eq!(copying.pass(tag), tag != b'S');
            }
            assert_eq!(copying.fail(4, code.as_bytes()), failed, "{tags} {code}");
            assert_eq!(copying.fail(5, code.as_bytes()), Failed::Nothing, "it has failed");
        }
    }

    #[test]
    fn a_portal_is_what_it_was_bound_to_last() {
        let mut copying = begun();
        copying.bind(b"p", false);
        assert!(!copying.execute(b"p", 9));
    }
}
