//! Names of the databases and schemas that tests make on a server that may outlive them.
//!
//! Promises: no two tests are given the same name, in whatever process of this machine they run; of a name it can be told
//! whether the process that made it still runs, so that the next run can drop what the last one left behind. Does not know how
//! to make or drop anything.

use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// A name of a test's own, for a server where `suite` (letters, digits and `_`) makes such names.
#[must_use]
pub fn scratch_name(suite: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!(
        "forebay_{suite}_{}_{}",
        process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Whether that name was made for this suite by a process that does not run any more.
#[must_use]
pub fn is_left_over(suite: &str, name: &str) -> bool {
    let made_by = || {
        let rest = name.strip_prefix("forebay_")?.strip_prefix(suite)?.strip_prefix('_')?;
        let (id, number) = rest.split_once('_')?;
        number.parse::<u64>().ok()?;
        id.parse::<libc::pid_t>().ok().filter(|id| *id > 0)
    };
    made_by().is_some_and(|id| {
        // SAFETY: signal 0 is never sent: only whether it could be is told.
        let failed = unsafe { libc::kill(id, 0) } != 0;
        failed && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same_and_none_is_left_over_while_its_process_runs() {
        let (one, two) = (scratch_name("a_suite"), scratch_name("a_suite"));
        assert_ne!(one, two);
        assert!(!is_left_over("a_suite", &one));
    }

    #[test]
    fn what_a_process_that_is_gone_has_made_is_left_over() {
        let mut child = process::Command::new("true").spawn().unwrap();
        let id = child.id();
        child.wait().unwrap();
        assert!(is_left_over("a_suite", &format!("forebay_a_suite_{id}_0")));
        for other in [
            format!("forebay_a_suite_more_{id}_0"),
            format!("forebay_other_{id}_0"),
            format!("forebay_a_suite_{id}_"),
            format!("a_suite_{id}_0"),
            "forebay_a_suite_0_0".into(),
        ] {
            assert!(!is_left_over("a_suite", &other), "{other}");
        }
    }
}
