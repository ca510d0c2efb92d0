//! Metering in virtual time: every end of a call is one event, and every sum is the sum of the events.

use std::collections::BTreeMap;

use agentsvc_components::compaction::call::{SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::Origin;
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::usage::price::Price;
use agentsvc_components::usage::record::{SweepUsage, UsageRecord, UsageSwept};
use agentsvc_components::usage::{CallEnd, CallUse, Period, Scope, UsageSum};
use agentsvc_components::{AgentId, Micros, Timestamp};

use super::*;
use crate::agent::{GetAgent, RemoveAgents};
use crate::budget::{GetBudget, GetUsageSummary};
use crate::compaction::CompactSession;
use crate::config::Settings;
use crate::kernel::record;
use crate::testing::{Asked, TestWorld, answer, tool_call};
use crate::turn::{NewMessage, SendMessage, StopTurns, TurnReply};
use crate::usage::metrics::CallTotals;

/// A dollar for a million tokens in, two for a million out, a tenth for cached ones: 10 in and 5 out cost 20.
pub(crate) fn priced() -> Settings {
    let mut settings = Settings::default();
    settings.prices.set(
        "builtin",
        "builtin",
        Price {
            input_per_m: Micros(1_000_000),
            output_per_m: Micros(2_000_000),
            cached_input_per_m: Some(Micros(100_000)),
            ..Price::default()
        },
    );
    settings
}

fn begin(world: &mut TestWorld, agent: AgentId) -> Asked<TurnReply> {
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("hello") });
    world.step();
    asked
}

/// Every stored event, in the order of time.
pub(crate) fn events(world: &TestWorld) -> Vec<UsageRecord> {
    let mut rows: Vec<_> = world
        .store
        .iter()
        .filter(|((space, key), _)| *space == Space::Content && key[0] == b'b' && key[1] != 255)
        .collect();
    rows.sort_by(|a, b| a.0.1.cmp(&b.0.1));
    rows.into_iter().map(|((_, key), value)| record::decode(key, value).unwrap()).collect()
}

fn totals(world: &mut TestWorld, window: UsageWindow) -> UsageTotals {
    world.ask(GetUsage(window)).unwrap()
}

/// Every sum is that of the events.
fn check_sums(world: &mut TestWorld) {
    let events = events(world);
    let sum = events.iter().map(|event| UsageSum::from(event.call.usage)).fold(UsageSum::default(), UsageSum::plus);
    let now = world.now;
    assert_eq!(totals(world, UsageWindow::Days(None, None)).sum, sum);
    assert_eq!(world.ask(GetBudget(Scope::Global)).unwrap().total, sum);
    let models = world.ask(ListUsageByModel { from: None, to: None }).unwrap();
    assert_eq!(models.iter().map(|model| model.sum).fold(UsageSum::default(), UsageSum::plus), sum);
    let daily = world.ask(ListDailyUsage(Days::Last(300))).unwrap().days;
    assert_eq!(daily.iter().map(|day| day.sum).fold(UsageSum::default(), UsageSum::plus), sum);
    let mut by_agent = BTreeMap::<AgentId, UsageSum>::new();
    for event in &events {
        let place = by_agent.entry(event.agent).or_default();
        *place = place.plus(event.call.usage.into());
    }
    for (agent, sum) in by_agent {
        if let Ok(view) = world.ask(GetBudget(Scope::Agent(agent))) {
            assert_eq!(view.total, sum);
            let agent = world.ask(GetAgent(agent)).unwrap();
            assert_eq!(
                (agent.input_tokens, agent.output_tokens, agent.cost),
                (sum.input_tokens, sum.output_tokens, sum.cost)
            );
        }
    }
    assert!(world.now >= now);
}

