//! What begins of itself waits while the store is behind.

use agentsvc_components::event::Event;
use agentsvc_components::trigger::FireOutcome;
use serde_json::json;

use super::{NewMessage, PostMessage};
use crate::event::parse_pattern;
use crate::kernel::fires::HoldWork;
use crate::testing::TestWorld;
use crate::trigger::{CreateTrigger, GetTriggerFires, NewTrigger, TellEvents};

const FIRES: HoldWork = HoldWork { fires: true, calls: false };
const ALL: HoldWork = HoldWork { fires: true, calls: true };

fn ping() -> TellEvents {
    TellEvents(vec![Event::Custom { event_type: "ping".into(), agent: None, payload: "1".into(), by: None }])
}

#[test]
fn triggers_wait_and_fire_once_the_store_has_caught_up() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let trigger = NewTrigger {
        pattern: parse_pattern(&json!({ "custom": { "event_type": "ping" } })).unwrap(),
        prompt_template: "{{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    };
    let trigger = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    world.ask(FIRES).unwrap();
    (0..3).for_each(|_| world.ask(ping()).unwrap());
    let fires = |world: &mut TestWorld| world.ask(GetTriggerFires(trigger)).unwrap().log;
    assert_eq!((fires(&mut world).begun(), world.calls.len(), world.engine.has_work()), (0, 0, false));
    // A restart forgets the hold, not what matched.
    world.restart();
    while world.engine.has_work() {
        world.step();
    }
    let log = fires(&mut world);
    assert_eq!((log.begun(), log.last_outcome), (3, Some(FireOutcome::Fired)));
    world.ask(FIRES).unwrap();
    world.ask(ping()).unwrap();
    assert_eq!(fires(&mut world).begun(), 3);
    world.ask(HoldWork::default()).unwrap();
    while world.engine.has_work() {
        world.step();
    }
    assert_eq!(fires(&mut world).begun(), 4);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn calls_wait_and_go_out_once_the_store_has_caught_up() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    world.ask(ALL).unwrap();
    world.ask(PostMessage { agent, session: None, message: NewMessage::text("go") }).unwrap();
    assert_eq!((world.calls.len(), world.engine.has_work()), (0, false));
    world.ask(FIRES).unwrap();
    world.step();
    let call = world.next_call();
    world.answer(call.attempt, "here");
    assert_eq!((world.calls.len(), world.engine.check()), (0, Vec::new()));
}
