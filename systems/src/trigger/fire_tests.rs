//! Triggers fire, in virtual time: every outcome, cascades and their bounds, and kills between waves.

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::session::message::text_of;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::trigger::{FireLog, FireOutcome};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{AgentId, TriggerId};
use serde_json::{Value, json};

use super::tests::{create, new};
use super::*;
use crate::agent::{GetAgent, StartAgents, StopAgents};
use crate::config::Settings;
use crate::kernel::record;
use crate::testing::TestWorld;
use crate::turn::{NewMessage, PostMessage, StopTurns};
use crate::world::GetStats;

fn custom(payload: &str) -> TellEvents {
    let payload = payload.into();
    TellEvents(vec![Event::Custom { event_type: "ping".into(), agent: None, payload, by: None }])
}

fn ping() -> Value {
    json!({ "custom": { "event_type": "ping" } })
}

fn log(world: &mut TestWorld, trigger: TriggerId) -> FireLog {
    world.ask(GetTriggerFires(trigger)).unwrap().log
}

/// Tells of a ping, some time after the last; gives how the match ended.
fn after(world: &mut TestWorld, ms: i64, trigger: TriggerId) -> FireOutcome {
    world.now = world.now.plus_ms(ms - 1);
    world.ask(custom("1")).unwrap();
    let outcome = log(world, trigger).last_outcome.unwrap();
    world.now = world.now.plus_ms(-1);
    outcome
}

#[test]
fn an_event_becomes_a_message_and_nothing_in_it_is_expanded_again() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let trigger = NewTrigger { prompt_template: "A {{event}} B {{event}} {{other}}".into(), ..new(&ping()) };
    let id = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    world.ask(custom("{{event}}")).unwrap();
    let call = world.next_call();
    let event = r#"{"kind":"custom","event_type":"ping","payload":"{{event}}"}"#;
    assert_eq!(world.texts(call.log), [format!("A {event} B {event} {{{{other}}}}")]);
    assert_eq!((call.agent, call.session), (agent, world.ask(GetAgent(agent)).unwrap().session));
    let fires = log(&mut world, id).fires;
    assert_eq!((fires[0].on, fires[0].turn, fires[0].agent), (EventKind::Custom, call.turn(), agent));
    assert_eq!((fires[0].session, fires[0].end), (call.session, None));
    world.answer(call.attempt, "seen");
    world.restart();
    let log = log(&mut world, id);
    assert_eq!((log.fires[0].end, log.outcomes.of(FireOutcome::Fired)), (Some(TurnEnd::Done), 1));
    assert_eq!(world.ask(GetTrigger(id)).unwrap().fire_count, 1);
}

#[test]
fn the_cooldown_counts_from_event_to_event() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let trigger = NewTrigger { cooldown_secs: None, ..new(&ping()) };
    let by_default = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    assert_eq!(after(&mut world, 0, by_default), FireOutcome::Fired);
    assert_eq!(after(&mut world, 1_000, by_default), FireOutcome::CoolingDown);
    assert_eq!(after(&mut world, 3_999, by_default), FireOutcome::CoolingDown);
    world.restart();
    assert_eq!(after(&mut world, 5_000, by_default), FireOutcome::Fired);
    let patch = TriggerPatch { cooldown_secs: Some(Some(60)), ..TriggerPatch::default() };
    world.ask(UpdateTrigger { trigger: by_default, patch }).unwrap();
    assert_eq!(after(&mut world, 10_000, by_default), FireOutcome::CoolingDown);
    assert_eq!(after(&mut world, 60_000, by_default), FireOutcome::Fired);
    let patch = TriggerPatch { cooldown_secs: Some(Some(0)), ..TriggerPatch::default() };
    world.ask(UpdateTrigger { trigger: by_default, patch }).unwrap();
    assert_eq!(after(&mut world, 1, by_default), FireOutcome::Fired);
    let counts = log(&mut world, by_default).outcomes;
    assert_eq!((counts.of(FireOutcome::Fired), counts.of(FireOutcome::CoolingDown)), (4, 3));
    let totals = world.ask(GetStats).unwrap().trigger_totals.outcomes;
    assert_eq!(totals.of(FireOutcome::Fired), 3, "since the start");
}

