//! The thread that appends inputs, behind the commit.
//!
//! The store's writer hands over each step once it is durable and never waits: what waits here is counted in bytes, and
//! when it is too much, or the disk fails, the log has a *gap*: it says so, takes nothing more, and asks for another
//! epoch, which begins at the next quiet moment of the world.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agentsvc_components::kernel::limit;
use agentsvc_systems::replay::Epoch;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::folder::EpochFolder;
use super::probe::InputStats;
use super::segment::{SEGMENT_BYTES_MAX, SegmentWriter};
use super::{Error, InputSettings, keep};
use crate::kernel::store::step_log::{StepLog, WrittenStep};
use crate::kernel::store::view::StoreView;

/// How often the thread looks whether something is too old.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The window is made of about so many epochs, so that it moves in small steps.
const EPOCHS_OF_A_WINDOW: u32 = 4;

enum Message {
    /// The next first step begins this epoch, whose world had these rows.
    Prepare(Box<Epoch>, StoreView),
    /// It does not begin.
    Forget,
    Step(WrittenStep),
    Gap(String),
    Flush(Sender<()>),
    Stop,
}

/// The way to the log. Cheap to clone.
#[derive(Clone)]
pub struct InputQueue {
    messages: Sender<Message>,
    stats: Arc<InputStats>,
    /// Another epoch is wanted.
    wants_epoch: Arc<AtomicBool>,
}

impl InputQueue {
    /// Nothing more is written in this epoch.
    fn gap(&self, why: String) {
        self.stats.whole.store(false, Ordering::Release);
        let _ended = self.messages.send(Message::Gap(why));
    }

    /// The next first step begins `epoch`, whose world has the rows of `view`.
    pub fn prepare(&self, epoch: Epoch, view: StoreView) {
        let _ended = self.messages.send(Message::Prepare(Box::new(epoch), view));
    }

    /// The epoch that was prepared does not begin: its view is let go, which keeps old rows on the disk as long as it is
    /// there.
    pub fn forget(&self) {
        let _ended = self.messages.send(Message::Forget);
    }

    /// Steps come from here on, the first of them of the epoch that was prepared: no other is wanted.
    pub fn open(&self) {
        self.wants_epoch.store(false, Ordering::Release);
        self.stats.whole.store(true, Ordering::Release);
    }

    /// Is every step written?
    pub fn is_whole(&self) -> bool {
        self.stats.whole.load(Ordering::Acquire)
    }

    /// Is another epoch wanted: because this one is long, or has ended in a gap?
    pub fn wants_epoch(&self) -> bool {
        self.wants_epoch.load(Ordering::Acquire)
    }

    /// Wants another epoch, whatever the size of this one.
    #[cfg(test)]
    pub(crate) fn want_epoch(&self) {
        self.wants_epoch.store(true, Ordering::Release);
    }

    /// Waits until everything handed over so far is in its file.
    pub fn flush(&self) {
        let (done, wait) = crossbeam_channel::bounded(1);
        if self.messages.send(Message::Flush(done)).is_ok() {
            let _ended = wait.recv();
        }
    }

    /// What the log has done.
    pub fn stats(&self) -> Arc<InputStats> {
        Arc::clone(&self.stats)
    }
}

