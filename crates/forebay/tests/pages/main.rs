//! The PagePool as its users see it: right bytes on every path, memory within its limit, faults told to those they concern.

mod content;
mod pattern;
