//! Budgets in virtual time: reservations, roll-over, refusals, waiting, crashes.

use agentsvc_components::compaction::call::SummaryCall;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::refusal::Detail;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::Origin;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};
use agentsvc_components::usage::Period;
use agentsvc_components::{RefusalKind, SessionId, TriggerId};
use uuid::Uuid;

use super::*;
use crate::agent::{RemoveAgents, StartAgents, StopAgents};
use crate::budget::metrics::BudgetTotals;
use crate::compaction::CompactSession;
use crate::testing::{Asked, TestWorld, answer};
use crate::turn::{Fired, NewMessage, Place, Said, SendMessage, StopTurns, TurnReply, begin_fired};
use crate::usage::{calendar, priced_for_tests};

/// What a call reserves: a context of 1,000 tokens at a micro-dollar, 100 of an answer at two.
pub(super) const WORST: u64 = 1_000 + 2 * 100;

/// The details of a refusal by a budget that is used up.
pub(super) fn over(
    scope: Scope,
    period: Period,
    resets_at: Timestamp,
    (limit, spent): (u64, u64),
) -> Box<[(String, Detail)]> {
    let text = |text: String| Detail::Text(text);
    let amounts = match period {
        Period::Hourly => [("limit_tokens", Detail::Count(limit)), ("used_tokens", Detail::Count(spent))],
        _ => [("limit_usd", Detail::Money(Micros(limit))), ("spent_usd", Detail::Money(Micros(spent)))],
    };
    let place = [
        ("scope", text(scope.to_string())),
        ("period", text(period.as_str().to_owned())),
        ("reset_at", text(resets_at.to_string())),
    ];
    place.into_iter().chain(amounts).map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(super) fn settings(global_daily: u64) -> Settings {
    let mut settings = priced_for_tests();
    settings.context_tokens.insert("builtin".into(), 1_000);
    settings.budget.answer_tokens_max = 100;
    settings.budget.global.daily = Some(Micros(global_daily));
    settings
}

pub(super) fn send(world: &mut TestWorld, agent: AgentId, session: u128) -> Asked<TurnReply> {
    let session = Some(SessionId(Uuid::from_u128(session)));
    let asked = world.begin(SendMessage { agent, session, message: NewMessage::text("hello") });
    world.step();
    asked
}

pub(super) fn costs(world: &mut TestWorld, call: &ModelCall, input: u64) {
    let said = ModelAnswer { usage: Usage::of(input, 0), ..answer(vec![Block::Text { text: "ok".into() }]) };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
}

pub(super) fn view(world: &mut TestWorld, scope: Scope) -> BudgetView {
    world.ask(GetBudget(scope)).unwrap()
}

fn told(world: &TestWorld) -> Vec<(&'static str, String, String)> {
    let tell = |event: &Event| match event {
        Event::BudgetWarning { scope, period, .. } => Some(("warning", scope.clone(), period.clone())),
        Event::BudgetExceeded { scope, period, .. } => Some(("exceeded", scope.clone(), period.clone())),
        _ => None,
    };
    world.events.iter().filter_map(tell).collect()
}

#[test]
fn the_worst_case_is_reserved_with_the_call_and_settled_with_its_end() {
    let mut world = TestWorld::with(settings(10 * WORST));
    let agent = world.spawn("scout");
    let asked = send(&mut world, agent, 1);
    let call = world.next_call();
    assert_eq!(call.answer_tokens_max, Some(100), "the bound that the reservation rests on");
    assert_eq!(view(&mut world, Scope::Global).reserved, Micros(WORST));
    assert_eq!(view(&mut world, Scope::Agent(agent)).reserved, Micros(WORST));
    costs(&mut world, &call, 7);
    let after = view(&mut world, Scope::Agent(agent));
    assert_eq!((after.reserved, after.today, after.month, after.status), (Micros::ZERO, Micros(7), Micros(7), "ok"));
    assert_eq!(asked.take().unwrap().unwrap().usage.cost, Micros(7));
}

#[test]
fn a_budget_that_is_used_up_refuses_the_turn_with_scope_limit_and_reset_time() {
    let mut world = TestWorld::with(settings(2 * WORST));
    let agent = world.spawn("scout");
    let asked = send(&mut world, agent, 1);
    let call = world.next_call();
    costs(&mut world, &call, WORST);
    assert!(asked.take().unwrap().is_ok());
    assert_eq!(view(&mut world, Scope::Global).status, "ok", "half");
    let _asked = send(&mut world, agent, 1);
    let call = world.next_call();
    costs(&mut world, &call, 800);
    assert_eq!(view(&mut world, Scope::Global).status, "warning");
    assert_eq!(told(&world), [("warning", "global".to_owned(), "daily".to_owned())]);
    // 2,000 of 2,400 are spent: no room for 1,200 more. The first is found out by its turn, the next at the door.
    for (how, stored) in [("turn", 1), ("door", 0)] {
        let before = world.store.len();
        let asked = send(&mut world, agent, 1);
        assert!(world.calls.is_empty(), "no model is asked");
        let refusal = asked.take().unwrap().unwrap_err();
        assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(EXCEEDED)), "{how}");
        let resets_at = calendar::ends(Period::Daily, calendar::day(world.now));
        assert_eq!(refusal.details, over(Scope::Global, Period::Daily, resets_at, (2 * WORST, 2_000)));
        let seconds = resets_at.ms_since(world.now).div_ceil(1_000);
        assert_eq!(u64::from(refusal.retry_after_secs.unwrap()), seconds);
        assert_eq!(world.store.len() > before, stored > 0, "{how}");
    }
    assert_eq!(told(&world).len(), 2, "exceeded is said once");
    assert_eq!(
        (view(&mut world, Scope::Global).status, world.engine.world().resource::<BudgetTotals>().refusals),
        ("exceeded", 1)
    );
    world.restart();
    assert!(send(&mut world, agent, 1).take().unwrap().is_err(), "it holds after a restart");
    assert_eq!(told(&world).len(), 2);
    // A new day.
    world.now = calendar::ends(Period::Daily, calendar::day(world.now));
    let asked = send(&mut world, agent, 1);
    let call = world.next_call();
    costs(&mut world, &call, 1);
    assert!(asked.take().unwrap().is_ok());
    let after = view(&mut world, Scope::Global);
    assert_eq!((after.today, after.month, after.status), (Micros(1), Micros(2_001), "ok"));
}

