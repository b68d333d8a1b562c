//! Answer: what the next packet of an answer means.
//!
//! Promises: knows when an answer has come to its end, whatever came before in it; a packet that cannot come where it comes is an
//! error. Knows no bytes but those of one packet.

use mysql_common::constants::StatusFlags;

use crate::error::LinkError;
use crate::outbox::{Kind, PACKET_BYTES_MAX};
use crate::packet::{Definition, OkPacket, Packet, StatementPacket};
use crate::reader::{Malformed, Reader};
use crate::server_error::ServerError;

/// Where in an answer the next packet comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nowhere: none has begun.
    Between,
    /// A result, or what was prepared, begins.
    Begin(Kind),
    /// So many columns are described yet, then rows come.
    Columns(usize),
    /// Older servers: the end of descriptions, then rows come.
    ColumnsEnd,
    Rows,
    /// Of what was prepared: so many parameters are described yet, then so many columns.
    Parameters(usize, usize),
    ParametersEnd(usize),
    PreparedColumns(usize),
    PreparedColumnsEnd,
}

/// What a server and a client have agreed on for all answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Agreed {
    /// No packet stands behind descriptions, and rows end with what a result without rows is.
    pub(crate) deprecates_eof: bool,
    /// Columns that have not changed are not described again.
    pub(crate) caches_metadata: bool,
}

/// The answer that is being read.
#[derive(Debug)]
pub(crate) struct Answer {
    phase: Phase,
    agreed: Agreed,
    status: StatusFlags,
}

impl Answer {
    pub(crate) fn new(agreed: Agreed, status: StatusFlags) -> Self {
        Self {
            phase: Phase::Between,
            agreed,
            status,
        }
    }

    /// How the session stood when the server last said so.
    pub(crate) fn status(&self) -> StatusFlags {
        self.status
    }

    /// Whether none has begun, or one has come to its end.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Between
    }

    /// Whether rows may come.
    pub(crate) fn has_rows(&self) -> bool {
        self.phase == Phase::Rows
    }

    /// One begins.
    pub(crate) fn begin(&mut self, kind: Kind) {
        debug_assert!(self.is_over());
        self.phase = Phase::Begin(kind);
    }

    /// What a packet means.
    pub(crate) fn read<'a>(&mut self, body: &'a [u8]) -> Result<Packet<'a>, LinkError> {
        let first = *body.first().ok_or(Malformed)?;
        if first == 0xff {
            self.phase = Phase::Between;
            return Ok(Packet::Error(ServerError::read(body)?));
        }
        match self.phase {
            Phase::Between => Err(LinkError::Protocol("a packet came that nobody asked for".to_owned())),
            Phase::Begin(Kind::Prepare) => {
                let prepared = StatementPacket::read(body)?;
                self.phase = after_parameters(usize::from(prepared.columns));
                if prepared.parameters > 0 {
                    self.phase = Phase::Parameters(prepared.parameters.into(), prepared.columns.into());
                }
                Ok(Packet::Prepared(prepared))
            }
            Phase::Begin(Kind::Results) => match first {
                0x00 => {
                    let ok = OkPacket::read(body)?;
                    self.end(&ok);
                    Ok(Packet::Ok(ok))
                }
                0xfb => Err(LinkError::Protocol(
                    "the server asks for a file of this machine's, which it was told not to".to_owned(),
                )),
                _ => self.columns(body),
            },
            Phase::Columns(left) => {
                self.phase = match left {
                    1 if self.agreed.deprecates_eof => Phase::Rows,
                    1 => Phase::ColumnsEnd,
                    _ => Phase::Columns(left - 1),
                };
                Ok(Packet::Column(Definition::new(body)))
            }
            Phase::ColumnsEnd => self.description_end(body, Phase::Rows),
            Phase::Rows if first == 0xfe && body.len() < PACKET_BYTES_MAX => {
                let ok = match self.agreed.deprecates_eof {
                    true => OkPacket::read(body)?,
                    false => OkPacket::read_eof(body)?,
                };
                self.end(&ok);
                Ok(Packet::RowsEnd(ok))
            }
            Phase::Rows => Ok(Packet::Row(body)),
            Phase::Parameters(left, columns) => {
                self.phase = match left {
                    1 if self.agreed.deprecates_eof => after_parameters(columns),
                    1 => Phase::ParametersEnd(columns),
                    _ => Phase::Parameters(left - 1, columns),
                };
                Ok(Packet::Parameter(Definition::new(body)))
            }
            Phase::ParametersEnd(columns) => self.description_end(body, after_parameters(columns)),
            Phase::PreparedColumns(left) => {
                self.phase = match left {
                    1 if self.agreed.deprecates_eof => Phase::Between,
                    1 => Phase::PreparedColumnsEnd,
                    _ => Phase::PreparedColumns(left - 1),
                };
                Ok(Packet::Column(Definition::new(body)))
            }
            Phase::PreparedColumnsEnd => self.description_end(body, Phase::Between),
        }
    }

    fn columns<'a>(&mut self, body: &[u8]) -> Result<Packet<'a>, LinkError> {
        let mut reader = Reader(body);
        let count = reader.length()?.and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| (1..=usize::from(u16::MAX)).contains(count));
        let count = count.ok_or(Malformed)?;
        let are_described = !self.agreed.caches_metadata || reader.u8()? != 0;
        reader.end()?;
        self.phase = match (are_described, self.agreed.deprecates_eof) {
            (true, _) => Phase::Columns(count),
            (false, true) => Phase::Rows,
            (false, false) => Phase::ColumnsEnd,
        };
        Ok(Packet::Columns { count, are_described })
    }

    fn description_end<'a>(&mut self, body: &[u8], next: Phase) -> Result<Packet<'a>, LinkError> {
        if body[0] != 0xfe {
            return Err(Malformed.into());
        }
        OkPacket::read_eof(body)?;
        self.phase = next;
        Ok(Packet::DescriptionEnd)
    }

    fn end(&mut self, ok: &OkPacket) {
        self.status = ok.status;
        self.phase = match ok.is_followed() {
            true => Phase::Begin(Kind::Results),
            false => Phase::Between,
        };
    }
}

