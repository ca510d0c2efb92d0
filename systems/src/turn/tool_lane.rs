//! The line of the tool calls that wait for a place, fair over users and families of agents, and the places of those that are out.

use bevy_ecs::prelude::{Entity, Resource};
use hashbrown::HashMap;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::Sharer;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;

use crate::kernel::lane::{Lane, Place};

/// The tool calls that wait for a place among those that run, and those that run.
#[derive(Resource, Default)]
pub(crate) struct ToolLane {
    /// By who shares places: see [`sharer_of`](crate::agent::sharer_of).
    waiting: Lane<(Entity, u32), Sharer>,
    /// The calls that wait, and where.
    places: HashMap<(Entity, u32), Place<Sharer>>,
    /// Calls that are out, stale ones included; at most [`limit::TOOLS_OUT_MAX`].
    out: HashMap<(Attempt, u32), Out>,
    /// How many of them each of them has; at most [`limit::TOOLS_OUT_FAMILY_MAX`].
    held: HashMap<Sharer, usize>,
    /// No more calls go out.
    pub(super) is_closed: bool,
}

/// A call that is out.
#[derive(Clone, Copy)]
pub(super) struct Out {
    /// Its agent.
    pub(super) agent: AgentId,
    /// Who shares its place.
    pub(super) sharer: Sharer,
    /// The taint that it may give to files of the workspace.
    pub(super) writes: Taint,
}

impl ToolLane {
    /// Tool calls that are out.
    pub(crate) fn out(&self) -> usize {
        self.out.len()
    }

    /// The calls that wait for a place, by their turn and row.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = (Entity, u32)> {
        self.waiting.items().copied()
    }

    /// Does this call have a place?
    pub(crate) fn is_out(&self, attempt: Attempt, index: u32) -> bool {
        self.out.contains_key(&(attempt, index))
    }

    /// May a further round send a call out?
    pub(crate) fn can_send(&self) -> bool {
        !self.is_closed
            && self.out.len() < limit::TOOLS_OUT_MAX
            && self.waiting.any_of(|sharer| has_room(&self.held, sharer))
    }

    /// A call stands in line, unless it does already.
    pub(super) fn push(&mut self, sharer: Sharer, turn: Entity, index: u32) {
        let waiting = &mut self.waiting;
        self.places.entry((turn, index)).or_insert_with(|| waiting.push(sharer, (turn, index)));
    }

    /// A call leaves the line, if it stands in it.
    pub(super) fn leave(&mut self, turn: Entity, index: u32) {
        if let Some(place) = self.places.remove(&(turn, index)) {
            self.waiting.take_out(place);
        }
    }

    /// The next call of one who has room.
    pub(super) fn pop(&mut self) -> Option<(Entity, u32)> {
        let held = &self.held;
        let next = self.waiting.pop_of(|sharer| has_room(held, sharer))?;
        self.places.remove(&next);
        Some(next)
    }

    /// A call goes out.
    pub(super) fn take(&mut self, attempt: Attempt, index: u32, out: Out) {
        if self.out.insert((attempt, index), out).is_none() {
            *self.held.entry(out.sharer).or_default() += 1;
        }
    }

    /// May a call of the agent that is out write untrusted content into its workspace? The turn of the call may have ended: a
    /// stopped command runs until it is gone.
    pub(super) fn may_taint_files(&self, agent: AgentId) -> bool {
        self.out.values().any(|out| out.agent == agent && !out.writes.is_none())
    }

    /// A call is out no more.
    pub(super) fn give_back(&mut self, attempt: Attempt, index: u32) {
        let Some(Out { sharer, .. }) = self.out.remove(&(attempt, index)) else { return };
        if let Some(held) = self.held.get_mut(&sharer) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&sharer);
            }
        }
    }
}

/// May another call of theirs go out?
fn has_room(held: &HashMap<Sharer, usize>, sharer: Sharer) -> bool {
    held.get(&sharer).is_none_or(|held| *held < limit::TOOLS_OUT_FAMILY_MAX)
}
