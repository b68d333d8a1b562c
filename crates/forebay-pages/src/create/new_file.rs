//! A file in the making: written in runs, then published.
//!
//! Promises: bytes gather in a buffer and are written a run at a time; while one run is written the next gathers. A file has two
//! buffers at most. Until `publish` nobody sees the file. `publish` makes all bytes durable (`fdatasync`), then gives the file its
//! name (`rename`), then makes the name durable (`fsync` of the directory): a crash at any moment leaves under the name what was
//! there before, or the new file, whole. A side file with checksums is durable under its name before the file gets its own.
//!
//! Knows nothing of pages in memory: readers who have the old file open go on reading it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, mem};

use tokio::sync::{mpsc, oneshot};

use super::buffer::{Buffer, Written};
use super::creator::Creator;
use super::temporary::Temporary;
use crate::blocking::{blocking, joined};
use crate::checksum::Sums;
use crate::error::PageError;
use crate::storage::local::transfer::{Operation, Transfer};
use crate::storage::request::CompletionHandler;

/// The most buffers of a file: one is filled while the other is written.
const BUFFERS: usize = 2;

/// A file in the making, which nobody sees until it is published: [`PagePool::create`](crate::PagePool::create).
///
/// `publish` makes all bytes durable, then gives the file its name, then makes that durable: a crash at any moment leaves under the
/// name what was there before, or the new file, whole. Readers who have the old one open go on reading it.
///
/// ```
/// use forebay::pages::PagePool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// let pool = PagePool::builder().memory(1 << 20).build()?;
/// let mut new = pool.create(&path).await?;
/// new.write("half of it, ").await?;
/// assert!(!path.exists()); // Nobody sees it yet,
/// new.write("and the other half").await?;
/// new.publish().await?;
/// assert_eq!(std::fs::read_to_string(&path)?, "half of it, and the other half"); // and then all of it.
///
/// let mut given_up = pool.create(&path).await?;
/// given_up.write("nothing").await?;
/// drop(given_up);
/// assert_eq!(pool.open(&path).await?.len(), 30);
/// # Ok(())
/// # }
/// ```
///
/// Dropping it, or any error, gives it up: the temporary file is removed, and what has the file's name stays as it is. Besides the
/// pool's memory it takes up to two buffers of the pool's `max_run_bytes` (8 MiB each at most).
#[must_use = "it leaves nothing behind unless it is published"]
pub struct NewFile {
    creator: Arc<Creator>,
    /// Absolute.
    target: Arc<Path>,
    /// Bytes taken.
    length: u64,
    checksums: Option<(PathBuf, Sums)>,
    /// Or why the file has been given up.
    state: Result<Open, PageError>,
}

/// A temporary file, and what is being written to it.
struct Open {
    temporary: Temporary,
    /// Never full.
    filling: Option<Buffer>,
    /// Where the next run begins, in bytes.
    offset: u64,
    /// <= `BUFFERS`; with `filling` as well.
    in_flight: usize,
    sender: mpsc::Sender<Written>,
    written: mpsc::Receiver<Written>,
}

/// A file whose bytes are durable, and which has not got its name.
struct Ready {
    temporary: Temporary,
    target: Arc<Path>,
}

impl NewFile {
    pub(crate) async fn create(creator: &Arc<Creator>, target: &Path) -> Result<Self, PageError> {
        let made = Self::make(creator, target).await;
        if made.is_err() {
            creator.counters.failed();
        }
        made
    }

    async fn make(creator: &Arc<Creator>, target: &Path) -> Result<Self, PageError> {
        let (creator, target) = (Arc::clone(creator), target.to_path_buf());
        blocking(move || {
            let target: Arc<Path> = std::path::absolute(&target).unwrap_or(target).into();
            let temporary = creator
                .temporary(&target)
                .map_err(|cause| PageError::file(&target, cause))?;
            let (sender, written) = mpsc::channel(BUFFERS);
            Ok(Self {
                creator,
                target,
                length: 0,
                checksums: None,
                state: Ok(Open {
                    temporary,
                    filling: None,
                    offset: 0,
                    in_flight: 0,
                    sender,
                    written,
                }),
            })
        })
        .await
    }

