//! The Writer's PostgreSQL: a pool of connections, on each of which a batch is one transaction.
