//! What happens is counted once, in the step in which it happens, whatever the clock does.

use agentsvc_components::history::{Activity, HourRecord, MinuteRecord, SweepHistory};
use agentsvc_components::kernel::record::Space;
use agentsvc_components::turn::outcome::{
    FailureCode, ModelEnd, ModelFailure, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus,
};
use agentsvc_components::turn::{Origin, effect::ToolRun};
use agentsvc_components::{AgentId, Micros, Timestamp};

use super::hours::History;
use super::*;
use crate::config::Settings;
use crate::kernel::record::{decode, tests::comes_back};
use crate::testing::{Asked, TestWorld, answer, tool_call};
use crate::turn::{NewMessage, SendMessage, StopTurns, TurnReply};
use crate::usage::calendar::{DAY_MS, HOUR_MS, MINUTE_MS};
use crate::usage::priced_for_tests;

/// A world in which the first minute of an hour begins.
fn world(settings: Settings) -> (TestWorld, AgentId) {
    let mut world = TestWorld::with(settings);
    world.now = Timestamp(1_700_000_000_000 / DAY_MS * DAY_MS + DAY_MS + 12 * HOUR_MS);
    let agent = world.spawn("scout");
    (world, agent)
}

fn begin(world: &mut TestWorld, agent: AgentId, origin: Origin) -> Asked<TurnReply> {
    let message = NewMessage { origin, ..NewMessage::text("hello") };
    let asked = world.begin(SendMessage { agent, session: None, message });
    world.step();
    asked
}

/// A whole turn of a second.
fn turn(world: &mut TestWorld, agent: AgentId) {
    let _asked = begin(world, agent, Origin::Api);
    let attempt = world.next_call().attempt;
    pass(world, 1_000);
    world.answer(attempt, "ok");
}

fn pass(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
}

/// The minutes that the world has a record of, with their hour's number.
fn minutes(world: &TestWorld) -> Vec<(i64, MinuteRecord)> {
    let rows = world.store.iter().filter(|((space, key), _)| *space == Space::World && key[0] == rows::KEY);
    let mut found: Vec<_> =
        rows.map(|((_, key), value)| (parse_minute(key).unwrap(), decode(key, value).unwrap())).collect();
    found.sort_by_key(|(minute, _)| *minute);
    found
}

/// The hours that are over, with their numbers.
fn hours(world: &TestWorld) -> Vec<((i64, u64), HourRecord)> {
    let rows = world.store.iter().filter(|((space, key), _)| *space == Space::Content && key[0] == rows::KEY);
    let mut found: Vec<_> =
        rows.map(|((_, key), value)| (parse_hour_key(key).unwrap(), decode(key, value).unwrap())).collect();
    found.sort_by_key(|((_, number), _)| *number);
    found
}

/// Everything that was ever counted.
fn sum(world: &TestWorld) -> Activity {
    let mut sum = Activity::default();
    hours(world).iter().flat_map(|(_, hour)| hour.minutes.values()).for_each(|minute| sum.add(minute));
    minutes(world).iter().for_each(|(_, minute)| sum.add(&minute.activity));
    sum
}

#[test]
fn a_turn_counts_in_the_minute_in_which_each_part_of_it_happens() {
    let (mut world, agent) = world(priced_for_tests());
    let _asked = begin(&mut world, agent, Origin::WebSocket);
    let attempt = world.next_call().attempt;
    pass(&mut world, MINUTE_MS);
    world.answer(attempt, "ok");
    let stored = minutes(&world);
    let [(first, came), (second, ended)] = &stored[..] else { panic!("{stored:?}") };
    assert_eq!((second - first, came.number, ended.number), (1, 0, 0));
    assert_eq!(came.activity, Activity { client_messages: 1, ..Activity::default() });
    let ended = &ended.activity;
    assert_eq!(
        (ended.turns_completed, ended.model_calls, ended.model_calls_failed, ended.client_messages),
        (1, 1, 0, 0)
    );
    assert_eq!((ended.input_tokens, ended.output_tokens, ended.cost), (10, 5, Micros(20)));
    assert!((MINUTE_MS as u64..MINUTE_MS as u64 + 100).contains(&ended.turn_ms), "{ended:?}");
    // What is stored is what is read, before and after a restart.
    let read = world.ask(GetOpenHours).unwrap();
    world.restart();
    assert_eq!(world.ask(GetOpenHours).unwrap(), read);
    assert_eq!(read.last().unwrap().record.minutes.values().collect::<Vec<_>>(), [&came.activity, ended]);
    // A minute in which nothing happens leaves nothing.
    pass(&mut world, MINUTE_MS);
    world.engine.beat();
    world.step();
    assert_eq!(minutes(&world).len(), 2);
}

#[test]
fn failures_stops_tools_and_origins_are_told_apart() {
    let (mut world, agent) = world(Settings::default());
    let _asked = begin(&mut world, agent, Origin::Peer);
    let attempt = world.next_call().attempt;
    let failure = ModelFailure { code: FailureCode::ProviderError, message: "no".to_owned(), spent: Vec::new() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Failed(failure)));
    let _asked = begin(&mut world, agent, Origin::OpenAi);
    let attempt = world.next_call().attempt;
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![tool_call("a")]))));
    let run = world.effects.drain(..).find_map(|effect| effect.get::<ToolRun>().cloned()).unwrap();
    let end = ToolEnd {
        index: run.index,
        call: run.call,
        content: "broken".to_owned(),
        whole: None,
        notice: None,
        brought: None,
        status: ToolStatus::Error,
    };
    world.outcome(ToolOutcome(run.attempt, end));
    let attempt = world.next_call().attempt;
    world.ask(StopTurns { agent, session: None }).unwrap();
    world.outcome(ModelOutcome(attempt, ModelEnd::Aborted(answer(Vec::new()))));
    let sum = sum(&world);
    assert_eq!((sum.turns_failed, sum.turns_stopped, sum.turns_completed), (1, 1, 0));
    assert_eq!((sum.model_calls, sum.model_calls_failed), (3, 1));
    assert_eq!((sum.tool_calls, sum.tool_calls_failed), (1, 1));
    assert_eq!((sum.agent_messages, sum.client_messages), (1, 1));
    assert_eq!(sum.turn_durations.values().sum::<u64>(), 2);
}

