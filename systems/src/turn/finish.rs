//! The end of a turn: its answer, its reply and its disappearance are one commit.

use agentsvc_components::ErrorCode;
use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::event::Event;
use agentsvc_components::kernel::refusal::Detail;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Usage, calls_of, text_of};
use agentsvc_components::turn::outcome::ModelAnswer;
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::turn::{PendingState, Turn, TurnEnd};
use agentsvc_components::{AgentId, ApprovalId, Refusal, SessionId, Timestamp, TurnId};

use super::ended::{self, Ended};
use super::settle::{answer_row, write_row};
use super::{Children, TurnReply, Waiting, admit, delegate, inbox, stop, tools, trace};
use crate::event::event_text;
use crate::event::told::Tell;
use crate::kernel::index::{Index, id_of};
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::reaction::react;
use crate::turn::metrics::TurnTotals;
use crate::{approval, budget, compaction, proactive_memory, prompt, session, taint};

/// A turn ends: nothing that waits for it only is needed any more.
pub(crate) struct TurnClosed {
    /// Which.
    pub(crate) turn: TurnId,
    /// Whose.
    pub(crate) agent: AgentId,
    /// How it ends.
    pub(crate) end: TurnEnd,
    /// When its message came.
    pub(crate) since: Timestamp,
}

/// How a turn ends.
pub(crate) enum End {
    /// With the model's answer.
    Answered(ModelAnswer),
    /// By a stop, with what was written so far.
    Stopped(Option<ModelAnswer>),
    /// By an interrupt, between tool calls; what the model said so far is stored.
    Interrupted,
    /// Without an answer: a code for programs and a sentence for people.
    Failed(ErrorCode, String),
    /// Without an answer: no budget has room for its next call.
    OverBudget(Box<Refusal>),
}

impl End {
    /// The failure of a turn whose budget refused a call.
    fn of_budget(refusal: &Refusal) -> Self {
        Self::Failed(refusal.code.unwrap_or(budget::EXCEEDED), refusal.message.clone())
    }

    /// The same for traces and replies.
    pub(super) const fn kind(&self) -> TurnEnd {
        match self {
            Self::Answered(_) => TurnEnd::Done,
            Self::Stopped(_) => TurnEnd::Stopped,
            Self::Interrupted => TurnEnd::Interrupted,
            Self::Failed(..) | Self::OverBudget(_) => TurnEnd::Failed,
        }
    }
}

/// Ends the turn at the head of its session's inbox and starts the next.
pub(crate) fn finish(world: &mut World, entity: Entity, end: End) {
    let Some(session) = world.get::<Turn>(entity).map(|turn| turn.session) else { return };
    // The session of such a turn goes with the last of its turns, and not with this one.
    if session::ending_of(world, session, id_of(world, entity)).is_some() {
        return stop::end_going(world, entity);
    }
    if matches!(end, End::Answered(_)) {
        proactive_memory::answered(world, entity);
    }
    let has_text = matches!(&end, End::Answered(answer) if !text_of(&answer.blocks).trim().is_empty());
    prompt::turn_ended(world, entity, end.kind(), has_text);
    close(world, entity, end);
    let next = inbox::pop(world, session);
    remove(world, entity);
    if world.get::<Session>(session).is_some_and(|session| session.ephemeral) {
        return session::discard(world, session, "the conversation has ended");
    }
    if let Some(next) = next {
        admit::enqueue(world, next);
    }
    compaction::turn_ended(world, session);
}

