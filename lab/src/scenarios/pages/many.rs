//! Many files in one pool, and many views held at once: whether one more of either costs what the first did.
//!
//! Promises: the files together are as large as the one that they are held against, and every byte of theirs is another one, so that a
//! byte of another file is seen. Every read is looked at, as long as it is held. Nothing but the number of files, or of views, differs
//! between the cases of one kind. Knows what a pool is, for views are its own.

use std::cell::OnceCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay::pages::{PagePool, PagedFile, View};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::forebay::failed;
use super::material::{Look, Material};
use super::ranges::SEED;
use super::reading::{Kept, OVER_THE_CAP, OVER_THE_CAP_MAX_MIB};
use super::resident::Watch;
use super::small;
use super::systems::PREAD;
use crate::closed_loop::two_workers;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::{MIB, Reading};
use crate::scenario::{FOREBAY, Stage, Trial};

/// As many files as a pool may well have open.
const MANY: usize = 1_000;
const FILES: [usize; 2] = [1, MANY];
/// Views that are held at once.
const VIEWS: [usize; 2] = [100, 100_000];
const READERS: u64 = 25;
/// What is read at a time.
const READ_BYTES: u64 = 16 << 10;
/// Of a measurement's time.
const SHARE: f64 = 1.0 / 6.0;
/// Reads beside the views that are held.
const READS_BESIDE: u64 = 20_000;

const READS: &str = "reads";
const OPENING: &str = "time to open a file";
const LOADING: &str = "loading";
const TAKING: &str = "time to take a view";

/// The files, made by the first trial that wants them.
pub(super) struct Shelf {
    bytes: u64,
    files: OnceCell<Vec<Material>>,
}

impl Shelf {
    /// For files of so many bytes in all.
    fn of(bytes: u64) -> Self {
        Self {
            bytes,
            files: OnceCell::new(),
        }
    }

    /// Each has the bytes of its own part of one large file.
    fn files(&self, folder: &Path) -> Result<&[Material], Failure> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let folder = folder.join("many");
        std::fs::create_dir_all(&folder).map_err(Failure::system("make a folder"))?;
        let bytes = self.bytes / MANY as u64;
        let files: Result<Vec<Material>, Failure> = (0..MANY as u64)
            .map(|number| Material::make_part(&folder.join(number.to_string()), number * bytes..(number + 1) * bytes))
            .collect();
        let files = files?;
        Ok(self.files.get_or_init(|| files))
    }
}

/// Who reads the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Pread,
    Forebay,
}

/// Everything about many files and many views; `bytes` is what all the files have.
pub(super) fn trials(material: &Rc<Material>, kept: &Rc<Kept>, bytes: u64) -> Vec<Box<dyn Trial>> {
    let shelf = Rc::new(Shelf::of(bytes));
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for files in FILES {
        for who in [Who::Pread, Who::Forebay] {
            trials.push(Box::new(FilesTrial {
                who,
                case: files_case(files),
                files,
                shelf: Rc::clone(&shelf),
                material: Rc::clone(material),
                kept: Rc::clone(kept),
            }));
        }
    }
    for views in VIEWS {
        trials.push(Box::new(ViewsTrial {
            case: views_case(views),
            views,
            shelf: Rc::clone(&shelf),
            kept: Rc::clone(kept),
        }));
    }
    trials
}

pub(super) fn goals() -> Vec<Goal> {
    let [few_files, many_files] = FILES.map(files_case);
    let [few_views, many_views] = VIEWS.map(views_case);
    let goal = |text: &str, metric, ours: &str, theirs: &str, wanted| Goal {
        text: text.to_owned(),
        metric,
        ours: Key::new(FOREBAY, ours),
        beside: Beside::Ratio(vec![Key::new(FOREBAY, theirs)]),
        wanted,
    };
    vec![
        goal(
            "hot, 1,000 files ÷ 1 file: reads/s",
            READS,
            &many_files,
            &few_files,
            Wanted::AtLeast(0.8),
        ),
        goal(
            "100,000 views held ÷ 100: time of a read beside them",
            small::TIME,
            &many_views,
            &few_views,
            Wanted::AtMost(1.25),
        ),
        goal(
            "100,000 views held ÷ 100: loading beside them",
            LOADING,
            &many_views,
            &few_views,
            Wanted::AtLeast(0.8),
        ),
        Goal {
            text: format!("{many_views}: resident over the cap"),
            metric: OVER_THE_CAP,
            ours: Key::new(FOREBAY, many_views),
            beside: Beside::Nothing,
            wanted: Wanted::AtMost(OVER_THE_CAP_MAX_MIB),
        },
    ]
}

fn files_case(files: usize) -> String {
    match files {
        1 => "hot, 16 KiB reads, 25 readers, 1 file".to_owned(),
        _ => "hot, 16 KiB reads, 25 readers, 1,000 files".to_owned(),
    }
}

fn views_case(views: usize) -> String {
    match views {
        100 => "100 views held of 1,000 files".to_owned(),
        _ => "100,000 views held of 1,000 files".to_owned(),
    }
}