#[test]
fn an_hour_that_is_over_is_one_row() {
    let (mut world, agent) = world(Settings::default());
    for _ in 0..3 {
        turn(&mut world, agent);
        pass(&mut world, MINUTE_MS);
    }
    let before = minutes(&world);
    pass(&mut world, HOUR_MS);
    turn(&mut world, agent);
    let (over, open) = (hours(&world), minutes(&world));
    assert_eq!((over.len(), over[0].0.1, over[0].1.minutes.len()), (1, 0, 3));
    assert!(over[0].1.minutes.values().zip(&before).all(|(minute, (_, stored))| *minute == stored.activity));
    assert_eq!((open.len(), open[0].1.number), (1, 1));
    assert_eq!(over[0].0.0 + 1, open[0].0 / 60);
    // A read has the hour that was just closed beside the open one, until a start.
    let read = world.ask(GetOpenHours).unwrap();
    assert_eq!(read.iter().map(|hour| hour.number).collect::<Vec<_>>(), [0, 1]);
    world.restart();
    assert_eq!(world.ask(GetOpenHours).unwrap(), read[1..]);
    turn(&mut world, agent);
    assert_eq!((sum(&world).turns_completed, hours(&world).len()), (5, 1));
}

#[test]
fn a_clock_that_is_set_back_loses_nothing_and_counts_nothing_twice() {
    let (mut world, agent) = world(Settings::default());
    pass(&mut world, 5 * MINUTE_MS);
    turn(&mut world, agent);
    pass(&mut world, -10 * MINUTE_MS);
    turn(&mut world, agent);
    assert_eq!((minutes(&world).len(), hours(&world).len()), (1, 0), "the newest minute counts on");
    for (jump, number) in [(-3 * HOUR_MS, 1), (3 * HOUR_MS, 2), (-400 * DAY_MS, 3), (400 * DAY_MS, 4)] {
        pass(&mut world, jump);
        turn(&mut world, agent);
        world.restart();
        assert_eq!((minutes(&world)[0].1.number, hours(&world).len() as u64), (number, number));
    }
    assert_eq!(sum(&world).turns_completed, 6);
    // The hour that came twice has two rows.
    assert_eq!((hours(&world)[2].0.0, minutes(&world)[0].1.number), (minutes(&world)[0].0 / 60, 4));
}

#[test]
fn the_longest_line_of_a_minute_is_kept() {
    let (mut world, agent) = world(Settings { provider_calls: 1, ..Settings::default() });
    let other = world.spawn("other");
    let _asked = [begin(&mut world, agent, Origin::Api), begin(&mut world, other, Origin::Api)];
    assert_eq!(minutes(&world)[0].1.activity.turns_waiting_max, 1);
    // They wait on in a minute in which nothing else happens.
    pass(&mut world, MINUTE_MS);
    world.engine.beat();
    world.step();
    let stored = minutes(&world);
    assert_eq!(stored[1].1.activity, Activity { turns_waiting_max: 1, ..Activity::default() });
    world.engine.beat();
    assert!(world.step().iter().all(|op| op.key[0] != rows::KEY), "nothing new is not written again");
}

#[test]
fn what_is_too_old_is_erased_once_a_day() {
    let (mut world, agent) = world(Settings { history_retention_days: 3, ..Settings::default() });
    let mut sweeps = Vec::new();
    for _ in 0..6 {
        turn(&mut world, agent);
        let asked = world.effects.drain(..).filter_map(|effect| effect.get::<SweepHistory>().copied());
        sweeps.extend(asked);
        pass(&mut world, DAY_MS / 2);
    }
    assert_eq!(sweeps.len(), 4, "at the start and with each day");
    let today = world.now.plus_ms(-DAY_MS / 2).0 / DAY_MS;
    assert_eq!(sweeps.last(), Some(&SweepHistory(Timestamp((today - 3) * DAY_MS))));
}

#[test]
fn minutes_of_several_hours_become_rows_of_hours() {
    let activity = Activity { turns_failed: 2, ..Activity::default() };
    comes_back(&rows::put_minute(-7, 3, &activity), &(-7_i64, MinuteRecord { number: 3, activity: activity.clone() }));
    let (mut world, agent) = world(Settings::default());
    turn(&mut world, agent);
    // As a repair of a damaged store may leave it.
    let stray = rows::put_minute(60 * 1_000 + 5, 0, &activity);
    let number = minutes(&world)[0].1.number;
    world.store.insert((stray.space, stray.key), stray.value.unwrap());
    world.restart();
    assert_eq!(minutes(&world).len(), 1);
    assert_eq!((minutes(&world)[0].1.number, hours(&world)[0].0), (number, (1_000, 0)));
    assert_eq!((sum(&world).turns_failed, sum(&world).turns_completed), (2, 1));
    assert!(world.engine.world().resource::<History>().rows().count() == 1);
}
