//! Turns that nobody sends: a trigger, a schedule or a workflow begins them.

use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, WakesPaused};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::profile::TurnProfile;
use agentsvc_components::turn::{Origin, Turn, TurnRequest, TurnState};
use agentsvc_components::{AgentId, Refusal, SessionId, Timestamp, TurnId};

use super::message::{self, MessageTaken, NewTurn, Opening};
use super::stop;
use crate::agent::error_codes::AGENT_NOT_RUNNING;
use crate::budget;
use crate::event::event_text;
use crate::kernel::clock::Now;
use crate::kernel::fires::Fires;
use crate::kernel::id_generator::mint_for;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::session::{self, RowTemplate};
use crate::{people, taint};

/// Where a fired turn runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the agent's current session, behind what waits there.
    Current,
    /// In a new session, which stays.
    New,
    /// In a new session that no list shows and that goes with the turn.
    Hidden,
}

/// The message of fired turns, ready to be stored in this step. Very many turns that say the same share it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The part of it that its event carries.
    pub(super) told: Arc<str>,
    /// Its row.
    pub(super) row: Arc<RowTemplate>,
    /// The addresses in it.
    pub(super) addresses: Box<[u64]>,
    /// The time of the step.
    pub(super) at: Timestamp,
    /// The length of its text.
    bytes: usize,
}

impl Said {
    /// What is said in this step.
    pub(crate) fn new(world: &World, text: String) -> Arc<Self> {
        let at = world.resource::<Now>().0;
        let addresses = taint::addresses::of_prompt(world, &text).into();
        let (told, bytes) = (event_text(&text).into(), text.len());
        Arc::new(Self { told, row: Arc::new(RowTemplate::new(text, at)), addresses, at, bytes })
    }
}

/// A turn that is to begin.
#[derive(Clone, Debug)]
pub(crate) struct Fired {
    /// Whose.
    pub(crate) agent: Entity,
    /// Where.
    pub(crate) place: Place,
    /// Its message.
    pub(crate) said: Arc<Said>,
    /// What fires it; hears of its end.
    pub(crate) origin: Origin,
    /// Fired turns between it and what a person or the clock began, itself included.
    pub(crate) depth: u8,
    /// Untrusted content behind it.
    pub(crate) taint: Taint,
    /// The session in which strangers began what it comes from, where they did and that is known.
    pub(crate) began_in: Option<SessionId>,
    /// The user that it is for, where a turn for one of several users set it up.
    pub(crate) user: Option<Box<str>>,
    /// What it is instead of the agent's whole self.
    pub(crate) profile: Option<Box<TurnProfile>>,
}

/// Begins a fired turn; gives its entity, and where it is. The bound of a session's inbox does not hold here, only that
/// of the daemon: what fires is not lost for a busy session.
///
/// # Errors
/// The agent does not run (`agent_not_running`), has no room for another session (`sessions_full`), or too many turns are
/// open; or strangers are behind it and may spend no more.
pub(crate) fn begin_fired(world: &mut World, fired: Fired) -> Result<(Entity, MessageTaken), Refusal> {
    let Fired { agent, place, said, origin, depth, taint, began_in, user, profile } = fired;
    message::check(world, agent)?;
    rests(world, agent, origin)?;
    budget::strangers_at_door(world, taint, began_in)?;
    let current = world.get::<Agent>(agent).map(|agent| agent.current);
    // What outsiders wrote does not come into the conversation of the owner, and what one of several users set up neither.
    let is_apart = !taint.of_outsiders().is_none() || user.is_some();
    let place = if place == Place::Current && is_apart { Place::Hidden } else { place };
    let session = match (place, current) {
        (Place::Current, Some(current)) => current,
        (Place::Current | Place::New, _) => {
            session::admit(world, Some(agent))?;
            session::spawn(world, agent, None, None)
        }
        (Place::Hidden, _) => {
            let id = mint_for(world, agent);
            session::spawn_hidden(world, agent, id)
        }
    };
    world.resource_mut::<Fires>().begun(said.bytes, matches!(origin, Origin::Workflow { .. }));
    let opening = Opening::Said(said);
    let is_plain = profile.is_none() && user.is_none() && began_in.is_none();
    let request = (!is_plain).then(|| Box::new(TurnRequest { profile, user, began_in, ..TurnRequest::default() }));
    let turn = NewTurn { opening, origin, request, streaming: false, depth, link: None, taint, repeats: None };
    Ok(message::begin(world, agent, session, turn))
}

/// Refuses what an agent whose wakes are paused, or whose user may not run it, would do by itself. What others ask of it goes on.
fn rests(world: &World, agent: Entity, origin: Origin) -> Result<(), Refusal> {
    let is_own = matches!(origin, Origin::Schedule { .. } | Origin::Trigger { .. } | Origin::Dream { .. });
    if is_own && world.get::<WakesPaused>(agent).is_some() {
        let text = "the agent belongs to a hand that is paused; resume the hand first";
        return Err(Refusal::conflict(text).with_code(AGENT_NOT_RUNNING));
    }
    if is_own && people::is_at_rest(world, agent) {
        let text = "the agent belongs to a user who may not run agents";
        return Err(Refusal::conflict(text).with_code(AGENT_NOT_RUNNING));
    }
    Ok(())
}

/// Stops a fired turn wherever it is, and what it began in other agents. One that waits behind others in its session
/// ends when its place comes up.
pub(crate) fn stop_turn(world: &mut World, turn: TurnId) {
    let Some(entity) = index::turn(world, turn) else { return };
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    if turn.state == TurnState::Queued {
        turn.cancelled = true;
    }
    let (agent, session) = (turn.agent, turn.session);
    world.mark(entity);
    let (agent, session) = (id_of::<AgentId>(world, agent), id_of(world, session));
    stop::stop(world, entity);
    stop::stop_children(world, agent, Some(session));
}
