//! Databases: which server is behind the name that a client gives.
//!
//! Promises: a name leads to the database that was given for it, or to what stands for all other names, or nowhere. What is given may
//! change while there are clients. Who is let in is for the one behind to say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_pg_link::ConnectError;
use forebay_pg_link::config::Host;
use forebay_pg_wire::error::{Severity, WireError};
use forebay_pg_wire::gate::{Applicant, Demand, Gate, Verdict};
use forebay_pg_wire::verifier::StoredPassword;
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinSet;

use crate::cap::Cap;
use crate::counters::Tally;
use crate::figures::{Figures, Tops};
use crate::hearing::Heard;
use crate::memory::Memory;
use crate::pool::{Pool, Rule, Stats};
use crate::upstream::{Upstream, UpstreamOptions};

/// `ERRCODE_INVALID_CATALOG_NAME`.
const NO_SUCH_DATABASE: &str = "3D000";

/// All databases that clients may name.
#[derive(Debug)]
pub struct Databases {
    known: RwLock<Known>,
    tallies: Mutex<Tallies>,
    tops: Arc<Tops>,
}

/// Of what pools know of statements.
#[derive(Debug, Default)]
struct Tallies {
    trips: Tally,
    joined: Tally,
    /// Of rules that are or were: how often each was asked and remembered, and how long databases were at it.
    rules: BTreeMap<String, [Tally; 3]>,
}

/// What is counted by names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByName {
    /// Of each rule.
    pub rules: Vec<(String, Figures)>,
    /// Of those who ask, as comments say it, and of all others.
    pub callers: (Vec<(Caller, Figures)>, Figures),
    /// Of statements, by their texts without literals, cut where they are long, and of all others.
    pub statements: (Vec<(String, Figures)>, Figures),
}

/// Where in a program a statement is asked, as its comment says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// At most a hundred characters.
    pub file: String,
    /// Digits, or nothing.
    pub line: String,
}

/// How statements that were shared have travelled, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Travelled {
    /// On how many trips to servers.
    pub trips: u64,
    /// How many had the answer to what others had asked already.
    pub joined: u64,
}

#[derive(Debug, Default)]
struct Known {
    named: HashMap<String, Arc<Upstream>>,
    other: Option<Arc<Upstream>>,
    /// Nobody finds them any more, and some may still be there.
    left: Vec<Arc<Upstream>>,
    caps: Caps,
}

/// How many connections each server is given, by its hosts.
#[derive(Debug, Default)]
struct Caps {
    max: Option<usize>,
    by_hosts: Vec<(Vec<Host>, Arc<Cap>)>,
}

impl Caps {
    fn of(&mut self, options: &UpstreamOptions) -> Arc<Cap> {
        let hosts = &options.config.hosts;
        if let Some((_, cap)) = self.by_hosts.iter().find(|(known, _)| known == hosts) {
            return Arc::clone(cap);
        }
        let cap = Arc::new(Cap::new(self.max));
        self.by_hosts.push((hosts.clone(), Arc::clone(&cap)));
        cap
    }

    /// From now on so many each. Of servers that nobody leads to any more none is kept.
    fn change(&mut self, max: Option<usize>) {
        self.max = max;
        self.by_hosts.retain(|(_, cap)| Arc::strong_count(cap) > 1);
        for (_, cap) in &self.by_hosts {
            cap.resize(max);
        }
    }
}

impl Databases {
    /// These, and what all other names lead to; each server is given so many connections, of all users and databases. Connects to nothing yet.
    ///
    /// # Errors
    /// The first that [cannot be used](UpstreamOptions::check).
    pub fn new(
        named: impl IntoIterator<Item = (String, UpstreamOptions)>,
        other: Option<UpstreamOptions>,
        max_connections: Option<usize>,
    ) -> Result<Self, ConnectError> {
        let mut caps = Caps {
            max: max_connections,
            by_hosts: Vec::new(),
        };
        let tops = Arc::<Tops>::default();
        let mut upstream = |options| {
            let cap = caps.of(&options);
            Upstream::new(options, cap, Arc::clone(&tops)).map(Arc::new)
        };
        let named = named.into_iter();
        let named = named.map(|(name, options)| Ok((name, upstream(options)?)));
        let named = named.collect::<Result<_, ConnectError>>()?;
        let other = other.map(&mut upstream).transpose()?;
        Ok(Self {
            known: RwLock::new(Known {
                named,
                other,
                left: Vec::new(),
                caps,
            }),
            tallies: Mutex::default(),
            tops,
        })
    }

