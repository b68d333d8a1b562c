//! `pages`: ranges of a large file, read by many at once, from disk and from memory.
//!
//! Promises: every system reads the same ranges of the same file, and what it hands out is looked at; a wrong byte fails the
//! run. Files are made once a run, in its own folder, and are gone after it. Knows which systems and cases there are; how each
//! is spoken to is in `systems` and `forebay`.

mod fio;
mod forebay;
mod kernel;
mod many;
mod material;
mod once;
mod ranges;
mod readers;
mod reading;
mod resident;
mod ring;
mod runs;
mod sizes;
mod small;
mod sparse;
mod systems;

use std::rc::Rc;

use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::scenarios::loader::locked_version;
use crate::stopwatch::THROUGHPUT;
use fio::FIO;
use material::{Look, Material};
use readers::Served;
use reading::{Begins, Kept, OVER_THE_CAP, OVER_THE_CAP_MAX_MIB, Open, ReadTrial};
use runs::RUNS;
use sizes::{READERS, Sizes};
use small::SmallTrial;
use systems::{Buffer, Foyer, Mapped, PREAD, Pread};

const MMAP: &str = "mmap";
const FOYER: &str = "foyer";
const FOYER_PACKAGE: &str = "foyer-memory";

/// The scenario.
#[derive(Debug)]
pub(crate) struct Pages {
    is_quick: bool,
}

impl Pages {
    /// With smaller files where it is to be quick.
    pub(crate) fn new(is_quick: bool) -> Self {
        Self { is_quick }
    }
}

/// What is looked at, as cases say it.
const HOT_LOOKS: [(Look, &str); 2] = [(Look::Sampled, "handed out"), (Look::Touched, "touched")];

fn many(readers: u32) -> String {
    match readers {
        1 => "1 reader".to_owned(),
        _ => format!("{readers} readers"),
    }
}

fn hot(look: &str, readers: u32) -> String {
    format!("hot, {look}, {}", many(readers))
}

fn cold(memory: &str, readers: u32) -> String {
    format!("cold, {memory}, {}", many(readers))
}

fn warm(readers: u32) -> String {
    format!("warm, {UNDER}, {}", many(readers))
}

fn small_beside(readers: u32) -> String {
    format!("64 KiB beside {}, {UNDER}", many(readers))
}

const UNDER: &str = "cache under the file";
const OVER: &str = "cache over the file";
const UNDER_DOUBLE: &str = "cache under a double file";

impl Scenario for Pages {
    fn name(&self) -> String {
        "pages".to_owned()
    }

