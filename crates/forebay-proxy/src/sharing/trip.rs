//! Trip: those who travel together, in one transaction of one server connection, sent in one write with one Sync behind it.
//!
//! Promises: each gets the messages that answer what it asked, and nothing of another's. Whoever reads is told as soon as all are answered;
//! whoever changes rows once the server has committed all of them. Where one fails, nothing of what the others have changed is
//! done, and they are to travel again without it; it goes alone, and is told there by the server what is wrong. Where the connection is
//! lost, those who change are told that nobody knows. Those who read or change a row
//! each by its key, or insert a row each, are asked [as one](super::joint), where enough ask alike.
//!
//! Which messages of a pipeline without a Sync between are one transaction, and that an error undoes it and passes over what follows,
//! is PostgreSQL's documentation, "Pipelining" and "Extended Query".

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use tokio::time::{timeout, timeout_at};

use super::ask::{Answer, Ask};
use super::beside::Beside;
use super::bound::Bound;
use super::company::Company;
use super::distinct::{Members, distinct};
use super::facts::IS_ANOTHER;
use super::job::Job;
use super::joint::{Group, Joint, Likeness};
use super::pace::HELD_UP;
use super::plan::{Kind, Plan};
use super::unit::Step;
use crate::asking::{Lost, fill, undo};
use crate::deadlines::ANSWERED_WITHIN;
use crate::frames::{self, HEADER_BYTES};
use crate::replies::Asked;
use crate::server::Server;
use crate::statements::{Statement, Statements, Unnamed, server_name};

/// The longest message that is taken whole, where rows are read and no longer answer is of use: whose it is goes alone, where it passes in pieces.
const READ_MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// A trip takes no more than one of so many parts of the time that those on it have: who has nothing to do with what takes so long has the
/// others left.
const TIME_PARTS: u32 = 8;

/// Whose answers the server is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Job(usize),
    /// Of jobs that are asked as one.
    Group(usize),
}

/// Where in the order of answers the server is at one job, or at some that are asked as one.
#[derive(Debug, Clone, Copy)]
struct Span {
    of: Of,
    first: u64,
    last: u64,
    is_simple: bool,
}

/// What stopped all of them.
#[derive(Debug)]
enum Failure {
    /// This one's statement, or these ones'.
    Of(Of),
    /// What was asked beside, or the commit.
    OfAll,
}

/// Those who travel, until each has its answer.
#[derive(Debug)]
pub(crate) struct Trip {
    kind: Kind,
    jobs: Vec<Job>,
    /// No message is taken that is longer, where rows are read.
    message_bytes_max: usize,
    /// Whose answer a job gets: its own, but where another asks the very same.
    as_job: Vec<usize>,
    groups: Vec<Group>,
    /// Statements of which it is to be asked whether they can be asked as one.
    unknown: Unknown,
    spans: Vec<Span>,
    /// The one that is being answered.
    span: usize,
    /// Answers, one behind the other, and where each is.
    out: BytesMut,
    ranges: Vec<(usize, usize)>,
    failure: Option<Failure>,
    /// Those who were asked as one with others and have found no row to change.
    missed: Vec<usize>,
    /// The numbers of the statements that are asked beside.
    beside: Vec<u64>,
    is_sent: bool,
    /// It is no trip, but one who is asked for by himself.
    is_of_one: bool,
    /// What all of it sees at least, where that was asked in front.
    seen: Option<(String, String)>,
    /// Until when it may go on, and the longest time of those who are on it.
    time: Option<(Instant, Duration)>,
    /// It took too long, and was cancelled.
    is_given_up: bool,
    /// How long it took.
    elapsed: Duration,
}

/// How a trip has ended.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// They are to travel again.
    pub(crate) back: Vec<Job>,
    /// All was well.
    pub(crate) is_well: bool,
    pub(crate) unknown: Unknown,
}

/// Statements of which is to be asked whether they have a joint form; what is not asked when this is dropped is asked another time.
#[derive(Debug, Default)]
pub(crate) struct Unknown(Vec<ToAsk>);

/// A statement, what is known of it, and the mark of its table.
pub(crate) type ToAsk = (Arc<Statement>, Arc<Joint>, Option<Arc<str>>);

impl Unknown {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one to be asked about next.
    pub(crate) fn last(&self) -> Option<&ToAsk> {
        self.0.last()
    }

    /// It was asked about.
    pub(crate) fn pop(&mut self) {
        drop(self.0.pop());
    }
}

