//! A schedule or cron job is run by hand (spec 1, POST /api/schedules/{id}/run).

use crate::schedule::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::schedule::{OverlapPolicy, Schedule, ScheduleKind};
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, Refusal, ScheduleId, SessionId, TurnId};
use serde_json::json;

use super::times::Timing;
use super::{find, fire};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, id_of};

/// Runs it now, enabled or not. No slot is touched, and the overlap policy does not hold it up: it runs beside an open
/// turn when the policy is parallel, and otherwise in the session's own order.
///
/// Refused when the agent does not run (409, `agent_not_running`), the daemon is full (503), or its
/// budget is used up (429, `budget_exceeded`).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RunSchedule {
    /// Its family.
    pub kind: ScheduleKind,
    /// Which.
    pub id: ScheduleId,
}

/// A run that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStarted {
    /// The turn.
    pub turn: TurnId,
    /// Where it runs.
    pub session: SessionId,
}

command! {
    write "run_schedule" RunSchedule => RunStarted, Id(|it| it.id.0), |it, world| Answer::stored(start(world, it))
}

fn start(world: &mut World, command: RunSchedule) -> Result<RunStarted, Refusal> {
    let entity = find(world, command.kind, command.id)?;
    let open = world.get::<Timing>(entity).map_or(0, |timing| timing.open);
    let agent = world.get::<Schedule>(entity).map(|schedule| id_of::<AgentId>(world, schedule.agent));
    let overlap = world.get::<Schedule>(entity).map(|schedule| schedule.overlap);
    let turn = fire::begin(world, entity, None, open > 0 && overlap == Some(OverlapPolicy::Parallel))?;
    let session = index::turn(world, turn).and_then(|turn| world.get::<Turn>(turn)).map(|turn| turn.session);
    let session = session.ok_or_else(|| Refusal::not_found("turn", turn))?;
    let details = json!({ "id": command.id, "kind": command.kind.noun(), "turn": turn });
    world.audit(audit_kinds::SCHEDULE_RUN, agent, details);
    Ok(RunStarted { turn, session: id_of(world, session) })
}
