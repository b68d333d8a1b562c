//! A tier in Redis or Valkey, shared by all processes that name the same namespace.
//!
//! Promises: a read is `MGET`s, a put pipelined `SET … PX` (or a script, see `scripts`), a deletion `UNLINK`, a clear `SCAN` and `UNLINK` over the
//! namespace and nothing else; each in requests of about a mebibyte. Whatever the server refuses (`OOM`, `MISCONF`, `LOADING`, `READONLY`) is
//! a failure, never a success. It connects when it is first used and again whenever it must; a server that is down when the
//! program starts keeps nothing from starting. A change that a lost connection left in the server's socket is not carried out
//! after a later one (see `redis_link`).
//!
//! Besides the values (`namespace:key`) it keeps there who fetches a key for all (`namespace;lease:key`), and when tags were invalidated
//! (`namespace;tag:tag`), by a count of such moments (`namespace;moment`). Of tags that nothing carries it keeps that in a table of fixed size, by
//! their hashes (`namespace;forgotten`). What the server has evicted of this is not known, and what it concerns is then not read. A clear forgets
//! leases and tags, too, and what was fetched before it and carries a tag is not read, also if it is put later.
//!
//! Does not know Cluster and Sentinel: it talks to one address. Values in the namespace that others wrote are refused by the
//! envelope, but are read whole first: whoever may write there can make a reader's process read as much as the server stores.

mod scripts;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::{Client, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind, pipe};
use futures_util::future::BoxFuture;

use super::envelope::Opened;
use super::{Abilities, Form, Grant, Kept, Lease, OpenError, Put, Tier, TierError};
use crate::clock::whole_ms;
use crate::redis_link::Link;

/// So many keys in one `MGET` or `UNLINK`: the server serves others in between.
const KEYS_A_COMMAND: usize = 512;
/// A request is sent when it has become so large.
const REQUEST_BYTES: usize = 1 << 20;
/// How many keys the server looks at in one step of a `SCAN`.
const SCAN_STEP: usize = 1000;

/// A tier in Redis or Valkey.
///
/// ```no_run
/// use forebay::cache::tier::{Form, KeyForm, Postcard, redis::RedisTier};
///
/// let form: Form<u64, String> = Form::new("names", KeyForm::display(), Postcard);
/// let tier = RedisTier::open("redis://127.0.0.1:6379/", form)?;
/// # Ok::<(), forebay::cache::tier::OpenError>(())
/// ```
pub struct RedisTier<K, V> {
    link: Link,
    form: Form<K, V>,
    /// The moment that was read last; 0 before the first read. Not the latest of those: a server that lost its count, and whose clock is behind
    /// the one before, begins a lower one. One that is too low costs a miss.
    moment: AtomicU64,
}

impl<K, V> fmt::Debug for RedisTier<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisTier")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

impl<K, V> RedisTier<K, V> {
    /// A tier at this address, `redis://[user:password@]host[:port][/database]` or `unix:///path`. Connects on first use.
    ///
    /// # Errors
    /// When the address or the namespace cannot be used.
    pub fn open(address: &str, form: Form<K, V>) -> Result<Self, OpenError> {
        let client = Client::open(address).map_err(|error| OpenError::Unusable {
            // Not the address itself: it may hold a password.
            problem: format!("the Redis address cannot be used: {error}"),
        })?;
        Self::over(client, form)
    }

