//! The tool calls of a turn: judged, sent out fairly over users and families of agents, journaled, and settled in the order of the calls.
//!
//! A call's idempotency key is its turn and the row that its result goes to. The call is stored with its turn before it
//! goes out; its result and its disappearance from there are one commit. So a call that has settled is never repeated,
//! and one that has not is known after a crash: [`resume`](super::resume) sends it again marked as such, and whoever
//! runs tools repeats it when that is safe, or reports it as unknown.

use agentsvc_components::turn::error_codes;
use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, Role, ToolCall, calls_of, text_of};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelAnswer, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::turn::trace::StepStatus;
use agentsvc_components::turn::{Origin, PendingState, PendingTool, Turn, TurnState};
use agentsvc_components::{Timestamp, TurnId};

use super::finish::{End, finish};
use super::guard::{self, Verdict};
use super::settle::{answer_row, write_row};
use super::tool_lane::{Out, ToolLane};
use super::trace::{self, Ended};
use super::{ToolCallEnded, admit, delegate, profile, stop, stopping, tool_audit};
use crate::event::told::Tell;
use crate::kernel::arrivals::Settle;
use crate::kernel::clock::Now;
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::fires::Fires;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::kernel::record::{self, MessageKey};
use crate::taint::{self, Judgement};
use crate::turn::metrics::TurnTotals;
use crate::{agent, approval, session};

/// The model asks for tools: its answer is stored, each call is judged, and a row is reserved for each result, so that
/// results stand in the order of the calls however they come back.
pub(super) fn ask(world: &mut World, entity: Entity, answer: ModelAnswer) {
    let calls = calls_of(&answer.blocks);
    let row = answer_row(world, entity, answer, false);
    let said = text_of(&row.blocks);
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    let at = turn.next_index;
    turn.next_index += 1 + u32::try_from(calls.len()).unwrap_or(0);
    turn.journal.get_or_insert_default().said = said.into();
    let (owner, is_cancelled) = (turn.agent, turn.cancelled);
    write_row(world, entity, at, &row);
    if is_cancelled {
        return finish(world, entity, End::Interrupted);
    }
    let mut refused = Vec::new();
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    for (index, call) in (at + 1..).zip(calls) {
        let made = turn.tool_calls;
        let verdict = guard::judge(turn.journal.get_or_insert_default(), made, &call);
        turn.tool_calls += 1;
        match verdict.refusal() {
            None => turn.pending.push(PendingTool {
                index,
                call,
                state: PendingState::Waiting,
                sent_at: Timestamp::default(),
                runs: 0,
            }),
            Some(text) => refused.push((index, call, text, verdict)),
        }
    }
    turn.attempt += 1;
    turn.state = TurnState::WaitingForTools;
    world.mark(entity);
    let Judged { gated, waiting, denied } = judge(world, owner, entity);
    let ungranted = if gated.is_empty() { Vec::new() } else { approval::gate(world, entity, &gated) };
    for (index, call, text, verdict) in refused {
        let breaker = verdict == Verdict::Breaker;
        let why = if breaker { "circuit_breaker" } else { "loop_guard" };
        refuse(world, entity, index, call, text, why);
    }
    for (index, why, text) in denied {
        deny(world, entity, index, why, text);
    }
    enqueue(world, owner, entity, waiting);
    for (index, full) in ungranted {
        let text = format!("Refused: this call needs approval, and {full}.");
        delegate::settle(world, entity, index, text, ToolStatus::Error);
    }
    proceed(world, entity);
}

