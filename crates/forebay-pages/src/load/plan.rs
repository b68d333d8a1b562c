//! Which I/Os bring the pages that a read lacks.
//!
//! Promises: every wanted page is in exactly one run. A run begins and ends with a wanted page, has at most `run_pages` pages, and no
//! gap in it is longer than `gap_pages`. An absent page in a gap is loaded as well, if gaps are to be kept. A resident one is
//! read into the discard buffer, so that what views show is never written. One that is loading or leaving ends the run.
//!
//! Pure: knows pages by number, and their states as it is told them.

use std::ops::Range;

use crate::memory::word::State;

/// Neighbouring pages that one I/O brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRun {
    /// In order and adjacent, the first and the last one kept.
    pub(crate) extents: Vec<Extent>,
    /// How many of its pages are wanted; the others are gaps.
    pub(crate) wanted: usize,
}

/// Neighbouring pages of a run that go to the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) pages: Range<u32>,
    /// Read into their own frames; otherwise into the discard buffer.
    pub(crate) kept: bool,
}

/// How long runs and gaps may be, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// At least one.
    pub(crate) run_pages: u32,
    pub(crate) gap_pages: u32,
}

impl PlannedRun {
    /// All pages, including those that are discarded.
    pub(crate) fn pages(&self) -> Range<u32> {
        let first = self.extents.first().map_or(0, |extent| extent.pages.start);
        first..self.extents.last().map_or(0, |extent| extent.pages.end)
    }

    /// The extents whose pages are loaded.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Range<u32>> + Clone {
        self.extents
            .iter()
            .filter(|extent| extent.kept)
            .map(|extent| extent.pages.clone())
    }

    /// How many pages are loaded.
    pub(crate) fn kept_count(&self) -> usize {
        self.kept().map(|pages| pages.len()).sum()
    }

    fn push(&mut self, page: u32, kept: bool) {
        match self.extents.last_mut() {
            Some(last) if last.kept == kept => last.pages.end = page + 1,
            _ => self.extents.push(Extent {
                pages: page..page + 1,
                kept,
            }),
        }
    }
}