#[test]
fn who_finds_everything_reserved_waits_and_goes_on_when_a_call_comes_back() {
    let mut world = TestWorld::with(settings(2 * WORST + 100));
    let agents = [world.spawn("a"), world.spawn("b")];
    let asked: Vec<_> = (0..6).map(|n| send(&mut world, agents[n % 2], n as u128 + 1)).collect();
    assert_eq!((world.calls.len(), world.engine.stats().budget_waiting), (2, 4));
    for waiting in [3, 2, 1, 0, 0, 0] {
        let call = world.next_call();
        costs(&mut world, &call, 10);
        assert_eq!(world.engine.stats().budget_waiting, waiting);
    }
    assert!(asked.iter().all(|asked| asked.take().unwrap().is_ok()), "nothing is lost");
    assert_eq!(view(&mut world, Scope::Global).today, Micros(60));
}

#[test]
fn a_turn_that_ends_while_it_waits_for_money_waits_no_longer() {
    let mut world = TestWorld::with(settings(WORST + 100));
    let (agent, hasty) = (world.spawn("a"), world.spawn("b"));
    let _first = send(&mut world, agent, 1);
    let second = send(&mut world, agent, 2);
    let line = |world: &TestWorld| world.engine.world().resource::<Budgets>().in_line().count();
    for _ in 0..10 {
        let _gave_up = send(&mut world, hasty, 3);
        assert_eq!((line(&world), world.engine.stats().budget_waiting), (2, 2));
        assert_eq!(world.ask(StopTurns { agent: hasty, session: None }).unwrap(), 1);
        assert_eq!((line(&world), world.engine.stats().budget_waiting), (1, 1));
    }
    let call = world.next_call();
    costs(&mut world, &call, 10);
    let call = world.next_call();
    costs(&mut world, &call, 10);
    assert!(second.take().unwrap().is_ok());
    assert_eq!((line(&world), world.engine.stats().turns_open), (0, 0));
}

