//! Hot: the questions that are asked for most, as they are written down and asked anew behind a start.
//!
//! Promises: what is written says all that tells the question from others, and none of its answer: what was so before a start need not be so behind it. What
//! does not read as what some client could ask is nobody's question. Whoever asks it anew is let ask it himself: it is his who began alike and has set the same.
//!
//! Knows no file.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::BytesMut;
use serde::{Deserialize, Serialize};

use super::question::{Asker, Question, Wording};
use crate::columns::Columns;
use crate::frames::put;
use crate::sharing::unit::{Step, Steps, UNIT_BYTES_MAX};
use crate::statements::text_of;

/// Of a question that nobody asks any more half the uses are left after so long.
pub(super) const HALF_LIFE: Duration = Duration::from_secs(600);
/// So many are watched, at most.
const HOT_MAX: u64 = 10_000;
/// And no more than one for so many bytes of memory: what they take beside it, at the longest, is an eighth of it.
const BYTES_EACH: u64 = 8 * UNIT_BYTES_MAX as u64;

/// How many are watched where there is memory for so many bytes.
pub(super) fn watched(max_bytes: u64) -> usize {
    usize::try_from((max_bytes / BYTES_EACH).clamp(1, HOT_MAX)).expect("it is not that large")
}

/// A question that was asked for much, and by whom. Plain data, to be written down; values of parameters are in it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct HotQuestion {
    /// About how often it was asked of late.
    pub(crate) uses: f64,
    #[serde(flatten)]
    pub(crate) asked: Asked,
}

/// What was asked.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Asked {
    user: String,
    database: String,
    /// What the session began with.
    began: Vec<(String, String)>,
    /// What it had set.
    set: Vec<(String, String)>,
    /// The text, with what its comments ask.
    text: String,
    /// By the extended protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<Executed>,
}

/// What came with a text by the extended protocol.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Executed {
    /// Of parameters, as they were given.
    types: Vec<u32>,
    /// What was bound, in Base64.
    values: String,
    /// A letter for each message.
    messages: String,
    /// For so many rows; all where it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    rows_max: u16,
    /// The columns that those who asked it had been told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Columns>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is serde that passes it")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl fmt::Debug for HotQuestion {
    /// Without what was asked.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut question = formatter.debug_struct("HotQuestion");
        question.field("uses", &self.uses).finish_non_exhaustive()
    }
}

impl HotQuestion {
    pub(super) fn of(question: &Question, uses: f64) -> Option<Self> {
        let Asker {
            whose,
            beginning,
            settings,
        } = question.asker();
        let common = question.common();
        let (text, bound) = match &question.wording {
            // What a planner is told is a part of it, with all other comments.
            Wording::Text(text) if text.contains("/*+") => (text.to_string(), None),
            Wording::Text(text) if common.is_hinted => (format!("{} {text}", common.windows.as_hint()), None),
            Wording::Text(text) => (text.to_string(), None),
            Wording::Bound {
                statement,
                bound,
                steps,
                told,
            } => {
                let text = text_of(statement.definition());
                // Behind the text, its end and the count.
                let types = statement.definition().get(text.len() + 3..)?.chunks_exact(4);
                let bound = Executed {
                    types: types
                        .map(|oid| u32::from_be_bytes(oid.try_into().expect("four")))
                        .collect(),
                    values: BASE64.encode(bound),
                    messages: steps.iter().map(Step::letter).collect(),
                    rows_max: steps.rows_max(),
                    told: *told,
                };
                (String::from_utf8(text.to_vec()).ok()?, Some(bound))
            }
        };
        let asked = Asked {
            user: whose.user.to_string(),
            database: whose.database.to_string(),
            began: beginning.settings().to_vec(),
            set: settings
                .all()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            text,
            bound,
        };
        Some(Self { uses, asked })
    }

    fn is_of(&self, asker: &Asker) -> bool {
        let Asker {
            whose,
            beginning,
            settings,
        } = asker;
        let asked = &self.asked;
        let set = asked.set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        (&*asked.user, &*asked.database) == (&*whose.user, &*whose.database)
            && asked.began == beginning.settings()
            && set.eq(settings.all())
    }

    /// The columns that those who asked it had been told.
    pub(crate) fn told(&self) -> Option<Columns> {
        self.asked.bound.as_ref()?.told
    }

