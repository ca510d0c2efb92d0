//! Where calls are found: by what a repetition is known by, by their turns, those that wait by agent, the open ones by the time
//! they have left, the ended ones by their end.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::World;

use agentsvc_components::hook::{HookCall, HookCallId, HookKind, HookState};
use agentsvc_components::{AgentId, Timestamp, TurnId};
use uuid::Uuid;

use super::limits;
use super::restart::Lost;
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, indexed};
use crate::kernel::index;

/// Every call.
pub(super) type Calls = Entities<HookCall>;

indexed!(HookCall: CallPlaces, "hook call");

/// Calls by all that is asked of them.
#[derive(Debug, Default, PartialEq)]
pub struct CallPlaces {
    by_key: BTreeMap<Box<str>, HookCallId>,
    of_turn: BTreeSet<(TurnId, HookCallId)>,
    waiting: BTreeSet<(AgentId, HookCallId)>,
    due: BTreeSet<(Timestamp, HookCallId)>,
    /// How many of them are of the inbox.
    inbox: usize,
    ended: BTreeSet<(Timestamp, HookCallId)>,
}

const FIRST: HookCallId = HookCallId(Uuid::nil());
const LAST: HookCallId = HookCallId(Uuid::max());

impl CallPlaces {
    /// The call that this key names.
    pub(super) fn by_key(&self, key: &str) -> Option<HookCallId> {
        self.by_key.get(key).copied()
    }

    /// The open calls that this turn answers.
    pub(super) fn of_turn(&self, turn: TurnId) -> Vec<HookCallId> {
        self.of_turn.range((turn, FIRST)..=(turn, LAST)).map(|(_, id)| *id).collect()
    }

    /// Those that wait for an agent to wake, the oldest first.
    pub(super) fn waiting(&self, agent: AgentId) -> Vec<HookCallId> {
        self.waiting.range((agent, FIRST)..=(agent, LAST)).map(|(_, id)| *id).collect()
    }

    /// How many wait.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// How many have a turn that is open.
    pub(super) fn running_count(&self) -> usize {
        self.due.len() - self.waiting.len()
    }

    /// How many of them are files of the inbox.
    pub(super) const fn inbox_count(&self) -> usize {
        self.inbox
    }

    /// The open ones, the one first that has the least time left.
    pub(super) fn due(&self) -> impl DoubleEndedIterator<Item = (Timestamp, HookCallId)> + '_ {
        self.due.iter().copied()
    }

    /// The ended ones that nothing holds, the oldest end first.
    pub(super) fn ended(&self) -> impl DoubleEndedIterator<Item = (Timestamp, HookCallId)> + '_ {
        self.ended.iter().copied()
    }
}

impl entities::Places<HookCall> for CallPlaces {
    fn insert(&mut self, id: HookCallId, call: &HookCall) {
        if !call.key.is_empty() {
            self.by_key.insert(call.key.clone(), id);
        }
        if call.state == HookState::Waiting {
            self.waiting.insert((call.agent, id));
        }
        match call.ended_at {
            None => {
                self.of_turn.extend(call.turn.map(|turn| (turn, id)));
                self.due.insert((call.due_at(), id));
                self.inbox += usize::from(call.kind == HookKind::Inbox);
            }
            Some(at) if !call.held => {
                self.ended.insert((at, id));
            }
            Some(_) => {}
        }
    }

    fn remove(&mut self, id: HookCallId, call: &HookCall) {
        if self.by_key(&call.key) == Some(id) {
            self.by_key.remove(&call.key);
        }
        self.waiting.remove(&(call.agent, id));
        if let Some(turn) = call.turn {
            self.of_turn.remove(&(turn, id));
        }
        self.due.remove(&(call.due_at(), id));
        match call.ended_at {
            Some(at) => {
                self.ended.remove(&(at, id));
            }
            None => self.inbox -= usize::from(call.kind == HookKind::Inbox),
        }
    }
}

/// Says which index is wrong, and which call lacks its turn ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<HookCall>(world, faults, |world, id, call, faults| {
        let is_open = call.state.is_open();
        faults.that(call.ended_at.is_none() == is_open, || format!("hook call {id}: {:?}", call.state));
        let has_turn = call.turn.is_some_and(|turn| index::turn(world, turn).is_some());
        let is_lost = world.resource::<Lost>().has(id);
        let is_running = call.state == HookState::Running;
        faults.that(!is_running || has_turn || is_lost, || format!("hook call {id}: it runs and has no turn"));
        let is_waiting = call.state == HookState::Waiting;
        faults.that(!is_waiting || call.turn.is_none(), || format!("hook call {id}: it waits and has a turn"));
    });
    let calls = world.resource::<Calls>();
    let (running, waiting) = (calls.running_count(), calls.waiting_count());
    faults.that(waiting <= limits::HOOK_WAITING_MAX, || format!("{waiting} hook calls wait"));
    let most = limits::HOOK_CALLS_RUNNING_MAX + limits::HOOK_WAITING_MAX;
    faults.that(running <= most, || format!("{running} hook calls run"));
}
