//! Rules: the lines of a `pg_hba.conf`, and which of them meets an applicant.
//!
//! Promises: a line means what it means to PostgreSQL, or is an error that names it. Source of the format: PostgreSQL's manual, chapter
//! "The pg_hba.conf File".

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use forebay_pg_wire::gate::{Applicant, Origin, Replication};
use ipnet::IpNet;

use crate::config::Options;

/// Why a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("rules {}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A line cannot be understood, or asks for what there is not: correct or remove it.
    #[error("rules {}, line {line}: {why}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// It asks for what nobody could show.
    #[error("rules {}: {why}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
}

/// All lines, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    from: From,
    databases: Vec<Name>,
    users: Vec<Name>,
    pub(super) method: Method,
    pub(super) certified: Certified,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum From {
    Socket,
    Network(Encryption, Option<IpNet>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    Any,
    Tls,
    None,
    /// By Kerberos, which nobody has here.
    Gss,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    All,
    /// Of databases: the one that is called as the user.
    SameUser,
    /// Of databases: none, but replication of the whole server.
    Replication,
    Is(String),
}

/// What a client must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Trust,
    Reject,
    /// The password, by what SCRAM makes of it or in a way that the database behind can check.
    Scram,
    /// The password, in any way.
    Password,
}

/// What a client's certificate must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certified {
    No,
    /// One that a trusted authority has signed.
    ByAnyone,
    /// One whose common name is the user's.
    AsTheUser,
}

/// A word of a line; one that begins with a quote is always a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    is_quoted: bool,
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn load(path: &Path) -> Result<Self, RulesError> {
        let text = std::fs::read_to_string(path).map_err(|error| RulesError::File {
            path: path.to_owned(),
            error,
        })?;
        Self::read(&text).map_err(|(line, why)| RulesError::Line {
            path: path.to_owned(),
            line,
            why,
        })
    }

    /// Reads a file, and sees that what its rules ask for can be shown with these options.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn load_for(path: &Path, options: &Options) -> Result<Self, RulesError> {
        let rules = Self::load(path)?;
        let why = if rules.ask_for_passwords() && options.users.is_none() && options.proxy.is_none() {
            "a rule asks for a password, and there are no users (--users)"
        } else if rules.ask_for_certificates() && options.tls.as_ref().is_none_or(|tls| tls.client_ca.is_none()) {
            "a rule asks for a certificate, and no authority is trusted with one (--tls-client-ca)"
        } else {
            return Ok(rules);
        };
        Err(RulesError::Unusable {
            path: path.to_owned(),
            why,
        })
    }

    /// The rules of a text, or which line is wrong and why.
    pub(super) fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut rules = Vec::new();
        for (number, line) in lines(text) {
            let fields = fields(&line).map_err(|why| (number, why))?;
            if !fields.is_empty() {
                rules.push(Rule::of(&fields).map_err(|why| (number, why))?);
            }
        }
        Ok(Self(rules))
    }

    /// The first that meets the applicant.
    pub(super) fn of(&self, applicant: Applicant<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.meets(applicant))
    }

    /// Whether a rule asks for a password.
    fn ask_for_passwords(&self) -> bool {
        let mut methods = self.0.iter().map(|rule| rule.method);
        methods.any(|method| matches!(method, Method::Scram | Method::Password))
    }

    /// Whether a rule asks for a certificate.
    fn ask_for_certificates(&self) -> bool {
        self.0.iter().any(|rule| rule.certified != Certified::No)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Lines with their numbers; one that ends in a backslash goes on in the next.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let (line, more) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match whole.last_mut().filter(|_| goes_on) {
            Some((_, begun)) => begun.push_str(line),
            None => whole.push((at + 1, line.to_owned())),
        }
        goes_on = more;
    }
    whole
}

