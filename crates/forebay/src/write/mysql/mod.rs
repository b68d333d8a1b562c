//! The Writer's MariaDB and MySQL: a pool of connections, on each of which a batch is one transaction.
