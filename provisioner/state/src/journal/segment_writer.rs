//! Sends the lines of a journal to the store, in segments.
//!
//! Lines are gathered until something waits for them, until they have [`MAX_BYTES`], or for [`MAX_AGE`]. Several segments
//! may be under way; a line counts as written once its segment and all before it are. The store decides who owns a number: if
//! another run has sealed the journal, the segment that meets the seal and the following ones are written behind it, where the
//! next run finds them.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::header::{StoredHeader, StoredSegment};
use super::seal::read_seal;
use super::segment::object_name;
use super::statistics::SegmentStatistics;
use super::stored::{SavedEnd, remove_saved, seal_ended};
use crate::error::StateError;
use crate::receipt::{Progress, Receipt, SendFailure, Waits};
use crate::store::{CreatedObject, ObjectErrorKind, StackReference, StateStore, StoreError};

/// Size at which gathered lines are sent, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Time after which gathered lines are sent.
const MAX_AGE: Duration = Duration::from_millis(900);
/// Time for which lines that something waits for are gathered, so that they share a segment.
const GATHER: Duration = Duration::from_millis(1);
/// Largest number of segments that are under way.
const MAX_IN_FLIGHT: usize = 8;
/// Time for which a segment is tried again while the store does not reply.
const PATIENCE: Duration = Duration::from_secs(60);
/// Delay before a segment is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Place of the segments of a journal.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPlace {
    pub(crate) store: StateStore,
    pub(crate) stack: StackReference,
    /// Id of the run.
    pub(crate) run: String,
    /// User and host of the run, such as `ada@reefbox`.
    pub(crate) by: String,
}

/// Writer of the segments of a journal. Clones share it. Once the last one is dropped, nothing is sent any more.
#[derive(Clone)]
pub(crate) struct SegmentWriter {
    shared: Arc<Shared>,
    /// Ends the task, which shares the rest.
    _end: Arc<DropGuard>,
}

struct Shared {
    place: SegmentPlace,
    queue: Mutex<Queue>,
    /// Wakes the task once there is something to send.
    wake: Notify,
    progress: watch::Sender<Progress>,
    waits: Waits,
    /// Cancelled once the run is asked to stop: lines are sent at once from then on.
    stop: CancellationToken,
    /// Cancelled once another run has sealed the journal.
    lost: CancellationToken,
    /// Cancelled once nobody can add lines.
    ended: CancellationToken,
}

/// Last segment of a run that has saved its state: its `close` line explains the state as long as another one is there.
pub(crate) struct LastSegment {
    /// Name of the object, unless there is none, or the segments stay and are marked.
    name: Option<String>,
    end: SavedEnd,
    place: SegmentPlace,
}

impl LastSegment {
    /// Removes it, or marks it as saved. The lock of the run need not be held: a run that begins meanwhile finds by the `close`
    /// line that the state has everything, and removes the segment, too.
    ///
    /// # Errors
    /// [`StoreError`] if neither is possible.
    pub(crate) async fn remove(self) -> Result<(), StoreError> {
        let SegmentPlace { store, stack, run, .. } = &self.place;
        remove_saved(store, stack, run, self.name.as_slice(), self.end).await.map(drop)
    }
}

/// Lines that are not under way yet.
#[derive(Default)]
struct Queue {
    header: Option<StoredHeader>,
    text: Vec<u8>,
    lines: usize,
    /// Number of lines that are under way or written.
    cut: usize,
    /// Number of all lines that were added, with the `close` line.
    added: usize,
    /// Time of the first line.
    since: Option<Instant>,
    /// Time of the first line that something waits for.
    awaited_since: Option<Instant>,
    next_number: u64,
    /// Names of the objects that may exist, in their order.
    names: Vec<String>,
    /// Segments that could not be written.
    unsent: Vec<Cut>,
    /// `true` once a write has failed that the store may still receive, also after the end of the run.
    may_arrive_late: bool,
    statistics: SegmentStatistics,
    task: JoinSet<()>,
}

/// Lines of one segment.
#[derive(Clone)]
struct Cut {
    /// Place among all segments of the run.
    place: u64,
    /// Number of the object, which is another one behind a seal.
    number: u64,
    header: StoredHeader,
    first: usize,
    lines: usize,
    /// Number of all lines up to its last one, with the `close` line.
    last: usize,
    text: Bytes,
    since: Instant,
}

impl SegmentWriter {
    /// Creates a writer, which sends nothing before the first line.
    pub(crate) fn new(place: SegmentPlace, stop: CancellationToken, lost: CancellationToken) -> Self {
        let (progress, _) = watch::channel(Progress::default());
        let (queue, wake, waits) = (Mutex::default(), Notify::new(), Waits::default());
        let ended = CancellationToken::new();
        let end = Arc::new(ended.clone().drop_guard());
        let shared = Shared { place, queue, wake, progress, waits, stop, lost, ended };
        Self { shared: Arc::new(shared), _end: end }
    }

