//! Tests of what user code may do inside a batcher: it never finds a lock held, and its panics stay its own.
