//! Listen: the task that has two connections to a database, one for the stream and one to ask.
//!
//! Promises: where either is lost, or tells what it should not, both are made anew, after a wait that grows. Nothing that goes wrong ends it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_pg_link::{ConnectError, Connector, Link, LinkError, ServerError, Tag};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::catalog;
use super::covered::Publishing;
use super::known::Hearing;
use super::pgoutput::{self, Column, Position, Told, Tuple};
use super::snapshot::Snapshot;
use crate::memory::does::Does;
use crate::memory::key::Key;

/// What the proxy's own publication is called.
const PUBLICATION: &str = "forebay";
/// The catalog is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The log's end is asked for so often in the least time that the stream may be behind, and no more often than [`TICK_MIN`].
const TICKS: u32 = 4;
const TICK_MIN: Duration = Duration::from_millis(20);
/// It is tried again after this time, twice as long each time, and no longer than [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// To connect, and to make a slot, which waits for transactions to end.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
const SLOT_WITHIN: Duration = Duration::from_secs(600);
/// What is asked is answered within this time, or it is taken for lost.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// A stream that is behind and says nothing for so long is lost: a server that decodes a long transaction speaks in half of its
/// `wal_sender_timeout`, which is a minute.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// A longer row of a table is not held; it is a change of anything.
const ROW_BYTES_MAX: usize = 1 << 20;

/// Why the stream is not heard any more.
#[derive(Debug, thiserror::Error)]
enum Deaf {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("{0}")]
    Server(Box<ServerError>),
    #[error("it has told something that was not asked for")]
    Malformed,
    #[error("it does not answer")]
    Silent,
    #[error("the server is a standby, which does not know what is committed on its primary")]
    Standby,
    #[error("both connections are not of one server")]
    Apart,
    #[error("more commits than can be kept are seen by nobody")]
    TooMany,
    #[error("it holds back {held} bytes of the database's log, and may {max}")]
    HoldsBack { held: u64, max: u64 },
    #[error("there is no publication \"{0}\"")]
    NoPublication(String),
    #[error(
        "the publication \"{0}\" does not tell all: it has to publish insert, update, delete and truncate, and parts of tables by their own names"
    )]
    PartialPublication(String),
    #[error("the publication \"{0}\" cannot be made, which takes CREATE on the database: {1}")]
    NotMade(String, Box<ServerError>),
    #[error("wal_level is not \"logical\"")]
    WalLevel,
}

impl From<pgoutput::Malformed> for Deaf {
    fn from(_: pgoutput::Malformed) -> Self {
        Self::Malformed
    }
}

/// Listens for ever.
pub(super) async fn listen(hearing: Arc<Hearing>, connector: Connector) {
    let mut wait = RETRY_MIN;
    loop {
        let begun = Instant::now();
        let Err(why) = attempt(&hearing, &connector).await;
        hearing.is_away(&why.to_string());
        if begun.elapsed() > RETRY_MAX {
            wait = RETRY_MIN;
        }
        sleep(wait).await;
        wait = (2 * wait).min(RETRY_MAX);
    }
}

/// Connects, and listens until something goes wrong.
async fn attempt(hearing: &Hearing, connector: &Connector) -> Result<std::convert::Infallible, Deaf> {
    let named = |settings: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = [("application_name", "forebay stream")];
        let all = own.iter().chain(settings);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let connected = |settings: &[(&str, &str)]| {
        let connector = connector.beginning(&named(settings), None);
        async move {
            timeout(CONNECTED_WITHIN, connector.connect())
                .await
                .map_err(|_| Deaf::Silent)?
                .map_err(Deaf::from)
        }
    };
    let mut asking = connected(&[]).await?;
    let server = server_of(&ask(&mut asking, catalog::ASK_SERVER).await?)?;
    ask(&mut asking, catalog::BEGIN).await?;
    let rows = ask(&mut asking, "SHOW wal_level").await?;
    let [level] = one(&rows)?;
    if level != "logical" {
        return Err(Deaf::WalLevel);
    }
    let publication = Publication::of(hearing);
    publication.make(&mut asking).await?;

    let mut stream = connected(&[("replication", "database")]).await?;
    if server_of(&ask(&mut stream, catalog::ASK_SERVER).await?)? != server {
        return Err(Deaf::Apart);
    }
    let slot = format!("forebay_{:016x}", rand::random::<u64>());
    ask_within(SLOT_WITHIN, &mut stream, &catalog::make_slot(&slot)).await?;
    stream.discard_rows_beyond(ROW_BYTES_MAX);
    let version = version_of(&asking);
    put_query(&mut stream, &catalog::start(&slot, publication.name, version))?;
    // From here on the stream tells all that is committed.
    hearing.begins(server);

    let nudged = Notify::new();
    let watching = watch(hearing, &mut asking, &slot, &publication, &nudged);
    let hearing_it = hear(hearing, &mut stream, &nudged);
    tokio::select! {
        ended = watching => ended,
        ended = hearing_it => ended,
    }
}

