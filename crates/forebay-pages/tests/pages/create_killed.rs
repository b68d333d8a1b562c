//! A process that publishes files is killed at any moment: what is under a name is one version, whole, and none older than what
//! was acknowledged; whoever finds a file finds its side file; and what it left behind goes with the next file.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use forebay_pages::Checksums;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::create::{RUN, builder, check, leftovers, publish};
use crate::pattern;

/// The folder, and the first version.
const CHILD: &str = "FOREBAY_TEST_PUBLISHER";
const KILLS: usize = 100;
/// So many names take turns with side files.
const SEGMENTS: u64 = 3;

fn length(version: u64) -> u64 {
    version * 7919 % (4 * RUN)
}

#[tokio::test]
async fn killed_at_any_moment_it_leaves_one_version_whole() {
    if let Ok(task) = std::env::var(CHILD) {
        return publishing_child(&task).await;
    }
    let seed = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let folder = pattern::folder();
    let path = folder.path().join("data");
    let pool = builder().build().expect("a pool");
    publish(&pool, &path, 0, length(0)).await.expect("published");
    let (mut acknowledged, mut ahead, mut found_left) = (0, 0, 0);
    // What the last one took.
    let mut publish_time = Duration::from_millis(10);
    for _ in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "create_killed::killed_at_any_moment_it_leaves_one_version_whole",
                "--nocapture",
            ])
            .env(CHILD, format!("{} {}", acknowledged + 1, folder.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        // It has begun, and has published some; and now at any moment of the next ones' time, which is long where much else is going on.
        assert!(
            lines.any(|line| line.expect("read").ends_with("begins .")),
            "it has begun"
        );
        for _ in 0..random.random_range(0..=2) {
            let began = Instant::now();
            acknowledged = lines.find_map(acknowledgement).expect("it goes on until it is killed");
            publish_time = began.elapsed();
        }
        tokio::time::sleep(publish_time.mul_f64(random.random_range(0.0..2.0))).await;
        child.kill().expect("killed");
        child.wait().expect("it has ended");
        acknowledged = lines.filter_map(acknowledgement).last().unwrap_or(acknowledged);
        found_left += leftovers(folder.path()).len();
        let is = fs::metadata(&path).expect("there is always one").len();
        let version = if is == length(acknowledged) {
            acknowledged
        } else {
            acknowledged + 1
        };
        check(&path, version, length(version));
        ahead += version - acknowledged;
        acknowledged = version;
        for number in 0..SEGMENTS {
            check_segment(folder.path(), number).await;
        }
    }
    println!(
        "{acknowledged} versions; {ahead} published and not acknowledged; {found_left} temporary files left by the killed"
    );
    assert!(acknowledged > 10 && found_left > 0, "killed too early");
    tokio::time::sleep(Duration::from_secs(1)).await;
    publish(&pool, &path, 0, 0).await.expect("published");
    assert_eq!(leftovers(folder.path()), [""; 0]);
}

/// The version that a line of the child's acknowledges.
fn acknowledgement(line: io::Result<String>) -> Option<u64> {
    let line = line.expect("read");
    let version = line.strip_prefix("acknowledged ")?.strip_suffix(" .")?;
    Some(version.parse().expect("a number"))
}

/// A segment that is there can be read with its side file.
async fn check_segment(folder: &Path, number: u64) {
    let path = folder.join(format!("segment-{number}"));
    if !path.exists() {
        return;
    }
    let pool = builder().build().expect("a pool");
    let side = Checksums::side_file(folder.join(format!("segment-{number}.crc")));
    let file = pool
        .file(&path)
        .checksums(side)
        .open()
        .await
        .expect("its side file is there");
    file.read(..).await.expect("as its side file says");
}

async fn publishing_child(task: &str) {
    let (first, folder) = task.split_once(' ').expect("two words");
    let folder = Path::new(folder);
    let pool = builder().build().expect("a pool");
    let say = |text: String| {
        let mut output = io::stdout();
        // At once, and in one piece.
        output
            .write_all(format!("{text} .\n").as_bytes())
            .and_then(|()| output.flush())
            .expect("told");
    };
    say("begins".into());
    for version in first.parse::<u64>().expect("a number").. {
        publish(&pool, &folder.join("data"), version, length(version))
            .await
            .expect("published");
        say(format!("acknowledged {version}"));
        let segment = folder.join(format!("segment-{}", version % SEGMENTS));
        let side = segment.with_extension("crc");
        for old in [&segment, &side] {
            let _ = fs::remove_file(old);
        }
        let mut file = pool.create(&segment).await.expect("created").checksums(side);
        file.write(pattern::bytes(version, 0, length(version)))
            .await
            .expect("written");
        file.publish().await.expect("published");
    }
}
