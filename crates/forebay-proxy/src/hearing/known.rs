//! Known: what is known of one database by what it tells, and what may be answered from memory for that.
//!
//! Promises: those of [hearing](super), as far as they hang on what is known; whoever listens says what that is. Connects to nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::covered::{Covered, Publishing};
use super::pgoutput::Position;
use super::recent::{Recent, TooMany};
use super::snapshot::Snapshot;
use crate::effects::Effects;
use crate::memory::does::Does;
use crate::memory::key::Key;
use crate::memory::{Listening, Memory};

/// How a database stands with who listens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It is not connected to yet: nobody has asked for anything of it that is to be remembered, or that is a moment ago.
    Connecting,
    Listening,
    /// For this reason; it is tried again.
    Away(Arc<str>),
}

/// What is counted of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heard {
    /// How it stands, in words.
    pub standing: String,
    /// How long ago the stream was known to be at the end of the log; none: it never was.
    pub lag: Option<Duration>,
    /// Tables of which every commit is told, by their names.
    pub tables: usize,
    /// The position up to which it was heard, as the database writes it.
    pub position: String,
    /// So much of the log is held back for it, in bytes.
    pub held_wal_bytes: u64,
    /// Commits that have changed something that is published.
    pub commits: u64,
    /// How often the stream has begun.
    pub beginnings: u64,
    /// How often the catalog was another one, and all was old for that.
    pub catalog_changes: u64,
    /// How often the catalog was looked at.
    pub looks: u64,
    /// How long the last look at the catalog took, at the database and on the way.
    pub look: Duration,
}

/// What is heard of one database.
pub(crate) struct Hearing {
    pub(super) place: Arc<str>,
    memory: Memory,
    effects: Arc<Effects>,
    pub(super) listening: Listening,
    /// The least that anybody asks for in place of its `max_lag`.
    pub(super) min_lag: Duration,
    pub(super) state: RwLock<State>,
    recent: Mutex<Recent>,
    aims: Mutex<Aims>,
    /// When all is known that had been committed, in milliseconds since it was made, and one; 0: never.
    heard: AtomicU64,
    made: Instant,
    commits: AtomicU64,
    beginnings: AtomicU64,
    catalog_changes: AtomicU64,
}

#[derive(Debug)]
pub(super) struct State {
    standing: Standing,
    pub(super) covered: Covered,
    /// The server that is listened to.
    server: Arc<str>,
    pub(super) held_wal_bytes: u64,
    pub(super) looks: u64,
    pub(super) look: Duration,
}

/// Ends of the log, and when they were that.
#[derive(Debug, Default)]
struct Aims {
    /// The stream was heard up to here.
    position: Position,
    ahead: VecDeque<(Position, Instant)>,
}

/// What is to be held against the snapshot of a question.
#[derive(Debug)]
pub(crate) struct Fence {
    commits: Vec<u32>,
    server: Arc<str>,
}

