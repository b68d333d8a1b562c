//! Server: one connection to a database, and what is on it.
//!
//! Promises: it knows what it was asked and has not answered, what is prepared and set on it. It may be lent on when it
//! [is clean](Server::is_clean), and never before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use forebay_pg_link::Link;
use forebay_stream::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::beginning::Beginning;
use crate::cap::Permit;
use crate::clients::Target;
use crate::deadlines::At;
use crate::frames;
use crate::lent::Lent;
use crate::places::{OfKind, Place};
use crate::plans::{Grounds, HangOn, Plans};
use crate::reading::{self, InForce};
use crate::replies::{Asked, Replies};
use crate::settings::Settings;
use crate::statements::{Described, Named, Prepared, Shape, Statement, Unnamed, own_name, server_name};
use crate::welcome::{Reported, Welcome};

/// So many statements are kept prepared on a connection.
const PREPARED_MAX: usize = 256;

/// What hangs on an answer.
#[derive(Debug)]
pub(crate) enum Note {
    /// A statement that is being prepared here under its number.
    Prepared { number: u64 },
    /// A statement that makes room for others.
    Evicted { number: u64 },
    /// A name of the client's that has changed at this place, and what it was before.
    Named {
        name: Bytes,
        place: u64,
        before: Option<Named>,
        number: Option<u64>,
    },
    /// A simple query. The unnamed statement is gone with it, also where it fails, and perhaps a name with what it stood for, where it does not.
    Queried {
        place: u64,
        unnamed: Option<Named>,
        deallocated: Option<(Bytes, Option<Named>)>,
    },
    /// A message that names a statement, which the server knows by another name.
    Uses { name: Bytes, number: u64 },
    /// The same, or a portal of it: it describes the statement.
    Describes(Described),
    /// Which columns it has, as we ask where it was prepared anew.
    Proves { statement: Arc<Statement> },
    /// It has not, and the server knows no statement of the name that is used for that. Where it is to be described, the statement.
    Changed {
        name: Bytes,
        number: u64,
        described: Option<Arc<Statement>>,
    },
    /// What was set is as wanted.
    Set,
    /// What is left on it was asked.
    Leftovers,
    /// What of the database's own leaves something was asked.
    Effects,
    /// One of the settings by which texts are read was asked.
    Reading { name: &'static str },
    /// All of them were.
    Read,
    /// Plans are discarded.
    Discarded,
}

impl Note {
    /// Whether what is described is looked at, whole: it is bounded by how many columns and parameters there may be.
    pub(crate) fn looks_at_shape(&self) -> bool {
        matches!(self, Self::Describes(_) | Self::Proves { .. })
    }

    /// The client's name of a statement that the server knows by another, and its number.
    pub(crate) fn used(&self) -> Option<(&Bytes, u64)> {
        match self {
            Self::Uses { name, number } | Self::Changed { name, number, .. } => Some((name, *number)),
            Self::Describes(described) => Some((&described.name, described.statement.number())),
            _ => None,
        }
    }
}

/// What is shown of a server connection.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The server's own number of it.
    pub(crate) process_id: Option<i32>,
    pub(crate) since: Instant,
    /// Who has it; 0 for nobody.
    client: AtomicI32,
    lent: AtomicU64,
    prepared: AtomicUsize,
}

