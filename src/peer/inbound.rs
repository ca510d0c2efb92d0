//! What peers ask for.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::cpu::Asker;
use agentsvc_api::injection::shielded;
use agentsvc_api::peer::audit_kinds;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId};
use agentsvc_systems::agent::{AgentView, FindSharedAgent, GetAgent};
use agentsvc_systems::injection::Shielded;
use agentsvc_systems::peer::limits::{PEER_ANSWER_BYTES_MAX, PEER_MESSAGE_BYTES_MAX};
use agentsvc_systems::turn::{NewMessage, SendMessage, TurnReply, refused_tokens};
use serde_json::json;
use uuid::Uuid;

use super::handshake::{BAD_REQUEST, INTERNAL, Refused, TOO_LARGE, TOO_MANY};
use super::identity::session_of;
use super::message::{Kind, Message, Notification, Request, Response, line};
use super::network::{Network, count};

/// How long a peer waits for the answer of an agent at most. The turn goes on.
const ANSWER_TIME: Duration = Duration::from_secs(10 * 60);

/// What a message of a peer is answered with, if it is.
pub(crate) async fn handle(network: &Arc<Network>, node_id: &str, Message { id, kind }: Message) -> Option<Message> {
    let request = match kind {
        Kind::Request(request) => request,
        Kind::Notification(Notification::ShuttingDown | Notification::Unknown) | Kind::Response(_) | Kind::Unknown => {
            return None;
        }
        Kind::Notification(told) => {
            // Agents that come and go are not the peer's requests: what they change is bounded, as their number is in a connection.
            network.table.told(node_id, told);
            return None;
        }
    };
    let answer = match network.request(node_id) {
        Ok(()) => answer(network, node_id, request).await,
        Err(refused) => Err(refused),
    };
    let response = answer.unwrap_or_else(|Refused { code, reason, .. }| Response::Error { code, message: reason });
    Some(Message::new(id, Kind::Response(response)))
}

async fn answer(network: &Arc<Network>, node_id: &str, request: Request) -> Result<Response, Refused> {
    match request {
        Request::Ping => Ok(Response::Pong { uptime_secs: network.started.elapsed().as_secs() }),
        Request::Discover { query } => {
            let agents = match &*line(query.trim()) {
                "" => network.agents.list().await.to_vec(),
                query => network.agents.find(Some(query)).await.map_err(|refusal| refused(&refusal))?,
            };
            Ok(Response::DiscoverResult { agents })
        }
        Request::AgentMessage { agent, message, sender } => {
            let text = say(network, node_id, &agent, message, sender.as_deref()).await?;
            Ok(Response::Answer { text })
        }
        Request::Handshake(_) => Err(Refused::new(BAD_REQUEST, "the handshake has ended")),
        Request::Unknown => Err(Refused::new(BAD_REQUEST, "this method is not known")),
    }
}

/// The agent that a peer means, if peers may see it.
async fn find(network: &Network, agent: &str) -> Result<AgentView, Refused> {
    let found = match agent.parse::<Uuid>() {
        Ok(id) => network.bridge.ask(GetAgent(AgentId(id))).await,
        Err(_) => network.bridge.ask(FindSharedAgent(agent.into())).await,
    };
    match found {
        Ok(view) if view.owner.is_none() && network.agents.shows(&view.name) => Ok(view),
        Err(refusal) if refusal.kind != RefusalKind::NotFound => Err(refused(&refusal)),
        // One that is hidden is as good as none.
        _ => Err(Refused::new(BAD_REQUEST, format!("there is no agent {}", line(agent)))),
    }
}

/// A refusal of the world, as far as a stranger may know it.
pub(super) fn refused(refusal: &Refusal) -> Refused {
    let code = match refusal.kind {
        RefusalKind::TooMany | RefusalKind::Busy => TOO_MANY,
        RefusalKind::BadRequest | RefusalKind::NotFound | RefusalKind::Conflict => BAD_REQUEST,
        RefusalKind::Forbidden | RefusalKind::Failed | RefusalKind::NoRoom => INTERNAL,
    };
    Refused::new(code, if code == INTERNAL { "the agent could not answer" } else { &refusal.message })
}

/// Ends the turn of a peer in its usage, however it ends.
struct Begun {
    network: Arc<Network>,
    node_id: String,
    tokens: u64,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.network.turn_ended(&self.node_id, self.tokens);
    }
}

/// An agent gets the message of a peer: untrusted content, in the session that the peer has with it.
async fn say(
    network: &Arc<Network>,
    node_id: &str,
    agent: &str,
    text: String,
    sender: Option<&str>,
) -> Result<String, Refused> {
    if text.len() > PEER_MESSAGE_BYTES_MAX {
        return Err(Refused::new(TOO_LARGE, format!("a message has at most {PEER_MESSAGE_BYTES_MAX} bytes")));
    }
    if text.trim().is_empty() {
        return Err(Refused::new(BAD_REQUEST, "message must not be empty"));
    }
    let view = find(network, agent).await?;
    let session = SessionId(session_of(view.id.0, node_id));
    network.turn_begins(node_id, session).await?;
    let mut begun = Begun { network: Arc::clone(network), node_id: node_id.to_owned(), tokens: 0 };
    let policy = network.injection;
    let shielded = shielded(Asker::daemon("peer"), policy, "another node", text).await;
    let Shielded { text, found } = shielded.map_err(|_| Refused::new(INTERNAL, "the message could not be scanned"))?;
    let message = NewMessage {
        origin: Origin::Peer,
        taint: Taint::PEER,
        found: found.map(|found| *found).into_iter().collect(),
        ..NewMessage::text(text)
    };
    let details = json!({ "node_id": node_id, "sender": sender.map(line), "session": session.0 });
    network.note(audit_kinds::PEER_MESSAGE, Some(view.id), details).await;
    count(&network.counts.received);
    let command = SendMessage { agent: view.id, session: Some(session), message };
    let bridge = network.bridge.clone();
    // It goes on when the peer has gone, so that what it costs is counted.
    let turn = tokio::spawn(async move {
        let answer = bridge.ask(command).await;
        begun.tokens = match &answer {
            Ok(TurnReply { usage, .. }) => usage.tokens(),
            Err(refusal) => refused_tokens(refusal),
        };
        drop(begun);
        answer
    });
    let answer = tokio::time::timeout(ANSWER_TIME, turn).await;
    let answer = answer.map_err(|_| Refused::new(INTERNAL, "the agent did not answer in time"))?;
    let answer = answer.map_err(|_| Refused::new(INTERNAL, "the agent could not answer"))?;
    let answer = answer.map_err(|refusal| refused(&refusal))?;
    if answer.end != TurnEnd::Done {
        return Err(Refused::new(INTERNAL, "the agent was stopped before it answered"));
    }
    let mut text = answer.response;
    text.truncate(text.floor_char_boundary(PEER_ANSWER_BYTES_MAX));
    Ok(text)
}