fn version_of(link: &Link) -> u32 {
    link.parameter("server_version").map_or(0, version_number)
}

/// The publication, and whose it is.
struct Publication<'a> {
    name: &'a str,
    is_own: bool,
}

impl<'a> Publication<'a> {
    fn of(hearing: &'a Hearing) -> Self {
        let given = hearing.listening.publication.as_deref();
        Self {
            name: given.unwrap_or(PUBLICATION),
            is_own: given.is_none(),
        }
    }

    /// Makes it, if it is to be made and is not there.
    async fn make(&self, asking: &mut Link) -> Result<(), Deaf> {
        let (_, is_whole) = tables_of(&ask(asking, &catalog::ask_tables(self.name, &[])).await?)?;
        match (is_whole, self.is_own) {
            (Some(true), _) => Ok(()),
            (Some(false), _) => Err(Deaf::PartialPublication(self.name.to_owned())),
            (None, false) => Err(Deaf::NoPublication(self.name.to_owned())),
            // Where another proxy makes it at the same time, it is there at the next attempt.
            (None, true) => match ask(asking, &catalog::make(self.name)).await {
                Err(Deaf::Server(why)) => Err(Deaf::NotMade(self.name.to_owned(), why)),
                done => done.map(drop),
            },
        }
    }
}

/// A table of a name that is wanted.
struct Table {
    name: Arc<str>,
    /// Another one whenever it was published anew; empty where it is not.
    published: String,
    has_identity: bool,
    may_be_published: bool,
    whole_name: String,
    key: Option<Key>,
}

impl Table {
    fn is_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// Why it is not published, in words that follow its name; none where it is.
    fn why_not_published(&self, publication: &Publication<'_>) -> Option<String> {
        if self.is_published() {
            return None;
        }
        Some(match (publication.is_own, self.has_identity, self.may_be_published) {
            (false, ..) => format!("is not published by \"{}\", or not all of its rows", publication.name),
            (true, false, _) => "is not published, as it has no replica identity: no primary key, nor another one that it was told to have".to_owned(),
            (true, true, false) => "is not published, as the URL's user may not: he has to own it, or to be a member of the role that does".to_owned(),
            (true, true, true) => "is not published yet".to_owned(),
        })
    }
}

/// The tables that were [asked for](catalog::ask_tables), and whether the publication tells all; none where there is none.
fn tables_of(rows: &[Vec<String>]) -> Result<(Vec<Table>, Option<bool>), Deaf> {
    let (mut tables, mut is_whole) = (Vec::new(), None);
    for row in rows {
        let [name, published, identity, own, whole_name, key] = &row[..] else {
            return Err(Deaf::Malformed);
        };
        if name.is_empty() {
            is_whole = Some(published == "true");
            continue;
        }
        tables.push(Table {
            name: name.as_str().into(),
            published: published.clone(),
            has_identity: identity == "true",
            may_be_published: own == "true",
            whole_name: whole_name.clone(),
            key: Key::parse(key),
        });
    }
    Ok((tables, is_whole))
}

