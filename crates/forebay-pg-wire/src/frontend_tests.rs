//! The decoder against well-formed, malformed and hostile bytes: what each becomes, and whether the protocol goes on after it.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

use super::*;

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend((body.len() as u32 + 4).to_be_bytes());
    frame.extend(body);
    frame
}

/// Every message that `bytes` hold, up to the first end or error that is not recoverable.
async fn read_all(bytes: &[u8]) -> Vec<Result<Frontend, FrameError>> {
    let mut reader = FrameReader::new(bytes, 1 << 20);
    let mut read = Vec::new();
    loop {
        match reader.next().await {
            Ok(None) => return read,
            Ok(Some(message)) => read.push(Ok(message)),
            Err(error @ FrameError::Refused { .. }) => read.push(Err(error)),
            Err(error) => {
                read.push(Err(error));
                return read;
            }
        }
    }
}

async fn message(kind: u8, body: &[u8]) -> Frontend {
    let mut all = read_all(&frame(kind, body)).await;
    assert_eq!(all.len(), 1);
    all.remove(0).expect("a well-formed message")
}

/// The SQLSTATE that a frame is refused with; asserts that the Sync after it is still understood.
async fn refused(kind: u8, body: &[u8]) -> &'static str {
    let mut bytes = frame(kind, body);
    bytes.extend(frame(b'S', b""));
    let all = read_all(&bytes).await;
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1].as_ref().unwrap(), &Frontend::Sync);
    match &all[0] {
        Err(FrameError::Refused {
            error,
            kind: refused_kind,
        }) => {
            assert!(!error.is_fatal());
            assert_eq!(*refused_kind, kind);
            error.sqlstate
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// The SQLSTATE that the protocol breaks with, at once: the stream stays open and silent after these bytes.
async fn broken_by(bytes: &[u8]) -> &'static str {
    let (mut client, server) = tokio::io::duplex(64);
    let mut reader = FrameReader::new(server, 1 << 20);
    client.write_all(bytes).await.unwrap();
    match tokio::time::timeout(Duration::from_secs(5), reader.next())
        .await
        .expect("refused without waiting for more")
    {
        Err(FrameError::Broken(error)) => {
            assert!(error.is_fatal());
            error.sqlstate
        }
        other => panic!("not broken: {other:?}"),
    }
}

#[tokio::test]
async fn each_message_is_decoded() {
    assert_eq!(message(b'Q', b"SELECT 1\0").await, Frontend::Query("SELECT 1".into()));
    assert_eq!(
        message(b'P', b"name\0SELECT $1\0\0\x02\0\0\0\x17\0\0\0\0").await,
        Frontend::Parse {
            name: "name".into(),
            sql: "SELECT $1".into(),
            parameter_types: vec![23, 0]
        }
    );
    assert_eq!(
        message(
            b'B',
            b"portal\0statement\0\0\x01\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\x02\0\0\0\x01"
        )
        .await,
        Frontend::Bind {
            portal: "portal".into(),
            statement: "statement".into(),
            parameter_formats: vec![1],
            parameters: vec![Some(Bytes::from_static(b"ab")), None, Some(Bytes::new())],
            result_formats: vec![0, 1],
        }
    );
    assert_eq!(
        message(b'D', b"Sx\0").await,
        Frontend::Describe {
            target: Target::Statement,
            name: "x".into()
        }
    );
    assert_eq!(
        message(b'C', b"P\0").await,
        Frontend::Close {
            target: Target::Portal,
            name: String::new()
        }
    );
    assert_eq!(
        message(b'E', b"\0\0\0\0\x05").await,
        Frontend::Execute {
            portal: String::new(),
            max_rows: 5
        }
    );
    assert_eq!(
        message(b'E', b"\0\xff\xff\xff\xff").await,
        Frontend::Execute {
            portal: String::new(),
            max_rows: 0
        }
    );
    assert_eq!(message(b'H', b"").await, Frontend::Flush);
    assert_eq!(message(b'S', b"").await, Frontend::Sync);
    assert_eq!(message(b'X', b"").await, Frontend::Terminate);
    assert_eq!(
        message(b'p', b"pw\0").await,
        Frontend::Password(Bytes::from_static(b"pw\0"))
    );
    assert_eq!(
        message(b'd', b"1\t2\n").await,
        Frontend::CopyData(Bytes::from_static(b"1\t2\n"))
    );
    assert_eq!(message(b'c', b"").await, Frontend::CopyDone);
    assert_eq!(message(b'f', b"why\0").await, Frontend::CopyFail("why".into()));
    assert_eq!(message(b'F', b"anything").await, Frontend::FunctionCall);
}

#[tokio::test]
async fn malformed_content_is_refused_and_the_protocol_goes_on() {
    let protocol = "08P01";
    assert_eq!(refused(b'Q', b"").await, protocol, "no terminator");
    assert_eq!(refused(b'Q', b"SELECT 1").await, protocol, "no terminator");
    assert_eq!(refused(b'Q', b"SELECT 1\0x").await, protocol, "left over");
    assert_eq!(refused(b'Q', b"SELECT 1\0\0").await, protocol, "left over");
    assert_eq!(refused(b'Q', b"SELECT '\xff'\0").await, "22021");
    assert_eq!(refused(b'P', b"\xc3\x28\0SELECT 1\0\0\0").await, "22021");
    assert_eq!(
        refused(b'P', b"\0SELECT 1\0\0\x01").await,
        protocol,
        "a count beyond what is there"
    );
    assert_eq!(
        refused(b'P', b"\0SELECT 1\0\xff\xff\0\0\0\0").await,
        protocol,
        "a count beyond what is there"
    );
    assert_eq!(refused(b'P', b"\0SELECT 1\0").await, protocol, "no count");
    assert_eq!(
        refused(b'B', b"\0\0\0\0\0\x01\0\0\0\x05abc\0\0").await,
        protocol,
        "a value beyond its frame"
    );
    assert_eq!(
        refused(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0").await,
        protocol,
        "a negative length that is not NULL"
    );
    assert_eq!(refused(b'B', b"\0\0\0\x01\0\x02\0\0\0\0").await, "22023", "format 2");
    assert_eq!(
        refused(b'B', b"\0\0\0\x02\0\0\0\x01\0\x01\xff\xff\xff\xff\0\0").await,
        protocol,
        "two formats, one parameter"
    );
    assert_eq!(
        refused(b'D', b"Xname\0").await,
        protocol,
        "neither statement nor portal"
    );
    assert_eq!(refused(b'D', b"").await, protocol);
    assert_eq!(refused(b'E', b"\0\0\0").await, protocol, "half a count");
    assert_eq!(refused(b'S', b"x").await, protocol, "a Sync with a body");
}

#[tokio::test]
async fn invalid_utf8_names_its_bytes() {
    let all = read_all(&frame(b'Q', b"\xe4\xb8 x\0")).await;
    let Err(FrameError::Refused { error, .. }) = &all[0] else {
        panic!("{all:?}")
    };
    assert_eq!(error.message, "invalid byte sequence for encoding \"UTF8\": 0xe4 0xb8");
}

#[tokio::test]
async fn what_loses_the_protocol_is_fatal_at_once() {
    assert_eq!(broken_by(b"GET / HTTP/1.1\r\n").await, "08P01", "type G does not exist");
    assert_eq!(broken_by(b"z").await, "08P01", "without waiting for a length");
    assert_eq!(
        broken_by(b"Q\x00\x00\x00\x03").await,
        "08P01",
        "a length below its own four bytes"
    );
    assert_eq!(broken_by(b"Q\x00\x00\x00\x00").await, "08P01");
    assert_eq!(broken_by(b"Q\xff\xff\xff\xff").await, "08P01", "a negative length");
    assert_eq!(
        broken_by(b"Q\x80\x00\x00\x00").await,
        "08P01",
        "the most negative length"
    );
    assert_eq!(broken_by(b"Q\x7f\xff\xff\xff").await, "54000", "2 GiB");
    assert_eq!(broken_by(b"S\x00\x00\x27\x11").await, "54000", "10,001 bytes of Sync");
    assert_eq!(
        broken_by(b"Q\x00\x10\x00\x01").await,
        "54000",
        "one byte over the limit"
    );
}

#[tokio::test]
async fn a_message_of_exactly_the_limit_is_read() {
    let mut body = vec![b'x'; (1 << 20) - 5];
    body.push(0);
    assert!(matches!(message(b'Q', &body).await, Frontend::Query(sql) if sql.len() == (1 << 20) - 5));
}

#[tokio::test]
async fn an_announced_length_alone_gets_no_memory() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let mut reader = FrameReader::new(server, 1 << 30);
    // Enough that the reader has to make more room, knowing the length.
    client.write_all(b"Q\x30\x00\x00\x00").await.unwrap();
    client.write_all(&[b'x'; 30_000]).await.unwrap();
    assert!(
        futures_util::FutureExt::now_or_never(reader.next()).is_none(),
        "the message is not complete"
    );
    assert_eq!(reader.buffer.len(), 30_005);
    assert!(
        reader.buffer.capacity() <= 2 * 30_005 + READ_BYTES,
        "{}",
        reader.buffer.capacity()
    );
}

#[tokio::test]
async fn a_big_messages_memory_is_given_back() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let mut reader = FrameReader::new(server, 1 << 30);
    let mut big = frame(b'Q', &[&[b'x'; 8 << 20][..], b"\0"].concat());
    big.extend(frame(b'Q', b"after\0"));
    let sending = tokio::spawn(async move {
        client.write_all(&big).await.unwrap();
        client
    });
    assert!(matches!(reader.next().await, Ok(Some(Frontend::Query(_)))));
    let _client = sending.await.unwrap();
    assert!(
        reader.buffer.capacity() <= BUFFER_BYTES_KEPT,
        "{}",
        reader.buffer.capacity()
    );
    // The buffer could also be a small slice of the big allocation: if it were, it could be made unique and grow in place.
    assert!(!reader.buffer.try_reclaim(1 << 20), "the big allocation is still held");
    assert_eq!(reader.next().await.unwrap(), Some(Frontend::Query("after".into())));
}

