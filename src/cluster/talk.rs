//! What nodes say to one another, by way of the servers; nothing of it is kept.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::cluster::{ClusterError, Drained};
use futures_util::StreamExt;

use super::members::{BEAT_MS, Beat, Members};
use super::nats::Wire;
use super::words::Heard;

/// How long a node may take to say that it is drained.
const DRAIN_WAIT: Duration = Duration::from_secs(3);

/// Says once how this node is.
pub(super) async fn say(wire: &Wire, members: &Members) -> Result<(), String> {
    let beat = serde_json::to_vec(&members.beat()).map_err(|error| error.to_string())?;
    let beat = wire.seals.words.say(&wire.beats(), &beat);
    let said = async {
        wire.client().publish(wire.beats(), beat.into()).await.map_err(|error| error.to_string())?;
        wire.client().flush().await.map_err(|error| error.to_string())
    };
    let limit = Duration::from_millis(2 * BEAT_MS);
    tokio::time::timeout(limit, said).await.unwrap_or_else(|_| Err("no NATS server answers".to_owned()))
}

/// Says again and again how this node is.
pub(super) async fn speak(wire: Arc<Wire>, members: Arc<Members>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(BEAT_MS));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // What waits for a server would tell the others later what was true now.
        if wire.is_connected()
            && let Err(error) = say(&wire, &members).await
        {
            tracing::debug!(%error, "the other nodes could not be told how this one is");
        }
    }
}

/// Hears of the other nodes, and of this one by way of a server.
pub(super) async fn listen(wire: Arc<Wire>, members: Arc<Members>, on_newer_owner: impl Fn()) {
    let (words, mut before_beats, mut before_drains) = (&wire.seals.words, Heard::default(), Heard::default());
    loop {
        let heard = tokio::try_join!(wire.client().subscribe(wire.beats()), wire.client().subscribe(wire.drains()));
        if let Ok((mut beats, mut drains)) = heard {
            loop {
                tokio::select! {
                    beat = beats.next() => {
                        let Some(message) = beat else { break };
                        let said = words.hear(&wire.beats(), &message.payload, &mut before_beats);
                        let beat = said.and_then(|said| serde_json::from_slice::<Beat>(said).ok());
                        let Some(beat) = beat.filter(Beat::is_fit) else { continue };
                        let before = members.sends_to();
                        members.hear(beat);
                        // An owner that gives the world away waits until it knows that nobody sends it requests.
                        if before != members.sends_to()
                            && let Err(error) = say(&wire, &members).await
                        {
                            tracing::debug!(error, "the other nodes will learn soon where this one passes requests on to");
                        }
                        if members.standing.is_claimed() {
                            on_newer_owner();
                        }
                    }
                    node = drains.next() => match node {
                        Some(message) => {
                            let node = words.hear(&wire.drains(), &message.payload, &mut before_drains);
                            if node == Some(members.node().as_bytes()) {
                                members.drain();
                            }
                        }
                        None => break,
                    },
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(BEAT_MS)).await;
    }
}

/// Asks another node, a standby, to take nothing over.
pub(super) async fn ask_to_drain(wire: &Wire, members: &Members, node: String) -> Result<Drained, ClusterError> {
    if members.other(&node).is_none() {
        return Err(ClusterError::NoNode(node));
    }
    let word = wire.seals.words.say(&wire.drains(), node.as_bytes());
    let asked = wire.client().publish(wire.drains(), word.into()).await;
    asked.map_err(|error| ClusterError::Journal(format!("node {node} could not be asked: {error}")))?;
    let is_drained = async {
        while !members.other(&node).is_some_and(|other| other.beat.draining) {
            tokio::time::sleep(Duration::from_millis(BEAT_MS / 5)).await;
        }
    };
    let drained = tokio::time::timeout(DRAIN_WAIT, is_drained).await;
    drained.map_err(|_| ClusterError::Unknown(format!("node {node} has not said yet that it is drained")))?;
    Ok(Drained { moved: Vec::new() })
}
