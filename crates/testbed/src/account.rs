//! The account a server runs as, when the tests run as root and the server refuses to.
//!
//! Does not know which servers refuse; never changes the account of this process, only of children.

use std::{ffi::CString, mem, ptr};

/// A user and group of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The user's number.
    pub user: u32,
    /// The number of the user's own group.
    pub group: u32,
}

impl Account {
    /// Whether this process runs as root.
    #[must_use]
    pub fn is_root() -> bool {
        // SAFETY: takes nothing, cannot fail.
        unsafe { libc::geteuid() == 0 }
    }

    /// The account of this name, if the machine has one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        // The texts of the entry go here; entries of system accounts are a fraction of this.
        let mut texts = vec![0 as libc::c_char; 16 * 1024];
        // SAFETY: `passwd` is plain data for which all zeroes is a value.
        let mut entry: libc::passwd = unsafe { mem::zeroed() };
        let mut found: *mut libc::passwd = ptr::null_mut();
        // SAFETY: all pointers are to live, writable values of the stated sizes; `name` ends with a zero byte.
        let failed = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                &raw mut entry,
                texts.as_mut_ptr(),
                texts.len(),
                &raw mut found,
            )
        };
        (failed == 0 && !found.is_null()).then_some(Self {
            user: entry.pw_uid,
            group: entry.pw_gid,
        })
    }

    /// The first of these accounts that exists.
    #[must_use]
    pub fn first_of(names: &[&str]) -> Option<Self> {
        names.iter().find_map(|name| Self::named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_nobody_by_a_wrong_name() {
        assert_eq!(Account::named("root"), Some(Account { user: 0, group: 0 }));
        assert_eq!(Account::named("no such account"), None);
        assert_eq!(Account::first_of(&["no such account", "root"]), Account::named("root"));
    }
}
