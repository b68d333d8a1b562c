//! Replies: what a server connection has yet to answer, in the order in which it was asked.
//!
//! Promises: each message of the server's is told apart by what it answers: whether it is the client's to see or ours alone, and
//! what became true or did not with it. An error in the middle of a pipeline ends what the server skips, up to the Sync that it
//! stops at, and nothing else. A message that answers nothing that was asked is [`Unexpected`], never a guess.
//!
//! The rules are those of PostgreSQL's documentation, "Message Flow", and of its `postgres.c` and `copyfromparse.c`. Knows no
//! socket, and nothing of a message but its first byte.

use std::collections::VecDeque;

/// What is asked of the server in one message, by what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A simple query, or a function call: anything, then ReadyForQuery.
    Query,
    Parse,
    Bind,
    Describe,
    Execute,
    Close,
    Sync,
    /// The end of what is copied in: nothing by itself.
    CopyEnd,
    /// A Sync that the server takes no notice of.
    Nothing,
    /// What the server can only refuse: a Flush that has something in it, or no message at all, at which it ends the session.
    Refused,
}

/// One message that was sent and not answered in full.
#[derive(Debug)]
struct Expected<N> {
    asked: Asked,
    /// Asked by us and not by the client, who is not to see the answer.
    is_ours: bool,
    note: Option<N>,
    /// Its answer, which goes on, has an error in it.
    has_failed: bool,
}

/// What a message of the server's means.
#[derive(Debug)]
pub(crate) struct Reply<N> {
    /// It is the client's to see.
    pub(crate) is_visible: bool,
    /// It ends the answer to what this was noted with.
    pub(crate) done: Option<N>,
    /// It is the error of what this was noted with.
    pub(crate) failed: Option<N>,
    /// There was an error in the answer that it ends.
    pub(crate) had_error: bool,
    /// The place of what it answers.
    pub(crate) place: u64,
}

/// The server said what nobody had asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent a message {:?} that answers nothing", char::from(*.0))]
pub(crate) struct Unexpected(pub(crate) u8);

/// What is asked of one server connection and not answered yet. `N` notes what hangs on an answer.
#[derive(Debug)]
pub(crate) struct Replies<N> {
    expected: VecDeque<Expected<N>>,
    /// How many are answered, or will not be.
    answered: u64,
    /// The place of the last one behind which the server is ready again.
    last_ready: Option<u64>,
    /// The server takes no notice of what it is sent up to the next Sync.
    is_skipping: bool,
    /// The server takes rows in; Syncs are nothing to it meanwhile.
    is_copying_in: bool,
    /// An error ended a copy that had a Sync behind its beginning: whether that Sync is answered, nobody can tell.
    is_uncertain: bool,
    had_early_sync: bool,
    /// The place of the last one that may have begun or ended a transaction.
    last_run: Option<u64>,
    /// How many were answered when the server said last what its transaction is like.
    told_at: u64,
    /// What was asked by the extended protocol has no Sync behind it yet: its transaction is not over, whatever ReadyForQuery said last.
    is_in_group: bool,
}

impl<N> Default for Replies<N> {
    fn default() -> Self {
        Self {
            expected: VecDeque::new(),
            answered: 0,
            last_ready: None,
            is_skipping: false,
            is_copying_in: false,
            is_uncertain: false,
            had_early_sync: false,
            last_run: None,
            told_at: 0,
            is_in_group: false,
        }
    }
}

