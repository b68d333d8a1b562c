//! What is asked for, in order: traces of real programs, and loads that are made up.
//!
//! Promises: a line that is not a request is an error that names it, never skipped. Knows where the files are and what their
//! lines mean; nothing of caches.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;

use super::made;
use crate::failure::Failure;

/// More blocks in one request are taken for a damaged line.
const BLOCKS_MAX: u64 = 1 << 20;

/// Which trace; `lab/traces/README.md` says where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    /// A database, an hour.
    Oltp,
    /// A text search.
    Glimpse,
    /// The same keys in the same order, over and over.
    Loop,
    /// A search in source code.
    Cs,
    /// A preprocessor of C.
    Cpp,
    /// Both at once.
    Multi1,
    /// Made up, as the others that follow: see `made`.
    Zipf(Exponent),
    DriftingZipf,
    ZipfAndScans,
    ZipfBesideALoop,
    JustNow,
    TwiceThenLoop,
    Loops,
    Phases,
}

/// Of Zipf's law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exponent {
    /// 0.7
    Low,
    /// 0.99
    High,
}

impl Trace {
    /// As its file is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Oltp => "oltp",
            Self::Glimpse => "gli",
            Self::Loop => "loop",
            Self::Cs => "cs",
            Self::Cpp => "cpp",
            Self::Multi1 => "multi1",
            Self::Zipf(Exponent::Low) => "Zipf 0.7",
            Self::Zipf(Exponent::High) => "Zipf 0.99",
            Self::DriftingZipf => "drifting Zipf",
            Self::ZipfAndScans => "Zipf and scans",
            Self::ZipfBesideALoop => "Zipf beside a loop",
            Self::JustNow => "what was just read",
            Self::TwiceThenLoop => "twice, then a loop",
            Self::Loops => "loops of many lengths",
            Self::Phases => "phases",
        }
    }

    /// The keys, a request each.
    pub(crate) fn read(self) -> Result<Vec<u64>, Failure> {
        match self {
            Self::Zipf(Exponent::Low) => return Ok(made::zipf(0.7)),
            Self::Zipf(Exponent::High) => return Ok(made::zipf(0.99)),
            Self::DriftingZipf => return Ok(made::drifting_zipf()),
            Self::ZipfAndScans => return Ok(made::zipf_and_scans()),
            Self::ZipfBesideALoop => return Ok(made::zipf_beside_a_loop()),
            Self::JustNow => return Ok(made::just_now()),
            Self::TwiceThenLoop => return Ok(made::twice_then_loop()),
            Self::Loops => return Ok(made::loops()),
            Self::Phases => return Ok(made::phases()),
            Self::Oltp | Self::Glimpse | Self::Loop | Self::Cs | Self::Cpp | Self::Multi1 => {}
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("traces")
            .join(format!("{}.gz", self.name()));
        File::open(&path)
            .and_then(|file| self.keys(BufReader::new(GzDecoder::new(file))))
            .map_err(Failure::system(format!("read the trace {}", path.display())))
    }

    fn keys(self, lines: impl BufRead) -> io::Result<Vec<u64>> {
        let mut keys = Vec::new();
        for (at, line) in lines.lines().enumerate() {
            let line = line?;
            // A star is where one program ended and the next began.
            if line.trim().is_empty() || line.trim() == "*" {
                continue;
            }
            let understood = match self {
                Self::Oltp => blocks(&line).map(|blocks| keys.extend(blocks)),
                _ => line.trim().parse().ok().map(|key| keys.push(key)),
            };
            understood.ok_or_else(|| {
                let message = format!("line {} is not a request: {line:?}", at + 1);
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?;
        }
        if keys.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "there is no request in it",
            ));
        }
        Ok(keys)
    }
}

/// `first number …`: every block of the request is asked for.
fn blocks(line: &str) -> Option<std::ops::Range<u64>> {
    let mut fields = line.split_whitespace().map(str::parse::<u64>);
    let first = fields.next()?.ok()?;
    let number = fields.next()?.ok().filter(|number| (1..=BLOCKS_MAX).contains(number))?;
    // The others are of no use here, but a line without them is damaged.
    (fields.next()?.is_ok() && fields.next()?.is_ok()).then_some(first..first.checked_add(number)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn requests_for_several_blocks_are_a_request_a_block() {
        let keys = Trace::Oltp.keys(&b"7 1 0 0\n100 3 0 1\n\n7 2 0 2\n"[..]).unwrap();
        assert_eq!(keys, [7, 100, 101, 102, 7, 8]);
        let keys = Trace::Loop.keys(&b"3\n 1 \n*\n3\n"[..]).unwrap();
        assert_eq!(keys, [3, 1, 3]);
    }

    #[test]
    fn a_line_that_is_not_a_request_is_named() {
        for (trace, lines) in [
            (Trace::Glimpse, "1\ntwo\n"),
            (Trace::Loop, "1\n2 3\n"),
            (Trace::Oltp, "1 1 0 0\n5\n"),
            (Trace::Oltp, "1 1 0 0\n5 1\n"),
            (Trace::Oltp, "1 1 0 0\n5 0 0 1\n"),
            (Trace::Oltp, "1 1 0 0\n5 18446744073709551615 0 1\n"),
            (Trace::Oltp, "1 1 0 0\n18446744073709551615 1 0 1\n"),
        ] {
            let error = trace.keys(lines.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("line 2 "), "{lines:?}: {error}");
        }
        assert!(Trace::Loop.keys(&b"\n"[..]).is_err(), "nothing is no trace");
    }

    #[test]
    fn the_traces_are_whole() {
        for (trace, requests, keys) in [
            (Trace::Oltp, 914_145, 186_880),
            (Trace::Glimpse, 6_015, 2_529),
            (Trace::Loop, 505_500, 1_011),
            (Trace::Cs, 6_781, 1_409),
            (Trace::Cpp, 9_047, 1_223),
            (Trace::Multi1, 15_858, 2_606),
        ] {
            let all = trace.read().unwrap();
            let different: HashSet<u64> = all.iter().copied().collect();
            assert_eq!((all.len(), different.len()), (requests, keys), "{trace:?}");
        }
    }
}
