//! The line of the tool calls that wait for a place, fair over users and families of agents, and the places of those that are out.

use bevy_ecs::prelude::{Entity, Resource};
use hashbrown::HashMap;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;

use crate::kernel::lane::{Lane, Place};

/// The tool calls that wait for a place among those that run, and those that run.
#[derive(Resource, Default)]
pub(crate) struct ToolLane {
    /// By who shares places: see [`holder_of`](crate::agent::holder_of).
    waiting: Lane<(Entity, u32), Holder>,
    /// The calls that wait, and where.
    places: HashMap<(Entity, u32), Place<Holder>>,
    /// Calls that are out, stale ones included; at most [`limit::TOOLS_OUT_MAX`].
    out: HashMap<(Attempt, u32), Out>,
    /// How many of them each of them has; at most [`limit::TOOLS_OUT_FAMILY_MAX`].
    held: HashMap<Holder, usize>,
    /// No more calls go out.
    pub(super) is_closed: bool,
}

/// A call that is out.
#[derive(Clone, Copy)]
pub(super) struct Out {
    /// Its agent.
    pub(super) agent: AgentId,
    /// Who shares its place.
    pub(super) holder: Holder,
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
            && self.waiting.any_of(|holder| has_room(&self.held, holder))
    }

    /// A call stands in line, unless it does already.
    pub(super) fn push(&mut self, holder: Holder, turn: Entity, index: u32) {
        let waiting = &mut self.waiting;
        self.places.entry((turn, index)).or_insert_with(|| waiting.push(holder, (turn, index)));
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
        let next = self.waiting.pop_of(|holder| has_room(held, holder))?;
        self.places.remove(&next);
        Some(next)
    }

    /// May another call of theirs go out?
    pub(super) fn has_room(&self, holder: Holder) -> bool {
        has_room(&self.held, holder)
    }

    /// A call goes out.
    pub(super) fn take(&mut self, attempt: Attempt, index: u32, out: Out) {
        if self.out.insert((attempt, index), out).is_none() {
            *self.held.entry(out.holder).or_default() += 1;
        }
    }

    /// May a call of the agent that is out write untrusted content into its workspace? The turn of the call may have ended: a
    /// stopped command runs until it is gone.
    pub(super) fn may_taint_files(&self, agent: AgentId) -> bool {
        self.out.values().any(|out| out.agent == agent && !out.writes.is_none())
    }

    /// A call is out no more.
    pub(super) fn give_back(&mut self, attempt: Attempt, index: u32) {
        let Some(Out { holder, .. }) = self.out.remove(&(attempt, index)) else { return };
        if let Some(held) = self.held.get_mut(&holder) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&holder);
            }
        }
    }
}

/// May another call of theirs go out?
fn has_room(held: &HashMap<Holder, usize>, holder: Holder) -> bool {
    held.get(&holder).is_none_or(|held| *held < limit::TOOLS_OUT_FAMILY_MAX)
}