/// A file that is open, and where its first byte is in the large file whose part it is.
struct Opened<F> {
    file: F,
    begin: u64,
    bytes: u64,
}

impl<F> Opened<F> {
    /// A place in it for a read.
    fn place(&self, draw: &mut StdRng) -> Range<u64> {
        let from = draw.random_range(0..=self.bytes - READ_BYTES);
        from..from + READ_BYTES
    }
}

struct FilesTrial {
    who: Who,
    case: String,
    files: usize,
    shelf: Rc<Shelf>,
    material: Rc<Material>,
    kept: Rc<Kept>,
}

impl FilesTrial {
    /// One file has as many bytes as all of many.
    fn materials(&self, folder: &Path) -> Result<Vec<(&Material, u64)>, Failure> {
        match self.files {
            1 => Ok(vec![(&self.material, self.shelf.bytes.min(self.material.bytes))]),
            _ => Ok(self
                .shelf
                .files(folder)?
                .iter()
                .map(|file| (file, file.bytes))
                .collect()),
        }
    }

    fn pread(&self, folder: &Path, duration: Duration) -> Result<Vec<Reading>, Failure> {
        let materials = self.materials(folder)?;
        let begun = Instant::now();
        let opened: Result<Vec<Opened<File>>, Failure> = materials
            .iter()
            .map(|(material, bytes)| {
                let file = File::open(&material.path).map_err(Failure::system("open a file"))?;
                file.metadata().map_err(Failure::system("look at a file"))?;
                Ok(Opened {
                    file,
                    begin: material.begin,
                    bytes: *bytes,
                })
            })
            .collect();
        let opening = begun.elapsed();
        let opened = Arc::new(opened?);
        let mut buffer = Vec::new();
        for one in opened.iter() {
            buffer.resize(one.bytes as usize, 0);
            one.file
                .read_exact_at(&mut buffer, 0)
                .map_err(Failure::system("read a file"))?;
        }
        drop(buffer);
        let runtime = two_workers()?;
        let (reads, seconds) = runtime.block_on(async {
            let begun = Instant::now();
            let tasks: Vec<_> = (0..READERS)
                .map(|reader| {
                    let opened = Arc::clone(&opened);
                    // Those of a system that blocks are threads.
                    tokio::task::spawn_blocking(move || {
                        let mut draw = StdRng::seed_from_u64(SEED + reader);
                        let mut buffer = vec![0; READ_BYTES as usize];
                        let mut reads = 0_u64;
                        while reads == 0 || begun.elapsed() < duration {
                            let one = &opened[draw.random_range(0..opened.len())];
                            let place = one.place(&mut draw);
                            one.file
                                .read_exact_at(&mut buffer, place.start)
                                .map_err(Failure::system("read a file"))?;
                            Look::HandedOut.at(one.begin + place.start, &buffer)?;
                            reads += 1;
                        }
                        Ok::<_, Failure>(reads)
                    })
                })
                .collect();
            let mut reads = 0;
            for task in tasks {
                reads += task.await.expect("a reader does not panic")?;
            }
            Ok::<_, Failure>((reads, begun.elapsed().as_secs_f64()))
        })?;
        Ok(vec![
            Reading::new(READS, "reads/s", reads as f64 / seconds),
            Reading::new(OPENING, "µs", opening.as_secs_f64() * 1e6 / self.files as f64),
        ])
    }

    fn forebay(&self, folder: &Path, duration: Duration) -> Result<Vec<Reading>, Failure> {
        let materials = self.materials(folder)?;
        let runtime = two_workers()?;
        runtime.block_on(async {
            // What many files have besides is not to be what is measured: the last page of each may be half empty.
            let pool = pool(self.shelf.bytes * 5 / 4)?;
            let begun = Instant::now();
            let opened = Arc::new(open(&pool, &materials).await?);
            let opening = begun.elapsed();
            for one in opened.iter() {
                one.file.read(..one.bytes).await.map_err(|error| failed(&error))?;
            }
            let loaded = pool.stats().read_bytes;
            let begun = Instant::now();
            let tasks: Vec<_> = (0..READERS)
                .map(|reader| {
                    let opened = Arc::clone(&opened);
                    tokio::spawn(async move {
                        let mut draw = StdRng::seed_from_u64(SEED + reader);
                        let mut reads = 0_u64;
                        while reads == 0 || begun.elapsed() < duration {
                            let one = &opened[draw.random_range(0..opened.len())];
                            let place = one.place(&mut draw);
                            let from = one.begin + place.start;
                            let view = one.file.read(place).await.map_err(|error| failed(&error))?;
                            Look::HandedOut.at(from, &view)?;
                            reads += 1;
                            if reads.is_multiple_of(16) {
                                tokio::task::yield_now().await;
                            }
                        }
                        Ok::<_, Failure>(reads)
                    })
                })
                .collect();
            let mut reads = 0;
            for task in tasks {
                reads += task.await.expect("a reader does not panic")?;
            }
            let seconds = begun.elapsed().as_secs_f64();
            if pool.stats().read_bytes != loaded {
                return Err(Failure::Wrong("forebay read what was in memory".to_owned()));
            }
            Ok(vec![
                Reading::new(READS, "reads/s", reads as f64 / seconds),
                Reading::new(OPENING, "µs", opening.as_secs_f64() * 1e6 / self.files as f64),
            ])
        })
    }
}

