//! URL: a server told as `postgresql://user:password@host:port,host:port/database?key=value`.
//!
//! Promises: each part is decoded by itself, so that what is written with % stands for itself; what has an @, / or : that is
//! meant otherwise than it reads is refused where that shows. Hosts and ports come as the lists that `host` and `port` are.

use percent_encoding::percent_decode_str;

use crate::config::InvalidConfig;

/// A key and what it is set to.
type Pair = (String, String);

/// What follows the scheme, if it is a URL.
pub(super) fn rest(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://")
        .or_else(|| text.strip_prefix("postgres://"))
}

/// Whether it is a URL of another scheme.
pub(super) fn is_another(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

pub(super) fn pairs(rest: &str) -> Result<Vec<Pair>, InvalidConfig> {
    let mut pairs = Vec::new();
    let (rest, parameters) = match rest.split_once('?') {
        Some((rest, parameters)) => (rest, Some(parameters)),
        None => (rest, None),
    };
    let (authority, database) = match rest.split_once('/') {
        Some((authority, database)) => (authority, Some(database)),
        None => (rest, None),
    };
    let (user, hosts) = match authority.split_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    if let Some(user) = user {
        let (user, password) = match user.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (user, None),
        };
        push(&mut pairs, "user", user)?;
        if let Some(password) = password {
            push(&mut pairs, "password", password)?;
        }
    }
    self::hosts(&mut pairs, hosts)?;
    if let Some(database) = database {
        push(&mut pairs, "dbname", database)?;
    }
    for parameter in parameters
        .unwrap_or_default()
        .split('&')
        .filter(|part| !part.is_empty())
    {
        let (key, value) = parameter
            .split_once('=')
            .ok_or_else(|| InvalidConfig("a parameter behind the ? has no =".to_owned()))?;
        match (&*decoded(key)?, &*decoded(value)?) {
            // As the drivers of Java write it.
            ("ssl", "true") => pairs.push(("sslmode".to_owned(), "require".to_owned())),
            (key, value) => pairs.push((key.to_owned(), value.to_owned())),
        }
    }
    Ok(pairs)
}

/// Hosts and ports, as two lists of the same length.
fn hosts(pairs: &mut Vec<Pair>, text: &str) -> Result<(), InvalidConfig> {
    if text.is_empty() {
        return Ok(());
    }
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for part in text.split(',') {
        let (host, port) = match part.strip_prefix('[') {
            Some(bracketed) => {
                let (host, behind) = bracketed
                    .split_once(']')
                    .ok_or_else(|| InvalidConfig("an address in [ has no ]".to_owned()))?;
                let port = match behind {
                    "" => "",
                    behind => behind.strip_prefix(':').ok_or_else(|| {
                        InvalidConfig("only a : and a port may stand behind an address in []".to_owned())
                    })?,
                };
                (host, port)
            }
            None => part.split_once(':').unwrap_or((part, "")),
        };
        let host = decoded(host)?;
        if host.contains(',') {
            return Err(InvalidConfig("a host has a comma".to_owned()));
        }
        hosts.push(host);
        ports.push(decoded(port)?);
    }
    pairs.push(("host".to_owned(), hosts.join(",")));
    if ports.iter().any(|port| !port.is_empty()) {
        pairs.push(("port".to_owned(), ports.join(",")));
    }
    Ok(())
}

/// Empty is left out, as the library does.
fn push(pairs: &mut Vec<Pair>, key: &str, value: &str) -> Result<(), InvalidConfig> {
    if !value.is_empty() {
        pairs.push((key.to_owned(), decoded(value)?));
    }
    Ok(())
}

fn decoded(text: &str) -> Result<String, InvalidConfig> {
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('%') {
        let is_code = behind.len() >= 2 && behind.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
        if !is_code || behind.starts_with("00") {
            return Err(InvalidConfig(
                "a % is not followed by two hexadecimal digits (or by 00)".to_owned(),
            ));
        }
        rest = &behind[2..];
    }
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| InvalidConfig("what is written with % is not UTF-8".to_owned()))
}
