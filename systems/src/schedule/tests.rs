//! The commands, one by one, in virtual time.

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, RunStatus};
use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::{AgentId, RefusalKind, Timestamp};
use uuid::Uuid;

use super::*;
use crate::agent::{RemoveAgents, SpawnChild, StopAgents};
use crate::testing::{TestWorld, spawn_command};
use crate::turn::TurnTotals;

/// 2026-03-02T00:00:00Z, a Monday.
pub(super) const MONDAY: i64 = 1_772_409_600_000;
pub(super) const MINUTE: i64 = 60_000;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// A world on Monday at midnight with one agent.
pub(super) fn fixture() -> (TestWorld, AgentId) {
    let mut world = TestWorld::new();
    pass_to(&mut world, MONDAY);
    let agent = world.spawn("scout");
    (world, agent)
}

/// A schedule that fires at `rule`.
pub(crate) fn plain(agent: AgentId, rule: &str) -> NewSchedule {
    NewSchedule {
        kind: ScheduleKind::Schedule,
        agent,
        name: None,
        rule: rule.into(),
        timezone: None,
        prompt: "act".into(),
        enabled: true,
        missed: MissedPolicy::One,
        overlap: OverlapPolicy::Queue,
        session_mode: None,
    }
}

pub(super) fn create(world: &mut TestWorld, new: NewSchedule) -> ScheduleView {
    world.ask(CreateSchedule { new, by_tool: false }).unwrap()
}

/// Lets the world come to a moment: a beat, and steps until nothing is left over.
pub(super) fn pass_to(world: &mut TestWorld, ms: i64) {
    world.now = Timestamp(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    while world.engine.has_work() {
        world.step();
    }
}

/// Beats once a minute up to a moment; every turn is answered at once.
pub(super) fn live_to(world: &mut TestWorld, ms: i64) {
    while world.now.0 < ms {
        let next = (world.now.0 / MINUTE + 1) * MINUTE;
        pass_to(world, next.min(ms));
        answer_all(world);
    }
}

pub(super) fn answer_all(world: &mut TestWorld) {
    while !world.calls.is_empty() {
        let call = world.next_call();
        world.answer(call.attempt, "done");
    }
}

pub(super) fn get(world: &mut TestWorld, view: &ScheduleView) -> ScheduleView {
    world.ask(GetSchedule { kind: view.kind, id: view.id }).unwrap()
}

fn patch(world: &mut TestWorld, view: &ScheduleView, patch: SchedulePatch) -> Result<ScheduleView, Refusal> {
    world.ask(UpdateSchedule { kind: view.kind, id: view.id, patch })
}

pub(super) fn enable(world: &mut TestWorld, view: &ScheduleView, enabled: bool) -> ScheduleView {
    patch(world, view, SchedulePatch { enabled: Some(enabled), ..Default::default() }).unwrap()
}

#[test]
fn a_schedule_fires_at_its_slots_and_shows_what_came_of_them() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "30 9 * * *"));
    assert_eq!(view.next_run, Some(Timestamp(MONDAY + 9 * HOUR + 30 * MINUTE)));
    assert_eq!((view.open, view.past.run_count, &*view.timezone), (0, 0, "UTC"));
    pass_to(&mut world, MONDAY + 9 * HOUR);
    assert!(world.calls.is_empty(), "not yet");
    pass_to(&mut world, MONDAY + 9 * HOUR + 30 * MINUTE);
    let now = get(&mut world, &view);
    assert_eq!((now.open, now.past.run_count, now.past.tally.fired), (1, 1, 1));
    assert_eq!(now.past.last_run, Some(Timestamp(MONDAY + 9 * HOUR + 30 * MINUTE)));
    assert_eq!(now.next_run, Some(Timestamp(MONDAY + DAY + 9 * HOUR + 30 * MINUTE)));
    let call = world.next_call();
    assert_eq!(world.texts(call.log), ["act"]);
    world.answer(call.attempt, "acted");
    let now = get(&mut world, &view);
    let result = now.past.last_result.unwrap();
    assert_eq!((result.status, &*result.text), (RunStatus::Completed, "acted"));
    assert_eq!((now.open, now.past.tally.completed), (0, 1));
    assert_eq!(world.engine.stats().schedule_outcomes, now.past.tally);
    let fired = world.events.iter().find(|event| event.kind().as_str() == "schedule_fired").unwrap();
    let json = serde_json::to_value(fired).unwrap();
    assert_eq!((&json["slot"], &json["agent_id"]), (&"2026-03-02T09:30:00.000Z".into(), &agent.to_string().into()));
    pass_to(&mut world, MONDAY + DAY);
    assert!(world.calls.is_empty(), "a slot fires once");
}

