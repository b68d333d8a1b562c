//! Address: where a database over the network is, as the URL says it.
//!
//! Promises: a URL in which a part of a password would be taken for the host or the database is refused, and the error repeats
//! nothing of it; a connection that others could listen to is warned of. Knows no database: each reads its URL by itself.

use crate::connect_error::ConnectError;

/// What stands for itself in a password must not be taken for the end of it.
const ESCAPES: &str = "of a user or password write @ as %40, / as %2F, : as %3A, # as %23 and ? as %3F";

/// The URL cannot be understood.
pub fn invalid(url: &str, cause: impl std::fmt::Display) -> ConnectError {
    let cause = match url.rsplit_once('@') {
        // Perhaps not the reason, but the most frequent one.
        Some((before, _)) if before.matches(['@', '/', '#', '?']).count() > "//".len() => {
            format!("the URL cannot be understood: {cause}; {ESCAPES}")
        }
        _ => format!("the URL cannot be understood: {cause}"),
    };
    ConnectError::InvalidUrl { cause }
}

/// Refuses a URL whose hosts or database have an @ that is not meant: it is the one before the host, and what is between is
/// the rest of a password.
pub fn check<'u>(url: &str, named: impl IntoIterator<Item = &'u str>) -> Result<(), ConnectError> {
    let is_url = url.contains("://") && !url.contains("%40");
    if is_url && named.into_iter().any(|name| name.contains('@')) {
        let cause = format!("the URL has an @ after the one before its host: {ESCAPES}");
        return Err(ConnectError::InvalidUrl { cause });
    }
    Ok(())
}

/// Whether what is sent there does not leave this machine.
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// TLS could be spoken and is not.
pub fn warn_of_listeners(server: &str, instead: &str) {
    tracing::warn!(
        server,
        "a connection to another machine is in clear, its password and data too: {instead} encrypts it"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names() {
        for host in ["localhost", "127.0.0.1", "127.0.0.2", "::1", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["db.example", "10.0.0.1", "localhost.example", "", "::2"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn an_at_that_is_not_meant_is_refused_without_repeating_it() {
        let url = "postgresql://app:p@ss/word@h/app";
        let error = check(url, ["ss", "word@h/app"]).unwrap_err().to_string();
        assert!(error.contains("%40") && !error.contains("word@"), "{error}");
        assert_eq!(check("postgresql://app@h/a%40b", ["h", "a@b"]), Ok(()));
        assert_eq!(check("host=h dbname=a@b", ["h", "a@b"]), Ok(()));
        assert_eq!(check("postgresql://app@h/app", ["h", "app"]), Ok(()));
    }

    #[test]
    fn a_url_that_cannot_be_read_is_explained_where_its_password_may_be_why() {
        let explained = |url| invalid(url, "no port").to_string().contains("%2F");
        assert!(explained("mysql://app:p/w@h/app"));
        assert!(explained("mysql://app:p@w@h/app"));
        assert!(!explained("mysql://app:pw@h:port/app"));
        assert!(!explained("mysql://h:port/app"));
    }
}
