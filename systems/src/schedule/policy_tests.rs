//! What happens to slots that passed unnoticed, and to slots while a turn is open; clocks that jump; restarts.

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, RunStatus, Tally};
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::{AgentId, Timestamp};

use super::tests::*;
use super::*;
use crate::agent::{StartAgents, StopAgents};
use crate::event::{PublishEvent, parse_pattern};
use crate::testing::TestWorld;
use crate::trigger::{CreateTrigger, NewTrigger};

fn with(agent: AgentId, rule: &str, missed: MissedPolicy, overlap: OverlapPolicy) -> NewSchedule {
    NewSchedule { missed, overlap, ..plain(agent, rule) }
}

fn tally(world: &mut TestWorld, view: &ScheduleView) -> Tally {
    get(world, view).past.tally
}

/// Answers what is out until nothing is.
fn settle(world: &mut TestWorld) {
    answer_all(world);
    pass_to(world, world.now.0 + 1);
    while !world.calls.is_empty() {
        answer_all(world);
        pass_to(world, world.now.0 + 1);
    }
}

/// Three slots pass unnoticed, the newest by less than a minute: each pair of policies has its outcome.
#[test]
fn missed_and_overlap_policies() {
    use MissedPolicy as M;
    use OverlapPolicy as O;
    for (missed, overlap, fired, expected) in [
        (M::Skip, O::Queue, 1, Tally { fired: 1, missed: 2, ..Default::default() }),
        (M::Skip, O::Skip, 1, Tally { fired: 1, missed: 2, ..Default::default() }),
        (M::One, O::Queue, 1, Tally { fired: 1, missed: 2, ..Default::default() }),
        (M::One, O::Skip, 1, Tally { fired: 1, missed: 2, ..Default::default() }),
        (M::One, O::Parallel, 1, Tally { fired: 1, missed: 2, ..Default::default() }),
        (M::All, O::Queue, 1, Tally { fired: 1, ..Default::default() }),
        (M::All, O::Skip, 1, Tally { fired: 1, overlapped: 2, ..Default::default() }),
        // Those that are late by more than a minute wait for each other.
        (M::All, O::Parallel, 2, Tally { fired: 2, ..Default::default() }),
    ] {
        let (mut world, agent) = fixture();
        let view = create(&mut world, with(agent, "0 * * * *", missed, overlap));
        pass_to(&mut world, MONDAY + 3 * HOUR + 30_000);
        assert_eq!((world.calls.len(), tally(&mut world, &view)), (fired, expected), "{missed:?} {overlap:?}");
        settle(&mut world);
        let all = tally(&mut world, &view);
        assert_eq!(all.fired + all.missed + all.overlapped, 3, "{missed:?} {overlap:?}");
        assert_eq!(all.completed, all.fired);
        assert_eq!(get(&mut world, &view).open, 0);
    }
}

#[test]
fn skip_leaves_out_what_is_late_by_more_than_a_minute() {
    for (late, fired) in [(limit::SCHEDULE_LATE_MS, 1), (limit::SCHEDULE_LATE_MS + 1, 0)] {
        let (mut world, agent) = fixture();
        let view = create(&mut world, with(agent, "0 * * * *", MissedPolicy::Skip, OverlapPolicy::Queue));
        pass_to(&mut world, MONDAY + HOUR + late);
        let tally = tally(&mut world, &view);
        assert_eq!((tally.fired, tally.missed), (fired, 1 - fired));
        if fired == 0 {
            assert_eq!(get(&mut world, &view).past.last_result.unwrap().status, RunStatus::Missed);
        }
    }
    // The default fires it however late it is.
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "0 1 * * *"));
    pass_to(&mut world, MONDAY + 20 * HOUR);
    assert_eq!(tally(&mut world, &view).fired, 1);
}

#[test]
fn a_long_sleep_is_walked_in_bounded_visits() {
    let (mut world, agent) = fixture();
    let all = create(&mut world, with(agent, "* * * * *", MissedPolicy::All, OverlapPolicy::Skip));
    let one = create(&mut world, with(agent, "*/10 * * * * *", MissedPolicy::One, OverlapPolicy::Skip));
    let every = create(&mut world, with(agent, "every 1s", MissedPolicy::All, OverlapPolicy::Parallel));
    let skip = create(&mut world, with(agent, "every 1s", MissedPolicy::Skip, OverlapPolicy::Skip));
    let begun = every.created_at.0;
    pass_to(&mut world, MONDAY + 3 * DAY);
    let (minutes, tens) = (3 * 24 * 60, 3 * DAY as u64 / 10_000);
    let kept = limit::SCHEDULE_MISSED_MAX as u64;
    let found = tally(&mut world, &all);
    assert_eq!((found.fired, found.overlapped, found.missed), (1, kept - 1, minutes - kept));
    let found = tally(&mut world, &one);
    assert_eq!((found.fired, found.missed), (1, tens - 1));
    let slots = (MONDAY + 3 * DAY - begun) as u64 / 1_000;
    let found = tally(&mut world, &every);
    // The last minute is not late.
    assert_eq!((found.fired, found.missed), (61, slots - kept));
    let found = tally(&mut world, &skip);
    assert_eq!(found.fired + found.overlapped + found.missed, (MONDAY + 3 * DAY - skip.created_at.0) as u64 / 1_000);
    assert_eq!((found.fired, found.overlapped), (1, 59));
}

