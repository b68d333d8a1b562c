//! Which page goes when room is needed.
