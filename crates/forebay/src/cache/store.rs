//! A plain map behind a lock: it stands in until the store with reads that take no lock is there.
use parking_lot::Mutex;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
pub(super) fn thread_number() -> usize {
    0
}
pub(super) struct Store<K, T> {
    map: Mutex<HashMap<K, (T, u32)>>,
    h: std::collections::hash_map::RandomState,
    cap: u64,
    counted: std::sync::atomic::AtomicU64,
}
pub(super) struct Inserted<K, T> {
    pub(super) admitted: bool,
    pub(super) evicted: u64,
    pub(super) garbage: Vec<(K, T)>,
}
impl<K: Hash + Eq, T> Store<K, T> {
    pub(super) fn new(cap: u64) -> Self {
        Self {
            map: Mutex::new(HashMap::new()),
            h: Default::default(),
            cap,
            counted: Default::default(),
        }
    }
    pub(super) fn hash<Q: Hash + ?Sized>(&self, q: &Q) -> u64 {
        self.h.hash_one(q)
    }
    pub(super) fn read<Q, R>(&self, _h: u64, q: &Q, f: impl FnOnce(&T) -> (R, bool)) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let m = self.map.lock();
        let (t, _) = m.get(q)?;
        let (r, c) = f(t);
        if c {
            self.counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Some(r)
    }
    pub(super) fn peek<Q, R>(&self, _h: u64, q: &Q, f: impl FnOnce(&T) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let m = self.map.lock();
        m.get(q).map(|(t, _)| f(t))
    }
    pub(super) fn insert(&self, _h: u64, k: K, w: u32, t: T) -> Inserted<K, T>
    where
        K: Clone,
    {
        let mut m = self.map.lock();
        let mut garbage = vec![];
        if let Some((g, _)) = m.remove(&k) {
            garbage.push((k.clone(), g));
        }
        if u64::from(w) > self.cap {
            return Inserted {
                admitted: false,
                evicted: 0,
                garbage,
            };
        }
        let mut evicted = 0;
        while m.values().map(|v| u64::from(v.1)).sum::<u64>() + u64::from(w) > self.cap {
            let kk = m.keys().next().cloned().unwrap();
            let v = m.remove(&kk).unwrap();
            garbage.push((kk, v.0));
            evicted += 1;
        }
        m.insert(k, (t, w));
        Inserted {
            admitted: true,
            evicted,
            garbage,
        }
    }
    pub(super) fn remove(&self, _h: u64, k: &K) -> Option<(K, T)> {
        self.map.lock().remove_entry(k).map(|(k, (t, _))| (k, t))
    }
    pub(super) fn clear(&self) -> Vec<(K, (T, u32))> {
        self.map.lock().drain().collect()
    }
    pub(super) fn counted(&self) -> u64 {
        self.counted.load(std::sync::atomic::Ordering::Relaxed)
    }
    pub(super) fn len(&self) -> usize {
        self.map.lock().len()
    }
    pub(super) fn weight(&self) -> u64 {
        self.map.lock().values().map(|v| u64::from(v.1)).sum()
    }
    pub(super) fn capacity(&self) -> u64 {
        self.cap
    }
}