impl Drop for Unknown {
    fn drop(&mut self) {
        for (_, joint, _) in &self.0 {
            joint.is_not_asked();
        }
    }
}

impl Trip {
    pub(crate) fn new(kind: Kind, jobs: Vec<Job>) -> Self {
        let bytes_max = jobs.iter().map(|job| job.bytes_max).max().unwrap_or(0);
        Self {
            kind,
            message_bytes_max: bytes_max.max(READ_MESSAGE_BYTES_MAX),
            as_job: (0..jobs.len()).collect(),
            groups: Vec::new(),
            unknown: Unknown::default(),
            spans: Vec::with_capacity(jobs.len()),
            span: 0,
            out: BytesMut::new(),
            ranges: vec![(0, 0); jobs.len()],
            failure: None,
            missed: Vec::new(),
            beside: Vec::new(),
            is_sent: false,
            is_of_one: false,
            seen: None,
            time: None,
            is_given_up: false,
            elapsed: Duration::ZERO,
            jobs,
        }
    }

    /// Of one who reads by himself, as others join him.
    pub(crate) fn of_one(job: Job) -> Self {
        let mut trip = Self::new(Kind::Read, vec![job]);
        trip.is_of_one = true;
        trip
    }

    /// It was told in front what all of it sees at least.
    pub(crate) fn sees(&mut self, seen: Option<(String, String)>) {
        self.seen = seen;
    }

    /// It took so long, all in all.
    pub(crate) fn took(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
    }

    /// Writes all messages, to be sent.
    pub(crate) fn put(&mut self, server: &mut Server, beside: &Beside, lock_timeout_ms: u64, asks: &Asks<'_>) {
        if self.kind == Kind::Change {
            self.beside = vec![beside.lock.number(), beside.guard.number()];
            put_ours(server, &beside.lock, &[&lock_timeout_ms.to_string()]);
        }
        let mut same: HashMap<&Ask, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut marks: Vec<(String, Arc<str>)> = Vec::new();
        let mut alike = Alike::default();
        let encoding = server.reported.get(&b"client_encoding"[..]);
        let is_utf8 = encoding.is_some_and(|encoding| *encoding == b"UTF8"[..]);
        for (at, job) in self.jobs.iter().enumerate() {
            job.sent.now();
            if let Some(flight) = &job.flight {
                flight.is_sent();
            }
            if self.kind == Kind::Read && job.plan.is_steady() {
                match same.get(&job.ask) {
                    Some(&first) => {
                        self.as_job[at] = first;
                        continue;
                    }
                    None => drop(same.insert(&job.ask, at)),
                }
            }
            if !alike.take(at, job, asks) {
                self.spans
                    .push(span(server, Of::Job(at), |server| put_job(server, job)));
            }
            if let (Some(table), Some(mark)) = (job.plan.changed_table(), &job.mark)
                && !marks
                    .iter()
                    .any(|(known, as_marked)| known == table && as_marked == mark)
            {
                marks.push((table.to_owned(), Arc::clone(mark)));
            }
        }
        for (likeness, (statement, members)) in alike.all {
            let mut is_to_ask = false;
            let joint = asks.company.joint(&statement);
            let mark = |at: usize| self.jobs[at].mark.as_ref();
            let first = members.first().and_then(|(at, _)| mark(*at));
            let are_of_one = members.iter().all(|(at, _)| mark(*at) == first);
            let min = asks.company.min_jointly;
            let form = match members.len() >= min && are_of_one {
                true => joint.form(first, &mut is_to_ask),
                false => None,
            };
            if is_to_ask {
                self.unknown
                    .0
                    .push((Arc::clone(&statement), Arc::clone(&joint), first.cloned()));
            }
            let together = match form.as_ref().and_then(|form| form.keys.as_deref()) {
                Some(keys) => distinct(members, keys),
                None => vec![members],
            };
            for members in together {
                let form = form.as_ref().filter(|_| members.len() >= min).map(Arc::clone);
                let group = form.and_then(|form| Group::new(&joint, form, &likeness, &members, is_utf8));
                if let Some((group, bound)) = group {
                    let of = Of::Group(self.groups.len());
                    self.spans
                        .push(span(server, of, |server| put_group(server, &group, &bound)));
                    self.groups.push(group);
                    continue;
                }
                for (at, _) in members {
                    let put = |server: &mut Server| put_job(server, &self.jobs[at]);
                    self.spans.push(span(server, Of::Job(at), put));
                }
            }
        }
        for (table, mark) in &marks {
            put_ours(server, &beside.guard, &[table, mark]);
        }
        frames::put(&mut server.output, b'S', &[]);
        let refused = server.replies.ask(Asked::Sync, true, None);
        debug_assert!(refused.is_none(), "nothing is passed over between two trips");
        self.is_sent = true;
        self.time = self.time_of(Instant::now());
    }

