//! forebay
pub mod batch;
pub mod load;
pub mod write;
