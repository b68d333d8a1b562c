//! What a process has used, as the kernel tells it.

use std::time::Duration;

use crate::failure::Failure;

/// Time on processors since it began, of all its threads: user and system.
pub(super) fn processor_time(process: u32) -> Result<Duration, Failure> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path).map_err(Failure::system(format!("read {path}")))?;
    // SAFETY: it takes a number and gives one.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    ticks(&stat)
        .map(|ticks| Duration::from_secs_f64(ticks as f64 / ticks_a_second))
        .ok_or_else(|| Failure::Wrong(format!("{path} is not what it was: {stat}")))
}

/// The name, in parentheses, may contain anything; of what follows the 12th and 13th are meant (proc(5): utime and stime).
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut times = rest.split(' ').skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

/// Memory that is its own or shared, in KiB.
pub(super) fn resident_kib(process: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).map_err(Failure::system(format!("read {path}")))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .ok_or_else(|| Failure::Wrong(format!("{path} tells no VmRSS")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_whatever_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(175));
        assert_eq!(ticks("7 (a) S 1"), None);
        processor_time(std::process::id()).unwrap();
        assert!(resident_kib(std::process::id()).unwrap() > 100);
    }
}