    fn about(&self) -> String {
        let (file, double, under, over) = if self.is_quick {
            ("512 MiB", "", "256 MiB", "768 MiB")
        } else {
            ("2 GiB", " (double: 4 GiB)", "1 GiB", "3 GiB")
        };
        format!(
            "Readers each read random ranges of up to 20 MiB, drawn from seed {}, of a file of {file}{double} in which every word \
             tells its place, with\nmemory for {under} of it or {over}. Handed out: the first and last word of every 64 KiB page \
             are checked, where it is hot of one range in\nsixteen, and the ends of the others; touched: every byte is summed and the \
             sum of each page checked. Cold: the system is new and \
             the kernel has been told to forget the file (fadvise,\nDONTNEED); a reader reads 200 ranges, or until the time is \
             over. Warm: the memory is full before. Hot: it has all of the file. Readers\nare tasks of a runtime with two workers; \
             those of mmap and pread are threads.\nlimit: reads of the disk by the lab's own io_uring loop, O_DIRECT, into buffers \
             that are used again; in hot cases the same ranges\nof a buffer with the whole file. fio: the same reads by fio. \
             forebay: a pool of that memory, its defaults; runs and depth as told where\nthe file is read once, which is one read \
             of all of it into memory never used before. mmap: the file mapped. pread: through the\nkernel's cache into a buffer \
             that each reader keeps. foyer: pages of 1 MiB in its memory, fetched by get_or_fetch past the\nkernel's cache, all that \
             a range lacks at once, 32 fetches in all. The kernel's cache, which mmap and pread have, holds the file\nwhatever \
             Forebay and foyer are given. Resident over the cap: the most that the process held (/proc/self/statm, every 10 ms), \
             less\nwhat it held before the pool was made, less the pool's memory. 64 KiB beside readers: what one more waits for a read of that, \
             anywhere\nin the file of which half is in memory, with a rest of 3 ms between. 1,000 files: of {} MiB in all, each with other bytes, beside one file's first \
             part of that size; views held:\nof an eighth of these files, with memory for half of all, while the other files are \
             read once, one after another.",
            ranges::SEED,
            if self.is_quick { 250 } else { 1_000 }
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        let fio = fio::version().trim_start_matches("fio-").to_owned();
        vec![
            (FOYER_PACKAGE.to_owned(), locked_version(FOYER_PACKAGE)),
            (FIO.to_owned(), fio),
        ]
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let has_fio = match fio::find() {
            Ok(()) => true,
            Err(failure) => {
                absent.push(failure);
                false
            }
        };
        let sizes = Sizes::of(stage.effort, self.is_quick);
        let material = Rc::new(Material::make(&stage.folder.join("file"), sizes.file)?);
        let double = sizes
            .double
            .map(|bytes| Material::make(&stage.folder.join("double"), bytes).map(Rc::new))
            .transpose()?;
        Ok(trials(sizes, &material, double.as_ref(), has_fio))
    }

    /// Where the disk is asked: what it gives at most.
    fn yardsticks(&self) -> Yardsticks {
        Yardsticks {
            limit: Some(Key::new(LIMIT, RUNS[0].case())),
            forebay: None,
        }
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals: Vec<Goal> = RUNS
            .iter()
            .map(|run| Goal {
                text: format!("{}: GB/s ÷ fio and the lab's ring", run.case()),
                metric: THROUGHPUT,
                ours: Key::new(FOREBAY, run.case()),
                beside: Beside::Ratio([FIO, LIMIT].map(|system| Key::new(system, run.case())).into()),
                wanted: Wanted::AtLeast(0.9),
            })
            .collect();
        let throughput = |text: &str, ours: String, beside, least| Goal {
            text: text.to_owned(),
            metric: THROUGHPUT,
            ours: Key::new(FOREBAY, ours),
            beside,
            wanted: Wanted::AtLeast(least),
        };
        goals.push(throughput(
            "25 readers, hot, handed out",
            hot("handed out", 25),
            Beside::Nothing,
            1_000.0,
        ));
        goals.push(throughput(
            "25 readers, hot, touched: GB/s ÷ a plain sum over a buffer",
            hot("touched", 25),
            Beside::Ratio(vec![Key::new(LIMIT, hot("touched", 25))]),
            0.8,
        ));
        for (kind, case) in not_slower() {
            goals.push(throughput(
                // As rounds of one system differ by a few percent by themselves.
                &format!("{kind}: GB/s of 50 readers ÷ 10 readers"),
                case(50),
                Beside::Ratio(vec![Key::new(FOREBAY, case(10))]),
                0.95,
            ));
        }
        for case in watched()
            .into_iter()
            .flat_map(|case| READERS.iter().map(move |readers| case(*readers)))
        {
            goals.push(Goal {
                text: format!("{case}: resident over the cap"),
                metric: OVER_THE_CAP,
                ours: Key::new(FOREBAY, case),
                beside: Beside::Nothing,
                wanted: Wanted::AtMost(OVER_THE_CAP_MAX_MIB),
            });
        }
        goals.extend(many::goals());
        goals
    }
}

type CaseOf = fn(u32) -> String;

/// Where more readers are not to be slower.
fn not_slower() -> [(&'static str, CaseOf); 4] {
    [
        ("hot, handed out", |readers| hot("handed out", readers)),
        ("hot, touched", |readers| hot("touched", readers)),
        ("warm, cache under the file", warm),
        ("cold, cache over the file", |readers| cold(OVER, readers)),
    ]
}

/// Where resident memory is judged.
fn watched() -> [CaseOf; 3] {
    [|readers| cold(UNDER, readers), |readers| cold(OVER, readers), warm]
}

fn open_buffer(_: &Runtime, material: &Material, _: u64) -> Result<Box<dyn Served>, Failure> {
    Ok(Box::new(Buffer::of(material)?))
}

fn open_mapped(_: &Runtime, material: &Material, _: u64) -> Result<Box<dyn Served>, Failure> {
    Ok(Box::new(Mapped::of(material)?))
}

fn open_pread(_: &Runtime, material: &Material, _: u64) -> Result<Box<dyn Served>, Failure> {
    Ok(Box::new(Pread::of(material)?))
}

fn open_foyer(_: &Runtime, material: &Material, memory: u64) -> Result<Box<dyn Served>, Failure> {
    Ok(Box::new(Foyer::of(material, memory)?))
}

const OURS: (&str, Open) = (FOREBAY, forebay::open);
/// With a memory of its own.
const WITH_MEMORY: (&str, Open) = (FOYER, open_foyer);
/// With the kernel's.
const WITH_THE_KERNEL: [(&str, Open); 2] = [(MMAP, open_mapped), (PREAD, open_pread)];

fn trials(sizes: Sizes, material: &Rc<Material>, double: Option<&Rc<Material>>, has_fio: bool) -> Vec<Box<dyn Trial>> {
    let kept = Rc::new(Kept::default());
    let mut trials: Vec<Box<dyn Trial>> = once::trials(material, &kept, sizes.over, has_fio).collect();
    let read = |(system, open), begins, look, case, readers, memory, material: &Rc<Material>| -> Box<dyn Trial> {
        Box::new(ReadTrial {
            system,
            case,
            open,
            begins,
            look,
            readers,
            memory,
            material: Rc::clone(material),
            kept: Rc::clone(&kept),
            share: sizes.share,
            course: None,
            has_a_small_one: false,
        })
    };
    let handed_out = |who, begins, case, readers, memory, material: &Rc<Material>| {
        read(who, begins, Look::HandedOut, case, readers, memory, material)
    };
    for &readers in sizes.readers {
        for who in [WITH_MEMORY, OURS] {
            trials.push(handed_out(
                who,
                Begins::Cold,
                cold(UNDER, readers),
                readers,
                sizes.under,
                material,
            ));
        }
        for who in WITH_THE_KERNEL.into_iter().chain([WITH_MEMORY, OURS]) {
            trials.push(handed_out(
                who,
                Begins::Cold,
                cold(OVER, readers),
                readers,
                sizes.over,
                material,
            ));
        }
        for who in [WITH_MEMORY, OURS] {
            trials.push(handed_out(
                who,
                Begins::Warm,
                warm(readers),
                readers,
                sizes.under,
                material,
            ));
        }
        if let Some(double) = double {
            let case = cold(UNDER_DOUBLE, readers);
            trials.push(handed_out(OURS, Begins::Cold, case, readers, sizes.under, double));
        }
    }
    let most = *sizes.readers.last().expect("somebody reads");
    for (system, open) in [WITH_MEMORY, OURS] {
        trials.push(Box::new(ReadTrial {
            system,
            case: small_beside(most),
            open,
            begins: Begins::Warm,
            look: Look::HandedOut,
            readers: most,
            memory: sizes.under,
            material: Rc::clone(material),
            kept: Rc::clone(&kept),
            share: sizes.share,
            course: None,
            has_a_small_one: true,
        }));
    }
    trials.extend(sparse::trials(material, &kept, sizes.over, sizes.sparse));
    trials.extend(many::trials(material, &kept, sizes.many));
    // A system after another, for each has to have the whole file in memory first.
    let limit: (&str, Open) = (LIMIT, open_buffer);
    for who in [limit].into_iter().chain(WITH_THE_KERNEL).chain([WITH_MEMORY, OURS]) {
        let is_peer = who.0 != LIMIT && who.0 != FOREBAY;
        for (look, named) in HOT_LOOKS {
            for &readers in if is_peer { sizes.peers_readers } else { READERS } {
                let case = hot(named, readers);
                trials.push(read(who, Begins::Hot, look, case, readers, sizes.over, material));
            }
        }
        trials.push(Box::new(SmallTrial {
            system: who.0,
            open: who.1,
            memory: sizes.over,
            material: Rc::clone(material),
            kept: Rc::clone(&kept),
        }));
    }
    trials
}

/// Reads past the kernel's cache want a disk.
#[cfg(test)]
fn folder_on_a_disk() -> tempfile::TempDir {
    let folder = crate::places::default_folder();
    std::fs::create_dir_all(&folder).unwrap();
    tempfile::tempdir_in(folder).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;

    #[test]
    fn every_goal_names_something_that_a_full_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let material = Rc::new(Material::make(&folder.path().join("file"), 1 << 20).unwrap());
        let trials = trials(Sizes::of(Effort::full(), false), &material, Some(&material), true);
        let goals = Pages::new(false).goals();
        for key in goals.iter().flat_map(Goal::keys) {
            let measured = trials
                .iter()
                .any(|trial| trial.system() == key.system && trial.case() == key.case);
            assert!(measured, "{key:?}");
        }
        let mut names: Vec<_> = trials.iter().map(|trial| (trial.system(), trial.case())).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "two trials of one name");
    }
}
