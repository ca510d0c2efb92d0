//! Bursts in virtual time: what one event leaves behind for very many triggers, and that a kill never shows in it. The test
//! world compares what is stored, bursts unfolded, with what every changed entity is, after each step.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::compaction::call::{SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::session::message::{Usage, text_of};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::trigger::{FireLog, FireOutcome, TriggerState};
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::turn::{Origin, Turn, TurnEnd, TurnState};
use agentsvc_components::{AgentId, SessionId, Timestamp, TriggerId, TurnId};
use bevy_ecs::prelude::With;
use serde_json::json;

use super::tests::{create, new};
use super::*;
use crate::agent::{GetAgent, RemoveAgents, StartAgents, StopAgents};
use crate::config::Settings;
use crate::event::PublishEvent;
use crate::kernel::record;
use crate::session::{ClearHistory, ResetSession};
use crate::testing::TestWorld;
use crate::turn::{InterruptSession, NewMessage, PostMessage, StopTurns};

fn tell(event_type: &str) -> PublishEvent {
    PublishEvent { event_type: event_type.into(), payload: "1".into(), agent: None, by: None }
}

fn on(event_type: &str) -> NewTrigger {
    new(&json!({ "custom": { "event_type": event_type } }))
}

/// Stored records of the world of one kind.
fn stored(world: &TestWorld, kind: u8) -> usize {
    world.store.keys().filter(|(space, key)| *space == Space::World && key[0] == kind).count()
}

/// An open turn: whose, in which session, where in its log, why, since when.
type Open = (AgentId, SessionId, u32, Origin, Timestamp);

/// What a kill must not change: the logs of triggers, and the turns that are open and not about to end.
#[derive(Debug, PartialEq)]
struct Picture {
    logs: BTreeMap<TriggerId, FireLog>,
    open: BTreeMap<TurnId, Open>,
}

fn picture(world: &mut TestWorld) -> Picture {
    let world = world.engine.world_mut();
    let mut logs = world.query::<(&TriggerId, &TriggerState)>();
    let logs = logs.iter(world).filter_map(|(id, state)| Some((*id, state.0.as_deref()?.clone())));
    let logs = logs.collect();
    let turns: Vec<Entity> = world.query_filtered::<Entity, With<Turn>>().iter(world).collect();
    let turns = turns.into_iter().filter_map(|turn| crate::turn::rows::turn_record(world, turn));
    let open = turns.filter(|turn| turn.state != TurnState::Stopping);
    let open = open.map(|turn| (turn.id, (turn.agent, turn.session, turn.ordinal, turn.origin, turn.created_at)));
    Picture { logs, open: open.collect() }
}

/// A kill, which changes nothing.
#[track_caller]
fn kill(world: &mut TestWorld) {
    let before = picture(world);
    world.revive();
    assert!(picture(world) == before, "a kill has changed something");
    world.step();
}

/// A world that has two model calls out at most, three agents, and so many triggers; every third one in new sessions.
fn fixture(count: usize) -> (TestWorld, Vec<AgentId>, Vec<TriggerId>) {
    let mut world = TestWorld::with(Settings { provider_calls: 2, ..Settings::default() });
    let agents: Vec<AgentId> = ["a", "b", "c"].map(|name| world.spawn(name)).to_vec();
    let triggers = (0..count).map(|n| {
        let session_mode = n.is_multiple_of(3).then_some(SessionMode::New);
        let trigger = NewTrigger { session_mode, ..on("ping") };
        world.ask(CreateTrigger { agent: agents[n / 3 % 3], trigger }).unwrap().id
    });
    let triggers = triggers.collect();
    (world, agents, triggers)
}

/// Answers the calls that are out, not those that follow; nobody writes summaries.
fn answer_out(world: &mut TestWorld) {
    for effect in std::mem::take(&mut world.effects) {
        if let Ok(call) = effect.take::<SummaryCall>() {
            let written = Err("not here".to_owned());
            let end = SummaryEnd { usage: Usage::default(), written, calls: Vec::new() };
            world.outcome(SummaryOutcome(call.attempt, end));
        }
    }
    for _ in 0..world.calls.len() {
        let call = world.next_call();
        world.answer(call.attempt, "seen");
    }
}