#[tokio::test]
async fn the_end_between_messages_is_the_end_and_within_one_is_a_loss() {
    assert!(read_all(b"").await.is_empty());
    let whole = frame(b'Q', b"SELECT 1\0");
    for end in 1..whole.len() {
        let all = read_all(&whole[..end]).await;
        assert!(matches!(all[..], [Err(FrameError::Lost(_))]), "{end}: {all:?}");
    }
}

#[tokio::test]
async fn a_slow_drip_and_cancelled_waits_lose_nothing() {
    let (mut client, server) = tokio::io::duplex(64);
    let mut reader = FrameReader::new(server, 1 << 20);
    let bytes = [frame(b'Q', b"SELECT 1\0"), frame(b'S', b"")].concat();
    for byte in &bytes[..bytes.len() - 1] {
        // Each wait is polled once and dropped, between any two bytes.
        assert!(matches!(
            futures_util::FutureExt::now_or_never(reader.next()),
            None | Some(Ok(Some(Frontend::Query(_))))
        ));
        client.write_all(&[*byte]).await.unwrap();
        let _ = futures_util::FutureExt::now_or_never(reader.next_kind());
    }
    client.write_all(&bytes[bytes.len() - 1..]).await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(Frontend::Sync));
}

#[tokio::test]
async fn the_next_message_can_be_seen_without_taking_it() {
    let (mut client, server) = tokio::io::duplex(64);
    let mut reader = FrameReader::new(server, 1 << 20);
    assert_eq!(reader.buffered(), None);
    client.write_all(&frame(b'E', b"\0\0\0\0\0")).await.unwrap();
    client.write_all(b"X\0\0\0\x04S\0\0").await.unwrap();
    assert_eq!(reader.next_kind().await.unwrap(), Some(b'E'));
    assert_eq!(reader.buffered(), Some(b'E'));
    assert!(matches!(reader.next().await, Ok(Some(Frontend::Execute { .. }))));
    assert_eq!(reader.buffered(), Some(b'X'));
    assert_eq!(reader.next().await.unwrap(), Some(Frontend::Terminate));
    assert_eq!(reader.next_kind().await.unwrap(), Some(b'S'));
    assert_eq!(reader.buffered(), None, "the header is not complete");
    client.write_all(b"\0\x04").await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(Frontend::Sync));
    client.write_all(b"Q\0\0\0\x06x").await.unwrap();
    assert_eq!(reader.next_kind().await.unwrap(), Some(b'Q'));
    assert_eq!(reader.buffered(), None, "the body is not complete");
    client.write_all(b"\0").await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(Frontend::Query("x".into())));
    drop(client);
    assert_eq!(reader.next_kind().await.unwrap(), None);
}

#[test]
fn formats_are_none_one_or_all() {
    assert_eq!(format_at(&[], 3), 0);
    assert_eq!(format_at(&[1], 3), 1);
    assert_eq!(format_at(&[0, 1], 1), 1);
    assert_eq!(format_at(&[1, 1], 2), 0);
}

proptest! {
    /// Garbage of any kind ends in messages and errors, not in a panic or a hang; what is refused does not hide what follows.
    #[test]
    fn garbage_is_harmless(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        futures_util::FutureExt::now_or_never(read_all(&bytes)).expect("a slice never makes a reader wait");
    }

    #[test]
    fn garbage_in_a_frame_stays_in_it(kind in prop::sample::select(b"QPBFDECHSXpcdf".to_vec()), body in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut bytes = frame(kind, &body);
        bytes.extend(frame(b'Q', b"after\0"));
        let all = futures_util::FutureExt::now_or_never(read_all(&bytes)).expect("a slice never makes a reader wait");
        prop_assert_eq!(all.len(), 2);
        prop_assert_eq!(all[1].as_ref().unwrap(), &Frontend::Query("after".into()));
    }
}