    /// Writes the checksums of the file's pages to a file of this name, for
    /// [`Checksums::side_file`](crate::Checksums::side_file); to be called before the first write, and under another name
    /// than the file's: otherwise `write` and `publish` end with [`PageError::Settings`]. They are for pools with the
    /// same page size as this one.
    ///
    /// The side file is published before the file, so whoever finds the new file finds its side file. Two names cannot change in
    /// one step, though: while the publishing goes on, and after a crash or an error in the middle of it, the *old* file may be
    /// beside the new side file. Then opening it with the side file, or reading the pages in which the two differ, is an error
    /// ([`PageError::Checksums`], [`PageError::Checksum`]) and never gives wrong bytes; publishing again repairs it. If the old
    /// file has to be readable at every moment, give each version a side file of its own name. For the same reason two writers
    /// must not publish the same pair at the same time.
    pub fn checksums(mut self, side_file: impl Into<PathBuf>) -> Self {
        if self.length > 0 {
            self.state = Err(PageError::Settings(
                "checksums have to be asked for before the first write",
            ));
        }
        let side_file = side_file.into();
        if std::path::absolute(&side_file).is_ok_and(|side_file| side_file == *self.target) {
            self.state = Err(PageError::Settings("a file's checksums cannot have its own name"));
        }
        self.checksums = Some((side_file, Sums::new(self.creator.page_size)));
        self
    }

    /// Appends these bytes. Waits only while two runs are being written.
    ///
    /// # Errors
    /// [`PageError::Io`] if bytes could not be written, these or earlier ones: the file is given up, and every later call ends
    /// with the same error. [`PageError::Closed`].
    ///
    /// # Cancel safety
    /// If it is dropped while it waits, a part of the bytes may have been appended: the file is given up
    /// ([`PageError::Abandoned`]).
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), PageError> {
        let bytes = bytes.as_ref();
        // Taken out: a future that is dropped halfway takes it along.
        let mut open = self.take()?;
        let outcome = open.append(&self.creator, &self.target, bytes).await;
        if let Err(error) = outcome {
            return Err(self.give_up(open.temporary, error).await);
        }
        self.state = Ok(open);
        self.length += bytes.len() as u64;
        if let Some((_, sums)) = &mut self.checksums {
            sums.add(bytes);
        }
        Ok(())
    }

    /// Gives the file its name, in the place of what has it: when this returns `Ok`, the file is there, whole, also after a power
    /// cut. Readers who have the old one open go on reading it; the name leads to the new one from now on. If several are published
    /// under one name, the last one stays. A symbolic link of that name is replaced, not followed.
    ///
    /// # Errors
    /// [`PageError::Io`], [`PageError::File`], [`PageError::Abandoned`]: nothing has changed, and nothing is left behind.
    /// [`PageError::Undurable`]: all see the new file, but a power cut may bring the old one back. [`PageError::Closed`]: the
    /// runtime is shutting down, and the file was published or was not.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it publishes the file, possibly a moment later, or does not.
    pub async fn publish(mut self) -> Result<(), PageError> {
        let published = self.publish_both().await;
        match &published {
            Ok(()) => self.creator.counters.published(),
            Err(_) => self.creator.counters.failed(),
        }
        published
    }

    /// How many bytes it has so far.
    #[expect(clippy::len_without_is_empty, reason = "of a file, as in std::fs::Metadata")]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// The name that it is to have, made absolute.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// The file, after its side file if it has one.
    async fn publish_both(&mut self) -> Result<(), PageError> {
        let file = self.ready().await?;
        let side = match self.checksums.take() {
            None => None,
            Some((path, sums)) => match self.side_file(&path, sums).await {
                Ok(side) => Some(side),
                Err(error) => {
                    file.temporary.remove().await;
                    return Err(error);
                }
            },
        };
        let creator = Arc::clone(&self.creator);
        // In a task of its own: a caller that leaves in the middle leaves no side file without its file.
        joined(tokio::spawn(async move {
            if let Some(Err(error)) = match side {
                Some(side) => Some(side.appear(&creator).await),
                None => None,
            } {
                file.temporary.remove().await;
                return Err(error);
            }
            file.appear(&creator).await
        }))
        .await
    }

    /// A side file with these checksums, all but its name.
    async fn side_file(&self, path: &Path, sums: Sums) -> Result<Ready, PageError> {
        let mut side = Self::make(&self.creator, path).await?;
        side.write(sums.side_file()).await?;
        side.ready().await
    }

    /// Writes what is left, and makes it durable.
    async fn ready(&mut self) -> Result<Ready, PageError> {
        let mut open = self.take()?;
        match open.finish(&self.creator, &self.target).await {
            Ok(()) => Ok(Ready {
                temporary: open.temporary,
                target: Arc::clone(&self.target),
            }),
            Err(error) => Err(self.give_up(open.temporary, error).await),
        }
    }

    /// Takes the file out, unless it has been given up. Until it is put back it counts as given up.
    fn take(&mut self) -> Result<Open, PageError> {
        match &self.state {
            Err(error) => Err(error.clone()),
            Ok(_) => {
                let path = Arc::clone(&self.target);
                mem::replace(&mut self.state, Err(PageError::Abandoned { path }))
            }
        }
    }

    async fn give_up(&mut self, temporary: Temporary, error: PageError) -> PageError {
        self.state = Err(error.clone());
        temporary.remove().await;
        error
    }
}