#[test]
fn a_failure_and_a_stop_are_results_too() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    pass_to(&mut world, MONDAY + HOUR);
    let call = world.next_call();
    let failure =
        ModelFailure { code: FailureCode::ProviderTimeout, message: "the model is slow".into(), spent: Vec::new() };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    let result = get(&mut world, &view).past.last_result.unwrap();
    assert_eq!((result.status, &*result.text), (RunStatus::Failed, "the model is slow"));
    pass_to(&mut world, MONDAY + 2 * HOUR);
    let call = world.next_call();
    world.ask(crate::turn::StopTurns { agent, session: None }).unwrap();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(crate::testing::answer(vec![]))));
    let past = get(&mut world, &view).past;
    assert_eq!(past.last_result.unwrap().status, RunStatus::Stopped);
    assert_eq!((past.tally.failed, past.tally.stopped, past.tally.fired), (1, 1, 2));
}

#[test]
fn a_long_answer_is_cut() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    pass_to(&mut world, MONDAY + HOUR);
    let call = world.next_call();
    world.answer(call.attempt, &"ü".repeat(4_000));
    let text = get(&mut world, &view).past.last_result.unwrap().text;
    assert_eq!(text.len(), limit::SCHEDULE_RESULT_BYTES_MAX);
}

#[test]
fn what_is_wrong_is_refused_by_its_field_and_changes_nothing() {
    let (mut world, agent) = fixture();
    let before = world.store.clone();
    let good = plain(agent, "@hourly");
    let job = NewSchedule { kind: ScheduleKind::Cron, name: Some("job".into()), ..good.clone() };
    let past = "at 2026-03-01T00:00Z";
    for (new, field) in [
        (NewSchedule { rule: "0 25 * * *".into(), ..good.clone() }, "cron"),
        (NewSchedule { rule: "0 25 * * *".into(), ..job.clone() }, "schedule"),
        (NewSchedule { rule: past.into(), ..job.clone() }, "schedule"),
        (NewSchedule { timezone: Some("Mars/Olympus".into()), ..good.clone() }, "timezone"),
        (NewSchedule { prompt: " ".into(), ..good.clone() }, "prompt"),
        (NewSchedule { prompt: "x".repeat(limit::SCHEDULE_PROMPT_BYTES_MAX + 1).into(), ..good.clone() }, "prompt"),
        (NewSchedule { name: None, ..job.clone() }, "name"),
        (NewSchedule { name: Some("".into()), ..job.clone() }, "name"),
        (NewSchedule { name: Some("a\nb".into()), ..job.clone() }, "name"),
        (NewSchedule { name: Some("n".repeat(129).into()), ..job }, "name"),
    ] {
        let refusal = world.ask(CreateSchedule { new: new.clone(), by_tool: false }).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::BadRequest, Some(field)), "{new:?}");
    }
    let nobody = AgentId(Uuid::from_u128(7));
    let new = NewSchedule { agent: nobody, ..good };
    assert_eq!(world.ask(CreateSchedule { new, by_tool: false }).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(world.store, before);
}

#[test]
fn the_refusal_of_a_rule_names_the_column() {
    let (mut world, agent) = fixture();
    let refusal = world.ask(CreateSchedule { new: plain(agent, "0 9 * * MOX"), by_tool: false }).unwrap_err();
    let expected = "\"MOX\" is not valid; use 0 to 7 or SUN to SAT, rising ranges and steps up to 7";
    assert_eq!(refusal.message, format!("cron: column 9, day of week: {expected}"));
}

