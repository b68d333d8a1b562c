//! Memory: answers that are remembered for those who say how old theirs may be.
//!
//! Promises:
//! - Whoever says nothing of it, by a hint or a rule, is never answered from memory; nor is anything that is asked inside of a transaction.
//! - Who is answered gets the bytes that the server has sent to somebody who asked the very same: the same text but for comments, the same
//!   parameters in the same formats, as the same user at the same database, under the same settings.
//! - A question that is asked by many at once is asked of the server once. Errors are not remembered: who has none of an answer
//!   asks by himself, and is told by the server what is wrong.
//! - Who asks for what is so [from now on](Memory::ask_behind) is told what was asked of the server behind that, or what is known to be as new.
//! - An answer that its asker knows to be of before a change is told to nobody but those who have waited for it.
//! - Of what passes through this proxy to change rows, nothing that is older is served once its client has been told that it is done.
//!   An answer that hangs on one row by its key is not made old by what changes others. What it cannot tell which rows it changes, it takes for a change of all. Not seen is what passes elsewhere, or is changed by a function that
//!   a read does not call by name: then an answer is as old as its window allows.
//! - While the database cannot be asked, who has said so is told what was remembered for longer, but nothing that is known to be of before a change.
//! - All answers together take no more memory than the bytes that were given, by what they and their questions are long; those of a rule that has room of
//!   its own no more than that, and what others remember does not push them out.
//!
//! Inside: [`question`] is what is asked, whole, though not how: the [fill](crate::sharing) is sharing's; [`does`] what a statement does to rows, as far as that can be told; [`key`] how one row is called; [`watch`]
//! what a transaction has done; `hot` what is asked for most; `windows` how old an answer may be. The answers are in a
//! [`Cache`], or in one of a rule's own, whose windows, flights and tags these are.

pub(crate) mod does;
mod hot;
pub(crate) mod key;
pub(crate) mod question;
pub(crate) mod watch;
mod windows;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use forebay_cache::{Answer as Looked, Cache, CacheError, Fetched, HotKeys, State};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::does::{Changed, Does, Rows};
pub use self::hot::HotQuestion;
use self::hot::{Awaited, HALF_LIFE, watched};
pub(crate) use self::question::Asker;
use self::question::{Question, tag_of, tag_of_row};
pub(crate) use self::question::{Said, Unanswered};
use self::windows::Window;
pub(crate) use self::windows::{Windows, found_rows};
use crate::last_answer::Remembrance;
use crate::sharing::ask::Answer;

/// Beside its bytes an answer takes about so many: its place in the cache, its tags and the table of them, and what the allocator needs for each of
/// its six pieces. As `lab query-cache` measures it, of answers that hang on one row.
const OVERHEAD_BYTES: usize = 373;
/// The same of each row but the first: its tag, of 40 bytes, where that is named twice, and the allocator's share.
const ROW_BYTES: usize = 80;

/// Answers that are remembered, of all databases of a proxy. Clones are handles to the same.
#[derive(Clone)]
pub struct Memory(Arc<Shared>);

type Answers = Cache<Question, Bytes, Unanswered>;

struct Shared {
    answers: Answers,
    /// Those of rules that have room of their own, by their names.
    of_rules: BTreeMap<String, Answers>,
    invalidation: Invalidation,
    /// How many clients were answered since their database was away.
    away: AtomicU64,
    /// What was asked for most before.
    awaited: Mutex<Awaited>,
    /// Whether that is anything.
    awaits: AtomicBool,
    /// How much of it was asked anew.
    warmed: AtomicU64,
    /// What was counted before, of memory that this one stands in for.
    counted_before: Mutex<Remembered>,
}

/// By what answers are known to be old before their time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Invalidation {
    /// By what passes through this proxy.
    #[default]
    Own,
    /// By that, and by what the database itself tells of its changes.
    Stream(Listening),
    /// By nothing.
    None,
}

/// How a database is listened to for what it tells of its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// Nothing is served that could be older than this, whatever the windows are.
    pub max_lag: Duration,
    /// Somebody else's publication; none: one is made, and tables are added to it that are asked for.
    pub publication: Option<Arc<str>>,
    /// The slot may hold back so many bytes of the log.
    pub max_wal_bytes: u64,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            max_lag: Duration::from_secs(1),
            publication: None,
            max_wal_bytes: 1 << 30,
        }
    }
}

