//! A call of the agent's model that a tool asks for while it runs (MCP sampling): it counts as a call of the turn's agent.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::turn::{Turn, TurnState};
use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Refusal, RefusalKind, TurnId};

use super::verdict::price_unknown;
use super::{CallStarts, need, verdict};
use crate::agent::error_codes::AGENT_NOT_RUNNING;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint_beside;
use crate::kernel::index;
use crate::kernel::reaction::check;

/// What the usage events of such calls name as their channel.
pub const SAMPLING: &str = "mcp_sampling";

/// Reserves the most that a call of the agent's model can cost inside a tool call of its turn: a full context and the answer,
/// at every scope of the agent's path. It is refused when a budget has no room for it, and waits for none; when the agent does
/// not run, or the turn runs no tools (409). Its end is told with [`NoteModelCall`](crate::usage::NoteModelCall); a start
/// settles one whose end never came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveSampling {
    /// Whose call.
    pub agent: AgentId,
    /// The turn that it is inside.
    pub turn: TurnId,
    /// The bound of its answer, in tokens.
    pub answer_tokens_max: u32,
}

/// A call that may go out.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    /// What the end of the call names.
    pub grant: Attempt,
    /// The model to ask.
    pub model: ModelChoice,
}

command! {
    /// Sent when the reservation is on disk.
    write "reserve_sampling" ReserveSampling => Reserved, Id(|it| it.agent.0), |it, world|
        Answer::stored(judge(world, &it).map(|judged| reserve(world, it.agent, judged)))
}

fn judge(world: &World, command: &ReserveSampling) -> Result<(need::Need, ModelChoice), Refusal> {
    let owner = index::agent(world, command.agent)?;
    let not_running = |text: &str| Refusal::of(AGENT_NOT_RUNNING, text);
    if world.get::<Agent>(owner).is_none_or(|agent| agent.state != AgentState::Running) {
        return Err(not_running("the agent is not running"));
    }
    let entity = index::turn(world, command.turn);
    let turn = entity.and_then(|turn| world.get::<Turn>(turn));
    let turn = turn.filter(|turn| turn.agent == owner && turn.state == TurnState::WaitingForTools);
    let over = || Refusal::new(RefusalKind::Conflict, "the turn is over, or runs no tools");
    let (turn, entity) = turn.zip(entity).ok_or_else(over)?;
    let (need, model) = need::inside(world, turn, SAMPLING, command.answer_tokens_max).ok_or_else(over)?;
    let need = need.by_strangers(world, entity);
    may_go_out(world, &need)?;
    Ok((need, model))
}

/// Reserves what a call of the agent may cost.
pub(super) fn reserve(world: &mut World, agent: AgentId, (need, model): (need::Need, ModelChoice)) -> Reserved {
    let grant = Attempt { job: mint_beside(world, agent.0), number: 1 };
    need::reserve(world, grant, need);
    Reserved { grant, model }
}

