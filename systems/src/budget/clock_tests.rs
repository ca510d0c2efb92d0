//! Budgets under clocks that jump, in virtual time: no window opens anew.

use agentsvc_components::Micros;
use agentsvc_components::usage::{Period, Scope};

use super::tests::{WORST, costs, send, settings, view};
use crate::testing::TestWorld;
use crate::usage::calendar;

#[test]
fn a_clock_that_is_set_back_does_not_give_money_twice() {
    let mut world = TestWorld::with(settings(WORST));
    let agent = world.spawn("a");
    let midnight = calendar::ends(Period::Daily, calendar::day(world.now));
    world.now = midnight.plus_ms(10);
    let _asked = send(&mut world, agent, 1);
    let call = world.next_call();
    costs(&mut world, &call, WORST);
    world.now = midnight.plus_ms(-1_000);
    assert!(send(&mut world, agent, 1).take().unwrap().is_err());
    for restarts in [false, true] {
        for days in [2, 40] {
            world.now = midnight.plus_ms(-days * calendar::DAY_MS);
            if restarts {
                world.restart();
            }
            assert!(send(&mut world, agent, 1).take().unwrap().is_err(), "the day that was reached is in force");
            assert_eq!(view(&mut world, Scope::Agent(agent)).today, Micros(WORST));
        }
    }
    assert!(world.calls.is_empty());
}

#[test]
fn a_clock_that_was_wrong_by_far_is_not_followed_and_opens_no_day_anew() {
    let mut world = TestWorld::with(settings(WORST));
    let agent = world.spawn("a");
    let right = world.now;
    for (years, spent) in [(0, 500), (30, 700), (-20, 900)] {
        world.now = right.plus_ms(years * 365 * calendar::DAY_MS);
        let _asked = send(&mut world, agent, 1);
        let call = world.next_call();
        costs(&mut world, &call, spent);
        world.restart();
    }
    for (years, spent) in [(0, 500), (-20, 900), (30, 700), (0, 500)] {
        world.now = right.plus_ms(years * 365 * calendar::DAY_MS + calendar::MINUTE_MS);
        for scope in [Scope::Global, Scope::Agent(agent)] {
            let found = view(&mut world, scope);
            assert_eq!((found.today, found.month), (Micros(spent), Micros(spent)), "{years}");
        }
        assert!(send(&mut world, agent, 1).take().unwrap().is_err(), "{years}");
        world.restart();
    }
    assert!(world.calls.is_empty());
}

#[test]
fn a_kill_behind_a_clock_that_was_set_back_gives_no_money_twice() {
    let mut world = TestWorld::with(settings(WORST));
    let agent = world.spawn("a");
    let midnight = calendar::ends(Period::Daily, calendar::day(world.now));
    world.now = midnight.plus_ms(10);
    let _asked = send(&mut world, agent, 1);
    let _lost = world.next_call();
    world.now = midnight.plus_ms(-60_000);
    world.restart();
    // The call that was lost cost all of the day in which it went out, and that day goes on.
    let after = view(&mut world, Scope::Global);
    assert_eq!((after.today, after.reserved), (Micros(WORST), Micros::ZERO));
    assert!(send(&mut world, agent, 2).take().unwrap().is_err());
}