    /// From now on these. Who is at one that stays stays there, wherever it is now; who is at one that goes may go on until he leaves.
    /// For how long a client has a connection is as it was when the client came.
    ///
    /// # Errors
    /// The first that [cannot be used](UpstreamOptions::check). Then all stays as it was.
    pub fn change(
        &self,
        named: impl IntoIterator<Item = (String, UpstreamOptions)>,
        other: Option<UpstreamOptions>,
        max_connections: Option<usize>,
    ) -> Result<(), ConnectError> {
        let named: Vec<(String, UpstreamOptions)> = named.into_iter().collect();
        named.iter().try_for_each(|(_, options)| options.check())?;
        other.as_ref().map_or(Ok(()), UpstreamOptions::check)?;
        let mut known = self.known.write();
        known.caps.change(max_connections);
        let mut before = std::mem::take(&mut known.named);
        for (name, options) in named {
            let cap = known.caps.of(&options);
            if let Some(upstream) = changed(before.remove(&name), options, &cap, &self.tops) {
                known.named.insert(name, upstream);
            }
        }
        let other_before = known.other.take();
        let left = match other {
            Some(options) => {
                let cap = known.caps.of(&options);
                known.other = changed(other_before, options, &cap, &self.tops);
                None
            }
            None => other_before,
        };
        known.left.extend(before.into_values().chain(left));
        Ok(())
    }

    /// What the name leads to.
    pub(crate) fn of(&self, name: &str) -> Result<Arc<Upstream>, WireError> {
        let known = self.known.read();
        let found = known.named.get(name).or(known.other.as_ref());
        found.cloned().ok_or_else(|| {
            // As PostgreSQL says it.
            WireError::fatal(NO_SUCH_DATABASE, format!("database \"{name}\" does not exist"))
        })
    }

    fn all(&self) -> Vec<Arc<Upstream>> {
        let known = self.known.read();
        let all = known.named.values().chain(&known.other).chain(&known.left);
        all.cloned().collect()
    }

    /// All pools, with what clients call their databases.
    pub(crate) fn pools(&self) -> Vec<(String, Arc<Pool>)> {
        let mut pools: Vec<_> = self.all().iter().flat_map(|upstream| upstream.named_pools()).collect();
        pools.sort_by(|(one, pool), (other, another)| (one, pool.user()).cmp(&(other, another.user())));
        pools
    }

    /// Whether it is one that was named, or somebody is, or was of late, at one of this name.
    pub(crate) fn is_in_use(&self, name: &str) -> bool {
        let is_named = self.known.read().named.contains_key(name);
        is_named || self.all().iter().any(|upstream| !upstream.pools(Some(name)).is_empty())
    }