impl<N> Replies<N> {
    /// Whether all that was asked is answered, and nothing is begun that a Sync is to end.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_skipping && !self.is_in_group && self.are_all_there()
    }

    /// Whether all that was asked is answered, and it is for a Sync to end it.
    pub(crate) fn is_owed_sync(&self) -> bool {
        self.is_in_group && !self.is_skipping && self.are_all_there()
    }

    /// Whether all that was asked is answered.
    pub(crate) fn are_all_there(&self) -> bool {
        let is_answered = |expected: &Expected<N>| matches!(expected.asked, Asked::CopyEnd | Asked::Nothing);
        self.expected.iter().all(is_answered)
    }

    /// Whether the answers can no longer be told apart.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// Whether the server takes rows in, by what has this place.
    pub(crate) fn is_copying_in_at(&self, place: u64) -> bool {
        self.is_copying_in && place == self.answered
    }

    /// Whether the server takes rows in, and was not told of their end.
    pub(crate) fn is_owed_rows(&self) -> bool {
        self.is_copying_in && !self.ends_copy()
    }

    /// Whether the server takes no notice of what it is sent now, if that is no Sync.
    pub(crate) fn is_skipping(&self) -> bool {
        self.is_skipping
    }

    /// What is noted with what is being answered.
    pub(crate) fn note(&self) -> Option<&N> {
        self.expected.front()?.note.as_ref()
    }

    /// Whether what is being answered was noted with something like this.
    pub(crate) fn is_at(&self, is_it: impl FnOnce(&N) -> bool) -> bool {
        self.note().is_some_and(is_it)
    }

    /// How many are answered, or will not be.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    /// The place in the order of answers that what is asked next will have.
    pub(crate) fn next_place(&self) -> u64 {
        self.answered + self.expected.len() as u64
    }

    /// Whether the server will be ready for what is asked next, whatever it answers before: nothing stands between that it would pass over.
    pub(crate) fn is_ready_for_next(&self) -> bool {
        let mut asked = self.expected.iter().rev().map(|expected| expected.asked);
        let last = asked.find(|asked| !matches!(asked, Asked::CopyEnd | Asked::Nothing));
        !self.is_skipping && !self.is_copying_in && last.is_none_or(|last| matches!(last, Asked::Query | Asked::Sync))
    }

    /// Whether a ReadyForQuery is still to come.
    pub(crate) fn awaits_ready(&self) -> bool {
        self.last_ready.is_some_and(|ready| self.is_awaited(ready))
    }

    /// Whether what was asked at this place has no full answer yet.
    pub(crate) fn is_awaited(&self, place: u64) -> bool {
        place >= self.answered
    }

    /// Whether what was asked at this place has no answer yet, while what is asked now is answered whatever that answer is: there is
    /// a Sync between.
    pub(crate) fn is_undecided(&self, place: u64) -> bool {
        self.is_awaited(place) && self.last_ready.is_some_and(|ready| ready >= place)
    }

    /// Whether the transaction is what ReadyForQuery said last: nothing was run since that may have begun or ended it.
    pub(crate) fn is_told_all(&self) -> bool {
        self.last_run.is_none_or(|run| run < self.told_at)
    }

    /// Whether it will be told without anything more being asked.
    pub(crate) fn is_telling(&self) -> bool {
        !self.is_told_all() && self.awaits_ready() && self.last_ready >= self.last_run
    }

    /// Notes a message that is sent now. Gives the note back where the server will take no notice of the message.
    #[must_use]
    pub(crate) fn ask(&mut self, asked: Asked, is_ours: bool, note: Option<N>) -> Option<N> {
        if self.is_skipping {
            if asked != Asked::Sync {
                return note;
            }
            self.is_skipping = false;
        }
        if self.is_copying_in && asked == Asked::Sync && !self.ends_copy() {
            self.had_early_sync = true;
            return note;
        }
        match asked {
            Asked::Parse | Asked::Bind | Asked::Describe | Asked::Execute | Asked::Close | Asked::Refused => {
                self.is_in_group = true;
            }
            Asked::Query | Asked::Sync => self.is_in_group = false,
            Asked::CopyEnd | Asked::Nothing => {}
        }
        if matches!(asked, Asked::Query | Asked::Sync) {
            self.last_ready = Some(self.next_place());
        }
        if matches!(asked, Asked::Query | Asked::Execute) {
            self.last_run = Some(self.next_place());
        }
        self.expected.push_back(Expected {
            asked,
            is_ours,
            note,
            has_failed: false,
        });
        None
    }

    /// What a message of the server's answers. What an error made the server pass over is put into `undone`, the last first.
    pub(crate) fn receive(&mut self, tag: u8, undone: &mut Vec<N>) -> Result<Reply<N>, Unexpected> {
        while let Some(Asked::CopyEnd | Asked::Nothing) = self.expected.front().map(|front| front.asked) {
            self.pop();
        }
        let front = self.expected.front();
        let is_visible = front.is_none_or(|front| !front.is_ours);
        let seen = Reply {
            is_visible,
            done: None,
            failed: None,
            had_error: false,
            place: self.answered,
        };
        let asked = front.map(|front| front.asked);
        let is_answered = match (tag, asked) {
            // What the client listens to, also while we ask.
            (b'A', _) => {
                return Ok(Reply {
                    is_visible: true,
                    ..seen
                });
            }
            // Notices, settings: at any time.
            (b'N' | b'S', _) => false,
            (b'1', Some(Asked::Parse))
            | (b'2', Some(Asked::Bind))
            | (b'3', Some(Asked::Close))
            | (b'T' | b'n', Some(Asked::Describe))
            | (b'I' | b's', Some(Asked::Execute))
            | (b'Z', Some(Asked::Query | Asked::Sync)) => true,
            (b'C', Some(Asked::Execute)) => {
                self.end_copy();
                true
            }
            (b'C', Some(Asked::Query)) => {
                self.end_copy();
                false
            }
            (b't', Some(Asked::Describe)) | (b'T' | b'I' | b'V', Some(Asked::Query)) => false,
            (b'D' | b'H' | b'd' | b'c' | b'W', Some(Asked::Query | Asked::Execute)) => false,
            (b'G', Some(Asked::Query | Asked::Execute)) => {
                self.begin_copy();
                false
            }
            // The last word of a server that ends the session, or an error where none of what was asked is at fault.
            (b'E', None) => false,
            (b'E', Some(Asked::Query)) => {
                self.fail_copy();
                if let Some(front) = self.expected.front_mut() {
                    front.has_failed = true;
                }
                false
            }
            (b'E', Some(Asked::Sync)) => false,
            (b'E', Some(_)) => {
                // Also of what we asked: it was for what the client asked next, which fails with it.
                let failed = self.pop().and_then(|failed| failed.note);
                self.skip(undone);
                return Ok(Reply {
                    is_visible: true,
                    failed,
                    ..seen
                });
            }
            (tag, _) => return Err(Unexpected(tag)),
        };
        if !is_answered {
            return Ok(seen);
        }
        let answered = self.pop();
        if tag == b'Z' {
            self.told_at = self.answered;
        }
        Ok(Reply {
            had_error: answered.as_ref().is_some_and(|answered| answered.has_failed),
            done: answered.and_then(|answered| answered.note),
            ..seen
        })
    }

    fn pop(&mut self) -> Option<Expected<N>> {
        let front = self.expected.pop_front()?;
        self.answered += 1;
        Some(front)
    }

    /// A copy begins: the server takes no notice of Syncs before its end.
    fn begin_copy(&mut self) {
        self.is_copying_in = true;
        self.had_early_sync = false;
        // Of its own the Sync is still to come.
        self.is_in_group |=
            self.expected.front().is_some_and(|front| front.asked == Asked::Execute) && !self.ends_copy();
        for expected in self.expected.iter_mut().skip(1) {
            match expected.asked {
                Asked::CopyEnd => break,
                Asked::Sync => {
                    self.had_early_sync = true;
                    expected.asked = Asked::Nothing;
                }
                Asked::Nothing => {}
                // Nothing of a copy: the server ends the session at it.
                _ => {
                    self.had_early_sync = false;
                    break;
                }
            }
        }
    }

    /// Whether the copy's end was sent.
    fn ends_copy(&self) -> bool {
        self.expected.iter().any(|expected| expected.asked == Asked::CopyEnd)
    }

    fn end_copy(&mut self) {
        self.is_copying_in = false;
    }

    /// Ends the copy, if there is one, by an error.
    fn fail_copy(&mut self) {
        self.is_uncertain |= std::mem::take(&mut self.is_copying_in) && self.had_early_sync;
    }

    /// An error: what follows is not answered, up to the next Sync.
    fn skip(&mut self, undone: &mut Vec<N>) {
        self.fail_copy();
        let mut is_owed = false;
        while self.expected.front().is_some_and(|front| front.asked != Asked::Sync) {
            let skipped = self.pop();
            is_owed |= skipped
                .as_ref()
                .is_some_and(|skipped| skipped.asked == Asked::Query && !skipped.is_ours);
            undone.extend(skipped.and_then(|skipped| skipped.note));
        }
        undone.reverse();
        // Of a query that is passed over for what we asked in front of it the client gets the end from our Sync behind it.
        if let Some(sync) = self.expected.front_mut().filter(|_| is_owed) {
            sync.is_ours = false;
        }
        self.is_skipping = self.expected.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client asks these; each is noted by its letter.
    fn asked(letters: &str) -> Replies<char> {
        let mut replies = Replies::default();
        for letter in letters.chars() {
            let kind = match letter {
                'Q' => Asked::Query,
                'P' => Asked::Parse,
                'B' => Asked::Bind,
                'D' => Asked::Describe,
                'E' => Asked::Execute,
                'C' => Asked::Close,
                'S' => Asked::Sync,
                '?' => Asked::Refused,
                _ => Asked::CopyEnd,
            };
            assert_eq!(replies.ask(kind, false, Some(letter)), None, "{letters}");
        }
        replies
    }

    /// What the server says is taken; what was undone.
    fn say(replies: &mut Replies<char>, tags: &str) -> Result<String, Unexpected> {
        let mut all = String::new();
        for tag in tags.bytes() {
            let mut undone = Vec::new();
            replies.receive(tag, &mut undone)?;
            all.extend(undone);
        }
        Ok(all)
    }

    #[test]
    fn all_that_was_asked_is_answered_in_order() {
        for (letters, tags) in [
            ("Q", "TDDCZ"),
            ("Q", "CTDCIZ"),
            ("Q", "EZ"),
            ("Q", "HddcCZ"),
            ("Qx", "GCZ"),
            ("PBDESPBES", "12TDDCZ12CZ"),
            ("DBDES", "tn2nIZ"),
            ("BESES", "2DsZDCZ"),
            ("ES", "NSACZ"),
            ("ESxS", "GCZ"),
            ("CS", "3Z"),
        ] {
            let mut replies = asked(letters);
            assert_eq!(say(&mut replies, tags).as_deref(), Ok(""), "{letters} {tags}");
            assert!(replies.is_empty(), "{letters} {tags}");
        }
    }

    #[test]
    fn an_error_ends_what_is_skipped_up_to_the_sync() {
        let mut replies = asked("PBESBS");
        assert_eq!(say(&mut replies, "1E").as_deref(), Ok("E"));
        assert_eq!(say(&mut replies, "Z2Z").as_deref(), Ok(""));
        assert!(replies.is_empty());
    }

    #[test]
    fn what_can_only_be_refused_is_waited_for() {
        let mut replies = asked("Q?");
        assert_eq!(say(&mut replies, "CZ").as_deref(), Ok(""));
        assert!(!replies.is_empty());
        assert_eq!(say(&mut replies, "E").as_deref(), Ok(""));
        assert!(replies.is_skipping() && !replies.is_empty());
        assert_eq!(replies.ask(Asked::Sync, false, None), None);
        assert_eq!(say(&mut replies, "Z").as_deref(), Ok(""));
        assert!(replies.is_empty());
    }

    #[test]
    fn what_no_sync_has_ended_is_not_over_though_it_is_answered() {
        let mut replies = asked("PBE");
        assert_eq!(say(&mut replies, "12C").as_deref(), Ok(""));
        assert!(!replies.is_empty(), "its transaction is open");
        assert_eq!(replies.ask(Asked::Sync, false, None), None);
        assert_eq!(say(&mut replies, "Z").as_deref(), Ok(""));
        assert!(replies.is_empty());
    }

    #[test]
    fn what_is_sent_before_the_sync_after_an_error_is_not_awaited() {
        let mut replies = asked("P");
        assert_eq!(say(&mut replies, "E").as_deref(), Ok(""));
        assert!(!replies.is_empty(), "the Sync is still to come");
        assert_eq!(replies.ask(Asked::Bind, false, Some('B')), Some('B'));
        assert_eq!(replies.ask(Asked::Query, false, Some('Q')), Some('Q'));
        assert_eq!(replies.ask(Asked::Sync, false, None), None);
        assert_eq!(say(&mut replies, "Z").as_deref(), Ok(""));
        assert!(replies.is_empty());
    }

    #[test]
    fn what_we_ask_is_not_the_clients_to_see_but_for_its_error() {
        let mut replies = Replies::default();
        assert_eq!(replies.ask(Asked::Parse, true, Some('p')), None);
        assert_eq!(replies.ask(Asked::Bind, false, None), None);
        assert_eq!(replies.ask(Asked::Parse, true, Some('q')), None);
        assert_eq!(replies.ask(Asked::Sync, false, None), None);
        let mut undone = Vec::new();
        let done = replies.receive(b'1', &mut undone).unwrap();
        assert!(!done.is_visible && done.done == Some('p'));
        assert!(replies.receive(b'2', &mut undone).unwrap().is_visible);
        let failed = replies.receive(b'E', &mut undone).unwrap();
        assert!(failed.is_visible && failed.failed == Some('q') && undone.is_empty());
    }

    #[test]
    fn what_is_listened_to_is_the_clients_also_where_we_ask() {
        let mut replies = Replies::<char>::default();
        assert_eq!(replies.ask(Asked::Query, true, None), None);
        let mut undone = Vec::new();
        assert!(replies.receive(b'A', &mut undone).unwrap().is_visible);
        assert!(!replies.receive(b'C', &mut undone).unwrap().is_visible);
    }

    #[test]
    fn what_answers_nothing_is_told() {
        for (letters, tags, unexpected) in [("", "Z", b'Z'), ("PS", "2", b'2'), ("Q", "1", b'1'), ("S", "ZZ", b'Z')] {
            assert_eq!(
                say(&mut asked(letters), tags),
                Err(Unexpected(unexpected)),
                "{letters} {tags}"
            );
        }
    }

    #[test]
    fn a_copy_that_fails_with_a_sync_behind_its_beginning_leaves_it_uncertain_who_is_answered() {
        let mut replies = asked("ES");
        assert_eq!(say(&mut replies, "GE").as_deref(), Ok("S"));
        assert!(replies.is_uncertain());
        let mut certain = asked("E");
        assert_eq!(say(&mut certain, "GE").as_deref(), Ok(""));
        assert!(!certain.is_uncertain());
    }

    #[test]
    fn what_is_behind_a_sync_is_not_decided_before_the_sync() {
        let mut replies = asked("P");
        assert!(!replies.is_undecided(0), "it fails with what follows");
        assert_eq!(replies.ask(Asked::Sync, false, None), None);
        assert!(replies.is_undecided(0));
        assert_eq!(say(&mut replies, "1").as_deref(), Ok(""));
        assert!(!replies.is_undecided(0));
    }

    #[test]
    fn what_a_transaction_is_like_is_not_known_behind_what_may_have_ended_it_before_the_server_says_so() {
        // Whether it is known, or told in a moment.
        let known = |replies: &Replies<char>| (replies.is_told_all(), replies.is_telling());
        let mut replies = asked("PBS");
        assert_eq!(known(&replies), (true, false), "nothing was run");
        say(&mut replies, "12Z").unwrap();
        for kind in [Asked::Query, Asked::Query, Asked::Parse] {
            assert_eq!(replies.ask(kind, false, None), None);
        }
        assert_eq!(known(&replies), (false, true));
        say(&mut replies, "CZ").unwrap();
        assert_eq!(known(&replies), (false, true), "the other is on its way");
        say(&mut replies, "CZ").unwrap();
        assert_eq!(known(&replies), (true, false));
        let mut group = asked("PBE");
        say(&mut group, "12C").unwrap();
        assert_eq!(known(&group), (false, false), "it ends with its Sync");
        assert_eq!(group.ask(Asked::Sync, false, None), None);
        assert_eq!(known(&group), (false, true));
        let mut failed = asked("PBEDS");
        say(&mut failed, "1E").unwrap();
        assert_eq!(known(&failed), (false, true));
        say(&mut failed, "Z").unwrap();
        assert_eq!(known(&failed), (true, false));
    }
}
