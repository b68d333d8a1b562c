//! The Writer's PostgreSQL: a pool of connections, on each of which a batch is one transaction.

#[allow(dead_code, reason = "what runs statements is being built on it")]
mod error;
#[cfg(test)]
mod test_server;
#[allow(dead_code, unused_imports, reason = "what runs statements is being built on it")]
mod types;
