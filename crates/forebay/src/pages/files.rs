//! The files that a pool knows: by their names in the policy, and by what they are on disk.
//!
//! Promises: a file on disk has one mapping that is not retired, however many open it.

use std::collections::HashMap;
use std::sync::Arc;

use super::io::Inode;
use super::mapping::Mapping;

/// All mappings of a pool.
#[derive(Default)]
pub(crate) struct Files {
    by_id: HashMap<u32, Arc<Mapping>>,
    by_inode: HashMap<Inode, u32>,
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
        let before = self.by_inode.insert(mapping.file.identity().on_disk(), mapping.id);
        self.by_id.insert(mapping.id, Arc::clone(&mapping));
        if let Some(before) = before.and_then(|id| self.by_id.get(&id)) {
            before.retire(Arc::clone(&mapping));
        }
        mapping
    }

    /// Forgets a mapping without frames if nobody has it but `expected` who do not count, the table one of them.
    pub(crate) fn forget_if_idle(&mut self, id: u32, expected: usize) {
        let Some(mapping) = self.by_id.get(&id) else { return };
        // Whoever gets hold of a mapping gets it from here or from another who has it.
        if mapping.taken() > 0 || Arc::strong_count(mapping) > expected {
            return;
        }
        let inode = mapping.file.identity().on_disk();
        if self.by_inode.get(&inode) == Some(&id) {
            self.by_inode.remove(&inode);
        }
        self.by_id.remove(&id);
    }

    /// Forgets all mappings without frames that nobody has.
    fn forget_idle(&mut self) {
        let ids: Vec<u32> = self.by_id.keys().copied().collect();
        for id in ids {
            self.forget_if_idle(id, 1);
        }
    }
}
