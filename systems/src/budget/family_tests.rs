//! The limits of an agent bound what it and its descendants spend together, in virtual time.

use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};
use agentsvc_components::usage::{CallEnd, CallUse, TokensMax};

use super::tests::{WORST, costs, send, settings, view};
use super::*;
use crate::agent::{CloneAgent, RemoveAgents, SpawnAgent, SpawnChild};
use crate::manifest::hash;
use crate::testing::{TestWorld, answer, spawn_command};
use crate::usage::events_for_tests;

/// An agent that may spawn others.
fn parent(name: &str) -> SpawnAgent {
    let mut command = spawn_command(name);
    command.manifest.capabilities.agent_spawn = Some(true);
    command.hash = hash(&command.manifest);
    command
}

fn below(world: &mut TestWorld, above: AgentId, name: &str) -> AgentId {
    world.ask(SpawnChild { parent: above, child: parent(name), by: None }).unwrap().agent
}

/// An agent with a daily limit, its child and grandchild, and one that is no relative.
fn family(daily: u64) -> (TestWorld, [AgentId; 4]) {
    let mut world = TestWorld::with(settings(1_000 * WORST));
    let top = world.ask(parent("top")).unwrap().agent;
    let child = below(&mut world, top, "child");
    let grandchild = below(&mut world, child, "grandchild");
    let other = world.spawn("other");
    let limits = Limits { daily: Some(Micros(daily)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Agent(top), limits }).unwrap();
    (world, [top, child, grandchild, other])
}

/// A turn that costs so much, if it may.
fn spends(world: &mut TestWorld, agent: AgentId, cost: u64) -> Result<(), agentsvc_components::Refusal> {
    let asked = send(world, agent, agent.0.as_u128());
    if let Some(place) = world.calls.iter().position(|call| call.agent == agent) {
        let call: ModelCall = world.calls.remove(place);
        costs(world, &call, cost);
    }
    asked.take().unwrap().map(drop)
}

#[test]
fn what_descendants_spend_counts_at_the_limits_above_them_also_after_restart_and_removal() {
    let (mut world, [top, child, grandchild, other]) = family(3 * WORST);
    spends(&mut world, grandchild, WORST).unwrap();
    spends(&mut world, child, WORST).unwrap();
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    spends(&mut world, top, WORST).unwrap();
    for (agent, own) in [(top, WORST), (child, WORST), (grandchild, WORST)] {
        let refusal = spends(&mut world, agent, 1).unwrap_err();
        assert_eq!(refusal.code, Some(EXCEEDED));
        assert!(refusal.message.contains(&top.to_string()), "{}", refusal.message);
        assert_eq!(view(&mut world, Scope::Agent(agent)).today, Micros(own), "what is shown is its own");
    }
    let status = |world: &mut TestWorld, agent| view(world, Scope::Agent(agent)).status;
    assert_eq!((status(&mut world, top), status(&mut world, child)), ("exceeded", "ok"));
    spends(&mut world, other, WORST).unwrap();
    let copy = world.ask(CloneAgent { agent: child, name: None, text: String::new() }).unwrap().agent;
    spends(&mut world, copy, WORST).unwrap();
    world.ask(RemoveAgents(vec![grandchild, child])).unwrap();
    world.restart();
    assert!(spends(&mut world, top, 1).is_err(), "what they spent stays counted");
    let again = below(&mut world, top, "again");
    assert!(spends(&mut world, again, 1).is_err());
    world.ask(RemoveAgents(vec![again, top])).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn what_descendants_have_reserved_counts_and_who_waits_for_it_goes_on() {
    let (mut world, [top, child, grandchild, _]) = family(2 * WORST + 100);
    let asked = [child, grandchild, top].map(|agent| send(&mut world, agent, agent.0.as_u128()));
    assert_eq!((world.calls.len(), world.engine.stats().budget_waiting), (2, 1), "the two below have all");
    assert_eq!(view(&mut world, Scope::Agent(top)).reserved, Micros::ZERO, "its own");
    let call = world.next_call();
    costs(&mut world, &call, 10);
    assert_eq!((world.calls.len(), world.engine.stats().budget_waiting), (2, 0));
    for _ in 0..2 {
        let call = world.next_call();
        costs(&mut world, &call, 10);
    }
    assert!(asked.iter().all(|asked| asked.take().unwrap().is_ok()));
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_call_that_is_out_at_a_kill_counts_above_and_one_whose_ancestor_goes_is_settled() {
    let (mut world, [top, child, ..]) = family(2 * WORST);
    let _lost = send(&mut world, child, 1);
    world.restart();
    // The lost call cost what was reserved, and its turn asks again: that is all there is.
    let call = world.next_call();
    assert!(send(&mut world, top, 2).take().is_none() && world.calls.is_empty(), "it waits");
    world.ask(RemoveAgents(vec![top])).unwrap();
    costs(&mut world, &call, 10);
    assert_eq!(world.engine.check(), Vec::<String>::new());
    spends(&mut world, child, 1).unwrap();
}

#[test]
fn tokens_of_an_hour_count_together_too() {
    let (mut world, [top, child, grandchild, _]) = family(1_000 * WORST);
    let limits = Limits { hourly_tokens: Some(50), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Agent(top), limits }).unwrap();
    spends(&mut world, child, 50).unwrap();
    assert!(spends(&mut world, grandchild, 1).is_err() && spends(&mut world, top, 1).is_err());
}

#[test]
fn an_honest_bill_above_the_reservation_counts_everywhere_and_a_lie_up_to_what_was_sent() {
    // What is reported, the bytes that were sent, and what is believed of the prompt.
    for (reported, sent, prompt) in [
        (Usage::of(2_000, 100), 2_500, 2_000),
        (Usage::of(1 << 63, u64::MAX), 2_500, 2_500),
        // Providers add to prompts: a full context is reserved, and believed.
        (Usage::of(1 << 63, u64::MAX), 50, 1_000),
    ] {
        let (mut world, [top, child, _, _]) = family(2 * WORST);
        let _asked = send(&mut world, child, 1);
        let call = world.next_call();
        let tokens_max = Some(TokensMax { input: sent, output: Some(100) });
        let broke_off = CallUse {
            provider: "builtin".into(),
            model: "builtin".into(),
            usage: Usage::of(1_400, 0),
            tokens_max: Some(TokensMax { input: 1_400, output: Some(100) }),
            end: CallEnd::Failed,
            ..CallUse::default()
        };
        let text = vec![Block::Text { text: "ok".into() }];
        let said = ModelAnswer { usage: reported, tokens_max, before: vec![broke_off], ..answer(text) };
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
        let booked = Micros(1_400 + prompt + 2 * 100);
        for restarted in [false, true] {
            if restarted {
                world.restart();
            }
            for scope in [Scope::Agent(child), Scope::Global] {
                let found = view(&mut world, scope);
                assert_eq!((found.today, found.month, found.total.cost), (booked, booked, booked), "{scope}");
            }
            let refusal = spends(&mut world, top, 1).unwrap_err();
            assert!(refusal.message.contains(&format!("{booked} of")), "{}", refusal.message);
        }
        assert_eq!(world.engine.check(), Vec::<String>::new());
        let events = events_for_tests(&world);
        assert!(
            events.len() == 2 && events.iter().all(|event| event.call.tokens_max.is_none()),
            "nothing more is kept"
        );
    }
}
