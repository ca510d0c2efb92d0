//! When a standby takes over: its owner has closed the world or is silent, and no better standby does it first.

use agentsvc_api::cluster::NodeRole;

use super::members::{BEAT_MS, Members, SILENCE_MS};
use super::moment::boot_time;
use crate::kernel::store::journal::entry::{Body, Entry};

/// Milliseconds by which each standby waits longer than the one before it.
const RANK_MS: u64 = 500;
/// Milliseconds in which a node that has opened the world says so.
const OPENING_MS: u64 = 1_000;
/// Milliseconds before a standby that failed to take over tries again.
const AGAIN_MS: u64 = 2_000;

/// What a standby has seen of owners.
pub(super) struct Watch {
    /// Since when it looks.
    began: u64,
    /// Who opened the newest epoch, and when that was read; `None` before one was.
    opener: Option<(String, u64)>,
    /// The newest epoch was closed by its owner.
    is_closed: bool,
    /// Since when there is no owner.
    lost_since: Option<u64>,
    /// To whom the last owner handed the world.
    named: Option<String>,
    /// Not before this moment.
    not_before: u64,
}

impl Watch {
    /// Begins to look for owners. One that has just failed to take over, or gave the world up because it could not go on,
    /// leaves it to others first.
    pub(super) fn new(has_failed: bool) -> Self {
        let began = boot_time();
        let not_before = if has_failed { began + AGAIN_MS } else { began };
        Self { began, opener: None, is_closed: false, lost_since: None, named: None, not_before }
    }

    /// An entry was applied.
    pub(super) fn note(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Open { node } => {
                self.opener = Some((node.clone().into_owned(), boot_time()));
                (self.is_closed, self.lost_since, self.named) = (false, None, None);
            }
            Body::Close => self.is_closed = true,
            _ => {}
        }
    }

    /// Is it for this node to take over now?
    pub(super) fn is_due(&mut self, members: &Members) -> bool {
        let now = boot_time();
        if members.is_draining() || now < self.not_before || !members.hears_within(3 * BEAT_MS) {
            self.lost_since = None;
            return false;
        }
        if let Some(named) = members.named() {
            self.named = Some(named);
        }
        if !self.is_closed && (members.owner().is_some() || self.is_opening(members, now)) {
            self.lost_since = None;
            return false;
        }
        let since = *self.lost_since.get_or_insert(now);
        if !self.is_closed && now - self.began < SILENCE_MS {
            return false;
        }
        let candidates = members.candidates(self.named.as_deref());
        let rank = candidates.iter().position(|node| node == members.node());
        rank.is_some_and(|rank| now - since >= rank as u64 * RANK_MS)
    }

    /// Has another node opened the world, and is it on its way to life?
    fn is_opening(&self, members: &Members, now: u64) -> bool {
        let Some((node, read)) = &self.opener else { return false };
        let Some(opener) = members.other(node).filter(|it| it.is_alive(now)) else { return false };
        opener.beat.role() == NodeRole::Moving || now - read < OPENING_MS
    }
}
