//! The proxy: sessions of clients in front of a PostgreSQL, many clients on few server connections.
//!
//! Promises: a client gets the bytes that the server would have sent it on a connection of its own, and nobody gets another's. A
//! server connection is lent for a transaction, and given to the next client only when all that was asked on it is answered and
//! nothing of the session before is left on it; what cannot be carried to another connection stays on one. Knows no listener, no
//! option and no signal: whoever serves hands over streams that have logged in.
//!
//! Inside: `inward` and `outward` pass messages on and stand on `state`, what is a client's own; `relay` drives both sockets; `replies` knows
//! what each answer answers; `statements`, `settings`, `leftovers` what goes with a client or is left behind, `reading` and `plans` by what
//! settings texts are read and planned, `effects` what of the database's own leaves something. `console` is for those who look after it, `figures` what is counted by names, `position` for those who hand on where the log is.
//!
//! - [`Databases`]: those that are behind by their names, each an [upstream](UpstreamOptions) with its [pools](pool)
//! - [`Session`]: one client; [`replicate()`]: one that has come for the log
//! - [`Clients`]: who is connected, may cancel what, and is told to go

mod asking;
mod away;
mod beginning;
mod cap;
mod client;
mod clients;
mod columns;
mod console;
mod copying;
mod counters;
mod credentials;
mod databases;
mod deadlines;
mod effects;
mod end;
mod figures;
mod frames;
mod gate;
mod hearing;
mod intake;
mod inward;
mod last_answer;
mod leaves;
mod leftovers;
mod lent;
mod lookup;
mod memory;
mod numbers;
mod outward;
mod places;
mod plans;
pub mod pool;
mod position;
mod reach;
mod reading;
mod refusal;
mod relay;
mod replication;
mod replies;
mod role;
mod server;
mod session;
mod settings;
mod sharing;
mod state;
mod statements;
mod unknown_settings;
mod upstream;
mod watching;
mod welcome;
mod whose;

pub use self::clients::Clients;
pub use self::counters::Counted;
pub use self::databases::{ByName, Caller, Databases, Travelled};
pub use self::figures::Figures;
pub use self::hearing::Heard;
pub use self::memory::{HotQuestion, Invalidation, Listening, Memory, Remembered};
pub use self::replication::replicate;
pub use self::session::{Identity, Session};
pub use self::upstream::{UpstreamOptions, UserOptions};