    /// Reads answers until all are there.
    pub(crate) async fn read(&mut self, server: &mut Server) -> Result<(), Lost> {
        // Some may have come behind what was asked in front.
        if !server.input.is_empty() && self.take(server)? {
            return Ok(());
        }
        loop {
            fill(server).await?;
            if self.take(server)? {
                return Ok(());
            }
        }
    }

    /// The same, in the time that those have who change rows: a part of it for the trip, so that each has the rest of it alone, or in other
    /// company. Whether it was cancelled for that; what came of it is told all the same.
    pub(crate) async fn read_in_time(&mut self, server: &mut Server) -> Result<bool, Lost> {
        let Some((until, longest)) = self.time else {
            self.read(server).await?;
            return Ok(false);
        };
        if !self.is_given_up {
            if let Ok(read) = timeout_at(until.into(), self.read(server)).await {
                read?;
                return Ok(false);
            }
            self.is_given_up = true;
            server.interrupt();
        }
        timeout(longest + ANSWERED_WITHIN, self.read(server))
            .await
            .map_err(|_| Lost)??;
        Ok(true)
    }

    /// Until when it may go on for those who are on it, where it is sent now, and the longest time that one of them has; none where all have
    /// as long as it takes.
    fn time_of(&self, now: Instant) -> Option<(Instant, Duration)> {
        let times = self.jobs.iter().filter_map(|job| {
            let time = job.time?;
            Some((
                (now + time_of_trip(time)).min(job.sent.at().unwrap_or(now) + time),
                time,
            ))
        });
        times.reduce(|(until, longest), (other, time)| (until.min(other), longest.max(time)))
    }

    /// How long those who read wait for one another at the most, by the time that they have.
    pub(crate) fn read_patience(&self) -> Option<Duration> {
        self.jobs.iter().filter_map(|job| job.time).map(time_of_trip).min()
    }

    /// Takes what came; whether that was the last of it.
    fn take(&mut self, server: &mut Server) -> Result<bool, Lost> {
        let mut at = 0;
        let mut undone = Vec::new();
        let mut is_over = false;
        while !is_over {
            let bytes = &server.input[at..];
            let Some(frame) = frames::frame(bytes).map_err(|_| Lost)? else {
                break;
            };
            if self.kind == Kind::Read && frame.length > self.message_bytes_max {
                return Err(Lost);
            }
            if bytes.len() < frame.length {
                break;
            }
            let body = &bytes[HEADER_BYTES..frame.length];
            if frame.tag == b'E' && frames::ends_the_session(body) {
                server.is_over = true;
                return Err(Lost);
            }
            match frame.tag {
                b'S' => {
                    // Who has the connection next is told.
                    server.input.advance(at);
                    server.report(frame.length);
                    at = frame.length;
                    continue;
                }
                b'A' => {
                    at += frame.length;
                    continue;
                }
                _ => {}
            }
            let reply = server.replies.receive(frame.tag, &mut undone).map_err(|_| Lost)?;
            while self.spans.get(self.span).is_some_and(|span| span.last < reply.place) {
                self.span += 1;
            }
            let current = self
                .spans
                .get(self.span)
                .filter(|span| span.first <= reply.place)
                .copied();
            match frame.tag {
                b'E' => {
                    let of = current.map(|span| span.of);
                    self.failure = Some(of.map_or(Failure::OfAll, Failure::Of));
                    let code = frames::field(body, b'C').unwrap_or_default();
                    let (is_gone, is_of_a_value) = (code == b"26000", is_of_a_value(code));
                    server.prepared.failed_at(reply.place);
                    for note in undone.drain(..).chain(reply.failed) {
                        undo(&note, server);
                    }
                    if let Some(Of::Group(group)) = of {
                        let group = &self.groups[group];
                        match is_of_a_value {
                            true => Joint::was_given_a_bad_value(&group.form),
                            false => group.fails(),
                        }
                    }
                    // Whoever needs it prepares it again.
                    if is_gone {
                        let of_all = self.beside.iter().copied().filter(|_| of.is_none());
                        of.and_then(|of| self.statement_of(of))
                            .map(Statement::number)
                            .into_iter()
                            .chain(of_all)
                            .for_each(|number| server.prepared.remove(number));
                    }
                }
                b'Z' => {
                    server.status = body[0];
                    is_over = true;
                }
                tag => match current {
                    Some(Span {
                        of: Of::Group(group), ..
                    }) => {
                        // What is asked for us beside has an answer, too.
                        let is_beside = matches!(tag, b'1' | b'3');
                        let is_last = !is_beside && self.groups[group].take(tag, &bytes[..frame.length]);
                        if is_last {
                            self.has_come(group);
                        }
                    }
                    Some(Span {
                        of: Of::Job(job),
                        is_simple,
                        ..
                    }) => {
                        let is_told = match tag {
                            // Of a text it is not said that it tells no rows.
                            b'n' => reply.is_visible && !is_simple,
                            // What is noticed as a text is parsed is its client's, though its Parse is not.
                            b'N' => reply.is_visible || is_simple,
                            _ => reply.is_visible,
                        };
                        if is_told {
                            self.add(job, &bytes[..frame.length]);
                        }
                    }
                    None => {}
                },
            }
            at += frame.length;
        }
        server.input.advance(at);
        Ok(is_over)
    }