#[test]
fn every_outcome_that_is_no_fire() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = world.ask(CreateTrigger { agent, trigger: NewTrigger { max_fires: 2, ..new(&ping()) } }).unwrap().id;
    let patch = |world: &mut TestWorld, patch| world.ask(UpdateTrigger { trigger: id, patch }).unwrap();
    assert_eq!(after(&mut world, 1, id), FireOutcome::Fired);
    assert_eq!(after(&mut world, 1, id), FireOutcome::Fired);
    assert_eq!(after(&mut world, 1, id), FireOutcome::Exhausted);
    patch(&mut world, TriggerPatch { max_fires: Some(0), enabled: Some(false), ..Default::default() });
    assert_eq!(after(&mut world, 1, id), FireOutcome::Disabled);
    patch(&mut world, TriggerPatch { enabled: Some(true), ..Default::default() });
    world.ask(StopAgents(vec![agent])).unwrap();
    assert_eq!(after(&mut world, 1, id), FireOutcome::AgentStopped);
    world.ask(StartAgents(vec![agent])).unwrap();
    let long = "{{event}}".repeat(limit::PROMPT_TEMPLATE_BYTES_MAX / 9);
    patch(&mut world, TriggerPatch { prompt_template: Some(long.into()), ..Default::default() });
    world.ask(custom(&"x".repeat(1_000))).unwrap();
    assert_eq!(log(&mut world, id).last_outcome, Some(FireOutcome::Refused));
    let view = world.ask(GetTrigger(id)).unwrap();
    assert_eq!((view.fire_count, log(&mut world, id).fires.len()), (2, 2));
    world.ask(DeleteTrigger(id)).unwrap();
    world.ask(custom("1")).unwrap();
}

#[test]
fn the_target_gets_the_message_in_the_session_that_its_manifest_or_the_trigger_says() {
    let mut world = TestWorld::new();
    let (owner, target) = (world.spawn("owner"), world.spawn("target"));
    let trigger = NewTrigger { target: Some(target), ..new(&ping()) };
    let id = world.ask(CreateTrigger { agent: owner, trigger }).unwrap().id;
    let current = world.ask(GetAgent(target)).unwrap().session;
    world.ask(custom("1")).unwrap();
    let call = world.next_call();
    assert_eq!((call.agent, call.session), (target, current));
    world.answer(call.attempt, "done");
    let patch = TriggerPatch { session_mode: Some(Some(SessionMode::New)), ..TriggerPatch::default() };
    world.ask(UpdateTrigger { trigger: id, patch }).unwrap();
    world.ask(custom("1")).unwrap();
    world.ask(custom("1")).unwrap();
    let (one, two) = (world.next_call(), world.next_call());
    assert!(one.session != current && two.session != current && one.session != two.session);
    assert_eq!(world.ask(GetAgent(target)).unwrap().session, current, "the current session stays the current one");
}

#[test]
fn what_happened_before_a_trigger_was_made_is_not_for_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    world.begin(custom("before"));
    let made = world.begin(CreateTrigger { agent, trigger: new(&ping()) });
    world.begin(custom("behind"));
    world.step();
    let id = made.take().unwrap().unwrap().id;
    assert_eq!(log(&mut world, id).outcomes.of(FireOutcome::Fired), 1);
    let call = world.next_call();
    assert!(world.texts(call.log)[0].contains("behind"));
}

#[test]
fn a_row_of_fired_turns_ends_at_the_depth_and_says_so() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = create(&mut world, agent, &json!({ "turn_completed": {} }));
    world.ask(PostMessage { agent, session: None, message: NewMessage::text("go") }).unwrap();
    let mut turns = 0;
    while !world.calls.is_empty() {
        let call = world.next_call();
        world.answer(call.attempt, "on and on");
        turns += 1;
        if turns == 4 {
            world.restart();
        }
    }
    assert_eq!(turns, 1 + 8, "the message's turn, and eight that follow from it");
    let counts = log(&mut world, id).outcomes;
    assert_eq!((counts.of(FireOutcome::Fired), counts.of(FireOutcome::TooDeep)), (8, 1));
    let other = world.spawn("b");
    world.ask(PostMessage { agent: other, session: None, message: NewMessage::text("go") }).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "new");
    assert_eq!(log(&mut world, id).outcomes.of(FireOutcome::Fired), 9, "a person's doing begins anew");
}