#[test]
fn those_that_wait_fail_when_the_money_is_spent_for_good() {
    let mut world = TestWorld::with(settings(WORST + 100));
    let agent = world.spawn("a");
    let first = send(&mut world, agent, 1);
    let second = send(&mut world, agent, 2);
    assert_eq!(world.engine.stats().budget_waiting, 1);
    let call = world.next_call();
    costs(&mut world, &call, 101);
    assert!(first.take().unwrap().is_ok());
    assert_eq!(second.take().unwrap().unwrap_err().code, Some(EXCEEDED));
    assert_eq!((world.engine.stats().budget_waiting, world.engine.stats().turns_open), (0, 0));
}

#[test]
fn one_that_waits_may_be_stopped_and_its_agent_stopped_and_started() {
    let mut world = TestWorld::with(settings(WORST));
    let agent = world.spawn("a");
    let _first = send(&mut world, agent, 1);
    let stopped = send(&mut world, agent, 2);
    let third = send(&mut world, agent, 3);
    let session = SessionId(Uuid::from_u128(2));
    world.ask(StopTurns { agent, session: Some(session) }).unwrap();
    assert!(stopped.take().unwrap().is_ok());
    let call = world.next_call();
    costs(&mut world, &call, 0);
    let call = world.next_call();
    costs(&mut world, &call, 0);
    assert!(third.take().unwrap().is_ok());
    let _fourth = send(&mut world, agent, 4);
    let fifth = send(&mut world, agent, 5);
    world.ask(StopAgents(vec![agent])).unwrap();
    world.ask(StartAgents(vec![agent])).unwrap();
    let call = world.next_call();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(ModelAnswer::default())));
    assert!(fifth.take().unwrap().is_ok(), "stopped with its agent");
    let sixth = send(&mut world, agent, 6);
    let call = world.next_call();
    costs(&mut world, &call, 0);
    assert!(sixth.take().unwrap().is_ok() && world.calls.is_empty());
}

#[test]
fn limits_of_an_agent_bind_it_alone_and_the_lower_of_manifest_and_configuration_holds() {
    let mut settings = settings(0);
    settings.budget.agent.monthly = Some(Micros(5 * WORST));
    let mut world = TestWorld::with(settings);
    let agents = [world.spawn("a"), world.spawn("b")];
    let scope = Scope::Agent(agents[0]);
    assert_eq!(view(&mut world, scope).limits.monthly, Some(Micros(5 * WORST)));
    let limits = Limits { daily: Some(Micros(WORST - 1)), ..Limits::default() };
    let set = world.ask(SetBudget { scope, limits }).unwrap();
    assert_eq!((set.limits.daily, set.limits.monthly), (Some(Micros(WORST - 1)), Some(Micros(5 * WORST))));
    let refusal = send(&mut world, agents[0], 1).take().unwrap().unwrap_err();
    assert_eq!(refusal.details[0], ("scope".to_owned(), Detail::Text(scope.to_string())));
    assert_eq!(told(&world), [("exceeded", agents[0].to_string(), "daily".to_owned())]);
    let _other = send(&mut world, agents[1], 2);
    assert_eq!(world.calls.len(), 1, "the other agent is free to ask");
    world.restart();
    assert_eq!(view(&mut world, scope).limits.daily, Some(Micros(WORST - 1)), "limits persist");
    let none = Limits { daily: Some(Micros::ZERO), monthly: Some(Micros::ZERO), hourly_tokens: None };
    assert_eq!(world.ask(SetBudget { scope, limits: none }).unwrap().limits, Limits::default());
    let missing = SetBudget { scope: Scope::Agent(AgentId(Uuid::nil())), limits: none };
    assert_eq!(world.ask(missing).unwrap_err().kind, RefusalKind::NotFound);
    world.ask(RemoveAgents(vec![agents[0]])).unwrap();
    assert!(world.ask(GetBudget(scope)).is_err());
    let low = Limits { daily: Some(Micros(3)), monthly: None, hourly_tokens: Some(0) };
    let high = Limits { daily: Some(Micros(9)), monthly: Some(Micros(1)), hourly_tokens: Some(5) };
    let lower = Limits { daily: Some(Micros(3)), monthly: Some(Micros(1)), hourly_tokens: Some(5) };
    assert_eq!(low.lower(high), lower);
}

