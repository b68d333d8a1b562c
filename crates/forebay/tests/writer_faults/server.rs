//! Servers that are killed, stopped, read-only or full. What was acknowledged before is there after, and writing goes on when it
//! can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use forebay::write::{StatementErrorKind as Kind, Write, WriteError, Writer};

use crate::place::Plain;
use crate::{Ledger, Maria, Pg, Place, Settings, Site, batch, kind, together, within};

on_both!(
    a_server_that_is_killed_amid_batches_loses_and_doubles_nothing,
    a_server_that_is_stopped_in_order_amid_batches_loses_and_doubles_nothing,
    a_transaction_of_a_callers_own_is_lost_with_its_server_and_said_to_be,
);

const SCHEMA: &str = "CREATE TABLE t (n BIGINT, words TEXT)";

/// Writes without a pause until it is told to stop.
fn write_on(writer: &Writer, insert: &'static str, is_done: &Arc<AtomicBool>) -> Vec<tokio::task::JoinHandle<Ledger>> {
    let next = Arc::new(AtomicI64::new(0));
    (0..16)
        .map(|lane| {
            let (writer, is_done, next) = (writer.clone(), Arc::clone(is_done), Arc::clone(&next));
            tokio::spawn(async move {
                let mut ledger = Ledger::default();
                while !is_done.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    ledger.note(n, writer.submit(Write::new(insert, [n]).ordered_by(lane)).await);
                }
                ledger
            })
        })
        .collect()
}

async fn goes_on_after<S: Site>(take_down: fn(&mut Place<S>)) {
    let mut place = Place::<S>::own(&[], SCHEMA).await;
    let settings = Settings {
        answer_timeout: Duration::from_secs(20),
        retry_for: Duration::from_secs(60),
        ..Settings::default()
    };
    let writer = Writer::new(place.open(&settings).await);
    let is_done = Arc::new(AtomicBool::new(false));
    let writing = write_on(&writer, S::INSERT, &is_done);
    let mut batches = 0;
    for _ in 0..2 {
        let enough = batches + 50;
        let are_enough = async {
            while writer.stats().batches < enough {
                tokio::task::yield_now().await;
            }
        };
        within(settings.retry_for, are_enough).await;
        place = tokio::task::spawn_blocking(move || {
            take_down(&mut place);
            place
        })
        .await
        .unwrap();
        batches = writer.stats().batches;
    }
    let are_more = async {
        while writer.stats().batches < batches + 20 {
            tokio::task::yield_now().await;
        }
    };
    within(settings.retry_for, are_more).await;
    is_done.store(true, Ordering::Relaxed);
    let mut all = Ledger::default();
    for lane in writing {
        let told = within(settings.retry_for, lane).await.unwrap();
        all.acknowledged.extend(told.acknowledged);
        all.unknown.extend(told.unknown);
        all.failed.extend(told.failed);
    }
    // It was back before anybody gave up.
    assert!(all.failed.is_empty(), "{:?}", all.failed);
    all.holds(&place).await;
}

async fn a_server_that_is_killed_amid_batches_loses_and_doubles_nothing<S: Site>() {
    goes_on_after::<S>(|place| {
        place.kill();
        place.restart();
    })
    .await;
}

async fn a_server_that_is_stopped_in_order_amid_batches_loses_and_doubles_nothing<S: Site>() {
    goes_on_after::<S>(Place::restart).await;
}

async fn a_transaction_of_a_callers_own_is_lost_with_its_server_and_said_to_be<S: Site>() {
    let mut place = Place::<S>::own(&[], SCHEMA).await;
    let writer = place.writer().await;
    let mut begun = [writer.begin().await.unwrap(), writer.begin().await.unwrap()];
    for transaction in &mut begun {
        transaction.execute("INSERT INTO t (n) VALUES (1)", ()).await.unwrap();
    }
    place.kill();
    let [mut executes, commits] = begun;
    let limit = Settings::default().answer_timeout;
    let told = within(limit, executes.execute("INSERT INTO t (n) VALUES (2)", ())).await;
    assert_eq!(told, Err(WriteError::TransactionLost));
    assert!(executes.is_lost());
    let told = within(limit, commits.commit()).await;
    assert!(
        matches!(
            told,
            Err(WriteError::OutcomeUnknown { .. } | WriteError::TransactionLost)
        ),
        "{told:?}"
    );
    place.restart();
    drop(executes);
    assert_eq!(place.read("SELECT COUNT(*) FROM t").await, ["0"]);
    writer.execute(S::INSERT, [7]).await.unwrap();
    assert_eq!(place.read("SELECT n FROM t").await, ["7"]);
}

