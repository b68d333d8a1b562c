//! Trap: what is done to a connection at a moment of its own, told by the bytes that pass.
//!
//! Promises: a trap is sprung by the piece of bytes that completes its moment, also where the sequence it waits for comes in
//! several pieces; never oftener than asked for. Knows no socket.

/// Longer sequences are not looked for.
pub(super) const SEQUENCE_BYTES_MAX: usize = 256;

/// Whose bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Those that the client sends.
    Client,
    /// Those that the server sends.
    Server,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// In order: each end reads all that was handed on, and then the end.
    Close,
    /// Reset: an end may lose what it has not read yet, and what it sends is answered with an error.
    Reset,
}

/// What a trap does to the connection that springs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Ends it.
    End(Ending),
    /// Hands nothing on any more, either way, until the proxy is told to release it.
    Stall,
}

/// A moment in a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// The client has sent this sequence. The piece with its last byte is not handed on.
    Asked(Vec<u8>),
    /// The client has sent this sequence and it was handed on. Nothing of what the server answers is.
    HandedOn(Vec<u8>),
    /// The client has sent this sequence and the server has answered it. The answer is not handed on.
    Answered(Vec<u8>),
    /// So many bytes of that side were handed on, of all connections together, since the trap was set.
    Passed(Side, u64),
}

/// A trap that is set.
#[derive(Debug)]
pub(super) struct Trap {
    moment: Moment,
    deed: Deed,
    times_left: u64,
    /// Counted for [`Moment::Passed`].
    passed: u64,
    /// Connections that have asked and are not answered yet.
    asked: Vec<u64>,
}

/// What to do with a piece that springs a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sprung {
    /// So many of its bytes are handed on first.
    pub(super) first: usize,
    pub(super) deed: Deed,
}

impl Trap {
    pub(super) fn new(moment: Moment, deed: Deed, times: u64) -> Self {
        if let Moment::Asked(sequence) | Moment::HandedOn(sequence) | Moment::Answered(sequence) = &moment {
            assert!(
                (1..=SEQUENCE_BYTES_MAX).contains(&sequence.len()),
                "a sequence has 1 to {SEQUENCE_BYTES_MAX} bytes"
            );
        }
        Self {
            moment,
            deed,
            times_left: times,
            passed: 0,
            asked: Vec::new(),
        }
    }

    /// Looks at a piece that is about to be handed on; `before` are the last bytes before it.
    pub(super) fn look(&mut self, connection: u64, side: Side, before: &[u8], piece: &[u8]) -> Option<Sprung> {
        let first = match (&self.moment, side) {
            (Moment::Asked(sequence), Side::Client) if completes(before, piece, sequence) => 0,
            (Moment::HandedOn(sequence), Side::Client) if completes(before, piece, sequence) => piece.len(),
            (Moment::Answered(sequence), Side::Client) => {
                if self.times_left > 0 && completes(before, piece, sequence) {
                    // Counted now: what is asked is as good as answered.
                    self.times_left -= 1;
                    self.asked.push(connection);
                }
                return None;
            }
            (Moment::Answered(_), Side::Server) => {
                let position = self.asked.iter().position(|asked| *asked == connection)?;
                self.asked.swap_remove(position);
                return Some(Sprung {
                    first: 0,
                    deed: self.deed,
                });
            }
            (Moment::Passed(whose, bytes), _) if *whose == side => {
                let left = usize::try_from(bytes.saturating_sub(self.passed)).unwrap_or(usize::MAX);
                self.passed += piece.len() as u64;
                if left > piece.len() {
                    return None;
                }
                left
            }
            _ => return None,
        };
        self.times_left = self.times_left.checked_sub(1)?;
        Some(Sprung { first, deed: self.deed })
    }
}

/// Whether the sequence ends in this piece.
fn completes(before: &[u8], piece: &[u8], sequence: &[u8]) -> bool {
    let tail = &before[before.len().saturating_sub(sequence.len() - 1)..];
    // What straddles the border, then what is within.
    let head = &piece[..piece.len().min(sequence.len() - 1)];
    let border = [tail, head].concat();
    let is_in = |bytes: &[u8]| bytes.windows(sequence.len()).any(|window| window == sequence);
    is_in(&border) || is_in(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Deed = Deed::End(Ending::Close);

    #[test]
    fn a_sequence_is_seen_wherever_the_pieces_part() {
        let words = b"xxCOMMITyy";
        for at in 0..=words.len() {
            let (before, piece) = words.split_at(at);
            let is_new = at < 8;
            assert_eq!(completes(before, piece, b"COMMIT"), is_new, "{at}");
        }
        assert!(!completes(b"COM", b"mit", b"COMMIT"));
        assert!(completes(b"", b"C", b"C"));
        assert!(!completes(b"C", b"", b"C"));
    }

    #[test]
    fn only_the_clients_bytes_are_asked_and_only_so_often() {
        let mut trap = Trap::new(Moment::Asked(b"C".to_vec()), END, 2);
        assert_eq!(trap.look(1, Side::Server, b"", b"C"), None);
        let sprung = Some(Sprung { first: 0, deed: END });
        assert_eq!(trap.look(1, Side::Client, b"", b"C"), sprung);
        assert_eq!(trap.look(2, Side::Client, b"", b"C"), sprung);
        assert_eq!(trap.look(3, Side::Client, b"", b"C"), None);
    }

    #[test]
    fn what_was_asked_springs_when_it_is_answered_on_the_same_connection() {
        let mut trap = Trap::new(Moment::Answered(b"C".to_vec()), END, 1);
        assert_eq!(trap.look(1, Side::Server, b"", b"early"), None);
        assert_eq!(trap.look(1, Side::Client, b"", b"C"), None);
        assert_eq!(trap.look(2, Side::Server, b"", b"another's"), None);
        assert!(trap.look(1, Side::Server, b"", b"done").is_some());
        assert_eq!(trap.look(1, Side::Client, b"", b"C"), None);
        assert_eq!(trap.look(1, Side::Server, b"", b"done"), None);
    }

    #[test]
    fn bytes_are_counted_across_pieces() {
        let mut trap = Trap::new(Moment::Passed(Side::Server, 5), END, 1);
        assert_eq!(trap.look(1, Side::Client, b"", b"0123456789"), None);
        assert_eq!(trap.look(1, Side::Server, b"", b"012"), None);
        assert_eq!(
            trap.look(2, Side::Server, b"", b"34567").map(|sprung| sprung.first),
            Some(2)
        );
        assert_eq!(trap.look(2, Side::Server, b"", b"8"), None);
    }
}
