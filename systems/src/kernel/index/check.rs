//! The indexes of agents, sessions and turns hold what a full scan finds.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::session::Session;
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, SessionId, TurnId};

use super::{Index, agent_named, session};
use crate::kernel::check::Faults;

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut agents = world.query::<(Entity, &AgentId, &Agent)>();
    let mut sessions = world.query::<(Entity, &SessionId, &Session)>();
    let mut turns = world.query::<(Entity, &TurnId, &Turn)>();
    let world = &*world;
    let index = world.resource::<Index>();

    let scan: BTreeSet<(AgentId, Entity)> = agents.iter(world).map(|(entity, id, _)| (*id, entity)).collect();
    faults.same("agents", &index.agents.after(None).collect(), &scan);
    faults.same("agents counted", &index.agents.len(), &scan.len());
    faults.same("the first agent", &index.first_agent(), &scan.first().map(|(_, entity)| *entity));
    for (entity, _, agent) in agents.iter(world) {
        let found = agent_named(world, &agent.name);
        faults.that(found == Some(entity), || format!("agent {:?}: its name maps to {found:?}", agent.name));
    }
    faults.same("names", &index.names.len(), &scan.len());

    let mut of = |hidden: bool| {
        let such = sessions.iter(world).filter(|(.., session)| session.ephemeral == hidden);
        such.map(|(_, id, session)| (session.agent, *id)).collect::<BTreeSet<_>>()
    };
    let (listed, hidden) = (of(false), of(true));
    faults.same("sessions by agent", &index.sessions_by_agent, &listed);
    faults.same("hidden sessions", &index.hidden, &hidden);
    faults.same("sessions", &index.sessions.len(), &(listed.len() + hidden.len()));
    let mut labels = BTreeSet::new();
    for (entity, id, own) in sessions.iter(world) {
        let found = session(world, *id);
        faults.that(found == Some(entity), || format!("session {id}: its id maps to {found:?}"));
        labels.extend(own.label.as_ref().map(|label| ((own.agent, &***label), entity)));
    }
    let known = index.labels.iter().map(|((agent, label), session)| ((*agent, &**label), *session)).collect();
    faults.same("labels", &known, &labels);

    let scan: BTreeSet<(TurnId, Entity)> = turns.iter(world).map(|(entity, id, _)| (*id, entity)).collect();
    faults.same("turns", &index.turns.iter().map(|(id, entity)| (*id, *entity)).collect(), &scan);
    let scan = turns.iter(world).map(|(entity, _, turn)| (turn.agent, entity)).collect();
    faults.same("turns by agent", &index.turns_by_agent, &scan);
}