#[test]
fn slots_queue_behind_an_open_turn_up_to_a_bound() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "* * * * *"));
    for minute in 1..=120 {
        pass_to(&mut world, MONDAY + minute * MINUTE);
    }
    let now = get(&mut world, &view);
    assert_eq!((now.open, now.past.queue.len(), now.past.tally.refused), (1, limit::SCHEDULE_QUEUE_MAX, 19));
    assert_eq!(now.past.last_result.unwrap().status, RunStatus::Refused);
    world.restart();
    assert_eq!(get(&mut world, &view).past.queue.len(), limit::SCHEDULE_QUEUE_MAX, "they wait after a restart too");
    assert_eq!(get(&mut world, &view).open, 1);
    settle(&mut world);
    let now = get(&mut world, &view);
    assert_eq!((now.open, now.past.queue.len(), now.past.tally.fired), (0, 0, 101));
    assert_eq!(now.past.last_run, Some(Timestamp(MONDAY + 101 * MINUTE)), "the bindings in order");
}

/// Runs that overlap and take longer than from one slot to the next: there is no moment without one.
#[test]
fn caught_up_slots_of_a_schedule_whose_runs_overlap_wait_for_the_end_of_one_run_not_of_all() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, with(agent, "* * * * *", MissedPolicy::All, OverlapPolicy::Parallel));
    pass_to(&mut world, MONDAY + 5 * MINUTE + 30_000);
    assert_eq!((world.calls.len(), get(&mut world, &view).past.queue.len()), (2, 3), "the oldest and the newest");
    for minute in 6..=12 {
        pass_to(&mut world, MONDAY + minute * MINUTE);
        assert!(world.calls.len() <= 4, "a run that ends gives its place to one slot");
        for _ in 1..world.calls.len() {
            let call = world.next_call();
            world.answer(call.attempt, "done");
        }
        assert!(!world.calls.is_empty(), "one is always open");
    }
    let now = get(&mut world, &view).past;
    assert_eq!((now.queue.len(), now.tally.fired), (0, 12));
    world.restart();
    settle(&mut world);
    assert_eq!((get(&mut world, &view).open, tally(&mut world, &view).completed), (0, 12));
}

#[test]
fn waiting_slots_are_missed_when_it_is_disabled() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "* * * * *"));
    for minute in 1..=3 {
        pass_to(&mut world, MONDAY + minute * MINUTE);
    }
    enable(&mut world, &view, false);
    settle(&mut world);
    let now = get(&mut world, &view).past;
    assert_eq!((now.queue.len(), now.tally.fired, now.tally.missed), (0, 1, 2));
}

#[test]
fn parallel_runs_stand_in_sessions_of_their_own() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, with(agent, "* * * * *", MissedPolicy::One, OverlapPolicy::Parallel));
    for minute in 1..=3 {
        pass_to(&mut world, MONDAY + minute * MINUTE);
    }
    let sessions: std::collections::BTreeSet<_> = world.calls.iter().map(|call| call.session).collect();
    assert_eq!((sessions.len(), get(&mut world, &view).open), (3, 3));
    world.ask(RunSchedule { kind: view.kind, id: view.id }).unwrap();
    assert_eq!(world.calls.len(), 4, "a run by hand too");
}

#[test]
fn the_session_mode_says_where_it_runs() {
    let (mut world, agent) = fixture();
    let current = world.ask(crate::session::GetSession::Current(agent)).unwrap().id;
    let new = NewSchedule { session_mode: Some(SessionMode::New), ..plain(agent, "0 1 * * *") };
    create(&mut world, new);
    create(&mut world, plain(agent, "0 2 * * *"));
    pass_to(&mut world, MONDAY + HOUR);
    assert_ne!(world.next_call().session, current);
    pass_to(&mut world, MONDAY + 2 * HOUR);
    assert_eq!(world.next_call().session, current);
}

