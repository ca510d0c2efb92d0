//! A stored world comes to life: records become entities and indexes, and what was under way goes on.

mod chunks;

use bevy_ecs::prelude::World;
use hashbrown::HashMap;

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::approval::record::ApprovalRecord;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::compaction::record::CompactionRecord;
use agentsvc_components::goal::record::GoalRecord;
use agentsvc_components::manifest::{Manifest, ManifestHash};
use agentsvc_components::memory::record::MemoryUseRecord;
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::task::record::TaskRecord;
use agentsvc_components::trigger::record::{
    BurstLeftRecord, BurstRecord, TriggerRecord, TriggerStateRecord, WaveRecord,
};
use agentsvc_components::turn::effect::Effect;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::turn::{BurstPlace, Turn};
use agentsvc_components::usage::record::{BudgetRecord, CallRecord, ScopeUseRecord};
use agentsvc_components::usage::{Bucket, UsageSum};
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunRecord, RunTextRecord, WorkflowRecord};
use agentsvc_components::{AgentId, LogId, RunId, TurnId};

use crate::agent::manifests::Manifests;
use crate::kernel::mint::Mint;
use crate::kernel::outbox::Emit;
use crate::kernel::record;
use crate::kernel::record::{Error, Stored};
use crate::memory;
use crate::{approval, audit, budget, compaction, goal, schedule, task, trigger, turn, usage, workflow};

pub use chunks::{Chunks, ChunksIter};

/// Everything a world is made of. Order within a kind does not matter.
#[derive(Debug, Default)]
pub struct Records {
    /// Shared manifests.
    pub manifests: Vec<(ManifestHash, Manifest)>,
    /// Agents.
    pub agents: Chunks<AgentRecord>,
    /// Sessions.
    pub sessions: Chunks<SessionRecord>,
    /// Open turns.
    pub turns: Vec<TurnRecord>,
    /// Compactions under way.
    pub compactions: Vec<CompactionRecord>,
    /// Logs that wait to be erased.
    pub sweeps: Vec<LogId>,
    /// Agents that are gone and whose content waits to be erased.
    pub agent_sweeps: Vec<AgentId>,
    /// How much memory agents have.
    pub memory_uses: Vec<MemoryUseRecord>,
    /// Model calls that were out.
    pub calls: Vec<CallRecord>,
    /// What scopes have spent.
    pub scope_uses: Vec<ScopeUseRecord>,
    /// Sums of usage.
    pub usage_sums: Vec<(Bucket, UsageSum)>,
    /// Budgets.
    pub budgets: Vec<BudgetRecord>,
    /// Both ends of the audit trail; `None` when nothing was ever written.
    pub audit: Option<AuditHead>,
    /// Goals.
    pub goals: Vec<GoalRecord>,
    /// Tasks of the queue.
    pub tasks: Vec<TaskRecord>,
    /// Workflow definitions.
    pub workflows: Vec<WorkflowRecord>,
    /// Runs of workflows.
    pub runs: Vec<RunRecord>,
    /// What runs were begun with.
    pub run_plans: Vec<(RunId, RunPlanRecord)>,
    /// Texts of runs.
    pub run_texts: Vec<(RunId, RunPart, RunTextRecord)>,
    /// Triggers.
    pub triggers: Vec<TriggerRecord>,
    /// What triggers did so far.
    pub trigger_states: Vec<TriggerStateRecord>,
    /// Matches that wait to be delivered.
    pub waves: Vec<WaveRecord>,
    /// Fires whose turns have not changed since.
    pub bursts: Vec<BurstRecord>,
    /// Which fires have left them.
    pub bursts_left: Vec<BurstLeftRecord>,
    /// What schedules and cron jobs are.
    pub schedules: Vec<ScheduleRecord>,
    /// How far they are.
    pub schedule_states: Vec<ScheduleStateRecord>,
    /// Approvals, decided ones included.
    pub approvals: Vec<ApprovalRecord>,
}

impl Records {
    /// Adds one decoded record.
    pub fn push(&mut self, stored: Stored) {
        match stored {
            Stored::Agent(record) => self.agents.push(record),
            Stored::Manifest(hash, manifest) => self.manifests.push((hash, *manifest)),
            Stored::Session(record) => self.sessions.push(record),
            Stored::Turn(record) => self.turns.push(record),
            Stored::Compaction(record) => self.compactions.push(record),
            Stored::Sweep(log) => self.sweeps.push(log),
            Stored::SweepAgent(agent) => self.agent_sweeps.push(agent),
            Stored::MemoryUse(record) => self.memory_uses.push(record),
            Stored::Call(record) => self.calls.push(record),
            Stored::ScopeUse(record) => self.scope_uses.push(record),
            Stored::UsageSum(bucket, sum) => self.usage_sums.push((bucket, sum)),
            Stored::Budget(record) => self.budgets.push(record),
            Stored::Audit(head) => self.audit = Some(head),
            Stored::Goal(record) => self.goals.push(record),
            Stored::Task(record) => self.tasks.push(record),
            Stored::Workflow(record) => self.workflows.push(record),
            Stored::Run(record) => self.runs.push(record),
            Stored::RunPlan(run, record) => self.run_plans.push((run, record)),
            Stored::RunText(run, part, record) => self.run_texts.push((run, part, record)),
            Stored::Trigger(record) => self.triggers.push(*record),
            Stored::TriggerState(record) => self.trigger_states.push(*record),
            Stored::Wave(record) => self.waves.push(record),
            Stored::Burst(record) => self.bursts.push(record),
            Stored::BurstLeft(record) => self.bursts_left.push(record),
            Stored::Schedule(record) => self.schedules.push(*record),
            Stored::ScheduleState(record) => self.schedule_states.push(record),
            Stored::Approval(record) => self.approvals.push(*record),
        }
    }

