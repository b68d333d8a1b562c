//! Asks the processor for memory before it is needed, so that several waits for it are one. Promises nothing but not to harm.

/// Whatever the pointer points to, also to what is not there any more: nothing is read.
#[inline(always)]
pub(super) fn prefetch<T>(memory: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: of all processors of this family; a hint, which never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(memory.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = memory;
}
