//! Totals since the daemon started.

use bevy_ecs::prelude::{Resource, World};
use serde::Serialize;

/// Totals since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default, Serialize)]
pub struct Counters {
    /// Messages taken.
    pub messages: u64,
    /// Turns that gave an answer.
    pub turns_completed: u64,
    /// Turns that ended in an error.
    pub turns_failed: u64,
    /// Turns that were stopped.
    pub turns_stopped: u64,
    /// Turns that were interrupted.
    pub turns_interrupted: u64,
    /// Turns resumed after a restart.
    pub turns_resumed: u64,
    /// Model calls that came back, however they ended.
    pub model_calls: u64,
    /// Completed tool calls.
    pub tool_calls: u64,
    /// Tool calls with unknown effect: the daemon crashed while they ran.
    pub tools_unknown: u64,
    /// Untrusted texts that looked like prompt injections.
    pub injections_found: u64,
    /// Untrusted texts withheld as prompt injections.
    pub injections_withheld: u64,
    /// Sensitive tool calls of turns that had read untrusted content, which ran and went on record.
    pub tainted_calls_noted: u64,
    /// Such calls that waited for a person.
    pub tainted_calls_gated: u64,
    /// Such calls that were refused.
    pub tainted_calls_refused: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Compactions that ended in a summary.
    pub compactions_completed: u64,
    /// Compactions that ended without one.
    pub compactions_failed: u64,
    /// What model calls cost, in micro-dollars.
    pub cost_micros: u64,
    /// Model calls interrupted by a crash; the reserved amount counts as their cost.
    pub model_calls_unknown: u64,
    /// Model calls of models whose price is not known.
    pub model_calls_unpriced: u64,
    /// Model calls whose provider reported more usage than they can have had.
    pub usage_clipped: u64,
    /// Messages of agents to agents refused because too many turns were begun one after the other.
    pub agent_messages_too_deep: u64,
    /// Messages of agents to agents refused because a minute had too many.
    pub agent_messages_rate_limited: u64,
    /// Turns and compactions refused because a budget was exhausted.
    pub budget_refusals: u64,
    /// Tasks posted.
    pub tasks_posted: u64,
    /// Tasks completed.
    pub tasks_completed: u64,
    /// Tasks failed.
    pub tasks_failed: u64,
    /// Tasks deleted before they were done.
    pub tasks_cancelled: u64,
    /// Expired task claims.
    pub task_claims_expired: u64,
    /// Custom events published.
    pub events_custom: u64,
    /// Workflow runs that came to their end.
    pub workflow_runs_completed: u64,
    /// Workflow runs that failed.
    pub workflow_runs_failed: u64,
    /// Workflow runs that were cancelled.
    pub workflow_runs_cancelled: u64,
    /// Facts of turns that became memory entries.
    pub memory_facts_added: u64,
    /// Facts of turns that took the place of what a memory entry said.
    pub memory_facts_updated: u64,
    /// Memory entries that a turn contradicted, and that were deleted.
    pub memory_facts_deleted: u64,
    /// Facts of turns that a memory entry said already.
    pub memory_facts_unchanged: u64,
    /// Outcomes that came too late and were dropped.
    pub outcomes_stale: u64,
}

/// A resource of a domain that counts since the daemon started: a world that takes the place of another counts on from it.
#[derive(Clone, Copy)]
pub struct Totals {
    /// Puts it into an empty world.
    pub(crate) init: fn(&mut World),
    /// Takes it over from another world.
    pub(crate) count_on: fn(&World, &mut World),
}

impl Totals {
    /// Those in the resource `T`.
    pub(crate) const fn of<T: Resource + Copy + Default>() -> Self {
        Self {
            init: |world| {
                world.init_resource::<T>();
            },
            count_on: |from, to| to.insert_resource(*from.resource::<T>()),
        }
    }
}
