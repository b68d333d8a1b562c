//! Changes travel by Redis' or Valkey's publish and subscribe.
//!
//! Promises: sent is what the server has taken; heard is what it sent on a connection that answers pings. Messages that cannot be read (of
//! another version, or another type of keys) are heard as a change of everything: something has changed, and nobody knows what. A key that cannot be
//! written down is sent as one. A process does not hear itself.
//!
//! Does not know Cluster and Sentinel.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use ::redis::{Client, RedisError, RedisResult, cmd};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use serde::{Serialize, de::DeserializeOwned};

use super::{Backplane, Change, Ear};
use crate::redis_link::Link;
use crate::tier::{OpenError, TierError};

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The layout of messages.
const VERSION: u8 = 1;

/// A backplane by Redis or Valkey. All caches of the same namespace, which must have the same keys, hear one another.
///
/// ```no_run
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, backplane::redis::RedisBackplane};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backplane = RedisBackplane::open("redis://127.0.0.1:6379/", "squares")?;
/// let squares: Cache<u64, u64> = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///     .backplane(backplane, Duration::from_secs(5))
///     .build();
/// # Ok(())
/// # }
/// ```
pub struct RedisBackplane<K> {
    link: Link,
    client: Client,
    channel: String,
    /// By which a process knows its own messages.
    own: u64,
    keys: PhantomData<fn(K)>,
}

impl<K> fmt::Debug for RedisBackplane<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisBackplane")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

impl<K> RedisBackplane<K> {
    /// At this address, `redis://[user:password@]host[:port][/database]` or `unix:///path`. Connects when a cache uses it.
    ///
    /// # Errors
    /// When the address or the namespace cannot be used.
    pub fn open(address: &str, namespace: &str) -> Result<Self, OpenError> {
        let client = Client::open(address).map_err(|error| OpenError::Unusable {
            // Not the address itself: it may hold a password.
            problem: format!("the Redis address cannot be used: {error}"),
        })?;
        Self::over(client, namespace)
    }

    /// Over a client of your making, for example one that speaks TLS.
    ///
    /// # Errors
    /// When the namespace cannot be used.
    pub fn over(client: Client, namespace: &str) -> Result<Self, OpenError> {
        crate::tier::check_namespace(namespace)?;
        Ok(Self {
            link: Link::new(client.clone()),
            client,
            channel: format!("{namespace};changes"),
            own: rand::random(),
            keys: PhantomData,
        })
    }
}

impl<K: Serialize + DeserializeOwned + Send + Sync + 'static> RedisBackplane<K> {
    async fn publish(&self, changes: &[Change<K>]) -> Result<(), TierError> {
        // A key that cannot be written down has changed all the same.
        let message = self
            .written(changes)
            .or_else(|_| self.written(&[Change::All]))
            .map_err(|error| TierError::failed("write a change down", error))?;
        let mut publish = cmd("PUBLISH");
        publish.arg(&self.channel).arg(message);
        let published: RedisResult<i64> = self
            .link
            .run(async |connection| publish.query_async(connection).await)
            .await;
        published.map(drop).map_err(failed("publish to Redis"))
    }

    fn written(&self, changes: &[Change<K>]) -> postcard::Result<Vec<u8>> {
        postcard::to_extend(&(self.own, changes), vec![VERSION])
    }

    async fn hear(&self, ear: &dyn Ear<K>, max_lag: Duration) -> Result<(), TierError> {
        let connecting = async {
            let mut subscription = self.client.get_async_pubsub().await?;
            subscription.subscribe(&self.channel).await?;
            RedisResult::Ok(subscription.split())
        };
        let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
        let timed_out = |after| move |_| TierError::TimedOut { after };
        let (mut sink, mut messages) = connected
            .map_err(timed_out(CONNECT_WITHIN))?
            .map_err(failed("subscribe at Redis"))?;
        ear.began();
        let mut ping = tokio::time::interval((max_lag / 4).min(Duration::from_secs(1)).max(Duration::from_millis(1)));
        ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                message = messages.next() => match message {
                    Some(message) => self.take(message.get_payload_bytes(), ear),
                    None => return Ok(()),
                },
                _ = ping.tick() => {
                    let asked = ear.now();
                    let pong = tokio::time::timeout(max_lag, sink.ping::<::redis::Value>()).await;
                    pong.map_err(timed_out(max_lag))?.map_err(failed("ping Redis"))?;
                    // What the server sent before it answered has been received, and waits here.
                    while let Some(message) = messages.next().now_or_never() {
                        match message {
                            Some(message) => self.take(message.get_payload_bytes(), ear),
                            None => return Ok(()),
                        }
                    }
                    ear.heard_up_to(asked);
                }
            }
        }
    }

    fn take(&self, message: &[u8], ear: &dyn Ear<K>) {
        let changes = match message {
            [VERSION, message @ ..] => postcard::from_bytes::<(u64, Vec<Change<K>>)>(message).ok(),
            _ => None,
        };
        match changes {
            Some((own, _)) if own == self.own => {}
            Some((_, changes)) => ear.heard(changes),
            None => ear.heard(vec![Change::All]),
        }
    }
}

impl<K: Serialize + DeserializeOwned + Send + Sync + 'static> Backplane<K> for RedisBackplane<K> {
    fn send<'a>(&'a self, changes: &'a [Change<K>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.publish(changes))
    }

    fn listen<'a>(&'a self, ear: &'a dyn Ear<K>, max_lag: Duration) -> BoxFuture<'a, TierError> {
        Box::pin(async move {
            let ended = self.hear(ear, max_lag).await;
            ended
                .err()
                .unwrap_or_else(|| TierError::failed("listen at Redis", "the connection was closed"))
        })
    }
}

fn failed(what: &'static str) -> impl FnOnce(RedisError) -> TierError {
    move |error| TierError::failed(what, error)
}
