//! Moment: strings that stand for the moment at which the server reads them, as `'now'` does.
//!
//! Promises: none is missed, in whatever quotes it stands; what only looks like one is taken for one.

/// Words that dates and times begin with which hang on that moment.
const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// Whether a string of the text may stand for the moment at which the text is read.
#[must_use]
pub fn names_a_moment(sql: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

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