/// Answers until nothing is open.
fn answer_all(world: &mut TestWorld) {
    for _ in 0..100_000 {
        if world.engine.stats().turns_open == 0 {
            return;
        }
        answer_out(world);
        world.step();
    }
    panic!("turns stay open");
}

#[test]
fn a_storm_leaves_few_records_and_a_restart_unfolds_them() {
    let count = 3 * limit::BURST_FIRES_MAX + 2;
    let (mut world, _, triggers) = fixture(count);
    world.ask(tell("ping")).unwrap();
    // Two turns have begun; the others wait, the first of a session in line, the rest behind it.
    assert_eq!(world.calls.len(), 2);
    assert_eq!((stored(&world, b'x'), stored(&world, b't'), stored(&world, b'h')), (3, 2, 2));
    assert_eq!(world.engine.stats().turns_open, count);
    let logs = picture(&mut world).logs;
    assert!(logs.values().all(|log| log.outcomes.of(FireOutcome::Fired) == 1 && log.fires.len() == 1));
    kill(&mut world);
    // Who waits in line goes on waiting in the burst; others may have got the two places.
    assert!(stored(&world, b't') <= 4);
    for _ in 0..50 {
        let call = world.next_call();
        world.answer(call.attempt, "seen");
    }
    kill(&mut world);
    answer_all(&mut world);
    assert_eq!((stored(&world, b'x'), stored(&world, b't'), stored(&world, b'h')), (0, 0, count));
    world.restart();
    for id in triggers {
        let log = world.ask(GetTriggerFires(id)).unwrap().log;
        let ends: Vec<_> = log.fires.iter().map(|fire| fire.end).collect();
        assert_eq!((ends.as_slice(), log.begun()), (&[Some(TurnEnd::Done)][..], 1));
    }
}

#[test]
fn few_fires_have_records_of_their_own() {
    let (mut world, ..) = fixture(limit::BURST_FIRES_MIN + 1);
    world.ask(tell("ping")).unwrap();
    assert_eq!((stored(&world, b'x'), stored(&world, b't')), (0, limit::BURST_FIRES_MIN + 1), "two have begun");
}

#[test]
fn numbers_go_on_when_all_bursts_are_gone_so_that_no_log_passes_over_a_younger_one() {
    let (mut world, ..) = fixture(30);
    world.ask(tell("ping")).unwrap();
    answer_all(&mut world);
    assert_eq!(stored(&world, b'x'), 0);
    world.restart();
    world.ask(tell("ping")).unwrap();
    assert_eq!(stored(&world, b'x'), 1);
    let logs = picture(&mut world).logs;
    assert!(logs.values().all(|log| log.outcomes.of(FireOutcome::Fired) == 2 && log.fires.len() == 2));
    kill(&mut world);
    assert!(picture(&mut world).logs == logs);
}

#[test]
fn what_becomes_of_a_trigger_meanwhile_is_kept_beside_its_burst() {
    let (mut world, _, mut triggers) = fixture(40);
    let patch = TriggerPatch { cooldown_secs: Some(Some(60)), ..TriggerPatch::default() };
    for id in &triggers[..20] {
        world.ask(UpdateTrigger { trigger: *id, patch: patch.clone() }).unwrap();
    }
    world.ask(tell("ping")).unwrap();
    // The first half cools down: its logs are written, but its turns stay where they are.
    world.ask(tell("ping")).unwrap();
    let gone = triggers.remove(30);
    world.ask(DeleteTrigger(gone)).unwrap();
    let before = picture(&mut world);
    assert_eq!(before.logs[&triggers[19]].outcomes.of(FireOutcome::CoolingDown), 1);
    assert_eq!(before.logs[&triggers[25]].outcomes.of(FireOutcome::Fired), 2);
    let turns = before.open.values().filter(|open| open.3 == Origin::Trigger { trigger: gone }).count();
    assert_eq!(turns, 2, "turns go on without their trigger");
    kill(&mut world);
    assert_eq!(world.ask(GetTrigger(gone)).unwrap_err().kind, agentsvc_components::RefusalKind::NotFound);
}

