//! Question: all that an answer hangs on, and what it takes to ask it.
//!
//! Promises: two questions are equal only if they ask the same text, but for comments, with the same parameters and formats, as the same user at
//! the same database, under the same settings, of the same columns as far as they were told before, and say the same of how old the answer may be. What questions of one [`Form`] have in common is
//! there once, for there are millions of them. Knows no cache.

use std::future::Future;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::does::ABSENT;
use super::windows::Windows;
use crate::beginning::Beginning;
use crate::columns::Columns;
use crate::figures::Counting;
use crate::settings::Settings;
use crate::sharing::unit::Steps;
use crate::statements::Statement;
use crate::whose::Whose;

/// The server's answer is nothing to be remembered: an error, or none at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered;

/// What the server has said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) bytes: Bytes,
    /// It has seen all changes that were known when it was asked for.
    pub(crate) is_of_now: bool,
    /// The tables whose rows it is of.
    pub(crate) tables: Arc<[Arc<str>]>,
    /// Of one of them it hangs on no rows but these.
    pub(crate) rows: Option<Rows>,
}

/// Rows of a table, as they are [called](super::key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) table: Arc<str>,
    pub(crate) rows: Vec<Arc<str>>,
    /// The answer shows that they are there.
    pub(crate) are_there: bool,
}

/// What is asked.
#[derive(Clone)]
pub(crate) struct Question {
    form: Arc<Form>,
    pub(crate) wording: Wording,
    /// What is counted of who asks it; the same question whoever does.
    pub(crate) caller: Option<Arc<Counting>>,
}

/// In which words it is asked.
#[derive(Clone)]
pub(crate) enum Wording {
    /// A text, without its comments.
    Text(Arc<str>),
    /// By the extended protocol.
    Bound {
        /// One that can be [told apart](Statement::told_apart_by).
        statement: Arc<Statement>,
        /// The body of its Bind behind the name.
        bound: Arc<[u8]>,
        steps: Steps,
        /// The columns that its rows are to have, as whoever asks it was told before; none where he is told anew.
        told: Option<Columns>,
    },
}

/// What many questions have in common.
pub(crate) struct Form {
    common: Common,
    way: Box<dyn Way>,
    /// Those of the tables that were last asked about.
    tags: Mutex<Tags>,
}

/// The tags of tables.
#[derive(Default, Clone)]
struct Tags {
    tables: Arc<[Arc<str>]>,
    /// Of each: that of what may hang on any of its rows, of what hangs on some, and of what hangs on some that may not be there.
    tags: Arc<[[Arc<str>; 3]]>,
}

/// By what forms of one statement are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Common {
    /// Tells pools and settings apart, and so users and databases.
    pub(crate) company: u64,
    pub(crate) windows: Windows,
    /// The statement itself says so, and no rule.
    pub(crate) is_hinted: bool,
    /// The rule that has room of its own for its answers, if one has.
    pub(crate) rule: Option<Arc<str>>,
    /// Where the database is.
    pub(crate) place: Arc<str>,
    /// The server may be at it for so long.
    pub(crate) time: Option<Duration>,
}

/// How the server is asked.
pub(crate) trait Way: Send + Sync {
    /// Asks it, and waits.
    fn ask<'a>(&'a self, question: &'a Question)
    -> Pin<Box<dyn Future<Output = Result<Said, Unanswered>> + Send + 'a>>;

    /// Who may ask like this.
    fn asker(&self) -> Asker;
}

/// Sessions of one user at one database that began like this and have set this.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) whose: Whose,
    pub(crate) beginning: Beginning,
    pub(crate) settings: Arc<Settings>,
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        let (common, others) = (self.common(), other.common());
        self.wording == other.wording
            && (Arc::ptr_eq(&self.form, &other.form)
                || (common.company == others.company && common.windows == others.windows))
    }
}

impl Eq for Question {}

impl Hash for Question {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.common().company);
        match &self.wording {
            Wording::Text(text) => text.hash(state),
            Wording::Bound {
                statement,
                bound,
                steps,
                told,
            } => {
                state.write_u64(statement.told_apart_by().map_or(0, |told| told.hash));
                bound.hash(state);
                steps.hash(state);
                told.hash(state);
            }
        }
    }
}

