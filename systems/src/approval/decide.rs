//! An approval comes to its end: by a person, by its deadline, or because nobody needs it any more.

use crate::approval::audit_kinds;
use crate::approval::error_codes;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::approval::{Approval, ApprovalState, GatedCall};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::{PendingState, Turn};
use agentsvc_components::{AgentId, ApprovalId, Refusal, Timestamp};
use serde_json::json;

use super::ask::{hash, on_record};
use super::parked::{self, Ended};
use super::{ApprovalView, Approvals, answer};
use crate::audit::Audit;
use crate::config::Settings;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find, state};
use crate::kernel::index::{self, id_of};
use crate::kernel::reaction::react;
use crate::kernel::text::check_length;

/// It is decided what becomes of a tool call that waits for its approval.
pub(crate) struct CallDecided {
    /// Whose call.
    pub(crate) turn: Entity,
    /// The row of its result.
    pub(crate) index: u32,
    /// What its model reads when it must not run.
    pub(crate) refusal: Option<String>,
}

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// It may be done.
    Approve,
    /// It must not.
    Reject,
}

/// Decides approvals, all or none (spec 3, POST /api/approvals/batch).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecideApprovals {
    /// Which; each once.
    pub ids: Vec<ApprovalId>,
    /// The decision.
    pub decision: Decision,
    /// Why; shown with the approval, and a rejection's to the model.
    pub reason: Option<Box<str>>,
    /// The filled in form, as the text of a JSON object, of one approval that has an
    /// [`answer_schema`](Approval::answer_schema); goes to who waits for it.
    #[serde(default)]
    pub answer: Option<Box<str>>,
}

command! {
    /// The approvals as they are now, in the order of the ids.
    write "decide_approvals" DecideApprovals => Vec<ApprovalView>, All, |it, world| Answer::stored(decide(world, it))
}

/// The same, for other domains that let people decide.
pub(crate) fn decide(world: &mut World, command: DecideApprovals) -> Result<Vec<ApprovalView>, Refusal> {
    let DecideApprovals { mut ids, decision, reason, answer } = command;
    if ids.len() > limit::APPROVAL_BATCH_MAX {
        let most = limit::APPROVAL_BATCH_MAX;
        return Err(Refusal::bad_field("ids", format!("more than {most} approvals in one request")));
    }
    if let Some(reason) = &reason {
        check_length("reason", reason, limit::APPROVAL_TEXT_BYTES_MAX)?;
    }
    let mut seen = std::collections::BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    let mut entities = Vec::with_capacity(ids.len());
    for id in ids {
        let entity = find::<Approval>(world, id)?;
        let state = world.get::<Approval>(entity).map_or(ApprovalState::Expired, |approval| approval.state);
        if state != ApprovalState::Pending {
            let text = format!("approval {id} is {} already", state.as_str());
            return Err(Refusal::of(error_codes::APPROVAL_DECIDED, text));
        }
        entities.push(entity);
    }
    let answer = answer::judge(world, &entities, decision, answer)?;
    let state = match decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Reject => ApprovalState::Rejected,
    };
    for entity in &entities {
        end(world, *entity, state, reason.clone(), answer.clone());
    }
    let views: Vec<ApprovalView> = entities.into_iter().filter_map(|at| View::of(world, at)).collect();
    for view in &views {
        let mut details = on_record(view.id, &view.approval.action);
        details["decision"] = json!(state.as_str());
        world.audit(audit_kinds::APPROVAL_DECIDED, view.approval.agent, details);
    }
    Ok(views)
}

/// On the beat: what no decision was made in time is refused, at most [`limit::APPROVALS_EXPIRED_MAX`] a beat.
// &mut World: a refusal settles a call, and with it turns of any kind.
pub(crate) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limit::APPROVALS_EXPIRED_MAX {
        let first = world.resource::<Approvals>().deadlines.first().copied();
        let Some((_, id)) = first.filter(|(deadline, _)| *deadline <= now) else { return };
        withdraw(world, id, "no decision was made in time");
    }
}

/// When the next approval ends because nobody decided.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<Approvals>().deadlines.first().map(|(deadline, _)| *deadline)
}