/// Stores the answer, if any, and tells everyone that the turn has ended.
pub(super) fn close(world: &mut World, entity: Entity, end: End) {
    let (end, refusal) = match end {
        End::OverBudget(refusal) => (End::of_budget(&refusal), Some(*refusal)),
        end => (end, None),
    };
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let (owner, session_entity, usage) = (turn.agent, turn.session, turn.usage);
    let (iterations, index, link) = (turn.iteration, turn.next_index, turn.link.clone());
    let (streaming, origin, since, taint) = (turn.streaming, turn.origin, turn.created_at, taint::of(world, entity));
    let (agent, session) = (id_of(world, owner), id_of::<SessionId>(world, session_entity));
    let turn = id_of::<TurnId>(world, entity);
    react(world, &TurnClosed { turn, agent, end: end.kind(), since });
    tools::left_out(world, entity);
    let journal = world.get_mut::<Turn>(entity).and_then(|mut turn| turn.journal.take()).unwrap_or_default();
    let (notices, said) = (journal.notices.clone(), journal.said.clone());
    trace::write(world, entity, &end, *journal);
    let slot = world.resource_mut::<Waiting>().0.get().remove(&entity);
    let how = end.kind();
    let answer = match end {
        End::Answered(answer) => Some(answer),
        End::Stopped(answer) => answer,
        End::Interrupted | End::OverBudget(_) => None,
        End::Failed(code, error) => {
            world.resource_mut::<TurnTotals>().failed += 1;
            world.event(Event::TurnFailed { agent, turn, code: code.to_string(), error: error.clone() });
            publish_notices(world, session, turn, &notices);
            let event = StreamEvent::Error { error: error.clone(), code };
            world.effect(StreamItem { session, turn, event });
            if let Some(slot) = slot {
                let plain = || Refusal::of(code, error.clone());
                let refusal = with_usage(refusal.unwrap_or_else(plain), usage);
                world.resource_mut::<Outbox>().reply(slot, Err(refusal));
            }
            if let Some(link) = link {
                delegate::answer_parent(world, *link, (turn, taint), how, format!("The other agent failed: {error}"));
            }
            let end = Ended { turn, end: how, text: error.into(), code: Some(code), taint, usage };
            return ended::turn_ended(world, origin, end);
        }
    };
    let stopped = how != TurnEnd::Done;
    let stop = answer.as_ref().map(|answer| answer.stop).unwrap_or_default();
    let response = answer.as_ref().map_or_else(|| said.to_string(), |answer| text_of(&answer.blocks));
    // Those of an answer that ended its turn are the client's: the agent's own would have run.
    let tool_calls = answer.as_ref().filter(|_| !stopped).map(|answer| calls_of(&answer.blocks)).unwrap_or_default();
    if let Some(answer) = answer.filter(|answer| !stopped || !answer.blocks.is_empty()) {
        let row = answer_row(world, entity, answer, stopped);
        write_row(world, entity, index, &row);
    }
    count(world, agent, turn, how, usage, iterations, &response);
    publish_notices(world, session, turn, &notices);
    let event = StreamEvent::Done {
        usage,
        stopped,
        iterations,
        stop,
        response: streaming.then(|| response.as_str().into()),
        tool_calls: tool_calls.clone(),
    };
    world.effect(StreamItem { session, turn, event });
    // Whoever waits for it is one of three: another turn, what fired it, or a request.
    if let Some(link) = link {
        delegate::answer_parent(world, *link, (turn, taint), how, response);
    } else if origin.is_fired() {
        ended::turn_ended(world, origin, Ended { turn, end: how, text: response.into(), code: None, taint, usage });
    } else if let Some(slot) = slot {
        let reply = TurnReply { response, usage, iterations, session, turn, end: how, stop, notices, tool_calls };
        world.resource_mut::<Outbox>().reply(slot, Ok(reply));
    }
}

/// Details of the refusal of a turn that failed: the tokens that it used before, if it used any.
const USED: [&str; 2] = ["input_tokens", "output_tokens"];

/// The refusal says what the turn has used.
fn with_usage(refusal: Refusal, usage: Usage) -> Refusal {
    if usage.tokens() == 0 {
        return refusal;
    }
    let counts = USED.into_iter().zip([usage.input_tokens, usage.output_tokens]);
    counts.fold(refusal, |refusal, (key, count)| refusal.with(key, Detail::Count(count)))
}

/// The tokens that a turn had used when it failed with this refusal.
#[must_use]
pub fn refused_tokens(refusal: &Refusal) -> u64 {
    let used = |(key, value): &(String, Detail)| match value {
        Detail::Count(count) if USED.contains(&key.as_str()) => *count,
        Detail::Count(_) | Detail::Text(_) | Detail::Money(_) => 0,
    };
    refusal.details.iter().map(used).fold(0, u64::saturating_add)
}

/// Counts a turn that ended without a failure, and tells of it.
fn count(
    world: &mut World,
    agent: AgentId,
    turn: TurnId,
    ended: TurnEnd,
    usage: Usage,
    iterations: u32,
    response: &str,
) {
    let mut counters = world.resource_mut::<TurnTotals>();
    let (count, code, error) = match ended {
        TurnEnd::Done | TurnEnd::Failed => {
            counters.completed += 1;
            let text = event_text(response);
            return world.event(Event::TurnCompleted { agent, turn, usage, iterations, text });
        }
        TurnEnd::Interrupted => (&mut counters.interrupted, "turn_interrupted", "the turn was interrupted"),
        TurnEnd::Stopped => (&mut counters.stopped, "turn_stopped", "the turn was stopped"),
    };
    *count += 1;
    world.event(Event::TurnFailed { agent, turn, code: code.to_owned(), error: error.to_owned() });
}

/// Tells the subscribers what the agent has to tell its owner, right before the last event of the turn.
fn publish_notices(world: &mut World, session: SessionId, turn: TurnId, notices: &[Box<str>]) {
    if !notices.is_empty() {
        let event = StreamEvent::OwnerNotice { text: notices.join("\n") };
        world.effect(StreamItem { session, turn, event });
    }
}

/// The approvals that calls of a turn wait for.
pub(super) fn gated(turn: &Turn) -> Vec<ApprovalId> {
    let approval = |state| if let PendingState::Gated(id) = state { Some(id) } else { None };
    turn.pending.iter().filter_map(|pending| approval(pending.state)).collect()
}

/// Takes an ended turn out of the world; the remove hook writes its tombstone.
pub(super) fn remove(world: &mut World, entity: Entity) {
    if let Some(turn) = world.get::<Turn>(entity) {
        let (owner, link, gated) = (turn.agent, turn.link.clone(), gated(turn));
        let pending = world.get_mut::<Turn>(entity).map(|mut turn| std::mem::take(&mut turn.pending));
        budget::leave_line(world, entity);
        tools::leave_line(world, entity, pending.into_iter().flatten().map(|pending| pending.index));
        for approval in gated {
            approval::withdraw(world, approval, "its turn has ended");
        }
        world.resource_mut::<Index>().turns_by_agent.remove(&(owner, entity));
        if let Some(link) = link {
            world.resource_mut::<Children>().remove(&link, entity);
        }
    }
    world.despawn(entity);
}
