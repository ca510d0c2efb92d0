//! The world's share of the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_components::trigger::FireOutcome;
use agentsvc_systems::kernel::timings::{TIMING_BOUNDS_NS, Timing};
use agentsvc_systems::world::WorldStats;

use crate::kernel::world_loop::LoopStats;

impl Probe for LoopStats {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.counter("agentsvc_world_steps_total", "Steps of the world.", load(&self.steps));
        out.counter("agentsvc_world_commands_total", "Commands run or refused.", load(&self.commands));
        out.counter("agentsvc_world_outcomes_total", "Outcomes received.", load(&self.outcomes));
        let help = "Writes refused because the store backlog was full.";
        out.counter("agentsvc_world_writes_refused_total", help, load(&self.writes_refused));
        out.counter("agentsvc_world_beats_total", "Ticks run.", load(&self.beats));
        out.counter("agentsvc_world_beats_missed_total", "Ticks skipped under load.", load(&self.beats_missed));
        self.step_time.gather("agentsvc_world_step_duration_seconds", "Duration of a step.", out);
        self.beat_time.gather("agentsvc_world_beat_duration_seconds", "Duration of the systems of a tick.", out);
        systems(&self.timings.lock(), out);
        out.counter("agentsvc_events_total", "Durable events.", load(&self.events));
        let world = *self.world.lock();
        out.gauge("agentsvc_agents", "Live agents.", world.agents);
        out.gauge("agentsvc_sessions", "Sessions.", world.sessions);
        let help = "Sessions created for a single request, not listed.";
        out.gauge("agentsvc_sessions_hidden", help, world.sessions_hidden);
        out.gauge("agentsvc_manifests", "Distinct manifests.", world.manifests);
        out.gauge("agentsvc_turns_open", "Open turns, including queued ones.", world.turns_open);
        out.gauge("agentsvc_turns_waiting", "Turns waiting for a slot of their provider.", world.turns_waiting);
        out.gauge("agentsvc_model_calls_out", "Active model calls.", world.calls_out);
        out.gauge("agentsvc_tools_out", "Active tool calls.", world.tools_out);
        out.gauge("agentsvc_audit_entries", "Audit log entries.", world.audit_entries);
        let help = "Tool calls with unknown effect: the daemon crashed while they ran.";
        out.counter("agentsvc_tools_unknown_total", help, world.totals.tools_unknown);
        out.counter("agentsvc_messages_total", "Messages received.", world.totals.messages);
        out.family("agentsvc_turns_total", "Ended turns, by outcome.", "counter");
        out.sample("agentsvc_turns_total", "end=\"completed\"", world.totals.turns_completed);
        out.sample("agentsvc_turns_total", "end=\"failed\"", world.totals.turns_failed);
        out.sample("agentsvc_turns_total", "end=\"stopped\"", world.totals.turns_stopped);
        out.sample("agentsvc_turns_total", "end=\"interrupted\"", world.totals.turns_interrupted);
        out.counter("agentsvc_turns_resumed_total", "Turns resumed after the start.", world.totals.turns_resumed);
        out.counter("agentsvc_model_calls_total", "Completed model calls.", world.totals.model_calls);
        out.counter("agentsvc_tool_calls_total", "Completed tool calls.", world.totals.tool_calls);
        out.family("agentsvc_tokens_total", "Tokens of model calls, by direction.", "counter");
        out.sample("agentsvc_tokens_total", "side=\"input\"", world.totals.input_tokens);
        out.sample("agentsvc_tokens_total", "side=\"output\"", world.totals.output_tokens);
        queue(&world, out);
        untrusted(&world, out);
        out.gauge("agentsvc_approvals_pending", "Pending approvals.", world.approvals_pending);
        money(&world, out);
        out.gauge("agentsvc_compactions_open", "Sessions being compacted.", world.compactions_open);
        out.family("agentsvc_compactions_total", "Ended compactions, by outcome.", "counter");
        out.sample("agentsvc_compactions_total", "end=\"completed\"", world.totals.compactions_completed);
        out.sample("agentsvc_compactions_total", "end=\"failed\"", world.totals.compactions_failed);
        out.gauge("agentsvc_workflows", "Workflow definitions.", world.workflows);
        out.gauge("agentsvc_workflow_runs_open", "Open workflow runs.", world.workflow_runs_open);
        out.family("agentsvc_workflow_runs_total", "Ended workflow runs, by outcome.", "counter");
        out.sample("agentsvc_workflow_runs_total", "end=\"completed\"", world.totals.workflow_runs_completed);
        out.sample("agentsvc_workflow_runs_total", "end=\"failed\"", world.totals.workflow_runs_failed);
        out.sample("agentsvc_workflow_runs_total", "end=\"cancelled\"", world.totals.workflow_runs_cancelled);
        fires(&world, out);
        out.counter(
            "agentsvc_outcomes_stale_total",
            "Outcomes dropped because they came too late.",
            world.totals.outcomes_stale,
        );
    }
}