#[test]
fn every_end_of_a_call_is_one_event_with_its_columns() {
    let mut world = TestWorld::with(priced());
    let agent = world.spawn("scout");
    let asked = begin(&mut world, agent);
    let call = world.next_call();
    let sent = world.now;
    world.now = world.now.plus_ms(249);
    let usage = Usage { cached_input_tokens: 4, ..Usage::of(10, 5) };
    let before = CallUse {
        provider: "openai".into(),
        model: "gone".into(),
        latency_ms: 50,
        end: CallEnd::Failed,
        ..CallUse::default()
    };
    let said = ModelAnswer { usage, before: vec![before], ..answer(vec![tool_call("a"), tool_call("b")]) };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
    let found = events(&world);
    assert_eq!(found.len(), 2, "the model that failed, and the one that answered");
    assert_eq!(
        (&*found[0].call.model, found[0].call.end, found[0].call.usage),
        ("gone", CallEnd::Failed, Usage::default())
    );
    let event = &found[1];
    assert_eq!((event.at, event.agent, &*event.agent_name, event.session), (sent, agent, "scout", call.session));
    assert_eq!((&*event.channel, event.billed, &*event.call.provider), ("api", None, "builtin"));
    assert_eq!((event.call.tool_calls, event.call.latency_ms), (2, 200));
    // 6 at a dollar, 4 at a tenth, 5 at two: 6 + 0.4 + 10, rounded up.
    assert_eq!(event.call.usage, Usage { cost: Micros(17), ..usage });
    world.ask(StopTurns { agent, session: None }).unwrap();
    assert_eq!(asked.take().unwrap().unwrap().usage.cost, Micros(17));

    let asked = begin(&mut world, agent);
    let call = world.next_call();
    let failure = ModelFailure { code: FailureCode::ProviderTimeout, message: "late".into(), spent: Vec::new() };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    assert!(asked.take().unwrap().is_err());
    let _asked = begin(&mut world, agent);
    let call = world.next_call();
    world.ask(StopTurns { agent, session: None }).unwrap();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
    let ends: Vec<CallEnd> = events(&world).iter().map(|event| event.call.end).collect();
    assert_eq!(ends, [CallEnd::Failed, CallEnd::Answered, CallEnd::Failed, CallEnd::Aborted]);
    check_sums(&mut world);
    assert_eq!(world.engine.world().resource::<CallTotals>().unpriced, 1);
}

#[test]
fn a_call_counts_once_even_when_its_turn_or_its_agent_is_gone() {
    let mut world = TestWorld::with(priced());
    let (agent, other) = (world.spawn("scout"), world.spawn("other"));
    for who in [agent, other] {
        let _asked = begin(&mut world, who);
    }
    let (call, theirs) = (world.next_call(), world.next_call());
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(
        world.ask(GetBudget(Scope::Global)).unwrap().reserved,
        world.ask(GetBudget(Scope::Agent(other))).unwrap().reserved.plus(worst())
    );
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
    world.answer(theirs.attempt, "ok");
    assert_eq!(events(&world).len(), 2, "the second outcome of one call is nothing");
    assert_eq!(&*events(&world)[0].agent_name, "scout");
    check_sums(&mut world);
    let listed = world.ask(crate::budget::ListAgentBudgets).unwrap();
    assert_eq!(listed.iter().map(|row| &*row.agent_name).collect::<Vec<_>>(), ["other"]);
    assert_eq!(world.ask(GetBudget(Scope::Global)).unwrap().reserved, Micros::ZERO);
    world.restart();
    check_sums(&mut world);
}

/// A full context in, 4,096 tokens out.
fn worst() -> Micros {
    Micros(128_000 + 2 * 4_096)
}

#[test]
fn a_kill_while_calls_are_out_records_them_as_unknown_with_what_was_reserved() {
    let mut world = TestWorld::with(priced());
    let agent = world.spawn("scout");
    let _asked = begin(&mut world, agent);
    let lost = world.next_call();
    assert_eq!(world.ask(GetBudget(Scope::Agent(agent))).unwrap().reserved, worst());
    let before = world.store.clone();
    world.restart();
    let found = events(&world);
    assert_eq!(
        (found.len(), found[0].call.end, found[0].call.usage),
        (1, CallEnd::Unknown, Usage { cost: worst(), ..Usage::default() })
    );
    assert_eq!(world.engine.world().resource::<CallTotals>().unknown, 1);
    let view = world.ask(GetBudget(Scope::Global)).unwrap();
    assert_eq!((view.today, view.reserved), (worst(), worst()), "the turn asks again");
    check_sums(&mut world);
    let call = world.next_call();
    world.answer(lost.attempt, "too late");
    assert_eq!(events(&world).len(), 1);
    world.answer(call.attempt, "ok");
    assert_eq!(world.ask(GetBudget(Scope::Global)).unwrap().reserved, Micros::ZERO);
    check_sums(&mut world);
    world.restart();
    assert_eq!(events(&world).len(), 2, "and never twice");
    check_sums(&mut world);
    drop(before);
}

