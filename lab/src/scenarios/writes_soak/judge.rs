//! Whether what callers were told is what the table holds.
//!
//! Promises: an acknowledged row is there exactly once, under the id that was told; a failed one is not; one of unknown outcome
//! is there once at most; nothing is there that nobody wrote; rows of one key stand in the order in which they were written.

use std::collections::HashMap;

use super::database::Row;
use super::traffic::{Call, Told};

/// What was told, and what of it is wrong.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) acknowledged: u64,
    pub(super) failed: u64,
    pub(super) unknown: u64,
    pub(super) wrong: Vec<String>,
}

/// `rows` in the order of their ids.
pub(super) fn judge(calls: &[Call], rows: &[Row]) -> Verdict {
    let mut ids: HashMap<i64, Vec<i64>> = HashMap::with_capacity(rows.len());
    for row in rows {
        ids.entry(row.tag).or_default().push(row.id);
    }
    let mut verdict = Verdict::default();
    for Call { tag, told } in calls {
        let there = ids.remove(tag).unwrap_or_default();
        let is_right = match told {
            Told::Acknowledged(id) => {
                verdict.acknowledged += 1;
                there.len() == 1 && id.is_none_or(|id| id == there[0])
            }
            Told::Failed => {
                verdict.failed += 1;
                there.is_empty()
            }
            Told::Unknown => {
                verdict.unknown += 1;
                there.len() <= 1
            }
            Told::Wrong(_) => false,
        };
        if !is_right {
            verdict
                .wrong
                .push(format!("call {tag} was told {told:?}, its rows have the ids {there:?}"));
        }
    }
    let strangers = ids.into_iter();
    verdict
        .wrong
        .extend(strangers.map(|(tag, ids)| format!("nobody has written {tag}, which has the ids {ids:?}")));
    let mut last: HashMap<i64, i64> = HashMap::new();
    for row in rows {
        let Some((lane, place)) = row.ordered else { continue };
        if let Some(before) = last.insert(lane, place)
            && before >= place
        {
            verdict
                .wrong
                .push(format!("of key {lane}, {place} came after {before}: {row:?}"));
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tag: i64, told: Told) -> Call {
        Call { tag, told }
    }

    fn row(id: i64, tag: i64) -> Row {
        Row { id, tag, ordered: None }
    }

    #[test]
    fn what_is_right_is_counted() {
        let calls = [
            call(1, Told::Acknowledged(Some(11))),
            call(2, Told::Acknowledged(None)),
            call(3, Told::Failed),
            call(4, Told::Unknown),
            call(5, Told::Unknown),
        ];
        let verdict = judge(&calls, &[row(11, 1), row(12, 2), row(13, 5)]);
        assert_eq!((verdict.acknowledged, verdict.failed, verdict.unknown), (2, 1, 2));
        assert!(verdict.wrong.is_empty(), "{:?}", verdict.wrong);
    }

    #[test]
    fn everything_wrong_is_seen() {
        let wrong = |calls: &[Call], rows: &[Row]| judge(calls, rows).wrong.len();
        let acknowledged = || call(1, Told::Acknowledged(Some(11)));
        assert_eq!(wrong(&[acknowledged()], &[]), 1, "lost");
        assert_eq!(wrong(&[acknowledged()], &[row(11, 1), row(12, 1)]), 1, "doubled");
        assert_eq!(wrong(&[acknowledged()], &[row(12, 1)]), 1, "another's id");
        assert_eq!(wrong(&[call(1, Told::Failed)], &[row(11, 1)]), 1, "failed, and there");
        assert_eq!(
            wrong(&[call(1, Told::Unknown)], &[row(11, 1), row(12, 1)]),
            1,
            "doubled"
        );
        assert_eq!(wrong(&[], &[row(11, 1)]), 1, "nobody's");
        assert_eq!(wrong(&[call(1, Told::Wrong(String::new()))], &[]), 1);
        let ordered = |id, tag, place| Row {
            ordered: Some((7, place)),
            ..row(id, tag)
        };
        let calls = [call(1, Told::Unknown), call(2, Told::Unknown)];
        assert_eq!(wrong(&calls, &[ordered(1, 1, 1), ordered(2, 2, 2)]), 0);
        assert_eq!(wrong(&calls, &[ordered(1, 1, 2), ordered(2, 2, 1)]), 1, "out of order");
    }
}
