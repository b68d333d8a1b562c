//! Parse: a config from a URL.
//!
//! Promises: `mysql://user:password@host:port/database?key=value&…`, or the same with `mariadb:`; user, password, host, database and
//! values are percent-encoded. A key that is not known is refused, and so is one that asks for what is not here; keys that other
//! clients read and that say nothing of a link (their pools, their caches) are taken and mean nothing. No error repeats what may be
//! a part of a password.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::config::{Config, Endpoint, InvalidConfig, PORT, Password, TlsOptions};

/// What other clients read, of numbers and of yes or no.
const MEANINGLESS: [&str; 13] = [
    "pool_min",
    "pool_max",
    "inactive_connection_ttl",
    "ttl_check_interval",
    "conn_ttl",
    "abs_conn_ttl",
    "abs_conn_ttl_jitter",
    "max_allowed_packet",
    "wait_timeout",
    "reset_connection",
    "stmt_cache_size",
    "prefer_socket",
    "client_found_rows",
];

impl FromStr for Config {
    type Err = InvalidConfig;

    fn from_str(url: &str) -> Result<Self, InvalidConfig> {
        let rest = ["mysql://", "mariadb://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| invalid("it begins with neither mysql:// nor mariadb://"))?;
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let mut config = Self {
            endpoint: endpoint(host)?,
            ..Self::default()
        };
        if let Some(login) = login {
            let (user, password) = match login.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (login, None),
            };
            config.user = Some(decoded(user, "the user")?).filter(|user| !user.is_empty());
            config.password = match password {
                Some(password) => Some(Password(decoded(password, "the password")?)),
                None => None,
            };
        }
        let database = path.split_once('/').map_or(path, |(first, _)| first);
        config.database = Some(decoded(database, "the database")?).filter(|database| !database.is_empty());
        settings_of(&mut config, settings)?;
        Ok(config)
    }
}

fn invalid(why: &str) -> InvalidConfig {
    InvalidConfig(why.to_owned())
}

fn decoded(text: &str, what: &str) -> Result<String, InvalidConfig> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| InvalidConfig(format!("{what} is no UTF-8")))?;
    match decoded.contains('\0') {
        true => Err(InvalidConfig(format!("{what} has a zero byte"))),
        false => Ok(decoded.into_owned()),
    }
}

/// `name`, `name:port` or `[address]:port`.
fn endpoint(text: &str) -> Result<Endpoint, InvalidConfig> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, behind) = rest.split_once(']').ok_or_else(|| invalid("an address has no ]"))?;
            match behind.strip_prefix(':') {
                Some(port) => (address, port),
                None if behind.is_empty() => (address, ""),
                None => return Err(invalid("there is something between an address's ] and its port")),
            }
        }
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    let port = match port {
        "" => PORT,
        port => port.parse().map_err(|_| invalid("the port is no number up to 65535"))?,
    };
    let host = decoded(host, "the host")?;
    Ok(match host.is_empty() {
        true => Endpoint::Tcp("127.0.0.1".to_owned(), port),
        false => Endpoint::Tcp(host, port),
    })
}

fn settings_of(config: &mut Config, settings: &str) -> Result<(), InvalidConfig> {
    let (mut speaks_tls, mut tls) = (false, TlsOptions::new());
    for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let (key, value) = (plus_decoded(key)?, plus_decoded(value)?);
        let refused = || InvalidConfig(format!("{key} cannot be what it is set to"));
        let is = || value.parse::<bool>().map_err(|_| refused());
        match &*key {
            "socket" => config.endpoint = Endpoint::Unix(PathBuf::from(&value)),
            "require_ssl" => speaks_tls = is()?,
            "verify_ca" => tls = tls.verify_ca(is()?),
            "verify_identity" => tls = tls.verify_identity(is()?),
            "built_in_roots" => tls = tls.built_in_roots(is()?),
            "enable_cleartext_plugin" => config.enable_cleartext_plugin = is()?,
            "get_server_public_key" => config.get_server_public_key = is()?,
            "tcp_nodelay" => config.tcp_nodelay = is()?,
            "tcp_keepalive" => {
                let milliseconds = value.parse::<u32>().map_err(|_| refused())?;
                config.tcp_keepalive = Some(Duration::from_millis(milliseconds.into()));
            }
            "secure_auth" if is()? => {}
            "secure_auth" => return Err(invalid("secure_auth=false: proofs of servers before 4.1 are not given")),
            "compression" => return Err(invalid("compression: what is sent is not compressed here")),
            key if MEANINGLESS.contains(&key) => {
                if value.parse::<u64>().is_err() && value.parse::<bool>().is_err() {
                    return Err(refused());
                }
            }
            key => return Err(InvalidConfig(format!("there is no setting {key}"))),
        }
    }
    config.tls = speaks_tls.then_some(tls);
    Ok(())
}