impl Fence {
    /// Whether what was asked behind these two [answers](super::ASK_SNAPSHOT) has seen all commits that had been told when it began.
    pub(crate) fn holds(&self, snapshot: &str, server: &str) -> bool {
        *self.server == *server
            && Snapshot::parse(snapshot)
                .is_some_and(|snapshot| self.commits.iter().all(|commit| snapshot.sees(*commit)))
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hearing")
            .field("place", &self.place)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Hearing {
    pub(super) fn new(place: Arc<str>, memory: Memory, effects: Arc<Effects>, listening: Listening) -> Self {
        Self {
            place,
            memory,
            effects,
            min_lag: listening.max_lag,
            listening,
            state: RwLock::new(State {
                standing: Standing::Connecting,
                covered: Covered::default(),
                server: "".into(),
                held_wal_bytes: 0,
                looks: 0,
                look: Duration::ZERO,
            }),
            recent: Mutex::default(),
            aims: Mutex::default(),
            heard: AtomicU64::new(0),
            made: Instant::now(),
            commits: AtomicU64::new(0),
            beginnings: AtomicU64::new(0),
            catalog_changes: AtomicU64::new(0),
        }
    }

    /// Whether a question of these tables may be answered from memory now, to one who bears being so late, or as all do. They are published, if they can be.
    pub(crate) fn hears(&self, tables: &[Arc<str>], max_lag: Option<Duration>) -> bool {
        {
            let state = self.state.read();
            // Also where it is away: until then it was heard.
            if self
                .lag()
                .is_some_and(|lag| lag <= max_lag.unwrap_or(self.listening.max_lag))
                && state.covered.first_uncovered(tables).is_none()
            {
                return true;
            }
            if state.covered.wants(tables) {
                return false;
            }
        }
        self.state.write().covered.want(tables);
        false
    }

    /// Why a question of these tables is not; none where it is.
    pub(crate) fn why_not(&self, tables: &[Arc<str>], max_lag: Option<Duration>) -> Option<String> {
        let state = self.state.read();
        if state.standing != Standing::Listening {
            return Some(format!("the database's stream: {}", state.standing));
        }
        if let Some(why) = state.covered.why_not(tables) {
            return Some(why);
        }
        let max_lag = max_lag.unwrap_or(self.listening.max_lag);
        let is_late = self.lag().is_none_or(|lag| lag > max_lag);
        is_late.then(|| "the database's stream is behind".to_owned())
    }

    /// A question of these tables is about to be asked, that hangs on no row of one of them but one by this key.
    pub(crate) fn begin(&self, tables: &[Arc<str>], by_row: Option<(&str, &Key)>) -> Option<Fence> {
        // How late it is counts when it is told again.
        if !self.hears(tables, Some(Duration::MAX)) {
            return None;
        }
        let commits = self.recent.lock().of(tables);
        let state = self.state.read();
        // Should it become another one from now on, it is told of any row.
        let is_told_by = |(table, key): (&str, &Key)| state.covered.key(table).is_some_and(|known| **known == *key);
        by_row.is_none_or(is_told_by).then(|| Fence {
            commits,
            server: Arc::clone(&state.server),
        })
    }

    /// By what rows of this table are told, and the [number](Covered::keys_number) of that.
    pub(super) fn key(&self, table: &str) -> Option<Arc<Key>> {
        self.state.read().covered.key(table).cloned()
    }

    pub(super) fn keys_number(&self) -> u64 {
        self.state.read().covered.keys_number()
    }

    /// Why these are not published, in words that follow the name.
    pub(super) fn lacks(&self, why: impl IntoIterator<Item = (Arc<str>, String)>) {
        self.state.write().covered.lacks(why);
    }

    /// These tables are published, as the snapshot has it, and no others.
    pub(super) fn covers(&self, names: impl IntoIterator<Item = (Arc<str>, Publishing)>, snapshot: &Snapshot) {
        let others = self.state.write().covered.learn(names, snapshot);
        for table in others {
            // What was told of it was told by another key.
            self.memory.has_changed(&self.place, &Does::changes(table));
        }
    }

    /// How long ago the stream was known to be at the end of the log.
    fn lag(&self) -> Option<Duration> {
        let heard = self.heard.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.made.elapsed().saturating_sub(Duration::from_millis(heard)))
    }

    /// A transaction that has changed these, or anything, is committed; `keys_number`: of the keys by which its rows are told.
    pub(super) fn committed(&self, transaction: u32, does: &mut Does, keys_number: u64) -> Result<(), TooMany> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        // Held, so that nobody begins by another key before this is told.
        let state = self.state.read();
        if state.covered.keys_number() != keys_number {
            does.may_change_any_row();
        }
        // In this order: who begins between the two is told of it twice, and nobody never.
        self.recent.lock().add(transaction, does)?;
        self.memory.has_changed(&self.place, does);
        Ok(())
    }

    /// All is told that was committed before this position.
    pub(super) fn is_at(&self, position: Position) {
        let mut aims = self.aims.lock();
        aims.position = aims.position.max(position);
        self.arrive(&mut aims);
    }

    /// The log ended here at that moment, or before.
    pub(super) fn aim(&self, end: Position, moment: Instant) {
        let mut aims = self.aims.lock();
        aims.ahead.push_back((end, moment));
        self.arrive(&mut aims);
    }

    fn arrive(&self, aims: &mut Aims) {
        let mut last = None;
        while let Some((_, moment)) = aims.ahead.pop_front_if(|(end, _)| *end <= aims.position) {
            last = Some(moment);
        }
        if let Some(moment) = last {
            let since = moment.saturating_duration_since(self.made).as_millis();
            self.heard
                .store(u64::try_from(since).unwrap_or(u64::MAX - 1) + 1, Ordering::Release);
        }
    }

