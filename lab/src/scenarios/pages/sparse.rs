//! Many small ranges far apart, read by one `read_many`: what it gives to read through gaps, by how long a gap may be.
//!
//! Promises: every system reads the same ranges, and every byte of them is looked at. The limit is the lab's ring, which reads
//! the blocks that the ranges lie in and no others.

use std::ops::Range;
use std::rc::Rc;

use super::material::Material;
use super::reading::Kept;
use super::{forebay, ranges, ring};
use crate::closed_loop::two_workers;
use crate::failure::Failure;
use crate::measurement::{MIB, Reading};
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial};

/// The pool's pages, and the longest gaps that are read through.
const SETTINGS: [(usize, u64); 7] = [
    (64 << 10, 0),
    (64 << 10, 64 << 10),
    (64 << 10, 256 << 10),
    (64 << 10, 1 << 20),
    (4 << 10, 0),
    (4 << 10, 16 << 10),
    (4 << 10, 256 << 10),
];
/// The ring's reads at once: the disk gives no more with more.
const DEPTH: u32 = 64;
/// More than the longest range has, and the blocks it lies in.
const BLOCKS_BYTES_MAX: u64 = 32 << 10;

struct SparseTrial {
    /// Page size and gap; none for the limit.
    setting: Option<(usize, u64)>,
    case: String,
    memory: u64,
    ranges: Rc<[Range<u64>]>,
    material: Rc<Material>,
    kept: Rc<Kept>,
}

/// The limit once, and Forebay with each setting.
pub(super) fn trials(
    material: &Rc<Material>,
    kept: &Rc<Kept>,
    memory: u64,
    most: usize,
) -> impl Iterator<Item = Box<dyn Trial>> {
    let ranges: Rc<[Range<u64>]> = ranges::sparse(material.bytes, most).into();
    std::iter::once(None).chain(SETTINGS.map(Some)).map(move |setting| {
        let trial: Box<dyn Trial> = Box::new(SparseTrial {
            setting,
            case: match setting {
                None => "sparse ranges".to_owned(),
                Some((page, gap)) => format!("sparse ranges, pages of {} KiB, gap of {} KiB", page >> 10, gap >> 10),
            },
            memory,
            ranges: Rc::clone(&ranges),
            material: Rc::clone(material),
            kept: Rc::clone(kept),
        });
        trial
    })
}

impl Trial for SparseTrial {
    fn system(&self) -> &str {
        if self.setting.is_some() { FOREBAY } else { LIMIT }
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, _: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        self.kept.clear();
        self.material.leave_the_kernels_cache()?;
        let took = match self.setting {
            Some(setting) => forebay::read_sparse(&two_workers()?, &self.material, self.memory, setting, &self.ranges)?,
            None => {
                let blocks = self.ranges.iter().map(ranges::blocks);
                ring::read(&self.material, blocks, BLOCKS_BYTES_MAX, DEPTH)?
            }
        };
        Ok(vec![
            Reading::new("time of all ranges", "ms", took.seconds * 1e3),
            Reading::new("bytes read", "MiB", took.bytes as f64 / MIB),
        ])
    }
}
