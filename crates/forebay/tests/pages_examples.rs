//! The example of the PagePool, as its clients see it: whole files, ranges, and ranges that there are not.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../examples/pages_http.rs"]
#[expect(dead_code, reason = "its `main`, which serves for ever")]
mod pages_http;

use forebay::pages::PagePool;
use reqwest::{Client, Response, StatusCode};

type Ended = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn ranges_of_a_file_over_http() -> Ended {
    let file = tempfile::NamedTempFile::new()?;
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(file.path(), &content)?;
    let pool = PagePool::builder().memory(64 << 20).build()?;
    let service = pages_http::service(&pool, file.path().to_str().unwrap()).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, service).await });

    let client = Client::new();
    let get =
        async |range: &str| -> reqwest::Result<Response> { client.get(&address).header("range", range).send().await };
    for (asked, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=100-199", 100..200),
        ("bytes=-5", 2_999_995..3_000_000),
        ("bytes=2999990-", 2_999_990..3_000_000),
        ("bytes=10-2500000", 10..2_500_001),
        ("bytes=2999999-99999999", 2_999_999..3_000_000),
    ] {
        let answer = get(asked).await?;
        assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT, "{asked}");
        let told = format!("bytes {}-{}/3000000", expected.start, expected.end - 1);
        assert_eq!(answer.headers()["content-range"], told.as_str());
        assert_eq!(answer.content_length(), Some(expected.len() as u64));
        assert!(answer.bytes().await? == content[expected], "{asked}");
    }
    for whole in ["bytes=5-4", "lines=1-2", "bytes=a-b", "bytes=1-2,5-6"] {
        let answer = get(whole).await?;
        assert_eq!(answer.status(), StatusCode::OK, "{whole}");
        assert!(answer.bytes().await? == content, "{whole}");
    }
    for nowhere in ["bytes=3000000-", "bytes=-0"] {
        let answer = get(nowhere).await?;
        assert_eq!(answer.status(), StatusCode::RANGE_NOT_SATISFIABLE, "{nowhere}");
        assert_eq!(answer.headers()["content-range"], "bytes */3000000");
    }
    assert!(
        pool.stats().read_bytes < 2 * content.len() as u64,
        "read once, and sent many times"
    );
    assert_eq!(pool.stats().pinned_bytes, 0);
    Ok(())
}