    /// Whether the stream is still to come to an end of the log that was asked for.
    pub(super) fn is_behind(&self) -> bool {
        !self.aims.lock().ahead.is_empty()
    }

    pub(super) fn position(&self) -> Position {
        self.aims.lock().position
    }

    /// The stream begins: what was remembered before is of no use.
    pub(super) fn begins(&self, server: Arc<str>) {
        self.beginnings.fetch_add(1, Ordering::Relaxed);
        *self.aims.lock() = Aims::default();
        self.recent.lock().clear();
        {
            let mut state = self.state.write();
            if let Standing::Away(_) = state.standing {
                tracing::info!(place = %self.place, "the database's stream is heard again");
            }
            state.standing = Standing::Listening;
            state.covered.clear();
            state.server = server;
        }
        self.memory.has_changed(&self.place, &Does::Anything);
    }

    /// Transactions have ended.
    pub(super) fn seen_by(&self, snapshot: &Snapshot) {
        self.recent.lock().seen_by(snapshot);
        self.state.write().covered.seen_by(snapshot);
    }

    /// The catalog is another one.
    pub(super) fn catalog_has_changed(&self) {
        self.catalog_changes.fetch_add(1, Ordering::Relaxed);
        self.effects.was_changed_elsewhere();
        self.memory.has_changed(&self.place, &Does::Anything);
    }

    pub(super) fn is_away(&self, why: &str) {
        let mut state = self.state.write();
        if !matches!(&state.standing, Standing::Away(before) if **before == *why) {
            tracing::warn!(place = %self.place, why, "the database's stream is not heard; nothing of it is answered from memory");
        }
        state.standing = Standing::Away(why.into());
    }

