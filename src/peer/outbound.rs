//! Messages to agents of peers: each has a connection of its own, and is sent once.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::peer::limits::PEER_MESSAGE_BYTES_MAX;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::config::Dial;
use super::connection::{Connection, Failed, connect};
use super::identity::message_id;
use super::message::{Kind, Message, RemoteAgent, Request, Response, line};
use super::network::{Network, count, now};
use super::wire::WireError;
use crate::tool::remote::{RemoteAgents, RemoteEnd, RemoteMessage};

/// Names that an error lists.
const LISTED_MAX: usize = 20;

/// Where a message goes.
#[derive(Clone, Debug, PartialEq)]
struct Target {
    node_id: String,
    dial: Dial,
    /// The agent as the peer knows it: its id, where that is known.
    agent: String,
}

/// An agent of a peer.
struct Candidate<'a> {
    node_id: &'a str,
    node_name: &'a str,
    dial: Option<&'a Dial>,
    agents: &'a [RemoteAgent],
}

/// Whom `to` means: an agent by its name or id, or by one of these and a node.
fn resolve<'a>(to: &str, peers: impl Iterator<Item = Candidate<'a>>) -> Result<Target, String> {
    let (name, node) = match to.rsplit_once('@') {
        Some((name, node)) => (name, Some(node)),
        None => (to, None),
    };
    let of_node = |peer: &Candidate<'_>| node.is_none_or(|node| peer.node_id == node || peer.node_name == node);
    let peers: Vec<_> = peers.filter(of_node).collect();
    if let (Some(node), true) = (node, peers.is_empty()) {
        return Err(format!("there is no connected node {}", line(node)));
    }
    let matching = |agent: &&RemoteAgent| agent.id == name || agent.name == name;
    let mut found: Vec<(&Candidate<'_>, String)> =
        peers.iter().filter_map(|peer| Some((peer, peer.agents.iter().find(matching)?.id.clone()))).collect();
    if let (true, [only], true) = (found.is_empty(), peers.as_slice(), node.is_some()) {
        // A node need not tell of all its agents.
        found.push((only, name.to_owned()));
    }
    let list = |names: Vec<String>| names.into_iter().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
    match found.as_slice() {
        [] => {
            let all =
                peers.iter().flat_map(|peer| peer.agents.iter().map(|of| format!("{}@{}", of.name, peer.node_name)));
            let all = list(all.collect());
            let known = if all.is_empty() { "none".to_owned() } else { all };
            Err(format!("no agent {} is known on this node or another one; agents of other nodes: {known}", line(name)))
        }
        [(peer, agent)] => match peer.dial {
            Some(dial) => Ok(Target { node_id: peer.node_id.to_owned(), dial: dial.clone(), agent: agent.clone() }),
            None => Err(format!("the address of node {} is not known; add it to bootstrap_peers", peer.node_name)),
        },
        several => {
            let names = several.iter().map(|(peer, _)| format!("{}@{}", line(name), peer.node_id)).collect();
            Err(format!("several nodes have an agent {}; name one of: {}", line(name), list(names)))
        }
    }
}

impl RemoteAgents for Network {
    fn send(self: Arc<Self>, message: RemoteMessage) -> BoxFuture<'static, RemoteEnd> {
        Box::pin(async move {
            let end = send(&self, message).await;
            match end {
                RemoteEnd::Answered(_) | RemoteEnd::Sent(_) | RemoteEnd::Refused(_) => count(&self.counts.sent),
                RemoteEnd::Unknown(_) => {
                    count(&self.counts.sent);
                    count(&self.counts.unknown);
                }
                RemoteEnd::NotSent(_) => {}
            }
            end
        })
    }
}

