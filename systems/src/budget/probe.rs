//! A call that belongs to no turn, such as the test of a provider or the vector of a query: everybody's budget must have room for
//! it before it goes out, and those of the agent that it is for.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::usage::Scope;
use agentsvc_components::usage::record::CallRecord;
use agentsvc_components::{AgentId, Refusal, SessionId};

use super::sampling::{may_go_out, reserve};
use super::{need, verdict};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint;
use crate::kernel::index;
use crate::usage::{Rollups, begin};

/// Reserves the most that a call can cost that belongs to no turn: a full context and the answer. It is refused when everybody's
/// budget has no room for it, or one of the path of the agent that it is for, and waits for none. Its end is told with
/// [`NoteModelCall`](crate::usage::NoteModelCall); a start settles one whose end never came, as it does those of turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveProbe {
    /// For which agent it is; `None`: for none.
    pub agent: Option<AgentId>,
    /// What its event names as its channel.
    pub channel: Box<str>,
    /// The provider.
    pub provider: Box<str>,
    /// The model.
    pub model: Box<str>,
    /// The bound of its answer, in tokens.
    pub answer_tokens_max: u32,
}

command! {
    /// What the end of the call names, sent when the reservation is on disk.
    write "reserve_probe" ReserveProbe => Attempt, IdOrRoot(|it| it.agent.map(|agent| agent.0)), |it, world| {
        if let Some(agent) = it.agent {
            return Answer::stored(of_agent(world, agent, it));
        }
        let Self { channel, provider, model, answer_tokens_max, agent: _ } = it;
        let needed = need::of_nobody(world, &provider, &model, answer_tokens_max);
        let has_room = |(worst, is_free)| verdict::at_once(world, Scope::Global, worst, is_free).map(|()| worst);
        let worst = match needed.and_then(has_room) {
            Ok(worst) => worst,
            Err(refusal) => return Answer::Now(Err(refusal)),
        };
        let now = world.resource::<Now>().0;
        let call = CallRecord {
            job: mint(world, Slot::ROOT),
            number: 1,
            agent: AgentId(Uuid::nil()),
            above: Vec::new(),
            user: None,
            agent_name: "".into(),
            session: SessionId(Uuid::nil()),
            channel,
            provider,
            model,
            at: world.resource::<Rollups>().moment(now),
            reserved: worst,
            is_bounded: true,
            is_aside: false,
            strangers: Taint::NONE,
            began_in: None,
        };
        let grant = call.attempt();
        begin(world, call);
        Answer::Stored(grant)
    }
}