/// The calls of an answer that the loop guard lets through, by what becomes of them.
#[derive(Default)]
struct Judged {
    /// They wait for a person, who may read why.
    gated: Vec<(u32, Option<String>)>,
    waiting: Vec<u32>,
    /// They do not run; a word and what the model reads.
    denied: Vec<(u32, &'static str, String)>,
}

/// Judges the calls that were just asked for by what the turn has read, and by who must approve them.
fn judge(world: &mut World, owner: Entity, entity: Entity) -> Judged {
    let asked: Vec<(u32, ToolCall)> = world
        .get::<Turn>(entity)
        .map_or_else(Vec::new, |turn| turn.pending.iter().map(|tool| (tool.index, tool.call.clone())).collect());
    let mut judged = Judged::default();
    for (index, call) in asked {
        if let Some(text) = agent::denied_tool(world, owner, &call.name) {
            judged.denied.push((index, "owner", text));
            continue;
        }
        let judgement = taint::judge(world, entity, &call, agent::named);
        tool_audit::tainted(world, owner, entity, &call, &judgement);
        match judgement {
            Judgement::Deny(_, why, text) => judged.denied.push((index, why, text)),
            Judgement::Approve(_, because) => judged.gated.push((index, Some(because))),
            Judgement::Run | Judgement::Note(_) if approval::is_gated(world, owner, &call.name) => {
                judged.gated.push((index, None));
            }
            Judgement::Run | Judgement::Note(_) => judged.waiting.push(index),
        }
    }
    judged
}

/// Takes back a call that must not run: that is its result.
fn deny(world: &mut World, entity: Entity, index: u32, why: &str, text: String) {
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    let Some(at) = turn.pending.iter().position(|pending| pending.index == index) else { return };
    let call = turn.pending.remove(at).call;
    world.mark(entity);
    refuse(world, entity, index, call, text, why);
}

/// A person has approved a call: it stands in line.
pub(super) fn open_gate(world: &mut World, entity: Entity, index: u32) {
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    let Some(pending) = turn.pending.iter_mut().find(|pending| pending.index == index) else { return };
    pending.state = PendingState::Waiting;
    turn.state = TurnState::WaitingForTools;
    let owner = turn.agent;
    world.mark(entity);
    enqueue(world, owner, entity, [index]);
}

/// Nobody has approved a call: that is its result.
pub(super) fn refuse_gated(world: &mut World, entity: Entity, index: u32, text: String) {
    delegate::settle(world, entity, index, text, ToolStatus::Error);
}

/// Puts calls of a turn in line for a place.
pub(super) fn enqueue(world: &mut World, owner: Entity, turn: Entity, indexes: impl IntoIterator<Item = u32>) {
    let holder = agent::holder_of(world, owner);
    let mut lane = world.resource_mut::<ToolLane>();
    for index in indexes {
        lane.push(holder, turn, index);
    }
}

/// Takes calls of a turn that will not run out of the line, those that stand in it.
pub(super) fn leave_line(world: &mut World, turn: Entity, indexes: impl IntoIterator<Item = u32>) {
    let mut lane = world.resource_mut::<ToolLane>();
    for index in indexes {
        lane.leave(turn, index);
    }
}

/// Writes the result of a call that does not run.
fn refuse(world: &mut World, entity: Entity, index: u32, call: ToolCall, text: String, why: &str) {
    let now = world.resource::<Now>().0;
    let refused = Ended { error: Some(&text), ..Ended::tool(&call.name, now, StepStatus::Refused) };
    trace::step(world, entity, refused);
    let agent = world.get::<Turn>(entity).map(|turn| turn.agent);
    let (Some(agent), turn) = (agent.map(|agent| id_of(world, agent)), id_of::<TurnId>(world, entity)) else { return };
    tool_audit::refused(world, agent, turn, &call, why);
    let breaker = why == "circuit_breaker";
    world.event(Event::ToolRefused { agent, turn, tool: call.name.clone(), breaker });
    write_result(world, entity, index, call, text, true);
}

fn write_result(world: &mut World, entity: Entity, index: u32, call: ToolCall, content: String, is_error: bool) {
    let blocks = vec![Block::ToolResult { call_id: call.id, name: call.name, content, is_error }];
    let turn = id_of::<TurnId>(world, entity);
    let created_at = world.resource::<Now>().0;
    let row = MessageRecord {
        turn,
        role: Role::Tool,
        blocks,
        created_at,
        usage: None,
        model: None,
        stopped: false,
        repeats: None,
    };
    write_row(world, entity, index, &row);
}

/// May a further round send a call out?
pub(super) fn can_send(world: &World) -> bool {
    world.resource::<Fires>().calls_may() && world.resource::<ToolLane>().can_send()
}

/// Sends out the calls that a place is free for. It ends: each call that is taken out of the line goes out, is over, or waits with
/// those who have no room.
// &mut World: a call is judged, journaled and sent, which touches agents, turns and the outbox.
pub(crate) fn send(world: &mut World) {
    while can_send(world) {
        let Some((turn, index)) = world.resource_mut::<ToolLane>().pop() else { return };
        if stop::is_going(world, turn) || stopping::is_stopping(world, turn) {
            continue;
        }
        if is_outdated(world, turn, index) {
            refuse_outdated(world, turn, index);
        } else if let Some((attempt, out)) = send_one(world, turn, index) {
            world.resource_mut::<ToolLane>().take(attempt, index, out);
        }
    }
}

/// Was the call judged before a tainted turn wrote files that it may run?
fn is_outdated(world: &World, entity: Entity, index: u32) -> bool {
    let Some(turn) = world.get::<Turn>(entity) else { return false };
    let waits = |pending: &&PendingTool| pending.index == index && pending.state == PendingState::Waiting;
    turn.pending.iter().find(waits).is_some_and(|pending| taint::is_outdated(world, entity, &pending.call.name))
}

/// Takes back a call whose judgement holds no more; the model may ask for it again.
fn refuse_outdated(world: &mut World, entity: Entity, index: u32) {
    deny(world, entity, index, "taint", OUTDATED.to_owned());
    proceed(world, entity);
}

/// What the model reads of it.
const OUTDATED: &str = "Refused: after this call was allowed, another turn that has read untrusted content wrote files in the \
    workspace. It did not run; ask for it again if it is still needed.";

/// Sends one call out. `None` when its turn has ended meanwhile, or gave it up, or when whoever shares its place has none by now.
fn send_one(world: &mut World, entity: Entity, index: u32) -> Option<(Attempt, Out)> {
    let now = world.resource::<Now>().0;
    let turn = world.get::<Turn>(entity)?;
    let at = turn.pending.iter().position(|pending| pending.index == index)?;
    let pending = &turn.pending[at];
    if matches!(pending.state, PendingState::Adopted(_) | PendingState::Gated(_)) {
        return None;
    }
    let (owner, home) = (world.get::<Agent>(turn.agent)?, world.get::<Session>(turn.session)?);
    let holder = agent::holder_of(world, turn.agent);
    if !world.resource::<ToolLane>().has_room(holder) {
        // Since it came, the agent has got another owner, or its owner another role: it waits with the calls of that one.
        world.resource_mut::<ToolLane>().push(holder, entity, index);
        return None;
    }
    let attempt = Attempt::of(id_of::<TurnId>(world, entity), turn.attempt);
    let out =
        Out { agent: id_of(world, turn.agent), holder, writes: taint::may_write(world, entity, &pending.call.name) };
    // Of calls from before there was a count, it is only known that they were out.
    let (runs_before, sent_at) = match pending.state {
        PendingState::Out => (pending.runs.max(1), pending.sent_at),
        _ => (0, now),
    };
    let run = ToolRun {
        attempt,
        agent: out.agent,
        holder: out.holder,
        agent_name: owner.name.clone(),
        session: id_of(world, turn.session),
        log: home.log,
        ordinal: turn.ordinal,
        manifest: profile::manifest(owner, turn.request.as_deref()),
        index,
        call: pending.call.clone(),
        runs_before,
        sent_at,
        taint: taint::of(world, entity),
        agent_taint: owner.taint,
        trace: turn.request.as_ref().and_then(|request| request.trace.clone()),
        user: turn.request.as_ref().and_then(|request| request.user.clone()),
        consolidates: matches!(turn.origin, Origin::Dream { .. }),
    };
    // What it writes is there however the turn ends, and others may read it before its result is in.
    taint::files_left(world, entity, &run.call.name);
    let mut turn = world.get_mut::<Turn>(entity)?;
    let pending = &mut turn.pending[at];
    pending.runs = run.runs_before.saturating_add(1);
    (pending.state, pending.sent_at) = (PendingState::Out, sent_at);
    world.mark(entity);
    tool_audit::called(world, &run);
    world.effect(run);
    Some((attempt, out))
}

impl Settle for ToolOutcome {
    fn settle(self, world: &mut World) {
        settle(world, self.0, self.1);
    }
}

/// A tool call came back from the outside.
fn settle(world: &mut World, attempt: Attempt, end: ToolEnd) {
    world.resource_mut::<TurnTotals>().tool_calls += 1;
    world.resource_mut::<ToolLane>().give_back(attempt, end.index);
    let entity = index::turn(world, TurnId(attempt.job.0));
    let is_out = |turn: &Turn| {
        let waits = |pending: &PendingTool| pending.index == end.index && pending.state == PendingState::Out;
        turn.attempt == attempt.number && turn.pending.iter().any(waits)
    };
    match entity.filter(|entity| world.get::<Turn>(*entity).is_some_and(is_out)) {
        Some(entity) => accept(world, entity, end),
        None => world.resource_mut::<StaleOutcomes>().0 += 1,
    }
}

/// The call at `index` of the attempt is settled by the world: its place is free.
pub(super) fn no_longer_out(world: &mut World, attempt: Attempt, index: u32) {
    world.resource_mut::<ToolLane>().give_back(attempt, index);
}

/// A turn ends, perhaps with calls that are out: what they write until they are gone is in the workspace.
pub(super) fn left_out(world: &mut World, entity: Entity) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let out = turn.pending.iter().filter(|pending| pending.state == PendingState::Out);
    let tools: Vec<String> = out.map(|pending| pending.call.name.clone()).collect();
    tools.iter().for_each(|tool| taint::files_left(world, entity, tool));
}