    /// Adds lines, which follow those that were added before. Returns the receipt for them, which is complete unless they are
    /// awaited. Must be called within a runtime.
    pub(super) fn push(&self, header: StoredHeader, text: &[u8], lines: usize, is_awaited: bool) -> Receipt {
        let mut queue = self.shared.queue();
        queue.lines += lines;
        self.add(queue, header, text, lines, is_awaited)
    }

    /// Adds the line that ends the journal.
    pub(super) fn push_close(&self, header: StoredHeader, line: &[u8]) {
        // The caller flushes the lines.
        drop(self.add(self.shared.queue(), header, line, 1, false));
    }

    fn add(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        header: StoredHeader,
        text: &[u8],
        added: usize,
        is_awaited: bool,
    ) -> Receipt {
        queue.header = Some(header);
        queue.text.extend_from_slice(text);
        queue.added += added;
        queue.since.get_or_insert_with(Instant::now);
        if is_awaited {
            queue.awaited_since.get_or_insert_with(Instant::now);
        }
        let last = queue.added;
        if queue.task.is_empty() {
            self.start(&mut queue);
        }
        drop(queue);
        self.shared.wake.notify_one();
        if !is_awaited {
            return Receipt::complete();
        }
        let progress = self.shared.progress.subscribe();
        Receipt::of_line(self.shared.place.stack.clone(), last, progress, self.shared.waits.clone())
    }

    fn start(&self, queue: &mut Queue) {
        let shared = Arc::clone(&self.shared);
        queue.task.spawn(async move {
            let ended = shared.ended.clone();
            ended.run_until_cancelled(shared.send_all()).await;
        });
    }

    /// Sends all lines, also those that could not be sent before, and waits until the store has them.
    ///
    /// # Errors
    /// [`StateError`] if the store cannot be reached.
    pub(crate) async fn flush(&self) -> Result<(), StateError> {
        let last = {
            let mut queue = self.shared.queue();
            if queue.since.is_some() {
                queue.awaited_since.get_or_insert_with(Instant::now);
            }
            if !queue.unsent.is_empty() {
                self.shared.progress.send_modify(|progress| progress.failure = None);
                queue.task = JoinSet::new();
                self.start(&mut queue);
            }
            queue.added
        };
        self.shared.wake.notify_one();
        let mut progress = self.shared.progress.subscribe();
        let ended = progress.wait_for(|progress| progress.lines >= last || progress.failure.is_some()).await;
        // The sender lives as long as this writer.
        let failure = ended.ok().and_then(|progress| progress.failure.clone().filter(|_| progress.lines < last));
        failure.map_or(Ok(()), |failure| Err(failure.into_error(&self.shared.place.stack)))
    }

    /// Removes the segments after the state was saved, except the last one, or marks them as saved in a store that does not allow to
    /// remove them. If a write may arrive later, leaves a seal, by which the next run recognizes what it writes.
    ///
    /// # Errors
    /// [`StoreError`] if one cannot be removed, or the seal cannot be written.
    pub(crate) async fn remove_but_last(&self) -> Result<LastSegment, StoreError> {
        let (mut names, mut task, number, lines, may_arrive_late) = {
            let mut queue = self.shared.queue();
            let (names, task) = (take(&mut queue.names), take(&mut queue.task));
            (names, task, queue.next_number, queue.cut, queue.may_arrive_late)
        };
        task.shutdown().await;
        let SegmentPlace { store, stack, run, .. } = &self.shared.place;
        if may_arrive_late {
            seal_ended(store, stack, run, number, lines).await?;
        }
        let (last, end) = (names.pop(), SavedEnd { number, lines });
        let is_removed = remove_saved(store, stack, run, &names, end).await?;
        Ok(LastSegment { name: last.filter(|_| is_removed), end, place: self.shared.place.clone() })
    }

