//! The file read once: Forebay beside fio and beside the lab's own ring, with reads of one size and one depth.
//!
//! Promises: all three read the same file from its begin to its end past the kernel's cache; Forebay's is one `read` of all of
//! it into memory that was never used before, and what it got is looked at after the clock has stopped.

use std::rc::Rc;

use super::fio::FIO;
use super::material::Material;
use super::reading::Kept;
use super::runs::{RUNS, Run};
use super::{fio, forebay, ring};
use crate::closed_loop::two_workers;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial};
use crate::stopwatch::THROUGHPUT;

/// Who reads.
#[derive(Debug, Clone, Copy)]
enum Who {
    Ring,
    Fio,
    Forebay,
}

struct OnceTrial {
    who: Who,
    run: Run,
    case: String,
    memory: u64,
    material: Rc<Material>,
    kept: Rc<Kept>,
}

/// In every size; with fio where it is here.
pub(super) fn trials(
    material: &Rc<Material>,
    kept: &Rc<Kept>,
    memory: u64,
    has_fio: bool,
) -> impl Iterator<Item = Box<dyn Trial>> {
    let who = [Some(Who::Ring), has_fio.then_some(Who::Fio), Some(Who::Forebay)];
    RUNS.into_iter().flat_map(move |run| {
        who.into_iter().flatten().map(move |who| {
            let trial: Box<dyn Trial> = Box::new(OnceTrial {
                who,
                run,
                case: run.case(),
                memory,
                material: Rc::clone(material),
                kept: Rc::clone(kept),
            });
            trial
        })
    })
}

impl Trial for OnceTrial {
    fn system(&self) -> &str {
        match self.who {
            Who::Ring => LIMIT,
            Who::Fio => FIO,
            Who::Forebay => FOREBAY,
        }
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, _: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        self.kept.clear();
        self.material.leave_the_kernels_cache()?;
        let Run { bytes, depth } = self.run;
        let took = match self.who {
            Who::Ring => ring::read(&self.material, ring::whole(&self.material, bytes), bytes, depth)?,
            Who::Fio => fio::read(&self.material, bytes, depth)?,
            Who::Forebay => forebay::read_once(&two_workers()?, &self.material, self.memory, self.run)?,
        };
        Ok(vec![Reading::new(
            THROUGHPUT,
            "GB/s",
            took.bytes as f64 / 1e9 / took.seconds,
        )])
    }
}
