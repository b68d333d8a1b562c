//! Pipeline: statements that are sent together, in one write, and answered in their order.
//!
//! Promises: each has its own answer; one that fails costs only itself, as far as the transaction lets it, unless it was sent
//! [together](Pipeline::together) with others: then the server skips those behind it, and they are
//! [skipped](Refusal::Skipped). One that cannot be sent is not, and the others are. No answer stands before that to its Sync is
//! there: outside of a transaction it is the Sync that commits. Where the connection is lost, those that stood before have their
//! answers. Knows no transaction.

use bytes::BytesMut;
use postgres_types::{BorrowToSql, Format, IsNull};

use super::answered::Answered;
use super::prepared::Prepared;
use forebay_pg_link::{self as pg_link, Link, LinkError, Malformed, ServerError, Tag, Unsendable};

/// Statements on their way to a server.
pub(super) struct Pipeline<'l> {
    link: &'l mut Link,
    /// What the callers' rows may take; ours are as long as they have to be.
    rows_bytes_max: usize,
    asked: Vec<Asked>,
}

/// What an answer is wanted for.
enum Asked {
    /// Nothing was sent.
    Unsent(Box<Unsendable>),
    /// One or more statements in text.
    Command,
    /// A statement, whose Sync is behind it or behind one of the next.
    Statement { answered: Answered, most: usize },
    /// A Sync, behind so many statements.
    Sync { behind: usize },
}

/// Whose statement is executed.
#[derive(Clone, Copy)]
pub(super) enum Whose {
    /// Its rows may take so much memory and no more.
    Callers,
    /// Its answer is as long as it has to be.
    Ours,
}

/// Why a statement has no answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The server says why.
    Server(Box<ServerError>),
    /// It could not be sent.
    Unsendable(Box<Unsendable>),
    /// One before it had failed.
    Skipped,
    /// The connection was lost before it was answered.
    Lost(String),
}

/// What one statement was answered.
pub(super) type Answer = Result<Answered, Refusal>;

impl<'l> Pipeline<'l> {
    pub(super) fn new(link: &'l mut Link, rows_bytes_max: usize) -> Self {
        Self {
            link,
            rows_bytes_max,
            asked: Vec::new(),
        }
    }

    /// One or more statements without parameters, of which nothing is wanted but that they were done.
    pub(super) fn command(&mut self, sql: &str) {
        let asked = match self.link.outbox().query(sql) {
            Ok(()) => Asked::Command,
            Err(error) => Asked::Unsent(Box::new(error)),
        };
        self.asked.push(asked);
    }

    /// A statement.
    pub(super) fn execute<P: BorrowToSql>(
        &mut self,
        whose: Whose,
        prepared: &Prepared,
        parameters: impl IntoIterator<Item = P, IntoIter: Clone>,
    ) {
        self.bind(whose, prepared, parameters);
        self.sync(1);
    }

    /// Statements that fail together: what is behind one that fails is skipped. The server answers them at once.
    pub(super) fn together(&mut self, ask: impl FnOnce(&mut Together<'_, 'l>)) {
        let before = self.asked.len();
        ask(&mut Together(self));
        self.sync(self.asked.len() - before);
    }

    fn sync(&mut self, behind: usize) {
        self.link.outbox().sync();
        self.asked.push(Asked::Sync { behind });
    }

    fn bind<P: BorrowToSql>(
        &mut self,
        whose: Whose,
        prepared: &Prepared,
        parameters: impl IntoIterator<Item = P, IntoIter: Clone>,
    ) {
        let outbox = self.link.outbox();
        let parameters = parameters.into_iter().zip(&*prepared.parameters);
        let formats = parameters.clone().map(
            |(parameter, kind)| match parameter.borrow_to_sql().encode_format(kind) {
                Format::Text => 0,
                Format::Binary => 1,
            },
        );
        let encode = |(parameter, kind): (P, &postgres_types::Type), bytes: &mut BytesMut| {
            let encoded = parameter.borrow_to_sql().to_sql_checked(kind, bytes)?;
            Ok(match encoded {
                IsNull::Yes => pg_link::IsNull::Yes,
                IsNull::No => pg_link::IsNull::No,
            })
        };
        // All results in binary.
        let bound = outbox.bind("", prepared.name(), formats, parameters.clone(), encode, [1]);
        if let Err(error) = bound.and_then(|()| outbox.execute("", 0)) {
            return self.asked.push(Asked::Unsent(Box::new(error)));
        }
        let most = match whose {
            Whose::Callers => self.rows_bytes_max,
            Whose::Ours => usize::MAX,
        };
        self.asked.push(Asked::Statement {
            answered: Answered::of(prepared),
            most,
        });
    }

    /// A statement of ours without parameters, in text.
    fn text(&mut self, sql: &str) {
        let outbox = self.link.outbox();
        let none = std::iter::empty::<()>;
        let encode = |(), _: &mut BytesMut| unreachable!("it has no parameters");
        let asked = outbox
            .parse("", sql, &[])
            .and_then(|()| outbox.bind("", "", std::iter::empty(), none(), encode, []))
            .and_then(|()| outbox.execute("", 0));
        self.asked.push(match asked {
            Ok(()) => Asked::Statement {
                answered: Answered::default(),
                most: usize::MAX,
            },
            Err(error) => Asked::Unsent(Box::new(error)),
        });
    }

