//! What is known of a value beside the value: said by whoever gave it, and kept with it wherever it goes.
//!
//! Promises: plain data; what is said of many values alike is mostly there once. Does not know entries, sources or tiers.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// What the source says of a value beside the value; all of it may be left out. See [`Fetched`](super::Fetched) for how to say it.
///
/// ```
/// use std::time::Duration;
/// use forebay::cache::Fetched;
///
/// let said = Fetched::of(12).fresh_for(Duration::from_secs(5)).tag("prices").details;
/// assert_eq!((said.fresh_for, &*said.tags[0]), (Some(Duration::from_secs(5)), "prices"));
/// assert_eq!((said.weight, said.validator), (None, None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// How long it is fresh, instead of [`CacheBuilder::fresh_for`](super::CacheBuilder::fresh_for).
    pub fresh_for: Option<Duration>,
    /// How long it is stale after that, instead of [`CacheBuilder::stale_for`](super::CacheBuilder::stale_for).
    pub stale_for: Option<Duration>,
    /// What it weighs, instead of what [`CacheBuilder::weigher`](super::CacheBuilder::weigher) says.
    pub weight: Option<u32>,
    /// What it is about, for [`Cache::invalidate_tag`](super::Cache::invalidate_tag).
    pub tags: Vec<Arc<str>>,
    /// By what the source tells whether the value has changed: an entity tag, a version, the time of the last change.
    pub validator: Option<Arc<str>>,
}

/// So many a thread keeps at hand.
const LATEST: usize = 4;

thread_local! {
    /// What was said last but for tags, and the place of what is said next.
    static SAID: RefCell<(usize, [Option<Arc<Details>>; LATEST])> = const { RefCell::new((0, [const { None }; LATEST])) };
}

impl Details {
    /// These, where there is something in them.
    pub(super) fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }

    /// The same with these tags.
    pub(super) fn with_tags(self, tags: Vec<Arc<str>>) -> Self {
        Self { tags, ..self }
    }

    /// The same but for tags, where there is something in them: what others have of whom the same was said a moment ago.
    pub(super) fn without_tags(&self) -> Option<Arc<Self>> {
        let untagged = Self {
            tags: Vec::new(),
            validator: self.validator.clone(),
            ..*self
        };
        if untagged == Self::default() {
            return None;
        }
        let of_this_thread = SAID.try_with(|said| {
            let (next, said) = &mut *said.borrow_mut();
            if let Some(alike) = said.iter().flatten().find(|alike| ***alike == untagged) {
                return Arc::clone(alike);
            }
            let new = Arc::new(untagged.clone());
            said[*next] = Some(Arc::clone(&new));
            *next = (*next + 1) % LATEST;
            new
        });
        // A thread that ends has none at hand.
        Some(of_this_thread.unwrap_or_else(|_| Arc::new(untagged)))
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    fn said(weight: u32) -> Arc<Details> {
        let details = Details {
            weight: Some(weight),
            tags: vec![weight.to_string().into()],
            ..Details::default()
        };
        details.without_tags().expect("it has a weight")
    }

    #[test]
    fn what_is_said_alike_is_there_once() {
        let tagged = Details::default().with_tags(vec!["prices".into()]);
        assert_eq!(tagged.without_tags(), None);
        let first = said(1);
        assert_eq!((said(2).weight, said(3).weight), (Some(2), Some(3)));
        assert!(Arc::ptr_eq(&first, &said(1)));
        // Those at hand are few.
        let others: Vec<_> = (10..10 + LATEST as u32).map(said).collect();
        assert!(!Arc::ptr_eq(&first, &said(1)));
        assert_eq!(others.len(), LATEST);
    }
}
