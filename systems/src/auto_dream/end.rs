//! A run ends: by itself, by a stop, or because its turn is gone.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::auto_dream::{Dream, DreamEnd, DreamId, DreamOutcome};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{AgentId, Refusal, TurnId};

use super::begin::change_dream;
use super::index::Dreams;
use super::list::DreamView;
use super::metrics::DreamTotals;
use super::{audit_kinds, error_codes, limits, read, time};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, state};
use crate::kernel::index;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::turn::{Ended, stop_turn};

/// Stops the run of an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AbortDream(pub AgentId);

command! {
    write "abort_dream" AbortDream => DreamView, Id(|it| it.0.0), |AbortDream(agent), world|
        Answer::stored(abort(world, agent))
}

fn abort(world: &mut World, agent: AgentId) -> Result<DreamView, Refusal> {
    index::agent(world, agent)?;
    let id = DreamId::from(agent);
    let run = state::<Dream>(world, id).and_then(|dream| dream.run.clone());
    let Some(run) = run.filter(|run| run.ending.is_none()) else {
        let text = "the agent does not consolidate its memory now";
        return Err(Refusal::of(error_codes::DREAM_NOT_RUNNING, text.to_owned()));
    };
    world.audit(audit_kinds::DREAM_ABORTED, agent, json!({ "turn": run.turn }));
    stop(world, id, DreamOutcome::Aborted);
    DreamView::seen(world, id)
}

/// Tells the run to stop; it ends when what it has out has come back.
pub(super) fn stop(world: &mut World, id: DreamId, outcome: DreamOutcome) {
    let mut turn = None;
    change_dream(world, id, |dream| {
        if let Some(run) = &mut dream.run {
            run.ending = Some(outcome);
            turn = Some(run.turn);
        }
    });
    turn.into_iter().for_each(|turn| stop_turn(world, turn));
}

/// The turn of a run has ended.
pub(super) fn turn_ended(world: &mut World, agent: AgentId, ended: &Ended) {
    let outcome = match ended.end {
        TurnEnd::Done => DreamOutcome::Completed,
        TurnEnd::Failed => DreamOutcome::Failed,
        TurnEnd::Stopped | TurnEnd::Interrupted => DreamOutcome::Aborted,
    };
    settle(world, agent, ended.turn, outcome, &ended.text);
}

fn settle(world: &mut World, agent: AgentId, turn: TurnId, outcome: DreamOutcome, text: &str) {
    let id = DreamId::from(agent);
    let run = state::<Dream>(world, id).and_then(|dream| dream.run.clone());
    let Some(run) = run.filter(|run| run.turn == turn) else { return };
    // A run that came to its end before the stop reached it has succeeded all the same.
    let outcome = match run.ending {
        Some(ending) if outcome != DreamOutcome::Completed => ending,
        _ => outcome,
    };
    let now = world.resource::<Now>().0;
    let check_at = time::after_run(world, id, outcome == DreamOutcome::Completed);
    change_dream(world, id, |dream| {
        dream.run = None;
        dream.check_at = check_at;
        dream.cursor = read::next_from(&run, outcome);
        if outcome == DreamOutcome::Completed {
            dream.last_consolidated_at = Some(now);
            dream.sessions = dream.sessions.saturating_sub(run.sessions);
        }
        let text = text[..text.floor_char_boundary(limits::DREAM_TEXT_BYTES_MAX.min(text.len()))].into();
        dream.last = Some(DreamEnd { turn, started_at: run.started_at, ended_at: now, outcome, text });
    });
    world.resource_mut::<DreamTotals>().count(outcome);
    world.audit(audit_kinds::DREAM_ENDED, agent, json!({ "turn": turn, "outcome": outcome.as_str() }));
}

/// Once every turn is back: runs whose turn is not there any more have failed.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let turn = |id: DreamId| state::<Dream>(world, id)?.run.as_ref().map(|run| run.turn);
    let running = world.resource::<Dreams>().all_running().filter_map(|id| Some((id, turn(id)?)));
    let lost: Vec<(DreamId, TurnId)> = running.filter(|(_, turn)| index::turn(world, *turn).is_none()).collect();
    for (id, turn) in lost {
        settle(world, AgentId(id.0), turn, DreamOutcome::Failed, "the turn of the run no longer exists");
    }
    // The clock may have been set back meanwhile.
    time::due_set_back(world);
    time::runs_set_back(world);
    Ok(())
}
