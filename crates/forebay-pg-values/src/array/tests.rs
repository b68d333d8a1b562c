//! Answers of PostgreSQL 15, recorded.