#[test]
fn tokens_of_an_hour_are_bounded_even_where_they_cost_nothing() {
    let mut settings = Settings::default();
    settings.budget.agent.hourly_tokens = Some(20);
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    for _ in 0..2 {
        let asked = send(&mut world, agent, 1);
        let call = world.next_call();
        world.answer(call.attempt, "fifteen tokens");
        assert!(asked.take().unwrap().is_ok());
    }
    let refusal = send(&mut world, agent, 1).take().unwrap().unwrap_err();
    let resets_at = calendar::ends(Period::Hourly, calendar::hour(world.now));
    assert_eq!(refusal.details, over(Scope::Agent(agent), Period::Hourly, resets_at, (20, 30)));
    assert_eq!(told(&world).len(), 1);
    world.now = resets_at;
    let _asked = send(&mut world, agent, 1);
    assert_eq!(world.calls.len(), 1);
    assert_eq!(world.ask(GetUsageSummary).unwrap().hourly_tokens_used, 0);
}

#[test]
fn a_model_that_is_free_is_bound_by_no_money_and_one_without_a_price_is_refused_or_reserves_the_fallback() {
    let mut settings = Settings::default();
    settings.budget.global.daily = Some(Micros(1));
    let mut world = TestWorld::with(settings.clone());
    let agent = world.spawn("a");
    let _asked = send(&mut world, agent, 1);
    assert_eq!(world.next_call().answer_tokens_max, None, "free");
    settings.default_model.provider = "elsewhere".into();
    let mut world = TestWorld::with(settings.clone());
    let agent = world.spawn("a");
    let refusal = send(&mut world, agent, 1).take().unwrap().unwrap_err();
    assert_eq!((refusal.code, world.calls.len()), (Some(error_codes::PRICE_UNKNOWN), 0));
    assert!(refusal.message.contains("elsewhere/"), "{}", refusal.message);
    settings.budget.unknown_price_per_m = Micros(1_000_000);
    let mut world = TestWorld::with(settings.clone());
    let agent = world.spawn("a");
    let refusal = send(&mut world, agent, 1).take().unwrap().unwrap_err();
    assert_eq!(refusal.code, Some(EXCEEDED), "the fallback is reserved");
    settings.budget.global.daily = Some(Micros(1_000_000_000));
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    let _asked = send(&mut world, agent, 1);
    let call = world.next_call();
    let mut said = answer(vec![Block::Text { text: "ok".into() }]);
    (said.provider, said.model, said.usage) = ("elsewhere".into(), "m".into(), Usage::of(10, 5));
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
    assert_eq!(view(&mut world, Scope::Global).today, Micros(15), "and booked");
    let mut settings = Settings::default();
    settings.default_model.provider = "elsewhere".into();
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    let _asked = send(&mut world, agent, 1);
    assert_eq!(world.calls.len(), 1, "without a limit nothing is asked of its price");
}

#[test]
fn a_summary_reserves_its_calls_and_is_refused_like_a_turn() {
    let mut world = TestWorld::with(settings(100 * WORST));
    let agent = world.spawn("a");
    for _ in 0..3 {
        let asked = send(&mut world, agent, 1);
        let call = world.next_call();
        costs(&mut world, &call, 10);
        assert!(asked.take().unwrap().is_ok());
    }
    let session = Some(SessionId(Uuid::from_u128(1)));
    let limits = Limits { daily: Some(Micros(100)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Agent(agent), limits }).unwrap();
    let asked = world.begin(CompactSession { agent, session });
    world.step();
    assert_eq!(asked.take().unwrap().unwrap_err().code, Some(EXCEEDED));
    let limits = Limits { daily: Some(Micros(5_000)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Agent(agent), limits }).unwrap();
    let _asked = world.begin(CompactSession { agent, session });
    world.step();
    let calls_max = world.effects.iter().find_map(|effect| Some(effect.get::<SummaryCall>()?.calls_max));
    assert_eq!(calls_max, Some(Some(1)));
    assert_eq!(view(&mut world, Scope::Agent(agent)).reserved, Micros(1_000 + 2 * 250));
}