    /// Joins the parts that parallel readers made.
    pub fn append(&mut self, mut other: Self) {
        self.manifests.append(&mut other.manifests);
        self.agents.append(&mut other.agents);
        self.sessions.append(&mut other.sessions);
        self.turns.append(&mut other.turns);
        self.compactions.append(&mut other.compactions);
        self.sweeps.append(&mut other.sweeps);
        self.agent_sweeps.append(&mut other.agent_sweeps);
        self.memory_uses.append(&mut other.memory_uses);
        self.calls.append(&mut other.calls);
        self.scope_uses.append(&mut other.scope_uses);
        self.usage_sums.append(&mut other.usage_sums);
        self.budgets.append(&mut other.budgets);
        self.audit = self.audit.or(other.audit);
        self.goals.append(&mut other.goals);
        self.tasks.append(&mut other.tasks);
        self.workflows.append(&mut other.workflows);
        self.runs.append(&mut other.runs);
        self.run_plans.append(&mut other.run_plans);
        self.run_texts.append(&mut other.run_texts);
        self.triggers.append(&mut other.triggers);
        self.trigger_states.append(&mut other.trigger_states);
        self.waves.append(&mut other.waves);
        self.bursts.append(&mut other.bursts);
        self.bursts_left.append(&mut other.bursts_left);
        self.schedules.append(&mut other.schedules);
        self.schedule_states.append(&mut other.schedule_states);
        self.approvals.append(&mut other.approvals);
    }
}

pub(crate) fn dangling(id: impl ToString, what: &'static str) -> Error {
    Error::Dangling { key: id.to_string(), what }
}

/// Fills the empty `world`. On an error the world is of no use and the daemon does not start.
pub(crate) fn restore(world: &mut World, mut records: Records) -> Result<(), Error> {
    for (hash, manifest) in records.manifests.drain(..) {
        world.resource_mut::<Manifests>().load(hash, manifest);
    }
    let places = trigger::load_bursts(world, &mut records);
    crate::session::population::settle(world, records.agents, records.sessions)?;
    for hash in world.resource_mut::<Manifests>().drop_orphans() {
        world.op(record::remove_manifest(hash));
    }
    for log in records.sweeps {
        world.resource_mut::<Mint>().reserve_log(log);
        world.effect(Effect::Sweep(log));
    }
    // They stand in line in the order in which they were begun, and of two of one session the first goes on.
    records.compactions.sort_unstable_by_key(|record| record.id);
    for record in &records.compactions {
        compaction::resume(world, record);
    }
    for agent in records.agent_sweeps {
        world.effect(Effect::SweepAgent(agent));
    }
    memory::load(world, records.memory_uses);
    usage::load(world, records.usage_sums, records.scope_uses);
    budget::load(world, records.budgets);
    records.calls.sort_unstable_by_key(|call| (call.at, call.turn, call.number));
    for call in &records.calls {
        usage::resume(world, call);
    }
    if let Some(head) = records.audit {
        audit::load(world, head);
    }
    goal::load(world, records.goals);
    task::load(world, records.tasks);
    trigger::load(world, records.triggers, records.trigger_states, records.waves)?;
    schedule::load(world, records.schedules, records.schedule_states, &records.turns)?;
    approval::load(world, records.approvals);
    spawn_turns(world, records.turns, &places)?;
    let runs = workflow::Stored { runs: records.runs, plans: records.run_plans, texts: records.run_texts };
    workflow::resume(world, records.workflows, runs);
    approval::reconcile(world);
    Ok(())
}

fn spawn_turns(
    world: &mut World,
    mut records: Vec<TurnRecord>,
    places: &HashMap<TurnId, BurstPlace>,
) -> Result<(), Error> {
    // Ordinals grow within a session, so this rebuilds every inbox in the order in which it was filled.
    records.sort_unstable_by_key(|record| (record.session, record.ordinal));
    let mut waiting = Vec::new();
    for record in records {
        let agent = crate::kernel::index::agent(world, record.agent).map_err(|_| dangling(record.id, "agent"))?;
        let session =
            crate::kernel::index::session(world, record.session).ok_or_else(|| dangling(record.id, "session"))?;
        let component = Turn {
            agent,
            session,
            next: None,
            created_at: record.created_at,
            called_at: record.created_at,
            usage: record.usage,
            request: record.request,
            link: record.link,
            journal: record.journal,
            burst: places.get(&record.id).copied(),
            ordinal: record.ordinal,
            next_index: record.next_index,
            attempt: record.attempt,
            iteration: record.iteration,
            tool_calls: record.tool_calls,
            state: record.state,
            origin: record.origin,
            depth: record.depth,
            taint: record.taint,
            streaming: false,
            cancelled: record.cancelled,
            pending: record.pending,
        };
        if record.state.has_calls() {
            waiting.push(record.id);
        }
        turn::resume(world, record.id, component);
    }
    turn::sweep_hidden(world);
    turn::reconcile(world, &waiting);
    Ok(())
}

#[cfg(test)]
mod tests;
