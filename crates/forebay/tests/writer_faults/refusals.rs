//! Servers that do not want us, or are not there: told at once when connecting, and told in time when they begin to later.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use forebay::postgres::ConnectError;
use forebay::write::{WriteError, Writer};

use crate::{Maria, Pg, Place, SLACK, Settings, Site, together, within};

on_both!(
    a_host_that_is_not_there_and_a_database_that_is_not_there_are_told_at_once,
    a_database_that_is_dropped_is_told,
);

const SCHEMA: &str = "CREATE TABLE t (n BIGINT, words TEXT)";

async fn a_host_that_is_not_there_and_a_database_that_is_not_there_are_told_at_once<S: Site>() {
    let place = Place::<S>::new("").await;
    let url = place.url();
    let authority = url.split("://").nth(1).unwrap().split('/').next().unwrap();
    let host = authority.rsplit('@').next().unwrap();
    let database = url.split(authority).nth(1).unwrap().split('?').next().unwrap();
    let bad = [
        url.replace(host, "no-such-host.invalid:1234"),
        url.replace(host, "127.0.0.1:1"),
        url.replacen(database, "/no_such_database", 1),
    ];
    for url in bad {
        let begun = Instant::now();
        let told = within(Duration::ZERO, S::open(&url, &Settings::default())).await.err();
        assert!(
            matches!(told, Some(ConnectError::Unavailable { .. })),
            "{url}: {told:?}"
        );
        assert!(begun.elapsed() < SLACK, "{url}: {:?}", begun.elapsed());
    }
}

async fn a_database_that_is_dropped_is_told<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings {
        retry_for: Duration::from_secs(2),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    assert!(together::<S>(&handle, 0..8).await.is_all_acknowledged());
    let name = place.name();
    let drop = if S::INSERT.contains('$') {
        format!("DROP SCHEMA {name} CASCADE")
    } else {
        format!("DROP DATABASE {name}")
    };
    place.say(&drop).await;
    place.proxy.cut();
    let told = within(settings.retry_for, together::<S>(&handle, 100..108)).await;
    assert_eq!(told.failed.len(), 8, "{told:?}");
    assert!(
        told.failed
            .iter()
            .all(|(_, error)| matches!(error, WriteError::Statement(_) | WriteError::Unavailable { .. })),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_password_that_is_wrong_or_changes_is_told_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.path().join("hba.conf");
    let rules = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(&file, rules).unwrap();
    let place = Place::<Pg>::own(&[("hba_file", file.to_str().unwrap())], SCHEMA).await;
    let name = place.name().to_owned();
    place
        .say(&format!(
            "CREATE ROLE writer LOGIN PASSWORD 'right'; GRANT ALL ON SCHEMA {name} TO writer; GRANT ALL ON t TO writer"
        ))
        .await;
    a_password_is_told(&place, "postgres@", "ALTER ROLE writer PASSWORD 'changed'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_a_password_that_is_wrong_or_changes_is_told_and_not_shown() {
    let place = Place::<Maria>::own(&[], SCHEMA).await;
    place
        .say("CREATE USER writer@'%' IDENTIFIED BY 'right'; GRANT ALL ON *.* TO writer@'%'")
        .await;
    a_password_is_told(&place, "root@", "ALTER USER writer@'%' IDENTIFIED BY 'changed'").await;
}

async fn a_password_is_told<S: Site>(place: &Place<S>, user: &str, change: &str) {
    let settings = Settings {
        retry_for: Duration::from_secs(3600),
        ..Settings::default()
    };
    let open = async |password: &str| {
        let url = place.url_through("").replace(user, &format!("writer:{password}@"));
        within(Duration::ZERO, S::open(&url, &settings)).await
    };
    let names_no_password = |told: String| {
        assert!(
            told.contains("writer") && !told.contains("wr0ng") && !told.contains("right"),
            "{told}"
        );
    };
    let is_told = |error: WriteError| {
        names_no_password(format!("{error} {error:?}"));
        assert!(matches!(error, WriteError::Unavailable { .. }), "{error:?}");
    };
    let refused = open("wr0ng").await.err().unwrap();
    names_no_password(format!("{refused} {refused:?}"));
    assert!(matches!(refused, ConnectError::Unavailable { .. }), "{refused:?}");
    let handle = open("right").await.unwrap();
    let mut all = together::<S>(&handle, 0..8).await;
    assert!(all.is_all_acknowledged());
    place.say(change).await;
    place.proxy.cut();
    // Trying again would change nothing, so it is not waited for.
    let told = within(Duration::ZERO, together::<S>(&handle, 100..108)).await;
    assert_eq!(told.failed.len(), 8, "{told:?}");
    all.failed.extend(told.failed.clone());
    for (_, error) in told.failed {
        is_told(error);
    }
    let begun = within(Duration::ZERO, Writer::new(handle).begin()).await;
    is_told(begun.err().unwrap());
    all.holds(place).await;
}
