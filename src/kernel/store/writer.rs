//! The one thread that commits.
//!
//! The world loop hands over the [`Commit`] of each step and never waits. The writer joins everything that waits,
//! up to [`limit::COMMIT_BYTES_MAX`], into one atomic batch with one fsync, and then lets go, in order, what
//! waited for it: replies, effects, events. While one batch is on its way to the disk the next one gathers, so that
//! the slower the disk, the larger the batches.
//!
//! A disk without room is waited for, see [`disk_watch`](crate::kernel::disk_watch): readers go on, and writing commands are
//! refused meanwhile.
//!
//! Nothing is ever dropped: the queue has no bound of its own. Its bytes are counted, and the world loop refuses
//! writing commands while [`CommitQueue::is_full`]. After a failed write nothing is let go any more, for it is not
//! known what reached the disk. If the disk lacked room, the store is opened anew when it has some; else the process ends. Either
//! way what reached the disk is restored.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::kernel::engine::Told;
use agentsvc_systems::kernel::inputs::entry::write_entry;
use crossbeam_channel::Receiver;

pub use super::commit_queue::CommitQueue;
pub(crate) use super::commit_queue::ERASED_ROWS_MAX;
use super::commit_queue::{Erasure, Message};
use super::journal::entry::Body;
use super::journal::{Journal, Local, mark_of};
use super::step_log::{StepLog, WrittenStep};
use super::{Error, Store, is_full};
use room::Room;

pub use room::Stuck;

mod room;

/// Bytes made ready for each record of a step's entry in the input log.
const ENTRY_BYTES_OF_OP: usize = 32;
/// Batches of commits after which waiting erasures get a turn although there is no idle moment.
const ERASE_EVERY_BATCHES: u32 = 16;

/// Where the writer hands what became durable. None of these may block: they run on the writer's thread.
#[derive(Clone)]
pub struct Outlets {
    /// Starts an effect.
    pub effects: Arc<dyn Fn(AnyEffect) + Send + Sync>,
    /// Tells listeners what a step told.
    pub told: Arc<dyn Fn(Told) + Send + Sync>,
    /// The store takes no more: it is to be opened anew. If it found no room on the disk, there is some now.
    pub reopen: Arc<dyn Fn(Stuck) + Send + Sync>,
    /// Another node owns the world since this epoch: nothing more was let go, and this world is to be ended.
    pub fenced: Arc<dyn Fn(u64) + Send + Sync>,
    /// Ends the process with a cause: the store has failed.
    pub fatal: Arc<dyn Fn(String) + Send + Sync>,
}

/// The running writer.
pub struct Writer {
    queue: CommitQueue,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the writer of `store`. There must be no other.
    pub fn start(store: Store, outlets: Outlets) -> Result<Self, Error> {
        Self::start_with(store, outlets, None, Box::new(Local))
    }

    /// The same with another journal, which must be open; hands the inputs of every durable step to the log.
    pub fn start_with(
        store: Store,
        outlets: Outlets,
        inputs: Option<Box<dyn StepLog>>,
        journal: Box<dyn Journal>,
    ) -> Result<Self, Error> {
        let (messages, incoming) = crossbeam_channel::unbounded();
        let (erasures, erasing) = crossbeam_channel::bounded(1);
        let queue = CommitQueue { messages, erasures, backlog: Arc::default(), path: store.path.clone() };
        let path = store.path.to_path_buf();
        let room = Room::new(queue.backlog.clone(), queue.path.clone());
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                WriterLoop { store, journal, outlets, inputs, room, incoming, erasing, batches_since_erase: 0 }.run()
            })
            .map_err(|source| Error::Io { path, source })?;
        Ok(Self { queue, thread })
    }

    /// The way to this writer.
    pub fn queue(&self) -> CommitQueue {
        self.queue.clone()
    }

    /// Makes everything sent so far durable, lets it go and ends the thread.
    pub fn stop(self) {
        self.queue.wait_no_more();
        let _ = self.queue.messages.send(Message::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the store writer panicked");
        }
    }
}

/// What goes into one batch.
#[derive(Default)]
struct Group {
    /// Commits and flushes, in order.
    messages: VecDeque<Message>,
    /// Bytes of the commits.
    bytes: usize,
    /// Any commit with records?
    has_ops: bool,
    /// Rows erased along with it.
    erasure: Option<Erasure>,
    /// End after this group.
    stop: bool,
}

impl Group {
    /// Adds a message; the world has left some of its records to be written here.
    fn add(&mut self, mut message: Message) {
        match &mut message {
            Message::Commit(commit, bytes, _) => {
                commit.write_late();
                self.bytes += *bytes;
                self.has_ops |= !commit.ops.is_empty();
            }
            Message::Flush(_) => {}
            Message::Stop => self.stop = true,
        }
        self.messages.push_back(message);
    }

