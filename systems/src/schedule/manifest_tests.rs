//! Schedules that manifests ask for, in virtual time.

use agentsvc_components::schedule::{OverlapPolicy, Tally};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{
    FailureCode, ModelEnd, ModelFailure, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus,
};
use agentsvc_components::{AgentId, Refusal};

use super::tests::*;
use super::*;
use crate::agent::SpawnAgent;
use crate::manifest as manifests;
use crate::testing::{TestWorld, answer, tool_call};

fn spawn(world: &mut TestWorld, name: &str, keys: &str) -> Result<AgentId, Refusal> {
    let text = format!("name = {name:?}\n{keys}");
    let parsed = manifests::parse(&text).unwrap();
    let hash = manifests::hash(&parsed.manifest);
    let command = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text };
    world.ask(command).map(|spawned| spawned.agent)
}

fn schedules(world: &mut TestWorld, agent: AgentId) -> Vec<ScheduleView> {
    let list = ListSchedules { kind: ScheduleKind::Schedule, agent: Some(agent), after: None, limit: 10 };
    world.ask(list).unwrap().items
}

fn tally(world: &mut TestWorld, agent: AgentId) -> Tally {
    schedules(world, agent)[0].past.tally
}

/// The next model call fails.
fn fail_next(world: &mut TestWorld) {
    let call = world.next_call();
    let failure = ModelFailure { code: FailureCode::ProviderError, message: "no".into(), spent: Vec::new() };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    pass_to(world, world.now.0 + 1);
}

/// The next model call asks for a tool, which runs.
fn call_tool(world: &mut TestWorld) {
    let call = world.next_call();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(vec![tool_call("c")]))));
    let runs: Vec<_> = world.effects.drain(..).filter_map(|effect| effect.take::<ToolRun>().ok()).collect();
    for run in runs {
        let (index, call, content) = (run.index, run.call.clone(), "12:00".to_owned());
        let (whole, notice, brought) = (None, None, None);
        let end = ToolEnd { index, call, content, whole, notice, brought, status: ToolStatus::Ok };
        world.outcome(ToolOutcome(run.attempt, end));
    }
    pass_to(world, world.now.0 + 1);
}

fn fixture() -> TestWorld {
    let mut world = TestWorld::new();
    pass_to(&mut world, MONDAY);
    world
}

#[test]
fn an_agent_brings_the_schedules_of_its_manifest() {
    let mut world = fixture();
    let keys = "[schedule]\nperiodic = { cron = 'every 5m' }\n[autonomous]\nheartbeat_interval_secs = 60";
    let agent = spawn(&mut world, "ops", keys).unwrap();
    let made = schedules(&mut world, agent);
    let rules: Vec<_> = made.iter().map(|view| (view.name.as_deref(), &*view.rule, view.overlap)).collect();
    let skip = OverlapPolicy::Skip;
    assert_eq!(rules, [(Some("schedule"), "every 5m", skip), (Some("autonomous"), "every 60s", skip)]);
    live_to(&mut world, MONDAY + 6 * MINUTE);
    let counts: Vec<_> = schedules(&mut world, agent).iter().map(|view| view.past.tally.completed).collect();
    assert_eq!(counts, [1, 5]);
    world.restart();
    assert_eq!(schedules(&mut world, agent).len(), 2, "a restart makes none again");
    assert!(
        spawn(&mut world, "quiet", "schedule = 'reactive'\nmax_iterations = 3")
            .is_ok_and(|agent| { schedules(&mut world, agent).is_empty() })
    );
    world.ask(crate::agent::RemoveAgents(vec![agent])).unwrap();
    assert_eq!(counts_of(&mut world), 0);
}

fn counts_of(world: &mut TestWorld) -> usize {
    let list = ListSchedules { kind: ScheduleKind::Schedule, agent: None, after: None, limit: 10 };
    world.ask(list).unwrap().items.len()
}

#[test]
fn a_schedule_that_cannot_be_read_or_never_fires_spawns_no_agent() {
    let mut world = fixture();
    for (keys, field) in [
        ("[schedule]\nperiodic = { cron = '61 * * * *' }", "schedule.periodic.cron"),
        ("[schedule]\nperiodic = { cron = '0 3 * * *' }\n[autonomous]\nquiet_hours = '22-7'", "schedule.periodic.cron"),
    ] {
        let refusal = spawn(&mut world, "a", keys).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field), "{}", refusal.message);
    }
    assert_eq!(counts_of(&mut world), 0);
    spawn(&mut world, "a", "").unwrap();
}

#[test]
fn nothing_fires_in_quiet_hours() {
    let mut world = fixture();
    let keys = "[autonomous]\nheartbeat_interval_secs = 1800\nquiet_hours = '01:00-03:00'";
    let agent = spawn(&mut world, "a", keys).unwrap();
    live_to(&mut world, MONDAY + 4 * HOUR + MINUTE);
    let all = tally(&mut world, agent);
    // Before one o'clock, then from three on.
    assert_eq!((all.fired, all.missed), (4, 0), "{all:?}");
    world.restart();
    let next = schedules(&mut world, agent)[0].next_run.unwrap();
    assert!(next.0 < MONDAY + 5 * HOUR, "{next}");
    // The daemon does not run for a day: none of the slots of the quiet hours count as missed.
    let before = tally(&mut world, agent).missed;
    pass_to(&mut world, MONDAY + DAY + 4 * HOUR);
    let missed = tally(&mut world, agent).missed - before;
    assert!((40..=44).contains(&missed), "{missed} of 48 half hours but four");
}

#[test]
fn an_agent_whose_turns_fail_stops_acting_by_itself() {
    let mut world = fixture();
    let agent = spawn(&mut world, "a", "[autonomous]\nheartbeat_interval_secs = 60\nmax_restarts = 2").unwrap();
    let fail = |world: &mut TestWorld, minute: i64| {
        pass_to(world, MONDAY + minute * MINUTE + 1_000);
        while !world.calls.is_empty() {
            fail_next(world);
        }
    };
    (1..=2).for_each(|minute| fail(&mut world, minute));
    assert!(schedules(&mut world, agent)[0].enabled);
    pass_to(&mut world, MONDAY + 3 * MINUTE + 1_000);
    answer_all(&mut world);
    (4..=5).for_each(|minute| fail(&mut world, minute));
    assert!(schedules(&mut world, agent)[0].enabled, "one that succeeds starts the count anew");
    world.restart();
    fail(&mut world, 6);
    let view = schedules(&mut world, agent).remove(0);
    assert_eq!((view.enabled, view.next_run, view.past.tally.failed), (false, None, 5));
    let again = enable(&mut world, &view, true);
    assert!(again.enabled && again.past.failed_in_a_row == 0);
}

#[test]
fn a_turn_makes_at_most_as_many_calls_as_the_manifest_says() {
    let mut world = fixture();
    let keys =
        "max_iterations = 2\n[schedule]\ncontinuous = { check_interval_secs = 60 }\n[capabilities]\ntools = ['*']";
    let agent = spawn(&mut world, "a", keys).unwrap();
    pass_to(&mut world, MONDAY + MINUTE + 1_000);
    let mut calls = 0;
    while !world.calls.is_empty() {
        calls += 1;
        call_tool(&mut world);
    }
    assert_eq!(calls, 2);
    let view = schedules(&mut world, agent).remove(0);
    assert!(view.past.last_result.unwrap().text.contains("limit of 2 model calls"));
}