    /// A message that is one job's.
    fn add(&mut self, job: usize, message: &[u8]) {
        let (begin, end) = &mut self.ranges[job];
        if *end == 0 {
            *begin = self.out.len();
        }
        // Of one that is too long nothing is wanted, nor of those who have gone alone.
        let is_wanted = |job: &Job| self.kind == Kind::Change || *end <= *begin + job.bytes_max;
        if self.jobs.get(job).is_some_and(is_wanted) {
            self.out.extend_from_slice(message);
        }
        *end = self.out.len();
    }

    /// All that the server had to say of those who are asked as one.
    fn has_come(&mut self, group: usize) {
        let group = &self.groups[group];
        if group.is_void {
            group.fails();
            return;
        }
        let before = self.missed.len();
        for (at, job) in group.jobs.iter().enumerate() {
            if group.has_missed(at) {
                self.missed.push(*job);
                continue;
            }
            let begin = self.out.len();
            group.put_answer(at, &mut self.out);
            self.ranges[*job] = (begin, self.out.len());
        }
        let missed = self.missed.len() - before;
        if missed > 1 && missed * 2 > group.jobs.len() {
            // Most are asked twice.
            Joint::was_given_a_bad_value(&group.form);
        }
    }

    /// Whether the job is one of these.
    fn is_of(&self, of: Of, job: usize) -> bool {
        match of {
            Of::Job(only) => only == job,
            Of::Group(group) => self.groups[group].jobs.contains(&job),
        }
    }

    /// What is executed there.
    fn statement_of(&self, of: Of) -> Option<&Statement> {
        match of {
            Of::Job(job) => self.jobs.get(job)?.statement.as_deref(),
            Of::Group(group) => Some(&self.groups[group].form.statement),
        }
    }

    /// For how many of them the server works.
    pub(crate) fn worked_for(&self) -> usize {
        self.spans.len() + self.groups.iter().map(|group| group.jobs.len() - 1).sum::<usize>()
    }

