//! Windows: how old an answer may be, as a hint or a rule says it.
//!
//! Promises: no answer is fresh for longer than was said of what it is. Knows no cache.

use std::fmt;
use std::time::Duration;

use crate::frames::{Frame, HEADER_BYTES, frame};

/// The whole of a share.
const WHOLE: u32 = 1_000_000;
/// What a server says at the end of a read that found nothing.
const NO_ROWS: &[u8] = b"SELECT 0\0";

/// For how long an answer is served, and for how long beyond that while it is asked again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Windows {
    pub(crate) fresh: Duration,
    pub(crate) stale: Duration,
    /// In place of both, where there are no rows.
    pub(crate) missing: Option<Duration>,
    /// The first window of each answer is shorter by up to this share of it, in millionths; for what is taken off the answer is stale.
    pub(crate) jitter: u32,
    /// They are served only where the database is listened to and nothing is missing that is older than this; none: as for all.
    pub(crate) max_lag: Option<Duration>,
    /// For so long beyond all of that also, while the database cannot be asked, and however late it is listened to.
    pub(crate) away: Duration,
}

/// The same of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) fresh: Duration,
    pub(super) stale: Duration,
}

impl Window {
    /// It is served to nobody.
    pub(super) const NONE: Self = Self {
        fresh: Duration::ZERO,
        stale: Duration::ZERO,
    };
}

impl Windows {
    /// Those of this answer, by any number from 0 to 1.
    pub(super) fn of(&self, said: &[u8], chance: f64) -> Window {
        let (fresh, stale) = match self.missing.filter(|_| found_rows(said) == Some(false)) {
            Some(missing) => (missing, Duration::ZERO),
            None => (self.fresh, self.stale),
        };
        let off = fresh
            .mul_f64(chance * f64::from(self.jitter) / f64::from(WHOLE))
            .min(fresh);
        Window {
            fresh: fresh - off,
            stale: stale + off,
        }
    }
}

impl Windows {
    /// The comment by which a statement says so itself.
    pub(super) fn as_hint(&self) -> String {
        let mut hint = format!("/* ttl:{}", self.fresh.as_secs());
        let others = [
            ("stale", Some(self.stale).filter(|stale| !stale.is_zero())),
            ("missing", self.missing),
            ("away", Some(self.away).filter(|away| !away.is_zero())),
        ];
        for (name, window) in others {
            if let Some(window) = window {
                hint = format!("{hint} {name}:{}", window.as_secs());
            }
        }
        hint + " */"
    }
}

impl fmt::Display for Windows {
    /// Behind "are remembered".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "for {:?}", self.fresh)?;
        match self.missing {
            None => {}
            Some(Duration::ZERO) => formatter.write_str(" (not at all without rows)")?,
            Some(missing) => write!(formatter, " (for {missing:?} without rows)")?,
        }
        if self.jitter > 0 {
            let percent = f64::from(self.jitter) * 100.0 / f64::from(WHOLE);
            write!(formatter, ", each for up to {percent}% less")?;
        }
        if !self.stale.is_zero() {
            write!(formatter, ", and for {:?} while they are asked again", self.stale)?;
        }
        if !self.away.is_zero() {
            write!(formatter, ", and for {:?} more while the database is away", self.away)?;
        }
        if let Some(max_lag) = self.max_lag {
            write!(formatter, ", where the stream is {max_lag:?} behind at the most")?;
        }
        Ok(())
    }
}

/// Whether a server that says this has found rows, as far as it tells.
pub(crate) fn found_rows(mut said: &[u8]) -> Option<bool> {
    while let Ok(Some(Frame { tag, length })) = frame(said) {
        match tag {
            b'D' => return Some(true),
            b'C' => return (said.get(HEADER_BYTES..length) == Some(NO_ROWS)).then_some(false),
            _ => said = said.get(length..).unwrap_or_default(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::frames::put;

    const SECOND: Duration = Duration::from_secs(1);

    fn said(messages: &[(u8, &[u8])]) -> BytesMut {
        let mut out = BytesMut::new();
        for (tag, body) in messages {
            put(&mut out, *tag, &[*body]);
        }
        out
    }

    #[test]
    fn an_answer_without_rows_has_a_window_of_its_own() {
        let rows = said(&[(b'T', b"\0\0"), (b'D', b"\0\0"), (b'C', b"SELECT 1\0")]);
        let none = said(&[(b'2', b""), (b'T', b"\0\0"), (b'C', b"SELECT 0\0")]);
        let windows = Windows {
            fresh: 60 * SECOND,
            stale: 3600 * SECOND,
            missing: Some(5 * SECOND),
            ..Windows::default()
        };
        let of = |windows: &Windows, said: &[u8]| {
            let Window { fresh, stale } = windows.of(said, 1.0);
            (fresh.as_secs(), stale.as_secs())
        };
        assert_eq!(of(&windows, &rows), (60, 3600));
        assert_eq!(of(&windows, &none), (5, 0));
        let of_all = Windows {
            missing: None,
            ..windows
        };
        assert_eq!(of(&of_all, &none), (60, 3600));
        // What says nothing of rows, or is no answer at all, is none of them.
        for other in [
            said(&[(b'C', b"SHOW\0")]),
            said(&[(b'C', b"SELECT 01\0")]),
            said(&[]),
            none[..none.len() - 1].into(),
        ] {
            assert_eq!(of(&windows, &other), (60, 3600));
        }
    }

    /// Where they are told while they are asked again, nobody is told one that is older for it.
    #[test]
    fn windows_are_shorter_by_chance_and_never_longer() {
        let windows = Windows {
            fresh: 100 * SECOND,
            stale: 10 * SECOND,
            missing: Some(20 * SECOND),
            jitter: WHOLE / 4,
            ..Windows::default()
        };
        let none = said(&[(b'C', b"SELECT 0\0")]);
        for (chance, of_rows, of_none) in [
            (0.0, (100, 10), (20, 0)),
            (0.5, (88, 22), (18, 2)),
            (1.0, (75, 35), (15, 5)),
        ] {
            let of = |said: &[u8]| {
                let Window { fresh, stale } = windows.of(said, chance);
                (fresh.as_secs_f64().ceil() as u64, stale.as_secs_f64().floor() as u64)
            };
            assert_eq!((of(b""), of(&none)), (of_rows, of_none), "{chance}");
        }
        let all = Windows {
            jitter: WHOLE,
            ..windows
        };
        let Window { fresh, stale } = all.of(b"", 1.0);
        assert_eq!((fresh, stale), (Duration::ZERO, 110 * SECOND));
    }

    #[test]
    fn what_is_said_is_told() {
        let windows = Windows {
            fresh: 60 * SECOND,
            ..Windows::default()
        };
        for (windows, told) in [
            (windows, "for 60s"),
            (
                Windows {
                    missing: Some(Duration::ZERO),
                    jitter: WHOLE / 8,
                    ..windows
                },
                "for 60s (not at all without rows), each for up to 12.5% less",
            ),
            (
                Windows {
                    stale: SECOND,
                    missing: Some(5 * SECOND),
                    max_lag: Some(SECOND / 5),
                    away: 600 * SECOND,
                    ..windows
                },
                "for 60s (for 5s without rows), and for 1s while they are asked again, and for 600s more while the database is away, \
                 where the stream is 200ms behind at the most",
            ),
        ] {
            assert_eq!(windows.to_string(), told);
        }
    }
}
