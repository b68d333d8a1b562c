//! Setting: what each key may be set to, and what a list of settings makes of a [`Config`].

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{
    ChannelBinding, ClearPassword, Config, Endpoint, Host, InvalidConfig, PORT, Password, RequireAuth,
    RootCertificates, SslMode, SslNegotiation, TargetSessionAttrs, default_endpoint,
};

/// What asks for what is not spoken here, and must not be dropped in silence.
const REFUSED: [&str; 9] = [
    "service",
    "passfile",
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslkeylogfile",
    "requirepeer",
    "requiressl",
    "scram_client_key",
];
/// How Kerberos is spoken: it is not.
const OF_KERBEROS: [&str; 4] = ["krbsrvname", "gsslib", "gssdelegation", "sslcompression"];

/// What may be set.
const KNOWN: [&str; 33] = [
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "fallback_application_name",
    "replication",
    "client_encoding",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "target_session_attrs",
    "load_balance_hosts",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslsni",
    "channel_binding",
    "require_auth",
    "gssencmode",
    "min_protocol_version",
    "max_protocol_version",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "sslcertmode",
];

/// The config that these pairs make. Of two pairs with one key the latter holds.
pub(super) fn config(pairs: Vec<(String, String)>) -> Result<Config, InvalidConfig> {
    let mut config = Config::default();
    let (mut names, mut addresses, mut ports) = (String::new(), String::new(), String::new());
    for (key, value) in pairs {
        match &*key {
            "host" => names = value,
            "hostaddr" => addresses = value,
            "port" => ports = value,
            _ => set(&mut config, &key, value)?,
        }
    }
    config.hosts = hosts(&names, &addresses, &ports)?;
    check(&config)?;
    Ok(config)
}

fn set(config: &mut Config, key: &str, value: String) -> Result<(), InvalidConfig> {
    let invalid = || InvalidConfig(format!("{key} cannot be set to what it is set to"));
    match key {
        "user" => config.user = filled(value),
        "password" => config.password = filled(value).map(Password),
        "dbname" => config.dbname = filled(value),
        "options" => config.options = filled(value),
        "application_name" => config.application_name = filled(value),
        "fallback_application_name" => {
            if config.application_name.is_none() {
                config.application_name = filled(value);
            }
        }
        "replication" => config.replication = filled(value),
        "client_encoding" => match value.to_ascii_lowercase().as_str() {
            "" | "auto" | "utf8" | "utf-8" | "unicode" => {}
            _ => return Err(InvalidConfig("client_encoding is UTF8 and nothing else".to_owned())),
        },
        "connect_timeout" => config.connect_timeout = seconds(&value).ok_or_else(invalid)?,
        "keepalives" => config.keepalives = flag(&value).ok_or_else(invalid)?,
        "keepalives_idle" => config.keepalives_idle = seconds(&value).ok_or_else(invalid)?,
        "keepalives_interval" => config.keepalives_interval = seconds(&value).ok_or_else(invalid)?,
        "keepalives_count" => {
            let count: u32 = value.trim().parse().map_err(|_| invalid())?;
            config.keepalives_count = (count > 0).then_some(count);
        }
        "tcp_user_timeout" => {
            let milliseconds: u32 = value.trim().parse().map_err(|_| invalid())?;
            config.tcp_user_timeout = (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()));
        }
        "target_session_attrs" => {
            config.target_session_attrs = match &*value {
                "any" => TargetSessionAttrs::Any,
                "read-write" => TargetSessionAttrs::ReadWrite,
                "read-only" => TargetSessionAttrs::ReadOnly,
                "primary" => TargetSessionAttrs::Primary,
                "standby" => TargetSessionAttrs::Standby,
                "prefer-standby" => TargetSessionAttrs::PreferStandby,
                _ => return Err(invalid()),
            };
        }
        "load_balance_hosts" => {
            config.load_balance_hosts = match &*value {
                "disable" => false,
                "random" => true,
                _ => return Err(invalid()),
            };
        }
        "sslmode" => {
            config.sslmode = match &*value {
                "disable" => SslMode::Disable,
                "allow" => SslMode::Allow,
                "prefer" => SslMode::Prefer,
                "require" => SslMode::Require,
                "verify-ca" => SslMode::VerifyCa,
                "verify-full" => SslMode::VerifyFull,
                _ => return Err(invalid()),
            };
        }
        "sslnegotiation" => {
            config.sslnegotiation = match &*value {
                "postgres" => SslNegotiation::Postgres,
                "direct" => SslNegotiation::Direct,
                _ => return Err(invalid()),
            };
        }
        "sslrootcert" => {
            config.sslrootcert = filled(value).map(|value| match &*value {
                "system" => RootCertificates::System,
                _ => RootCertificates::File(value.into()),
            });
        }
        "sslcert" => config.sslcert = filled(value).map(PathBuf::from),
        "sslkey" => config.sslkey = filled(value).map(PathBuf::from),
        "sslsni" => config.sslsni = flag(&value).ok_or_else(invalid)?,
        "channel_binding" => {
            config.channel_binding = match &*value {
                "disable" => ChannelBinding::Disable,
                "prefer" => ChannelBinding::Prefer,
                "require" => ChannelBinding::Require,
                _ => return Err(invalid()),
            };
        }
        "require_auth" => config.require_auth = require_auth(&value).ok_or_else(invalid)?,
        "gssencmode" => match &*value {
            "disable" | "prefer" => {}
            _ => return Err(InvalidConfig("Kerberos is not spoken (gssencmode)".to_owned())),
        },
        // What is spoken is in any server's range.
        "min_protocol_version" | "max_protocol_version" => match &*value {
            "" | "3.0" | "latest" | "3.2" => {}
            _ => return Err(invalid()),
        },
        "ssl_min_protocol_version" | "ssl_max_protocol_version" => match &*value {
            "" | "TLSv1.2" => {}
            "TLSv1.3" if key == "ssl_max_protocol_version" => {}
            _ => return Err(InvalidConfig(format!("{key}: TLS 1.2 and 1.3 are spoken"))),
        },
        "sslcertmode" => match &*value {
            "" | "allow" => {}
            _ => return Err(invalid()),
        },
        _ if OF_KERBEROS.contains(&key) => {}
        _ if REFUSED.contains(&key) => return Err(InvalidConfig(format!("{key} is not supported"))),
        _ => return Err(InvalidConfig(unknown(key))),
    }
    Ok(())
}