#[test]
fn a_stopped_agent_s_slots_are_counted_and_do_not_come_back() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    world.ask(StopAgents(vec![agent])).unwrap();
    live_to(&mut world, MONDAY + 2 * HOUR);
    assert_eq!(tally(&mut world, &view), Tally { agent_stopped: 2, ..Default::default() });
    assert_eq!(get(&mut world, &view).past.last_result.unwrap().status, RunStatus::AgentStopped);
    world.ask(StartAgents(vec![agent])).unwrap();
    pass_to(&mut world, MONDAY + 2 * HOUR + MINUTE);
    assert!(world.calls.is_empty());
    live_to(&mut world, MONDAY + 3 * HOUR);
    assert_eq!(tally(&mut world, &view).fired, 1);
}

#[test]
fn a_restart_fires_what_was_missed_once() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    live_to(&mut world, MONDAY + 2 * HOUR);
    for _ in 0..3 {
        world.now = Timestamp(MONDAY + 5 * HOUR);
        world.restart();
        pass_to(&mut world, MONDAY + 5 * HOUR + 2_000);
    }
    assert_eq!(tally(&mut world, &view).missed, 2);
    settle(&mut world);
    let now = get(&mut world, &view);
    assert_eq!((now.past.tally.fired, now.past.tally.completed, now.past.tally.missed), (3, 3, 2));
    assert_eq!(now.next_run, Some(Timestamp(MONDAY + 6 * HOUR)));
}

#[test]
fn a_clock_that_is_set_forward_is_a_long_sleep() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    pass_to(&mut world, MONDAY + 2 * DAY + 1);
    assert_eq!((tally(&mut world, &view).fired, tally(&mut world, &view).missed), (1, 47));
}

#[test]
fn a_clock_that_is_set_back_a_little_repeats_no_slot() {
    let (mut world, agent) = fixture();
    let view = create(&mut world, plain(agent, "@hourly"));
    live_to(&mut world, MONDAY + 5 * HOUR);
    pass_to(&mut world, MONDAY + HOUR);
    live_to(&mut world, MONDAY + 5 * HOUR);
    assert_eq!(tally(&mut world, &view).fired, 5);
    live_to(&mut world, MONDAY + 6 * HOUR);
    assert_eq!(tally(&mut world, &view).fired, 6);
    // The same over a restart.
    world.now = Timestamp(MONDAY + HOUR);
    world.restart();
    live_to(&mut world, MONDAY + 7 * HOUR);
    assert_eq!(tally(&mut world, &view).fired, 7);
}

/// Set back two days and forth again, also over restarts: no slot fires twice, and what is caught up is bounded and fires one
/// after another.
#[test]
fn a_clock_that_is_set_back_by_days_and_forth_repeats_no_slot() {
    for (over_a_restart, overlap) in [(false, OverlapPolicy::Parallel), (true, OverlapPolicy::Queue)] {
        let (mut world, agent) = fixture();
        let set = |world: &mut TestWorld, to: i64| {
            world.now = Timestamp(to);
            if over_a_restart {
                world.restart();
            }
            pass_to(world, to);
        };
        let view = create(&mut world, with(agent, "0 * * * *", MissedPolicy::All, overlap));
        for hour in 1..=72 {
            live_to(&mut world, MONDAY + hour * HOUR);
        }
        assert_eq!(tally(&mut world, &view).fired, 72);
        for _ in 0..3 {
            set(&mut world, MONDAY + DAY + 30_000);
            assert_eq!(get(&mut world, &view).next_run, Some(Timestamp(MONDAY + 73 * HOUR)), "{over_a_restart}");
            set(&mut world, MONDAY + 72 * HOUR + 30_000);
            assert_eq!((world.calls.len(), tally(&mut world, &view).fired), (0, 72), "{over_a_restart}");
        }
        // Far ahead and back: the newest are caught up, and those between are not lost for later.
        set(&mut world, MONDAY + 100 * DAY + 2 * MINUTE);
        assert_eq!(world.calls.len(), 1, "one after another");
        settle(&mut world);
        let caught_up = 72 + limit::SCHEDULE_MISSED_MAX as u64;
        assert_eq!(tally(&mut world, &view).fired, caught_up);
        set(&mut world, MONDAY + 72 * HOUR + MINUTE);
        assert_eq!(get(&mut world, &view).next_run, Some(Timestamp(MONDAY + 73 * HOUR)));
        live_to(&mut world, MONDAY + 73 * HOUR);
        set(&mut world, MONDAY + 100 * DAY + 3 * MINUTE);
        settle(&mut world);
        // Before those that were caught up there are others, which were missed.
        assert_eq!(tally(&mut world, &view).fired, caught_up + 1 + limit::SCHEDULE_MISSED_MAX as u64);
        // A person who enables it says that the clock is right.
        set(&mut world, MONDAY + 2 * DAY);
        enable(&mut world, &view, false);
        enable(&mut world, &view, true);
        assert_eq!(get(&mut world, &view).next_run, Some(Timestamp(MONDAY + 49 * HOUR)));
    }
}