/// Each of them is told that nothing can be written, and it is true.
async fn is_read_only<S: Site>(place: &Place<S>, handle: &S::Handle) {
    let limit = Settings::default().retry_for;
    for size in [1, 2, 30] {
        let told = within(limit, together::<S>(handle, 0..size)).await;
        assert_eq!(told.failed.len(), usize::try_from(size).unwrap(), "{told:?}");
        for (_, error) in &told.failed {
            assert_eq!(kind(&Err(error.clone())), Kind::ReadOnly, "{error}");
        }
        told.holds(place).await;
    }
    // It can be read all the same.
    within(limit, S::query(handle, "SELECT COUNT(*) FROM t")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_session_that_only_reads_says_so() {
    let place = Place::<Pg>::new(SCHEMA).await;
    let settings = Settings {
        options: "-c default_transaction_read_only=on".to_owned(),
        ..Settings::default()
    };
    is_read_only(&place, &place.open(&settings).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_a_server_that_only_reads_says_so_and_is_written_to_when_it_may_be() {
    let place = Place::<Maria>::own(&[], SCHEMA).await;
    place
        .say("CREATE USER writer@'%' IDENTIFIED BY 'w'; GRANT ALL ON *.* TO writer@'%'; REVOKE SUPER, READ ONLY ADMIN ON *.* FROM writer@'%'")
        .await;
    let url = place.url_through("").replace("root@", "writer:w@");
    let handle = Maria::open(&url, &Settings::default()).await.unwrap();
    place.say("SET GLOBAL read_only = ON").await;
    is_read_only(&place, &handle).await;
    place.say("SET GLOBAL read_only = OFF").await;
    let told = together::<Maria>(&handle, 0..30).await;
    assert!(told.is_all_acknowledged());
    told.holds(&place).await;
}

/// Fills what there is room for, by ones and by batches; then makes room.
async fn is_full<S: Site>(place: &Place<S>, handle: &S::Handle) {
    let words = "x".repeat(50_000);
    let mut all = Ledger::default();
    let mut next = 0;
    for size in [20, 1, 2, 20] {
        // Until there is no room; after that, what is told is the same.
        let mut rounds = 0;
        loop {
            let writes = (0..size).map(|n| Write::new(S::INSERT_WORDS, (next + n, words.clone())));
            let answers = within(Settings::default().retry_for, batch::<S>(handle, writes.collect())).await;
            let told: Ledger = (next..).zip(answers).collect();
            next += size;
            assert!(told.unknown.is_empty(), "{:?}", told.unknown);
            for (_, error) in &told.failed {
                assert_eq!(kind(&Err(error.clone())), Kind::Full, "{error}");
            }
            let is_full = !told.failed.is_empty();
            all.acknowledged.extend(told.acknowledged);
            all.failed.extend(told.failed);
            all.holds(place).await;
            rounds += 1;
            assert!(rounds < 200, "there is no end of room");
            if is_full {
                break;
            }
        }
    }
    assert!(!all.acknowledged.is_empty());
    let rows = all.acknowledged.len().to_string();
    let read = within(
        Settings::default().retry_for,
        S::query(handle, "SELECT COUNT(*) FROM t"),
    )
    .await;
    assert!(format!("{read:?}").contains(&format!("Integer({rows})")), "{read:?}");
}

/// What there is room for again is written.
async fn has_room<S: Site>(handle: &S::Handle, place: &Place<S>) {
    let told = together::<S>(handle, 0..8).await;
    assert!(told.is_all_acknowledged());
    told.holds(place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_a_full_tablespace_fails_what_finds_no_room() {
    let settings = [
        ("innodb_file_per_table", "OFF"),
        ("innodb_data_file_path", "ibdata1:12M:autoextend:max:16M"),
    ];
    let place = Place::<Maria>::own(&settings, SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    is_full(&place, &handle).await;
}

/// A file system of so few bytes, until it is dropped.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// None where this account may not make one.
    fn new(bytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=1777"), "tmpfs"])
            .arg(folder.path())
            .output();
        made.is_ok_and(|made| made.status.success()).then_some(Self { folder })
    }

    /// For the account that the server runs as.
    fn server_folder(&self) -> String {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(self.folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        self.folder.path().to_str().unwrap().to_owned()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server may have a file open still; it goes when that is closed.
        let _ = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(self.folder.path())
            .output();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_full_disk_fails_what_finds_no_room() {
    let Some(disk) = SmallDisk::new(3 << 20) else {
        // Without the right to mount there is no disk small enough; MariaDB's test needs none.
        println!("no small disk could be made here: not tested");
        return;
    };
    // Owned by the server's account, as a tablespace must be.
    let place = Place::<Pg>::own(&[], "").await;
    let folder = format!("{}/space", disk.server_folder());
    let name = place.name().to_owned();
    place
        .say(&format!("COPY (SELECT 1) TO PROGRAM 'mkdir -m 700 {folder}'"))
        .await;
    place
        .plain()
        .await
        .say(&format!("CREATE TABLESPACE {name} LOCATION '{folder}'"))
        .await;
    place
        .say(&format!(
            "CREATE TABLE t (n BIGINT, words TEXT) TABLESPACE {name}; ALTER TABLE t ALTER COLUMN words SET STORAGE EXTERNAL"
        ))
        .await;
    let handle = place.open(&Settings::default()).await;
    is_full(&place, &handle).await;
    // Two steps, as what is dropped makes room only when it is.
    place.say("DROP TABLE t").await;
    place.say(SCHEMA).await;
    has_room(&handle, &place).await;
}