    /// Where answers are remembered.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let all = self.all();
        all.iter()
            .find_map(|upstream| upstream.settings().options.memory.clone())
    }

    /// What is heard of those that are listened to, by what clients call them.
    pub fn heard(&self) -> Vec<(String, Heard)> {
        let listeners = self.all().into_iter().flat_map(|upstream| upstream.listeners());
        let mut heard: Vec<_> = listeners.map(|(name, listener)| (name, listener.counts())).collect();
        heard.sort_by(|(one, _), (other, _)| one.cmp(other));
        heard
    }

    /// All rules.
    pub(crate) fn rules(&self) -> Arc<[Rule]> {
        let all = self.all();
        let first = all.first();
        first.map_or_else(Arc::default, |upstream| Arc::clone(upstream.settings().rules()))
    }

    /// Lends nothing of this database, or of any, from now on; the pools that are to be given all back.
    pub(crate) fn pause(&self, database: Option<&str>) -> Result<Vec<Arc<Pool>>, WireError> {
        let upstreams = self.one_or_all(database)?;
        Ok(upstreams.iter().flat_map(|upstream| upstream.pause(database)).collect())
    }

    /// Lends again.
    pub(crate) fn resume(&self, database: Option<&str>) -> Result<(), WireError> {
        let upstreams = self.one_or_all(database)?;
        upstreams.iter().for_each(|upstream| upstream.resume(database));
        Ok(())
    }

    /// No connection that there is now is lent again.
    pub(crate) fn reconnect(&self, database: Option<&str>) -> Result<(), WireError> {
        let upstreams = self.one_or_all(database)?;
        let pools = upstreams.iter().flat_map(|upstream| upstream.pools(database));
        pools.for_each(|pool| pool.renew());
        Ok(())
    }

    /// What the name leads to, or all without one.
    fn one_or_all(&self, database: Option<&str>) -> Result<Vec<Arc<Upstream>>, WireError> {
        match database {
            // Who asks goes on.
            Some(name) => self
                .of(name)
                .map(|upstream| vec![upstream])
                .map_err(|error| error.with_severity(Severity::Error)),
            None => Ok(self.all()),
        }
    }

    /// Tries whether all can be reached, and has the log say which cannot.
    pub async fn try_all(&self) {
        self.unreachable().await;
    }

    /// What cannot be reached of what clients may name: the names of databases, and none for what has all others.
    pub async fn unreachable(&self) -> Vec<Option<String>> {
        let upstreams: Vec<(Option<String>, Arc<Upstream>)> = {
            let known = self.known.read();
            let named = known
                .named
                .iter()
                .map(|(name, upstream)| (Some(name.clone()), upstream));
            let other = known.other.iter().map(|upstream| (None, upstream));
            let all = named.chain(other);
            all.map(|(name, upstream)| (name, Arc::clone(upstream))).collect()
        };
        let mut asked = JoinSet::new();
        for (name, upstream) in upstreams {
            asked.spawn(async move { (!upstream.is_reachable().await).then_some(name) });
        }
        let mut unreachable: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
        unreachable.sort();
        unreachable
    }

    /// How many server connections there are, and who waits for one.
    pub fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for stats in self.all().iter().map(|upstream| upstream.stats()) {
            all.open += stats.open;
            all.idle += stats.idle;
            all.waiting += stats.waiting;
        }
        all
    }

    /// How statements that were shared have travelled. Of what is forgotten of statements meanwhile the last second may be missing.
    pub fn travelled(&self) -> Travelled {
        let (mut trips, mut joined) = (0, 0);
        for (_, pool) in self.pools() {
            for plan in pool.companies.all().iter().flat_map(|company| company.plans()) {
                let counted = plan.counted();
                trips += counted.trips;
                joined += counted.joined;
            }
        }
        let mut tallies = self.tallies.lock();
        tallies.trips.is_now(trips);
        tallies.joined.is_now(joined);
        Travelled {
            trips: tallies.trips.total(),
            joined: tallies.joined.total(),
        }
    }

    /// What is counted of rules, callers and statements: of these two, of those that are asked for most, at most 200 each.
    pub fn figures(&self) -> ByName {
        let (callers, other_callers) = self.tops.callers.shown();
        let of_caller = |(name, figures): (String, Figures)| {
            let (file, line) = name.rsplit_once(':').unwrap_or((&name, ""));
            let (file, line) = (file.to_owned(), line.to_owned());
            (Caller { file, line }, figures)
        };
        ByName {
            rules: self.of_rules(),
            callers: (callers.into_iter().map(of_caller).collect(), other_callers),
            statements: self.tops.statements.shown(),
        }
    }

    /// What is counted of each rule that there is.
    fn of_rules(&self) -> Vec<(String, Figures)> {
        let rules = self.rules();
        if rules.is_empty() {
            return Vec::new();
        }
        let of_pools: Vec<_> = self
            .pools()
            .into_iter()
            .map(|(_, pool)| pool.companies.rules())
            .collect();
        let mut tallies = self.tallies.lock();
        let of_rule = |rule: &Rule| {
            let mut sums = [0; 3];
            for counts in of_pools.iter().filter_map(|rules| rules.counts(&rule.name)) {
                for (sum, count) in sums
                    .iter_mut()
                    .zip([&counts.met, &counts.remembered, &counts.database_ns])
                {
                    *sum += count.load(Ordering::Relaxed);
                }
            }
            let kept = tallies.rules.entry(rule.name.clone()).or_default();
            kept.iter_mut().zip(sums).for_each(|(tally, sum)| tally.is_now(sum));
            let [asked, remembered, database_ns] = kept.each_ref().map(Tally::total);
            let figures = Figures {
                asked,
                remembered,
                at_database: Duration::from_nanos(database_ns),
            };
            (rule.name.clone(), figures)
        };
        rules.iter().map(of_rule).collect()
    }

    /// Closes connections that have been idle for too long or are too old, makes those that are to be there, and forgets pools that nobody
    /// uses. To be called now and then, in a runtime.
    pub fn sweep(&self) {
        // Before pools are forgotten.
        self.travelled();
        self.of_rules();
        for upstream in self.all() {
            upstream.sweep();
        }
        let mut known = self.known.write();
        if !known.left.is_empty() {
            known.left.retain(|upstream| !upstream.pools(None).is_empty());
        }
    }
}

/// What was there before, as this says now, or one that is new. They could be used a moment ago: what cannot be now stays as it was.
fn changed(
    before: Option<Arc<Upstream>>,
    options: UpstreamOptions,
    cap: &Arc<Cap>,
    tops: &Arc<Tops>,
) -> Option<Arc<Upstream>> {
    let done = match &before {
        None => Upstream::new(options, Arc::clone(cap), Arc::clone(tops)).map(Arc::new),
        Some(upstream) => upstream.change(options, cap).map(|()| Arc::clone(upstream)),
    };
    match done {
        Ok(upstream) => Some(upstream),
        Err(error) => {
            tracing::warn!(%error, "a database stays as it was");
            before
        }
    }
}

impl Gate for Databases {
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand> {
        match self.of(applicant.database) {
            Ok(upstream) => Box::pin(async move { upstream.demand(applicant).await }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn check<'a>(&'a self, applicant: Applicant<'a>, password: &'a str) -> Verdict<'a, ()> {
        match self.of(applicant.database) {
            Ok(upstream) => Box::pin(async move { upstream.check(applicant, password).await }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn disproved<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Option<StoredPassword>> {
        match self.of(applicant.database) {
            Ok(upstream) => Box::pin(async move { upstream.disproved(applicant).await }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_what_is_not_there_goes_on_and_who_wants_in_does_not() {
        let databases = Databases::new([], None, None).unwrap();
        let asked = databases.pause(Some("nowhere")).unwrap_err();
        let wanted = databases.of("nowhere").unwrap_err();
        assert_eq!((asked.sqlstate, asked.severity), (NO_SUCH_DATABASE, Severity::Error));
        assert_eq!((wanted.sqlstate, wanted.severity), (NO_SUCH_DATABASE, Severity::Fatal));
    }
}