#[test]
fn summaries_are_calls_too() {
    let mut world = TestWorld::with(priced());
    let agent = world.spawn("scout");
    for _ in 0..3 {
        let asked = begin(&mut world, agent);
        let attempt = world.next_call().attempt;
        world.answer(attempt, "ok");
        assert!(asked.take().unwrap().is_ok());
    }
    let _asked = world.begin(CompactSession { agent, session: None });
    world.step();
    let at = world.effects.iter().position(|effect| effect.is::<SummaryCall>()).unwrap();
    let call = world.effects.remove(at).take::<SummaryCall>().unwrap();
    assert_eq!(call.calls_max, None, "no budget bounds it");
    let used = |usage| CallUse { provider: "builtin".into(), model: "builtin".into(), usage, ..CallUse::default() };
    let calls = vec![used(Usage::of(100, 10)), used(Usage::of(200, 20))];
    let end = SummaryEnd { usage: Usage::of(300, 30), written: Err("no".into()), calls };
    world.outcome(SummaryOutcome(call.attempt, end));
    let found = events(&world);
    assert_eq!(found.len(), 5);
    assert!(found[3..].iter().all(|event| &*event.channel == "compaction" && event.session == call.session));
    assert_eq!(world.ask(GetBudget(Scope::Global)).unwrap().total.cost, Micros(3 * 20 + 300 + 60));
    check_sums(&mut world);
}

#[test]
fn windows_days_and_models_are_read_without_the_events() {
    let mut world = TestWorld::with(priced());
    let agents = [world.spawn("a"), world.spawn("b")];
    let started = world.now;
    // A call every 7 hours for ten days.
    for n in 0..35_i64 {
        world.now = started.plus_ms(n * 7 * calendar::HOUR_MS);
        let asked = begin(&mut world, agents[usize::from(n > 30)]);
        let attempt = world.next_call().attempt;
        world.answer(attempt, "ok");
        assert!(asked.take().unwrap().is_ok());
        world.engine.beat();
        world.step();
    }
    check_sums(&mut world);
    assert_eq!(totals(&mut world, UsageWindow::Hours(1)).sum.requests, 1);
    let day = totals(&mut world, UsageWindow::Hours(24));
    assert_eq!((day.sum.requests, day.active_agents), (4, 1));
    assert_eq!(totals(&mut world, UsageWindow::Hours(48)).active_agents, 2);
    let today = calendar::day(world.now);
    let days = world.ask(ListDailyUsage(Days::Last(7))).unwrap().days;
    assert_eq!((days.len(), days[6].day), (7, today));
    let range = world.ask(ListDailyUsage(Days::Range(Some(today - 2), Some(today - 1)))).unwrap().days;
    assert_eq!(
        range.iter().map(|day| day.sum.requests).sum::<u64>(),
        totals(&mut world, UsageWindow::Days(Some(today - 2), Some(today - 1))).sum.requests
    );
    let models = world.ask(ListUsageByModel { from: Some(today - 2), to: Some(today - 1) }).unwrap();
    assert_eq!((models.len(), models[0].sum.requests), (1, range.iter().map(|day| day.sum.requests).sum()));
    assert!(world.ask(ListUsageByModel { from: Some(today + 1), to: None }).unwrap().is_empty());
    assert_eq!(totals(&mut world, UsageWindow::Days(Some(today + 5), Some(today - 5))).sum, UsageSum::default());
    world.restart();
    check_sums(&mut world);
    let summary = world.ask(GetUsageSummary).unwrap();
    assert_eq!((summary.today.requests, summary.hourly_tokens_used), (days[6].sum.requests, 15));
    assert!(summary.hourly_reset_at > world.now);
}