/// A key that is not known may be a part of a password, and is repeated only where it is all but one that is known.
fn unknown(key: &str) -> String {
    match KNOWN.iter().find(|known| is_all_but(key, known)) {
        Some(meant) => format!("there is no key {key}, but {meant}"),
        None => "a key is set that is not known, and not repeated, for it may be a part of a password".to_owned(),
    }
}

/// Whether a key has one letter that is wrong, missing or too many, or two that are exchanged.
fn is_all_but(key: &str, known: &str) -> bool {
    let (key, known) = (key.as_bytes(), known.as_bytes());
    let same = key.iter().zip(known).take_while(|(one, other)| one == other).count();
    let (key, known) = (&key[same..], &known[same..]);
    let behind = |bytes: &[u8], count: usize| bytes.get(count..).map(<[u8]>::to_vec);
    let is_exchanged = key.len() >= 2 && known.len() >= 2 && key[0] == known[1] && key[1] == known[0];
    [(1, 1), (0, 1), (1, 0)].into_iter().any(|(of_key, of_known)| {
        let (key, known) = (behind(key, of_key), behind(known, of_known));
        key.is_some() && key == known
    }) || (is_exchanged && key[2..] == known[2..])
}

/// What contradicts itself.
fn check(config: &Config) -> Result<(), InvalidConfig> {
    let invalid = |why: &str| Err(InvalidConfig(why.to_owned()));
    if config.sslrootcert == Some(RootCertificates::System) && config.sslmode < SslMode::VerifyFull {
        return invalid("sslrootcert=system wants sslmode=verify-full: anybody can have such a certificate");
    }
    if config.sslnegotiation == SslNegotiation::Direct && config.sslmode < SslMode::Require {
        return invalid("sslnegotiation=direct wants sslmode=require or more");
    }
    if config.sslcert.is_some() != config.sslkey.is_some() {
        return invalid("sslcert and sslkey are wanted both, or neither");
    }
    if config.sslmode == SslMode::VerifyCa && config.sslrootcert.is_none() {
        return invalid("sslmode=verify-ca wants sslrootcert");
    }
    Ok(())
}