impl Shown {
    /// From now on this client has it.
    pub(crate) fn lend_to(&self, client: i32) {
        self.client.store(client, Ordering::Relaxed);
        self.lent.fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody has it, and so many statements are prepared there.
    pub(crate) fn give_back(&self, prepared: usize) {
        self.client.store(0, Ordering::Relaxed);
        self.prepared.store(prepared, Ordering::Relaxed);
    }

    /// Who has it.
    pub(crate) fn client(&self) -> Option<i32> {
        Some(self.client.load(Ordering::Relaxed)).filter(|client| *client != 0)
    }

    /// How often it was lent.
    pub(crate) fn lent(&self) -> u64 {
        self.lent.load(Ordering::Relaxed)
    }

    /// How many statements were prepared when it was given back last.
    pub(crate) fn prepared(&self) -> usize {
        self.prepared.load(Ordering::Relaxed)
    }
}

const DISCARD_PLANS: &str = "DISCARD PLANS;";

/// A server connection.
#[derive(Debug)]
pub(crate) struct Server {
    stream: Stream,
    /// What came and was not taken yet.
    pub(crate) input: BytesMut,
    /// What is to be sent.
    pub(crate) output: BytesMut,
    needs_flush: bool,
    /// What has a place before this one is answered without a Sync.
    hastened_to: u64,
    pub(crate) replies: Replies<Note>,
    pub(crate) prepared: Prepared,
    /// What is set on it, beyond what it began with.
    pub(crate) settings: Arc<Settings>,
    /// By what else texts are read.
    pub(crate) in_force: InForce,
    /// Something may have set it since the last transaction was over, or what is left of it was asked.
    pub(crate) has_moved: bool,
    /// Those that it keeps.
    pub(crate) plans: Plans,
    pub(crate) reported: Arc<Reported>,
    /// What it said when it was new.
    pub(crate) welcome: Welcome,
    /// As ReadyForQuery said last.
    pub(crate) status: u8,
    /// Nothing more can come of it.
    pub(crate) is_over: bool,
    pub(crate) cancel: Target,
    /// Which one it is, and how often it was lent.
    pub(crate) lent: Lent,
    /// The settings it began with.
    pub(crate) beginning: Beginning,
    pub(crate) since: Instant,
    /// When it was given back last.
    pub(crate) idle_since: Instant,
    /// Something is left on it that nobody else is to meet: it is closed when it comes back.
    pub(crate) is_used_up: bool,
    /// Which way it was made, of those that the pool has had.
    pub(crate) generation: u64,
    /// What others are shown of it.
    pub(crate) shown: Arc<Shown>,
    _place: Place<Box<Server>>,
    _permit: Permit,
}

impl OfKind for Box<Server> {
    type Kind = Beginning;

    fn is_of(&self, beginning: &Beginning) -> bool {
        self.beginning == *beginning
    }
}

impl Server {
    pub(crate) fn new(
        link: Link,
        beginning: Beginning,
        generation: u64,
        (place, permit): (Place<Box<Self>>, Permit),
    ) -> Self {
        let parts = link.into_parts();
        let reported = parts.parameters.into_iter();
        let reported: Reported = reported.map(|(name, value)| (name.into(), value.into())).collect();
        let reported = Arc::new(reported);
        let since = Instant::now();
        Self {
            shown: Arc::new(Shown {
                process_id: parts.cancel.process_id(),
                since,
                client: AtomicI32::new(0),
                lent: AtomicU64::new(0),
                prepared: AtomicUsize::new(0),
            }),
            stream: parts.stream,
            input: parts.unread,
            output: BytesMut::new(),
            needs_flush: false,
            hastened_to: 0,
            replies: Replies::default(),
            prepared: Prepared::default(),
            settings: Arc::default(),
            in_force: InForce::Settled,
            has_moved: false,
            plans: Plans::default(),
            welcome: Welcome {
                reported: Arc::clone(&reported),
                notices: parts.greeting.freeze(),
            },
            reported,
            status: b'I',
            is_over: false,
            cancel: Target {
                token: parts.cancel,
                requests: Arc::new(AtomicUsize::new(0)),
            },
            lent: Lent::first(),
            beginning,
            since,
            idle_since: since,
            is_used_up: false,
            generation,
            _place: place,
            _permit: permit,
        }
    }

    /// Whether nothing is asked and unanswered, no transaction is open, and nobody is cancelling what runs.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_settled() && self.cancel.requests.load(Ordering::Acquire) == 0
    }

