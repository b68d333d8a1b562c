//! What the databases over a network share: their settings and connections, plans of texts, fetches of keys, how a URL is read
//! without giving a password away, which values may be equal, pauses between tries, and how long a server may be silent.
//!
//! Promises: what each module promises. Knows what a write is; knows no database.
//!
//! # Words
//!
//! The crates for PostgreSQL, and for MariaDB and MySQL, call the same things by the same names:
//!
//! | word | means |
//! |---|---|
//! | *index* | where a write stands in its batch, or a key in its fetch, from 0 |
//! | *group* | writes of a batch that share a transaction, by their indices |
//! | *subtransaction* | on PostgreSQL, writes of a group that share a savepoint |
//! | *settled* | of a write: it has its outcome, or is *deferred* |
//! | *deferred* | of a write that a lock is in the way of: it is tried again without its neighbours |
//! | *ordered* | of a write: it has a key, and goes behind those of the same key that came before |
//! | *place* | where an ordered write stands among them: it *waits in its place*, and is not deferred |
//! | *window* | how long a batch waits for more writes: the Batcher's, and never anything else |
//! | *plan* | what a text alone tells of how it is to be run |
//! | *set* | many INSERTs of one text, written as one statement |
//! | *chunk* | how many rows of a set are written at a time, on MariaDB and MySQL |
//! | *part* | the rows of one such statement |
//! | *facts* | what the server says of a table, by which a set is known to be safe |
//! | *connection* | one connection to the server, with its session and what is prepared on it |
//! | *session* | what the server keeps for a connection: settings, variables, locks by name, temporary tables |
//! | *settings* | what the user has chosen of connections, and of what is sent on them |
//! | *lease* | a connection on loan, with the *permit* to have it |
//! | *failure* | why a statement, or a command of ours, has no outcome |
//! | *interruption* | why a transaction's statements did not all run to their end |
//! | *lost* | of a connection: it ended, or is of no use any more |
//! | *silent* | of a connection: lost because the server did not answer in time |
//! | *kill* | to have the server end a connection that is lost to us |
//! | *reset* | to make a session what it was when it was new |
//! | *lock waiter* | a write that waits for somebody's lock for as long as is tried at all |

pub mod address;
pub mod alike;
pub mod answer_timeout;
pub mod connections;
pub mod latest;
pub mod load;
pub mod lock_waiters;
pub mod plans;
pub mod retry;
pub mod settings;
pub mod settled;
pub mod statements;
