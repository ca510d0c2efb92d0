//! What the client was told. A thing of the world is a register: it may hold what was acknowledged last, and what was asked
//! for since, for a request that was not answered may have been carried out or not.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::{AgentId, SessionId, TurnId};

/// The value of what is gone.
pub(crate) const GONE: &str = "gone";

/// A request under way.
struct Pending {
    id: u64,
    key: String,
    value: String,
}

/// A message that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Its place in the order in which messages were sent.
    pub(crate) number: u64,
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnId,
}

/// Everything the client was told, and still has to be true.
#[derive(Default)]
pub(crate) struct Facts {
    registers: BTreeMap<String, BTreeSet<String>>,
    pending: Vec<Pending>,
    next: u64,
    /// Messages by session, as they were acknowledged.
    pub(crate) messages: BTreeMap<SessionId, Vec<Told>>,
    /// Messages of an agent up to this number may be gone: its history was cleared, or a session of it.
    cleared: BTreeMap<AgentId, u64>,
}

impl Facts {
    /// It is asked for that `key` becomes `value`.
    pub(crate) fn submit(&mut self, key: impl Into<String>, value: impl Into<String>) -> u64 {
        let (key, value) = (key.into(), value.into());
        if let Some(may_be) = self.registers.get_mut(&key) {
            may_be.insert(value.clone());
        }
        self.next += 1;
        self.pending.push(Pending { id: self.next, key, value });
        self.next
    }

    /// That was done, and is durable.
    pub(crate) fn acknowledge(&mut self, id: u64) {
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else { return };
        let Pending { key, value, .. } = self.pending.remove(at);
        self.pending.retain(|other| other.key != key || other.id > id);
        let later = self.pending.iter().filter(|other| other.key == key).map(|other| other.value.clone());
        let may_be = later.chain([value]).collect();
        self.registers.insert(key, may_be);
    }

    /// Something new is there.
    pub(crate) fn learn(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let id = self.submit(key, value);
        self.acknowledge(id);
    }

    /// Nobody knows any more what these are.
    pub(crate) fn forget(&mut self, prefix: &str) {
        self.registers.retain(|key, _| !key.starts_with(prefix));
        self.pending.retain(|pending| !pending.key.starts_with(prefix));
    }

    /// Requests that were under way are not answered any more.
    pub(crate) fn die(&mut self) {
        self.pending.clear();
    }

    /// What each may be.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &BTreeSet<String>)> {
        self.registers.iter()
    }

    /// A message was acknowledged.
    pub(crate) fn told(&mut self, session: SessionId, told: Told) {
        if self.cleared.get(&told.agent).is_none_or(|upto| told.number > *upto) {
            self.messages.entry(session).or_default().push(told);
        }
    }

    /// Messages of this agent so far may be gone.
    pub(crate) fn clear(&mut self, agent: AgentId, number: u64) {
        self.cleared.insert(agent, number);
        self.messages.values_mut().for_each(|told| told.retain(|told| told.agent != agent));
    }
}
