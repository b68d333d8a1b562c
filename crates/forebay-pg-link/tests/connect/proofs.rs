//! How a user proves who he is, and what he does not tell.

use super::{PASSWORD, connect_to, quoted, server, value};

async fn text(user: &str, rest: &str) -> String {
    let port = server().await.postgres.address().port();
    format!(
        "host=127.0.0.1 port={port} user={user} dbname=postgres password={} {rest}",
        quoted(PASSWORD)
    )
}

#[tokio::test]
async fn a_password_is_not_told_in_clear_where_others_can_listen() {
    let refused = connect_to(&text("clear", "sslmode=disable").await).await.unwrap_err();
    assert!(
        refused.contains("in clear") && refused.contains("require_auth=password"),
        "{refused}"
    );
    connect_to(&text("clear", "sslmode=disable require_auth=password").await)
        .await
        .unwrap();
    connect_to(&text("clear", "sslmode=require").await).await.unwrap();
    let refused = connect_to(&text("clear", "sslmode=require require_auth=scram-sha-256").await)
        .await
        .unwrap_err();
    assert!(refused.contains("not allowed"), "{refused}");
}

#[tokio::test]
async fn only_ways_that_are_allowed_are_gone() {
    for (user, methods, is_let_in) in [
        ("scram", "scram-sha-256", true),
        ("scram", "md5,password", false),
        ("scram", "!md5", true),
        ("scram", "!scram-sha-256", false),
        ("hashed", "md5", true),
        ("hashed", "scram-sha-256", false),
        ("trusted", "none", true),
        ("trusted", "scram-sha-256", false),
        ("trusted", "!none", false),
    ] {
        let link = connect_to(&text(user, &format!("sslmode=disable require_auth={methods}")).await).await;
        assert_eq!(link.is_ok(), is_let_in, "{user} {methods}: {:?}", link.err());
    }
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_told_as_the_server_tells_it() {
    let port = server().await.postgres.address().port();
    let base = format!("host=127.0.0.1 port={port} user=scram dbname=postgres");
    let refused = connect_to(&format!("{base} password=wrong")).await.unwrap_err();
    assert!(refused.contains("28P01") && !refused.contains("wrong"), "{refused}");
    let refused = connect_to(&base).await.unwrap_err();
    assert!(refused.contains("there is none"), "{refused}");
    let refused = connect_to(&text("trusted", "dbname=nowhere").await).await.unwrap_err();
    assert!(refused.contains("3D000"), "{refused}");
}

#[tokio::test]
async fn a_session_begins_as_it_is_told() {
    let rest = "application_name='the tests' options='-c search_path=a,b -c work_mem=128kB'";
    let mut link = connect_to(&text("trusted", rest).await).await.unwrap();
    for (setting, wanted) in [
        ("application_name", "the tests"),
        ("search_path", "a,b"),
        ("work_mem", "128kB"),
        ("client_encoding", "UTF8"),
    ] {
        assert_eq!(
            value(&mut link, &format!("SHOW {setting}")).await.as_deref(),
            Ok(wanted)
        );
    }
}