    /// Sends all of it and waits for all answers, one each, in order.
    ///
    /// # Cancel safety
    /// Dropped before it completes, some of it was done or will be, and the link is not idle.
    pub(super) async fn run(self) -> Vec<Answer> {
        let Self { link, asked, .. } = self;
        let mut answers = Vec::with_capacity(asked.len());
        let mut has_failed = false;
        let mut lost: Option<String> = None;
        for asked in asked {
            let answer = match asked {
                Asked::Sync { behind } => {
                    let begin = answers.len() - behind;
                    match &lost {
                        None => lost = synced(link, &mut answers[begin..]).await.err(),
                        Some(cause) => lose(&mut answers[begin..], cause),
                    }
                    has_failed = false;
                    continue;
                }
                Asked::Unsent(error) => Err(Refusal::Unsendable(error)),
                _ if lost.is_some() => Err(Refusal::Lost(lost.clone().expect("it was looked at"))),
                Asked::Statement { .. } if has_failed => Err(Refusal::Skipped),
                Asked::Command => command(link).await,
                Asked::Statement { answered, most } => {
                    let answer = statement(link, answered, most).await;
                    has_failed = answer.is_err();
                    answer
                }
            };
            match &answer {
                Err(Refusal::Lost(cause)) => lost = Some(cause.clone()),
                // Nothing comes after it.
                Err(Refusal::Server(error)) if error.ends_the_session() => lost = Some(error.to_string()),
                _ => {}
            }
            answers.push(answer);
        }
        answers
    }
}

/// Statements of a pipeline that fail together.
pub(super) struct Together<'p, 'l>(&'p mut Pipeline<'l>);

impl Together<'_, '_> {
    /// A statement without parameters, of which nothing is wanted but that it was done.
    pub(super) fn command(&mut self, sql: &str) {
        self.0.text(sql);
    }

    /// A statement.
    pub(super) fn execute<P: BorrowToSql>(
        &mut self,
        whose: Whose,
        prepared: &Prepared,
        parameters: impl IntoIterator<Item = P, IntoIter: Clone>,
    ) {
        self.0.bind(whose, prepared, parameters);
    }
}

impl From<LinkError> for Refusal {
    fn from(error: LinkError) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Lost(malformed.to_string())
    }
}

/// All answers to one Query.
async fn command(link: &mut Link) -> Answer {
    let mut answer = Ok(Answered::default());
    loop {
        let message = link.answer().await?;
        match message.tag() {
            Tag::READY_FOR_QUERY => return answer,
            Tag::ERROR_RESPONSE => {
                let error = ServerError::read(&message)?;
                let is_over = error.ends_the_session();
                answer = Err(Refusal::Server(Box::new(error)));
                if is_over {
                    return answer;
                }
            }
            Tag::COPY_IN_RESPONSE => return Err(copies_in()),
            _ => {}
        }
    }
}

/// The answer to Bind and Execute.
async fn statement(link: &mut Link, mut answered: Answered, most: usize) -> Answer {
    link.discard_rows_beyond(most);
    loop {
        let message = link.answer().await?;
        match message.tag() {
            Tag::DATA_ROW => answered.take(&message, most)?,
            Tag::COMMAND_COMPLETE => {
                answered.count = message.command_count()?;
                return Ok(answered);
            }
            Tag::EMPTY_QUERY_RESPONSE => return Ok(answered),
            Tag::ERROR_RESPONSE => return Err(Refusal::Server(Box::new(ServerError::read(&message)?))),
            Tag::PARSE_COMPLETE | Tag::BIND_COMPLETE | Tag::COPY_OUT_RESPONSE | Tag::COPY_DATA | Tag::COPY_DONE => {}
            Tag::COPY_IN_RESPONSE => return Err(copies_in()),
            tag => return Err(Refusal::Lost(format!("a message {tag} came to a statement"))),
        }
    }
}

/// What follows would be taken for data.
fn copies_in() -> Refusal {
    Refusal::Lost("a statement wants data that nobody has (COPY FROM STDIN)".to_owned())
}

/// The rest up to the answer to a Sync, behind `answers`. Those that are there were not committed if it fails.
///
/// # Errors
/// The cause, where the connection is lost. Whether they were committed is not known then.
async fn synced(link: &mut Link, answers: &mut [Answer]) -> Result<(), String> {
    loop {
        let lost = match link.answer().await {
            Ok(message) => match message.tag() {
                Tag::READY_FOR_QUERY => return Ok(()),
                Tag::ERROR_RESPONSE => match ServerError::read(&message) {
                    Ok(error) if error.ends_the_session() => error.to_string(),
                    Ok(error) => {
                        for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                            *answer = Err(Refusal::Server(Box::new(error.clone())));
                        }
                        continue;
                    }
                    Err(malformed) => malformed.to_string(),
                },
                _ => continue,
            },
            Err(error) => error.to_string(),
        };
        lose(answers, &lost);
        return Err(lost);
    }
}

/// Nobody knows of those that had answers whether they stand.
fn lose(answers: &mut [Answer], cause: &str) {
    for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
        *answer = Err(Refusal::Lost(cause.to_owned()));
    }
}
