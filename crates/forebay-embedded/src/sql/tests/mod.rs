//! Tests of the front end.

mod alter;
mod insert;
mod world;