/// Asks for the end of the log many times a second, and looks at the catalog once.
async fn watch(
    hearing: &Hearing,
    asking: &mut Link,
    slot: &str,
    publication: &Publication<'_>,
    nudged: &Notify,
) -> Result<std::convert::Infallible, Deaf> {
    let version = version_of(asking);
    let min_lag = hearing.min_lag;
    let mut ticks = interval((min_lag / TICKS).max(TICK_MIN));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut looked, mut mark): (Option<Instant>, Option<String>) = (None, None);
    let mut behind_since: Option<Instant> = None;
    loop {
        ticks.tick().await;
        let moment = Instant::now();
        let (end, snapshot) = tick(asking).await?;
        hearing.seen_by(&snapshot);
        let is_behind = hearing.is_behind();
        hearing.aim(end, moment);
        nudged.notify_one();
        match (is_behind, behind_since) {
            (true, Some(since)) if since.elapsed() > min_lag / 2 => {
                // It may be that there is nothing more to tell, and the log's end is not where a record ends.
                ask(asking, catalog::NUDGE).await?;
                behind_since = None;
            }
            (true, None) => behind_since = Some(moment),
            (true, Some(_)) => {}
            (false, _) => behind_since = None,
        }
        if looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            continue;
        }
        looked = Some(moment);
        let rows = ask(asking, &catalog::ask_mark(version, slot)).await?;
        let [now, held] = one(&rows)?;
        let held: u64 = held.parse().unwrap_or(0);
        let max = hearing.listening.max_wal_bytes;
        if held > max {
            return Err(Deaf::HoldsBack { held, max });
        }
        let (wanted, has_new) = {
            let mut state = hearing.state.write();
            state.held_wal_bytes = held;
            state.looks += 1;
            state.look = moment.elapsed();
            state.covered.wanted()
        };
        let is_another = mark.as_ref().is_some_and(|mark| mark != now);
        if is_another || has_new || mark.is_none() {
            look(hearing, asking, publication, &wanted).await?;
        }
        // Behind the look: who asks from now on is told by what there is now.
        if is_another {
            hearing.catalog_has_changed();
        }
        mark = Some(now.clone());
    }
}

/// Looks which tables are published, and publishes those that are to be.
async fn look(
    hearing: &Hearing,
    asking: &mut Link,
    publication: &Publication<'_>,
    wanted: &[Arc<str>],
) -> Result<(), Deaf> {
    let text = catalog::ask_tables(publication.name, wanted);
    let (mut tables, mut is_whole) = tables_of(&ask(asking, &text).await?)?;
    if publication.is_own {
        let mut is_changed = false;
        for table in &tables {
            let change = match (table.is_published(), table.has_identity) {
                (false, true) if table.may_be_published => catalog::add(publication.name, &table.whole_name),
                // Its rows could not be changed any more.
                (true, false) if table.may_be_published => catalog::remove(publication.name, &table.whole_name),
                _ => continue,
            };
            is_changed = true;
            // Somebody may hold a lock on it, or have done the same; then it is seen the next time.
            match ask(asking, &change).await {
                Ok(_) => tracing::info!(place = %hearing.place, change, "what is published has changed"),
                Err(Deaf::Server(error)) => {
                    tracing::debug!(%error, change, "what is published could not be changed");
                    hearing.state.write().covered.look_again();
                }
                Err(error) => return Err(error),
            }
        }
        if is_changed {
            (tables, is_whole) = tables_of(&ask(asking, &text).await?)?;
        }
    }
    let missing = match is_whole {
        None => Some(Deaf::NoPublication(publication.name.to_owned())),
        Some(false) => Some(Deaf::PartialPublication(publication.name.to_owned())),
        Some(true) => None,
    };
    if let Some(missing) = missing {
        // What has changed since may not have been told.
        hearing.catalog_has_changed();
        return Err(missing);
    }
    // Asked behind it: what is published is told as of now, whatever the snapshot of its statement was.
    let (_, snapshot) = tick(asking).await?;
    // A name is told of where all of its tables are; only one that is alone has a key.
    let mut names: HashMap<Arc<str>, (bool, Publishing)> = HashMap::new();
    let mut lacking: HashMap<Arc<str>, String> = HashMap::new();
    lacking.extend(wanted.iter().map(|name| (Arc::clone(name), "is not there".to_owned())));
    tables.iter().for_each(|table| drop(lacking.remove(&table.name)));
    let why = |table: &Table| Some((Arc::clone(&table.name), table.why_not_published(publication)?));
    lacking.extend(tables.iter().filter_map(why));
    hearing.lacks(lacking);
    tables.sort_by(|one, other| one.whole_name.cmp(&other.whole_name));
    for table in tables {
        let is_published = table.is_published();
        let of_the_first = |key| {
            (
                true,
                Publishing {
                    since: String::new(),
                    key,
                },
            )
        };
        let (is_told, publishing) = names.entry(table.name).or_insert_with(|| of_the_first(table.key));
        *is_told &= is_published;
        publishing.since += &table.published;
    }
    let told = names.into_iter().filter(|(_, (is_told, _))| *is_told);
    hearing.covers(told.map(|(name, (_, publishing))| (name, publishing)), &snapshot);
    Ok(())
}