/// Plans the I/O for pages that are wanted and absent, given in order and each once. Absent pages in gaps are kept, or, if
/// `keeps_gaps` is not set, discarded like resident ones, and then they need no frames.
pub(crate) fn plan(wanted: &[u32], reach: Reach, keeps_gaps: bool, state: impl Fn(u32) -> State) -> Vec<PlannedRun> {
    let mut runs: Vec<PlannedRun> = Vec::new();
    for &page in wanted {
        debug_assert_eq!(state(page), State::Absent, "only absent pages are planned for");
        let gap = match runs.last() {
            None => None,
            Some(run) => {
                let pages = run.pages();
                debug_assert!(page >= pages.end, "in order, and each once");
                let gap = pages.end..page;
                let near = gap.len() <= reach.gap_pages as usize && page - pages.start < reach.run_pages;
                // A page that is loading or leaving cannot be loaded now, and to discard it would be to read it twice.
                let passable = |page| matches!(state(page), State::Absent | State::Resident);
                (near && gap.clone().all(passable)).then_some(gap)
            }
        };
        match (runs.last_mut(), gap) {
            (Some(run), Some(gap)) => {
                for between in gap {
                    // Pins may come and go meanwhile, but no page begins to load without the lock that the caller holds.
                    run.push(between, keeps_gaps && state(between) == State::Absent);
                }
                run.push(page, true);
                run.wanted += 1;
            }
            _ => runs.push(PlannedRun {
                extents: vec![Extent {
                    pages: page..page + 1,
                    kept: true,
                }],
                wanted: 1,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extents(runs: &[PlannedRun]) -> Vec<Vec<(Range<u32>, bool)>> {
        runs.iter()
            .map(|run| run.extents.iter().map(|s| (s.pages.clone(), s.kept)).collect())
            .collect()
    }

    #[test]
    fn neighbours_are_one_run_up_to_its_length() {
        let reach = Reach {
            run_pages: 3,
            gap_pages: 0,
        };
        let runs = plan(&[1, 2, 3, 4, 6], reach, true, |_| State::Absent);
        assert_eq!(
            extents(&runs),
            [vec![(1..4, true)], vec![(4..5, true)], vec![(6..7, true)]]
        );
    }

    #[test]
    fn gaps_are_kept_where_absent_and_discarded_where_resident() {
        let reach = Reach {
            run_pages: 100,
            gap_pages: 3,
        };
        let state = |page| if page == 3 { State::Resident } else { State::Absent };
        let runs = plan(&[1, 5, 9, 14], reach, true, state);
        assert_eq!(
            extents(&runs),
            [vec![(1..3, true), (3..4, false), (4..10, true)], vec![(14..15, true)]]
        );
        assert_eq!((runs[0].kept_count(), runs[0].wanted), (8, 3));
        assert_eq!(
            extents(&plan(&[1, 5, 6], reach, false, state)),
            [vec![(1..2, true), (2..5, false), (5..7, true)]]
        );
    }

    #[test]
    fn what_is_on_its_way_ends_a_run() {
        let reach = Reach {
            run_pages: 100,
            gap_pages: 3,
        };
        for way in [State::Loading, State::Leaving] {
            let runs = plan(&[1, 3], reach, true, |page| if page == 2 { way } else { State::Absent });
            assert_eq!(extents(&runs), [vec![(1..2, true)], vec![(3..4, true)]], "{way:?}");
        }
    }

    proptest! {
        #[test]
        fn holds_what_it_promises(
            states in proptest::collection::vec((0..4_u8, any::<bool>()), 1..200),
            run_pages in 1..40_u32,
            gap_pages in 0..10_u32,
            keeps_gaps: bool,
        ) {
            let state = |page: u32| match states[page as usize].0 {
                0 => State::Loading,
                1 => State::Resident,
                2 => State::Leaving,
                _ => State::Absent,
            };
            let wanted: Vec<u32> = (0..states.len() as u32)
                .filter(|page| state(*page) == State::Absent && states[*page as usize].1)
                .collect();
            let runs = plan(&wanted, Reach { run_pages, gap_pages }, keeps_gaps, state);
            let mut found = Vec::new();
            let mut end = 0;
            for run in &runs {
                let pages = run.pages();
                prop_assert!(pages.start >= end && !pages.is_empty() && pages.len() <= run_pages as usize);
                end = pages.end;
                prop_assert!(wanted.contains(&pages.start) && wanted.contains(&(pages.end - 1)));
                let mut next = pages.start;
                let mut gap = 0;
                for extent in &run.extents {
                    prop_assert_eq!(extent.pages.start, next);
                    next = extent.pages.end;
                    for page in extent.pages.clone() {
                        let is_wanted = wanted.contains(&page);
                        prop_assert!(matches!(state(page), State::Absent | State::Resident));
                        prop_assert_eq!(extent.kept, is_wanted || keeps_gaps && state(page) == State::Absent);
                        if wanted.contains(&page) {
                            found.push(page);
                            gap = 0;
                        } else {
                            gap += 1;
                            prop_assert!(gap <= gap_pages);
                        }
                    }
                }
            }
            prop_assert_eq!(runs.iter().map(|run| run.wanted).sum::<usize>(), wanted.len());
            prop_assert_eq!(found, wanted);
            // Nothing that could be one is two.
            for pair in runs.windows(2) {
                let (before, after) = (pair[0].pages(), pair[1].pages());
                let gap = before.end..after.start;
                let passable = gap.clone().all(|page| matches!(state(page), State::Absent | State::Resident));
                let near = gap.len() <= gap_pages as usize && after.start - before.start < run_pages;
                prop_assert!(!(passable && near));
            }
        }
    }
}