#[test]
fn cascades_are_bounded_in_each_minute_and_say_so() {
    let mut settings = Settings::default();
    settings.triggers.max_depth = 200;
    settings.triggers.cascade_per_minute = 3;
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    let id = create(&mut world, agent, &json!({ "turn_completed": { "name_pattern": "a" } }));
    let go = |world: &mut TestWorld| {
        world.ask(PostMessage { agent, session: None, message: NewMessage::text("go") }).unwrap();
        while !world.calls.is_empty() {
            let call = world.next_call();
            world.answer(call.attempt, "on");
        }
        log(world, id).outcomes
    };
    let first = go(&mut world);
    assert_eq!((first.of(FireOutcome::Fired), first.of(FireOutcome::RateLimited)), (4, 1), "the first is no cascade");
    let second = go(&mut world);
    assert_eq!((second.of(FireOutcome::Fired), second.of(FireOutcome::RateLimited)), (5, 2));
    world.now = world.now.plus_ms(60_000);
    assert_eq!(go(&mut world).of(FireOutcome::Fired), 9);
}

/// How often each of `triggers` fired, and how many messages of fires are stored.
fn delivered(world: &mut TestWorld, triggers: &[TriggerId]) -> (Vec<u64>, usize) {
    let counts = triggers.iter().map(|id| world.ask(GetTrigger(*id)).unwrap().fire_count).collect();
    let rows = world.store.iter().filter(|((space, key), _)| *space == Space::Content && key[0] == b'r');
    let rows = rows.map(|((_, key), value)| record::decode::<MessageRecord>(key, value).unwrap());
    (counts, rows.filter(|row| text_of(&row.blocks).starts_with("Look: ")).count())
}

#[test]
fn one_event_for_many_triggers_is_delivered_in_waves_once_each_whatever_is_killed() {
    let mut world = TestWorld::new();
    let agents: Vec<AgentId> = (0..5).map(|n| world.spawn(&format!("a{n}"))).collect();
    let count = limit::FIRES_PER_STEP_MAX * 2 + 500;
    let triggers: Vec<TriggerId> = (0..count).map(|n| create(&mut world, agents[n % 5], &ping())).collect();
    let deleted = triggers[count - 1];
    world.begin(custom("1"));
    for kills in 0..20 {
        world.step();
        if kills == 0 {
            world.ask(DeleteTrigger(deleted)).unwrap();
        }
        if kills % 2 == 0 {
            world.restart();
        }
        if !world.engine.has_work() {
            break;
        }
    }
    assert_eq!(world.ask(GetStats).unwrap().matches_waiting, 0);
    let (counts, messages) = delivered(&mut world, &triggers[..count - 1]);
    assert!(counts.iter().all(|fired| *fired == 1));
    assert_eq!(messages, count - 1);
    assert!(!world.store.keys().any(|(space, key)| *space == Space::World && key[0] == b'v'), "no wave is left");
}

#[test]
fn a_match_without_a_turn_costs_a_part_of_a_fire() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let count = limit::FIRES_PER_STEP_MAX + 1;
    let off = NewTrigger { enabled: false, ..new(&ping()) };
    for _ in 0..count {
        world.ask(CreateTrigger { agent, trigger: off.clone() }).unwrap();
    }
    for _ in 0..20 {
        world.begin(custom("1"));
    }
    world.step();
    let stats = world.ask(GetStats).unwrap();
    let done = stats.trigger_totals.outcomes.of(FireOutcome::Disabled) as usize;
    assert!(stats.matches_waiting > 0 && done >= limit::FIRES_PER_STEP_MAX * 8, "{done}");
    while world.engine.has_work() {
        world.step();
    }
    let stats = world.ask(GetStats).unwrap();
    assert_eq!(stats.trigger_totals.outcomes.of(FireOutcome::Disabled) as usize, count * 20);
}

