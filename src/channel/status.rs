//! What is known of an adapter: of its process, and of what has passed through it.

use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::http::timestamp::timestamp_now;
use agentsvc_components::Timestamp;

use super::stderr::Log;
use super::wire::event::{QrReady, QrState, QrUpdate, Ready};

/// Milliseconds in which the log says once that messages of a channel were given up.
const DROPPED_NOTED_MS: u64 = 60_000;

/// Messages of all channels that were given up since the daemon started.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Messages of all channels that still waited when their channel ended.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Shows both.
pub(crate) struct DroppedProbe;

impl Probe for DroppedProbe {
    fn gather(&self, out: &mut MetricsText) {
        let help = "Messages of chats that were given up because there was no room for them.";
        out.counter("agentsvc_chat_messages_dropped_total", help, DROPPED.load(Ordering::Relaxed));
        let help = "Messages of chats that still waited when their channel ended: it was changed, removed or stopped.";
        out.counter("agentsvc_chat_messages_left_total", help, LEFT.load(Ordering::Relaxed));
    }
}

/// So many messages still waited when their channel ended.
pub(super) fn note_left(messages: usize) {
    LEFT.fetch_add(messages as u64, Ordering::Relaxed);
}

/// How many there were so far.
#[cfg(test)]
pub(super) fn left() -> u64 {
    LEFT.load(Ordering::Relaxed)
}

/// Where the process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It is started, and has not said that it is ready.
    #[default]
    Starting,
    /// It is ready. It need not be signed in to its platform.
    Started,
    /// It ended, and is started again.
    Restarting,
    /// It ended, and is not started again.
    Failed,
    /// It was stopped.
    Stopped,
}

/// A code to sign in with.
#[derive(Clone, Debug)]
pub(crate) struct Qr {
    pub(crate) state: QrState,
    pub(crate) code: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) expires_at: Option<String>,
    pub(crate) updated_at: Timestamp,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) state: State,
    pub(crate) ready: Ready,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ready_at: Option<Timestamp>,
    pub(crate) next_restart_at: Option<Timestamp>,
    pub(crate) restarts: u64,
    pub(crate) failures: u32,
    /// Something has passed since the start.
    pub(crate) traffic: bool,
    pub(crate) last_message_at: Option<Timestamp>,
    pub(crate) received: u64,
    pub(crate) dropped: u64,
    /// When the log last said so, and how many there were.
    dropped_noted: Option<(Timestamp, u64)>,
    pub(crate) broken: u64,
    pub(crate) sent: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    pub(crate) last_error: Option<(Timestamp, String)>,
    pub(crate) qr: Option<Qr>,
    pub(crate) log: Log,
}

/// Bytes of an error that are shown.
const ERROR_BYTES_MAX: usize = 1 << 10;

impl Status {
    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.state = State::Starting;
        (self.started_at, self.ready_at, self.next_restart_at) = (Some(timestamp_now()), None, None);
        (self.traffic, self.qr) = (false, None);
    }

    /// It is ready. The first account stays.
    pub(crate) fn set_ready(&mut self, mut ready: Ready) {
        if self.ready_at.is_some() {
            ready.account_id = self.ready.account_id.take().or(ready.account_id);
        }
        self.ready = ready;
        self.ready_at = self.ready_at.or_else(|| Some(timestamp_now()));
        self.state = State::Started;
    }

    /// It reported an error, or ended.
    pub(crate) fn note_error(&mut self, text: &str) {
        let mut text = text.to_owned();
        text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
        self.last_error = Some((timestamp_now(), text));
    }

    /// Can it do this?
    pub(crate) fn can(&self, what: &str) -> bool {
        self.state == State::Started && self.ready.capabilities.iter().any(|it| it == what)
    }

    /// A message was given up. Gives how many were since the log last said so, once a minute.
    pub(crate) fn note_dropped(&mut self) -> Option<u64> {
        self.dropped += 1;
        DROPPED.fetch_add(1, Ordering::Relaxed);
        let (at, count) = self.dropped_noted.unwrap_or_default();
        let is_due = self.dropped_noted.is_none() || timestamp_now().ms_since(at) >= DROPPED_NOTED_MS;
        is_due.then(|| {
            self.dropped_noted = Some((timestamp_now(), self.dropped));
            self.dropped - count
        })
    }

    /// A message came.
    pub(crate) fn note_message(&mut self) {
        self.received += 1;
        self.traffic = true;
        self.last_message_at = Some(timestamp_now());
    }

    /// A code is there.
    pub(crate) fn set_qr(&mut self, given: QrReady) {
        // A state may have come before it.
        let state = self.qr.as_ref().filter(|qr| qr.code.is_none()).map_or(QrState::Pending, |qr| qr.state);
        let QrReady { qr_code, qr_url, message, expires_at } = given;
        self.qr =
            Some(Qr { state, code: Some(qr_code), url: qr_url, message, expires_at, updated_at: timestamp_now() });
    }

    /// What became of it.
    pub(crate) fn update_qr(&mut self, update: QrUpdate) {
        let empty = || Qr {
            state: QrState::Pending,
            code: None,
            url: None,
            message: None,
            expires_at: None,
            updated_at: timestamp_now(),
        };
        let qr = self.qr.get_or_insert_with(empty);
        (qr.state, qr.updated_at) = (update.status, timestamp_now());
        qr.message = update.message.or(qr.message.take());
    }
}
