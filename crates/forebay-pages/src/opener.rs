//! How files are opened, and how it is noticed that they have changed.
//!
//! Promises: readers who open the same file get the same mapping. A file that has changed since it was opened last gets a new one,
//! and so does one that may have changed without a trace, because it had changed just before it was opened last, and a file that is opened with checksums by which its pages were not verified so far. No mapping is replaced by one of an
//! older state of its file.
//!
//! Knows nothing of reading.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;

use crate::checksum::Checksums;
use crate::error::PageError;
use crate::eviction::evictor::Evictor;
use crate::memory::files::Files;
use crate::memory::mapping::{Mapping, MappingContext};
use crate::storage::Storage;
use crate::storage::identity::Identity;

/// Opens the files of a pool.
pub(crate) struct Opener {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) context: MappingContext,
    pub(crate) files: Arc<RwLock<Files>>,
    pub(crate) evictor: Arc<Evictor>,
}

impl Opener {
    /// What the path leads to now. Blocks.
    pub(crate) fn identify(&self, path: &Arc<Path>) -> Result<Identity, PageError> {
        self.storage
            .identify(path)
            .map_err(|cause| PageError::file(path, cause))
    }

    /// The file's mapping: the one it has, or, if it is new or has changed since, a new one. Blocks.
    pub(crate) fn open(&self, path: &Arc<Path>, checksums: Option<&Checksums>) -> Result<Arc<Mapping>, PageError> {
        let began = Instant::now();
        let fits =
            |known: &&Arc<Mapping>, identity: &Identity| known.shows(identity, began) && known.is_checked_by(checksums);
        // The one that was in the way of the last try. Some file systems tell another identity of a path than of the file that is
        // opened by it, so that it is not found by the path's.
        let mut met = None;
        loop {
            let identity = self.identify(path)?;
            let before = {
                let files = self.files.read();
                let before = files.by_file(identity.file);
                if let Some(known) = before.filter(|known| fits(known, &identity)) {
                    return Ok(Arc::clone(known));
                }
                before.map(|before| before.id)
            };
            let opened = self.evictor.with_descriptors(|| self.storage.open(path));
            let file = opened.map_err(|cause| PageError::file(path, cause))?;
            let identity = file.identity();
            // Those who have it open with checksums are served verified pages even if another reader finds it changed.
            let checksums = checksums.cloned().or_else(|| {
                let files = self.files.read();
                let (checksums, _) = files.by_file(identity.file)?.checked()?;
                Some(checksums)
            });
            let checked = checksums
                .map(|checksums| {
                    let verifier = checksums.verifier(self.context.page_size, identity.length)?;
                    Ok((checksums, verifier))
                })
                .transpose()?;
            let mut files = self.files.write();
            if let Some(now) = files.by_file(identity.file) {
                if fits(&now, &identity) {
                    return Ok(Arc::clone(now));
                }
                if Some(now.id) != before && Some(now.id) != met {
                    // Another has opened it meanwhile, perhaps when it had changed once more: what was opened here may be older.
                    met = Some(now.id);
                    continue;
                }
            }
            let mapping = Mapping::new(&self.context, files.new_id(), Arc::clone(path), file, checked)?;
            return Ok(files.succeed(mapping));
        }
    }

    /// Retires a mapping: a new one of the same open file takes its place. Blocks.
    pub(crate) fn replace(&self, mapping: &Arc<Mapping>) -> Result<(), PageError> {
        loop {
            let current = mapping.latest();
            if !Arc::ptr_eq(&current, mapping) && !mapping.has_side_file() {
                // Another was faster; its successor is as new.
                return Ok(());
            }
            // Read again: a side file changes with its file. Not under the lock, for all evictions wait for that.
            let checked = current
                .checked()
                .map(|(checksums, _)| {
                    let verifier = checksums.verifier(self.context.page_size, current.length)?;
                    Ok((checksums, verifier))
                })
                .transpose()?;
            let mut files = self.files.write();
            if current.is_retired() {
                // Its successor may have an older reading of the side file than this call promises.
                continue;
            }
            let (path, file) = (Arc::clone(&current.path), Arc::clone(&current.file));
            let next = Mapping::new(&self.context, files.new_id(), path, file, checked)?;
            files.succeed(next);
            return Ok(());
        }
    }