    fn is_full(&self) -> bool {
        self.stop || self.bytes >= limit::COMMIT_BYTES_MAX
    }
}

/// The state of the writer's thread.
struct WriterLoop {
    store: Store,
    journal: Box<dyn Journal>,
    outlets: Outlets,
    inputs: Option<Box<dyn StepLog>>,
    room: Room,
    incoming: Receiver<Message>,
    erasing: Receiver<Erasure>,
    batches_since_erase: u32,
}

impl WriterLoop {
    fn run(mut self) {
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| self.write_all()));
        if let Ok(Err(error)) = &ended
            && let Some(why) = self.room.may_reopen(error)
        {
            self.room.backlog.poisoned.store(true, Ordering::Release);
            return (self.outlets.reopen)(why);
        }
        let cause = match ended {
            Ok(Ok(())) => return self.close(),
            Ok(Err(Error::Fenced { epoch })) => {
                self.room.backlog.fenced.store(true, Ordering::Release);
                self.room.backlog.poisoned.store(true, Ordering::Release);
                tracing::warn!(epoch, "another node owns the world");
                return (self.outlets.fenced)(epoch);
            }
            Ok(Err(error)) if is_full(&error) => {
                format!(
                    "the store cannot write: {error}; free disk space and start again. No acknowledged change is lost"
                )
            }
            Ok(Err(error)) => format!("the store cannot write: {error}"),
            Err(panic) => format!("the store writer panicked: {}", crate::kernel::world_loop::panic_text(&*panic)),
        };
        // Poisoned before anyone is told, so that no command is taken in between.
        self.room.backlog.poisoned.store(true, Ordering::Release);
        tracing::error!(%cause, "the store failed; the process exits and the next start resumes from disk");
        (self.outlets.fatal)(cause);
    }

    /// Tells who shares the journal that the world is free.
    fn close(&mut self) {
        let closed = self.journal.append(&Body::Close).and_then(|position| {
            let Some(position) = position else { return Ok(()) };
            let position = self.journal.acknowledged(&position)?;
            self.store.batch_of(&Body::Close, Some(&position)).commit().map_err(|error| self.store.failed(error))
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the world could not be given up in the journal; others wait until this node is silent");
        }
    }

    /// Writes group after group until the stop.
    fn write_all(&mut self) -> Result<(), Error> {
        while let Some(group) = self.gather() {
            let stop = group.stop;
            self.write(group)?;
            if stop {
                break;
            }
        }
        Ok(())
    }

    /// Waits for work and takes all that fits one batch; `None` when every sender is gone.
    fn gather(&mut self) -> Option<Group> {
        let mut group = Group::default();
        crossbeam_channel::select_biased! {
            recv(self.incoming) -> message => group.add(message.ok()?),
            recv(self.erasing) -> erasure => {
                group.erasure = Some(erasure.ok()?);
                return Some(group);
            }
        }
        while !group.is_full()
            && let Ok(message) = self.incoming.try_recv()
        {
            group.add(message);
        }
        self.batches_since_erase += 1;
        if self.batches_since_erase >= ERASE_EVERY_BATCHES {
            group.erasure = self.erasing.try_recv().ok();
        }
        if group.erasure.is_some() {
            self.batches_since_erase = 0;
        }
        Some(group)
    }

    /// Makes the group durable and lets go what waited for it.
    fn write(&mut self, mut group: Group) -> Result<(), Error> {
        // What has no records and stands before all that have waits for nothing.
        while let Some(message) = group.messages.pop_front_if(|message| is_without_ops(message)) {
            self.written(&message).into_iter().for_each(|step| self.log(step));
            self.let_go(message);
        }
        let written: Vec<_> = group.messages.iter().filter_map(|message| self.written(message)).collect();
        if group.has_ops || group.erasure.is_some() {
            self.commit(&mut group)?;
        }
        written.into_iter().for_each(|step| self.log(step));
        if let Some(erasure) = group.erasure {
            self.store.stats.rows_erased.fetch_add(erasure.keys.len() as u64, Ordering::Relaxed);
            let _ = erasure.done.send(());
        }
        for message in group.messages {
            self.let_go(message);
        }
        Ok(())
    }

    /// The entry of a step for the input log, while its records are still there to be hashed.
    fn written(&self, message: &Message) -> Option<WrittenStep> {
        let (Message::Commit(commit, ..), Some(_)) = (message, &self.inputs) else { return None };
        let inputs = commit.inputs.as_ref()?;
        let mut entry = Vec::with_capacity(inputs.bytes() + commit.ops.len() * ENTRY_BYTES_OF_OP);
        write_entry(inputs, commit.ops.iter(), &mut entry);
        Some(WrittenStep { entry, number: inputs.number, first: inputs.first, lost: inputs.lost })
    }

    /// Only what is durable goes to the input log, so that it is never ahead of the store.
    fn log(&self, step: WrittenStep) {
        if let Some(inputs) = &self.inputs {
            inputs.send(step);
        }
    }

    /// Appends the whole group to the journal as one entry and writes it into the store as one batch.
    fn commit(&mut self, group: &mut Group) -> Result<(), Error> {
        let step = newest_step(group).filter(|_| group.has_ops);
        let ops = take_ops(group);
        let erased = group.erasure.as_ref().map_or(&[][..], |erasure| &erasure.keys);
        let stats = &self.store.stats;
        stats.ops.fetch_add(ops.len() as u64, Ordering::Relaxed);
        let bytes: usize = ops.iter().map(|op| op.key.len() + op.value.as_ref().map_or(0, Vec::len)).sum();
        stats.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.room.wait_for(bytes);
        let started = Instant::now();
        let body = Body::Step { step, ops: Cow::Borrowed(&ops), erased: Cow::Borrowed(erased) };
        let appended = self.journal.append(&body)?;
        let position = appended.map(|position| self.journal.acknowledged(&position)).transpose()?;
        let batch = self.store.batch_of(&body, position.as_ref());
        let mark = position.and_then(|_| mark_of(&body));
        // The batch has copies of its own.
        drop(ops);
        batch.commit().map_err(|error| self.store.failed(error))?;
        mark.into_iter().for_each(|mark| self.store.is_marked(mark));
        if group.has_ops {
            stats.commit_time.observe(started.elapsed());
            stats.commit_window.observe(started.elapsed());
            stats.batches.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Runs what waited for one commit: replies first, then effects, then events.
    fn let_go(&self, message: Message) {
        match message {
            Message::Commit(commit, bytes, sent) => {
                self.room.backlog.bytes.fetch_sub(bytes, Ordering::AcqRel);
                self.store.stats.commits.fetch_add(1, Ordering::Relaxed);
                // Bytes are counted for records only.
                if bytes > 0 {
                    self.store.stats.lag_window.observe(sent.elapsed());
                    self.store.stats.lag_time.observe(sent.elapsed());
                }
                for release in commit.releases {
                    release();
                }
                for effect in commit.effects {
                    (self.outlets.effects)(effect);
                }
                for told in commit.told {
                    (self.outlets.told)(told);
                }
            }
            Message::Flush(done) => {
                let _ = done.send(());
            }
            Message::Stop => {}
        }
    }
}

/// True when the message has nothing to store.
fn is_without_ops(message: &Message) -> bool {
    !matches!(message, Message::Commit(commit, ..) if !commit.ops.is_empty())
}

/// The newest step of the group; commits that are no steps have number 0.
fn newest_step(group: &Group) -> Option<StepMark> {
    let commits = group.messages.iter().filter_map(|message| match message {
        Message::Commit(commit, ..) => Some(commit.step),
        Message::Flush(_) | Message::Stop => None,
    });
    commits.filter(|step| step.number > 0).max()
}

/// The group's records in order, of each key only the last: a busy entity that changed in many steps is written once.
fn take_ops(group: &mut Group) -> Vec<Op> {
    let mut ops = Vec::new();
    for message in &mut group.messages {
        if let Message::Commit(commit, ..) = message {
            ops.append(&mut commit.ops);
        }
    }
    let mut seen = HashSet::with_capacity(ops.len());
    let keep: Vec<bool> = ops.iter().rev().map(|op| seen.insert((op.space, op.key.as_slice()))).collect();
    drop(seen);
    let mut keep = keep.into_iter().rev();
    ops.retain(|_| keep.next().unwrap_or(true));
    ops
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::record::Space;
    use agentsvc_systems::kernel::engine::Commit;

    use super::*;

    fn commit(ops: Vec<Op>) -> Message {
        Message::Commit(Box::new(Commit { ops, ..Commit::default() }), 0, Instant::now())
    }

    fn op(space: Space, key: &[u8], value: Option<&[u8]>) -> Op {
        Op { space, key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
    }

    #[test]
    fn the_last_record_of_a_key_wins_and_order_stays() {
        let mut group = Group::default();
        group.add(commit(vec![op(Space::World, b"a", Some(b"1")), op(Space::Content, b"a", Some(b"c"))]));
        group.add(commit(vec![op(Space::World, b"b", Some(b"2")), op(Space::World, b"a", None)]));
        assert!(group.has_ops);
        let expected = vec![
            op(Space::Content, b"a", Some(b"c")),
            op(Space::World, b"b", Some(b"2")),
            op(Space::World, b"a", None),
        ];
        assert_eq!(take_ops(&mut group), expected);
    }
}