    /// The same, whether or not somebody is cancelling what ran: no one waits for the end of that, and what is given back meanwhile is closed.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_over
            && self.status == b'I'
            && self.replies.is_empty()
            && !self.replies.is_uncertain()
            && self.input.is_empty()
            && self.output.is_empty()
    }

    /// Reads what is there into `room`.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut room))?;
        Poll::Ready(Ok(room.filled().len()))
    }

    /// Ready when all is sent.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, &self.output))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.advance(count);
            self.needs_flush = true;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Asks a query of our own; its answer is nobody's to see.
    pub(crate) fn ask(&mut self, sql: &str, note: Note) {
        frames::put(&mut self.output, b'Q', &[sql.as_bytes(), &[0]]);
        // It drops the unnamed statement, and nothing keeps it from that.
        self.prepared.drop_unnamed();
        let refused = self.replies.ask(Asked::Query, true, Some(note));
        debug_assert!(refused.is_none(), "asked only between transactions or behind a Sync");
    }

    /// Sees to it that a statement is prepared here under its number, with parameters of the types that were told. Gives the notes that the server will not
    /// look at.
    #[must_use]
    pub(crate) fn prepare(&mut self, statement: &Statement) -> Option<Note> {
        let is_changed = matches!(self.prepared.shape(statement.number()), Shape::Changed);
        if is_changed || self.prepared.may_have_other_types(statement) {
            self.forget(statement.number());
        }
        if self.prepared.touch(statement.number()) {
            return None;
        }
        let back = self.read_as(statement);
        let name = self.make_room(statement);
        let definition = statement.definition_as_described();
        frames::put(&mut self.output, b'P', &[name.as_bytes(), &[0], &definition]);
        let number = statement.number();
        if statement.types_described().is_some() {
            self.prepared.is_typed(number);
        }
        let refused = self.replies.ask(Asked::Parse, true, Some(Note::Prepared { number }));
        self.read_again(back);
        refused
    }

    /// From now on texts are read as when its client prepared this one, in this transaction. What has them [read again](Self::read_again) as before.
    #[must_use]
    pub(crate) fn read_as(&mut self, statement: &Statement) -> Option<String> {
        if statement.is_read_alike(&self.settings, &self.in_force) {
            return None;
        }
        let back = match &self.in_force {
            InForce::Settled => reading::set(&self.settings),
            InForce::Known(now) => now.set(),
            // In a transaction that has failed, where nothing can be prepared, either.
            InForce::Moved | InForce::Asked(_) => return None,
        };
        self.run(&statement.set_reading(), None, None);
        Some(back)
    }

    pub(crate) fn read_again(&mut self, back: Option<String>) {
        if let Some(back) = back {
            self.run(&back, None, None);
        }
    }

    /// What is asked next may set something by which texts are read, if it is not passed over.
    pub(crate) fn may_read_otherwise(&mut self) {
        if !self.replies.is_skipping() {
            self.in_force = InForce::Moved;
            self.has_moved = true;
        }
    }

    /// What was set in the transaction may not hold any more, as it has failed; or some of it, as it is over.
    pub(crate) fn may_be_set_back(&mut self, is_over: bool) {
        if self.has_moved {
            self.in_force = InForce::Moved;
        }
        self.has_moved &= !is_over;
    }

    /// What the session has set is known, if nothing was asked since that may set more.
    pub(crate) fn settle(&mut self) {
        if !self.has_moved {
            self.in_force = InForce::Settled;
        }
    }

    /// Behind what is asked beside a client.
    pub(crate) fn sync(&mut self) {
        frames::put(&mut self.output, b'S', &[]);
        let _ = self.replies.ask(Asked::Sync, true, None);
        self.hastened_to = self.replies.next_place();
    }

    /// Asks what is in force now.
    pub(crate) fn ask_what_is_in_force(&mut self) {
        let mut place = None;
        for (name, text) in reading::ask() {
            let then = reading::is_last(name).then_some(Note::Read);
            place = self.run(&text, Some(Note::Reading { name }), then);
        }
        if let Some(place) = place {
            // A Sync would end what has been begun, and tell of settings.
            self.hasten(place);
            self.in_force = InForce::Asked(place);
        }
    }

    /// A session begins that has set these, where plans hang on that: the text that discards those that are not its own, if there are any.
    pub(crate) fn begin_plans(&mut self, grounds: Grounds, settings: &Arc<Settings>) -> &'static str {
        match self.plans.begin(grounds, settings) {
            true => {
                self.forget_stand_ins();
                DISCARD_PLANS
            }
            false => "",
        }
    }

    /// What is asked next may change what plans hang on, if it is not passed over.
    pub(crate) fn may_change_plans(&mut self, changed: Option<HangOn>) {
        if let Some(changed) = changed.filter(|_| !self.replies.is_skipping()) {
            self.plans.may_change(changed);
        }
    }

    /// Whether plans that it keeps are of what was set before something was set.
    pub(crate) fn has_stale_plans(&self) -> bool {
        self.plans.are_stale(|place| self.replies.is_awaited(place))
    }

    /// Where that was asked which discards them, if it is not answered.
    pub(crate) fn discards_at(&self) -> Option<u64> {
        self.plans.discards_at().filter(|place| self.replies.is_awaited(*place))
    }

    /// Discards all plans, inside of a transaction too.
    pub(crate) fn discard_plans(&mut self) {
        self.forget_stand_ins();
        if let Some(place) = self.run(DISCARD_PLANS, None, Some(Note::Discarded)) {
            self.plans.discard(place);
        }
    }

    /// With its plans the server also forgets how it has read what they were made of, and reads that by what is set when it is executed next: what is executed under
    /// other settings than it is to be read by is prepared anew.
    fn forget_stand_ins(&mut self) {
        for number in self.prepared.stand_ins() {
            self.forget(number);
        }
    }

    /// Runs a text of our own in the transaction that is open, whatever it is; the notes are of what it answers, and of when it is done. The place of
    /// that, if it is.
    fn run(&mut self, text: &str, note: Option<Note>, then: Option<Note>) -> Option<u64> {
        let name = own_name();
        let name = name.as_bytes();
        // One that failed before it was closed is there yet.
        let before: &[&[u8]] = &[b"S", name, &[0]];
        let all: [(u8, &[&[u8]], _, _); 6] = [
            (b'C', before, Asked::Close, None),
            (b'P', &[name, &[0], text.as_bytes(), &[0, 0, 0]], Asked::Parse, None),
            (b'B', &[name, &[0], name, &[0; 7]], Asked::Bind, None),
            (b'E', &[name, &[0; 5]], Asked::Execute, note),
            (b'C', &[b"P", name, &[0]], Asked::Close, None),
            (b'C', before, Asked::Close, then),
        ];
        let is_refused = self.replies.is_skipping();
        let mut place = 0;
        for (tag, parts, asked, note) in all {
            place = self.replies.next_place();
            frames::put(&mut self.output, tag, parts);
            let _ = self.replies.ask(asked, true, note);
        }
        (!is_refused).then_some(place)
    }

    /// It is prepared anew when it is asked for next: one that has other columns keeps them, as it is there.
    pub(crate) fn forget(&mut self, number: u64) {
        if self.prepared.has(number) {
            self.prepared.remove(number);
            self.close(number);
        }
    }

    /// What was asked at this place is answered soon, also where no Sync follows yet.
    pub(crate) fn hasten(&mut self, place: u64) {
        if place >= self.hastened_to {
            frames::put(&mut self.output, b'H', &[]);
            self.hastened_to = self.replies.next_place();
        }
    }

    /// Prepares it anew, and asks which columns it has there.
    #[must_use]
    pub(crate) fn prove(&mut self, statement: &Arc<Statement>) -> [Option<Note>; 2] {
        let number = statement.number();
        self.forget(number);
        let refused = self.prepare(statement);
        let place = self.replies.next_place();
        self.prepared.set_shape(number, Shape::Asked(place));
        frames::put(&mut self.output, b'D', &[b"S", server_name(number).as_bytes(), &[0]]);
        let note = Note::Proves {
            statement: Arc::clone(statement),
        };
        let also_refused = self.replies.ask(Asked::Describe, true, Some(note));
        self.hasten(place);
        [refused, also_refused]
    }

    /// Counts a statement among those that are prepared; the one that is used least goes where there are too many. Its name.
    pub(crate) fn make_room(&mut self, statement: &Statement) -> String {
        let place = self.replies.next_place();
        if let Some(oldest) = self.prepared.add(statement, place, PREPARED_MAX) {
            self.close(oldest);
            self.prepared.set_place(statement.number(), self.replies.next_place());
        }
        server_name(statement.number())
    }

    /// A statement that is not counted any more goes.
    fn close(&mut self, number: u64) {
        frames::put(&mut self.output, b'C', &[b"S", server_name(number).as_bytes(), &[0]]);
        let note = Note::Evicted { number };
        if let Some(Note::Evicted { number }) = self.replies.ask(Asked::Close, true, Some(note)) {
            self.prepared.put_back(number);
        }
    }

    /// What is asked next makes this one the unnamed statement, or none.
    pub(crate) fn set_unnamed(&mut self, number: Option<u64>) {
        let unnamed = match self.replies.is_skipping() {
            true => Unnamed::Unknown,
            false => Unnamed::Known(number),
        };
        self.prepared.set_unnamed(unnamed, self.replies.next_place());
    }

    /// The unnamed statement is described as this one is, by these types alone, also in a transaction that has failed, where it cannot be prepared.
    #[must_use]
    pub(crate) fn stand_in_for_unnamed(&mut self, statement: &Statement, types: &[u8]) -> Option<Note> {
        if self.prepared.unnamed() == Unnamed::Known(Some(statement.number())) {
            return None;
        }
        self.prepared.set_unnamed(Unnamed::Unknown, self.replies.next_place());
        frames::put(&mut self.output, b'P', &[&[0, 0], types]);
        self.replies.ask(Asked::Parse, true, None)
    }

    /// Sees to it that the unnamed statement is this one, or none.
    #[must_use]
    pub(crate) fn prepare_unnamed(&mut self, statement: Option<&Statement>) -> Option<Note> {
        let wanted = Unnamed::Known(statement.map(Statement::number));
        if self.prepared.unnamed() == wanted {
            return None;
        }
        let back = statement.and_then(|statement| self.read_as(statement));
        self.set_unnamed(statement.map(Statement::number));
        match statement {
            Some(statement) => {
                let definition = statement.definition_as_described();
                frames::put(&mut self.output, b'P', &[&[0], &definition]);
                let refused = self.replies.ask(Asked::Parse, true, None);
                self.read_again(back);
                refused
            }
            None => {
                frames::put(&mut self.output, b'C', &[b"S", &[0]]);
                self.replies.ask(Asked::Close, true, None)
            }
        }
    }

    /// What its client is at.
    pub(crate) fn at(&self) -> At {
        match (self.replies.are_all_there(), self.status) {
            (false, _) => At::Statement(self.replies.answered()),
            (true, b'I') if self.replies.is_empty() => At::Idle,
            // It owes a Sync, or the end of its transaction.
            (true, _) => At::IdleInTransaction,
        }
    }

    /// Cancels what runs. Until the request has been carried out the connection is lent to nobody else.
    pub(crate) fn interrupt(&self) {
        let target = self.cancel.clone();
        target.requests.fetch_add(1, Ordering::AcqRel);
        tokio::spawn(async move {
            if let Err(error) = target.token.cancel().await {
                tracing::debug!(%error, "a statement that took too long could not be cancelled");
            }
            target.requests.fetch_sub(1, Ordering::AcqRel);
        });
    }

    /// The session is over, whatever the server is at: that is not to go on for nobody. What came of it is unknown.
    pub(crate) fn give_up(&self) {
        if self.is_over || self.replies.is_empty() {
            return;
        }
        let token = self.cancel.token.clone();
        tokio::spawn(async move {
            if let Err(error) = token.cancel().await {
                tracing::debug!(%error, "what ran for a client that has gone could not be cancelled");
            }
        });
    }

    /// Says that no more comes, if that can be said at once: the server then logs no lost connection.
    pub(crate) fn say_farewell(mut self: Box<Self>) {
        frames::put(&mut self.output, b'X', &[]);
        // Closed in any case.
        let _told = self.poll_send(&mut Context::from_waker(std::task::Waker::noop()));
    }

    /// Looks, without waiting, what came while nobody had it: settings are noted, its end too.
    pub(crate) fn look(&mut self) {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut room = [0; 1024];
        while !self.is_over {
            match self.poll_read(&mut context, &mut room) {
                Poll::Pending => break,
                Poll::Ready(Ok(0) | Err(_)) => self.is_over = true,
                Poll::Ready(Ok(count)) => self.input.extend_from_slice(&room[..count]),
            }
        }
        while let Ok(Some(frame)) = frames::frame(&self.input)
            && self.input.len() >= frame.length
        {
            match frame.tag {
                b'S' => self.report(frame.length),
                b'N' | b'A' => {}
                _ => self.is_over = true,
            }
            self.input.advance(frame.length);
        }
    }

    /// Notes the ParameterStatus that the input begins with.
    pub(crate) fn report(&mut self, length: usize) {
        let body = &self.input[frames::HEADER_BYTES..length];
        if let Some((name, rest)) = frames::zero_terminated(body)
            && let Some((value, _)) = frames::zero_terminated(rest)
        {
            let (name, value) = (Bytes::copy_from_slice(name), Bytes::copy_from_slice(value));
            if self.reported.get(&name) != Some(&value) {
                Arc::make_mut(&mut self.reported).insert(name, value);
            }
        }
    }
}