    /// What is counted.
    pub(crate) fn counts(&self) -> Heard {
        let state = self.state.read();
        Heard {
            standing: state.standing.to_string(),
            lag: self.lag(),
            tables: state.covered.count(),
            position: self.position().to_string(),
            held_wal_bytes: state.held_wal_bytes,
            commits: self.commits.load(Ordering::Relaxed),
            beginnings: self.beginnings.load(Ordering::Relaxed),
            catalog_changes: self.catalog_changes.load(Ordering::Relaxed),
            looks: state.looks,
            look: state.look,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("not yet listening"),
            Self::Listening => formatter.write_str("listening"),
            Self::Away(why) => write!(formatter, "away: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, ready};
    use std::pin::Pin;

    use super::*;
    use crate::beginning::Beginning;
    use crate::memory::does::{Changed, Rows};
    use crate::memory::question::{Asker, Common, Form, Question, Rows as Known, Way, Wording};
    use crate::memory::{Invalidation, Said, Told, Unanswered, Windows};
    use crate::sharing::ask::Answer;
    use crate::whose::Whose;

    /// An answer about the row 5 of the table t.
    struct Five;

    impl Way for Five {
        fn ask<'a>(&'a self, _: &'a Question) -> Pin<Box<dyn Future<Output = Result<Said, Unanswered>> + Send + 'a>> {
            let (table, row): (Arc<str>, Arc<str>) = ("t".into(), "5".into());
            Box::pin(ready(Ok(Said {
                bytes: "five".into(),
                is_of_now: true,
                tables: ["t".into()].into(),
                rows: Some(Known {
                    table,
                    rows: vec![row],
                    are_there: true,
                }),
            })))
        }

        fn asker(&self) -> Asker {
            let (user, database) = ("ann".into(), "shop".into());
            Asker {
                whose: Whose { user, database },
                beginning: Beginning::of(&[]),
                settings: Arc::default(),
            }
        }
    }

    /// Whether it is known, and if not, it is from now on.
    async fn is_known(hearing: &Hearing) -> bool {
        let fresh = Duration::from_secs(60);
        let common = Common {
            company: 0,
            windows: Windows {
                fresh,
                ..Windows::default()
            },
            is_hinted: true,
            rule: None,
            place: "here".into(),
            time: None,
        };
        let form = Arc::new(Form::new(common, Five));
        match hearing
            .memory
            .ask(Question::new(form, Wording::Text("five".into()), None))
        {
            Told::Known(..) => true,
            Told::Asked(told) => {
                assert!(matches!(told.await, Ok(Answer::Done(_))));
                false
            }
        }
    }

    fn by(key: &str) -> Publishing {
        Publishing {
            since: String::new(),
            key: Key::parse(key),
        }
    }

    #[tokio::test]
    async fn what_is_told_by_another_key_than_is_known_is_told_of_any_row() {
        let hearing = hearing();
        let snapshot = Snapshot::parse("9:9:").unwrap();
        let covers = |lines| hearing.covers([("t".into(), by(lines))], &snapshot);
        let six = || Does::changes_row("t".into(), Some("6".into()));
        covers("23 a");
        let number = hearing.keys_number();
        is_known(&hearing).await;
        assert!(hearing.committed(1, &mut six(), number).is_ok() && is_known(&hearing).await);
        covers("23 b");
        assert!(!is_known(&hearing).await && is_known(&hearing).await);
        let mut does = six();
        hearing.committed(2, &mut does, number).unwrap();
        let (table, rows) = ("t".into(), Rows::Any);
        assert_eq!(does, Does::Changes(vec![Changed { table, rows }]));
        assert!(!is_known(&hearing).await);
    }

    fn hearing() -> Hearing {
        let memory = Memory::new(1_000, Invalidation::Own);
        let mut hearing = Hearing::new("here".into(), memory, Arc::default(), Listening::default());
        hearing.made -= Duration::from_secs(10);
        hearing
    }

    /// When the stream gets there is not when the log ended there.
    #[tokio::test]
    async fn the_lag_is_counted_from_when_the_log_ended_where_the_stream_is() {
        let hearing = hearing();
        let ago = |seconds| Instant::now() - Duration::from_secs(seconds);
        assert_eq!(hearing.lag(), None);
        hearing.aim(Position(10), ago(4));
        hearing.aim(Position(20), ago(2));
        hearing.is_at(Position(9));
        assert_eq!((hearing.lag(), hearing.is_behind()), (None, true));
        hearing.is_at(Position(19));
        assert_eq!(hearing.lag().unwrap().as_secs(), 4);
        hearing.is_at(Position(20));
        assert_eq!((hearing.lag().unwrap().as_secs(), hearing.is_behind()), (2, false));
        // What was passed before it was asked for.
        hearing.aim(Position(15), ago(1));
        assert_eq!(hearing.lag().unwrap().as_secs(), 1);
    }

    #[test]
    fn a_fence_holds_for_what_the_server_that_is_listened_to_has_seen() {
        let fence = Fence {
            commits: vec![10, 11],
            server: "this".into(),
        };
        for (snapshot, server, holds) in [
            ("12:12:", "this", true),
            ("10:12:11", "this", false),
            ("10:11:", "this", false),
            ("12:12:", "another", false),
            ("", "this", false),
        ] {
            assert_eq!(fence.holds(snapshot, server), holds, "{snapshot} {server}");
        }
    }

    #[tokio::test]
    async fn a_question_begins_only_where_it_is_heard() {
        let hearing = hearing();
        assert!(hearing.begin(&[], None).is_none(), "nothing was heard yet");
        hearing.aim(Position(1), Instant::now());
        hearing.is_at(Position(1));
        assert!(hearing.begin(&[], None).is_some());
        assert!(hearing.begin(&["t".into()], None).is_none(), "it is not covered");
        let snapshot = Snapshot::parse("9:9:").unwrap();
        hearing.covers([("t".into(), by("23 a"))], &snapshot);
        hearing.seen_by(&snapshot);
        for (lines, is_it) in [("23 a", true), ("20 a", false), ("23 b", false)] {
            let key = Key::parse(lines).unwrap();
            assert_eq!(
                hearing.begin(&["t".into()], Some(("t", &key))).is_some(),
                is_it,
                "{lines}"
            );
        }
        hearing.is_away("gone");
        assert!(hearing.begin(&[], None).is_some(), "it was heard a moment ago");
        let hears = |max_lag: Option<u64>| hearing.hears(&[], max_lag.map(Duration::from_secs));
        hearing.heard.store(8_001, Ordering::Release);
        assert!(!hears(None) && !hears(Some(1)) && hears(Some(5)), "two seconds ago");
        assert!(
            hearing.begin(&[], None).is_some(),
            "what it is to tell of that will be told"
        );
        hearing.begins("server".into());
        assert!(hearing.begin(&["t".into()], None).is_none());
    }
}