/// The clock was set back: what was asked for in a time that it has left is decided as if it were asked for now, for it
/// would wait by so much longer.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(crate) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let latest = now.plus_ms(world.resource::<Settings>().approval_timeout_ms);
    let late = world.resource::<Approvals>().deadlines.iter().rev().take_while(|(deadline, _)| *deadline > latest);
    for (_, id) in late.copied().collect::<Vec<_>>() {
        if state::<Approval>(world, id).is_some_and(|approval| approval.created_at > now)
            && let Ok(entity) = find::<Approval>(world, id)
        {
            change(world, entity, |approval: &mut Approval| approval.deadline = latest);
        }
    }
}

/// An agent leaves the world: nobody needs what it asked for.
pub(crate) fn agent_removed(world: &mut World, agent: AgentId) {
    // Those of its turns went with the turns; what is left a client asked for.
    for id in world.resource::<Approvals>().pending_of(agent) {
        withdraw(world, id, "the agent was removed");
    }
}

/// Ends an approval that is pending without a person.
pub(crate) fn withdraw(world: &mut World, id: ApprovalId, why: &str) {
    if let Ok(entity) = find::<Approval>(world, id) {
        note_expiry(world, entity, id, why);
        end(world, entity, ApprovalState::Expired, Some(why.into()), None);
    }
}

/// Puts on record that an approval that is pending ends without a person, and why.
fn note_expiry(world: &mut World, entity: Entity, id: ApprovalId, why: &str) {
    let waits = world.get::<Approval>(entity).filter(|approval| approval.state == ApprovalState::Pending);
    let Some(approval) = waits else { return };
    let (agent, mut details) = (approval.agent, on_record(id, &approval.action));
    details["decision"] = json!(ApprovalState::Expired.as_str());
    details["reason"] = json!(why);
    world.audit(audit_kinds::APPROVAL_DECIDED, agent, details);
}

/// The one way out of `Pending`.
fn end(world: &mut World, entity: Entity, state: ApprovalState, reason: Option<Box<str>>, answer: Option<Box<str>>) {
    // In the order of decisions also when the clock was set back: what is kept least is never the one that ends now.
    let last = world.resource::<Approvals>().decided.last().map(|(at, _)| *at);
    let now = world.resource::<Now>().0.max(last.unwrap_or_default());
    let Some(approval) = world.get::<Approval>(entity).filter(|it| it.state == ApprovalState::Pending) else { return };
    let (id, agent, call) = (id_of::<ApprovalId>(world, entity), approval.agent, approval.call);
    change(world, entity, |approval: &mut Approval| {
        approval.state = state;
        approval.decided_at = Some(now);
        approval.reason.clone_from(&reason);
    });
    forget_decided(world);
    let decision = state.as_str().to_owned();
    world.event(Event::ApprovalResolved {
        approval: id.0,
        agent,
        turn: call.and_then(|call| call.waiting_turn()),
        decision,
    });
    if call.is_some_and(|call| call.is_clients()) {
        let ended = Ended { state, reason: reason.as_deref(), answer };
        parked::ended(world, id, ended);
    } else if let Some(call) = call {
        let_go_on(world, id, call, state, reason.as_deref());
    }
}

/// Lets the oldest decisions go until no more are kept than may be.
fn forget_decided(world: &mut World) {
    while let Some(oldest) = world.resource::<Approvals>().decided_over() {
        let Ok(oldest) = find::<Approval>(world, oldest) else { return };
        world.despawn(oldest);
    }
}

/// Lets the tool call that waits go on, or gives it its refusal.
fn let_go_on(world: &mut World, id: ApprovalId, call: GatedCall, state: ApprovalState, reason: Option<&str>) {
    let Some(turn) = index::turn(world, call.turn) else { return };
    let pending = world.get::<Turn>(turn).and_then(|turn| {
        turn.pending.iter().find(|tool| tool.index == call.index && tool.state == PendingState::Gated(id))
    });
    let Some(pending) = pending else { return };
    let is_same = hash(&pending.call) == call.hash;
    let because = reason.map(|reason| format!(" The reason: {reason}.")).unwrap_or_default();
    let refusal = match state {
        ApprovalState::Approved if is_same => None,
        ApprovalState::Approved => Some("Refused: this is not the call that was approved.".to_owned()),
        ApprovalState::Rejected => Some(format!("Refused: a person rejected this call.{because}")),
        ApprovalState::Expired | ApprovalState::Pending => {
            Some(format!("Refused: this call was not approved.{because}"))
        }
    };
    react(world, &CallDecided { turn, index: call.index, refusal });
}