/// Reserves it as a call of the agent.
fn of_agent(world: &mut World, agent: AgentId, it: ReserveProbe) -> Result<Attempt, Refusal> {
    let owner = index::agent(world, agent)?;
    let choice = ModelChoice { provider: it.provider, model: it.model, ..ModelChoice::default() };
    let session = world.get::<Agent>(owner).map(|owner| owner.current);
    let (channel, tokens) = (it.channel.into_string(), (None, it.answer_tokens_max));
    let need = session.and_then(|session| need::aside(world, owner, session, channel, &choice, tokens));
    let need = need.ok_or_else(|| Refusal::not_found("agent", agent))?;
    may_go_out(world, &need)?;
    Ok(reserve(world, agent, (need, choice)).grant)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Usage;
    use agentsvc_components::usage::{CallEnd, CallUse, Limits, Period};
    use agentsvc_components::{Micros, RefusalKind};

    use super::super::tests::{WORST, costs, over, send, settings, view};
    use super::super::{EXCEEDED, SetBudget};
    use super::*;
    use crate::budget::error_codes::PRICE_UNKNOWN;
    use crate::config::Settings;
    use crate::testing::TestWorld;
    use crate::usage::{NoteModelCall, calendar, events_for_tests};

    /// With an answer of 100 tokens it reserves what a turn does.
    fn probe() -> ReserveProbe {
        let builtin: Box<str> = "builtin".into();
        ReserveProbe {
            agent: None,
            channel: "provider_test".into(),
            provider: builtin.clone(),
            model: builtin,
            answer_tokens_max: 100,
        }
    }

    fn ended(grant: Attempt, input: u64, end: CallEnd) -> NoteModelCall {
        let builtin: Box<str> = "builtin".into();
        let used = CallUse {
            provider: builtin.clone(),
            model: builtin,
            usage: Usage::of(input, 0),
            end,
            ..CallUse::default()
        };
        NoteModelCall { channel: "provider_test".into(), grant: Some(grant), used }
    }

    #[test]
    fn the_worst_case_is_reserved_at_everybodys_budget_and_settled_once_with_the_end() {
        let mut world = TestWorld::with(settings(3 * WORST));
        for (end, input, today) in [(CallEnd::Answered, 10, 10), (CallEnd::Failed, 0, 10)] {
            let grant = world.ask(probe()).unwrap();
            assert_eq!(view(&mut world, Scope::Global).reserved, Micros(WORST));
            assert_eq!(world.engine.check(), Vec::<String>::new());
            assert_eq!(world.ask(ended(grant, input, end)).unwrap(), Micros(input));
            assert_eq!(world.ask(ended(grant, input, end)).unwrap(), Micros::ZERO, "it is settled");
            let after = view(&mut world, Scope::Global);
            assert_eq!((after.reserved, after.today, after.month), (Micros::ZERO, Micros(today), Micros(today)));
            assert_eq!(world.engine.check(), Vec::<String>::new());
        }
        assert_eq!(events_for_tests(&world).len(), 2);
    }

    #[test]
    fn without_room_it_is_refused_with_scope_limit_and_reset_time_and_changes_nothing() {
        let mut world = TestWorld::with(settings(2 * WORST));
        let first = world.ask(probe()).unwrap();
        world.ask(ended(first, WORST, CallEnd::Answered)).unwrap();
        let agent = world.spawn("a");
        // A turn has reserved the rest; then it is spent; then there is room and too little.
        for (step, spent) in [(0, WORST), (1, 2 * WORST), (2, 2 * WORST)] {
            let asked = (step == 0).then(|| send(&mut world, agent, 1));
            if step == 2 {
                let limits = Limits { daily: Some(Micros(3 * WORST - 1)), ..Limits::default() };
                world.ask(SetBudget { scope: Scope::Global, limits }).unwrap();
            }
            let before = world.store.clone();
            let refusal = world.ask(probe()).unwrap_err();
            assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(EXCEEDED)), "{step}");
            assert!(world.store == before, "{step}: it changed something");
            let resets_at = calendar::ends(Period::Daily, calendar::day(world.now));
            let limit = if step == 2 { 3 * WORST - 1 } else { 2 * WORST };
            assert_eq!(refusal.details, over(Scope::Global, Period::Daily, resets_at, (limit, spent)), "{step}");
            assert_eq!(refusal.retry_after_secs == Some(1), step == 0, "what is reserved comes back soon");
            if let Some(asked) = asked {
                let call = world.next_call();
                costs(&mut world, &call, WORST);
                assert!(asked.take().unwrap().is_ok());
            }
        }
        world.now = calendar::ends(Period::Daily, calendar::day(world.now));
        assert!(world.ask(probe()).is_ok(), "a new day");
    }

    #[test]
    fn one_for_an_agent_counts_at_the_budgets_of_its_path() {
        let mut world = TestWorld::with(settings(10 * WORST));
        let agent = world.spawn("a");
        let query = || ReserveProbe { agent: Some(agent), ..probe() };
        let grant = world.ask(query()).unwrap();
        for scope in [Scope::Agent(agent), Scope::Global] {
            assert_eq!(view(&mut world, scope).reserved, Micros(WORST));
        }
        assert_eq!(world.ask(ended(grant, 7, CallEnd::Answered)).unwrap(), Micros(7));
        for scope in [Scope::Agent(agent), Scope::Global] {
            let after = view(&mut world, scope);
            assert_eq!((after.reserved, after.today), (Micros::ZERO, Micros(7)));
        }
        assert_eq!(world.engine.check(), Vec::<String>::new());
        let limits = Limits { daily: Some(Micros(7)), ..Limits::default() };
        world.ask(SetBudget { scope: Scope::Agent(agent), limits }).unwrap();
        assert_eq!(world.ask(query()).unwrap_err().code, Some(EXCEEDED));
        assert!(world.ask(probe()).is_ok(), "the budget of the agent bounds no other call");
    }

    #[test]
    fn a_turn_waits_for_what_is_reserved_for_it_and_goes_on_with_its_end() {
        let mut world = TestWorld::with(settings(2 * WORST - 1));
        let agent = world.spawn("a");
        let grant = world.ask(probe()).unwrap();
        let _asked = send(&mut world, agent, 1);
        assert_eq!((world.calls.len(), world.engine.stats().budget_waiting), (0, 1));
        world.ask(ended(grant, 1, CallEnd::Answered)).unwrap();
        assert_eq!((world.calls.len(), world.engine.stats().budget_waiting), (1, 0));
    }

    #[test]
    fn one_that_was_out_at_a_kill_costs_what_was_reserved_and_leaves_nothing_reserved() {
        let mut world = TestWorld::with(settings(3 * WORST));
        let lost = world.ask(probe()).unwrap();
        assert!(!world.engine.is_quiet(), "another epoch would take it for lost");
        world.restart();
        let after = view(&mut world, Scope::Global);
        assert_eq!((after.reserved, after.today), (Micros::ZERO, Micros(WORST)));
        let events = events_for_tests(&world);
        assert_eq!((events.len(), events[0].call.end, &*events[0].channel), (1, CallEnd::Unknown, "provider_test"));
        assert_eq!(world.ask(ended(lost, 5, CallEnd::Answered)).unwrap(), Micros::ZERO, "its end comes too late");
        assert_eq!(view(&mut world, Scope::Global).today, Micros(WORST));
        world.restart();
        assert_eq!(events_for_tests(&world).len(), 1, "and never twice");
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }

    #[test]
    fn what_is_free_reserves_nothing_and_what_has_no_price_is_refused_under_a_limit() {
        let of = |provider: &str| ReserveProbe { provider: provider.into(), model: "other".into(), ..probe() };
        let mut world = TestWorld::with(settings(1));
        let grant = world.ask(of("builtin")).unwrap();
        assert_eq!(view(&mut world, Scope::Global).reserved, Micros::ZERO);
        assert_eq!(world.ask(ended(grant, 0, CallEnd::Failed)).unwrap(), Micros::ZERO);
        let refusal = world.ask(of("elsewhere")).unwrap_err();
        assert_eq!(refusal.code, Some(PRICE_UNKNOWN));
        assert!(refusal.message.contains("elsewhere/other") && refusal.message.contains("unknown_price_per_m"));
        assert!(world.ask(probe()).is_err());
        let mut world = TestWorld::with(Settings::default());
        assert!(world.ask(of("elsewhere")).is_ok(), "no limit is in force");
    }
}
