//! The calls that are out, by attempt, so that an abort finds them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agentsvc_components::kernel::attempt::Attempt;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The calls that are out. Bounded by what admission lets out ([`agentsvc_components::kernel::limit::EFFECTS_OUT_MAX`]): an
/// entry lives exactly as long as its last ticket.
#[derive(Clone, Default)]
pub(crate) struct InFlight {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    attempts: Mutex<HashMap<Attempt, Entry>>,
    calls: AtomicUsize,
}

/// One attempt; several tool calls may share it.
struct Entry {
    signal: Arc<Signal>,
    tickets: u32,
}

#[derive(Default)]
struct Signal {
    aborted: AtomicBool,
    notify: Notify,
}

impl InFlight {
    /// Registers a call; it counts as out until its ticket is dropped.
    pub(crate) fn enter(&self, attempt: Attempt) -> Ticket {
        let mut attempts = self.inner.attempts.lock();
        let entry = attempts.entry(attempt).or_insert_with(|| Entry { signal: Arc::default(), tickets: 0 });
        entry.tickets += 1;
        let signal = Arc::clone(&entry.signal);
        drop(attempts);
        self.inner.calls.fetch_add(1, Ordering::Relaxed);
        Ticket { inner: Arc::clone(&self.inner), attempt, signal, is_out: true }
    }

    /// Tells the calls of `attempt` to give up. One that has come back already is past it.
    pub(crate) fn abort(&self, attempt: Attempt) {
        let signal = self.inner.attempts.lock().get(&attempt).map(|entry| Arc::clone(&entry.signal));
        if let Some(signal) = signal {
            signal.aborted.store(true, Ordering::Release);
            signal.notify.notify_waiters();
        }
    }

    /// Tells all calls to give up: the world that they are for ends.
    pub(crate) fn abort_all(&self) {
        let signals: Vec<_> = self.inner.attempts.lock().values().map(|entry| Arc::clone(&entry.signal)).collect();
        for signal in signals {
            signal.aborted.store(true, Ordering::Release);
            signal.notify.notify_waiters();
        }
    }

    /// Calls that are out.
    pub(crate) fn len(&self) -> usize {
        self.inner.calls.load(Ordering::Relaxed)
    }
}

/// A call's place among those in flight.
pub(crate) struct Ticket {
    inner: Arc<Inner>,
    attempt: Attempt,
    signal: Arc<Signal>,
    is_out: bool,
}

impl Ticket {
    /// Which attempt the call belongs to.
    pub(crate) const fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// True once the call was told to give up.
    pub(crate) fn is_aborted(&self) -> bool {
        self.signal.aborted.load(Ordering::Acquire)
    }

    /// Ends when the call is told to give up.
    pub(crate) async fn aborted(&self) {
        // Made before the flag is read: from here on no notification is missed.
        let notified = self.signal.notify.notified();
        if !self.is_aborted() {
            notified.await;
        }
    }
}

impl Ticket {
    /// Takes the call from among those in flight; an abort no longer finds it. Once is enough, and dropping does it.
    pub(crate) fn leave(&mut self) {
        if !std::mem::take(&mut self.is_out) {
            return;
        }
        self.inner.calls.fetch_sub(1, Ordering::Relaxed);
        let mut attempts = self.inner.attempts.lock();
        if let Some(entry) = attempts.get_mut(&self.attempt) {
            entry.tickets -= 1;
            if entry.tickets == 0 {
                attempts.remove(&self.attempt);
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::attempt::Attempt;
    use agentsvc_components::kernel::id::JobId;
    use futures_util::FutureExt;

    use super::InFlight;

    fn attempt(number: u32) -> Attempt {
        Attempt { job: JobId(uuid::Uuid::nil()), number }
    }

    #[test]
    fn an_abort_reaches_every_call_of_its_attempt_and_no_other() {
        let in_flight = InFlight::default();
        let (first, second, other) =
            (in_flight.enter(attempt(1)), in_flight.enter(attempt(1)), in_flight.enter(attempt(2)));
        let mut waiting = Box::pin(first.aborted());
        assert!(waiting.as_mut().now_or_never().is_none());
        in_flight.abort(attempt(1));
        assert!(waiting.now_or_never().is_some());
        assert!(second.is_aborted() && second.aborted().now_or_never().is_some());
        assert!(!other.is_aborted());
        in_flight.abort_all();
        assert!(other.is_aborted());
    }

    #[test]
    fn nothing_stays_behind() {
        let in_flight = InFlight::default();
        let (first, second) = (in_flight.enter(attempt(1)), in_flight.enter(attempt(1)));
        assert_eq!(in_flight.len(), 2);
        drop(first);
        in_flight.abort(attempt(1));
        assert!(second.is_aborted());
        drop(second);
        in_flight.abort(attempt(1));
        assert!(in_flight.inner.attempts.lock().is_empty());
        assert_eq!(in_flight.len(), 0);
        assert!(!in_flight.enter(attempt(1)).is_aborted(), "a new call is not aborted by an old abort");
    }
}
