//! Clients by a Unix socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use testbed::{Folder, Forebay};

use crate::client::{Client, PATIENCE, message, query, startup};
use crate::{PROGRAM, server};

fn socket(folder: &Folder, server: &Forebay) -> PathBuf {
    folder.file(&format!(".s.PGSQL.{}", server.address().port()))
}

/// All that comes for a query and a farewell.
fn answered(path: &Path, sql: &str) -> Vec<u8> {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let said = [startup(&[]), query(sql), message(b'X', b"")].concat();
    stream.write_all(&said).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn has(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_socket_is_an_address_like_any_other_and_goes_with_the_server() {
    let folder = Folder::new("socket", None).unwrap();
    let mut server = server(&["--socket-folder", folder.path().to_str().unwrap()]);
    let path = socket(&folder, &server);
    assert!(has(&answered(&path, "SELECT 'by socket'"), "by socket"));
    // Who goes away is noticed here, too: a statement that runs on would hold the one writer.
    let mut gone = UnixStream::connect(&path).unwrap();
    let endless = "CREATE TABLE made AS SELECT count(*) FROM generate_series(1, 1000000000000)";
    gone.write_all(&[startup(&[]), query(endless)].concat()).unwrap();
    gone.read_exact(&mut [0; 9]).unwrap();
    drop(gone);
    Client::connect(server.address()).run("CREATE TABLE free (a int)");
    assert!(server.terminate().unwrap().status.success());
    assert!(!path.exists());
}

#[test]
fn what_a_server_has_left_is_replaced_and_what_another_one_has_is_not() {
    let folder = Folder::new("socket", None).unwrap();
    let arguments = ["--socket-folder", folder.path().to_str().unwrap()];
    let mut first = server(&arguments);
    let path = socket(&folder, &first);
    let listen = first.address().to_string();
    // One that has ended by a crash leaves its file.
    first.kill9().unwrap();
    assert!(path.exists());
    let again = [&arguments[..], &["--listen", &listen]].concat();
    let _second = server(&again);
    assert!(has(&answered(&path, "SELECT 'the second'"), "the second"));
    // On another address, under the same port.
    let other = listen.replace("127.0.0.1", "127.0.0.2");
    let arguments = [&arguments[..], &["--listen", &other]].concat();
    let refused = Forebay::builder(PROGRAM)
        .arguments(&arguments)
        .start()
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("cannot listen on") && refused.contains(".s.PGSQL."),
        "{refused}"
    );
    assert!(has(&answered(&path, "SELECT 'still the second'"), "still the second"));
}
