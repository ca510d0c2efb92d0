//! What each client of A2A has for itself, in virtual time: those without a key have one pool together, and take nothing of others.

use agentsvc_components::a2a::A2aTaskId;
use agentsvc_components::{AgentId, Micros, Refusal};

use super::tests::{command, task};
use super::*;
use crate::config::A2aSettings;
use crate::kernel::entities::Get;
use crate::testing::TestWorld;
use crate::usage::priced_for_tests;

fn send(world: &mut TestWorld, agent: AgentId, n: u128, client: &str) -> Result<A2aTaskId, Refusal> {
    let sent = world.ask(SendA2aTask { client: client.to_owned(), ..command(agent, n) });
    world.calls.clear();
    sent.map(|view| view.id)
}

#[test]
fn one_client_has_so_many_open_and_strangers_leave_room_to_those_with_a_key() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let (own, all) = (limits::A2A_CLIENT_TASKS_OPEN_MAX as u128, limits::A2A_TASKS_OPEN_MAX as u128);
    for n in 0..own {
        send(&mut world, agent, n, "@1").unwrap();
    }
    let refused = send(&mut world, agent, own, "@1").unwrap_err();
    assert!(
        refused.code == Some(error_codes::A2A_TASKS_FULL) && refused.message.contains("this client"),
        "{refused:?}"
    );
    for n in own..all {
        send(&mut world, agent, n, &format!("@{n}")).unwrap();
    }
    assert_eq!(send(&mut world, agent, all, "@new").unwrap_err().code, Some(error_codes::A2A_TASKS_FULL));
    for client in ["key:1", "user:2"] {
        let first = 1_000 * client.len() as u128;
        for n in 0..own {
            send(&mut world, agent, first + n, client).unwrap();
        }
        assert_eq!(send(&mut world, agent, first + own, client).unwrap_err().code, Some(error_codes::A2A_TASKS_FULL));
    }
    assert_eq!(world.engine.check(), [] as [String; 0]);
    world.restart();
    world.calls.clear();
    assert!(send(&mut world, agent, all, "@new").is_err() && send(&mut world, agent, 9_000, "key:1").is_err());
    world.ask(CancelA2aTask(task(0))).unwrap();
    send(&mut world, agent, all, "@new").unwrap();
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_flood_of_strangers_drives_out_no_ended_task_of_others() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let end = |world: &mut TestWorld, n: u128, client: &str| {
        send(world, agent, n, client).unwrap();
        world.ask(CancelA2aTask(task(n))).unwrap();
    };
    end(&mut world, 1, "key:1");
    for n in 10..10 + limits::A2A_TASKS_MAX as u128 + 5 {
        end(&mut world, n, &format!("@{n}"));
    }
    assert!(world.ask(Get::<A2aTaskView>(task(1))).is_ok(), "it ended first, and stays");
    assert!(world.ask(Get::<A2aTaskView>(task(10))).is_err());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn each_client_with_a_key_has_a_daily_limit_of_its_own() {
    // What one answer of these tests costs.
    let cost = Micros(20);
    let mut settings = priced_for_tests();
    settings.a2a = A2aSettings { is_off: false, daily_limit: cost };
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("scout");
    let ask = |world: &mut TestWorld, n: u128, client: &str| {
        let client = client.to_owned();
        world.ask(SendA2aTask { client, daily_limit: cost, ..command(agent, n) })?;
        let attempt = world.next_call().attempt;
        world.answer(attempt, "done");
        Ok::<_, Refusal>(())
    };
    ask(&mut world, 1, "@1").unwrap();
    assert_eq!(ask(&mut world, 2, "@2").unwrap_err().code, Some(error_codes::A2A_BUDGET_EXCEEDED));
    for (n, client) in [(3, "key:1"), (4, "key:2")] {
        ask(&mut world, n, client).unwrap();
        assert_eq!(ask(&mut world, n + 10, client).unwrap_err().code, Some(error_codes::A2A_BUDGET_EXCEEDED));
    }
    world.restart();
    for client in [None, Some("key:1"), Some("key:2")] {
        assert_eq!(spending::spent(world.engine.world(), client), cost, "{client:?}");
    }
    assert_eq!(world.engine.check(), [] as [String; 0]);
}
