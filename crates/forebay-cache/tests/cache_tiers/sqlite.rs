//! The SQLite tier alone: restarts, crashes, damage, bounds.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use forebay_cache::tier::{OpenError, TierError, sqlite::SqliteTier};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

type Strings = SqliteTier<u64, String>;

fn open(path: &Path) -> Strings {
    SqliteTier::builder(path, form()).open().unwrap()
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tier.db");
    (folder, path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// The files as they would be found had the process been killed now: what it wrote is in the system's memory or on the disk.
fn as_after_a_kill(path: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("copy.db");
    fs::copy(path, &copy).unwrap();
    fs::copy(beside(path, "-wal"), beside(&copy, "-wal")).unwrap();
    copy
}

#[tokio::test]
async fn it_sees_to_what_a_tier_sees_to() {
    let (_folder, path) = place();
    keeps_the_contract(&SqliteTier::builder(&path, limited()).open().unwrap()).await;
}

#[tokio::test]
async fn each_form_is_read_by_its_own_kind() {
    let (_folder, path) = place();
    // A tier that was dropped closes its file a moment later; the next one waits for that.
    keeps_forms_apart(async |form| SqliteTier::builder(&path, form).open().unwrap()).await;
}

#[tokio::test]
async fn a_panic_of_the_form_costs_its_own_key() {
    let (_folder, path) = place();
    panics_cost_their_own_key(&SqliteTier::builder(&path, touchy()).open().unwrap()).await;
}

#[tokio::test]
async fn a_restart_finds_what_was_kept() {
    let (_folder, path) = place();
    let tier = open(&path);
    tier.put_many(&[put(1, some("one")), put(2, some("two"))])
        .await
        .unwrap();
    tier.delete_many(&[2]).await.unwrap();
    tier.close().await;
    assert!(!beside(&path, "-wal").exists(), "closed in order, it is one file");
    let tier = open(&path);
    assert_eq!(tier.get_many(&[1, 2]).await.unwrap(), [Some(some("one")), None]);
    // Dropped, it is closed as well; the next one waits for that.
    drop(tier);
    let tier = open(&path);
    assert_eq!(values(&tier, &[1]).await, [Some("one".into())]);
    assert_eq!(tier.begun_anew(), 0);
}

#[tokio::test]
async fn a_killed_process_leaves_what_it_acknowledged() {
    let (folder, path) = place();
    let tier = open(&path);
    tier.put_many(&[put(1, some("one")), put(2, some("two")), put(3, some("old"))])
        .await
        .unwrap();
    tier.delete_many(&[2]).await.unwrap();
    tier.put_many(&[put(3, some("new"))]).await.unwrap();
    let copy = open(&as_after_a_kill(&path, folder.path()));
    assert_eq!(
        values(&copy, &[1, 2, 3]).await,
        [Some("one".into()), None, Some("new".into())]
    );
    tier.clear().await.unwrap();
    copy.close().await;
    let copy = open(&as_after_a_kill(&path, folder.path()));
    assert_eq!(values(&copy, &[1, 2, 3]).await, [None, None, None]);
}

#[tokio::test]
async fn a_file_that_a_crash_of_the_machine_left_is_not_read() {
    let (folder, path) = place();
    let tier = open(&path);
    tier.put_many(&[put(1, some("one"))]).await.unwrap();
    let copy = as_after_a_kill(&path, folder.path());
    let connection = Connection::open(&copy).unwrap();
    // As if that had been before the machine's last start.
    let changed = connection
        .execute("UPDATE mark SET value = 'another boot'", [])
        .unwrap();
    assert_eq!(changed, 1);
    drop(connection);
    let copy = open(&copy);
    assert_eq!(values(&copy, &[1]).await, [None]);
    assert_eq!(copy.begun_anew(), 1);
    // Closed in order it is read after any restart: the mark names no boot.
    tier.close().await;
    let mark: String = Connection::open(&path)
        .unwrap()
        .query_row("SELECT value FROM mark", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mark, "closed");
}

#[tokio::test]
async fn a_corrupt_file_is_set_aside_and_begun_anew() {
    let (_folder, path) = place();
    fs::write(
        &path,
        "this is no database, and longer than the head of one: ".repeat(100),
    )
    .unwrap();
    let tier = open(&path);
    assert_eq!(tier.begun_anew(), 1);
    assert!(
        fs::read_to_string(beside(&path, ".corrupt"))
            .unwrap()
            .starts_with("this is no database")
    );
    tier.put_many(&[put(1, some("one"))]).await.unwrap();
    assert_eq!(values(&tier, &[1]).await, [Some("one".into())]);
}

#[tokio::test]
async fn damage_is_met_at_the_opening_or_later_and_costs_what_was_kept_and_no_restart() {
    for is_open in [false, true] {
        let (_folder, path) = place();
        let tier = open(&path);
        // Most of a value lies on pages that only reading it touches.
        let value = "x".repeat(50_000);
        let entries: Vec<_> = (0..200).map(|key| put(key, some(&value))).collect();
        tier.put_many(&entries).await.unwrap();
        tier.close().await;
        let mut tier = is_open.then(|| open(&path));
        let mut bytes = fs::read(&path).unwrap();
        // Where it is to be met at the opening, the tables' own pages go too; the head stays.
        bytes[if is_open { 200 * 4096 } else { 4096 }..].fill(0xEE);
        fs::write(&path, bytes).unwrap();
        let tier = tier.take().unwrap_or_else(|| open(&path));
        assert_eq!(tier.begun_anew(), u64::from(!is_open));
        let keys: Vec<u64> = (0..200).collect();
        if is_open {
            let error = tier.get_many(&keys).await.unwrap_err();
            assert!(error.to_string().contains("malformed"), "{error}");
            assert_eq!(tier.begun_anew(), 1);
        }
        assert!(beside(&path, ".corrupt").exists());
        tier.delete_many(&keys).await.unwrap();
        tier.put_many(&[put(1, some("one"))]).await.unwrap();
        assert_eq!(values(&tier, &[1, 2]).await, [Some("one".into()), None]);
    }
}

#[tokio::test]
async fn another_programs_database_is_refused_and_not_touched() {
    let (_folder, path) = place();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE precious (id INTEGER); INSERT INTO precious VALUES (42)")
        .unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = SqliteTier::builder(&path, form()).open().unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    // An empty file is nobody's.
    let empty = beside(&path, ".empty");
    fs::write(&empty, "").unwrap();
    open(&empty).put_many(&[put(1, some("one"))]).await.unwrap();
}

#[tokio::test]
async fn a_file_has_one_owner() {
    let (_folder, path) = place();
    let tier = open(&path);
    let error = SqliteTier::builder(&path, form()).open().unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    tier.put_many(&[put(1, some("one"))]).await.unwrap();
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_said_so() {
    let (folder, _) = place();
    let path = folder.path().join("no such folder/tier.db");
    let error = SqliteTier::builder(&path, form()).open().unwrap_err();
    assert!(matches!(error, OpenError::Failed { .. }), "{error}");
    assert!(error.to_string().contains("no such folder"), "{error}");
}

#[tokio::test]
async fn the_oldest_go_first_when_there_are_too_many() {
    let (_folder, path) = place();
    let tier = SqliteTier::builder(&path, form()).max_entries(100).open().unwrap();
    for key in 0..100 {
        tier.put_many(&[put(key, some("x"))]).await.unwrap();
    }
    // Written again, the first is among the newest.
    tier.put_many(&[put(0, some("y"))]).await.unwrap();
    tier.put_many(&(100..110).map(|key| put(key, some("x"))).collect::<Vec<_>>())
        .await
        .unwrap();
    let keys: Vec<u64> = (0..110).collect();
    let left: Vec<u64> = keys
        .iter()
        .zip(values(&tier, &keys).await)
        .filter_map(|(key, value)| value.map(|_| *key))
        .collect();
    let expected: Vec<u64> = std::iter::once(0).chain(11..110).collect();
    assert_eq!(left, expected);
    // What is there is counted anew at a start.
    tier.close().await;
    let tier = SqliteTier::builder(&path, form()).max_entries(100).open().unwrap();
    tier.put_many(&[put(200, some("x"))]).await.unwrap();
    let left = values(&tier, &keys).await;
    assert_eq!(left.iter().flatten().count(), 99);
    assert_eq!(left[11], None);
}

#[tokio::test]
async fn the_file_stays_within_its_bytes() {
    let (_folder, path) = place();
    let tier = SqliteTier::builder(&path, form()).max_bytes(1 << 20).open().unwrap();
    for round in 0..20_u64 {
        let entries: Vec<_> = (0..100)
            .map(|key| put(round * 100 + key, some(&"x".repeat(5000))))
            .collect();
        tier.put_many(&entries).await.unwrap();
    }
    let keys: Vec<u64> = (0..2000).collect();
    let left = values(&tier, &keys).await;
    let count = left.iter().flatten().count();
    assert!((150..=207).contains(&count), "{count} values of 5 kB in a mebibyte");
    assert!(left[2000 - count..].iter().all(Option::is_some), "not the oldest went");
    // One that is larger than all is not kept, and throws nobody out.
    tier.put_many(&[put(1999, some(&"x".repeat(2 << 20)))]).await.unwrap();
    assert_eq!(values(&tier, &keys).await.iter().flatten().count(), count - 1);
    tier.close().await;
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 3 << 20, "the file has {bytes} bytes");
}

/// Keys are in the table and in its index, and long ones begin pages of their own.
#[tokio::test]
async fn the_oldest_go_first_however_long_the_keys_are() {
    for (length, mebibytes) in [(40, 1), (300, 1), (700, 1), (1_000, 1), (1_100, 4)] {
        let (_folder, path) = place();
        let form = Form::<String, String>::new("test", KeyForm::display(), Postcard).max_key_bytes(2_000);
        let tier = SqliteTier::builder(&path, form)
            .max_bytes(mebibytes << 20)
            .open()
            .unwrap();
        // Neighbours in the order of writing are none in the index.
        let key = |number: u64| {
            format!(
                "{:016x}{:0length$}",
                number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                0,
                length = length - 16
            )
        };
        let count = 3 * (mebibytes << 20) / (length as u64 + 64);
        for first in (0..count).step_by(100) {
            let entries: Vec<_> = (first..first + 100)
                .map(|number| Put::new(key(number), some("x"), HOUR))
                .collect();
            let put = tier.put_many(&entries).await;
            assert!(put.is_ok(), "{put:?} at {first} of {count} keys of {length} bytes");
        }
        let last: Vec<String> = (count - 100..count).map(key).collect();
        let kept = tier.get_many(&last).await.unwrap();
        assert!(
            kept.iter().all(Option::is_some),
            "keys of {length} bytes: not the oldest went"
        );
        tier.close().await;
        let bytes = fs::metadata(&path).unwrap().len();
        let most = (2 * mebibytes + 1) << 20;
        assert!(bytes <= most, "keys of {length} bytes: the file has {bytes}");
    }
}

#[tokio::test]
async fn a_file_that_is_to_be_smaller_becomes_so_and_keeps_the_newest() {
    let (_folder, path) = place();
    let with = |bytes| SqliteTier::builder(&path, form()).max_bytes(bytes).open().unwrap();
    let large = |key| put(key, some(&"x".repeat(5_000)));
    let tier: Strings = with(16 << 20);
    for first in (0..2_000).step_by(100) {
        tier.put_many(&(first..first + 100).map(large).collect::<Vec<_>>())
            .await
            .unwrap();
    }
    tier.close().await;
    assert!(fs::metadata(&path).unwrap().len() > 8 << 20);
    let tier: Strings = with(1 << 20);
    tier.put_many(&(2_000..2_010).map(large).collect::<Vec<_>>())
        .await
        .unwrap();
    let keys: Vec<u64> = (0..2_010).collect();
    let left = values(&tier, &keys).await;
    let count = left.iter().flatten().count();
    assert!((150..=207).contains(&count), "{count} values of 5 kB in a mebibyte");
    assert!(left[2_010 - count..].iter().all(Option::is_some), "not the oldest went");
    tier.close().await;
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes <= 3 << 20, "the file has {bytes} bytes");
}

#[tokio::test]
async fn what_has_expired_is_not_read_and_goes() {
    let (_folder, path) = place();
    let tier = open(&path);
    let over = |key| Put::new(key, some("over"), Duration::from_millis(1));
    tier.put_many(&(0..1000).map(over).collect::<Vec<_>>()).await.unwrap();
    tier.put_many(&[put(5000, some("stays"))]).await.unwrap();
    wait_until_over().await;
    assert_eq!(values(&tier, &[0, 999, 5000]).await, [None, None, Some("stays".into())]);
    // Each change takes some along.
    for _ in 0..5 {
        tier.put_many(&[put(5000, some("stays"))]).await.unwrap();
    }
    tier.close().await;
    let rows: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM entries", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

/// The real clock goes on by more than any of the short lives above.
async fn wait_until_over() {
    let until = SystemTime::now() + Duration::from_millis(5);
    while SystemTime::now() < until {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_full_disk_fails_the_put_and_nothing_else() {
    let disk = SmallDisk::mount(4);
    let (path, ballast) = (disk.path().join("tier.db"), disk.path().join("ballast"));
    fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let tier = open(&path);
    tier.put_many(&[put(1, some("one"))]).await.unwrap();
    let large = "x".repeat(100_000);
    let mut refused = None;
    for key in 100..200 {
        if let Err(error) = tier.put_many(&[put(key, some(&large))]).await {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("a disk of 4 MiB takes no 10 MB");
    assert!(
        matches!(refused, TierError::Failed { .. }) && refused.to_string().contains("full"),
        "{refused}"
    );
    assert_eq!(
        values(&tier, &[1]).await,
        [Some("one".into())],
        "what was kept before is read"
    );
    assert_eq!(tier.begun_anew(), 0, "a full disk is no damage");
    // With room again, in its own file or on the disk, it goes on.
    fs::remove_file(&ballast).unwrap();
    tier.put_many(&[put(2, some("two"))]).await.unwrap();
    tier.delete_many(&[1]).await.unwrap();
    assert_eq!(values(&tier, &[1, 2]).await, [None, Some("two".into())]);
}

/// A file system of a few megabytes in memory; unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Fails where this account may not mount: a test that checks nothing must not pass.
    fn mount(megabytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "forebay-test"])
            .arg(folder.path())
            .status()
            .is_ok_and(|status| status.success());
        assert!(
            mounted,
            "a small disk cannot be mounted: run this test as root, or in `unshare --user --map-root-user --mount`"
        );
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the tier's thread may still close its file there.
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status();
    }
}

#[test]
fn a_limit_of_zero_is_refused_where_it_is_set_by_its_name() {
    let builder = || SqliteTier::builder("a.tier", form());
    let refusals: [(&str, &dyn Fn()); 2] = [
        ("max_entries", &|| drop(builder().max_entries(0))),
        ("max_bytes", &|| drop(builder().max_bytes(0))),
    ];
    for (name, set) in refusals {
        let panic = catch_unwind(AssertUnwindSafe(set)).expect_err(name);
        let said = panic.downcast_ref::<&str>().expect("words");
        assert!(said.starts_with(&format!("{name} must be at least 1: ")), "{said}");
    }
}