impl StepLog for InputQueue {
    fn send(&self, step: WrittenStep) {
        let bytes = step.entry.len() as u64;
        if !self.is_whole() {
            self.stats.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.stats.waiting.load(Ordering::Relaxed) + bytes > limit::INPUTS_WAITING_BYTES_MAX {
            self.stats.lost.fetch_add(1, Ordering::Relaxed);
            return self.gap("the write queue was full".to_owned());
        }
        if let Some(name) = step.lost {
            return self.gap(format!("the command {name} has no written form"));
        }
        self.stats.waiting.fetch_add(bytes, Ordering::Relaxed);
        let _ended = self.messages.send(Message::Step(step));
    }
}

/// The running log.
pub struct InputLog {
    queue: InputQueue,
    thread: JoinHandle<()>,
}

impl InputLog {
    /// Starts the thread; it writes below `inputs`.
    pub fn start(inputs: PathBuf, settings: InputSettings) -> std::io::Result<Self> {
        let (messages, incoming) = crossbeam_channel::unbounded();
        let (stats, wants_epoch) = (Arc::new(InputStats::default()), Arc::new(AtomicBool::new(false)));
        let queue = InputQueue { messages, stats: Arc::clone(&stats), wants_epoch: Arc::clone(&wants_epoch) };
        let (prepared, open, looked) = (None, None, Instant::now());
        let running = Running { inputs, settings, stats, wants_epoch, incoming, prepared, open, looked };
        let thread = std::thread::Builder::new().name("inputs".to_owned()).spawn(move || running.run())?;
        Ok(Self { queue, thread })
    }

    /// The same; without it a world does as well, and a warning says that there is none.
    pub fn try_start(inputs: &Path, settings: InputSettings) -> Option<Self> {
        let warn = |error: &std::io::Error| tracing::warn!(%error, "the input log cannot be started");
        Self::start(inputs.to_owned(), settings).inspect_err(warn).ok()
    }

    /// The way to it.
    pub fn queue(&self) -> InputQueue {
        self.queue.clone()
    }