impl Trial for FilesTrial {
    fn system(&self) -> &str {
        match self.who {
            Who::Pread => PREAD,
            Who::Forebay => FOREBAY,
        }
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        self.kept.clear();
        let duration = stage.effort.duration.mul_f64(SHARE);
        match self.who {
            Who::Pread => self.pread(stage.folder, duration),
            Who::Forebay => self.forebay(stage.folder, duration),
        }
    }
}

fn pool(memory: u64) -> Result<PagePool, Failure> {
    PagePool::builder()
        .memory(memory)
        .build()
        .map_err(|error| failed(&error))
}

async fn open(pool: &PagePool, materials: &[(&Material, u64)]) -> Result<Vec<Opened<PagedFile>>, Failure> {
    let mut opened = Vec::with_capacity(materials.len());
    for (material, bytes) in materials {
        opened.push(Opened {
            file: pool.open(&material.path).await.map_err(|error| failed(&error))?,
            begin: material.begin,
            bytes: *bytes,
        });
    }
    Ok(opened)
}

/// Views are held of a quarter of the pool, which has memory for half of all files; then all is read once beside them.
struct ViewsTrial {
    case: String,
    views: usize,
    shelf: Rc<Shelf>,
    kept: Rc<Kept>,
}

impl Trial for ViewsTrial {
    fn system(&self) -> &str {
        FOREBAY
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        self.kept.clear();
        let files = self.shelf.files(stage.folder)?;
        for file in files {
            file.leave_the_kernels_cache()?;
        }
        let materials: Vec<(&Material, u64)> = files.iter().map(|file| (file, file.bytes)).collect();
        let memory = self.shelf.bytes / 2;
        let watch = Watch::begin()?;
        let mut readings = two_workers()?.block_on(async {
            let pool = pool(memory)?;
            let opened = open(&pool, &materials).await?;
            let (of_views, others) = opened.split_at(opened.len() / 8);
            // Loaded before, so that to take a view is no load.
            for one in of_views {
                one.file.read(..).await.map_err(|error| failed(&error))?;
            }
            let mut draw = StdRng::seed_from_u64(SEED);
            let mut held: Vec<(u64, View)> = Vec::with_capacity(self.views);
            let begun = Instant::now();
            for number in 0..self.views {
                let one = &of_views[number % of_views.len()];
                let place = one.place(&mut draw);
                let from = one.begin + place.start;
                held.push((from, one.file.read(place).await.map_err(|error| failed(&error))?));
            }
            let taking = begun.elapsed();
            let begun = Instant::now();
            for _ in 0..READS_BESIDE {
                let one = &of_views[draw.random_range(0..of_views.len())];
                let place = one.place(&mut draw);
                let from = one.begin + place.start;
                let view = one.file.read(place).await.map_err(|error| failed(&error))?;
                Look::HandedOut.at(from, &view)?;
            }
            let reading = begun.elapsed();
            let before = pool.stats().read_bytes;
            let begun = Instant::now();
            for one in others {
                let view = one.file.read(..).await.map_err(|error| failed(&error))?;
                Look::HandedOut.at(one.begin, &view)?;
            }
            let (loaded, loading) = (pool.stats().read_bytes - before, begun.elapsed());
            for (from, view) in &held {
                Look::HandedOut.at(*from, view)?;
            }
            Ok::<_, Failure>(vec![
                Reading::new(LOADING, "GB/s", loaded as f64 / 1e9 / loading.as_secs_f64()),
                Reading::new(small::TIME, "ns", reading.as_secs_f64() * 1e9 / READS_BESIDE as f64),
                Reading::new(TAKING, "ns", taking.as_secs_f64() * 1e9 / self.views as f64),
            ])
        })?;
        let cap = memory as f64 / MIB;
        readings.push(Reading::new(OVER_THE_CAP, "MiB", watch.end().most() - cap));
        Ok(readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::scenarios::pages::folder_on_a_disk;
    use crate::scenarios::pages::material::PAGE_BYTES;

    #[test]
    fn a_file_in_the_place_of_another_is_seen() {
        let folder = folder_on_a_disk();
        let shelf = Shelf::of(MANY as u64 * PAGE_BYTES);
        let material = Rc::new(Material::make(&folder.path().join("file"), shelf.bytes).unwrap());
        let stage = Stage {
            folder: folder.path(),
            effort: Effort::tiny(),
        };
        let mut trials = trials(&material, &Rc::new(Kept::default()), shelf.bytes);
        for trial in &mut trials {
            assert!(trial.measure(&stage).is_ok(), "{}, {}", trial.system(), trial.case());
        }
        let many = folder.path().join("many");
        for number in 0..MANY {
            std::fs::copy(many.join("0"), many.join(number.to_string())).unwrap();
        }
        for trial in trials.iter_mut().filter(|trial| trial.case().contains("1,000 files")) {
            assert!(trial.measure(&stage).is_err(), "{}, {}", trial.system(), trial.case());
        }
    }
}
