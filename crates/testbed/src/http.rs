//! One blocking HTTP GET, enough to read `/metrics` and `/healthz` of a server on this machine.
//!
//! Does not know TLS, redirects, keep-alive. Bounded in time and size.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::Error;

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code, such as 200.
    pub status: u16,
    /// The header lines as they came, without the status line.
    pub headers: String,
    /// The body as text.
    pub body: String,
}

/// Asks for a path and reads the whole answer.
///
/// # Errors
/// When nobody answers in 10 s, or not in HTTP. A status such as 404 is an answer, not an error.
pub fn http_get(address: SocketAddr, path: &str) -> Result<Response, Error> {
    let problem = |problem: String| Error::Http {
        address: address.to_string(),
        path: path.to_owned(),
        problem,
    };
    let mut answer = Vec::new();
    let mut exchange = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        // HTTP/1.0: the answer ends with the connection and is not chunked.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: */*\r\n\r\n")?;
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(())
    };
    exchange().map_err(|error| problem(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer);
    parse(&text).ok_or_else(|| {
        problem(format!(
            "not an HTTP answer: {:?}",
            text.chars().take(200).collect::<String>()
        ))
    })
}

fn parse(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let (status_line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status_line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Response {
        status,
        headers: headers.to_owned(),
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        net::TcpListener,
        thread,
    };

    use super::*;

    fn answer_once(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn an_answer_is_read_whole() {
        let address = answer_once("HTTP/1.0 404 Not Found\r\ncontent-type: text/plain\r\n\r\nno\r\n\r\nsuch\n");
        let answer = http_get(address, "/metrics").unwrap();
        assert_eq!(answer.status, 404);
        assert_eq!(answer.headers, "content-type: text/plain");
        assert_eq!(answer.body, "no\r\n\r\nsuch\n");
    }

    #[test]
    fn what_is_not_http_is_an_error_that_shows_it() {
        let error = http_get(answer_once("SSH-2.0-x\r\n"), "/").unwrap_err();
        assert!(error.to_string().contains("SSH-2.0"), "{error}");
    }
}