    /// Writes what waits and ends the thread.
    pub fn stop(self) {
        let _ended = self.queue.messages.send(Message::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the input log panicked");
        }
    }
}

/// The epoch that is being written.
struct Open {
    folder: EpochFolder,
    began: Instant,
    segment: Option<SegmentWriter>,
    /// The number in the name of the newest segment.
    named: u64,
    /// Bytes of the segments before, and of the base.
    bytes: u64,
    base: Option<JoinHandle<()>>,
}

/// The state of the log's thread.
struct Running {
    inputs: PathBuf,
    settings: InputSettings,
    stats: Arc<InputStats>,
    wants_epoch: Arc<AtomicBool>,
    incoming: Receiver<Message>,
    prepared: Option<(Box<Epoch>, StoreView)>,
    open: Option<Open>,
    /// When it last looked whether something is too old.
    looked: Instant,
}

impl Running {
    fn run(mut self) {
        loop {
            match self.incoming.recv_timeout(LOOK_EVERY) {
                Ok(Message::Prepare(epoch, view)) => self.prepared = Some((epoch, view)),
                Ok(Message::Forget) => self.prepared = None,
                Ok(Message::Step(step)) => self.step(&step),
                Ok(Message::Gap(why)) => self.gap(&why),
                Ok(Message::Flush(done)) => {
                    self.join_base();
                    let _gone = done.send(());
                }
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // However busy the world is: what is too old or too much goes.
            if self.looked.elapsed() >= LOOK_EVERY {
                self.trim();
            }
        }
        self.join_base();
    }

    fn step(&mut self, step: &WrittenStep) {
        self.stats.waiting.fetch_sub(step.entry.len() as u64, Ordering::Relaxed);
        if step.first
            && let Err(error) = self.begin()
        {
            return self.broken(&error);
        }
        if self.open.is_none() {
            self.stats.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.append(step) {
            Ok(()) => {
                self.stats.entries.fetch_add(1, Ordering::Relaxed);
                self.stats.bytes.fetch_add(step.entry.len() as u64, Ordering::Relaxed);
                self.look_at_size();
            }
            Err(error) => self.broken(&error),
        }
    }

    /// Begins the epoch that was prepared. Its rows are written beside.
    fn begin(&mut self) -> Result<(), Error> {
        self.join_base();
        self.open = None;
        let Some((epoch, view)) = self.prepared.take() else {
            return Err(Error::NotKept("no epoch was prepared".to_owned()));
        };
        let folder = EpochFolder::create(&self.inputs, now_ms(), &epoch, env!("CARGO_PKG_VERSION"))?;
        self.wants_epoch.store(false, Ordering::Release);
        let (writing, stats, wants_epoch) = (folder.clone(), Arc::clone(&self.stats), Arc::clone(&self.wants_epoch));
        let write = move || {
            if let Err(error) = writing.write_base(&view) {
                tracing::warn!(%error, "the epoch of the input log cannot be replayed: its first rows are not written");
                // Nothing is worth writing down behind them.
                stats.whole.store(false, Ordering::Release);
                stats.gaps.fetch_add(1, Ordering::Relaxed);
                wants_epoch.store(true, Ordering::Release);
            }
        };
        let base = std::thread::Builder::new().name("inputs-base".to_owned()).spawn(write);
        let base = Some(base.map_err(Error::io(&folder.path))?);
        self.open = Some(Open { folder, began: Instant::now(), segment: None, named: 0, bytes: 0, base });
        self.stats.epochs_begun.fetch_add(1, Ordering::Relaxed);
        self.trim();
        Ok(())
    }

    fn append(&mut self, step: &WrittenStep) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if let Some(full) = open.segment.take_if(|segment| segment.bytes() >= SEGMENT_BYTES_MAX) {
            open.bytes += full.bytes();
        }
        let segment = match &mut open.segment {
            Some(segment) => segment,
            None => {
                // Steps that store nothing have no number of their own.
                open.named = step.number.max(open.named + 1);
                let path = open.folder.segment(open.named);
                open.segment.insert(SegmentWriter::create(&path).map_err(Error::io(&path))?)
            }
        };
        segment.entry(&step.entry).map_err(Error::io(&open.folder.path))
    }

    /// A window of many hours is made of several epochs, none of which is longer or larger than its share.
    fn look_at_size(&mut self) {
        let Some(open) = &self.open else { return };
        let bytes = open.bytes + open.segment.as_ref().map_or(0, SegmentWriter::bytes);
        let share = u64::from(EPOCHS_OF_A_WINDOW);
        if bytes > self.settings.max_bytes {
            return self.gap("this epoch alone exceeds [inputs] max_mb");
        }
        // The one that was prepared may be in force already.
        if self.prepared.is_some() {
            return;
        }
        if bytes > self.settings.max_bytes / share || open.began.elapsed() > self.settings.keep / EPOCHS_OF_A_WINDOW {
            self.wants_epoch.store(true, Ordering::Release);
        }
    }

    fn broken(&mut self, error: &Error) {
        tracing::warn!(%error, "the input log cannot be written");
        self.gap(&error.to_string());
    }

    /// Ends the epoch.
    fn gap(&mut self, why: &str) {
        self.stats.whole.store(false, Ordering::Release);
        self.stats.gaps.fetch_add(1, Ordering::Relaxed);
        self.wants_epoch.store(true, Ordering::Release);
        tracing::warn!(%why, "the input log has a gap; steps cannot be replayed until the next epoch begins");
        self.join_base();
        if let Some(Open { segment: Some(mut segment), .. }) = self.open.take() {
            // When the disk has failed, the end of the file says it.
            let _failed = segment.gap(why);
        }
    }

    fn trim(&mut self) {
        self.looked = Instant::now();
        let current = self.open.as_ref().map_or(Path::new(""), |open| open.folder.path.as_path());
        match keep::trim(&self.inputs, current, self.settings, now_ms()) {
            Ok(kept) => {
                self.stats.kept_bytes.store(kept.bytes, Ordering::Relaxed);
                self.stats.kept_epochs.store(kept.epochs, Ordering::Relaxed);
                self.stats.oldest.store(kept.oldest, Ordering::Relaxed);
            }
            Err(error) => tracing::warn!(%error, "old inputs cannot be listed"),
        }
        self.look_at_size();
    }

    fn join_base(&mut self) {
        if let Some(base) = self.open.as_mut().and_then(|open| open.base.take())
            && base.join().is_err()
        {
            tracing::error!("the rows of an epoch were not written: the thread panicked");
        }
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