#[test]
fn a_changed_rule_counts_from_now_and_the_rest_stays() {
    let (mut world, agent) = fixture();
    let other = world.spawn("other");
    let view = create(&mut world, plain(agent, "every 2h"));
    pass_to(&mut world, MONDAY + HOUR);
    let new = SchedulePatch { prompt: Some("act well".into()), rule: Some("every 2h".into()), ..Default::default() };
    let changed = patch(&mut world, &view, new).unwrap();
    assert_eq!((changed.next_run, &*changed.prompt), (view.next_run, "act well"));
    assert!(changed.updated_at > view.updated_at && changed.created_at == view.created_at);
    let new = SchedulePatch {
        rule: Some("every 3h".into()),
        agent: Some(other),
        missed: Some(MissedPolicy::All),
        overlap: Some(OverlapPolicy::Skip),
        session_mode: Some(Some(SessionMode::New)),
        name: Some("n".into()),
        ..Default::default()
    };
    let changed = patch(&mut world, &view, new).unwrap();
    assert_eq!(changed.next_run, Some(changed.updated_at.plus_ms(3 * HOUR)));
    assert_eq!((changed.agent, changed.missed, changed.overlap), (other, MissedPolicy::All, OverlapPolicy::Skip));
    let of = |world: &mut TestWorld, agent| {
        let list = ListSchedules { kind: ScheduleKind::Schedule, agent: Some(agent), after: None, limit: 10 };
        world.ask(list).unwrap().items.len()
    };
    assert_eq!((of(&mut world, agent), of(&mut world, other)), (0, 1));
    let new =
        SchedulePatch { timezone: Some("Asia/Kolkata".into()), rule: Some("0 9 * * *".into()), ..Default::default() };
    let changed = patch(&mut world, &view, new).unwrap();
    assert_eq!(changed.next_run.unwrap().to_string(), "2026-03-02T03:30:00.000Z");
    let stored = changed.clone();
    world.restart();
    assert_eq!(get(&mut world, &view), stored);
    for (bad, field) in [
        (SchedulePatch { rule: Some("x".into()), ..Default::default() }, "cron"),
        (SchedulePatch { timezone: Some("x".into()), ..Default::default() }, "timezone"),
        (SchedulePatch { prompt: Some("".into()), ..Default::default() }, "prompt"),
        (SchedulePatch { name: Some("".into()), ..Default::default() }, "name"),
    ] {
        let bad = SchedulePatch { enabled: Some(false), ..bad };
        assert_eq!(patch(&mut world, &view, bad).unwrap_err().field.as_deref(), Some(field));
    }
    assert_eq!(get(&mut world, &view), stored, "all or none");
}

#[test]
fn enabled_again_it_counts_from_now() {
    let (mut world, agent) = fixture();
    let daily = create(&mut world, plain(agent, "0 6 * * *"));
    let every = create(&mut world, plain(agent, "every 6h"));
    for view in [&daily, &every] {
        assert_eq!(enable(&mut world, view, false).next_run, None);
    }
    pass_to(&mut world, MONDAY + 3 * DAY + 7 * HOUR);
    assert!(world.calls.is_empty());
    assert_eq!(enable(&mut world, &daily, true).next_run, Some(Timestamp(MONDAY + 4 * DAY + 6 * HOUR)));
    let now = world.now;
    assert_eq!(enable(&mut world, &every, true).next_run, Some(now.plus_ms(6 * HOUR + 1)));
    assert_eq!(get(&mut world, &daily).past.tally, Default::default(), "nothing was missed");
}

#[test]
fn in_and_at_fire_once_and_disable_themselves() {
    let (mut world, agent) = fixture();
    let once = create(&mut world, plain(agent, "in 2h"));
    let at = create(&mut world, plain(agent, "at 2026-03-02T05:00Z"));
    live_to(&mut world, MONDAY + 6 * HOUR);
    for view in [&once, &at] {
        let now = get(&mut world, view);
        assert_eq!((now.enabled, now.next_run, now.past.tally.fired), (false, None, 1), "{}", view.rule);
    }
    let on = SchedulePatch { enabled: Some(true), ..Default::default() };
    assert_eq!(patch(&mut world, &at, on).unwrap_err().field.as_deref(), Some("cron"));
    enable(&mut world, &once, true);
    live_to(&mut world, MONDAY + 9 * HOUR);
    assert_eq!(get(&mut world, &once).past.tally.fired, 2, "enabled again it counts again");
}

#[test]
fn run_now_touches_no_slot_and_works_when_disabled() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "0 6 * * *"));
    enable(&mut world, &view, false);
    let started = world.ask(RunSchedule { kind: view.kind, id: view.id }).unwrap();
    assert_eq!(get(&mut world, &view).open, 1);
    let call = world.next_call();
    assert_eq!((call.turn(), call.session), (started.turn, started.session));
    world.answer(call.attempt, "by hand");
    let now = get(&mut world, &view);
    assert_eq!((now.past.run_count, now.past.tally.fired, now.past.tally.completed), (1, 0, 1));
    assert!(now.past.last_run.is_some() && now.next_run.is_none());
    assert_eq!(&*now.past.last_result.unwrap().text, "by hand");
    enable(&mut world, &view, true);
    world.ask(RunSchedule { kind: view.kind, id: view.id }).unwrap();
    assert_eq!(get(&mut world, &view).next_run, Some(Timestamp(MONDAY + 6 * HOUR)));
    world.ask(StopAgents(vec![agent])).unwrap();
    let refusal = world.ask(RunSchedule { kind: view.kind, id: view.id }).unwrap_err();
    assert_eq!(refusal.code.as_deref(), Some("agent_not_running"));
}