#[test]
fn a_call_of_yesterday_is_settled_yesterday() {
    let mut world = TestWorld::with(settings(WORST));
    let agent = world.spawn("a");
    let midnight = calendar::ends(Period::Daily, calendar::day(world.now));
    world.now = midnight.plus_ms(-10);
    let _first = send(&mut world, agent, 1);
    let lost = world.next_call();
    world.now = midnight;
    let _second = send(&mut world, agent, 2);
    let call = world.next_call();
    costs(&mut world, &lost, 900);
    let after = view(&mut world, Scope::Global);
    assert_eq!((after.today, after.month, after.reserved), (Micros::ZERO, Micros(900), Micros(WORST)));
    costs(&mut world, &call, 30);
    let after = view(&mut world, Scope::Global);
    assert_eq!((after.today, after.month, after.reserved), (Micros(30), Micros(930), Micros::ZERO));
}

#[test]
fn a_fired_turn_fails_with_the_code_and_further_fires_are_refused_at_the_door() {
    let mut world = TestWorld::with(settings(WORST - 1));
    let agent = world.spawn("a");
    let fire = |world: &mut TestWorld| {
        let entity = index::agent(world.engine.world(), agent).unwrap();
        let origin = Origin::Trigger { trigger: TriggerId(Uuid::from_u128(7)) };
        let said = Said::new(world.engine.world(), "fire".into());
        let fired = Fired {
            agent: entity,
            place: Place::Current,
            said,
            origin,
            depth: 1,
            taint: Taint::NONE,
            began_in: None,
            user: None,
            profile: None,
        };
        let begun = begin_fired(world.engine.world_mut(), fired).map(|(_, taken)| taken.turn);
        world.step();
        begun
    };
    let turn = fire(&mut world).unwrap();
    let failed = |event: &Event| matches!(event, Event::TurnFailed { turn: of, code, .. } if *of == turn && code == EXCEEDED.as_str());
    assert!(world.events.iter().any(failed), "{:?}", world.events);
    assert_eq!(fire(&mut world).unwrap_err().code, Some(EXCEEDED));
    assert!(world.calls.is_empty());
}

#[test]
fn a_crash_after_any_step_leaves_reservations_that_balance() {
    for crash_after in 0..7 {
        let mut world = TestWorld::with(settings(3 * WORST));
        let agent = world.spawn("a");
        for step in 0..7 {
            match step {
                0 | 1 | 3 | 4 => drop(send(&mut world, agent, step)),
                _ if !world.calls.is_empty() => {
                    let call = world.next_call();
                    costs(&mut world, &call, 100);
                }
                _ => {}
            }
            if step == crash_after {
                world.restart();
            }
            let view = view(&mut world, Scope::Global);
            assert!(view.today.plus(view.reserved) <= Micros(3 * WORST), "{crash_after} {step}: {view:?}");
            let out = world.calls.len() as u64;
            assert_eq!(view.reserved, Micros(out * WORST), "{crash_after} {step}: only what is out is reserved");
        }
        while !world.calls.is_empty() {
            let call = world.next_call();
            costs(&mut world, &call, 1);
        }
        let (view, stats) = (view(&mut world, Scope::Global), world.engine.stats());
        assert_eq!((view.reserved, stats.turns_open, stats.budget_waiting), (Micros::ZERO, 0, 0), "{crash_after}");
        let events = crate::usage::events_for_tests(&world);
        assert_eq!(view.today.0, events.iter().map(|event| event.call.usage.cost.0).sum::<u64>());
    }
}