    /// A tier over a client of your making, for example one that speaks TLS.
    ///
    /// # Errors
    /// When the namespace cannot be used.
    pub fn over(client: Client, form: Form<K, V>) -> Result<Self, OpenError> {
        form.check()?;
        let link = Link::new(client);
        let moment = AtomicU64::new(0);
        Ok(Self { link, form, moment })
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> RedisTier<K, V> {
    async fn read(&self, keys: &[K]) -> Result<Vec<Option<Kept<V>>>, TierError> {
        let written: Vec<Option<Vec<u8>>> = keys.iter().map(|key| self.form.key(key)).collect();
        let asked: Vec<&Vec<u8>> = written.iter().flatten().collect();
        let moment = self.moment_key();
        // The moment comes first: what is read after it knows of all that was invalidated up to it.
        let mut stored = self.get(&[&[&moment][..], &asked].concat()).await?.into_iter();
        let moment = stored.next().flatten();
        match moment.as_deref().and_then(number) {
            Some(moment) => self.moment.store(moment, Ordering::Relaxed),
            None => self.begin_moments().await,
        }
        let mut open = |key: &Option<Vec<u8>>| {
            let key = key.as_ref()?;
            self.form.open(key, &stored.next().flatten()?)
        };
        let opened = written.iter().map(&mut open).collect();
        self.take_what_holds(opened).await
    }

    /// Throws away what has a tag that was invalidated.
    async fn take_what_holds(&self, opened: Vec<Option<Opened<V>>>) -> Result<Vec<Option<Kept<V>>>, TierError> {
        let tags_of = |opened: &Opened<V>| {
            opened
                .kept
                .details
                .clone()
                .map_or_else(Vec::new, |details| details.tags.clone())
        };
        let mut tags: Vec<Arc<str>> = opened.iter().flatten().flat_map(tags_of).collect();
        tags.sort_unstable();
        tags.dedup();
        let mut moments = HashMap::new();
        if !tags.is_empty() {
            let keys: Vec<Vec<u8>> = tags.iter().map(|tag| self.tag_key(tag)).collect();
            let stored = self.get(&keys.iter().collect::<Vec<_>>()).await?;
            let known = |moment: Option<Vec<u8>>| moment.as_deref().and_then(number);
            moments = tags.into_iter().zip(stored.into_iter().map(known)).collect();
        }
        let holds = |opened: Opened<V>| {
            let tags = tags_of(&opened);
            let since = |tag| {
                moments
                    .get(tag)
                    .copied()
                    .flatten()
                    .is_some_and(|moment| moment <= opened.since)
            };
            tags.iter().all(since).then_some(opened.kept)
        };
        Ok(opened.into_iter().map(|opened| opened.and_then(holds)).collect())
    }

    /// What is stored of these, in their order.
    async fn get(&self, keys: &[&Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, TierError> {
        let mut request = pipe();
        for some in keys.chunks(KEYS_A_COMMAND) {
            request.cmd("MGET").arg(some);
        }
        let answers: Vec<Vec<Option<Vec<u8>>>> = self.ask(&request, "read from Redis").await?;
        let stored: Vec<_> = answers.into_iter().flatten().collect();
        let (asked, answered) = (keys.len(), stored.len());
        let is_whole = asked == answered;
        is_whole
            .then_some(stored)
            .ok_or(TierError::Miscounted { asked, answered })
    }

    async fn write(&self, entries: &[Put<K, V>]) -> Result<(), TierError> {
        let mut request = pipe();
        let (mut commands, mut bytes) = (0, 0);
        for put in entries {
            // A key that cannot be written has never been.
            let Some(key) = self.form.key(&put.key) else { continue };
            commands += 1;
            bytes += key.len();
            let lease_key = self.lease_key(&key);
            match self.form.seal(&key, &put.kept, put.since) {
                Some(value) if !put.keep_for.is_zero() => {
                    bytes += value.len();
                    // A time of nothing is an error to the server, and so is one that it cannot add to now.
                    let keep_for_ms = whole_ms(put.keep_for).clamp(1, 1 << 45);
                    let tags = put.kept.details.as_ref().map_or(&[][..], |details| &details.tags);
                    if put.lease.is_some() || !tags.is_empty() {
                        let lease = put.lease.map_or_else(String::new, |lease| lease.to_string());
                        let tags: Vec<Vec<u8>> = tags.iter().map(|tag| self.tag_key(tag)).collect();
                        request
                            .cmd("EVAL")
                            .arg(scripts::PUT)
                            .arg(4 + tags.len())
                            .arg(&key)
                            .arg(&lease_key)
                            .arg(self.moment_key())
                            .arg(self.forgotten_key())
                            .arg(tags)
                            .arg(lease)
                            .arg(value)
                            .arg(keep_for_ms);
                    } else {
                        request
                            .cmd("SET")
                            .arg(&key)
                            .arg(value)
                            .arg("PX")
                            .arg(keep_for_ms)
                            .ignore();
                        request.cmd("UNLINK").arg(&lease_key).ignore();
                    }
                }
                // What was there before must be gone all the same.
                _ => {
                    request.cmd("UNLINK").arg(&key).arg(&lease_key).ignore();
                }
            }
            if bytes >= REQUEST_BYTES {
                self.send_puts(&request).await?;
                request = pipe();
                (commands, bytes) = (0, 0);
            }
        }
        if commands > 0 {
            self.send_puts(&request).await?;
        }
        Ok(())
    }

    /// Who only writes learns of the moment, too: what it inserts next has tags that others can compare.
    async fn send_puts(&self, request: &Pipeline) -> Result<(), TierError> {
        let moments: Vec<Option<Vec<u8>>> = self.ask(request, "write to Redis").await?;
        if let Some(moment) = moments.iter().flatten().filter_map(|moment| number(moment)).next_back() {
            self.moment.store(moment, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives moments their first number, the server's time, where the server has none. One that is full has none: what carries a tag is then not
    /// kept in it either.
    async fn begin_moments(&self) {
        let mut request = pipe();
        request.cmd("EVAL").arg(scripts::BEGIN).arg(1).arg(self.moment_key());
        match self.ask::<Vec<Vec<u8>>>(&request, "begin a count in Redis").await {
            Ok(moments) => {
                let moment = moments.first().and_then(|moment| number(moment));
                self.moment.store(moment.unwrap_or(0), Ordering::Relaxed);
            }
            Err(error) => tracing::debug!(%error, "tags have no moment"),
        }
    }

    async fn end_tags(&self, tags: &[Arc<str>]) -> Result<(), TierError> {
        let keys: Vec<Vec<u8>> = tags.iter().map(|tag| self.tag_key(tag)).collect();
        let mut request = pipe();
        for keys in keys.chunks(KEYS_A_COMMAND) {
            request
                .cmd("EVAL")
                .arg(scripts::INVALIDATE)
                .arg(2 + keys.len())
                .arg(self.moment_key())
                .arg(self.forgotten_key())
                .arg(keys);
        }
        let moments: Vec<Vec<u8>> = self.ask(&request, "write to Redis").await?;
        // What is fetched from now on knows of this.
        let moment = moments.iter().filter_map(|moment| number(moment)).max();
        self.moment.store(moment.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    async fn lease(&self, keys: &[K], hold_for: Duration, grant: Grant) -> Result<Vec<Lease>, TierError> {
        let hold_for_ms = whole_ms(hold_for).clamp(1, 1 << 45);
        let mut request = pipe();
        let mut asked = Vec::with_capacity(keys.len());
        for key in keys {
            let number = rand::random::<u64>();
            let Some(key) = self.form.key(key) else {
                // It is never stored: everybody fetches it for himself.
                asked.push(None);
                continue;
            };
            let lease_key = self.lease_key(&key);
            match grant {
                Grant::IfNothingIsKept => {
                    request.cmd("EVAL").arg(scripts::LEASE).arg(2).arg(lease_key).arg(key);
                    request.arg(number).arg(hold_for_ms);
                }
                Grant::IfNobodyHasIt => {
                    request
                        .cmd("SET")
                        .arg(lease_key)
                        .arg(number)
                        .arg("PX")
                        .arg(hold_for_ms)
                        .arg("NX");
                }
                Grant::Anyway => {
                    request.cmd("SET").arg(lease_key).arg(number).arg("PX").arg(hold_for_ms);
                }
            }
            asked.push(Some(number));
        }
        let mut answers = Vec::new();
        let expected = asked.iter().flatten().count();
        if expected > 0 {
            answers = self.ask::<Vec<Option<String>>>(&request, "lease from Redis").await?;
        }
        if answers.len() != expected {
            let (asked, answered) = (expected, answers.len());
            return Err(TierError::Miscounted { asked, answered });
        }
        let mut answers = answers.into_iter();
        let lease = |number: Option<u64>| {
            let Some(number) = number else { return Lease::Granted(0) };
            match answers.next().flatten().as_deref() {
                None => Lease::Held,
                Some(scripts::KEPT) => Lease::Kept,
                Some(_) => Lease::Granted(number),
            }
        };
        Ok(asked.into_iter().map(lease).collect())
    }

    async fn give_back(&self, key: &K, lease: u64) -> Result<(), TierError> {
        let Some(key) = self.form.key(key) else { return Ok(()) };
        let mut request = pipe();
        request
            .cmd("EVAL")
            .arg(scripts::END_LEASE)
            .arg(1)
            .arg(self.lease_key(&key))
            .arg(lease)
            .ignore();
        self.send(&request).await
    }

    fn moment_key(&self) -> Vec<u8> {
        format!("{};moment", self.form.namespace()).into_bytes()
    }

    fn forgotten_key(&self) -> Vec<u8> {
        format!("{};forgotten", self.form.namespace()).into_bytes()
    }

    fn tag_key(&self, tag: &str) -> Vec<u8> {
        format!("{};tag:{tag}", self.form.namespace()).into_bytes()
    }

    fn lease_key(&self, key: &[u8]) -> Vec<u8> {
        let name = format!("{};lease:", self.form.namespace());
        [name.as_bytes(), &key[self.form.namespace().len() + 1..]].concat()
    }

    async fn ask<T: FromRedisValue>(&self, request: &Pipeline, what: &'static str) -> Result<T, TierError> {
        let asked = self.link.run(async |connection| request.query_async(connection).await);
        asked.await.map_err(failed(what))
    }

    async fn send(&self, request: &Pipeline) -> Result<(), TierError> {
        self.ask(request, "write to Redis").await
    }

    async fn delete(&self, keys: &[Vec<u8>]) -> Result<(), TierError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut request = pipe();
        for some in keys.chunks(KEYS_A_COMMAND) {
            let leases: Vec<Vec<u8>> = some.iter().map(|key| self.lease_key(key)).collect();
            request.cmd("UNLINK").arg(some).arg(leases).ignore();
        }
        self.send(&request).await
    }

    /// Leases and tags go first: what is fetched now is not put behind this.
    async fn delete_all(&self) -> Result<(), TierError> {
        self.end_all_tags().await?;
        for kind in [";[lt]", ":"] {
            self.delete_matching(&format!("{}{kind}*", self.form.namespace()))
                .await?;
        }
        Ok(())
    }

    /// All tags that have no key of their own count from now on.
    async fn end_all_tags(&self) -> Result<(), TierError> {
        let mut request = pipe();
        request.cmd("EVAL").arg(scripts::CLEAR).arg(2);
        request.arg(self.moment_key()).arg(self.forgotten_key());
        let asked = self.link.run(async |connection| request.query_async(connection).await);
        let moments: RedisResult<Vec<Option<Vec<u8>>>> = asked.await;
        match moments {
            Ok(moments) => {
                let moment = moments.iter().flatten().find_map(|moment| number(moment));
                self.moment.store(moment.unwrap_or(0), Ordering::Relaxed);
                Ok(())
            }
            // Nor does it take what carries a tag.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => Ok(()),
            Err(error) => Err(failed("write to Redis")(error)),
        }
    }

    async fn delete_matching(&self, pattern: &str) -> Result<(), TierError> {
        let mut cursor = 0_u64;
        loop {
            let mut step = pipe();
            step.cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(pattern)
                .arg("COUNT")
                .arg(SCAN_STEP);
            let answer: Vec<(u64, Vec<Vec<u8>>)> = self
                .link
                .run(async |connection| step.query_async(connection).await)
                .await
                .map_err(failed("list the namespace in Redis"))?;
            let [(next, keys)] = answer.as_slice() else {
                let (asked, answered) = (1, answer.len());
                return Err(TierError::Miscounted { asked, answered });
            };
            if !keys.is_empty() {
                let mut request = pipe();
                request.cmd("UNLINK").arg(keys).ignore();
                self.send(&request).await?;
            }
            cursor = *next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Tier<K, V> for RedisTier<K, V> {
    fn name(&self) -> &str {
        "redis"
    }

    fn get_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Result<Vec<Option<Kept<V>>>, TierError>> {
        Box::pin(self.read(keys))
    }

    fn put_many<'a>(&'a self, entries: &'a [Put<K, V>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.write(entries))
    }

    fn delete_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(async move {
            let written: Vec<Vec<u8>> = keys.iter().filter_map(|key| self.form.key(key)).collect();
            self.delete(&written).await
        })
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.delete_all())
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            tags: true,
            leases: true,
            shared: true,
        }
    }

    fn moment(&self) -> u64 {
        self.moment.load(Ordering::Relaxed)
    }

    fn invalidate_tags<'a>(&'a self, tags: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.end_tags(tags))
    }

    fn lease_many<'a>(
        &'a self,
        keys: &'a [K],
        hold_for: Duration,
        grant: Grant,
    ) -> BoxFuture<'a, Result<Vec<Lease>, TierError>> {
        Box::pin(self.lease(keys, hold_for, grant))
    }

    fn end_lease<'a>(&'a self, key: &'a K, lease: u64) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.give_back(key, lease))
    }

    fn undecodable(&self) -> u64 {
        self.form.undecodable()
    }
}

/// A number as Redis keeps it.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn failed(what: &'static str) -> impl FnOnce(RedisError) -> TierError {
    move |error| TierError::failed(what, error)
}