    /// Whether nobody waits for any of it.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.jobs.iter().all(Job::is_abandoned)
    }

    /// Whether nobody's statement has failed, as far as is known.
    pub(crate) fn is_well(&self) -> bool {
        self.failure.is_none()
    }

    /// Those who are on it.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// What is known of their statements.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.jobs.iter().map(|job| &job.plan)
    }

    /// Tells each what came of it.
    pub(crate) fn arrive(mut self) -> Arrival {
        let jobs = std::mem::take(&mut self.jobs);
        let out = std::mem::take(&mut self.out).freeze();
        let count = jobs.len() as u64;
        let part = self.elapsed / u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let mut arrival = Arrival {
            back: Vec::new(),
            is_well: self.failure.is_none(),
            unknown: std::mem::take(&mut self.unknown),
        };
        let mut is_grouped = vec![false; jobs.len()];
        for job in self.groups.iter().flat_map(|group| &group.jobs) {
            is_grouped[*job] = true;
        }
        for (at, mut job) in jobs.into_iter().enumerate() {
            let first = self.as_job[at];
            let (begin, end) = self.ranges[first];
            match (&self.failure, self.kind) {
                (Some(Failure::OfAll), _) => {
                    job.plan.doubt();
                    job.answer(Answer::Alone(false));
                }
                // It may be the one that has held up the others.
                (Some(Failure::Of(Of::Job(failed))), _) if *failed == first => {
                    job.answer(Answer::Alone(self.is_given_up));
                }
                (Some(Failure::Of(of)), Kind::Change) => {
                    job.is_single |= self.is_of(*of, first);
                    arrival.back.push(job);
                }
                // It was not come to, or what came of those it was asked with is of no use.
                (failure, Kind::Read) if end == 0 => {
                    job.is_single |= match failure {
                        Some(Failure::Of(of)) => self.is_of(*of, first),
                        _ => is_grouped[first],
                    };
                    arrival.back.push(job);
                }
                (None, Kind::Change) if self.missed.contains(&first) => {
                    job.is_single = true;
                    arrival.back.push(job);
                }
                // It was done, and not as it can be.
                (None, Kind::Change) if end == 0 => job.answer(Answer::Unknown),
                (_, Kind::Read) if end > begin + job.bytes_max => {
                    job.plan.was_answered_in((end - begin) as u64);
                    job.plan.ban();
                    job.answer(Answer::Alone(false));
                }
                _ => {
                    // Each by its part.
                    job.was_at_database(part);
                    match self.is_of_one {
                        true => job.plan.was_alone(),
                        false => job.plan.was_shared(count, is_grouped[first]),
                    }
                    if let (Some(sees), Some(seen)) = (job.sees.take(), &self.seen) {
                        // Whoever has asked may be gone.
                        drop(sees.send(seen.clone()));
                    }
                    let answer = out.slice(begin..end);
                    job.answer(Answer::Done(answer));
                }
            }
        }
        arrival
    }

    /// They go each by itself, as somebody holds them up. Only for those who read.
    pub(crate) fn scatter(&mut self) {
        debug_assert_eq!(self.kind, Kind::Read, "who changes has to wait for the commit");
        for job in self.jobs.drain(..) {
            job.answer(Answer::Alone(true));
        }
        self.as_job.clear();
    }
}

/// How much of the time that a client has may be lost to others on one trip.
fn time_of_trip(time: Duration) -> Duration {
    (time / TIME_PARTS).max(HELD_UP)
}

/// Whether an error says that it is of a value that was bound, as those of these classes do, or that what was bound does not fit; or that a lock
/// was waited for.
fn is_of_a_value(code: &[u8]) -> bool {
    let is_of_a_class = code.starts_with(b"22") || code.starts_with(b"23");
    (is_of_a_class && code != IS_ANOTHER) || [&b"08P01"[..], b"55P03", b"40P01"].contains(&code)
}

/// What is needed to find out who asks alike.
#[derive(Debug)]
pub(crate) struct Asks<'a> {
    pub(crate) statements: &'a Statements,
    pub(crate) company: &'a Company,
    pub(crate) schema_changes: u64,
}

/// Those who ask alike, by what they have in common.
#[derive(Default)]
struct Alike<'a> {
    all: HashMap<Likeness<'a>, (Arc<Statement>, Members<'a>), foldhash::fast::RandomState>,
}

impl<'a> Alike<'a> {
    /// Takes one who may be asked as one with others. False if it is not one of them.
    fn take(&mut self, at: usize, job: &'a Job, asks: &Asks<'_>) -> bool {
        if job.is_single || !job.plan.is_for_many() {
            return false;
        }
        let part = match &job.ask {
            Ask::Simple(text) => std::str::from_utf8(text).ok().and_then(|text| {
                let (bound, types) = job.plan.bound_of_text(text)?;
                let statement = asks.company.statement_of(&job.plan, types, asks.statements);
                if asks.company.joint(&statement).has_none() {
                    job.plan.is_in_vain();
                    return None;
                }
                let likeness = Likeness::of(&statement, None, &bound)?;
                Some((likeness, statement, bound))
            }),
            Ask::Extended { bound, steps, .. } => job.statement.as_ref().and_then(|statement| {
                // Who prepared it before has parameters of the types of then.
                if !statement.is_of(asks.schema_changes) {
                    return None;
                }
                if asks.company.joint(statement).has_none() {
                    return None;
                }
                let bound = Bound::of(bound)?;
                let likeness = Likeness::of(statement, Some(*steps), &bound)?;
                Some((likeness, Arc::clone(statement), bound))
            }),
        };
        let Some((likeness, statement, bound)) = part else {
            return false;
        };
        let (_, members) = self.all.entry(likeness).or_insert((statement, Vec::new()));
        members.push((at, bound));
        true
    }
}

