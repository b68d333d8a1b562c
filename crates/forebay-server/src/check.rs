//! Check: whether the server could start with these options, and what it would serve.
//!
//! Promises: reads all files that a start would read, and refuses what it would refuse for them; opens no database, listens nowhere and
//! connects to nothing. No password is told. Of a statement it says which rules are of it.

use std::fmt::Write as _;

use forebay_proxy::pool::{Asks, Limits, Met, PoolMode};
use forebay_proxy::{Invalidation, UserOptions};

use crate::access::Rules;
use crate::config::Options;
use crate::config::databases::{ProxyOptions, UpstreamSettings};
use crate::error::ServeError;
use crate::users::Users;
use crate::{log, proxied, tls};

/// What would be served, a line each.
///
/// # Errors
/// Why the server would not start.
pub fn plan(options: &Options) -> Result<String, ServeError> {
    log::check(options)?;
    let rules = options
        .hba_file
        .as_deref()
        .map(|path| Rules::load_for(path, options))
        .transpose()?;
    let users = options.users.as_deref().map(Users::load).transpose()?;
    if let Some(files) = &options.tls {
        tls::load(files)?;
    }
    if let Some(proxy) = &options.proxy {
        proxied::check(proxy)?;
    }
    let who = match (&users, &options.proxy) {
        (Some(users), _) => match users.names().count() {
            1 => "1 user of its own".to_owned(),
            count => format!("{count} users of its own"),
        },
        (None, Some(proxy)) if proxy.trusts_loopback => "the databases' users, trusted on this machine".to_owned(),
        (None, Some(_)) => "the databases' users".to_owned(),
        (None, None) => "everyone who reaches it".to_owned(),
    };
    let tls = match (&options.tls, options.require_tls) {
        (None, _) => "no TLS",
        (Some(_), false) => "TLS if they ask for it",
        (Some(_), true) => "TLS only",
    };
    let who = match rules {
        Some(rules) => format!("{who} by {} rules", rules.count()),
        None => who,
    };
    let most = options.max_connections;
    let http = options
        .http
        .map_or_else(|| "off".to_owned(), |address| address.to_string());
    let mut plan = String::new();
    let mut line = |what: &str, how: String| put(&mut plan, what, &how);
    line("clients", format!("{}, {tls}, {who}, at most {most}", options.listen));
    line("HTTP", http);
    match &options.proxy {
        None => line("database", options.database.display().to_string()),
        Some(ProxyOptions {
            databases,
            upstream,
            trusts_loopback: _,
            admins,
            max_upstream_connections,
            max_user_clients,
            users,
            rules,
            cache_memory,
            warm_file,
            invalidation,
            doubts,
        }) => {
            for (name, settings) in databases {
                line("database", format!("{name}: {}", behind(settings, name)));
            }
            if let Some(settings) = upstream {
                let of = if databases.is_empty() {
                    "databases"
                } else {
                    "all others"
                };
                line(of, behind(settings, "their own names"));
            }
            if let Some(most) = max_upstream_connections {
                line("servers", format!("at most {most} connections to each, of all pools"));
            }
            if let Some(most) = max_user_clients {
                line("users", format!("at most {most} clients of each"));
            }
            for (name, options) in users.iter() {
                line("user", format!("{name}: {}", said_of(options)));
            }
            for rule in rules.iter() {
                line("rule", rule.to_string());
            }
            if *cache_memory > 0 {
                let by = match invalidation {
                    Invalidation::Own => "what passes this proxy makes them old before their time".to_owned(),
                    Invalidation::Stream(listening) => format!(
                        "what the databases tell of their changes makes them old before their time, after {:?} at the most",
                        listening.max_lag
                    ),
                    Invalidation::None => "nothing makes them old before their time".to_owned(),
                };
                line("cache", format!("{cache_memory} bytes for answers; {by}"));
            }
            if let Some(path) = warm_file {
                line("warm start", format!("what is asked for most, in {}", path.display()));
            }
            for doubt in doubts {
                line("warning", doubt.clone());
            }
            if let Some(admins) = admins.listed() {
                line("console", format!("for {admins}"));
            }
        }
    }
    Ok(plan)
}