#[test]
fn a_clock_that_was_wrong_by_days_makes_schedules_count_anew() {
    for over_a_restart in [false, true] {
        let (mut world, agent) = fixture();
        let hourly = create(&mut world, plain(agent, "@hourly"));
        let yearly = create(&mut world, plain(agent, "0 0 1 4 *"));
        live_to(&mut world, MONDAY + HOUR);
        pass_to(&mut world, MONDAY + 100 * DAY);
        settle(&mut world);
        let late = create(&mut world, plain(agent, "every 1h"));
        if over_a_restart {
            world.now = Timestamp(MONDAY + DAY - 1_000);
            world.restart();
        } else {
            pass_to(&mut world, MONDAY + DAY);
        }
        assert_eq!(get(&mut world, &hourly).next_run, Some(Timestamp(MONDAY + DAY + HOUR)), "{over_a_restart}");
        assert!(get(&mut world, &late).next_run.unwrap() <= Timestamp(MONDAY + DAY + HOUR + 10_000));
        // 1 April of this year had its outcome, if by a wrong clock.
        assert_eq!(get(&mut world, &yearly).next_run.unwrap().to_string(), "2027-04-01T00:00:00.000Z");
        let stored = get(&mut world, &hourly);
        world.now = Timestamp(MONDAY + DAY);
        world.restart();
        assert_eq!(get(&mut world, &hourly), stored, "what was counted anew is stored");
    }
}

#[test]
fn a_full_step_leaves_the_rest_to_the_next_and_loses_nothing() {
    let (mut world, agent) = fixture();
    let count = limit::FIRES_PER_STEP_MAX + 10;
    let views: Vec<_> = (0..count)
        .map(|_| create(&mut world, with(agent, "@hourly", MissedPolicy::One, OverlapPolicy::Parallel)))
        .collect();
    world.now = Timestamp(MONDAY + HOUR);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    assert!(world.engine.has_work());
    world.restart();
    pass_to(&mut world, MONDAY + HOUR + 2_000);
    assert!(views.iter().all(|view| tally(&mut world, view) == Tally { fired: 1, ..Default::default() }));
}

/// How many slots and how many matches have fired.
fn fires(world: &TestWorld) -> (usize, usize) {
    let stats = world.engine.stats();
    (stats.schedule_outcomes.fired as usize, stats.trigger_totals.outcomes.of(FireOutcome::Fired) as usize)
}

#[test]
fn a_storm_of_matches_and_a_crowd_of_slots_take_turns() {
    let (mut world, agent) = fixture();
    let trigger = NewTrigger {
        pattern: parse_pattern(&serde_json::json!({ "custom": { "event_type": "ping" } })).unwrap(),
        prompt_template: "look".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    };
    let storm = limit::FIRES_PER_STEP_MAX * 3;
    for _ in 0..storm {
        world.begin(CreateTrigger { agent, trigger: trigger.clone() });
    }
    let ping = || PublishEvent { event_type: "ping".into(), payload: "1".into(), agent: None, by: None };
    create(&mut world, with(agent, "at 2026-03-02T01:00:00Z", MissedPolicy::One, OverlapPolicy::Parallel));
    // One slot among a storm is not late by a step.
    world.begin(ping());
    world.step();
    assert_eq!(fires(&world), (0, limit::FIRES_PER_STEP_MAX));
    let beat = |world: &mut TestWorld, ms| {
        world.now = Timestamp(ms);
        world.engine.set_now(world.now);
        world.engine.beat();
        world.step();
    };
    beat(&mut world, MONDAY + HOUR);
    assert_eq!(fires(&world), (1, limit::FIRES_PER_STEP_MAX * 2 - 1));
    pass_to(&mut world, MONDAY + HOUR + 1);
    assert_eq!(fires(&world), (1, storm));
    // A crowd of slots leaves the storm its share, and nobody's share is left unused.
    let crowd = limit::SCHEDULES_PER_STEP_MAX + limit::FIRES_PER_STEP_MAX + 10;
    for _ in 0..crowd {
        let new = with(agent, "at 2026-03-02T02:00:00Z", MissedPolicy::One, OverlapPolicy::Parallel);
        world.begin(CreateSchedule { new, by_tool: false });
    }
    world.step();
    world.begin(ping());
    beat(&mut world, MONDAY + 2 * HOUR);
    let share = limit::SCHEDULES_PER_STEP_MAX;
    assert_eq!(fires(&world), (1 + share, storm + limit::FIRES_PER_STEP_MAX - share));
    pass_to(&mut world, MONDAY + 2 * HOUR + 1);
    assert_eq!(fires(&world), (1 + crowd, storm * 2));
}