impl Drop for Trip {
    fn drop(&mut self) {
        let answer = || match self.kind {
            Kind::Change if self.is_sent => Answer::Unknown,
            _ => Answer::Alone(false),
        };
        let answers: Vec<Answer> = self.jobs.iter().map(|_| answer()).collect();
        for (job, answer) in self.jobs.drain(..).zip(answers) {
            job.answer(answer);
        }
    }
}

fn ask(server: &mut Server, asked: Asked, is_ours: bool) {
    let refused = server.replies.ask(asked, is_ours, None);
    debug_assert!(refused.is_none(), "nothing is passed over before a trip is sent");
}

/// A statement of ours, with parameters as text.
fn put_ours(server: &mut Server, statement: &Statement, parameters: &[&str]) {
    let refused = server.prepare(statement);
    debug_assert!(refused.is_none(), "nothing is passed over before a trip is sent");
    let name = server_name(statement.number());
    let mut bound = vec![0, 0];
    bound.extend_from_slice(&u16::try_from(parameters.len()).expect("there are few").to_be_bytes());
    for parameter in parameters {
        let length = u32::try_from(parameter.len()).expect("a name is short");
        bound.extend_from_slice(&length.to_be_bytes());
        bound.extend_from_slice(parameter.as_bytes());
    }
    bound.extend_from_slice(&[0, 0]);
    frames::put(&mut server.output, b'B', &[&[0], name.as_bytes(), &[0], &bound]);
    ask(server, Asked::Bind, true);
    frames::put(&mut server.output, b'E', &[&[0; 5]]);
    ask(server, Asked::Execute, true);
}

/// Asks something, and says where its answers are.
fn span(server: &mut Server, of: Of, put: impl FnOnce(&mut Server) -> bool) -> Span {
    let first = server.replies.next_place();
    let is_simple = put(server);
    Span {
        of,
        first,
        last: server.replies.next_place() - 1,
        is_simple,
    }
}

fn put_group(server: &mut Server, group: &Group, bound: &[u8]) -> bool {
    let statement = &group.form.statement;
    let refused = server.prepare(statement);
    debug_assert!(refused.is_none(), "nothing is passed over before a trip is sent");
    let name = server_name(statement.number());
    frames::put(&mut server.output, b'B', &[&[0], name.as_bytes(), &[0], bound]);
    ask(server, Asked::Bind, true);
    if group.has_description {
        frames::put(&mut server.output, b'D', &[b"P\0"]);
        ask(server, Asked::Describe, true);
    }
    frames::put(&mut server.output, b'E', &[&[0; 5]]);
    ask(server, Asked::Execute, true);
    false
}

/// Whether it is a simple query.
fn put_job(server: &mut Server, job: &Job) -> bool {
    match &job.ask {
        Ask::Simple(text) => {
            let place = server.replies.next_place();
            frames::put(&mut server.output, b'P', &[&[0], text, &[0, 0, 0]]);
            server.prepared.set_unnamed(Unnamed::Unknown, place);
            ask(server, Asked::Parse, true);
            frames::put(&mut server.output, b'B', &[&[0; 8]]);
            ask(server, Asked::Bind, true);
            if job.plan.tells_rows() {
                frames::put(&mut server.output, b'D', &[b"P\0"]);
                ask(server, Asked::Describe, false);
            }
            frames::put(&mut server.output, b'E', &[&[0; 5]]);
            ask(server, Asked::Execute, false);
        }
        Ask::Extended { bound, steps, .. } => {
            let statement = job.statement.as_ref().expect("what is bound was prepared");
            let refused = server.prepare(statement);
            debug_assert!(refused.is_none(), "nothing is passed over before a trip is sent");
            let name = server_name(statement.number());
            for step in steps.iter() {
                match step {
                    Step::Parse => {}
                    Step::DescribeStatement => {
                        frames::put(&mut server.output, b'D', &[b"S", name.as_bytes(), &[0]]);
                        ask(server, Asked::Describe, false);
                    }
                    Step::Bind => {
                        frames::put(&mut server.output, b'B', &[&[0], name.as_bytes(), &[0], bound]);
                        ask(server, Asked::Bind, false);
                    }
                    Step::DescribePortal => {
                        frames::put(&mut server.output, b'D', &[b"P\0"]);
                        ask(server, Asked::Describe, false);
                    }
                    Step::Execute => {
                        frames::put(&mut server.output, b'E', &[&steps.execute()]);
                        ask(server, Asked::Execute, false);
                    }
                }
            }
        }
    }
    matches!(job.ask, Ask::Simple(_))
}
