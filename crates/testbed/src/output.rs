//! What a server printed: kept, bounded, and waited for.
//!
//! Each stream is read by a thread of its own, so that a server never blocks on a full pipe. The first and the last
//! [`KEPT_BYTES`] are kept: the first hold the banner, the last the reason it ended.

use std::{
    io::{BufRead, BufReader, Read},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How much of the beginning and of the end is kept.
const KEPT_BYTES: usize = 64 * 1024;
/// A longer line is taken in pieces, so that a server without line ends cannot fill the memory.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// The output of one run of a server; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    text: Mutex<Text>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Text {
    /// The beginning; at most `KEPT_BYTES`, whole lines.
    first: String,
    /// What came after `first` was full; at most `KEPT_BYTES`, whole lines.
    last: String,
    /// Whether lines between `first` and `last` were dropped.
    dropped: bool,
    /// How many streams are still read.
    streams_open: usize,
}

impl Output {
    /// Reads this stream to its end in a thread of its own.
    pub(crate) fn follow(&self, stream: impl Read + Send + 'static) {
        self.text().streams_open += 1;
        let output = self.clone();
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!((&mut stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line), Ok(count) if count > 0) {
                output.push(&String::from_utf8_lossy(&line));
                line.clear();
            }
            output.text().streams_open -= 1;
            output.shared.changed.notify_all();
        });
    }

    fn push(&self, line: &str) {
        let mut text = self.text();
        if text.last.is_empty() && text.first.len() + line.len() <= KEPT_BYTES {
            text.first.push_str(line);
        } else {
            text.last.push_str(line);
            while text.last.len() > KEPT_BYTES {
                let end_of_line = text.last.find('\n').map_or(text.last.len(), |at| at + 1);
                text.last.drain(..end_of_line);
                text.dropped = true;
            }
        }
        drop(text);
        self.shared.changed.notify_all();
    }

    /// All that is kept.
    pub(crate) fn kept(&self) -> String {
        let text = self.text();
        let gap = if text.dropped {
            "[… some of the output was dropped …]\n"
        } else {
            ""
        };
        format!("{}{gap}{}", text.first, text.last)
    }

    /// Waits until `found` finds something in what was kept so far, the server closed its output, or the time is over.
    pub(crate) fn wait_for<T>(&self, time: Duration, found: impl Fn(&str) -> Option<T>) -> Option<T> {
        let until = Instant::now() + time;
        let mut text = self.text();
        loop {
            // A banner is in the beginning; the end is searched too, for what comes after a restart or a long log.
            if let Some(thing) = found(&text.first).or_else(|| found(&text.last)) {
                return Some(thing);
            }
            let left = until.saturating_duration_since(Instant::now());
            if text.streams_open == 0 || left.is_zero() {
                return None;
            }
            text = self
                .shared
                .changed
                .wait_timeout(text, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits, a bounded while, until the server closed its output: after this `kept` has its last words.
    pub(crate) fn wait_for_end(&self, time: Duration) {
        self.wait_for(time, |_| None::<()>);
    }

    /// No code panics while it holds the lock, so a poisoned one still has a whole text.
    fn text(&self) -> MutexGuard<'_, Text> {
        self.shared.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(bytes: impl Into<Vec<u8>>) -> Output {
        let output = Output::default();
        output.follow(std::io::Cursor::new(bytes.into()));
        output.wait_for_end(Duration::from_secs(10));
        output
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_output_are_kept() {
        let lines: String = (0..100_000).map(|number| format!("line {number}\n")).collect();
        let kept = followed(lines).kept();
        assert!(kept.starts_with("line 0\nline 1\n"), "the beginning was dropped");
        assert!(kept.ends_with("line 99998\nline 99999\n"), "the end was dropped");
        assert!(kept.contains("dropped"));
        assert!(kept.len() < 2 * KEPT_BYTES + 100, "{} bytes were kept", kept.len());
    }

    #[test]
    fn an_output_without_line_ends_is_bounded_too() {
        assert!(followed(vec![b'x'; 1_000_000]).kept().len() <= 2 * KEPT_BYTES + 100);
    }

    #[test]
    fn waiting_ends_with_the_thing_or_with_the_output() {
        let output = followed("port 1234\n");
        let port = output.wait_for(Duration::from_secs(10), |text| text.strip_prefix("port ").map(str::len));
        assert_eq!(port, Some(5));
        let begun = Instant::now();
        assert_eq!(output.wait_for(Duration::from_secs(60), |_| None::<()>), None);
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "waited for a stream that had ended"
        );
    }
}