impl fmt::Display for Invalidation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Own => "own",
            Self::Stream(_) => "stream",
            Self::None => "none",
        })
    }
}

/// What becomes of a question.
pub(crate) enum Told {
    /// It is known, and was remembered like this.
    Known(Bytes, Remembrance),
    /// It is asked.
    Asked(oneshot::Receiver<Answer>),
}

/// What is counted of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remembered {
    /// Answers that are there.
    pub answers: u64,
    /// What they take, in bytes, and may take.
    pub bytes: u64,
    /// The same, at most.
    pub max_bytes: u64,
    /// Clients that were answered from memory: by one that is fresh, or stale.
    pub fresh: u64,
    /// The same by one that is stale.
    pub stale: u64,
    /// Clients that were not.
    pub missed: u64,
    /// Clients that were told what was remembered because their database was away.
    pub away: u64,
    /// Answers that others have pushed out.
    pub evicted: u64,
    /// Questions that were asked anew because they had been [asked for most](Memory::hot) before.
    pub warmed: u64,
}

impl Shared {
    /// Where the answer to this is.
    fn answers(&self, question: &Question) -> &Answers {
        let of_rule = question.rule().and_then(|rule| self.of_rules.get(rule));
        of_rule.unwrap_or(&self.answers)
    }

    fn all(&self) -> impl Iterator<Item = &Answers> {
        std::iter::once(&self.answers).chain(self.of_rules.values())
    }