    /// The messages that ask it, and what its statement is prepared by, if it is one; none where no client could send that.
    pub(crate) fn messages(&self) -> Option<(BytesMut, Option<Vec<u8>>)> {
        let mut out = BytesMut::new();
        let text = self.asked.text.as_bytes();
        if text.contains(&0) {
            return None;
        }
        let Some(executed) = &self.asked.bound else {
            put(&mut out, b'Q', &[text, &[0]]);
            return Some((out, None));
        };
        let count = u16::try_from(executed.types.len()).ok()?.to_be_bytes();
        let types: Vec<u8> = executed.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        let definition = [text, &[0], &count, &types].concat();
        let bound = BASE64.decode(&executed.values).ok()?;
        for letter in executed.messages.chars() {
            match Step::of_letter(letter)? {
                Step::Parse => put(&mut out, b'P', &[&[0], &definition]),
                Step::DescribeStatement => put(&mut out, b'D', &[b"S\0"]),
                Step::Bind => put(&mut out, b'B', &[&[0, 0], &bound]),
                Step::DescribePortal => put(&mut out, b'D', &[b"P\0"]),
                Step::Execute => put(
                    &mut out,
                    b'E',
                    &[&Steps::default().for_rows(executed.rows_max).execute()],
                ),
            }
        }
        put(&mut out, b'S', &[]);
        Some((out, Some(definition)))
    }
}

/// Questions that were hot before, until those come who may ask them.
#[derive(Debug)]
pub(super) struct Awaited {
    questions: Vec<HotQuestion>,
    since: Instant,
}

impl Awaited {
    pub(super) fn new(questions: Vec<HotQuestion>) -> Self {
        let since = Instant::now();
        Self { questions, since }
    }

    /// Those of this asker, who has come, most used first.
    pub(super) fn take(&mut self, asker: &Asker) -> Vec<HotQuestion> {
        let mut taken: Vec<_> = self
            .questions
            .extract_if(.., |question| question.is_of(asker))
            .collect();
        taken.sort_by(|one, other| other.uses.total_cmp(&one.uses));
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// These, each once, and those that are awaited still and are none of them: the ones with the most uses, at most so many.
    pub(super) fn with(&self, hot: Vec<HotQuestion>, most: usize) -> Vec<HotQuestion> {
        let mut all: HashMap<Asked, f64> = HashMap::with_capacity(hot.len());
        for HotQuestion { uses, asked } in hot {
            // What tells two apart may be of no matter behind a start: the rules of before a reload.
            *all.entry(asked).or_default() += uses;
        }
        let left = (-self.since.elapsed().as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2();
        for HotQuestion { uses, asked } in &self.questions {
            all.entry(asked.clone()).or_insert(uses * left);
        }
        let mut hot: Vec<_> = all
            .into_iter()
            .map(|(asked, uses)| HotQuestion { uses, asked })
            .collect();
        hot.sort_by(|one, other| other.uses.total_cmp(&one.uses));
        hot.truncate(most);
        hot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hot(text: &str, uses: f64) -> HotQuestion {
        let (user, database) = ("ann".to_owned(), "shop".to_owned());
        let asked = Asked {
            user,
            database,
            began: Vec::new(),
            set: Vec::new(),
            text: text.to_owned(),
            bound: None,
        };
        HotQuestion { uses, asked }
    }

    #[test]
    fn what_is_awaited_still_is_written_down_with_what_is_left_of_its_uses() {
        let mut awaited = Awaited::new(vec![hot("a", 100.0), hot("b", 64.0), hot("c", 8.0)]);
        awaited.since = Instant::now().checked_sub(HALF_LIFE * 2).unwrap();
        let all = awaited.with(vec![hot("a", 4.0), hot("d", 3.0), hot("a", 6.0)], 3);
        let told: Vec<_> = all.iter().map(|hot| (&*hot.asked.text, hot.uses.round())).collect();
        assert_eq!(told, [("b", 16.0), ("a", 10.0), ("d", 3.0)]);
    }

    #[test]
    fn no_value_is_shown() {
        assert_eq!(
            format!("{:?}", hot("SELECT 'secret'", 1.0)),
            "HotQuestion { uses: 1.0, .. }"
        );
    }

    #[test]
    fn so_many_are_watched_as_memory_is_large() {
        assert_eq!([1 << 10, 8 << 20, 1 << 40].map(watched), [1, 64, 10_000]);
    }

    #[test]
    fn what_no_client_could_send_is_no_question() {
        let executed = |values: &str, messages: &str| {
            let mut hot = hot("SELECT $1", 1.0);
            let (types, values, messages) = (vec![23], values.to_owned(), messages.to_owned());
            hot.asked.bound = Some(Executed {
                types,
                values,
                messages,
                rows_max: 0,
                told: None,
            });
            hot
        };
        assert!(hot("SELECT 1\0", 1.0).messages().is_none());
        assert!(executed("AAAA", "PBX").messages().is_none() && executed("?", "PBE").messages().is_none());
        let (messages, definition) = executed("AAAA", "PBE").messages().unwrap();
        assert_eq!(definition.unwrap(), b"SELECT $1\0\0\x01\0\0\0\x17");
        assert!(crate::sharing::unit::unit(&messages).is_some());
    }
}