#[test]
fn the_families_are_apart_and_lists_have_pages() {
    let (mut world, agent) = fixture();
    let schedule = create(&mut world, plain(agent, "@daily"));
    let named = |n: usize| NewSchedule {
        kind: ScheduleKind::Cron,
        name: Some(format!("job {n}").into()),
        ..plain(agent, "@daily")
    };
    let jobs: Vec<_> = (0..5).map(|n| create(&mut world, named(n))).collect();
    let kind = ScheduleKind::Cron;
    assert_eq!(world.ask(GetSchedule { kind, id: schedule.id }).unwrap_err().kind, RefusalKind::NotFound);
    let first = world.ask(ListSchedules { kind, agent: None, after: None, limit: 3 }).unwrap();
    assert_eq!((first.items.len(), first.next, first.total), (3, Some(jobs[2].id), 5));
    let rest = world.ask(ListSchedules { kind, agent: Some(agent), after: first.next, limit: 3 }).unwrap();
    let names: Vec<_> = rest.items.iter().filter_map(|job| job.name.as_deref()).collect();
    assert_eq!((names, rest.next, rest.total), (vec!["job 3", "job 4"], None, 5));
    assert_eq!(counts(world.engine.world()), (1, 5));
    live_to(&mut world, MONDAY + DAY);
    assert_eq!(world.events.iter().filter(|event| event.kind().as_str() == "cron_fired").count(), 5);
}

#[test]
fn a_deleted_schedule_leaves_no_record_and_its_turn_goes_on() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    pass_to(&mut world, MONDAY + HOUR);
    let other = AgentId(Uuid::from_u128(3));
    let remove = RemoveSchedule { kind: view.kind, id: view.id, owner: Some(other) };
    assert_eq!(world.ask(remove).unwrap_err().kind, RefusalKind::NotFound);
    world.ask(RemoveSchedule { owner: None, ..remove }).unwrap();
    assert!(!world.store.keys().any(|(_, key)| matches!(key[0], b'd' | b'e')));
    answer_all(&mut world);
    assert_eq!(world.engine.world().resource::<TurnTotals>().completed, 1);
    pass_to(&mut world, MONDAY + DAY);
    assert!(world.calls.is_empty());
    assert!(world.ask(GetSchedule { kind: view.kind, id: view.id }).is_err());
}

#[test]
fn a_killed_agent_takes_its_schedules_along() {
    let (mut world, agent) = fixture();
    let other = world.spawn("other");
    let _gone = create(&mut world, plain(agent, "@hourly"));
    let kept = create(&mut world, plain(other, "@hourly"));
    pass_to(&mut world, MONDAY + HOUR);
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(counts(world.engine.world()), (1, 0));
    world.restart();
    assert_eq!(get(&mut world, &kept).past.tally.fired, 1);
}

#[test]
fn a_tool_makes_no_more_than_its_share() {
    let (mut world, agent) = fixture();
    for _ in 0..limit::AGENT_SCHEDULES_MAX {
        world.ask(CreateSchedule { new: plain(agent, "@daily"), by_tool: true }).unwrap();
    }
    let refusal = world.ask(CreateSchedule { new: plain(agent, "@daily"), by_tool: true }).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::TooMany);
    create(&mut world, plain(agent, "@daily"));
}

#[test]
fn the_tools_of_a_family_make_no_more_than_its_share() {
    let (mut world, other) = fixture();
    let spawner = |name: &str| {
        let mut command = spawn_command(name);
        command.manifest.capabilities.agent_spawn = Some(true);
        command.hash = crate::manifest::hash(&command.manifest);
        command
    };
    let top = world.ask(spawner("top")).unwrap().agent;
    let mut last = top;
    for n in 0..limit::SHARE_SCHEDULES_MAX / limit::AGENT_SCHEDULES_MAX {
        let parent = if n % 3 == 0 { top } else { last };
        last = world.ask(SpawnChild { parent, child: spawner(&format!("child-{n}")), by: None }).unwrap().agent;
        for _ in 0..limit::AGENT_SCHEDULES_MAX {
            world.ask(CreateSchedule { new: plain(last, "@daily"), by_tool: true }).unwrap();
        }
    }
    let refusal = world.ask(CreateSchedule { new: plain(top, "@daily"), by_tool: true }).unwrap_err();
    assert!(refusal.kind == RefusalKind::TooMany && refusal.message.contains("1000"), "{refusal:?}");
    create(&mut world, plain(top, "@daily"));
    world.ask(CreateSchedule { new: plain(other, "@daily"), by_tool: true }).unwrap();
}

