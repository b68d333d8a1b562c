//! The files that a pool knows: by their names in the policy, and by what they are on disk.
//!
//! Promises: a file on disk has one mapping that is not retired, however many open it. When another file gets its name, it is closed
//! if nobody has it; who has it may read on, and then it is closed when its last page has gone.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::io::Inode;
use super::mapping::Mapping;

/// All mappings of a pool.
#[derive(Default)]
pub(crate) struct Files {
    by_id: HashMap<u32, Arc<Mapping>>,
    by_inode: HashMap<Inode, u32>,
    /// The last one that was opened by each path.
    by_path: HashMap<Arc<Path>, u32>,
    last_id: u32,
    /// How many there were when the idle ones were last forgotten.
    busy: usize,
}

impl Files {
    pub(crate) fn by_id(&self, id: u32) -> Option<&Arc<Mapping>> {
        self.by_id.get(&id)
    }

    /// The mapping of a file that is not retired.
    pub(crate) fn by_inode(&self, inode: Inode) -> Option<&Arc<Mapping>> {
        self.by_id(*self.by_inode.get(&inode)?)
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
        // Files of which nothing came into memory are left behind where two let go of them at once.
        if self.by_id.len() >= 2 * self.busy + 16 {
            self.forget_idle();
            self.busy = self.by_id.len();
        }
        let mapping = Arc::new(mapping);
        let inode = mapping.file.identity().on_disk();
        if self.by_inode.insert(inode, mapping.id).is_some() {
            let all = self.by_id.values();
            all.filter(|before| before.file.identity().on_disk() == inode)
                .for_each(|before| before.retire(Arc::clone(&mapping)));
        }
        if let Some(before) = self.by_path.insert(Arc::clone(&mapping.path), mapping.id)
            && let Some(before) = self.by_id.get(&before)
            && before.file.identity().on_disk() != inode
        {
            // Another file has the name now. To keep this one open for what is in memory of it may keep all of it on the disk.
            before.leave_to_sweeper(before.pages());
        }
        self.by_id.insert(mapping.id, Arc::clone(&mapping));
        mapping
    }

    /// Forgets a mapping without frames if nobody has it but `expected` who do not count, the table one of them. What it returns
    /// is to be dropped when the files are not locked: a function of checksums may own a file of this pool.
    #[must_use]
    pub(crate) fn forget_if_idle(&mut self, id: u32, expected: usize) -> Option<Arc<Mapping>> {
        let mapping = self.by_id.get(&id)?;
        // Whoever gets hold of a mapping gets it from here or from another who has it.
        if mapping.taken() > 0 || Arc::strong_count(mapping) > expected {
            return None;
        }
        let inode = mapping.file.identity().on_disk();
        if self.by_inode.get(&inode) == Some(&id) {
            self.by_inode.remove(&inode);
        }
        if self.by_path.get(&mapping.path) == Some(&id) {
            self.by_path.remove(&mapping.path);
        }
        self.by_id.remove(&id)
    }

    /// Forgets all mappings without frames that nobody has.
    fn forget_idle(&mut self) {
        let mut ids: Vec<u32> = self.by_id.keys().copied().collect();
        // A retired one has its successor: in this order it is forgotten before that is looked at.
        ids.sort_unstable();
        for id in ids {
            if let Some(mapping) = self.forget_if_idle(id, 1) {
                // Its end is not for one who has the files locked.
                mapping.leave_to_sweeper(0..0);
            }
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;
    use crate::core::Core;

    #[test]
    fn a_file_has_one_mapping_that_is_not_retired() {
        let core = Core::small(16);
        let mut files = Files::default();
        let first = core.mapping_of_zeros(4096);
        let inode = first.file.identity().on_disk();
        let (path, file) = (Arc::clone(&first.path), Arc::clone(&first.file));
        let first = files.succeed(first);
        assert!(Arc::ptr_eq(files.by_inode(inode).expect("known"), &first));
        let second = Mapping::new(&core, first.id + 1000, path, file, None).expect("address space");
        let second = files.succeed(second);
        assert!(Arc::ptr_eq(files.by_inode(inode).expect("known"), &second));
        assert!(first.is_retired() && Arc::ptr_eq(&first.latest(), &second));
        assert_eq!(files.all().count(), 2, "the retired one has readers");
        // It does not take the other's place with it.
        let id = first.id;
        drop((first, core.outdated.take()));
        let _ = files.forget_if_idle(id, 1);
        assert!(files.by_id(id).is_none() && files.by_inode(inode).is_some());
    }

    #[test]
    fn a_file_is_forgotten_when_nobody_has_it_and_nothing_of_it_is_in_memory() {
        let core = Core::small(16);
        let mut files = Files::default();
        let mapping = files.succeed(core.mapping_of_zeros(4096));
        let (id, inode) = (mapping.id, mapping.file.identity().on_disk());
        let _ = files.forget_if_idle(id, 1);
        assert!(files.by_id(id).is_some(), "somebody has it");
        core.memory.try_take(1).expect("free").spend(1);
        mapping.took(1);
        let held = Arc::clone(&mapping);
        drop(mapping);
        let _ = files.forget_if_idle(id, 2);
        assert!(files.by_id(id).is_some(), "a page of it is in memory");
        held.give_back(1);
        let _ = files.forget_if_idle(id, 2);
        assert!(files.by_id(id).is_none() && files.by_inode(inode).is_none());
    }

    #[test]
    fn what_was_left_behind_is_forgotten_as_more_comes() {
        let core = Core::small(16);
        let mut files = Files::default();
        let kept: Vec<_> = (0..3).map(|_| files.succeed(core.mapping_of_zeros(4096))).collect();
        for _ in 0..200 {
            files.succeed(core.mapping_of_zeros(4096));
            assert!(files.all().count() <= 2 * kept.len() + 18, "idle ones pile up");
        }
        kept.iter()
            .for_each(|mapping| assert!(files.by_id(mapping.id).is_some()));
    }
}
