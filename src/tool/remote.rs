//! The way to agents of other nodes, for `agent_send`; the domain that knows other nodes provides it in the settings.

use std::sync::Arc;

use agentsvc_components::kernel::taint::Taint;
use futures_util::future::BoxFuture;

use super::toolset::Ended;

/// A message for an agent of another node.
#[derive(Clone, Debug)]
pub struct RemoteMessage {
    /// Whom: a name or an id, or one of these, `@` and the name or id of a node.
    pub to: String,
    /// What is said.
    pub text: String,
    /// The name of the agent that says it.
    pub sender: String,
    /// Is the answer waited for?
    pub wait: bool,
}

/// How a message to an agent of another node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteEnd {
    /// With an answer.
    Answered(String),
    /// It was sent, and its answer is not awaited.
    Sent(String),
    /// It was not sent, for this reason; nothing has happened there. The reason may have names that other nodes gave.
    NotSent(String),
    /// The other node refuses it, and says why.
    Refused(String),
    /// It was sent, and no answer came: it may or may not have arrived. The reason is a sentence of this node's own.
    Unknown(String),
}

/// Sends messages to agents of other nodes.
pub trait RemoteAgents: Send + Sync {
    /// Sends a message, once.
    fn send(self: Arc<Self>, message: RemoteMessage) -> BoxFuture<'static, RemoteEnd>;
}

/// The way to other nodes; nothing while there is no network.
#[derive(Clone, Default)]
pub struct Remote(pub Option<Arc<dyn RemoteAgents>>);

impl From<RemoteEnd> for Ended {
    /// What comes from another node is untrusted content, its refusals included.
    fn from(end: RemoteEnd) -> Self {
        let taint = Taint::PEER;
        match end {
            RemoteEnd::Answered(text) => Self::Read { text, taint },
            RemoteEnd::Sent(text) => Self::Read { text, taint: Taint::NONE },
            // Among the reasons are names of other nodes' agents, and the refusal of a handshake.
            RemoteEnd::NotSent(text) => Self::Failure { text: format!("The message was not sent: {text}."), taint },
            RemoteEnd::Refused(text) => {
                Self::Failure { text: format!("The other node refused the message: {text}"), taint }
            }
            RemoteEnd::Unknown(text) => Self::Unknown(format!(
                "Unknown: {text}. The other agent may or may not have received the message; it was not sent again. Check \
                 before you repeat it."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_node_wrote_taints() {
        for end in [RemoteEnd::Answered("x".into()), RemoteEnd::NotSent("x".into()), RemoteEnd::Refused("x".into())] {
            let shown = format!("{end:?}");
            let (Ended::Read { taint, .. } | Ended::Failure { taint, .. }) = Ended::from(end) else {
                panic!("{shown} has no taint")
            };
            assert_eq!(taint, Taint::PEER, "{shown}");
        }
    }
}
