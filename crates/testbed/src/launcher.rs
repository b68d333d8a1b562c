//! The one thread that starts child processes.
//!
//! On Linux a child can ask to be killed when its parent ends, but "parent" means the *thread* that started it: a server
//! started by the first test that needs it, and shared by the rest, would die with that first test. So all children are
//! started by a thread that lives as long as the process.

use std::{
    io,
    process::{Child, Command},
    sync::{OnceLock, mpsc},
    thread,
};

/// A command to start, and where to say how that went.
type Order = (Command, mpsc::SyncSender<io::Result<Child>>);

/// Orders that may wait at the launcher before callers wait for room; starting a process takes about a millisecond.
const ORDERS_MAX: usize = 64;

/// Starts a child that is sent `signal` when this process ends, however it ends (Linux; elsewhere it is stopped on drop only).
pub(crate) fn spawn(mut command: Command, signal: i32) -> io::Result<Child> {
    static LAUNCHER: OnceLock<mpsc::SyncSender<Order>> = OnceLock::new();
    die_with_parent(&mut command, signal);
    let launcher = LAUNCHER.get_or_init(|| {
        let (orders, incoming) = mpsc::sync_channel::<Order>(ORDERS_MAX);
        thread::Builder::new()
            .name("testbed-launcher".into())
            .spawn(move || {
                for (mut command, started) in incoming {
                    // A caller that went away takes its child with it: the channel drops it, and it dies with us.
                    let _ = started.send(command.spawn());
                }
            })
            .expect("a machine that cannot start one thread cannot start a server either");
        orders
    });
    let (started, answer) = mpsc::sync_channel(1);
    let gone = |_| io::Error::other("the launcher thread ended");
    launcher
        .send((command, started))
        .map_err(|_| io::Error::other("the launcher thread ended"))?;
    answer.recv().map_err(gone)?
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command, signal: i32) {
    use std::os::unix::process::CommandExt;
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made, no allocation, no lock.
    unsafe {
        // std changes the account before it calls this; a change of account would clear the wish.
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before the wish was made.
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command, _signal: i32) {}
