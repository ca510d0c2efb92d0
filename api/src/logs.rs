//! The log hub: structured log lines on their way to `GET /api/logs/stream`.

use std::sync::Arc;

use agentsvc_components::limit;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Everyone who watches the log. The daemon's log layer publishes here.
pub struct LogHub(broadcast::Sender<Arc<str>>);

impl Default for LogHub {
    fn default() -> Self {
        Self::new()
    }
}

impl LogHub {
    /// A hub that nobody watches.
    #[must_use]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(limit::STREAM_BACKLOG_MAX))
    }

    /// Does anyone watch? Ask before a line is made.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Gives one line, a JSON object without line breaks, to everyone who watches now. Never blocks.
    pub fn publish(&self, line: Arc<str>) {
        // An error says that nobody watches, which is no error.
        let _ = self.0.send(line);
    }

    /// Watches from now on.
    #[must_use]
    pub fn subscribe(&self) -> LogSubscription {
        LogSubscription(self.0.subscribe())
    }
}

/// A watch on the log.
pub struct LogSubscription(broadcast::Receiver<Arc<str>>);

/// What a subscriber of the log gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDelivery {
    /// A line: a JSON object.
    Line(Arc<str>),
    /// This subscriber was too slow: so many lines are lost to it.
    Lagged(u64),
}

impl LogSubscription {
    /// What comes next; `None` when the hub is gone.
    pub async fn next(&mut self) -> Option<LogDelivery> {
        match self.0.recv().await {
            Ok(line) => Some(LogDelivery::Line(line)),
            Err(RecvError::Lagged(missed)) => Some(LogDelivery::Lagged(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_reach_subscribers_and_slow_ones_are_told() {
        let hub = LogHub::new();
        assert!(!hub.has_subscribers());
        hub.publish("lost".into());
        let mut subscription = hub.subscribe();
        assert!(hub.has_subscribers());
        for n in 0..=limit::STREAM_BACKLOG_MAX {
            hub.publish(n.to_string().into());
        }
        assert_eq!(subscription.next().await, Some(LogDelivery::Lagged(1)));
        assert_eq!(subscription.next().await, Some(LogDelivery::Line("1".into())));
        drop(hub);
    }
}