    /// Returns how many segments were written, and how long that took.
    pub(crate) fn statistics(&self) -> SegmentStatistics {
        self.shared.queue().statistics.clone().with_waits(self.shared.waits.total())
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends lines until a segment cannot be written.
    async fn send_all(&self) {
        let mut sending = FuturesUnordered::new();
        // Segments that are not known to be written with all before them, and whether they are.
        let mut open: VecDeque<(Cut, bool)> = VecDeque::new();
        let unsent = take(&mut self.queue().unsent);
        sending.extend(unsent.iter().cloned().map(|cut| self.send(cut)));
        open.extend(unsent.into_iter().map(|cut| (cut, false)));
        loop {
            let due = if sending.len() < MAX_IN_FLIGHT { self.due() } else { None };
            let is_due = async {
                match due {
                    Some(time) => sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = self.stop.cancelled(), if !self.stop.is_cancelled() => {}
                () = is_due => {
                    let Some(cut) = self.cut() else { continue };
                    open.push_back((cut.clone(), false));
                    sending.push(self.send(cut));
                }
                Some(sent) = sending.next(), if !sending.is_empty() => {
                    match sent {
                        Ok(place) => open.iter_mut().for_each(|(cut, is_written)| *is_written |= cut.place == place),
                        Err(failure) => {
                            let unsent = open.into_iter().filter(|(_, is_written)| !is_written).map(|(cut, _)| cut);
                            self.queue().unsent = unsent.collect();
                            self.progress.send_modify(|progress| progress.failure = Some(failure));
                            return;
                        }
                    }
                    while let Some((Cut { last, .. }, true)) = open.front() {
                        let last = *last;
                        open.pop_front();
                        self.progress.send_modify(|progress| progress.lines = last);
                    }
                }
            }
        }
    }

    /// Returns the time at which the gathered lines are sent; `None` if there are none.
    fn due(&self) -> Option<Instant> {
        let queue = self.queue();
        let since = queue.since?;
        if queue.text.len() >= MAX_BYTES {
            return Some(since);
        }
        let awaited = if self.stop.is_cancelled() { Some(since) } else { queue.awaited_since };
        Some(awaited.map_or(since + MAX_AGE, |awaited| awaited + GATHER))
    }

    /// Takes the gathered lines.
    fn cut(&self) -> Option<Cut> {
        let mut queue = self.queue();
        let (header, since) = (queue.header.clone()?, queue.since.take()?);
        let (number, first, lines) = (queue.next_number, queue.cut + 1, take(&mut queue.lines));
        queue.next_number += 1;
        queue.cut += lines;
        queue.awaited_since = None;
        queue.names.push(object_name(number));
        let (last, text) = (queue.added, Bytes::from(take(&mut queue.text)));
        Some(Cut { place: number, number, header, first, lines, last, text, since })
    }

    /// Writes a segment, and returns its place.
    async fn send(&self, mut cut: Cut) -> Result<u64, SendFailure> {
        let begun = Instant::now();
        let SegmentPlace { store, stack, run, .. } = &self.place;
        loop {
            let content = content(&cut, &self.place);
            let failed = match store.create_journal_object(stack, run, &object_name(cut.number), content).await {
                Ok(CreatedObject::Written) => {
                    self.queue().statistics.add(cut.since.elapsed());
                    return Ok(cut.place);
                }
                Ok(CreatedObject::Other(found)) => {
                    if read_seal(&found).is_none() {
                        self.queue().names.retain(|name| *name != object_name(cut.number));
                        return Err(SendFailure::Foreign(store.journal_location(stack, run)));
                    }
                    self.mark_sealed();
                    let mut queue = self.queue();
                    queue.names.retain(|name| *name != object_name(cut.number));
                    cut.number = queue.next_number;
                    queue.next_number += 1;
                    queue.names.push(object_name(cut.number));
                    continue;
                }
                Err(error) => error,
            };
            self.queue().may_arrive_late = true;
            let can_recover = matches!(&failed, StoreError::Request(error)
                if matches!(error.kind, ObjectErrorKind::Unreachable | ObjectErrorKind::Other));
            if !can_recover || begun.elapsed() >= PATIENCE {
                return Err(SendFailure::Store(Arc::new(failed)));
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Another run has taken the journal over: nothing begins any more.
    fn mark_sealed(&self) {
        self.progress.send_modify(|progress| progress.is_sealed = true);
        self.lost.cancel();
    }
}

fn content(cut: &Cut, place: &SegmentPlace) -> Bytes {
    let segment = StoredSegment { number: cut.number, first: cut.first, lines: cut.lines };
    let (run, by) = (Some(place.run.clone()), Some(place.by.clone()));
    let header = StoredHeader { run, by, segment: Some(segment), ..cut.header.clone() };
    let mut content = serde_json::to_vec(&header).expect("texts and numbers are always JSON");
    content.push(b'\n');
    content.extend_from_slice(&cut.text);
    content.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryObjects, StoreOptions};

    #[tokio::test]
    async fn task_ends_with_the_last_writer() {
        let store = StateStore::open(Arc::new(MemoryObjects::default()), StoreOptions::default()).await.unwrap();
        let stack = StackReference::new("tank", "reef").unwrap();
        let place = SegmentPlace { store, stack, run: "first".to_owned(), by: "ada@reefbox".to_owned() };
        let writer = SegmentWriter::new(place, CancellationToken::new(), CancellationToken::new());
        let header: StoredHeader = serde_json::from_str(r#"{"journal":1,"base":null,"secrets":null}"#).unwrap();
        drop(writer.push(header, b"{}\n", 1, true));
        let (shared, other) = (Arc::downgrade(&writer.shared), writer.clone());
        drop(writer);
        other.flush().await.unwrap();
        drop(other);
        while shared.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }
}