fn after_parameters(columns: usize) -> Phase {
    match columns {
        0 => Phase::Between,
        _ => Phase::PreparedColumns(columns),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A letter for each packet, as far as they can be read.
    fn told(agreed: Agreed, kind: Kind, bodies: &[&[u8]]) -> String {
        let mut answer = Answer::new(agreed, StatusFlags::empty());
        answer.begin(kind);
        let mut told = String::new();
        for body in bodies {
            if answer.is_over() {
                told.push('.');
            }
            told.push(match answer.read(body) {
                Ok(Packet::Prepared(_)) => 'S',
                Ok(Packet::Columns { .. }) => 'N',
                Ok(Packet::Parameter(_)) => 'p',
                Ok(Packet::Column(_)) => 'c',
                Ok(Packet::DescriptionEnd) => 'e',
                Ok(Packet::Row(_) | Packet::DiscardedRow(_)) => 'r',
                Ok(Packet::Ok(_)) => 'O',
                Ok(Packet::RowsEnd(_)) => 'E',
                Ok(Packet::Error(_)) => 'X',
                Err(_) => '!',
            });
        }
        if answer.is_over() {
            told.push('.');
        }
        told
    }

    const MARIADB: Agreed = Agreed {
        deprecates_eof: true,
        caches_metadata: true,
    };
    const OLD: Agreed = Agreed {
        deprecates_eof: false,
        caches_metadata: false,
    };
    const OK: &[u8] = &[0, 1, 0, 2, 0, 0, 0];
    const OK_FOLLOWED: &[u8] = &[0, 1, 0, 10, 0, 0, 0];
    const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    const END_FOLLOWED: &[u8] = &[0xfe, 0, 0, 10, 0, 0, 0];
    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const ERROR: &[u8] = b"\xff\x10\x04#HY000no";

    #[test]
    fn an_answer_ends_where_it_ends() {
        for (agreed, kind, bodies, expected) in [
            (MARIADB, Kind::Results, &[OK][..], "O."),
            (MARIADB, Kind::Results, &[OK_FOLLOWED, OK], "OO."),
            (MARIADB, Kind::Results, &[ERROR], "X."),
            (MARIADB, Kind::Results, &[OK_FOLLOWED, ERROR], "OX."),
            (MARIADB, Kind::Results, &[&[1, 1], b"c", &[0], END], "NcrE."),
            (MARIADB, Kind::Results, &[&[1, 0], &[0], &[0], END], "NrrE."),
            (
                MARIADB,
                Kind::Results,
                &[&[2, 1], b"c", b"c", END_FOLLOWED, OK],
                "NccEO.",
            ),
            (MARIADB, Kind::Results, &[&[1, 1], b"c", &[0], ERROR], "NcrX."),
            (MARIADB, Kind::Results, &[b"\xfbfile"], "!"),
            (MARIADB, Kind::Results, &[&[]], "!"),
            (MARIADB, Kind::Prepare, &[&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], "S."),
            (
                MARIADB,
                Kind::Prepare,
                &[&[0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0], b"p", b"p", b"c"],
                "Sppc.",
            ),
            (
                OLD,
                Kind::Prepare,
                &[&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], b"p", EOF, b"c", EOF],
                "Spece.",
            ),
            (OLD, Kind::Results, &[&[1], b"c", EOF, &[0], EOF], "NcerE."),
            (OLD, Kind::Results, &[&[1], b"c", &[0]], "Nc!"),
            (MARIADB, Kind::Results, &[OK, OK], "O.!."),
        ] {
            assert_eq!(told(agreed, kind, bodies), expected, "{bodies:?}");
        }
    }

    proptest! {
        #[test]
        fn no_packets_are_too_odd_to_be_read(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..20),
            prepares: bool,
            deprecates_eof: bool,
            caches_metadata: bool,
        ) {
            let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
            let kind = if prepares { Kind::Prepare } else { Kind::Results };
            told(Agreed { deprecates_eof, caches_metadata }, kind, &bodies);
        }
    }
}