/// In settings a plus is a space.
fn plus_decoded(text: &str) -> Result<String, InvalidConfig> {
    decoded(&text.replace('+', " "), "a setting")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(url: &str) -> Config {
        url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn a_url_says_who_where_and_what_for() {
        let config = read("mysql://app:p%40%2Fw@db.example:3307/shop%2F1");
        assert_eq!(config.endpoint, Endpoint::Tcp("db.example".to_owned(), 3307));
        assert_eq!(config.user.as_deref(), Some("app"));
        assert_eq!(config.password, Some(Password("p@/w".to_owned())));
        assert_eq!(config.database.as_deref(), Some("shop/1"));
        assert_eq!(read("mariadb://app:p%40%2Fw@db.example:3307/shop%2F1"), config);
        let bare = read("mysql://h");
        assert_eq!((bare.user, bare.password, bare.database), (None, None, None));
        assert_eq!(bare.endpoint.to_string(), "h:3306");
        assert_eq!(read("mysql://root@[::1]:1/x").endpoint.to_string(), "[::1]:1");
        assert_eq!(
            read("mysql://root@/x?socket=%2Frun%2Fs").endpoint,
            Endpoint::Unix("/run/s".into())
        );
        assert_eq!(read("mysql://root@").endpoint.to_string(), "127.0.0.1:3306");
    }

    #[test]
    fn settings_are_read_and_those_of_pools_mean_nothing() {
        let config = read(
            "mysql://h/d?tcp_keepalive=500&tcp_nodelay=false&pool_min=1&pool_max=2&prefer_socket=true&wait_timeout=9",
        );
        assert_eq!(config.tcp_keepalive, Some(Duration::from_millis(500)));
        assert!(!config.tcp_nodelay && config.tls.is_none());
        let tls = read("mysql://h?verify_identity=false&require_ssl=true").tls;
        assert_eq!(tls, Some(TlsOptions::new().verify_identity(false)));
        let tls = read("mysql://h?require_ssl=true&verify_ca=false&built_in_roots=false").tls;
        assert_eq!(tls, Some(TlsOptions::new().verify_ca(false).built_in_roots(false)));
        assert_eq!(read("mysql://h?require_ssl=false&verify_ca=true").tls, None);
    }

    #[test]
    fn what_cannot_be_is_refused_and_no_password_repeated() {
        for url in [
            "postgresql://h/d",
            "h",
            "mysql://h:port/d",
            "mysql://app:s3cret/word@h:1/d",
            "mysql://[::1/d",
            "mysql://[::1]1/d",
            "mysql://h/d?what=this",
            "mysql://h/d?require_ssl=yes",
            "mysql://h/d?pool_min=few",
            "mysql://h/d?compression=fast",
            "mysql://h/d?secure_auth=false",
            "mysql://a%00b@h/d",
            "mysql://a:s3cret%ff@h/d",
        ] {
            let refused = url.parse::<Config>().unwrap_err().to_string();
            assert!(!refused.contains("s3cret") && !refused.contains("word@"), "{refused}");
        }
        let shown = format!("{:?}", read("mysql://app:s3cret@h/d"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_read(text in "(mysql://)?[a-z:@/?#%&=\\[\\]0-9é]{0,40}") {
            let _ = text.parse::<Config>();
        }
    }
}
