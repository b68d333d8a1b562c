//! Faults that a test switches on and off, and a gate at which all I/O waits; and what tests need to watch a pool and to run in a
//! process of their own.

use std::future::{Future, poll_fn};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::Poll;
use std::time::{Duration, Instant, UNIX_EPOCH};

use forebay_pages::faults::{Fault, Faults};
use forebay_pages::{Io, PagePool, PagePoolBuilder};

/// Both ways of I/O; where there is no io_uring the first is the second.
pub(crate) const WAYS: [Io; 2] = [Io::Auto, Io::Threads];

/// Longer than anything here takes, on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

type Rule = Box<dyn FnMut(u64, u64) -> Option<Fault> + Send>;

/// What goes wrong with reads.
#[derive(Default)]
pub(crate) struct Trouble {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    rule: Option<Rule>,
    is_shut: bool,
    /// Attempts that stand at the gate.
    at_the_gate: usize,
}

impl Trouble {
    /// A pool of so many pages of 4 KiB, with faults of its own.
    pub(crate) fn pool(io: Io, pages: u64) -> (Arc<Self>, PagePoolBuilder) {
        let trouble = Arc::new(Self::default());
        let builder = PagePool::builder()
            .io(io)
            .page_size(4096)
            .memory(4096 * pages)
            .faults(Arc::clone(&trouble) as Arc<dyn Faults>);
        (trouble, builder)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics under this lock")
    }

    /// From now on this says what goes wrong, by offset and length.
    pub(crate) fn rule(&self, rule: impl FnMut(u64, u64) -> Option<Fault> + Send + 'static) {
        self.state().rule = Some(Box::new(rule));
    }

    /// From now on a transfer over one of these bytes ends with an error of the device.
    pub(crate) fn bad(&self, bytes: Vec<u64>) {
        self.rule(move |offset, length| {
            let is_hit = bytes.iter().any(|bad| (offset..offset + length).contains(bad));
            is_hit.then_some(Fault::Error(libc::EIO))
        });
    }

    /// All is well again.
    pub(crate) fn over(&self) {
        self.state().rule = None;
    }

    /// From now on all I/O waits, until the gate that this returns is dropped.
    pub(crate) fn gate(self: &Arc<Self>) -> Gate {
        self.state().is_shut = true;
        Gate(Arc::clone(self))
    }

    /// Returns when so many transfers stand at the gate.
    pub(crate) async fn arrived(&self, count: usize) {
        until("transfers at the gate", || self.state().at_the_gate >= count).await;
    }
}

impl Faults for Trouble {
    fn fault(&self, _path: &Path, _write: bool, offset: u64, length: u64) -> Option<Fault> {
        let mut state = self.state();
        if state.is_shut {
            state.at_the_gate += 1;
            state = self
                .opened
                .wait_while(state, |state| state.is_shut)
                .expect("as in `state`");
            state.at_the_gate -= 1;
        }
        state.rule.as_mut()?(offset, length)
    }
}

/// Shut as long as it lives.
pub(crate) struct Gate(Arc<Trouble>);

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.state().is_shut = false;
        self.0.opened.notify_all();
    }
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "still waiting for {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until another change of the file certainly gets another time.
pub(crate) async fn settled(path: &Path) {
    let metadata = std::fs::metadata(path).expect("there");
    let grain = if metadata.ctime_nsec() == 0 { 2_000 } else { 20 };
    let changed = UNIX_EPOCH + Duration::new(metadata.ctime() as u64, metadata.ctime_nsec() as u32);
    until("the file's times to be old", || {
        changed.elapsed().is_ok_and(|age| age > Duration::from_millis(grain))
    })
    .await;
}

/// Nothing is held, nothing runs, and what was in memory can be dropped: no pin and no frame was lost.
pub(crate) async fn nothing_leaked(pool: &PagePool) {
    until("I/O to end", || {
        let stats = pool.stats();
        stats.io_in_flight + stats.io_queued == 0
    })
    .await;
    // A landing tells its readers, and then its thread ends the job; a pin may be given back by a task that ends just now.
    until("pins to go", || pool.stats().pinned_bytes == 0).await;
    until("memory to be given back", || {
        pool.clear();
        pool.stats().resident_bytes == 0
    })
    .await;
}

/// Polls a future so many times at most, and drops it then.
pub(crate) async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

const CHILD: &str = "FOREBAY_PAGES_CHILD";

/// Runs the body of this test in a process of its own, whose limits, user and threads are nobody else's.
#[track_caller]
pub(crate) fn in_a_process_of_its_own(test: &str, body: impl FnOnce()) {
    if std::env::var(CHILD).as_deref() == Ok(test) {
        return body();
    }
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, test)
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{test}: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Sets one of this process's limits, for as long as nobody sets it anew.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure lives for the calls.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &raw mut limit), 0);
        limit.rlim_cur = value;
        assert_eq!(libc::setrlimit(resource, &raw const limit), 0);
    }
}

/// The folders in /proc of this process's threads of this name.
pub(crate) fn threads(name: &str) -> Vec<std::path::PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    tasks
        .filter_map(|task| Some(task.ok()?.path()))
        .filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))
        .collect()
}