impl PartialEq for Wording {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (
                Self::Bound {
                    statement: one,
                    bound: one_bound,
                    steps: one_steps,
                    told: one_told,
                },
                Self::Bound {
                    statement: other,
                    bound: other_bound,
                    steps: other_steps,
                    told: other_told,
                },
            ) => {
                let ask_the_same = || {
                    one.types_described() == other.types_described()
                        && one
                            .told_apart_by()
                            .is_some_and(|told| Some(told) == other.told_apart_by())
                };
                let are_alike = (one_steps, one_told) == (other_steps, other_told);
                one_bound == other_bound && are_alike && (Arc::ptr_eq(one, other) || ask_the_same())
            }
            _ => false,
        }
    }
}

/// By what all answers are known that may hang on any row of a table of this name.
pub(super) fn tag_of(place: &str, table: &str) -> Arc<str> {
    // No name has a zero in it.
    [place, "\0", table].concat().into()
}

/// By what all others about that table are known: by the empty text, and by the row; those of rows that may not be there also by [`ABSENT`].
/// It is short, whatever the row's key is long, for there are millions: two rows that happen to be called alike are made old together, which costs
/// a fetch.
pub(super) fn tag_of_row(place: &str, table: &str, row: &str) -> Arc<str> {
    static CALLED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    format!("{:016x}", CALLED.hash_one((place, table, row))).into()
}

impl Form {
    pub(crate) fn new(common: Common, way: impl Way + 'static) -> Self {
        Self {
            common,
            way: Box::new(way),
            tags: Mutex::default(),
        }
    }

    pub(crate) fn common(&self) -> &Common {
        &self.common
    }

    fn tags_of(&self, tables: &Arc<[Arc<str>]>) -> Arc<[[Arc<str>; 3]]> {
        let mut known = self.tags.lock();
        if !Arc::ptr_eq(&known.tables, tables) {
            let place = &self.common.place;
            let tags = |table: &Arc<str>| {
                let of_row = |row| tag_of_row(place, table, row);
                [tag_of(place, table), of_row(""), of_row(ABSENT)]
            };
            *known = Tags {
                tables: Arc::clone(tables),
                tags: tables.iter().map(tags).collect(),
            };
        }
        Arc::clone(&known.tags)
    }
}

impl Question {
    pub(crate) fn new(form: Arc<Form>, wording: Wording, caller: Option<Arc<Counting>>) -> Self {
        Self { form, wording, caller }
    }

    pub(crate) fn common(&self) -> &Common {
        self.form.common()
    }

    pub(super) fn rule(&self) -> Option<&str> {
        self.common().rule.as_deref()
    }

    pub(super) fn windows(&self) -> Windows {
        self.common().windows
    }

    /// Whether more of it is told while its database is away.
    pub(crate) fn may_be_away(&self) -> bool {
        !self.common().windows.away.is_zero()
    }

    /// By what its answer is known: all of its database's, and of its tables', of which it hangs on no rows of one but these.
    pub(super) fn tags(&self, tables: &Arc<[Arc<str>]>, rows: Option<&Rows>) -> Vec<Arc<str>> {
        let place = &self.common().place;
        let mut tags = vec![Arc::clone(place)];
        for (table, [any, one, absent]) in tables.iter().zip(&*self.form.tags_of(tables)) {
            match rows.filter(|rows| rows.table == *table) {
                Some(rows) => {
                    tags.push(Arc::clone(one));
                    tags.extend(rows.rows.iter().map(|row| tag_of_row(place, table, row)));
                    tags.extend((!rows.are_there).then(|| Arc::clone(absent)));
                }
                None => tags.push(Arc::clone(any)),
            }
        }
        tags
    }

    /// How long it is.
    pub(super) fn bytes(&self) -> usize {
        match &self.wording {
            Wording::Text(text) => text.len(),
            Wording::Bound { statement, bound, .. } => {
                let told = statement.told_apart_by();
                told.map_or(0, |told| told.text.len() + told.types.len()) + bound.len()
            }
        }
    }

    /// Who may ask it.
    pub(super) fn asker(&self) -> Asker {
        self.form.way.asker()
    }

    /// Asks it, and waits.
    pub(super) async fn ask_the_server(&self) -> Result<Said, Unanswered> {
        self.form.way.ask(self).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_small() {
        assert!(size_of::<Question>() <= 48, "{}", size_of::<Question>());
    }
}