/// Have all scopes of its path room for a call that does not wait, and do all rules let it begin?
pub(super) fn may_go_out(world: &World, need: &need::Need) -> Result<(), Refusal> {
    if let Some(unpriced) = &need.unpriced {
        return Err(price_unknown(unpriced));
    }
    for scope in Scope::path_of(need.agent, &need.above, need.user) {
        verdict::at_once(world, scope, need.worst, need.is_free)?;
    }
    check(world, &CallStarts { strangers: need.strangers, began_in: need.began_in, worst: need.worst })
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Micros;
    use agentsvc_components::session::message::{Block, ToolCall, Usage};
    use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
    use agentsvc_components::usage::{CallEnd, CallUse, Limits};
    use uuid::Uuid;

    use super::super::tests::{WORST, send, settings, view};
    use super::super::{EXCEEDED, SetBudget};
    use super::*;
    use crate::agent::RemoveAgents;
    use crate::testing::{TestWorld, answer};
    use crate::usage::{NoteModelCall, events_for_tests};

    /// A turn of the agent that runs a tool.
    fn in_a_tool(world: &mut TestWorld) -> (AgentId, TurnId) {
        let agent = world.spawn("a");
        let _asked = send(world, agent, 1);
        let attempt = world.next_call().attempt;
        let call = ToolCall { id: "c".into(), name: "x".into(), input: "{}".into() };
        world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
        (agent, TurnId(attempt.job.0))
    }

    fn reserve(agent: AgentId, turn: TurnId) -> ReserveSampling {
        ReserveSampling { agent, turn, answer_tokens_max: 100 }
    }

    fn note(world: &mut TestWorld, grant: Attempt, input: u64) -> Micros {
        let builtin: Box<str> = "builtin".into();
        let used = CallUse {
            provider: builtin.clone(),
            model: builtin,
            usage: Usage::of(input, 0),
            end: CallEnd::Answered,
            ..CallUse::default()
        };
        world.ask(NoteModelCall { channel: SAMPLING.into(), grant: Some(grant), used }).unwrap()
    }

    #[test]
    fn it_is_reserved_and_booked_as_a_call_of_the_agent() {
        let mut world = TestWorld::with(settings(10 * WORST));
        let (agent, turn) = in_a_tool(&mut world);
        let before = view(&mut world, Scope::Agent(agent)).today;
        let Reserved { grant, model } = world.ask(reserve(agent, turn)).unwrap();
        assert_eq!((&*model.provider, &*model.model), ("builtin", "builtin"));
        for scope in [Scope::Agent(agent), Scope::Global] {
            assert_eq!(view(&mut world, scope).reserved, Micros(WORST));
        }
        assert_eq!(world.engine.check(), Vec::<String>::new());
        assert_eq!(note(&mut world, grant, 7), Micros(7));
        assert_eq!(note(&mut world, grant, 7), Micros::ZERO, "it is settled");
        let after = view(&mut world, Scope::Agent(agent));
        assert_eq!((after.reserved, after.today), (Micros::ZERO, before.plus(Micros(7))));
        let event = events_for_tests(&world).into_iter().next_back().unwrap();
        assert_eq!((&*event.channel, event.agent), (SAMPLING, agent));
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }

    #[test]
    fn a_budget_without_room_refuses_it_and_nothing_is_changed() {
        let mut world = TestWorld::with(settings(10 * WORST));
        let (agent, turn) = in_a_tool(&mut world);
        let limits = Limits { daily: Some(Micros(WORST)), ..Limits::default() };
        world.ask(SetBudget { scope: Scope::Agent(agent), limits }).unwrap();
        let before = world.store.clone();
        let refusal = world.ask(reserve(agent, turn)).unwrap_err();
        assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(EXCEEDED)));
        assert!(world.store == before, "it changed something");
    }

    #[test]
    fn it_belongs_to_a_running_tool_of_a_turn_of_the_agent() {
        let mut world = TestWorld::with(settings(10 * WORST));
        let (agent, turn) = in_a_tool(&mut world);
        let other = world.spawn("b");
        for (agent, turn) in [(other, turn), (agent, TurnId(Uuid::from_u128(5)))] {
            assert_eq!(world.ask(reserve(agent, turn)).unwrap_err().kind, RefusalKind::Conflict);
        }
        let _asked = send(&mut world, other, 2);
        let call = world.next_call().attempt;
        let early = world.ask(reserve(other, TurnId(call.job.0))).unwrap_err();
        assert_eq!(early.kind, RefusalKind::Conflict, "no tool runs yet");
    }

    #[test]
    fn a_kill_or_the_end_of_the_agent_leaves_nothing_reserved() {
        let mut world = TestWorld::with(settings(10 * WORST));
        let (agent, turn) = in_a_tool(&mut world);
        let lost = world.ask(reserve(agent, turn)).unwrap().grant;
        world.restart();
        assert_eq!(view(&mut world, Scope::Global).reserved, Micros::ZERO);
        assert_eq!(note(&mut world, lost, 5), Micros::ZERO, "it was booked in full");
        assert_eq!(events_for_tests(&world).into_iter().next_back().unwrap().call.end, CallEnd::Unknown);
        let grant = world.ask(reserve(agent, turn)).unwrap().grant;
        world.ask(RemoveAgents(vec![agent])).unwrap();
        note(&mut world, grant, 5);
        assert_eq!(view(&mut world, Scope::Global).reserved, Micros::ZERO);
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }
}
