//! Who is who in a forked world: names for fires and reports, read from the records before they come to life.

use std::collections::{HashMap, HashSet};

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::trigger::record::TriggerRecord;
use agentsvc_components::{AgentId, ScheduleId, Timestamp};
use agentsvc_systems::Records;
use uuid::Uuid;

agentsvc_components::enum_words! {
    /// What fires.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SourceKind [ALL, as_str] {
        /// A schedule.
        Schedule = "schedule",
        /// A cron job.
        Cron = "cron",
        /// A trigger.
        Trigger = "trigger",
    }
}

/// A schedule, cron job or trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Which of them.
    pub kind: SourceKind,
    /// The name of a cron job.
    pub name: Option<Box<str>>,
    /// The rule, or the pattern as JSON text.
    pub rule: Box<str>,
    /// Agent.
    pub agent: AgentId,
}

/// Who is who.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// The names of agents.
    pub agents: HashMap<AgentId, Box<str>>,
    /// What fires, by id.
    pub sources: HashMap<Uuid, Card>,
}

impl Directory {
    /// Everybody of `records`.
    pub fn of(records: &Records) -> Self {
        let agents = records.iter::<AgentRecord>().map(|agent| (agent.id, agent.name.clone())).collect();
        let schedules = records.iter::<ScheduleRecord>().map(|record| {
            let kind = match record.kind {
                ScheduleKind::Schedule => SourceKind::Schedule,
                ScheduleKind::Cron => SourceKind::Cron,
            };
            let (name, rule) = (record.name.clone(), record.rule.clone());
            (record.id.0, Card { kind, name, rule, agent: record.agent })
        });
        let triggers = records.iter::<TriggerRecord>().map(|record| {
            let (rule, agent) = (record.pattern.clone(), record.target.unwrap_or(record.agent));
            (record.id.0, Card { kind: SourceKind::Trigger, name: None, rule, agent })
        });
        Self { agents, sources: schedules.chain(triggers).collect() }
    }

    /// The name of an agent; empty for one that is not known.
    pub fn name(&self, agent: AgentId) -> &str {
        self.agents.get(&agent).map_or("", |name| name)
    }
}

/// The slots of `records` that wait for an open run already.
pub fn waiting(records: &Records) -> HashSet<(ScheduleId, Timestamp)> {
    let states = records.iter::<ScheduleStateRecord>();
    states
        .flat_map(|state| state.past.iter().flat_map(|past| past.queue.iter().map(|slot| (state.id, *slot))))
        .collect()
}
