//! Runtimes that go away, and wakers that panic, where others still wait.
use super::*;
use forebay::batch::Batcher;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// A gatherer's runtime goes away while a batch runs, for long, in another one; a slot is free.
#[test]
fn a_gatherer_that_is_lost_leaves_no_free_slot_unused() {
    let lasting = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let gate = gate();
    let of_process = Arc::clone(&gate);
    let batcher = Batcher::builder().max_in_flight(2).build(move |items: Vec<u64>| {
        let gate = Arc::clone(&of_process);
        async move {
            if items[0] == 0 {
                gate.acquire().await.unwrap().forget();
            }
            Ok::<_, Infallible>(items)
        }
    });
    #[allow(clippy::async_yields_async, reason = "the call itself is wanted")]
    let busy = lasting.block_on(async {
        let busy = batcher.try_call_owned(0).unwrap();
        while batcher.stats().in_flight == 0 {
            yield_now().await;
        }
        busy
    });
    let short = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let lost = {
        let _in = short.enter();
        batcher.try_call_owned(1).unwrap()
    };
    drop(short); // its gatherer never ran
    let outcome = lasting.block_on(async {
        let next = batcher.call(2);
        tokio::time::timeout(Duration::from_secs(3), next).await
    });
    gate.add_permits(1);
    lasting.block_on(async {
        busy.await.unwrap();
        println!("lost: {:?}", lost.await);
    });
    assert!(outcome.is_ok(), "a slot is free, and the call hangs");
}

static ARMED: AtomicBool = AtomicBool::new(false);
static DONE: AtomicBool = AtomicBool::new(false);
static GO: AtomicBool = AtomicBool::new(false);
fn hooked() -> Waker {
    fn clone(_: *const ()) -> RawWaker {
        if ARMED.load(SeqCst) {
            GO.store(true, SeqCst);
            while !DONE.load(SeqCst) {
                std::thread::yield_now();
            }
        }
        RawWaker::new(std::ptr::null(), &TABLE)
    }
    fn nothing(_: *const ()) {}
    fn dropped(_: *const ()) {
        if ARMED.swap(false, SeqCst) {
            panic!("a waker that panics when dropped");
        }
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, dropped);
    // SAFETY: the functions of the table never dereference the pointer, own nothing, and are thread safe.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}
struct Flag;
impl std::task::Wake for Flag {
    fn wake(self: Arc<Self>) {
        DONE.store(true, SeqCst);
    }
}

/// The clone of a waker sees the batch end; the drop of that clone panics. The call must not use its slot again.
#[test]
fn a_waker_whose_drop_panics_leaves_the_slot_to_others() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let batcher = Batcher::builder()
        .runtime(runtime.handle().clone())
        .build(|items: Vec<u64>| async move {
            while items[0] == 1 && !GO.load(SeqCst) {
                yield_now().await;
            }
            Ok::<_, Infallible>(items)
        });
    let mut call = batcher.try_call_owned(1).unwrap();
    let mut after = batcher.try_call_owned(2).unwrap();
    assert!(
        Pin::new(&mut call)
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    let flag = Waker::from(Arc::new(Flag));
    let first = Pin::new(&mut after).poll(&mut Context::from_waker(&flag));
    assert!(matches!(first, Poll::Pending));
    while batcher.stats().in_flight == 0 {
        std::thread::yield_now();
    }
    let waker = hooked();
    ARMED.store(true, SeqCst);
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Pin::new(&mut call).poll(&mut Context::from_waker(&waker))
    }));
    println!("polled: {polled:?}");
    let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(call)));
    assert!(left.is_ok(), "the call had ended, and used its slot once more");
}
