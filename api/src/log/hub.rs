//! The log hub: structured log lines on their way to `GET /api/logs/stream`, and the last ones about agents.

use std::collections::VecDeque;
use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Everyone who watches the log, and the last lines about agents. The daemon's log layer publishes here.
pub struct LogHub {
    watchers: broadcast::Sender<Arc<str>>,
    about_agents: Mutex<VecDeque<Arc<str>>>,
}

/// What the lines about agents hold: the field `agent`.
const ABOUT: &str = "\"agent\":\"";

impl Default for LogHub {
    fn default() -> Self {
        Self::new()
    }
}

impl LogHub {
    /// A hub that nobody watches.
    #[must_use]
    pub fn new() -> Self {
        Self { watchers: broadcast::Sender::new(limit::STREAM_BACKLOG_MAX), about_agents: Mutex::default() }
    }

    /// Is this line of any use here? It is when someone watches, and when it is about an agent.
    #[must_use]
    pub fn wants(&self, line: &str) -> bool {
        self.watchers.receiver_count() > 0 || is_about_an_agent(line)
    }

    /// Gives one line, a JSON object without line breaks, to everyone who watches now, and keeps it when it is about
    /// an agent. Never waits for anyone.
    pub fn publish(&self, line: Arc<str>) {
        if is_about_an_agent(&line) {
            let mut kept = self.about_agents.lock();
            if kept.len() == limit::AGENT_LOG_LINES_MAX {
                kept.pop_front();
            }
            kept.push_back(Arc::clone(&line));
        }
        // An error says that nobody watches, which is no error.
        let _ = self.watchers.send(line);
    }

    /// The lines about `agent` that are still in memory, oldest first.
    #[must_use]
    pub fn about(&self, agent: AgentId) -> Vec<Arc<str>> {
        let field = format!("{ABOUT}{agent}\"");
        self.about_agents.lock().iter().filter(|line| line.contains(&field)).cloned().collect()
    }

    /// Watches from now on.
    #[must_use]
    pub fn subscribe(&self) -> LogSubscription {
        LogSubscription(self.watchers.subscribe())
    }
}

fn is_about_an_agent(line: &str) -> bool {
    line.len() <= limit::AGENT_LOG_LINE_BYTES_MAX && line.contains(ABOUT)
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
        assert!(!hub.wants("lost"));
        hub.publish("lost".into());
        let mut subscription = hub.subscribe();
        assert!(hub.wants("seen"));
        for n in 0..=limit::STREAM_BACKLOG_MAX {
            hub.publish(n.to_string().into());
        }
        assert_eq!(subscription.next().await, Some(LogDelivery::Lagged(1)));
        assert_eq!(subscription.next().await, Some(LogDelivery::Line("1".into())));
        drop(hub);
    }

    #[test]
    fn the_last_lines_about_an_agent_are_kept() {
        let hub = LogHub::new();
        let agents = [1, 2].map(|n| AgentId(uuid::Uuid::from_u128(n)));
        let line = |agent: AgentId, n: usize| Arc::from(format!("{{\"n\":{n},\"agent\":\"{agent}\"}}"));
        hub.publish(line(agents[0], 0));
        hub.publish("{\"message\":\"about nobody\"}".into());
        assert!(!hub.wants("{}") && hub.wants(&line(agents[0], 0)));
        assert_eq!(hub.about(agents[0]), [line(agents[0], 0)]);
        for n in 0..limit::AGENT_LOG_LINES_MAX {
            hub.publish(line(agents[1], n));
        }
        assert!(hub.about(agents[0]).is_empty(), "pushed out");
        assert_eq!(hub.about(agents[1]).len(), limit::AGENT_LOG_LINES_MAX);
    }
}