/// The end of the log, and who sees what.
async fn tick(asking: &mut Link) -> Result<(Position, Snapshot), Deaf> {
    let rows = ask(asking, catalog::ASK_TICK).await?;
    let [end, seen] = one(&rows)?;
    let told = Position::parse(end).zip(Snapshot::parse(seen));
    told.ok_or(Deaf::Malformed)
}

/// Hears what the stream tells.
async fn hear(hearing: &Hearing, stream: &mut Link, nudged: &Notify) -> Result<std::convert::Infallible, Deaf> {
    let mut tables: HashMap<u32, Relation> = HashMap::new();
    let (mut transaction, mut does, mut keys_number) = (0, Does::Nothing, 0);
    let mut has_altered = false;
    // Whether the server is to be told how far it was heard, and asked the same.
    let mut is_due = None;
    let mut told_at = Instant::now();
    loop {
        if let Some(asks) = is_due.take() {
            put_heard(stream, hearing.position(), asks)?;
        }
        let message = tokio::select! {
            biased;
            message = stream.next() => message?,
            () = nudged.notified() => {
                let is_behind = hearing.is_behind();
                if is_behind && told_at.elapsed() > SILENT_FOR {
                    return Err(Deaf::Silent);
                }
                is_due = Some(is_behind);
                continue;
            }
        };
        told_at = Instant::now();
        match message.tag() {
            Tag::COPY_DATA if message.is_discarded() => does.add(Does::Anything),
            Tag::COPY_DATA => match pgoutput::read(message.body())? {
                Told::Alive { until } => {
                    hearing.is_at(until);
                    is_due = Some(false);
                }
                Told::Begun { transaction: number } => {
                    (transaction, does, has_altered) = (number, Does::Nothing, false);
                    let number = hearing.keys_number();
                    if number != keys_number {
                        keys_number = number;
                        tables.values_mut().for_each(|table| table.look(hearing));
                    }
                }
                Told::Committed { end } => {
                    let mut does = std::mem::take(&mut does);
                    let heard = hearing.committed(transaction, &mut does, keys_number);
                    heard.map_err(|_| Deaf::TooMany)?;
                    if has_altered {
                        hearing.catalog_has_changed();
                    }
                    hearing.is_at(end);
                }
                Told::Noted { kind } if kind == catalog::ALTERED => {
                    has_altered = true;
                    does = Does::Anything;
                }
                Told::Named { table, name, columns } => {
                    drop(tables.insert(table, Relation::new(name, &columns, hearing)));
                }
                Told::Changed { table, old, new } => match tables.get(&table) {
                    Some(table) => table.has_changed(old, new, &mut does),
                    None => does = Does::Anything,
                },
                Told::Truncated { tables: numbers } => {
                    for number in numbers.chunks_exact(4) {
                        let number = u32::from_be_bytes(number.try_into().expect("four"));
                        does.add(
                            tables
                                .get(&number)
                                .map_or(Does::Anything, |table| Does::changes(Arc::clone(&table.name))),
                        );
                    }
                }
                Told::Noted { .. } | Told::Nothing => {}
            },
            Tag::COPY_BOTH_RESPONSE | Tag::NOTICE_RESPONSE | Tag::PARAMETER_STATUS => {}
            Tag::ERROR_RESPONSE => {
                let error = ServerError::read(&message).map_err(|_| Deaf::Malformed)?;
                return Err(Deaf::Server(Box::new(error)));
            }
            _ => return Err(Deaf::Malformed),
        }
    }
}

/// A table, as the stream tells of it.
struct Relation {
    name: Arc<str>,
    /// What of it tells a row from others as it was.
    identity: Vec<(Box<str>, u32)>,
    /// All of its columns.
    columns: Vec<Box<str>>,
    by_row: Option<ByRow>,
}