    /// A handle of this mapping is about to be dropped, and is its only owner besides the table of files, if it is idle at all.
    pub(crate) fn close(&self, mapping: &Arc<Mapping>) {
        // A file of which nothing is in memory need not stay open.
        if mapping.taken() == 0 {
            let _forgotten = self.files.write().forget_if_idle(mapping.id, 2);
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::storage::StoredFile;
    use crate::storage::identity::Version;
    use crate::testing::{SmallPool, Unreadable};

    fn version(number: i64) -> Version {
        Version {
            changed: (number, 0),
            ..Version::default()
        }
    }

    /// A storage of one file, which changes while it is opened for the first time, and is then opened by another.
    #[derive(Default)]
    struct Changing {
        version: AtomicI64,
        /// The one who opens it in between.
        other: OnceLock<Arc<Opener>>,
        opened_by_other: OnceLock<Arc<Mapping>>,
    }

    impl Storage for Changing {
        fn identify(&self, _path: &Path) -> io::Result<Identity> {
            Ok(Identity {
                file: (7, 7),
                length: 4096,
                version: version(self.version.load(Ordering::Relaxed)),
                is_settled: true,
            })
        }

        fn open(&self, path: &Arc<Path>) -> io::Result<Arc<dyn StoredFile>> {
            let file = Unreadable(self.identify(path)?);
            if self.version.swap(1, Ordering::Relaxed) == 0 {
                let other = self.other.get().expect("set").open(path, None).expect("opened");
                assert!(self.opened_by_other.set(other).is_ok());
            }
            Ok(Arc::new(file))
        }
    }

    #[test]
    fn a_mapping_is_not_replaced_by_one_that_was_opened_before_it() {
        let pool = SmallPool::start(16);
        let files = Arc::<RwLock<Files>>::default();
        let storage = Arc::new(Changing::default());
        let opener = Arc::new(Opener {
            storage: Arc::clone(&storage) as Arc<dyn Storage>,
            context: pool.context.clone(),
            files: Arc::clone(&files),
            evictor: Arc::new(Evictor::new(&pool.context, files, Arc::default())),
        });
        let _ = storage.other.set(Arc::clone(&opener));
        let path: Arc<Path> = Path::new("/changing").into();
        let mapping = opener.open(&path, None).expect("opened");
        let newer = storage.opened_by_other.get().expect("opened in between");
        assert!(!newer.is_retired(), "by what the file was before");
        assert!(Arc::ptr_eq(&mapping, newer));
    }

    /// A storage that tells another file of a path than of the open file, and a newer version each time it is opened.
    #[derive(Default)]
    struct TwoFaced {
        opened: AtomicI64,
    }

    impl Storage for TwoFaced {
        fn identify(&self, _path: &Path) -> io::Result<Identity> {
            Ok(Identity {
                file: (7, 1),
                length: 4096,
                version: version(0),
                is_settled: true,
            })
        }

        fn open(&self, _path: &Arc<Path>) -> io::Result<Arc<dyn StoredFile>> {
            let opened = self.opened.fetch_add(1, Ordering::Relaxed);
            assert!(opened < 10, "opened again and again");
            Ok(Arc::new(Unreadable(Identity {
                file: (7, 2),
                length: 4096,
                version: version(opened),
                is_settled: true,
            })))
        }
    }

    #[test]
    fn a_file_is_opened_where_path_and_open_file_tell_different_identities() {
        let pool = SmallPool::start(16);
        let files = Arc::<RwLock<Files>>::default();
        let opener = Opener {
            storage: Arc::new(TwoFaced::default()),
            context: pool.context.clone(),
            files: Arc::clone(&files),
            evictor: Arc::new(Evictor::new(&pool.context, files, Arc::default())),
        };
        let path: Arc<Path> = Path::new("/two-faced").into();
        let first = opener.open(&path, None).expect("opened");
        let second = opener.open(&path, None).expect("opened");
        assert!(first.is_retired() && !second.is_retired());
    }

    /// A storage of one file whose times do not tell whether it has changed.
    struct Young {
        is_settled: bool,
    }

    impl Storage for Young {
        fn identify(&self, _path: &Path) -> io::Result<Identity> {
            Ok(Identity {
                file: (7, 3),
                length: 4096,
                version: version(0),
                is_settled: self.is_settled,
            })
        }

        fn open(&self, path: &Arc<Path>) -> io::Result<Arc<dyn StoredFile>> {
            Ok(Arc::new(Unreadable(self.identify(path)?)))
        }
    }

    #[test]
    fn a_file_that_may_have_changed_without_a_trace_gets_a_new_mapping_when_it_is_opened_again() {
        let pool = SmallPool::start(16);
        for is_settled in [true, false] {
            let files = Arc::<RwLock<Files>>::default();
            let opener = Opener {
                storage: Arc::new(Young { is_settled }),
                context: pool.context.clone(),
                files: Arc::clone(&files),
                evictor: Arc::new(Evictor::new(&pool.context, files, Arc::default())),
            };
            let path: Arc<Path> = Path::new("/young").into();
            let first = opener.open(&path, None).expect("opened");
            let second = opener.open(&path, None).expect("opened");
            assert_eq!(Arc::ptr_eq(&first, &second), is_settled);
            // Who began to look before it was opened may share it all the same.
            let now = opener.identify(&path).expect("there");
            let before = Instant::now()
                .checked_sub(std::time::Duration::from_secs(60))
                .expect("long ago");
            assert!(second.shows(&now, before));
            assert_eq!(second.shows(&now, Instant::now()), is_settled);
            // A part that was invalidated says nothing of the rest.
            let settled = Identity {
                is_settled: true,
                ..now
            };
            second.found(settled, false);
            assert_eq!(second.shows(&now, Instant::now()), is_settled);
            second.found(settled, true);
            assert!(second.shows(&now, Instant::now()));
        }
    }
}
