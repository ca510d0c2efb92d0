//! Triggers of a user or a family wait in lines of their own: none delays those of others, none loses a match.

use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::message::text_of;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::{Actor, AgentId, TriggerId};
use serde_json::json;

use super::tests::new;
use super::*;
use crate::kernel::record;
use crate::testing::{TestWorld, key_of, turn_of, two_users};
use crate::world::GetStats;

/// What a held line may have of a step.
const PART: usize = limit::FIRES_PER_STEP_MAX / limit::POOL_SHARES;

fn trigger(enabled: bool) -> NewTrigger {
    NewTrigger { enabled, ..new(&json!({ "custom": { "event_type": "ping" } })) }
}

fn made(world: &mut TestWorld, actor: Actor, agent: AgentId, (count, enabled): (usize, bool)) -> Vec<TriggerId> {
    world.actor = actor;
    let all = (0..count).map(|_| world.ask(CreateTrigger { agent, trigger: trigger(enabled) }).unwrap().id).collect();
    world.actor = Actor::Api;
    all
}

fn about(agent: AgentId, payload: usize) -> Event {
    let payload = payload.to_string().into();
    Event::Custom { event_type: "ping".into(), agent: Some(agent), payload, by: None }
}

fn ended(world: &mut TestWorld, id: TriggerId, outcome: FireOutcome) -> u64 {
    world.ask(GetTriggerFires(id)).unwrap().log.outcomes.of(outcome)
}

/// Steps until nothing is left over, with a kill before every other step.
fn settle(world: &mut TestWorld) {
    for step in 0..200 {
        assert_eq!(world.engine.check(), Vec::<String>::new());
        if !world.engine.has_work() {
            assert_eq!(world.ask(GetStats).unwrap().matches_waiting, 0);
            assert!(
                !world.store.keys().any(|(space, key)| *space == Space::World && key[0] == b'v'),
                "no wave is left"
            );
            return;
        }
        if step % 2 == 0 {
            world.restart();
        }
        world.step();
    }
    panic!("it does not come to an end");
}

#[test]
fn a_crowd_of_triggers_of_one_user_holds_up_nobody_and_loses_nothing() {
    let (mut world, [anns, bobs, shared]) = two_users();
    let hogs = made(&mut world, key_of(1), anns, (200, false));
    let bobs_one = made(&mut world, key_of(2), bobs, (1, true))[0];
    let of_all = made(&mut world, Actor::Api, shared, (1, true))[0];
    let events = (0..50).map(|n| about(anns, n)).chain([about(bobs, 0)]).collect();
    world.begin(TellEvents(events));
    world.step();
    let disabled =
        |world: &mut TestWorld| world.ask(GetStats).unwrap().trigger_totals.outcomes.of(FireOutcome::Disabled);
    let part = PART * limit::MATCHES_PER_FIRE as usize;
    assert_eq!(
        disabled(&mut world),
        (part - part / 201) as u64,
        "its part of the step; the end of an event counts, too"
    );
    assert_eq!(ended(&mut world, bobs_one, FireOutcome::Fired), 1, "behind all of them");
    assert_eq!(ended(&mut world, of_all, FireOutcome::Fired), 51);
    // The record of a wave does not grow with those that it stands for.
    let waves = world.store.iter().filter(|((space, key), _)| *space == Space::World && key[0] == b'v');
    assert!(waves.map(|(_, value)| value.len()).max().unwrap() < 1_000);
    let gone = hogs[7];
    world.ask(DeleteTrigger(gone)).unwrap();
    // One that is made now has not seen them.
    let late = made(&mut world, key_of(1), anns, (1, false))[0];
    settle(&mut world);
    assert_eq!(ended(&mut world, late, FireOutcome::Disabled), 0);
    for id in hogs.into_iter().filter(|id| *id != gone) {
        assert_eq!(ended(&mut world, id, FireOutcome::Disabled), 50, "those about another's agent are not for it");
    }
}

#[test]
fn fires_of_one_family_are_a_part_of_each_step_and_keep_their_order() {
    let (mut world, [_, _, shared]) = two_users();
    let count = 100;
    let all = made(&mut world, turn_of(shared), shared, (count, true));
    let fired =
        |world: &mut TestWorld| world.ask(GetStats).unwrap().trigger_totals.outcomes.of(FireOutcome::Fired) as usize;
    world.begin(TellEvents((0..4).map(|n| about(shared, n)).collect()));
    world.step();
    assert_eq!(fired(&mut world), PART);
    // A question is a step, too.
    assert_eq!(fired(&mut world), 4 * count);
    settle(&mut world);
    assert!(all.iter().all(|id| ended(&mut world, *id, FireOutcome::Fired) == 4));
    let mut rows: Vec<_> =
        world.store.iter().filter(|((space, key), _)| *space == Space::Content && key[0] == b'r').collect();
    rows.sort_by(|((_, one), _), ((_, other), _)| one.cmp(other));
    let texts = rows.into_iter().map(|((_, key), value)| record::decode::<MessageRecord>(key, value).unwrap());
    let payloads: Vec<_> = texts.map(|row| text_of(&row.blocks)).filter(|text| text.starts_with("Look: ")).collect();
    let place = |text: &String| (0..4).find(|n| text.contains(&format!("\"payload\":\"{n}\""))).unwrap();
    assert!(payloads.len() == 4 * count && payloads.is_sorted_by_key(place), "in the order of the events");
}

#[test]
fn a_trigger_stays_in_its_line_whoever_holds_it_later() {
    let (mut world, [anns, ..]) = two_users();
    let given = made(&mut world, Actor::Api, anns, (1, false))[0];
    made(&mut world, key_of(1), anns, (200, false));
    world.begin(TellEvents((0..50).map(|n| about(anns, n)).collect()));
    world.step();
    assert_eq!(ended(&mut world, given, FireOutcome::Disabled), 50);
    world.actor = key_of(1);
    let longer = TriggerPatch { prompt_template: Some("Look at this: {{event}}".into()), ..TriggerPatch::default() };
    world.ask(UpdateTrigger { trigger: given, patch: longer }).unwrap();
    world.actor = Actor::Api;
    settle(&mut world);
    assert_eq!(ended(&mut world, given, FireOutcome::Disabled), 50, "none comes twice");
}
