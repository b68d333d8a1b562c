//! A tier in Redis or Valkey, shared by all processes that name the same namespace.
//!
//! Promises: a read is `MGET`s, a put pipelined `SET … PX`, a deletion `UNLINK`, a clear `SCAN` and `UNLINK` over the namespace and
//! nothing else; each in requests of about a mebibyte. Whatever the server refuses (`OOM`, `MISCONF`, `LOADING`, `READONLY`) is
//! a failure, never a success. It connects when it is first used and again whenever it must; a server that is down when the
//! program starts keeps nothing from starting. A change that a lost connection left in the server's socket is not carried out
//! after a later one (see `link`).
//!
//! Does not know Cluster and Sentinel: it talks to one address. Values in the namespace that others wrote are refused by the
//! envelope, but are read whole first: whoever may write there can make a reader's process read as much as the server stores.

mod link;

use std::fmt;

use ::redis::{Client, Pipeline, RedisError, pipe};
use futures_util::future::BoxFuture;

use self::link::Link;
use super::{Form, Kept, OpenError, Put, Tier, TierError};

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
        Ok(Self { link, form })
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> RedisTier<K, V> {
    async fn read(&self, keys: &[K]) -> Result<Vec<Option<Kept<V>>>, TierError> {
        let written: Vec<Option<Vec<u8>>> = keys.iter().map(|key| self.form.key(key)).collect();
        let asked: Vec<&Vec<u8>> = written.iter().flatten().collect();
        let mut request = pipe();
        for some in asked.chunks(KEYS_A_COMMAND) {
            request.cmd("MGET").arg(some);
        }
        let mut stored = Vec::new();
        if !asked.is_empty() {
            let answers: Vec<Vec<Option<Vec<u8>>>> = self
                .link
                .run(async |connection| request.query_async(connection).await)
                .await
                .map_err(failed("read from Redis"))?;
            stored = answers.into_iter().flatten().collect();
        }
        if stored.len() != asked.len() {
            let (asked, answered) = (asked.len(), stored.len());
            return Err(TierError::Miscounted { asked, answered });
        }
        let mut stored = stored.into_iter();
        let mut open = |key: &Option<Vec<u8>>| {
            let key = key.as_ref()?;
            self.form.open(key, &stored.next().flatten()?)
        };
        Ok(written.iter().map(&mut open).collect())
    }

    async fn write(&self, entries: &[Put<K, V>]) -> Result<(), TierError> {
        let mut request = pipe();
        let (mut commands, mut bytes) = (0, 0);
        for put in entries {
            // A key that cannot be written has never been.
            let Some(key) = self.form.key(&put.key) else { continue };
            commands += 1;
            bytes += key.len();
            match self.form.seal(&key, &put.kept) {
                Some(value) if !put.keep_for.is_zero() => {
                    bytes += value.len();
                    let keep_for_ms = u64::try_from(put.keep_for.as_millis()).unwrap_or(u64::MAX);
                    // A time of nothing is an error to the server, and so is one that it cannot add to now.
                    let keep_for_ms = keep_for_ms.clamp(1, 1 << 45);
                    request
                        .cmd("SET")
                        .arg(&key)
                        .arg(value)
                        .arg("PX")
                        .arg(keep_for_ms)
                        .ignore();
                }
                // What was there before must be gone all the same.
                _ => {
                    request.cmd("UNLINK").arg(&key).ignore();
                }
            }
            if bytes >= REQUEST_BYTES {
                self.send(&request).await?;
                request = pipe();
                (commands, bytes) = (0, 0);
            }
        }
        if commands > 0 {
            self.send(&request).await?;
        }
        Ok(())
    }

    async fn send(&self, request: &Pipeline) -> Result<(), TierError> {
        self.link
            .run(async |connection| request.query_async::<()>(connection).await)
            .await
            .map_err(failed("write to Redis"))
    }

    async fn delete(&self, keys: &[Vec<u8>]) -> Result<(), TierError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut request = pipe();
        for some in keys.chunks(KEYS_A_COMMAND) {
            request.cmd("UNLINK").arg(some).ignore();
        }
        self.send(&request).await
    }

    async fn delete_all(&self) -> Result<(), TierError> {
        let pattern = format!("{}:*", self.form.namespace());
        let mut cursor = 0_u64;
        loop {
            let mut step = pipe();
            step.cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
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
            self.delete(keys).await?;
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

    fn undecodable(&self) -> u64 {
        self.form.undecodable()
    }
}

fn failed(what: &'static str) -> impl FnOnce(RedisError) -> TierError {
    move |error| TierError::failed(what, error)
}