/// Each system, with the stage that it runs in.
fn systems(timings: &[Timing], out: &mut MetricsText) {
    let name = "agentsvc_system_seconds";
    out.family(name, "Duration of one run of a system.", "histogram");
    let seconds = |ns: u64| ns as f64 / 1e9;
    for timing in timings {
        let labels = format!("system=\"{}\",stage=\"{}\"", timing.name, timing.stage);
        let mut seen = 0;
        for (bound, count) in TIMING_BOUNDS_NS.iter().zip(&timing.buckets) {
            seen += count;
            out.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{}\"", seconds(*bound)), seen);
        }
        out.sample(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), timing.runs);
        out.sample(&format!("{name}_sum"), &labels, seconds(timing.total_ns));
        out.sample(&format!("{name}_count"), &labels, timing.runs);
    }
}

/// Goals, the task queue and custom events.
fn queue(world: &WorldStats, out: &mut MetricsText) {
    out.gauge("agentsvc_goals", "Goals.", world.goals);
    out.family("agentsvc_tasks_open", "Open tasks, by state.", "gauge");
    out.sample("agentsvc_tasks_open", "state=\"pending\"", world.tasks_pending);
    out.sample("agentsvc_tasks_open", "state=\"running\"", world.tasks_running);
    out.counter("agentsvc_tasks_posted_total", "Tasks posted.", world.totals.tasks_posted);
    out.family("agentsvc_tasks_total", "Ended tasks, by outcome.", "counter");
    out.sample("agentsvc_tasks_total", "end=\"completed\"", world.totals.tasks_completed);
    out.sample("agentsvc_tasks_total", "end=\"failed\"", world.totals.tasks_failed);
    out.sample("agentsvc_tasks_total", "end=\"cancelled\"", world.totals.tasks_cancelled);
    let help = "Expired task claims.";
    out.counter("agentsvc_task_claims_expired_total", help, world.totals.task_claims_expired);
    out.counter("agentsvc_events_custom_total", "Custom events published.", world.totals.events_custom);
}

/// Content from outside, and the calls of turns that have read it.
fn untrusted(world: &WorldStats, out: &mut MetricsText) {
    let help = "Untrusted texts that looked like prompt injections.";
    out.counter("agentsvc_injections_found_total", help, world.totals.injections_found);
    let help = "Untrusted texts withheld as prompt injections.";
    out.counter("agentsvc_injections_withheld_total", help, world.totals.injections_withheld);
    let name = "agentsvc_tainted_calls_total";
    out.family(name, "Sensitive tool calls of turns that had read untrusted content, by decision.", "counter");
    out.sample(name, "decision=\"noted\"", world.totals.tainted_calls_noted);
    out.sample(name, "decision=\"approval\"", world.totals.tainted_calls_gated);
    out.sample(name, "decision=\"refused\"", world.totals.tainted_calls_refused);
}

/// What model calls cost, and what budgets hold up.
fn money(world: &WorldStats, out: &mut MetricsText) {
    let dollars = world.totals.cost_micros as f64 / 1e6;
    out.counter("agentsvc_cost_usd_total", "Cost of model calls in US dollars.", dollars);
    let help = "Model calls interrupted by a crash; the reserved amount counts as their cost.";
    out.counter("agentsvc_model_calls_unknown_total", help, world.totals.model_calls_unknown);
    let help = "Model calls without a price, recorded as free.";
    out.counter("agentsvc_model_calls_unpriced_total", help, world.totals.model_calls_unpriced);
    let help = "Turns and compactions refused because a budget was exhausted.";
    out.counter("agentsvc_budget_refusals_total", help, world.totals.budget_refusals);
    let help = "Turns and compactions waiting for budget reserved by other calls.";
    out.gauge("agentsvc_budget_waiting", help, world.budget_waiting);
}

/// Triggers, schedules and cron jobs.
fn fires(world: &WorldStats, out: &mut MetricsText) {
    out.gauge("agentsvc_triggers", "Triggers, enabled or not.", world.triggers);
    let help = "Trigger matches waiting for delivery.";
    out.gauge("agentsvc_trigger_matches_waiting", help, world.matches_waiting);
    out.family("agentsvc_trigger_outcomes_total", "Ended trigger matches, by outcome.", "counter");
    for outcome in FireOutcome::ALL {
        let labels = format!("outcome=\"{}\"", outcome.as_str());
        out.sample("agentsvc_trigger_outcomes_total", &labels, world.totals.trigger_outcomes.of(outcome));
    }
    let help = "Triggered turns that ended because a budget was exhausted.";
    out.counter("agentsvc_trigger_turns_over_budget_total", help, world.totals.trigger_turns_over_budget);
    out.gauge("agentsvc_schedules", "Schedules.", world.schedules);
    out.gauge("agentsvc_cron_jobs", "Cron jobs.", world.cron_jobs);
    let name = "agentsvc_schedule_outcomes_total";
    out.family(name, "Slots and turns of schedules and cron jobs, by outcome.", "counter");
    let tally = world.totals.schedule_outcomes;
    for (outcome, count) in tally.counts() {
        out.sample(name, &format!("outcome=\"{outcome}\""), count);
    }
}