/// Lists of names, addresses and ports belong together by their places; one port is everybody's.
fn hosts(names: &str, addresses: &str, ports: &str) -> Result<Vec<Host>, InvalidConfig> {
    let list = |text: &str| -> Vec<String> {
        match text.is_empty() {
            true => Vec::new(),
            false => text.split(',').map(|part| part.trim().to_owned()).collect(),
        }
    };
    let (names, addresses, ports) = (list(names), list(addresses), list(ports));
    let count = names.len().max(addresses.len()).max(1);
    for (list, key) in [(&names, "host"), (&addresses, "hostaddr")] {
        if !list.is_empty() && list.len() != count {
            return Err(InvalidConfig(format!(
                "{key} has {} parts, and there are {count} hosts",
                list.len()
            )));
        }
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(InvalidConfig(format!(
            "port has {} parts, and there are {count} hosts",
            ports.len()
        )));
    }
    let part = |list: &[String], at: usize| list.get(at).filter(|part| !part.is_empty()).cloned();
    (0..count)
        .map(|at| {
            let port = match part(&ports, if ports.len() == 1 { 0 } else { at }) {
                None => PORT,
                Some(port) => match port.parse() {
                    Ok(port @ 1..) => port,
                    _ => return Err(InvalidConfig("a port is not a number from 1 to 65535".to_owned())),
                },
            };
            let address: Option<IpAddr> = match part(&addresses, at) {
                None => None,
                Some(address) => Some(
                    address
                        .parse()
                        .map_err(|_| InvalidConfig("hostaddr is not an address of numbers".to_owned()))?,
                ),
            };
            let endpoint = match (part(&names, at), address) {
                (Some(folder), None) if folder.starts_with('/') => Endpoint::Unix(folder.into()),
                (Some(name), address) => Endpoint::Tcp { name, address },
                (None, Some(address)) => Endpoint::Tcp {
                    name: address.to_string(),
                    address: Some(address),
                },
                (None, None) => default_endpoint(port),
            };
            Ok(Host { endpoint, port })
        })
        .collect()
}

fn filled(value: String) -> Option<String> {
    (!value.is_empty()).then_some(value)
}

/// 0 and less are for ever.
fn seconds(value: &str) -> Option<Option<Duration>> {
    let seconds: i64 = value.trim().parse().ok()?;
    Some(
        u64::try_from(seconds)
            .ok()
            .filter(|&seconds| seconds > 0)
            .map(Duration::from_secs),
    )
}

fn flag(value: &str) -> Option<bool> {
    match value.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// `scram-sha-256,md5`: one of these; `!password,!md5`: any but these.
fn require_auth(value: &str) -> Option<RequireAuth> {
    if value.is_empty() {
        return Some(RequireAuth::default());
    }
    let methods: Vec<&str> = value.split(',').map(str::trim).collect();
    let excludes = methods.iter().filter(|method| method.starts_with('!')).count();
    let allow = match excludes {
        0 => true,
        all if all == methods.len() => false,
        _ => return None,
    };
    let mut allowed = match allow {
        true => RequireAuth {
            none: false,
            password: ClearPassword::No,
            md5: false,
            scram_sha_256: false,
        },
        false => RequireAuth::default(),
    };
    for method in methods {
        match method.trim_start_matches('!') {
            "none" => allowed.none = allow,
            "password" if allow => allowed.password = ClearPassword::Always,
            "password" => allowed.password = ClearPassword::No,
            "md5" => allowed.md5 = allow,
            "scram-sha-256" => allowed.scram_sha_256 = allow,
            "gss" | "sspi" | "oauth" => {}
            _ => return None,
        }
    }
    Some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_as_known_is() {
        for key in KNOWN {
            let set = config(vec![(key.to_owned(), String::new())]);
            let why = set.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!why.contains("key"), "{key}: {why}");
        }
    }

    #[test]
    fn a_slip_is_one_letter_or_two_exchanged() {
        for slip in ["sslmod", "sslmodee", "sslmude", "slsmode", "ssmlode", "sslmdoe"] {
            assert!(is_all_but(slip, "sslmode"), "{slip}");
        }
        for other in ["sslmode", "sslmo", "sslmodeee", "hunter2", "", "mode"] {
            assert!(!is_all_but(other, "sslmode"), "{other}");
        }
    }
}
