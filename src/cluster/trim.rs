//! Keeps the journal short: the owner copies its world into the object store, and lets go of the entries that are in the copy. It does
//! so at once for nodes that cannot follow the journal any more.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::join::copy_file;
use super::members::Members;
use super::moment::boot_time;
use super::nats::Wire;
use crate::kernel::exchange::Exchange;
use crate::kernel::store::Error;
use crate::kernel::store::rows::read::Copied;
use crate::snapshot::write;

/// Milliseconds between two looks.
const LOOK_MS: u64 = 60_000;
/// The same while a node needs a copy.
const LOOK_LACKING_MS: u64 = 2_000;
/// Copies that stay: one may be on its way to a node that is built of it.
const COPIES_KEPT: usize = 2;

/// Cuts the journal now and then.
pub(super) struct Trimming {
    world_dir: PathBuf,
    /// Bytes of the stream from which on it is cut.
    bytes_max: u64,
    looked: u64,
    is_running: Arc<AtomicBool>,
    /// The newest entry in a copy of this node.
    copied: Arc<AtomicU64>,
}

impl Trimming {
    /// That of a node whose store is at `world_dir`, for a stream of more than `bytes_max` bytes.
    pub(super) fn new(world_dir: PathBuf, bytes_max: u64) -> Self {
        Self { world_dir, bytes_max, looked: boot_time(), is_running: Arc::default(), copied: Arc::default() }
    }

    /// Called by an owner again and again; what takes long has a thread of its own.
    pub(super) fn look(&mut self, wire: &Arc<Wire>, exchange: &Arc<Exchange>, members: &Arc<Members>) {
        let is_lacked = members.lacking().is_some_and(|index| index > self.copied.load(Ordering::Acquire));
        let period = if is_lacked { LOOK_LACKING_MS } else { LOOK_MS };
        if boot_time() - self.looked < period || self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        self.looked = boot_time();
        let (wire, exchange, members) = (Arc::clone(wire), Arc::clone(exchange), Arc::clone(members));
        let (world_dir, is_running) = (self.world_dir.clone(), Arc::clone(&self.is_running));
        let (bytes_max, copied) = (if is_lacked { 0 } else { self.bytes_max }, Arc::clone(&self.copied));
        let run = move || {
            let trimmed = trim_if_large(&wire, &exchange, members.node(), (&world_dir, bytes_max));
            if let Ok(Some(index)) = trimmed {
                copied.store(index, Ordering::Release);
            }
            members.set_problem("trimming", trimmed.err().map(|error| format!("the journal is not trimmed: {error}")));
            is_running.store(false, Ordering::Release);
        };
        if let Err(error) = std::thread::Builder::new().name("journal-trim".to_owned()).spawn(run) {
            tracing::warn!(%error, "the journal is not trimmed");
            self.is_running.store(false, Ordering::Release);
        }
    }
}

/// Gives the newest entry in the copy, if one was made.
fn trim_if_large(
    wire: &Wire,
    exchange: &Exchange,
    node: &str,
    (world_dir, bytes_max): (&Path, u64),
) -> Result<Option<u64>, Error> {
    let (stream, _) = wire.wait(wire.shown())?;
    if stream.bytes < bytes_max {
        return Ok(None);
    }
    let view = exchange.view().map_err(|refusal| Error::Journal(refusal.message))?;
    let origin = view.origin(format!("copy-{node}-{}", boot_time()))?;
    let file = copy_file(world_dir);
    let _removed = std::fs::remove_file(&file);
    let written = write::write(&view, &file, &Copied::default())?;
    drop(view);
    let put = wire.wait(wire.put_copy(&file, &origin));
    let _removed = std::fs::remove_file(&file);
    put?;
    wire.wait(wire.trim(origin.position.index))?;
    tracing::info!(index = origin.position.index, rows = written.counts.rows, "the journal was trimmed");
    let copies = wire.wait(wire.copies())?;
    for copy in copies.iter().rev().skip(COPIES_KEPT) {
        wire.wait(wire.drop_copy(&copy.snapshot))?;
    }
    Ok(Some(origin.position.index))
}
