//! Hints: what a comment in a statement asks of whoever carries it, as in `/* batch:10 */`.
//!
//! Promises: only comments are read, never strings or names that look like them; what is no hint is a comment. A hint that stands twice holds
//! as it stands first, and of two positions the later one. Who a [`Caller`] is takes no memory, and no second reading.

use std::time::Duration;

use super::dialect::Dialect;
use super::lexer::Lexer;

/// Nobody waits longer for company, whatever is asked.
const BATCH_MAX: Duration = Duration::from_secs(1);
/// Nothing is remembered for longer, whatever is asked: a year.
const REMEMBERED_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Of a caller's file so many characters are read, its last.
const FILE_CHARS_MAX: usize = 100;

/// Where in a program a statement is asked, as its comments say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller<'sql> {
    /// `file:app.php`: up to a blank, a comma or a star; of one that is long the end.
    pub file: &'sql str,
    /// `line:42`.
    pub line: Option<u32>,
}

/// What the comments of one text ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// `batch:N`: waits up to so many milliseconds for company; with 0 it has none.
    pub batch: Option<Duration>,
    /// `ttl:N`: may be answered with what was answered up to so many seconds ago; with 0 it may not.
    pub ttl: Option<Duration>,
    /// `stale:N`: for so many seconds beyond that also, while it is asked again.
    pub stale: Option<Duration>,
    /// `after:X/Y`: its answer is to have seen all that was committed before this position of the database's log.
    pub after: Option<u64>,
    /// `missing:N`: an answer without rows may be told for so many seconds in place of both; with 0 it may not.
    pub missing: Option<Duration>,
    /// `away:N`: for so many seconds beyond that also, while the database cannot be asked.
    pub away: Option<Duration>,
}

/// The hints in the comments of a text of PostgreSQL's.
#[must_use]
pub fn hints(sql: &str) -> Hints {
    hints_and_caller(sql).0
}

/// The same, and who asks it, if that is said.
#[must_use]
pub fn hints_and_caller(sql: &str) -> (Hints, Option<Caller<'_>>) {
    let mut read = Read::default();
    // Mostly there is no comment at all.
    if sql.contains("/*") {
        read.text(sql);
    }
    let line = read.line;
    (read.hints, read.file.map(|file| Caller { file, line }))
}

/// What was read until now.
#[derive(Default)]
struct Read<'sql> {
    hints: Hints,
    file: Option<&'sql str>,
    line: Option<u32>,
}

impl<'sql> Read<'sql> {
    fn text(&mut self, sql: &'sql str) {
        let mut end = 0;
        for token in Lexer::new(Dialect::Postgres, sql) {
            let Ok(token) = token else { return };
            let begin = token.text.as_ptr().addr() - sql.as_ptr().addr();
            self.between(&sql[end..begin]);
            end = begin + token.text.len();
        }
        self.between(&sql[end..]);
    }

    /// What stands between two tokens: blanks and comments.
    fn between(&mut self, between: &'sql str) {
        let mut rest = between;
        while let Some(at) = rest.find(['/', '-']) {
            rest = &rest[at..];
            if rest.starts_with("--") {
                rest = rest.find('\n').map_or("", |line| &rest[line..]);
                continue;
            }
            let Some(length) = comment_length(rest) else { return };
            self.comment(&rest[..length]);
            rest = &rest[length..];
        }
    }

    fn comment(&mut self, comment: &'sql str) {
        let hints = &mut self.hints;
        let ends = |letter: char| letter.is_whitespace() || letter.is_control() || matches!(letter, ',' | ';' | '*');
        for word in comment.split(ends) {
            let Some((name, said)) = word.split_once(':') else {
                continue;
            };
            if name == "after" {
                hints.after = hints.after.max(position(said));
                continue;
            }
            if name == "file" {
                self.file = self.file.or(Some(the_end_of(said)).filter(|file| !file.is_empty()));
                continue;
            }
            let Some(number) = number(said) else { continue };
            let (hint, asked, most) = match name {
                "batch" => (&mut hints.batch, Duration::from_millis(number), BATCH_MAX),
                "ttl" => (&mut hints.ttl, Duration::from_secs(number), REMEMBERED_MAX),
                "stale" => (&mut hints.stale, Duration::from_secs(number), REMEMBERED_MAX),
                "line" => {
                    self.line = self.line.or(u32::try_from(number).ok());
                    continue;
                }
                "missing" => (&mut hints.missing, Duration::from_secs(number), REMEMBERED_MAX),
                "away" => (&mut hints.away, Duration::from_secs(number), REMEMBERED_MAX),
                _ => continue,
            };
            hint.get_or_insert(asked.min(most));
        }
    }
}

/// Of digits alone.
fn number(text: &str) -> Option<u64> {
    let is_one = text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_one)
}

/// Of its form `X/Y`, in hexadecimal.
fn position(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |text: &str| {
        let is_one = text.len() <= 8 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        u64::from_str_radix(text, 16).ok().filter(|_| is_one)
    };
    Some(part(high)? << 32 | part(low)?)
}

/// So much of a file's name as is read.
fn the_end_of(file: &str) -> &str {
    let begin = file.char_indices().rev().nth(FILE_CHARS_MAX - 1);
    begin.map_or(file, |(begin, _)| &file[begin..])
}

