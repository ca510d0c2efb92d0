//! Giving the world away in order, for a move or because the daemon stops: first the other nodes learn that this one takes no more
//! requests, then what it has begun is answered, and only then the world goes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_api::cluster::{ClusterError, Moved, NodeRole};
use tokio::sync::oneshot;

use super::members::Members;
use super::moment::boot_time;
use super::nats::Wire;
use super::node::{self, Node};

/// Milliseconds for which it is waited until every node that is alive sends its requests elsewhere.
const TOLD_MS: u64 = 1_000;
/// For requests that were sent before their node knew.
const ON_THE_WAY: Duration = Duration::from_millis(50);
/// Milliseconds that a move waits for what was begun. A turn that takes longer goes on at the next owner, and whoever waits for
/// its answer is told that the outcome is not known.
const FINISH_MS: u64 = 5_000;
/// Milliseconds within which a world that was given away should have another owner.
const MOVE_MS: u64 = 10_000;
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(5);

impl Members {
    /// Does this node answer what it has begun, and take no more?
    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Acquire)
    }

    /// This node answers what it has begun, and takes no more; or not any more.
    pub(super) fn set_finishing(&self, finishing: bool) {
        self.finishing.store(finishing, Ordering::Release);
    }

    /// The node that this one passes requests on to.
    pub(super) fn sends_to(&self) -> Option<String> {
        let is_standby = matches!(self.own_role(), NodeRole::Standby | NodeRole::Joining);
        self.owner().filter(|_| is_standby).map(|owner| owner.beat.node)
    }

    /// Does no node that is alive pass requests on to this one?
    fn is_left(&self) -> bool {
        let now = self.now();
        let others = self.others.lock();
        let mut alive = others.values().filter(|it| it.is_alive(now));
        alive.all(|it| it.beat.sends_to.as_deref() != Some(self.node()))
    }

    /// Does the node at `url` answer what it has begun before it gives the world away?
    pub(super) fn finishes(&self, url: &str) -> bool {
        let now = self.now();
        self.others.lock().values().any(|it| it.is_alive(now) && it.beat.finishing && it.beat.url == url)
    }

    /// Does another node that owns the world answer what it has begun before it gives it away?
    pub(super) fn is_being_finished(&self) -> bool {
        let now = self.now();
        let others = self.others.lock();
        let mut alive = others.values().filter(|it| it.is_alive(now));
        alive.any(|it| it.beat.finishing && it.beat.role() == NodeRole::Moving)
    }
}

/// From here on this owner takes no more requests. Ends when the other nodes know, or soon.
///
/// # Errors
/// No server took the message; then the other nodes do not know.
pub(super) async fn announce(wire: &Wire, members: &Members) -> Result<(), String> {
    members.set_finishing(true);
    members.set_role(NodeRole::Moving);
    super::talk::say(wire, members).await?;
    let began = members.now();
    while !members.is_left() && members.now() - began < TOLD_MS {
        tokio::time::sleep(LOOK).await;
    }
    tokio::time::sleep(ON_THE_WAY).await;
    Ok(())
}

/// Takes no more, and answers what was begun.
///
/// # Errors
/// The other nodes cannot be told; then this node is what it was.
fn finish(wire: &Wire, members: &Members, api: &Api) -> Result<(), ClusterError> {
    if let Err(text) = wire.wait(announce(wire, members)) {
        members.set_finishing(false);
        members.set_role(NodeRole::Owner);
        return Err(ClusterError::Journal(text));
    }
    let began = members.now();
    while api.elsewhere.begun() > 0 && members.standing.newer().is_none() && members.now() - began < FINISH_MS {
        std::thread::sleep(LOOK);
    }
    let left = api.elsewhere.begun();
    if left > 0 {
        tracing::warn!(left, "the world is given away before all requests that were begun are answered");
    }
    Ok(())
}

impl Node {
    /// Says to whom the world goes, answers what was begun, and says when the world is there. False when it stays.
    pub(super) fn hand_over(&self, to: String, done: oneshot::Sender<Result<Moved, ClusterError>>) -> bool {
        if !self.members.candidates(Some(&to)).contains(&to) || to == self.members.node() {
            let text = format!("node {to} is not a standby that can take over");
            drop(done.send(Err(ClusterError::NotReady(text))));
            return false;
        }
        let began = boot_time();
        self.members.set_next(Some(to));
        if let Err(error) = finish(&self.wire, &self.members, &self.api) {
            self.members.set_next(None);
            drop(done.send(Err(error)));
            return false;
        }
        let (members, own) = (Arc::clone(&self.members), self.members.standing.epoch.load(Ordering::Acquire));
        let given = boot_time();
        self.wire.spawn(async move {
            let moved = loop {
                tokio::time::sleep(node::LOOK).await;
                let owner = members.owner().filter(|it| it.beat.epoch > own);
                if let Some(owner) = owner {
                    let paused_ms = boot_time() - began;
                    break Ok(Moved { owner: owner.beat.node, epoch: owner.beat.epoch, paused_ms });
                }
                if boot_time() - given > MOVE_MS {
                    break Err(ClusterError::Unknown("no node has taken the world over yet".to_owned()));
                }
            };
            members.set_next(None);
            drop(done.send(moved));
            // Until here, whoever waits for the answer through another node waits for this one.
            tokio::time::sleep(ON_THE_WAY).await;
            members.set_finishing(false);
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::super::members::tests::{at, beat};
    use super::super::members::{Beat, SILENCE_MS};
    use super::*;

    #[test]
    fn a_node_is_left_when_every_node_that_is_alive_sends_its_requests_elsewhere() {
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        let sends = |node: &str, to: Option<&str>| Beat {
            sends_to: to.map(str::to_owned),
            ..beat(node, NodeRole::Standby, 1, 5)
        };
        members.hear(sends("a", Some("b")));
        members.hear(sends("c", Some("a")));
        assert!(!members.is_left());
        members.hear(sends("a", None));
        assert!(members.is_left());
        members.hear(sends("a", Some("b")));
        now.fetch_add(SILENCE_MS, Ordering::Relaxed);
        assert!(members.is_left(), "it died");
    }

    #[test]
    fn standbys_know_an_owner_that_finishes_and_send_it_nothing() {
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        members.set_role(NodeRole::Standby);
        members.hear(beat("a", NodeRole::Owner, 1, 5));
        assert_eq!((members.beat().sends_to.as_deref(), members.rows().len()), (Some("a"), 2));
        assert!(!members.is_being_finished());
        let a = beat("a", NodeRole::Moving, 1, 5);
        let url = a.url.clone();
        members.hear(Beat { finishing: true, ..a });
        assert_eq!(members.beat().sends_to, None);
        assert!(members.is_being_finished() && members.finishes(&url) && !members.finishes("http://b"));
        now.fetch_add(SILENCE_MS, Ordering::Relaxed);
        assert!(!members.is_being_finished() && !members.finishes(&url), "it died");
    }
}
