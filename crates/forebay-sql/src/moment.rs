//! Moment: strings that stand for the moment at which the server reads them, as `'now'` does.
//!
//! Promises: none is missed, in whatever quotes it stands; what only looks like one is taken for one.

use super::dialect::Dialect;
use super::syntax::continues_a_string;

/// Words that dates and times begin with which hang on that moment.
const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// Whether a string of the text may stand for the moment at which the text is read.
#[must_use]
pub fn names_a_moment(sql: &str) -> bool {
    if may_continue_a_string(sql) {
        return true;
    }
    let quotes = sql.match_indices(['\'', '$']);
    let mut behind = quotes.map(|(at, _)| sql[at + 1..].trim_start());
    behind.any(|text| {
        let begins = |word: &&str| {
            text.get(..word.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        WORDS.iter().any(begins)
    })
}

/// Whether a string of the text may have such a word anywhere in it, as in `'{now}'` or `'[today,)'`; what only looks like a string counts, too.
#[must_use]
pub fn mentions_a_moment(sql: &str) -> bool {
    let Some(first) = sql.find(['\'', '$']) else {
        return false;
    };
    if may_continue_a_string(sql) {
        return true;
    }
    // What is within quotes of its own, of a range or an array, may have some inside of it: `'[n"o"w,)'`.
    let text = sql[first..].to_ascii_lowercase().replace('"', "");
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    WORDS.iter().any(|word| {
        let mut found = text.match_indices(word);
        found.any(|(at, word)| {
            let (before, behind) = (&text.as_bytes()[..at], &text.as_bytes()[at + word.len()..]);
            !is_letter(before.last()) && !is_letter(behind.first())
        })
    })
}

/// Whether a string may go on behind the end of a line, as `'no'` and `'w'` on the next one are `'now'`. Where a setting says what a backslash is, all quotes
/// count that may end one and begin the next, with nothing but a comment between them.
fn may_continue_a_string(sql: &str) -> bool {
    let may_be = |(at, _): (usize, &str)| {
        let mut rest = sql[at + 1..].trim_start();
        while let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find(['\n', '\r']).map_or("", |end| comment[end..].trim_start());
        }
        rest.starts_with('\'')
    };
    sql.contains(['\n', '\r'])
        && (continues_a_string(Dialect::Postgres, sql) || (sql.contains('\\') && sql.match_indices('\'').any(may_be)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_missed_within_a_string() {
        for sql in [
            "SELECT 'now'::timestamptz",
            "SELECT timestamptz 'no'\n'w'",
            "SELECT timestamptz 'no' -- it goes on\n \t'w'",
            "SELECT at FROM t WHERE at = ANY('{2020-01-01,NOW}')",
            "SELECT E'\\'', timestamptz 'no'\n'w'",
            "SELECT '[today,)'::tstzrange",
            "SELECT $a$(1,tomorrow)$a$::pair",
            "SELECT '[n\"o\"w,)'::tstzrange",
        ] {
            assert!(mentions_a_moment(sql), "{sql}");
        }
        for sql in [
            "SELECT now FROM t",
            "SELECT 'known', 'snow', 'nowhere'",
            "SELECT $1",
            "SELECT string_agg(a, '\n')",
            "SELECT 'no',\n'w'",
            "",
        ] {
            assert!(!mentions_a_moment(sql), "{sql}");
        }
    }

    #[test]
    fn none_is_missed() {
        for sql in [
            "SELECT 'now'::timestamptz",
            "SELECT date ' Today '",
            "SELECT E'NOW', 1",
            "SELECT $a$yesterday$a$",
            "SELECT 'x', 'tomorrow allballs'",
        ] {
            assert!(names_a_moment(sql), "{sql}");
        }
        for sql in ["SELECT now()", "SELECT 'known'", "SELECT '', $1", "SELECT 'n\u{f6}w'"] {
            assert!(!names_a_moment(sql), "{sql}");
        }
    }
}