/// A small deterministic generator (SplitMix64), so that a failing run can be repeated from its seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// Something happens: storms mostly, answers, and all that may take a turn out of its burst.
fn happen(world: &mut TestWorld, rng: &mut Rng, agents: &mut Vec<AgentId>, triggers: &mut Vec<TriggerId>) {
    let agent = agents[rng.below(agents.len())];
    match rng.below(16) {
        0 | 1 => {
            world.ask(tell("ping")).unwrap();
        }
        2 => {
            // Two events in one step, and a message between them.
            world.begin(tell("ping"));
            world.begin(PostMessage { agent, session: None, message: NewMessage::text("go") });
            world.begin(tell("ping"));
            world.step();
        }
        3 => {
            world.ask(StopTurns { agent, session: None }).unwrap();
        }
        4 => {
            let session = world.ask(GetAgent(agent)).unwrap().session;
            world.ask(InterruptSession { agent, session }).unwrap();
        }
        5 if triggers.len() > 10 => {
            let id = triggers.swap_remove(rng.below(triggers.len()));
            world.ask(DeleteTrigger(id)).unwrap();
        }
        6 => {
            let id = triggers[rng.below(triggers.len())];
            let secs = [Some(Some(0)), Some(Some(1)), None][rng.below(3)];
            let patch = TriggerPatch { cooldown_secs: secs, enabled: Some(rng.below(4) > 0), ..Default::default() };
            world.ask(UpdateTrigger { trigger: id, patch }).unwrap();
        }
        7 if rng.below(8) == 0 && agents.len() > 2 => {
            agents.retain(|other| *other != agent);
            world.ask(RemoveAgents(vec![agent])).unwrap();
            triggers.retain(|id| world.ask(GetTrigger(*id)).is_ok());
        }
        7 => triggers.push(create(world, agent, &json!({ "custom": { "event_type": "ping" } }))),
        8 => {
            world.ask(ResetSession { agent }).unwrap();
        }
        9 => {
            world.ask(ClearHistory { agent }).unwrap();
        }
        10 => {
            world.ask(StopAgents(vec![agent])).unwrap();
        }
        11 => {
            world.ask(StartAgents(agents.clone())).unwrap();
        }
        _ => (0..rng.below(20)).for_each(|_| answer_out(world)),
    }
}

/// The turns that messages of fires belong to, and the fired turns that have ended; each must be there once.
fn begun_and_ended(world: &TestWorld) -> (BTreeSet<TurnId>, BTreeSet<TurnId>) {
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for ((_, key), value) in world.store.iter().filter(|((space, _), _)| *space == Space::Content) {
        if key[0] == b'r' {
            let row: MessageRecord = record::decode(key, value).unwrap();
            let is_fire = text_of(&row.blocks).starts_with("Look: ");
            assert!(!is_fire || begun.insert(row.turn), "two messages of one turn");
        } else if key[0] == b'y' {
            let trace: TraceRecord = record::decode(key, value).unwrap();
            let is_fired = matches!(trace.origin, Origin::Trigger { .. });
            assert!(!is_fired || ended.insert(trace.turn), "two ends of one turn");
        }
    }
    (begun, ended)
}

#[test]
fn whatever_happens_between_kills_every_fire_has_one_turn_and_every_log_knows_it() {
    for seed in 1..=6 {
        let mut rng = Rng(seed);
        let (mut world, mut agents, mut triggers) = fixture(30);
        let mut storms = 0;
        for _ in 0..60 {
            happen(&mut world, &mut rng, &mut agents, &mut triggers);
            storms = storms.max(stored(&world, b'x'));
            match rng.below(6) {
                0 => {
                    // The step is lost with the process.
                    let before = picture(&mut world);
                    world.begin(tell("ping"));
                    world.engine.step();
                    world.revive();
                    assert!(picture(&mut world) == before, "seed {seed}: a step that was lost has left something");
                    world.step();
                }
                1 => kill(&mut world),
                _ => {}
            }
        }
        assert!(storms > 2, "seed {seed} has tried nothing");
        world.ask(StartAgents(agents.clone())).unwrap();
        answer_all(&mut world);
        assert_eq!((stored(&world, b'x'), stored(&world, b't')), (0, 0), "seed {seed}");
        let (begun, ended) = begun_and_ended(&world);
        assert_eq!(begun, ended, "seed {seed}");
        let Picture { logs, open } = picture(&mut world);
        assert!(open.is_empty() && logs.values().all(|log| log.fires.iter().all(|fire| fire.end.is_some())));
    }
}
