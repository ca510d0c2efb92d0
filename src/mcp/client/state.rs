//! What is known of a server at one moment.

use std::time::{Duration, SystemTime};

use agentsvc_components::Timestamp;
use tokio::time::Instant;

use super::connection::Connection;
use super::link::Link;

/// A server that was there this long begins with the shortest time again.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// What is known of it now.
#[derive(Default)]
pub(super) struct State {
    pub(super) link: Link,
    pub(super) last_ok: Option<Timestamp>,
    pub(super) last_error: Option<String>,
    pub(super) failures: u32,
    /// It is going to be started again.
    pub(super) reconnecting: bool,
    pub(super) reconnect_attempts: u32,
    pub(super) connected_since: Option<Timestamp>,
    /// When it was connected in its last run; `None` when it was not.
    up: Option<Instant>,
    /// When it answered last.
    heard: Option<Instant>,
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl State {
    /// It is started.
    pub(super) fn begin(&mut self) {
        self.link = Link::default();
        self.up = None;
    }

    /// It answered something.
    pub(super) fn answered(&mut self) {
        (self.last_ok, self.heard) = (Some(now()), Some(Instant::now()));
    }

    /// It is connected, and what it has is offered.
    pub(super) fn connected(&mut self, connection: &Connection) {
        let was_up = matches!(self.link, Link::Up(_));
        self.link = Link::Up(connection.clone());
        self.answered();
        if !was_up {
            (self.connected_since, self.up) = (self.last_ok, self.heard);
            (self.failures, self.reconnecting, self.reconnect_attempts) = (0, false, 0);
        }
    }

    /// It did not answer a health check. Gives how many it did not, one after the other.
    pub(super) fn unanswered(&mut self, why: String) -> u32 {
        self.failures += 1;
        self.last_error = Some(why);
        self.failures
    }

    /// Nothing carries its connection any more.
    pub(super) fn stopped(&mut self) {
        self.link = Link::Down("it was stopped".to_owned());
        self.connected_since = None;
    }

    /// It ended, and is started again after `rest`, for the time after `attempts`.
    pub(super) fn down(&mut self, why: String, rest: Option<Duration>, attempts: u32) {
        self.last_error = Some(why.clone());
        self.link = Link::Down(why);
        self.failures = self.failures.saturating_add(1);
        (self.reconnecting, self.reconnect_attempts) = (rest.is_some(), attempts);
    }

    /// Was it there long enough in the run that has just ended?
    pub(super) fn was_settled(&self) -> bool {
        // One that answers no health checks was there as long as it answered.
        let until = if self.failures > 0 { self.heard } else { Some(Instant::now()) };
        self.up.zip(until).is_some_and(|(up, until)| until.duration_since(up) >= SETTLED_AFTER)
    }
}