#[test]
fn what_is_older_than_the_retention_goes_and_the_lifetime_of_models_stays() {
    let mut world = TestWorld::with(Settings { usage_retention_days: 3, ..priced() });
    let agent = world.spawn("scout");
    let mut sweeps: Vec<Timestamp> = Vec::new();
    for _ in 0..6 {
        let _asked = begin(&mut world, agent);
        let attempt = world.next_call().attempt;
        world.answer(attempt, "ok");
        world.now = world.now.plus_ms(calendar::DAY_MS);
        world.engine.set_now(world.now);
        world.engine.beat();
        world.step();
        let asked: Vec<_> = world.effects.drain(..).filter_map(|effect| Some(effect.get::<SweepUsage>()?.0)).collect();
        sweeps.extend(&asked);
    }
    let requests = |world: &mut TestWorld| {
        let daily = world.ask(ListDailyUsage(Days::Last(10))).unwrap().days;
        daily.iter().map(|day| day.sum.requests).sum::<u64>()
    };
    // Where the clock is not believed, the outside erases less.
    world.outcome(UsageSwept(Timestamp(0)));
    world.step();
    assert_eq!(requests(&mut world), 6, "sums stay as long as their events");
    world.outcome(UsageSwept(*sweeps.last().unwrap()));
    world.step();
    let first_kept = calendar::day(world.now) - 3;
    assert_eq!(
        (sweeps.len(), sweeps.last().unwrap().0),
        (4, first_kept * calendar::DAY_MS),
        "at the start and with each day"
    );
    assert_eq!(requests(&mut world), 3);
    assert_eq!(world.ask(ListUsageByModel { from: None, to: None }).unwrap()[0].sum.requests, 6);
    let kept = |kind: u8| {
        world.store.keys().filter(|(space, key)| *space == Space::World && key.starts_with(&[b'b', kind])).count()
    };
    assert_eq!((kept(b'd'), kept(b'x'), kept(b'm'), kept(b'n')), (3, 3, 1, 0), "the records went too");
    assert!(kept(b'h') <= 3);
}

#[test]
fn the_channel_is_where_the_message_came_from() {
    let mut world = TestWorld::with(priced());
    let agent = world.spawn("scout");
    let message = NewMessage { origin: Origin::WebSocket, ..NewMessage::text("hi") };
    let _asked = world.begin(SendMessage { agent, session: None, message });
    world.step();
    let attempt = world.next_call().attempt;
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::Text { text: "x".into() }]))));
    assert_eq!(&*events(&world)[0].channel, "websocket");
    assert_eq!(world.engine.world().resource::<Rollups>().spent(Scope::Global, Period::Hourly, world.now).spent, 15);
}

#[test]
fn so_many_models_are_counted_one_by_one_and_the_others_together() {
    let mut world = TestWorld::with(priced());
    let agent = world.spawn("scout");
    let many = limit::USAGE_MODELS_MAX + 3;
    let use_of = |n: usize| CallUse {
        provider: "openai".into(),
        model: format!("m{n}").into(),
        usage: Usage::of(1, 0),
        ..CallUse::default()
    };
    let _asked = begin(&mut world, agent);
    let call = world.next_call();
    let said = ModelAnswer { before: (0..many).map(use_of).collect(), ..answer(Vec::new()) };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
    for restarted in [false, true] {
        if restarted {
            world.restart();
        }
        let models = world.ask(ListUsageByModel { from: None, to: None }).unwrap();
        assert_eq!(models.len(), limit::USAGE_MODELS_MAX + 1, "so many, and the others");
        let others = models.iter().find(|model| (&*model.provider, &*model.model) == ("other", "other"));
        // The model that answered is one of those that came too late.
        assert_eq!(others.unwrap().sum.requests, 4);
        assert_eq!(models.iter().map(|model| model.sum.requests).sum::<u64>(), many as u64 + 1);
    }
}
