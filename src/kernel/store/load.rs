//! Reads the world's records back at start.
//!
//! Several threads read one snapshot. They begin with one range of keys, and whenever a thread has nothing to do,
//! a busy one gives away the upper half of what it still has to read. So the work spreads however the keys lie:
//! ids of one burst of creations share their first bytes, ids that clients chose do not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use agentsvc_systems::Records;
use agentsvc_systems::kernel::record;
use fjall::Readable;
use parking_lot::{Condvar, Mutex};

use super::view::StoreView;
use super::{Error, Store};

/// Records a thread reads before it looks whether another one is idle.
const SHARE_EVERY: u64 = 4_096;
/// The least key of a record: kind byte 0 is the store's own.
const FIRST: u128 = 1 << 120;

/// How far the loading is; read by health and progress bars while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Records read so far.
    pub records: AtomicU64,
    /// Bytes of keys and values read so far.
    pub bytes: AtomicU64,
}

/// Reads all records of the world space with `threads` threads.
///
/// # Errors
/// [`Error::Record`] naming the first record that cannot be read, and the errors of reading the store.
pub fn load(store: &Store, threads: usize, progress: &Progress) -> Result<Records, Error> {
    load_view(&store.view(), threads, progress)
}

/// Decodes rows of the world space that come from elsewhere, such as a rows file, so that an engine can be restored
/// without a database. Rows in the order of keys, keys and values.
///
/// # Errors
/// The first error of the rows, or of a record that cannot be read.
pub fn from_rows<E: From<record::Error>>(
    rows: impl IntoIterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
) -> Result<Records, E> {
    let mut records = Records::default();
    for row in rows {
        let (key, value) = row?;
        records.read(&key, &value)?;
    }
    Ok(records)
}

pub(super) fn load_view(view: &StoreView, threads: usize, progress: &Progress) -> Result<Records, Error> {
    let parts = scan(view, threads, progress, |part: &mut Records, key, value| {
        part.read(key, value)?;
        Ok(())
    })?;
    let mut records = Records::default();
    for part in parts {
        records.append(part);
    }
    Ok(records)
}

/// Reads every record of the world space once and gives each range of keys its own `P`; they come back in the
/// order of keys.
fn scan<P: Default + Send>(
    view: &StoreView,
    threads: usize,
    progress: &Progress,
    read: impl Fn(&mut P, &[u8], &[u8]) -> Result<(), record::Error> + Sync,
) -> Result<Vec<P>, Error> {
    let scan = Scan {
        view,
        threads: threads.max(1),
        progress,
        waiting: Mutex::new(vec![Span { from: FIRST, to: u128::MAX }]),
        more: Condvar::new(),
        idle: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        parts: Mutex::default(),
    };
    let first_error = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..scan.threads {
            scope.spawn(|| {
                let _on_panic = OnPanic(&scan);
                if let Err(error) = scan.work(&read) {
                    first_error.lock().get_or_insert(error);
                    scan.give_up();
                }
            });
        }
    });
    match first_error.into_inner() {
        Some(error) => Err(error),
        None => Ok(scan.parts.into_inner().into_values().collect()),
    }
}

/// Sends the other threads home when this one unwinds, so that the scan ends in the panic and not in a wait.
struct OnPanic<'a, 'b, P: Default + Send>(&'a Scan<'b, P>);

impl<P: Default + Send> Drop for OnPanic<'_, '_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

/// A range of keys by their first 16 bytes, shorter ones filled up with zeros: `from` in, `to` out, but
/// `u128::MAX` as `to` is no bound at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u128,
    to: u128,
}

impl Span {
    /// Does `key` lie behind the end?
    fn ends_before(self, key: &[u8]) -> bool {
        self.to != u128::MAX && head(key) >= self.to
    }
}

/// What the threads of one scan share.
struct Scan<'a, P> {
    view: &'a StoreView,
    threads: usize,
    progress: &'a Progress,
    /// Ranges nobody reads yet.
    waiting: Mutex<Vec<Span>>,
    /// Told when `waiting` or the end changes.
    more: Condvar,
    /// Threads without a range.
    idle: AtomicUsize,
    /// A thread met an error.
    failed: AtomicBool,
    /// What was read, by the start of the range.
    parts: Mutex<BTreeMap<u128, P>>,
}