    /// What was remembered of this is not served from now on.
    fn forget(&self, tag: &str) {
        for answers in self.all() {
            drop(answers.invalidate_tag(tag));
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memory")
            .field("invalidation", &self.0.invalidation)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Memory {
    /// Whether they are the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Memory {}

impl Memory {
    /// An empty one, for so many bytes.
    #[must_use]
    pub fn new(max_bytes: u64, invalidation: Invalidation) -> Self {
        Self::with_rooms(max_bytes, invalidation, [])
    }

    /// The same, where each of these rules has room for so many of the bytes, and all else has the rest.
    #[must_use]
    pub fn with_rooms(
        max_bytes: u64,
        invalidation: Invalidation,
        rooms: impl IntoIterator<Item = (String, u64)>,
    ) -> Self {
        let mut rest = max_bytes;
        let mut of_rules = BTreeMap::new();
        for (rule, bytes) in rooms {
            let bytes = bytes.min(rest);
            rest -= bytes;
            of_rules.insert(rule, room(bytes));
        }
        Self(Arc::new(Shared {
            answers: room(rest),
            of_rules,
            invalidation,
            away: AtomicU64::new(0),
            awaited: Mutex::new(Awaited::new(Vec::new())),
            awaits: AtomicBool::new(false),
            warmed: AtomicU64::new(0),
            counted_before: Mutex::default(),
        }))
    }

    /// The answer, if it is known, or else what will be told once somebody has asked.
    pub(crate) fn ask(&self, question: Question) -> Told {
        let shared = Arc::clone(&self.0);
        let mut get = Box::pin(async move { shared.answers(&question).lookup(&question).await });
        let first = get.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let first = match first {
            Poll::Ready(Ok(Looked {
                value: Some(said),
                state,
                age,
            })) => {
                let is_stale = state != State::Fresh;
                return Told::Known(said, Remembrance { age, is_stale });
            }
            first => first,
        };
        let (answer, told) = oneshot::channel();
        match first {
            Poll::Ready(outcome) => drop(answer.send(answer_of(outcome.map(|looked| looked.value)))),
            Poll::Pending => drop(tokio::spawn(async move {
                let outcome = get.await.map(|looked| looked.value);
                // Whoever has gone wants none.
                drop(answer.send(answer_of(outcome)));
            })),
        }
        Told::Asked(told)
    }

    /// The same for who wants what is so from now on. `is_told`: of what was so until now all changes are told, so that an answer that is fresh will do. It
    /// is asked anew otherwise, with nobody who asks already, and remembered for others.
    pub(crate) fn ask_behind(&self, question: Question, is_told: bool) -> Told {
        match is_told.then(|| self.told_if_fresh(&question)).flatten() {
            Some((said, remembrance)) => Told::Known(said, remembrance),
            None => Told::Asked(self.ask_anew(question)),
        }
    }

    /// The answer if it is known and fresh. Nothing is asked.
    pub(crate) fn told_if_fresh(&self, question: &Question) -> Option<(Bytes, Remembrance)> {
        let looked = self.0.answers(question).lookup_if_fresh(question)?;
        let (age, is_stale) = (looked.age, false);
        Some((looked.value?, Remembrance { age, is_stale }))
    }

    /// The same whatever is known, and whoever asks it already: what will be told by the server itself. It is remembered.
    pub(crate) fn ask_anew(&self, question: Question) -> oneshot::Receiver<Answer> {
        let shared = Arc::clone(&self.0);
        let (answer, told) = oneshot::channel();
        tokio::spawn(async move {
            let outcome = shared.answers(&question).refresh(&question).await;
            // Whoever has gone wants none.
            drop(answer.send(answer_of(outcome)));
        });
        told
    }

    /// Whether there is an answer for as long as its database cannot be asked: of before no change that is known, and no older than was said for that.
    pub(crate) fn may_tell_while_away(&self, question: &Question) -> bool {
        self.recall(question).is_some()
    }

    /// That answer, which is told now.
    pub(crate) fn tell_while_away(&self, question: &Question) -> Option<(Bytes, Remembrance)> {
        let (said, remembrance, _) = self.recall(question)?;
        self.0.away.fetch_add(1, Ordering::Relaxed);
        Some((said, remembrance))
    }

    /// The same, if it is too old to be [told anyway](Self::ask).
    pub(crate) fn tell_if_away_only(&self, question: &Question) -> Option<(Bytes, Remembrance)> {
        let (_, _, is_of_all) = self.recall(question)?;
        (!is_of_all).then(|| self.tell_while_away(question)).flatten()
    }

    /// The answer that is told while its database cannot be asked, and whether it is told otherwise, too.
    fn recall(&self, question: &Question) -> Option<(Bytes, Remembrance, bool)> {
        let known = self.0.answers(question).known(question)?;
        let (fresh, stale) = (known.details.fresh_for?, known.details.stale_for?);
        let of_all = fresh.saturating_add(stale);
        let most = of_all.saturating_add(question.windows().away);
        let said = known.value.filter(|_| known.age < most)?;
        let (age, is_stale) = (known.age, known.age >= fresh);
        Some((said, Remembrance { age, is_stale }, age < of_all))
    }

    /// Rows were changed at this place, or may have been: what was remembered of them before is not served from now on.
    pub(crate) fn has_changed(&self, place: &Arc<str>, does: &Does) {
        if self.0.invalidation == Invalidation::None {
            return;
        }
        match does {
            Does::Nothing => {}
            Does::Changes(tables) => {
                for Changed { table, rows } in tables {
                    self.0.forget(&tag_of(place, table));
                    match rows {
                        Rows::Any => self.0.forget(&tag_of_row(place, table, "")),
                        Rows::Only(rows) => rows
                            .iter()
                            .for_each(|row| self.0.forget(&tag_of_row(place, table, row))),
                    }
                }
            }
            Does::Anything => self.0.forget(place),
        }
    }

    /// What is asked for most, the most first, and what was before a start and [is awaited](Self::await_again) still. About one question for 128 KiB of memory
    /// is watched, and at most 10,000.
    #[must_use]
    pub fn hot(&self) -> Vec<HotQuestion> {
        let hot = self.0.all().flat_map(|answers| answers.hot_keys(usize::MAX).keys);
        let hot = hot.filter_map(|(question, uses)| HotQuestion::of(&question, uses));
        self.0.awaited.lock().with(hot.collect(), self.watched())
    }

    /// How many questions are watched.
    fn watched(&self) -> usize {
        self.0.all().map(|answers| watched(answers.stats().capacity)).sum()
    }

    /// These are asked anew, at their database, as soon as the first session comes that began like the one that had asked each, and has set the same. They replace
    /// those that were said before. For what may be older the window is each question's own, or its rule's as it is then. No more are awaited than are watched: the
    /// first of them.
    pub fn await_again(&self, mut hot: Vec<HotQuestion>) {
        hot.truncate(self.watched());
        let mut awaited = self.0.awaited.lock();
        *awaited = Awaited::new(hot);
        self.0.awaits.store(!awaited.is_empty(), Ordering::Release);
    }

    /// What is awaited of this asker, who has come.
    pub(crate) fn awaited_of(&self, asker: &Asker) -> Vec<HotQuestion> {
        if !self.0.awaits.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut awaited = self.0.awaited.lock();
        let taken = awaited.take(asker);
        self.0.awaits.store(!awaited.is_empty(), Ordering::Release);
        taken
    }

    /// Asks it, for nobody, where no answer is known; it goes on from so many uses.
    pub(crate) async fn warm(&self, question: Question, uses: f64) {
        let shared = Arc::clone(&self.0);
        let keys = vec![(question.clone(), uses)];
        let warmed = shared.answers(&question).warm(HotKeys { keys }, |_| {}).await;
        shared.warmed.fetch_add(warmed.present as u64, Ordering::Relaxed);
    }

    /// Who is a member of which role has changed, or what a role may, which all databases of a server share; or which database it is that is called so.
    pub(crate) fn all_may_be_others(&self) {
        if self.0.invalidation != Invalidation::None {
            self.0.all().for_each(|answers| drop(answers.clear()));
        }
    }

    /// It stands in for that one, of which no more than what is counted goes on.
    pub fn goes_on_from(&self, before: &Self) {
        *self.0.counted_before.lock() = before.counts();
    }

    /// What is counted.
    #[must_use]
    pub fn counts(&self) -> Remembered {
        let mut all = Remembered {
            // Of now, and not of ever.
            answers: 0,
            bytes: 0,
            max_bytes: 0,
            ..*self.0.counted_before.lock()
        };
        all.away += self.0.away.load(Ordering::Relaxed);
        all.warmed += self.0.warmed.load(Ordering::Relaxed);
        for stats in self.0.all().map(Cache::stats) {
            all.answers += stats.entries;
            all.bytes += stats.weight;
            all.max_bytes += stats.capacity;
            all.fresh += stats.hits_fresh;
            all.stale += stats.hits_stale;
            all.missed += stats.misses;
            all.evicted += stats.evictions;
        }
        all
    }

    /// By what answers are known to be old.
    #[must_use]
    pub fn invalidation(&self) -> &Invalidation {
        &self.0.invalidation
    }
}

/// Room for answers of so many bytes.
fn room(max_bytes: u64) -> Answers {
    let answers = Cache::builder(|question: Question| async move {
        let said = question.ask_the_server().await?;
        if !said.is_of_now && question.may_be_away() {
            // What is known already may be of use still, and is not replaced by what is not to be told.
            return Err(Unanswered);
        }
        let window = match said.is_of_now {
            true => question.windows().of(&said.bytes, rand::random()),
            // For those alone who have waited for it.
            false => Window::NONE,
        };
        let tags = question.tags(&said.tables, said.rows.as_ref());
        let more = said.rows.map_or(0, |rows| rows.rows.len().saturating_sub(1));
        let bytes = weight(&question, Some(&said.bytes));
        let mut fetched = Fetched::of(said.bytes).fresh_for(window.fresh).stale_for(window.stale);
        if more > 0 {
            fetched = fetched.weight(bytes.saturating_add(u32::try_from(more * ROW_BYTES).unwrap_or(u32::MAX)));
        }
        Ok::<_, Unanswered>(tags.into_iter().fold(fetched, Fetched::tag))
    });
    // How long the server may be at it is for the client's time limit to say.
    let answers = answers.capacity(max_bytes).weigher(weight);
    let answers = answers.hot_keys(watched(max_bytes), HALF_LIFE);
    answers.no_fetch_timeout().build()
}

/// How many bytes an answer takes that hangs on one row, or on whole tables.
fn weight(question: &Question, said: Option<&Bytes>) -> u32 {
    let bytes = question.bytes() + said.map_or(0, Bytes::len) + OVERHEAD_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn answer_of(outcome: Result<Option<Bytes>, CacheError<Unanswered>>) -> Answer {
    match outcome {
        Ok(Some(said)) => Answer::Done(said),
        // He is told by the server itself what is the matter.
        Ok(None) | Err(_) => Answer::Alone(false),
    }
}