fn put(plan: &mut String, what: &str, how: &str) {
    writeln!(plan, "{what:<12}{how}").expect("a string takes all");
}

/// Which rules are of a statement that this one asks, and what that comes to, as far as its text tells.
#[must_use]
pub fn met(options: &Options, statement: &str, asks: Asks<'_>) -> String {
    let rules = options.proxy.as_ref().map_or(&[][..], |proxy| &proxy.rules);
    let remembers = options.proxy.as_ref().is_some_and(|proxy| proxy.cache_memory > 0);
    let Met {
        text,
        rules,
        of_others,
        said,
        waits,
        remembered,
    } = Met::of(statement, asks, rules);
    let mut told = String::new();
    put(&mut told, "statement", &text);
    match rules.is_empty() {
        true => put(&mut told, "", "no rule is of it"),
        false => put(&mut told, "", &format!("of it: {}", rules.join(", "))),
    }
    if !of_others.is_empty() {
        let others = of_others.join(", ");
        put(&mut told, "", &format!("of it where others ask it: {others}"));
    }
    if !said.is_empty() {
        put(&mut told, "", &format!("such statements {}", said.join(", ")));
    }
    if let Some(waits) = waits {
        let how = match waits.is_zero() {
            true => "goes alone".to_owned(),
            false => format!("waits {waits:?} for company"),
        };
        put(&mut told, "", &format!("by its own hint it {how}"));
    }
    match remembered {
        Ok(_) if !remembers => put(&mut told, "", "not remembered: cache_memory is 0"),
        Ok(windows) => put(
            &mut told,
            "",
            &format!("remembered {windows}, if the catalog has nothing against it"),
        ),
        Err(why) => put(&mut told, "", &format!("not remembered: {why}")),
    }
    told
}

/// What is said of one user.
fn said_of(options: &UserOptions) -> String {
    let UserOptions {
        certificate,
        max_clients,
        shares,
    } = options;
    let said = [
        max_clients.map(|most| format!("at most {most} clients")),
        shares.map(|shares| if shares { "shares" } else { "shares nothing" }.to_owned()),
        certificate
            .as_ref()
            .map(|(path, _)| format!("proven to the databases by {}", path.display())),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// By which options nothing travels together, or little.
fn shares(limits: &Limits) -> Option<String> {
    let nothing = limits
        .shares_nothing_by()
        .map(|option| format!("shares nothing: {option}"));
    nothing.or_else(|| {
        let option = limits.shares_little_by()?;
        Some(format!("shares nothing of a client that has written: {option}"))
    })
}

/// Where it is, and how connections to it are shared.
fn behind(settings: &UpstreamSettings, name: &str) -> String {
    let hosts: Vec<String> = settings.config.hosts.iter().map(ToString::to_string).collect();
    let database = settings.config.dbname.as_deref().unwrap_or(name);
    let Limits {
        mode,
        max_connections,
        max_waiting,
        max_wait,
        ..
    } = &settings.limits;
    let mode = match mode {
        PoolMode::Transaction => "a transaction",
        PoolMode::Session => "a session",
    };
    let further = [
        shares(&settings.limits),
        settings.max_clients.map(|most| format!("at most {most} clients")),
        settings
            .is_service
            .then(|| "all of them as the user of the URL".to_owned()),
        settings
            .auth_query
            .as_ref()
            .map(|_| "what is stored of passwords is asked there".to_owned()),
    ];
    let further: String = further.into_iter().flatten().map(|more| format!("; {more}")).collect();
    format!(
        "{database} at {}; for each user at most {max_connections} connections, lent for {mode}, and {max_waiting} who wait, for {max_wait:?} \
         at most{further}",
        hosts.join(", ")
    )
}