/// The tool of the pending call at `index`; empty when there is no such call.
pub(super) fn name_of(world: &World, entity: Entity, index: u32) -> String {
    let turn = world.get::<Turn>(entity);
    let pending = turn.and_then(|turn| turn.pending.iter().find(|pending| pending.index == index));
    pending.map(|pending| pending.call.name.clone()).unwrap_or_default()
}

/// The call at `index` of the attempt will be answered by the turn `child`. False when nobody waits for it any more.
pub(super) fn adopt(world: &mut World, entity: Entity, attempt: Attempt, index: u32, child: TurnId) -> bool {
    no_longer_out(world, attempt, index);
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return false };
    let Some(pending) = turn.pending.iter_mut().find(|pending| pending.index == index) else { return false };
    pending.state = PendingState::Adopted(child);
    world.mark(entity);
    true
}

/// Takes a result in: its row, its trace, what it leaves to the owner; and the turn goes on when it was the last.
pub(super) fn accept(world: &mut World, entity: Entity, end: ToolEnd) {
    if stop::is_going(world, entity) {
        return stop::end_going(world, entity);
    }
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    let Some(at) = turn.pending.iter().position(|pending| pending.index == end.index) else { return };
    let sent_at = turn.pending.remove(at).sent_at;
    let (owner, session, ordinal) = (turn.agent, turn.session, turn.ordinal);
    let mut content = end.content;
    let journal = turn.journal.get_or_insert_default();
    let mut came = end.status;
    if let Some(notice) = end.notice {
        if journal.notices.len() < limit::NOTICES_MAX {
            // Calls of one answer end in any order; their notes stand in the order of the calls.
            let at = journal.notice_rows.partition_point(|row| *row < end.index).min(journal.notices.len());
            journal.notices.insert(at, notice.into());
            journal.notice_rows.insert(at, end.index);
        } else {
            came = ToolStatus::Error;
            content =
                format!("Could not notify the owner: the limit of {} notes per turn is reached.", limit::NOTICES_MAX);
        }
    }
    if end.status != ToolStatus::Unknown
        && let Some(warning) = guard::remember(journal, &end.call, end.whole.as_deref().unwrap_or(&content))
    {
        content.push_str(&warning);
    }
    let (is_error, status) = match came {
        ToolStatus::Ok => (false, StepStatus::Ok),
        ToolStatus::Error | ToolStatus::Refused => (true, StepStatus::Error),
        ToolStatus::Unknown => (true, StepStatus::Unknown),
    };
    // What it said is in the conversation, and goes with that.
    trace::step(world, entity, Ended::tool(&end.call.name, sent_at, status));
    if let Some(brought) = end.brought.as_deref() {
        taint::take_in(world, entity, &end.call.name, brought);
    }
    if end.status != ToolStatus::Refused {
        taint::read_meanwhile(world, entity, &end.call.name);
    }
    match end.status {
        ToolStatus::Ok | ToolStatus::Error if taint::writes_files(&end.call.name) => {
            taint::files_written(world, entity)
        }
        ToolStatus::Unknown => taint::files_left(world, entity, &end.call.name),
        _ => {}
    }
    let (agent, turn) = (id_of(world, owner), id_of::<TurnId>(world, entity));
    let tool = end.call.name.clone();
    if end.status == ToolStatus::Refused {
        tool_audit::refused(world, agent, turn, &end.call, "not_granted");
    }
    react(world, &ToolCallEnded { is_error });
    if end.status == ToolStatus::Unknown {
        world.resource_mut::<TurnTotals>().tools_unknown += 1;
        tool_audit::unknown(world, agent, turn, &end.call);
        world.event(Event::ToolUnknown { agent, turn, tool, index: end.index });
    } else {
        world.event(Event::ToolCalled { agent, turn, tool, is_error });
    }
    if let (Some(whole), Some(log)) = (end.whole, world.get::<Session>(session).map(|home| home.log)) {
        let key = record::result_key(MessageKey { log, ordinal, index: end.index });
        session::put_row(world, session, record::op(Space::Content, key, Some(whole.into_bytes())));
    }
    write_result(world, entity, end.index, end.call, content, is_error);
    proceed(world, entity);
}

/// When no call is left: the turn ends where it must, and asks its model again otherwise. This is the boundary at which
/// an interrupt takes effect.
pub(super) fn proceed(world: &mut World, entity: Entity) {
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    if !turn.state.has_calls() {
        return;
    }
    if !turn.pending.is_empty() {
        let is_gated = turn.pending.iter().all(|pending| matches!(pending.state, PendingState::Gated(_)));
        let state = if is_gated { TurnState::WaitingForApproval } else { TurnState::WaitingForTools };
        if turn.state != state {
            turn.state = state;
            world.mark(entity);
        }
        return;
    }
    if turn.cancelled {
        finish(world, entity, End::Interrupted);
    } else if turn.tool_calls > limit::TOOL_CALLS_PER_TURN_MAX {
        finish(world, entity, End::Failed(error_codes::TOOL_CIRCUIT_BREAKER, guard::breaker_text()));
    } else {
        admit::enqueue(world, entity);
    }
}
