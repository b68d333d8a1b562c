//! forebay
pub mod batch;
pub mod write;
