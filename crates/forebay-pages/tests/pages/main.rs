//! The PagePool as its users see it: right bytes on every path, memory within its limit, faults told to those they concern.

mod attack;
mod changed;
mod content;
mod create;
mod create_cancelled;
mod create_faults;
mod create_killed;
mod create_together;
mod environment;
mod faults;
mod memory;
mod model;
mod pattern;
mod stress;
mod trouble;
mod turns;
