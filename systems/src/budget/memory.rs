//! A call of the model that extracts memory entries of a turn that has ended: it counts as a call of the turn's agent.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId};

use super::need;
use super::sampling::{Reserved, may_go_out, reserved};
use crate::agent::error_codes::AGENT_NOT_RUNNING;
use crate::config::Settings;
use crate::kernel::command::{Answer, Command, Place};
use crate::kernel::index;

/// What the usage events of such calls name as their channel.
pub const MEMORY: &str = "memory";

/// Reserves the most that a call of the agent's `extraction_model` can cost: a prompt of so many tokens and the answer, at every
/// scope of the agent's path. It is refused when a budget has no room for it, and waits for none; when the agent does not run
/// (409), when its turns are not memorised or not by a model (409), and when the session is gone (404). Its end is told with
/// [`NoteModelCall`](crate::usage::NoteModelCall); a start settles one whose end never came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveMemory {
    /// Whose call.
    pub agent: AgentId,
    /// The session of the turn.
    pub session: SessionId,
    /// The bound of its prompt, in tokens.
    pub prompt_tokens_max: u32,
    /// The bound of its answer, in tokens.
    pub answer_tokens_max: u32,
}

impl Command for ReserveMemory {
    /// Sent when the reservation is on disk.
    type Reply = Reserved;
    const NAME: &'static str = "reserve_memory";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::Id(|it| it.agent.0);

    fn run(self, world: &mut World) -> Answer<Reserved> {
        let judged = judge(world, &self);
        reserved(world, self.agent, judged)
    }
}

fn judge(world: &World, command: &ReserveMemory) -> Result<(need::Need, ModelChoice), Refusal> {
    let owner = index::agent(world, command.agent)?;
    let agent = world.get::<Agent>(owner).filter(|agent| agent.state == AgentState::Running);
    let agent = agent.ok_or_else(|| Refusal::of(AGENT_NOT_RUNNING, "the agent is not running"))?;
    let settings = world.resource::<Settings>();
    let own = settings.memory.of(&agent.manifest.manifest);
    let model = own.extraction_model.as_deref().filter(|_| own.memorizes()).and_then(|model| model.split_once('/'));
    let (provider, name) =
        model.ok_or_else(|| Refusal::new(RefusalKind::Conflict, "no model extracts entries of the agent's turns"))?;
    let choice = ModelChoice { provider: provider.into(), model: name.into(), ..ModelChoice::default() };
    let choice = settings.resolve(&choice);
    let session = index::session(world, command.session);
    let tokens = (Some(command.prompt_tokens_max), command.answer_tokens_max);
    let need = session.and_then(|session| need::aside(world, owner, session, MEMORY, &choice, tokens));
    let need = need.ok_or_else(|| Refusal::not_found("session", command.session))?;
    may_go_out(world, &need)?;
    Ok((need, choice))
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Micros;
    use agentsvc_components::session::message::Usage;
    use agentsvc_components::usage::{CallEnd, CallUse, Limits, Scope};
    use uuid::Uuid;

    use super::super::tests::{settings, view};
    use super::super::{EXCEEDED, SetBudget};
    use super::*;
    use crate::agent::GetAgent;
    use crate::config::Reconfigure;
    use crate::testing::TestWorld;
    use crate::usage::{NoteModelCall, events_for_tests};

    /// Of a prompt of 500 tokens and an answer of 100.
    const WORST: u64 = 500 + 2 * 100;

    fn world(global_daily: u64, model: &str) -> (TestWorld, ReserveMemory) {
        let mut settings = settings(global_daily);
        settings.memory.extraction_model = Some(model.into());
        let mut world = TestWorld::with(settings);
        let agent = world.spawn("a");
        let session = world.ask(GetAgent(agent)).unwrap().session;
        (world, ReserveMemory { agent, session, prompt_tokens_max: 500, answer_tokens_max: 100 })
    }

    #[test]
    fn it_is_reserved_by_its_prompt_and_booked_as_a_call_of_the_agent() {
        let (mut world, reserve) = world(10 * WORST, "builtin/builtin");
        let Reserved { grant, model } = world.ask(reserve.clone()).unwrap();
        assert_eq!((&*model.provider, &*model.model), ("builtin", "builtin"));
        for scope in [Scope::Agent(reserve.agent), Scope::Global] {
            assert_eq!(view(&mut world, scope).reserved, Micros(WORST));
        }
        let (provider, model, usage) = ("builtin".into(), "builtin".into(), Usage::of(7, 0));
        let used = CallUse { provider, model, usage, end: CallEnd::Answered, ..CallUse::default() };
        let note = NoteModelCall { channel: MEMORY.into(), grant: Some(grant), used };
        assert_eq!(world.ask(note).unwrap(), Micros(7));
        let event = events_for_tests(&world).into_iter().next_back().unwrap();
        assert_eq!((&*event.channel, event.agent), (MEMORY, reserve.agent));
        world.ask(reserve.clone()).unwrap();
        world.restart();
        assert_eq!(view(&mut world, Scope::Global).reserved, Micros::ZERO, "a kill leaves nothing reserved");
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }

    #[test]
    fn it_is_refused_without_room_or_price_or_where_it_is_not_wanted() {
        let (mut world, reserve) = world(10 * WORST, "builtin/builtin");
        let refused = |world: &mut TestWorld, reserve: &ReserveMemory| {
            let before = world.store.clone();
            let refusal = world.ask(reserve.clone()).unwrap_err();
            assert!(world.store == before, "it changed something");
            (refusal.kind, refusal.code)
        };
        let gone = ReserveMemory { session: SessionId(Uuid::from_u128(7)), ..reserve.clone() };
        assert_eq!(refused(&mut world, &gone).0, RefusalKind::NotFound);
        let limits = Limits { daily: Some(Micros(WORST - 1)), ..Limits::default() };
        world.ask(SetBudget { scope: Scope::Agent(reserve.agent), limits }).unwrap();
        assert_eq!(refused(&mut world, &reserve), (RefusalKind::TooMany, Some(EXCEEDED)));
        for (model, code) in [(Some("p/unknown"), Some(super::super::error_codes::PRICE_UNKNOWN)), (None, None)] {
            let mut other = settings(10 * WORST);
            other.memory.extraction_model = model.map(Into::into);
            world.ask(Reconfigure(Box::new(other))).unwrap();
            assert_eq!(refused(&mut world, &reserve).1, code);
        }
    }
}
