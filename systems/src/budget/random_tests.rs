//! Random schedules of messages, ends, stops, crashes and removals: no limit is ever exceeded.

use agentsvc_components::Timestamp;
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::usage::Period;
use proptest::prelude::*;

use super::tests::{WORST, costs, send, settings, view};
use super::*;
use crate::agent::RemoveAgents;
use crate::testing::{TestWorld, answer};
use crate::turn::StopTurns;
use crate::usage::{Rollups, calendar};

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Send {
        agent: usize,
        session: u8,
    },
    /// The nth call that is out ends; a part in 256 of what it may cost at most.
    End {
        call: usize,
        share: u8,
        how: u8,
    },
    Stop {
        agent: usize,
    },
    Crash,
    Wait {
        ms: i64,
    },
    Remove {
        agent: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_usize, 0..4_u8).prop_map(|(agent, session)| Step::Send { agent, session }),
        6 => (0..8_usize, any::<u8>(), 0..4_u8).prop_map(|(call, share, how)| Step::End { call, share, how }),
        1 => (0..3_usize).prop_map(|agent| Step::Stop { agent }),
        1 => Just(Step::Crash),
        1 => (0..2 * calendar::DAY_MS).prop_map(|ms| Step::Wait { ms }),
        1 => (0..3_usize).prop_map(|agent| Step::Remove { agent }),
    ];
    prop::collection::vec(step, 1..60)
}

/// What holds after every step: no limit is exceeded, and what is spent is the sum of the events of the period.
fn check(world: &mut TestWorld, scopes: &[(Scope, u64, u64)], now: Timestamp) {
    let events = crate::usage::events_for_tests(world);
    for (scope, daily, monthly) in scopes {
        for (period, limit) in [(Period::Daily, *daily), (Period::Monthly, *monthly)] {
            let spent = world.engine.world().resource::<Rollups>().spent(*scope, period, now);
            assert!(spent.spent + spent.reserved <= limit, "{scope} {period:?}: {spent:?} of {limit}");
            let of_scope = |agent| scope.agent().is_none_or(|own| own == agent);
            let mine =
                events.iter().filter(|event| of_scope(event.agent) && calendar::index(period, event.at) == spent.index);
            let sum: u64 = mine.map(|event| event.call.usage.cost.0).sum();
            if world.ask(GetBudget(*scope)).is_ok() {
                assert_eq!(spent.spent, sum, "{scope} {period:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn spent_and_reserved_never_exceed_a_limit(steps in steps(), global in 1..6_u64, agent in 1..4_u64) {
        let mut settings = settings(global * WORST + 77);
        settings.budget.global.monthly = Some(Micros(3 * global * WORST));
        settings.budget.agent = Limits { daily: Some(Micros(agent * WORST)), monthly: Some(Micros(2 * agent * WORST + 1)), hourly_tokens: None };
        let mut world = TestWorld::with(settings);
        let mut agents: Vec<AgentId> = (0..3).map(|n| world.spawn(&format!("agent-{n}"))).collect();
        let mut out: Vec<ModelCall> = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { agent, session } => {
                    let _asked = send(&mut world, agents[agent], agents[agent].0.as_u128() ^ u128::from(session + 1));
                }
                Step::End { call, share, how } if !out.is_empty() => {
                    let call = out.remove(call % out.len());
                    let usage = Usage::of(u64::from(share) * 1_000 / 255, u64::from(share) * 100 / 255);
                    let said = ModelAnswer { usage, ..answer(vec![Block::Text { text: "x".into() }]) };
                    let end = match how {
                        0 => ModelEnd::Aborted(said),
                        1 => ModelEnd::Failed(ModelFailure { code: FailureCode::ProviderError, message: "no".into(), spent: Vec::new() }),
                        _ => ModelEnd::Answered(said),
                    };
                    world.outcome(ModelOutcome(call.attempt, end));
                }
                Step::End { .. } => {}
                Step::Stop { agent } => drop(world.ask(StopTurns { agent: agents[agent], session: None })),
                Step::Crash => {
                    world.restart();
                    out.clear();
                }
                Step::Wait { ms } => world.now = world.now.plus_ms(ms),
                Step::Remove { agent } => {
                    world.ask(RemoveAgents(vec![agents[agent]])).unwrap();
                    agents[agent] = world.spawn(&format!("new-{at}"));
                }
            }
            out.append(&mut world.calls);
            let mut scopes = vec![(Scope::Global, global * WORST + 77, 3 * global * WORST)];
            scopes.extend(agents.iter().map(|id| (Scope::Agent(*id), agent * WORST, 2 * agent * WORST + 1)));
            let now = world.now;
            check(&mut world, &scopes, now);
        }
        // Everything that is out comes back: reservations balance.
        while let Some(call) = out.pop() {
            costs(&mut world, &call, 1);
            out.append(&mut world.calls);
        }
        world.now = world.now.plus_ms(1_000);
        world.engine.set_now(world.now);
        world.engine.beat();
        world.step();
        while let Some(call) = world.calls.pop() {
            costs(&mut world, &call, 1);
        }
        prop_assert_eq!(view(&mut world, Scope::Global).reserved, Micros::ZERO);
        prop_assert_eq!(world.engine.stats().budget_waiting, 0);
    }
}
