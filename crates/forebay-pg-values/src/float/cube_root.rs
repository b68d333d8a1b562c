//! The C library's cube root. Rust's is correctly rounded; the C library's, which PostgreSQL gives, is off by a unit in the last place for
//! one value in three, so that only asking it makes them equal. Rust's runtime has a symbol of the same name that would be linked in its
//! stead, so it is looked up when the program runs.

use crate::{Result, ValueError};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn of_the_c_library() -> Option<extern "C" fn(f64) -> f64> {
    use std::ffi::{c_char, c_void};
    use std::sync::OnceLock;
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    static FOUND: OnceLock<Option<extern "C" fn(f64) -> f64>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name ends with a zero byte, and a null handle stands for the libraries that the program was started with.
        let address = unsafe { dlsym(std::ptr::null_mut(), c"cbrt".as_ptr()) };
        if address.is_null() {
            return None;
        }
        // SAFETY: C's standard has one function of this name, and this is its type.
        Some(unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(f64) -> f64>(address) })
    })
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn of_the_c_library() -> Option<extern "C" fn(f64) -> f64> {
    None
}

/// See the module.
pub(super) fn cube_root(float: f64) -> Result<f64> {
    let function = of_the_c_library().ok_or_else(|| ValueError::unsupported("cbrt on this platform is"))?;
    Ok(function(float))
}
