//! Tests of the front end.

mod alter;
