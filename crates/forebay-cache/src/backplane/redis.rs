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
use tokio::task::{consume_budget, unconstrained};

use super::{Backplane, Change, Ear};
use crate::redis_link::Link;
use crate::tier::{OpenError, TierError};

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The layout of messages.
const VERSION: u8 = 1;

/// A backplane by Redis or Valkey. All caches of the same namespace, which must have the same keys, in the same database of the server hear one
/// another.
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
        // Channels are those of the whole server.
        let database = client.get_connection_info().redis_settings().db();
        Ok(Self {
            link: Link::new(client.clone()),
            client,
            channel: format!("{namespace};changes;{database}"),
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
            .or_else(|_| {
                let untold = changes.iter().any(Change::is_untold).then_some(Change::Untold);
                let all: Vec<Change<K>> = untold.into_iter().chain([Change::All]).collect();
                self.written(&all)
            })
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
        let (sink, mut messages) = connected
            .map_err(timed_out(CONNECT_WITHIN))?
            .map_err(failed("subscribe at Redis"))?;
        ear.began();
        let mut every = tokio::time::interval((max_lag / 4).min(Duration::from_secs(1)).max(Duration::from_millis(1)));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Beside the messages: neither holds the other up.
        let answered = futures_util::stream::unfold((sink, every), async |(mut sink, mut every)| {
            every.tick().await;
            let asked = ear.now();
            let pong = tokio::time::timeout(max_lag, sink.ping::<::redis::Value>()).await;
            Some(((asked, pong), (sink, every)))
        });
        let mut answered = std::pin::pin!(answered);
        loop {
            tokio::select! {
                // Pings are few, messages may be without end.
                biased;
                Some((asked, pong)) = answered.next() => {
                    pong.map_err(timed_out(max_lag))?.map_err(failed("ping Redis"))?;
                    // What the server sent before it answered has been received, and waits here; what comes while it is taken is for the next time.
                    // Without tokio's budget, by which a stream that has something may say that it has nothing.
                    let mut waiting = Vec::new();
                    while let Some(message) = unconstrained(messages.next()).now_or_never() {
                        match message {
                            Some(message) => waiting.push(message),
                            None => return Ok(()),
                        }
                    }
                    for message in waiting {
                        self.take(message.get_payload_bytes(), ear);
                        consume_budget().await;
                    }
                    ear.heard_up_to(asked);
                }
                message = messages.next() => match message {
                    Some(message) => self.take(message.get_payload_bytes(), ear),
                    None => return Ok(()),
                },
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

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::Instant;

    use testbed::Redis;
    use tokio::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::backplane::Moment;

    /// Takes its time for each message, and asks for the next one before it has done.
    struct Slow {
        wants: Sender<()>,
        heard: AtomicU64,
        up_to: AtomicU64,
        began: Instant,
    }

    impl Slow {
        fn now_ms(&self) -> u64 {
            crate::clock::whole_ms(self.began.elapsed())
        }
    }

    impl Ear<u64> for Slow {
        fn began(&self) {
            for _ in 0..300 {
                self.wants.try_send(()).ok();
            }
        }

        fn now(&self) -> Moment {
            Moment(self.now_ms())
        }

        fn heard_up_to(&self, moment: Moment) {
            self.up_to.fetch_max(moment.0, SeqCst);
        }

        fn heard(&self, changes: Vec<Change<u64>>) {
            let until = Instant::now() + Duration::from_millis(1);
            for _ in changes {
                self.heard.fetch_add(1, SeqCst);
                self.wants.try_send(()).ok();
            }
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }

    /// As many messages wait at any moment as it takes a while to hear.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_flood_keeps_nobody_from_knowing_what_was_heard() {
        const MAX_LAG: Duration = Duration::from_secs(4);
        let redis = Redis::start().unwrap();
        let carrier = || RedisBackplane::<u64>::open(&redis.url(), "flood").unwrap();
        let (wants, mut wanted) = channel(1_000);
        let teller = carrier();
        let telling = tokio::spawn(async move {
            let mut number = 0;
            while wanted.recv().await.is_some() {
                number += 1;
                teller.send(&[Change::Key(number)]).await.unwrap();
            }
        });
        let slow = Slow {
            wants,
            heard: AtomicU64::new(0),
            up_to: AtomicU64::new(0),
            began: Instant::now(),
        };
        let listener = carrier();
        let listening = listener.listen(&slow, MAX_LAG);
        let flood = Duration::from_secs(3);
        assert!(tokio::time::timeout(flood, listening).await.is_err(), "it goes on");
        let (heard, up_to_ms) = (slow.heard.load(SeqCst), slow.up_to.load(SeqCst));
        assert!(heard > 300, "{heard} messages are no flood");
        assert!(up_to_ms > 500, "it knows up to {up_to_ms} ms, of 3,000");
        telling.abort();
    }
}