#[test]
fn a_preview_shows_the_next_slots() {
    let (mut world, _) = fixture();
    let preview = |rule: &str, timezone: Option<&str>| PreviewRule {
        kind: ScheduleKind::Schedule,
        rule: rule.into(),
        timezone: timezone.map(Into::into),
        count: 2,
    };
    let (slots, zone) = world.ask(preview("0 9 * * *", Some("Europe/Berlin"))).unwrap();
    assert_eq!((slots[0].to_string(), slots.len(), &*zone), ("2026-03-02T08:00:00.000Z".into(), 2, "Europe/Berlin"));
    assert_eq!(world.ask(preview("in 1h", None)).unwrap().0.len(), 1);
    assert_eq!(world.ask(preview("0 9 * *", None)).unwrap_err().field.as_deref(), Some("cron"));
}

#[test]
fn the_house_takes_so_many_schedules_and_jobs_together() {
    let (mut world, agent) = fixture();
    world.engine.world_mut().resource_mut::<Schedules>().used.count += limit::SCHEDULES_MAX - 1;
    let last = create(&mut world, plain(agent, "@daily")).id;
    for kind in [ScheduleKind::Schedule, ScheduleKind::Cron] {
        let new = NewSchedule { kind, name: Some("one more".into()), ..plain(agent, "0 9 * * *") };
        let refused = world.ask(CreateSchedule { new, by_tool: false }).unwrap_err();
        assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("schedules_full")));
        assert!(refused.retry_after_secs.is_some());
    }
    world.ask(RemoveSchedule { kind: ScheduleKind::Schedule, id: last, owner: None }).unwrap();
    create(&mut world, plain(agent, "@daily"));
}

#[test]
fn the_texts_of_schedules_and_jobs_take_so_many_bytes_together_whether_they_are_made_or_changed() {
    let (mut world, agent) = fixture();
    let says = |prompt: &str| NewSchedule { prompt: prompt.into(), ..plain(agent, "@daily") };
    let first = create(&mut world, says("abc"));
    // Beside its prompt it has a rule of six bytes and a zone of three.
    world.engine.world_mut().resource_mut::<Schedules>().used.bytes += limit::SCHEDULES_BYTES_MAX - 12 - 12;
    let job = NewSchedule { kind: ScheduleKind::Cron, name: Some("n".into()), ..says("de") };
    let second = create(&mut world, job.clone());
    let full = (RefusalKind::TooMany, Some(error_codes::SCHEDULES_FULL), Some(60));
    let said = |refused: Refusal| (refused.kind, refused.code, refused.retry_after_secs);
    let before = world.store.clone();
    for new in [says("f"), job] {
        assert_eq!(said(world.ask(CreateSchedule { new, by_tool: false }).unwrap_err()), full);
    }
    let prompt = |text: &str| SchedulePatch { prompt: Some(text.into()), ..SchedulePatch::default() };
    let name = |text: &str| SchedulePatch { name: Some(text.into()), ..SchedulePatch::default() };
    let zone = SchedulePatch { timezone: Some("Europe/Berlin".into()), ..SchedulePatch::default() };
    let rule = SchedulePatch { rule: Some("@monthly".into()), ..SchedulePatch::default() };
    for longer in [prompt("abcd"), name("n"), zone, rule] {
        assert_eq!(said(patch(&mut world, &first, longer).unwrap_err()), full);
    }
    assert_eq!(world.store, before);
    // What becomes no longer is taken, and what becomes shorter or goes makes room.
    patch(&mut world, &first, prompt("xyz")).unwrap();
    patch(&mut world, &second, prompt("d")).unwrap();
    patch(&mut world, &first, name("n")).unwrap();
    assert_eq!(said(patch(&mut world, &first, prompt("wxyz")).unwrap_err()), full);
    world.ask(RemoveSchedule { kind: ScheduleKind::Cron, id: second.id, owner: None }).unwrap();
    patch(&mut world, &first, prompt("wxyz")).unwrap();
    // A restart counts what there is.
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    create(&mut world, says("there is room"));
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
}
