//! A call whose most is known beforehand and is no matter of tokens, such as that of an image.

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{AgentId, Micros, Refusal, SessionId};

use super::need;
use super::sampling::may_go_out;
use crate::kernel::id_generator::{mint, mint_beside};

/// A call whose most is known.
#[derive(Clone, Debug)]
pub(crate) struct FixedCall {
    /// Whose; `None` is a client of the API, which counts at the global budget.
    pub(crate) agent: Option<AgentId>,
    /// The session in which the agent asked.
    pub(crate) session: Option<SessionId>,
    /// What its event names as its channel.
    pub(crate) channel: &'static str,
    /// The provider.
    pub(crate) provider: Box<str>,
    /// The model.
    pub(crate) model: Box<str>,
    /// The most that it can cost.
    pub(crate) most: Micros,
    /// Is that known? A limit of money refuses calls of which it is not.
    pub(crate) is_priced: bool,
    /// The labels of strangers, where any of them began what calls.
    pub(crate) strangers: Taint,
    /// The session in which they began it.
    pub(crate) began_in: Option<SessionId>,
    /// What a refusal for want of a price tells to do.
    pub(crate) remedy: &'static str,
}

/// May the call go out now? Changes nothing.
///
/// # Errors
/// The agent is gone, a budget has no room, or a rule is against it.
pub(crate) fn may_begin(world: &World, call: &FixedCall) -> Result<(), Refusal> {
    may_go_out(world, &need::fixed(world, call)?)
}

/// Reserves what the call may cost at every scope of its path. It waits for no room. Its end is told with
/// [`usage::fixed`](crate::usage::fixed); a start settles one whose end never came.
///
/// # Errors
/// As [`may_begin`]; then nothing is changed.
pub(crate) fn reserve_fixed(world: &mut World, call: &FixedCall) -> Result<Attempt, Refusal> {
    let need = need::fixed(world, call)?;
    may_go_out(world, &need)?;
    let job = match call.agent {
        Some(agent) => mint_beside(world, agent.0),
        None => mint(world, Slot::ROOT),
    };
    let grant = Attempt { job, number: 1 };
    need::reserve(world, grant, need);
    Ok(grant)
}
