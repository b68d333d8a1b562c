//! Settings: what users choose of a database over a network, whichever it is.
//!
//! Promises: every limit has a default; one that could let nothing through is refused where it is set, in the same words everywhere.
//! What a lock is waited for, and how TLS is spoken, each database says by itself. Knows no database.

use std::time::Duration;

use crate::connections::Limits;

/// Settings of connections that are to be made, and of what is sent on them.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most connections. Not 0.
    pub max_connections: usize,
    /// How many prepared statements a connection keeps. Not 0.
    pub statement_cache: usize,
    /// The most bytes that the rows of one statement may take.
    pub max_rows_bytes: usize,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long the server may take to answer, and others to give a connection back.
    pub answer_timeout: Duration,
    /// For how long it is tried again to reach the server, or what had no effect.
    pub retry_for: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_connections: 16,
            statement_cache: 256,
            max_rows_bytes: 64 << 20,
            lock_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(60),
            retry_for: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// What the pool of connections keeps to.
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            busy_for: self.answer_timeout,
            retry_for: self.retry_for,
        }
    }
}

/// The setters that are the same on every database, for a builder with a field `settings`.
#[macro_export]
macro_rules! setters {
    () => {
        /// The most connections. Default: 16.
        ///
        /// # Panics
        ///
        /// When it is 0: nothing could be asked.
        #[track_caller]
        pub fn max_connections(mut self, max_connections: usize) -> Self {
            assert!(
                max_connections > 0,
                "max_connections must be at least 1: otherwise nothing is asked"
            );
            self.settings.max_connections = max_connections;
            self
        }

        /// How many prepared statements each connection keeps. Default: 256.
        ///
        /// # Panics
        ///
        /// When it is 0: a statement is prepared before it is executed.
        #[track_caller]
        pub fn statement_cache(mut self, statements: usize) -> Self {
            assert!(
                statements > 0,
                "statement_cache must be at least 1: otherwise nothing is prepared"
            );
            self.settings.statement_cache = statements;
            self
        }

        /// The most memory that the rows of one statement may take, in bytes. One that returns more fails with
        /// [`TooLarge`](forebay_write::StatementErrorKind::TooLarge), without effect; or, where it was alone in its batch and is
        /// committed, with [`WriteError::OutcomeUnknown`](forebay_write::WriteError::OutcomeUnknown). Default: 64 MiB.
        pub fn max_rows_bytes(mut self, bytes: usize) -> Self {
            self.settings.max_rows_bytes = bytes;
            self
        }

        /// How long the server may take to answer; after that the connection counts as lost. For as long a connection is waited
        /// for that others have, before it is [`WriteError::Unavailable`](forebay_write::WriteError::Unavailable). Default: 60 s.
        pub fn answer_timeout(mut self, answer_timeout: ::std::time::Duration) -> Self {
            self.settings.answer_timeout = answer_timeout;
            self
        }

        /// For how long a write is tried again that had no effect: the server was away, a deadlock, a serialization failure, a
        /// lock. Default: 10 s.
        pub fn retry_for(mut self, retry_for: ::std::time::Duration) -> Self {
            self.settings.retry_for = retry_for;
            self
        }
    };
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[derive(Clone)]
    struct Builder {
        settings: Settings,
    }

    #[allow(unreachable_pub, reason = "as its databases' builders have them")]
    impl Builder {
        setters!();
    }

    type Set = fn(Builder) -> Builder;

    #[test]
    fn a_limit_of_zero_is_refused_where_it_is_set_by_its_name() {
        let builder = Builder {
            settings: Settings::default(),
        };
        let refusals: [(&str, Set); 2] = [
            ("max_connections", |builder| builder.max_connections(0)),
            ("statement_cache", |builder| builder.statement_cache(0)),
        ];
        for (name, set) in refusals {
            let panic = catch_unwind(AssertUnwindSafe(|| set(builder.clone())))
                .err()
                .expect(name);
            let said = *panic.downcast_ref::<&str>().expect("words");
            assert!(said.starts_with(&format!("{name} must be at least 1: ")), "{said}");
        }
        let smallest = builder.max_connections(1).statement_cache(1).max_rows_bytes(0);
        assert_eq!(smallest.retry_for(Duration::ZERO).settings.limits().connections, 1);
    }

    #[test]
    fn what_is_set_is_what_is_kept_to() {
        let builder = Builder {
            settings: Settings::default(),
        };
        let time = Duration::from_millis(7);
        let settings = builder.answer_timeout(time).max_rows_bytes(3).settings;
        assert_eq!((settings.limits().busy_for, settings.max_rows_bytes), (time, 3));
    }
}