/// Fields, each of words: a comma right behind a word goes on with its field, any other is a blank.
fn fields(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut fields: Vec<Vec<Word>> = Vec::new();
    let mut rest = line.chars().peekable();
    let mut goes_on = false;
    loop {
        while rest.next_if(|next| is_blank(*next) || *next == ',').is_some() {}
        if rest.peek().is_none_or(|next| *next == '#') {
            return Ok(fields);
        }
        let mut word = Word {
            text: String::new(),
            is_quoted: false,
        };
        let mut in_quotes = false;
        while let Some(next) = rest.next_if(|next| in_quotes || !(is_blank(*next) || matches!(next, ',' | '#'))) {
            match next {
                '"' if in_quotes && rest.next_if_eq(&'"').is_some() => word.text.push('"'),
                '"' => {
                    word.is_quoted |= word.text.is_empty();
                    in_quotes = !in_quotes;
                }
                next => word.text.push(next),
            }
        }
        if in_quotes {
            return Err("a quote is not closed".to_owned());
        }
        match fields.last_mut().filter(|_| goes_on) {
            Some(field) => field.push(word),
            None => fields.push(vec![word]),
        }
        goes_on = rest.next_if_eq(&',').is_some();
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r')
}

impl Rule {
    fn of(fields: &[Vec<Word>]) -> Result<Self, String> {
        let mut fields = fields.iter();
        let mut next = |what: &str| fields.next().ok_or_else(|| format!("the {what} is missing"));
        let kind = one(next("type")?, "type")?;
        let databases = names(next("database")?, |text| match text {
            "sameuser" => Ok(Name::SameUser),
            "replication" => Ok(Name::Replication),
            "samerole" | "samegroup" => Err(format!("{text} is not supported: the proxy knows no groups")),
            name => Ok(Name::Is(name.to_owned())),
        })?;
        let users = names(next("user")?, |text| Ok(Name::Is(text.to_owned())))?;
        let encryption = match kind.text.as_str() {
            "local" => None,
            "host" | "hostnogssenc" => Some(Encryption::Any),
            "hostssl" => Some(Encryption::Tls),
            "hostnossl" => Some(Encryption::None),
            "hostgssenc" => Some(Encryption::Gss),
            other => return Err(format!("\"{other}\" is no type of connection")),
        };
        let from = match encryption {
            None => From::Socket,
            Some(encryption) => {
                let address = one(next("address")?, "address")?;
                let network = match address.text.as_str() {
                    "all" if !address.is_quoted => None,
                    text if text.contains('/') => Some(
                        text.parse()
                            .map_err(|_| format!("\"{text}\" is no address with the length of its prefix"))?,
                    ),
                    "samehost" | "samenet" => {
                        return Err(format!(
                            "{} is not supported: say which addresses these are",
                            address.text
                        ));
                    }
                    text => {
                        let address: IpAddr = text
                            .parse()
                            .map_err(|_| format!("\"{text}\" is no address; names of hosts are not looked up"))?;
                        let mask = one(next("mask")?, "mask")?;
                        let network = mask
                            .text
                            .parse()
                            .ok()
                            .and_then(|mask| IpNet::with_netmask(address, mask).ok());
                        Some(network.ok_or_else(|| format!("\"{}\" is no mask of {address}", mask.text))?)
                    }
                };
                From::Network(encryption, network)
            }
        };
        let method = one(next("method")?, "method")?;
        let (method, mut certified) = match method.text.as_str() {
            "trust" => (Method::Trust, Certified::No),
            "reject" => (Method::Reject, Certified::No),
            "scram-sha-256" => (Method::Scram, Certified::No),
            "md5" | "password" => (Method::Password, Certified::No),
            "cert" if encryption == Some(Encryption::Tls) => (Method::Trust, Certified::AsTheUser),
            "cert" => return Err("cert is for hostssl only".to_owned()),
            other => return Err(format!("method \"{other}\" is not supported")),
        };
        for option in fields {
            let option = one(option, "option")?;
            let (name, value) = option.text.split_once('=').unwrap_or((&option.text, ""));
            match (name, value) {
                ("clientcert", "verify-ca" | "verify-full") if encryption != Some(Encryption::Tls) => {
                    return Err("clientcert is for hostssl only".to_owned());
                }
                ("clientcert", "verify-full") => certified = Certified::AsTheUser,
                ("clientcert", "verify-ca") if certified == Certified::No => certified = Certified::ByAnyone,
                ("clientcert", "verify-ca") => return Err("cert verifies in full".to_owned()),
                _ => return Err(format!("option \"{}\" is not supported", option.text)),
            }
        }
        Ok(Self {
            from,
            databases,
            users,
            method,
            certified,
        })
    }

    fn meets(&self, applicant: Applicant<'_>) -> bool {
        let is_from = match (&self.from, applicant.origin) {
            (From::Socket, Origin::Socket) => true,
            (From::Network(encryption, network), Origin::Address(address)) => {
                let is_encrypted_so = match encryption {
                    Encryption::Any => true,
                    Encryption::Tls => applicant.is_over_tls,
                    Encryption::None => !applicant.is_over_tls,
                    Encryption::Gss => false,
                };
                // One of IPv4 that came by a socket of both.
                let address = address.to_canonical();
                is_encrypted_so && network.is_none_or(|network| network.contains(&address))
            }
            _ => false,
        };
        let is_database = |name: &Name| match (applicant.replication, name) {
            (Replication::Physical, name) => *name == Name::Replication,
            (_, Name::All) => true,
            (_, Name::SameUser) => applicant.database == applicant.user,
            (_, Name::Replication) => false,
            (_, Name::Is(name)) => name == applicant.database,
        };
        let is_user = |name: &Name| match name {
            Name::All => true,
            Name::Is(name) => name == applicant.user,
            Name::SameUser | Name::Replication => false,
        };
        is_from && self.databases.iter().any(is_database) && self.users.iter().any(is_user)
    }
}

/// The one word of a field that is no list.
fn one<'a>(field: &'a [Word], what: &str) -> Result<&'a Word, String> {
    match field {
        [word] => Ok(word),
        _ => Err(format!("the {what} is one, not a list")),
    }
}

/// `special` says what a word means that is not in quotes, and not for all.
fn names(field: &[Word], special: impl Fn(&str) -> Result<Name, String>) -> Result<Vec<Name>, String> {
    let name = |word: &Word| match word.text.as_str() {
        text if word.is_quoted => Ok(Name::Is(text.to_owned())),
        "all" => Ok(Name::All),
        text if text.starts_with('@') => Err(format!("{text}: files of names are not read; write the names here")),
        text if text.starts_with('/') => Err(format!("{text}: patterns are not supported; write the names")),
        text if text.starts_with('+') => Err(format!("{text}: the proxy knows no groups; write the names")),
        text => special(text),
    };
    field.iter().map(name).collect()
}