/// Of the comment that begins here; comments in it are part of it.
fn comment_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find(['/', '*'])) {
        at += next;
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth = depth.checked_sub(1)?;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sql: &str) -> Option<u128> {
        hints(sql).batch.map(|batch| batch.as_millis())
    }

    #[test]
    fn a_comment_says_how_long_company_is_waited_for() {
        for (sql, wanted) in [
            ("/* batch:10 */ SELECT 1", Some(10)),
            ("SELECT/*batch:0*/1", Some(0)),
            ("SELECT 1 /* file:app.php line:42 batch:5 */", Some(5)),
            ("SELECT 1 /* ttl:60, batch:7 */ -- end", Some(7)),
            ("/* batch:3 */ SELECT 1 /* batch:9 */", Some(3)),
            ("/* a /* b */ batch:4 */ SELECT 1", Some(4)),
            ("/* batch:5000 */ SELECT 1", Some(1000)),
            ("-- batch:1\nSELECT 1 /* batch:2 */", Some(2)),
            ("SELECT 1", None),
            ("SELECT 1 -- batch:10", None),
            ("SELECT '/* batch:10 */'", None),
            ("SELECT \"/* batch:10 */\" FROM t", None),
            ("SELECT $$/* batch:10 */$$", None),
            ("/* batch:ten */ SELECT 1", None),
            ("/* batch:-1 */ SELECT 1", None),
            ("/* rebatch:10 */ SELECT 1", None),
            ("/* a-batch:10 */ SELECT 1", None),
            ("/* https://example.org/batch:10 */ SELECT 1", None),
            ("/* batch:+10 */ SELECT 1", None),
            ("/* batch:10/2 */ SELECT 1", None),
            ("/* batch:10", None),
            ("SELECT 6 / 2 /* batch:1 */", Some(1)),
        ] {
            assert_eq!(batch(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn a_comment_says_for_how_long_an_answer_will_do() {
        for (sql, ttl, stale, missing) in [
            ("/* ttl:60 stale:3600 */ SELECT 1", Some(60), Some(3600), None),
            ("/* missing:5 away:600 ttl:60 */ SELECT 1", Some(60), None, Some(5)),
            ("SELECT 1 /* ttl:0 missing:0 */", Some(0), None, Some(0)),
            ("/* stale:5 batch:10 */ SELECT 1", None, Some(5), None),
            ("/* ttl:1 ttl:2 */ SELECT 1", Some(1), None, None),
            (
                "/* ttl:18446744073709551615 */ SELECT 1",
                Some(REMEMBERED_MAX.as_secs()),
                None,
                None,
            ),
            ("/* ttl:18446744073709551616 */ SELECT 1", None, None, None),
            ("/* title:60 ttl: 60 ttl:1:2 */ SELECT 1", None, None, None),
        ] {
            let hints = hints(sql);
            let seconds = |hint: Option<Duration>| hint.map(|hint| hint.as_secs());
            let told = [hints.ttl, hints.stale, hints.missing].map(seconds);
            assert_eq!(told, [ttl, stale, missing], "{sql}");
            assert_eq!(seconds(hints.away), sql.contains(" away:").then_some(600), "{sql}");
        }
    }

    #[test]
    fn a_comment_says_what_an_answer_is_to_have_seen() {
        for (sql, wanted) in [
            ("/* after:0/16B3748 */ SELECT 1", Some(0x16B_3748)),
            ("SELECT 1 /*ttl:60,after:2a/ffffffff*/", Some(0x2A_FFFF_FFFF)),
            ("/* after:0/1 after:0/2 */ SELECT 1", Some(2)),
            ("/* after:0/2 */ SELECT 1 /* after:0/1 */", Some(2)),
            ("/* after:here after:0/2 */ SELECT 1", Some(2)),
            ("/* after:0/1 */ SELECT 1 /* ttl:5 */", Some(1)),
            ("/* after:0 */ SELECT 1", None),
            ("/* after:/1 */ SELECT 1", None),
            ("/* after:+0/1 */ SELECT 1", None),
            ("/* after:0/+1 */ SELECT 1", None),
            ("/* after:0/16B3748. */ SELECT 1", None),
            ("/* after:0/123456789 */ SELECT 1", None),
            ("/* after:0/G */ SELECT 1", None),
            ("SELECT '/* after:0/1 */' -- after:0/1", None),
        ] {
            assert_eq!(hints(sql).after, wanted, "{sql}");
        }
    }

    #[test]
    fn a_comment_says_who_asks() {
        let long = format!("/* file:{}/app.php */ SELECT 1", "é".repeat(200));
        let end = format!("{}/app.php", "é".repeat(FILE_CHARS_MAX - 8));
        for (sql, wanted) in [
            (
                "SELECT 1 /* ttl:60 file:app.php line:42 */",
                Some(("app.php", Some(42))),
            ),
            (
                "/*file:/srv/a-b/app_1.php,line:7*/ SELECT 1",
                Some(("/srv/a-b/app_1.php", Some(7))),
            ),
            (
                "/* line:7 file:C:/app.php:12 file:other.php line:8 */ SELECT 1",
                Some(("C:/app.php:12", Some(7))),
            ),
            ("/* file:app.php line:last */ SELECT 1", Some(("app.php", None))),
            ("/* file:app.php line:4294967296 */ SELECT 1", Some(("app.php", None))),
            ("/* file: a.php */ SELECT 1 /* file:b.php */", Some(("b.php", None))),
            ("/* file:a\u{1}b */ SELECT 1", Some(("a", None))),
            (&long, Some((&end, None))),
            ("/* line:7 */ SELECT 1", None),
            (
                "/* profile:app.php */ SELECT '/* file:app.php */' -- file:app.php",
                None,
            ),
        ] {
            let (hints, caller) = hints_and_caller(sql);
            assert_eq!(caller.map(|caller| (caller.file, caller.line)), wanted, "{sql}");
            assert_eq!(hints.ttl.is_some(), sql.contains("ttl"), "{sql}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        for sql in [
            "/*",
            "/**",
            "*/",
            "/*/",
            "/* é batch:1 */ é",
            "é/*é",
            "--",
            "-- é",
            "/*/**/",
        ] {
            let _ = hints(sql);
        }
    }
}
