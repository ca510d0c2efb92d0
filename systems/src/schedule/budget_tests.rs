//! Slots without budget, and schedules that tools make, in virtual time: every slot and every turn keeps exactly one outcome.

use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::{RunStatus, Tally};
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::{Micros, RefusalKind};

use super::tests::*;
use super::*;
use crate::budget::{EXCEEDED, SetBudget};
use crate::testing::TestWorld;
use crate::usage::priced_for_tests;

fn allow(world: &mut TestWorld, daily: u64) {
    let limits = Limits { daily: Some(Micros(daily)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Global, limits }).unwrap();
}

#[test]
fn a_turn_that_no_budget_has_room_for_and_a_slot_refused_at_the_door_are_over_budget() {
    let mut world = TestWorld::with(priced_for_tests());
    pass_to(&mut world, MONDAY);
    let agent = world.spawn("scout");
    let view = create(&mut world, plain(agent, "@hourly"));
    allow(&mut world, 1);
    pass_to(&mut world, MONDAY + HOUR);
    let first = get(&mut world, &view);
    assert_eq!((first.open, first.past.run_count), (0, 1));
    assert_eq!(first.past.tally, Tally { fired: 1, failed: 1, ..Tally::default() });
    assert_eq!(first.past.last_result.unwrap().status, RunStatus::OverBudget);
    pass_to(&mut world, MONDAY + 2 * HOUR);
    let second = get(&mut world, &view);
    let tally = Tally { fired: 1, failed: 1, over_budget: 1, ..Tally::default() };
    assert_eq!((second.open, second.past.run_count, second.past.tally), (0, 1, tally), "nothing was begun");
    let result = second.past.last_result.clone().unwrap();
    assert_eq!(result.status, RunStatus::OverBudget);
    assert!(result.text.starts_with("slot 2026-03-02T02:00:00.000Z: "), "{}", result.text);
    assert_eq!(world.engine.stats().schedule_outcomes, tally);
    let refusal = world.ask(RunSchedule { kind: view.kind, id: view.id }).unwrap_err();
    assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(EXCEEDED)));
    world.restart();
    assert_eq!(get(&mut world, &view).past, second.past, "a run by hand that was refused left nothing");
    allow(&mut world, 0);
    pass_to(&mut world, MONDAY + 3 * HOUR);
    answer_all(&mut world);
    let third = get(&mut world, &view);
    let tally = Tally { fired: 2, completed: 1, ..tally };
    assert_eq!((third.open, third.past.run_count, third.past.tally), (0, 2, tally), "three slots, two turns");
    assert_eq!(third.past.last_result.unwrap().status, RunStatus::Completed);
}

#[test]
fn a_tool_makes_no_storm() {
    let (mut world, agent) = fixture();
    for rule in ["every 1s", "every 59s", "* * * * * *", "0,1 * * * * *"] {
        let refusal = world.ask(CreateSchedule { new: plain(agent, rule), by_tool: true }).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.is_some()), (RefusalKind::BadRequest, true), "{rule}: {refusal:?}");
        create(&mut world, plain(agent, rule));
    }
    let mut fast = 4;
    while world.ask(CreateSchedule { new: plain(agent, "every 60s"), by_tool: true }).is_ok() {
        fast += 1;
    }
    assert_eq!(fast, 2 * limit::AGENT_SCHEDULES_FAST);
    world.ask(CreateSchedule { new: plain(agent, "every 2m"), by_tool: true }).unwrap();
    world.ask(CreateSchedule { new: plain(agent, "in 1s"), by_tool: true }).unwrap();
}
