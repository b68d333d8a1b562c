//! What a process has used, as the kernel tells it.

use std::time::Duration;

use crate::failure::Failure;

/// Time on processors since it began, of all its threads and of its children: user and system.
pub(in crate::scenarios) fn processor_time(process: u32) -> Result<Duration, Failure> {
    let read = |process: u32| {
        let path = format!("/proc/{process}/stat");
        let stat = std::fs::read_to_string(&path).map_err(Failure::system(format!("read {path}")))?;
        Stat::of(&stat).ok_or_else(|| Failure::Wrong(format!("{path} is not what it was: {stat}")))
    };
    // SAFETY: it takes a number and gives one.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let mut ticks = read(process)?.ticks;
    let all = std::fs::read_dir("/proc").map_err(Failure::system("look at all processes"))?;
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // One that has ended meanwhile was counted by its parent, or is nobody's child here.
    let children = numbers.filter_map(|number| read(number).ok());
    ticks += children
        .filter(|child| child.parent == process)
        .map(|child| child.ticks)
        .sum::<u64>();
    Ok(Duration::from_secs_f64(ticks as f64 / ticks_a_second))
}

/// What is told of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Its own, and of children that it has waited for.
    ticks: u64,
}

impl Stat {
    /// The name, in parentheses, may contain anything; of what follows the 2nd and the 12th to 15th are meant (proc(5): ppid, utime, stime,
    /// cutime, cstime).
    fn of(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let parent = fields.nth(1)?.parse().ok()?;
        let times: Option<Vec<u64>> = fields.skip(9).take(4).map(|time| time.parse().ok()).collect();
        let times = times.filter(|times| times.len() == 4)?;
        Some(Self {
            parent,
            ticks: times.iter().sum(),
        })
    }
}

/// As many open files as the system lets this process have, and those that it starts.
pub(in crate::scenarios) fn allow_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live struct of the type the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // Where it is refused, clients are: that is told then.
        // SAFETY: the pointer is to a live struct of the type the call reads.
        let _refused = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
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
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 3 4 20 0 1 0 5 6 7";
        let (parent, ticks) = (1, 182);
        assert_eq!(Stat::of(stat), Some(Stat { parent, ticks }));
        assert_eq!(Stat::of("7 (a) S 1"), None);
        processor_time(std::process::id()).unwrap();
        assert!(resident_kib(std::process::id()).unwrap() > 100);
    }
}
