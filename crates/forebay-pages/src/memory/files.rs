//! The files that a pool knows: by the ids of their mappings, by what they are in their storage, and by their paths.
//!
//! Promises: a file has one mapping that is not retired, however many readers open it. When another file gets its path, it is
//! closed if nobody has it open; whoever does may go on reading, and it is closed when its last page has left.
//!
//! Knows nothing of how files are opened.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::mapping::Mapping;
use crate::storage::identity::FileId;

/// All mappings of a pool.
#[derive(Default)]
pub(crate) struct Files {
    by_id: HashMap<u32, Arc<Mapping>>,
    by_file: HashMap<FileId, u32>,
    /// The last one that was opened by each path.
    by_path: HashMap<Arc<Path>, u32>,
    last_id: u32,
    /// How many were left when the idle ones were last forgotten.
    busy: usize,
}

impl Files {
    pub(crate) fn by_id(&self, id: u32) -> Option<&Arc<Mapping>> {
        self.by_id.get(&id)
    }

    /// The mapping of a file that is not retired.
    pub(crate) fn by_file(&self, file: FileId) -> Option<&Arc<Mapping>> {
        self.by_id(*self.by_file.get(&file)?)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Mapping>> {
        self.by_id.values()
    }

    /// An id that no mapping has.
    pub(crate) fn new_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.by_id.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// From now on this is the file's mapping; the one before it is retired.
    pub(crate) fn succeed(&mut self, mapping: Mapping) -> Arc<Mapping> {
        // Mappings of which nothing came into memory are left behind where two let go of them at the same time.
        if self.by_id.len() >= 2 * self.busy + 16 {
            self.forget_idle();
            self.busy = self.by_id.len();
        }
        let mapping = Arc::new(mapping);
        let file = mapping.file_id();
        if self.by_file.insert(file, mapping.id).is_some() {
            let all = self.by_id.values();
            all.filter(|before| before.file_id() == file)
                .for_each(|before| before.retire(Arc::clone(&mapping)));
        }
        if let Some(before) = self.by_path.insert(Arc::clone(&mapping.path), mapping.id)
            && let Some(before) = self.by_id.get(&before)
            && before.file_id() != file
        {
            // Another file has the path now. Keeping this one open for the pages that are in memory may keep all of it on the disk.
            before.leave_to_sweeper(before.pages());
        }
        self.by_id.insert(mapping.id, Arc::clone(&mapping));
        mapping
    }

    /// Forgets a mapping without frames if only `expected` owners have it, of which this table is one. The result is to be dropped
    /// after the files are unlocked: a checksum function may own a file of this pool.
    #[must_use]
    pub(crate) fn forget_if_idle(&mut self, id: u32, expected: usize) -> Option<Arc<Mapping>> {
        let mapping = self.by_id.get(&id)?;
        // New owners get a mapping from this table or from another owner.
        if mapping.taken() > 0 || Arc::strong_count(mapping) > expected {
            return None;
        }
        let file = mapping.file_id();
        if self.by_file.get(&file) == Some(&id) {
            self.by_file.remove(&file);
        }
        if self.by_path.get(&mapping.path) == Some(&id) {
            self.by_path.remove(&mapping.path);
        }
        self.by_id.remove(&id)
    }

    /// Forgets all mappings without frames that nobody has.
    fn forget_idle(&mut self) {
        let mut ids: Vec<u32> = self.by_id.keys().copied().collect();
        // A retired mapping owns its successor: in this order it is forgotten before its successor is looked at.
        ids.sort_unstable();
        for id in ids {
            if let Some(mapping) = self.forget_if_idle(id, 1) {
                // It must not be dropped while the files are locked.
                mapping.leave_to_sweeper(0..0);
            }
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;
    use crate::testing::SmallPool;

    #[test]
    fn a_file_has_one_mapping_that_is_not_retired() {
        let pool = SmallPool::start(16);
        let mut files = Files::default();
        let first = pool.mapping_of_zeros(4096);
        let file_id = first.file_id();
        let (path, file) = (Arc::clone(&first.path), Arc::clone(&first.file));
        let first = files.succeed(first);
        assert!(Arc::ptr_eq(files.by_file(file_id).expect("known"), &first));
        let second = Mapping::new(&pool.context, first.id + 1000, path, file, None).expect("address space");
        let second = files.succeed(second);
        assert!(Arc::ptr_eq(files.by_file(file_id).expect("known"), &second));
        assert!(first.is_retired() && Arc::ptr_eq(&first.latest(), &second));
        assert_eq!(files.all().count(), 2, "the retired one has readers");
        // It does not take the other's place with it.
        let id = first.id;
        drop((first, pool.context.outdated.take()));
        let _ = files.forget_if_idle(id, 1);
        assert!(files.by_id(id).is_none() && files.by_file(file_id).is_some());
    }

    #[test]
    fn a_file_is_forgotten_when_nobody_has_it_and_nothing_of_it_is_in_memory() {
        let pool = SmallPool::start(16);
        let mut files = Files::default();
        let mapping = files.succeed(pool.mapping_of_zeros(4096));
        let (id, file) = (mapping.id, mapping.file_id());
        let _ = files.forget_if_idle(id, 1);
        assert!(files.by_id(id).is_some(), "somebody has it");
        pool.context.frames.try_take(1).expect("free").spend(1);
        mapping.took(1);
        let held = Arc::clone(&mapping);
        drop(mapping);
        let _ = files.forget_if_idle(id, 2);
        assert!(files.by_id(id).is_some(), "a page of it is in memory");
        held.give_back(1);
        let _ = files.forget_if_idle(id, 2);
        assert!(files.by_id(id).is_none() && files.by_file(file).is_none());
    }

    #[test]
    fn what_was_left_behind_is_forgotten_as_more_comes() {
        let pool = SmallPool::start(16);
        let mut files = Files::default();
        let kept: Vec<_> = (0..3).map(|_| files.succeed(pool.mapping_of_zeros(4096))).collect();
        for _ in 0..200 {
            files.succeed(pool.mapping_of_zeros(4096));
            assert!(files.all().count() <= 2 * kept.len() + 18, "idle ones pile up");
        }
        kept.iter()
            .for_each(|mapping| assert!(files.by_id(mapping.id).is_some()));
    }
}
