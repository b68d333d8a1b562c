//! A small pool without a storage, and wakers, for tests of its parts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Wake, Waker};

use crate::eviction::evictor::Evictor;
use crate::eviction::sweeper;
use crate::memory::frames::FrameBudget;
use crate::memory::mapping::{Mapping, MappingContext};
use crate::memory::notes::Notes;
use crate::storage::StoredFile;
use crate::storage::identity::{Identity, Version};
use crate::storage::request::ReadRequest;

/// Pages of 4 KiB, their frames, and a sweeper.
pub(crate) struct SmallPool {
    pub(crate) context: MappingContext,
    /// Keeps the sweeper going.
    _evictor: Arc<Evictor>,
    last_id: AtomicU32,
}

impl SmallPool {
    pub(crate) fn start(frames: usize) -> Self {
        let context = MappingContext {
            page_size: 4096,
            frames: Arc::new(FrameBudget::new(frames)),
            notes: Arc::new(Notes::new(frames)),
            outdated: Arc::default(),
        };
        let evictor = Arc::new(Evictor::new(&context, Arc::default(), Arc::default()));
        sweeper::start(&evictor, None).expect("a thread");
        Self {
            context,
            _evictor: evictor,
            last_id: AtomicU32::new(0),
        }
    }

    /// A mapping, that no table knows, of a file of so many bytes that cannot be read.
    pub(crate) fn mapping_of_zeros(&self, length: u64) -> Mapping {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let file = Unreadable(Identity {
            file: (0, u64::from(id)),
            length,
            version: Version::default(),
            is_settled: true,
        });
        let path: Arc<Path> = Path::new(&format!("/unreadable/{id}")).into();
        Mapping::new(&self.context, id, path, Arc::new(file), None).expect("address space")
    }
}

/// A file that cannot be read.
pub(crate) struct Unreadable(pub(crate) Identity);

impl StoredFile for Unreadable {
    fn identity(&self) -> Identity {
        self.0
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn read(&self, _requests: Vec<ReadRequest>) {
        unreachable!("nothing is read in these tests");
    }
}

/// A waker that panics whenever it wakes.
pub(crate) struct PanickingWaker;

impl PanickingWaker {
    pub(crate) fn waker() -> Waker {
        Waker::from(Arc::new(Self))
    }
}

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

/// A waker that says whether it has woken.
#[derive(Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