impl fmt::Debug for NewFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFile")
            .field("path", &self.target)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Open {
    async fn append(&mut self, creator: &Arc<Creator>, target: &Arc<Path>, mut bytes: &[u8]) -> Result<(), PageError> {
        while !bytes.is_empty() {
            let mut buffer = match self.filling.take() {
                Some(buffer) => buffer,
                None if self.in_flight < BUFFERS => creator.buffer(target)?,
                None => self.next_buffer().await?,
            };
            let count = buffer.append(bytes);
            bytes = &bytes[count..];
            if buffer.is_full() {
                self.submit(creator, target, buffer);
            } else {
                self.filling = Some(buffer);
            }
        }
        Ok(())
    }

    fn submit(&mut self, creator: &Arc<Creator>, target: &Arc<Path>, buffer: Buffer) {
        let offset = self.offset;
        self.offset += buffer.filled() as u64;
        self.in_flight += 1;
        creator.engine.submit(vec![buffer.transfer(
            &creator.counters,
            self.temporary.file(),
            target,
            offset,
            &self.sender,
        )]);
    }

    /// Waits for a run to be written, and gives its buffer back, empty.
    async fn next_buffer(&mut self) -> Result<Buffer, PageError> {
        let (buffer, outcome) = self.written.recv().await.expect("one of the senders is its own");
        self.in_flight -= 1;
        outcome.map(|()| buffer)
    }

    /// All that was appended is in the file, and durable.
    async fn finish(&mut self, creator: &Arc<Creator>, target: &Arc<Path>) -> Result<(), PageError> {
        if let Some(tail) = self.filling.take() {
            self.submit(creator, target, tail);
        }
        while self.in_flight > 0 {
            self.next_buffer().await?;
        }
        let (sender, synced) = oneshot::channel();
        creator.engine.submit(vec![Transfer {
            file: Arc::clone(self.temporary.file()),
            operation: Operation::Sync,
            offset: 0,
            pieces: Vec::new(),
            handler: Box::new(DataSync(sender)),
        }]);
        let outcome = synced.await.expect("the engine ends what it was given");
        outcome.map_err(|cause| PageError::io(target, 0, self.offset, cause))
    }
}

impl Ready {
    /// Gives the file its name, durably.
    async fn appear(self, creator: &Creator) -> Result<(), PageError> {
        let Self { temporary, target } = self;
        let directory = Arc::clone(temporary.directory());
        let renamed = Arc::clone(&target);
        let (number, outcome) = blocking(move || {
            let directory = Arc::clone(temporary.directory());
            let number = temporary
                .rename(&renamed)
                .map_err(|cause| PageError::file(&renamed, cause))?;
            Ok((number, directory.make_durable_if_idle(number)))
        })
        .await?;
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => directory.durable(number).await,
        };
        let is_shared = outcome.map_err(|cause| PageError::Undurable { path: target, cause })?;
        if is_shared {
            creator.counters.shared_sync();
        }
        Ok(())
    }
}

/// The sync of a new file's bytes.
struct DataSync(oneshot::Sender<io::Result<()>>);

impl CompletionHandler for DataSync {
    fn is_wanted(&self) -> bool {
        !self.0.is_closed()
    }

    fn completed(self: Box<Self>, outcome: io::Result<usize>) {
        // The writer may have been dropped meanwhile.
        let _ = self.0.send(outcome.map(drop));
    }

    fn cancelled(self: Box<Self>) {}
}
