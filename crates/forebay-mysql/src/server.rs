//! Server: what the server at the other end of a connection is like, and the session on it, as it says itself.

/// SQL modes under which a text means to the server what it means to the parser, and rows of one INSERT are treated as each
/// would be alone.
const KNOWN_MODES: [&str; 16] = [
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_AUTO_CREATE_USER",
    "NO_ENGINE_SUBSTITUTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "NO_AUTO_VALUE_ON_ZERO",
    "TRADITIONAL",
    "ALLOW_INVALID_DATES",
    "NO_UNSIGNED_SUBTRACTION",
    "TIME_TRUNCATE_FRACTIONAL",
    "TIME_ROUND_FRACTIONAL",
    "PAD_CHAR_TO_FULL_LENGTH",
    "NO_DIR_IN_CREATE",
];

/// What a server said of itself, and of the session, when the connection was made.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) is_mariadb: bool,
    /// Major, minor.
    pub(super) version: (u16, u16),
    /// The most bytes of one packet.
    pub(super) max_allowed_packet: usize,
    /// What ids of one session are apart.
    pub(super) increment: u64,
    /// 1: a commit is on the disk before it is acknowledged.
    pub(super) flush_at_commit: Option<u8>,
    /// Whether rows of one INSERT are treated as each would be alone, as far as the session's settings go.
    pub(super) rows_are_strict: bool,
    /// Whether a SELECT gives all of its rows, unless it says otherwise itself.
    pub(super) selects_are_whole: bool,
}

/// What a server is asked, to be [read](Server::read).
pub(super) const QUESTION: &str = "SELECT VERSION(), @@max_allowed_packet, @@auto_increment_increment, @@sql_mode, \
     @@unique_checks AND @@foreign_key_checks, @@innodb_flush_log_at_trx_commit, \
     @@sql_select_limit = 18446744073709551615";

impl Server {
    /// Of its answer to the [question](QUESTION), and its version.
    pub(super) fn read(row: &[Option<String>], (major, minor, _): (u16, u16, u16)) -> Self {
        let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
        Self {
            is_mariadb: text(0).contains("MariaDB"),
            version: (major, minor),
            max_allowed_packet: text(1).parse().unwrap_or(1 << 20),
            increment: text(2).parse().unwrap_or(1),
            rows_are_strict: are_rows_strict(text(3)) && text(4) == "1",
            flush_at_commit: text(5).parse().ok(),
            selects_are_whole: text(6) == "1",
        }
    }

    /// INSERT … RETURNING: MariaDB since 10.5.
    pub(super) fn has_returning(&self) -> bool {
        self.is_mariadb && self.version >= (10, 5)
    }

    /// Whether an error of an INSERT of many rows can be asked for the row: MariaDB since 10.7.
    pub(super) fn tells_row_of_error(&self) -> bool {
        self.is_mariadb && self.version >= (10, 7)
    }
}

fn are_rows_strict(sql_mode: &str) -> bool {
    let modes = || sql_mode.split(',').filter(|mode| !mode.is_empty());
    modes().any(|mode| mode.starts_with("STRICT_")) && modes().all(|mode| KNOWN_MODES.contains(&mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_treated_as_alone_only_in_strict_modes_that_are_known() {
        assert!(are_rows_strict(
            "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
        ));
        assert!(are_rows_strict("STRICT_ALL_TABLES"));
        assert!(!are_rows_strict(""));
        assert!(!are_rows_strict("NO_ENGINE_SUBSTITUTION"));
        assert!(!are_rows_strict("STRICT_TRANS_TABLES,ANSI_QUOTES"));
        assert!(!are_rows_strict("STRICT_TRANS_TABLES,A_MODE_OF_THE_FUTURE"));
    }
}