async fn send(network: &Arc<Network>, RemoteMessage { to, text, sender, wait }: RemoteMessage) -> RemoteEnd {
    if text.len() > PEER_MESSAGE_BYTES_MAX {
        return RemoteEnd::NotSent(format!("a message to another node has at most {PEER_MESSAGE_BYTES_MAX} bytes"));
    }
    let peers = network.table.all();
    let candidates = peers.iter().map(|(node_id, peer)| Candidate {
        node_id,
        node_name: &peer.node_name,
        dial: peer.dial.as_ref(),
        agents: &peer.agents,
    });
    let target = match resolve(&to, candidates) {
        Ok(target) => target,
        Err(reason) => return RemoteEnd::NotSent(reason),
    };
    let end = Instant::now() + Duration::from_secs(network.config.response_timeout_secs);
    let Ok(Ok(permit)) = timeout_at(end, Arc::clone(&network.sending).acquire_owned()).await else {
        return RemoteEnd::NotSent("too many messages to other nodes are under way".to_owned());
    };
    let connection = match connect(network, &target.dial, Some(&target.node_id)).await {
        Ok(connection) => connection,
        Err(error) => return RemoteEnd::NotSent(reason(&error)),
    };
    let id = message_id();
    let request = Request::AgentMessage { agent: target.agent, message: text, sender: Some(sender) };
    let mut sending = Sending { network: Arc::clone(network), connection, dial: target.dial, id, end };
    if let Err(error) = sending.connection.send(&Message::new(&*sending.id, Kind::Request(request))).await {
        return RemoteEnd::Unknown(error.to_string());
    }
    if wait {
        let end = sending.answer().await;
        drop(permit);
        return end;
    }
    let sent = format!("Sent. message_id: {}. The reply is not awaited.", sending.id);
    // The connection stays until the answer comes, for the peer to see nothing else than from one that waits.
    tokio::spawn(async move {
        let end = sending.answer().await;
        tracing::debug!(answered = matches!(end, RemoteEnd::Answered(_)), "a message to another node has ended");
        drop(permit);
    });
    RemoteEnd::Sent(sent)
}

/// Why there is no connection, in words.
fn reason(error: &Failed) -> String {
    match error {
        Failed::Wire(WireError::Io(_)) => "the node cannot be reached".to_owned(),
        error => error.to_string(),
    }
}

/// A message that was sent.
struct Sending {
    network: Arc<Network>,
    connection: Connection,
    dial: Dial,
    id: String,
    end: Instant,
}

impl Sending {
    async fn answer(&mut self) -> RemoteEnd {
        loop {
            let message = match timeout_at(self.end, self.connection.next(&self.network)).await {
                Ok(Ok(message)) => message,
                Ok(Err(error)) => return RemoteEnd::Unknown(error.to_string()),
                Err(_) => return RemoteEnd::Unknown("the other node did not answer in time".to_owned()),
            };
            // Now it is certain that its handshake was none that someone recorded.
            self.network.table.met(&self.connection.known, &self.dial, now());
            match message.kind {
                Kind::Response(response) if message.id == self.id => return ended(response),
                // What it tells or asks beside belongs to other connections.
                _ => {}
            }
        }
    }
}

fn ended(response: Response) -> RemoteEnd {
    match response {
        Response::Answer { text } => RemoteEnd::Answered(text),
        Response::Error { code, message } => RemoteEnd::Refused(format!("{} (code {code})", line(&message))),
        _ => RemoteEnd::Unknown("the other node gave an answer of another kind".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;
    use crate::peer::config::NetworkConfig;

    fn agents(names: &[&str]) -> Vec<RemoteAgent> {
        let agent =
            |name: &&str| RemoteAgent { id: format!("id-{name}"), name: (*name).to_owned(), ..RemoteAgent::default() };
        names.iter().map(agent).collect()
    }

    #[test]
    fn an_agent_is_found_by_name_id_and_node() {
        let text = "[n]\nbootstrap_peers = [\"10.0.0.2:1\"]\n";
        let dial = read_table::<NetworkConfig>("n", text).unwrap().config.bootstrap_peers.remove(0);
        let (of_a, of_b, of_c) = (agents(&["one", "both"]), agents(&["two", "both"]), agents(&["far"]));
        let find = |to: &str| {
            let peers = [("n1", "a", Some(&dial), &of_a), ("n2", "b", Some(&dial), &of_b), ("n3", "c", None, &of_c)];
            let candidates = peers.into_iter();
            resolve(
                to,
                candidates.map(|(node_id, node_name, dial, agents)| Candidate { node_id, node_name, dial, agents }),
            )
        };
        let found = |to: &str| find(to).map(|target| (target.node_id, target.agent));
        let is = |node: &str, agent: &str| Ok((node.to_owned(), agent.to_owned()));
        assert_eq!(found("one"), is("n1", "id-one"));
        assert_eq!(found("id-two"), is("n2", "id-two"));
        assert_eq!(found("both@b"), is("n2", "id-both"));
        assert_eq!(found("id-both@n1"), is("n1", "id-both"));
        assert_eq!(found("hidden@a"), is("n1", "hidden"), "a node need not tell of all its agents");
        for (to, why) in [
            ("both", "name one of: both@n1, both@n2"),
            ("none", "agents of other nodes: one@a, both@a, two@b, both@b, far@c"),
            ("x@nowhere", "no connected node nowhere"),
            ("far", "is not known; add it to bootstrap_peers"),
        ] {
            let error = found(to).unwrap_err();
            assert!(error.contains(why), "{to}: {error}");
        }
    }
}