impl<P: Default + Send> Scan<'_, P> {
    /// One thread: reads ranges until all are read.
    fn work(&self, read: &impl Fn(&mut P, &[u8], &[u8]) -> Result<(), record::Error>) -> Result<(), Error> {
        while let Some(span) = self.next_span() {
            let part = self.read_span(span, read)?;
            self.parts.lock().insert(span.from, part);
        }
        Ok(())
    }

    /// Waits for a range; `None` when there will be none any more.
    fn next_span(&self) -> Option<Span> {
        let mut waiting = self.waiting.lock();
        loop {
            if self.failed.load(Ordering::Acquire) {
                return None;
            }
            if let Some(span) = waiting.pop() {
                return Some(span);
            }
            if self.idle.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
                // Everyone is idle and nothing waits: all is read. The count stays, so that all leave.
                self.more.notify_all();
                return None;
            }
            self.more.wait(&mut waiting);
            if self.idle.load(Ordering::Acquire) == self.threads {
                return None;
            }
            self.idle.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Sends everyone home after an error.
    fn give_up(&self) {
        let _waiting = self.waiting.lock();
        self.failed.store(true, Ordering::Release);
        self.more.notify_all();
    }

    /// Reads one range, giving parts of it away when others are idle.
    fn read_span(
        &self,
        mut span: Span,
        read: &impl Fn(&mut P, &[u8], &[u8]) -> Result<(), record::Error>,
    ) -> Result<P, Error> {
        let mut part = P::default();
        let (mut records, mut bytes) = (0, 0);
        for entry in self.view.snapshot.range(&self.view.store.world, bound(span.from)..) {
            let (key, value) = entry.into_inner().map_err(|error| self.view.store.failed(error))?;
            if span.ends_before(&key) {
                break;
            }
            read(&mut part, &key, &value).map_err(|error| Error::record(&self.view.store.path, &key, &error))?;
            records += 1;
            bytes += (key.len() + value.len()) as u64;
            if records == SHARE_EVERY {
                self.count(&mut records, &mut bytes);
                if self.failed.load(Ordering::Acquire) {
                    break;
                }
                if self.idle.load(Ordering::Acquire) > 0 {
                    self.share(&mut span, head(&key))?;
                }
            }
        }
        self.count(&mut records, &mut bytes);
        Ok(part)
    }

    fn count(&self, records: &mut u64, bytes: &mut u64) {
        self.progress.records.fetch_add(std::mem::take(records), Ordering::Relaxed);
        self.progress.bytes.fetch_add(std::mem::take(bytes), Ordering::Relaxed);
    }

    /// Gives the upper half of what follows `at` to an idle thread.
    fn share(&self, span: &mut Span, at: u128) -> Result<(), Error> {
        let mut waiting = self.waiting.lock();
        if !waiting.is_empty() {
            return Ok(());
        }
        let Some(last) = self.last_head(*span)? else { return Ok(()) };
        let Some(middle) = middle(at, last) else { return Ok(()) };
        waiting.push(Span { from: middle, to: span.to });
        span.to = middle;
        self.more.notify_one();
        Ok(())
    }

    /// Where the last record of a range lies; halving up to there instead of up to the range's end finds the
    /// middle of the records in few steps.
    fn last_head(&self, span: Span) -> Result<Option<u128>, Error> {
        let mut range = if span.to == u128::MAX {
            self.view.snapshot.range(&self.view.store.world, bound(span.from)..)
        } else {
            self.view.snapshot.range(&self.view.store.world, bound(span.from)..bound(span.to))
        };
        let last = range.next_back().map(fjall::Guard::key).transpose();
        Ok(last.map_err(|error| self.view.store.failed(error))?.map(|key| head(&key)))
    }
}

/// The first 16 bytes of a key as a number, so that ranges can be halved. Keys that differ only later lie together.
fn head(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let taken = key.len().min(16);
    bytes[..taken].copy_from_slice(&key[..taken]);
    u128::from_be_bytes(bytes)
}

/// The least key whose head is `head` or more. Without the zeros at the end: a key that is shorter than 16 bytes
/// would sort before them.
fn bound(head: u128) -> Vec<u8> {
    let mut bytes = head.to_be_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

/// A place to cut between `at`, which is read already, and `last`: behind `at` and not behind `last`. Kinds are
/// parted first, because the ids of different kinds have nothing in common.
fn middle(at: u128, last: u128) -> Option<u128> {
    if at >= last {
        return None;
    }
    let (kind, last_kind) = (at >> 120, last >> 120);
    if kind != last_kind {
        return Some((kind + 1) << 120);
    }
    Some(at + (last - at).div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_behind_what_is_read_and_not_behind_the_last() {
        let key = |kind: u8, rest: u128| u128::from(kind) << 120 | rest;
        assert_eq!(middle(key(b'a', 5), key(b'a', 5)), None);
        assert_eq!(middle(key(b'a', 5), key(b'a', 6)), Some(key(b'a', 6)));
        assert_eq!(middle(key(b'a', 5), key(b'a', 9)), Some(key(b'a', 7)));
        assert_eq!(middle(key(b'a', 5), key(b's', 9)), Some(key(b'b', 0)));
    }

    #[test]
    fn heads_sort_like_keys() {
        assert!(head(b"w\x01") < head(b"w\x01\x01"));
        assert!(head(&[b'a'; 17]) < head(b"b"));
        assert_eq!(head(&[7; 17]), head(&[7; 33]));
    }

    #[test]
    fn a_bound_parts_keys_as_their_heads_do() {
        let keys: [&[u8]; 8] = [b"a", b"a\0", b"a\0\0", b"a\x01", b"a\x01\0", b"a\x01\0\x01", &[b'b'; 16], &[b'b'; 20]];
        for cut in keys.map(head) {
            for key in keys {
                assert_eq!(key >= bound(cut).as_slice(), head(key) >= cut, "{key:?} at {cut:x}");
            }
        }
    }

    #[test]
    fn an_open_span_never_ends() {
        let open = Span { from: FIRST, to: u128::MAX };
        assert!(!open.ends_before(&[0xff; 20]));
        let closed = Span { from: FIRST, to: head(b"s") };
        assert!(closed.ends_before(b"s") && !closed.ends_before(b"rzzz"));
    }
}
