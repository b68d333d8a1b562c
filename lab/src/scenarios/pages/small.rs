//! Small reads of a file that is in memory: what the way to the bytes costs.
//!
//! Promises: one reader reads the same thousand places over and over, so that the bytes are in the processor's cache; the first
//! and the last whole word of each read is looked at. Knows no system from within.

use std::ops::Range;
use std::rc::Rc;

use super::material::Material;
use super::ranges;
use super::reading::{Kept, Open};
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};

const BYTES: u64 = 4096;
/// Of a measurement's time.
const SHARE: f64 = 1.0 / 6.0;
pub(super) const CASE: &str = "hot, 4 KiB reads, 1 reader";
pub(super) const TIME: &str = "time a read";

pub(super) struct SmallTrial {
    pub(super) system: &'static str,
    pub(super) open: Open,
    pub(super) memory: u64,
    pub(super) material: Rc<Material>,
    pub(super) kept: Rc<Kept>,
}

impl Trial for SmallTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &'static str {
        CASE
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let places: Vec<Range<u64>> = ranges::places(self.material.bytes, BYTES);
        let duration = stage.effort.duration.mul_f64(SHARE);
        let open = (self.system, self.open);
        let nanoseconds = self.kept.with(open, &self.material, self.memory, |runtime, served| {
            served.repeat(runtime, &places, duration)
        })?;
        Ok(vec![Reading::new(TIME, "ns", nanoseconds)])
    }
}
