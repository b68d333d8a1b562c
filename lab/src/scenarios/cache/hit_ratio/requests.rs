//! Requests that many trials replay.
//!
//! Promises: they are made once, by the first trial that needs them; a run whose figures mean nothing replays the first few.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::effort::Effort;
use crate::failure::Failure;

/// In a run whose figures mean nothing.
const TINY: usize = 3_000;

/// Made or not yet. A clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Requests(Rc<OnceCell<Vec<u64>>>);

impl Requests {
    /// As many as the effort asks for.
    pub(crate) fn of(
        &self,
        effort: Effort,
        make: impl FnOnce() -> Result<Vec<u64>, Failure>,
    ) -> Result<&[u64], Failure> {
        let all = match self.0.get() {
            Some(all) => all,
            None => {
                let made = make()?;
                self.0.get_or_init(|| made)
            }
        };
        Ok(if effort.meaningful {
            all
        } else {
            &all[..all.len().min(TINY)]
        })
    }
}