#[test]
fn a_fired_turn_that_is_stopped_says_so() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = create(&mut world, agent, &ping());
    world.ask(custom("1")).unwrap();
    world.ask(custom("2")).unwrap();
    let call = world.next_call();
    world.ask(StopTurns { agent, session: Some(call.session) }).unwrap();
    world.restart();
    let ends: Vec<_> = log(&mut world, id).fires.iter().map(|fire| fire.end).collect();
    assert_eq!(ends[0], Some(TurnEnd::Stopped));
    for _ in 0..limit::TRIGGER_FIRES_KEPT {
        world.ask(custom("3")).unwrap();
    }
    assert_eq!(log(&mut world, id).fires.len(), limit::TRIGGER_FIRES_KEPT);
}

fn posted(assignee: Option<&str>, assignee_id: Option<AgentId>) -> TellEvents {
    TellEvents(vec![Event::TaskPosted {
        task: agentsvc_components::TaskId(uuid::Uuid::nil()),
        title: "t".into(),
        description: "".into(),
        assignee: assignee.map(str::to_owned),
        assignee_id,
        by: None,
    }])
}

#[test]
fn posted_tasks_are_matched_by_their_assignee() {
    let mut world = TestWorld::new();
    let (owner, other) = (world.spawn("owner"), world.spawn("any"));
    let on = |value: &str| json!({ "task_posted": { "assignee_match": value } });
    let patterns = [on("self"), on("unassigned"), json!({ "task_posted": {} }), on("any"), on("owner")];
    let triggers = patterns.map(|pattern| create(&mut world, owner, &pattern));
    let id = owner.to_string();
    for (assignee, assignee_id, expected) in [
        (Some(&*id), Some(owner), [1, 0, 1, 0, 0]),
        (Some("owner"), Some(owner), [1, 0, 1, 0, 1]),
        (Some("any"), Some(other), [0, 0, 1, 1, 0]),
        (Some("nobody we know"), None, [0, 0, 1, 0, 0]),
        (None, None, [0, 1, 1, 0, 0]),
        (Some(""), None, [0, 1, 1, 0, 0]),
    ] {
        let counts = |world: &mut TestWorld| triggers.map(|id| world.ask(GetTrigger(id)).unwrap().fire_count);
        let before = counts(&mut world);
        world.ask(posted(assignee, assignee_id)).unwrap();
        let after = counts(&mut world);
        let fired: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(fired, expected, "{assignee:?}");
    }
}

#[test]
fn a_clock_that_is_set_back_does_not_hold_a_cooldown_for_ever() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let trigger = NewTrigger { cooldown_secs: Some(60), ..new(&ping()) };
    let id = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    assert_eq!(after(&mut world, 1, id), FireOutcome::Fired);
    assert_eq!(after(&mut world, -3_600_000, id), FireOutcome::Fired);
    assert_eq!(after(&mut world, 1, id), FireOutcome::CoolingDown);
}

#[test]
fn no_more_matches_wait_than_may_and_the_totals_count_the_others() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let pinged = create(&mut world, agent, &ping());
    let followed = create(&mut world, agent, &json!({ "turn_completed": {} }));
    let crowd = |world: &mut TestWorld, count| world.engine.world_mut().resource_mut::<Waves>().pretend(count);
    let total = |world: &mut TestWorld, of| world.ask(GetStats).unwrap().trigger_totals.outcomes.of(of);
    world.ask(custom("1")).unwrap();
    let call = world.next_call();
    // What a fired turn causes must leave room for what comes from outside.
    crowd(&mut world, limit::CASCADE_WAITING_MAX);
    world.answer(call.attempt, "seen");
    assert_eq!(total(&mut world, FireOutcome::RateLimited), 1);
    assert_eq!(log(&mut world, followed).last_outcome, None, "the totals alone know of it");
    world.ask(custom("2")).unwrap();
    assert_eq!(log(&mut world, pinged).outcomes.of(FireOutcome::Fired), 2);
    crowd(&mut world, limit::MATCHES_WAITING_MAX);
    world.ask(custom("3")).unwrap();
    assert_eq!(total(&mut world, FireOutcome::Refused), 1);
    crowd(&mut world, limit::MATCHES_WAITING_MAX - 1);
    world.ask(custom("4")).unwrap();
    assert_eq!(log(&mut world, pinged).outcomes.of(FireOutcome::Fired), 3);
    assert_eq!(total(&mut world, FireOutcome::Refused), 1);
}