/// By what its rows are told.
struct ByRow {
    key: Arc<Key>,
    /// Where the key's columns are.
    places: Vec<usize>,
}

impl Relation {
    fn new(name: &str, columns: &[Column<'_>], hearing: &Hearing) -> Self {
        let of_identity = columns.iter().filter(|column| column.is_identity);
        let mut relation = Self {
            name: name.into(),
            identity: of_identity.map(|column| (column.name.into(), column.of)).collect(),
            columns: columns.iter().map(|column| column.name.into()).collect(),
            by_row: None,
        };
        relation.look(hearing);
        relation
    }

    /// Looks by what its rows are told now.
    fn look(&mut self, hearing: &Hearing) {
        self.by_row = hearing.key(&self.name).and_then(|key| {
            let place = |(name, of): (&str, u32)| {
                // What is told of a row that it was is told of its identity alone.
                let is_told = self
                    .identity
                    .iter()
                    .any(|(known, known_of)| **known == *name && *known_of == of);
                is_told
                    .then(|| self.columns.iter().position(|known| **known == *name))
                    .flatten()
            };
            let places = key.columns().map(place).collect::<Option<_>>()?;
            Some(ByRow { key, places })
        });
    }

    /// A row of it has changed. What is told of it as it was is told where that is another one.
    fn has_changed(&self, old: Option<Tuple<'_>>, new: Option<Tuple<'_>>, does: &mut Does) {
        if does.may_change_any_row_of(&self.name) {
            return;
        }
        let row = |tuple: Tuple<'_>| {
            let ByRow { key, places } = self.by_row.as_ref()?;
            key.row_of_texts(places.iter().map(|place| tuple.text(*place)))
        };
        for tuple in [old, new].into_iter().flatten() {
            does.add(Does::changes_row(Arc::clone(&self.name), row(tuple)));
        }
    }
}

fn put_query(link: &mut Link, sql: &str) -> Result<(), Deaf> {
    // What has a zero in it has come with the options, or the catalog.
    link.outbox().query(sql).map_err(|_| Deaf::Malformed)
}

fn put_heard(stream: &mut Link, until: Position, asks: bool) -> Result<(), Deaf> {
    let put = stream.outbox().copy_data(&pgoutput::heard(until, asks));
    put.map_err(|_| Deaf::Malformed)
}

/// The server that is asked, which is to be no standby.
fn server_of(rows: &[Vec<String>]) -> Result<Arc<str>, Deaf> {
    let [server, is_standby] = one(rows)?;
    match is_standby.as_str() {
        "false" => Ok(server.as_str().into()),
        _ => Err(Deaf::Standby),
    }
}

/// The one row that was told.
fn one<const N: usize>(rows: &[Vec<String>]) -> Result<&[String; N], Deaf> {
    let row = rows.first().and_then(|row| row.as_slice().try_into().ok());
    row.ok_or(Deaf::Malformed)
}

/// The number of a version that is told as `15.6 (Debian …)`, as `server_version_num` has it.
fn version_number(text: &str) -> u32 {
    let digits = text.split(|letter: char| !letter.is_ascii_digit()).next();
    let major: u32 = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    major.saturating_mul(10_000)
}

/// Asks something of our own; the rows of it, in texts.
async fn ask(link: &mut Link, sql: &str) -> Result<Vec<Vec<String>>, Deaf> {
    ask_within(ANSWERED_WITHIN, link, sql).await
}

async fn ask_within(time: Duration, link: &mut Link, sql: &str) -> Result<Vec<Vec<String>>, Deaf> {
    put_query(link, sql)?;
    let answered = async {
        let (mut rows, mut failed) = (Vec::new(), None);
        loop {
            let message = link.answer().await?;
            match message.tag() {
                Tag::DATA_ROW => {
                    let row = message.row().map_err(|_| Deaf::Malformed)?;
                    let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
                    rows.push(row.map(text).collect());
                }
                Tag::ERROR_RESPONSE => failed = Some(ServerError::read(&message).map_err(|_| Deaf::Malformed)?),
                Tag::READY_FOR_QUERY => return failed.map_or(Ok(rows), |error| Err(Deaf::Server(Box::new(error)))),
                _ => {}
            }
        }
    };
    timeout(time, answered).await.map_err(|_| Deaf::Silent)?
}
