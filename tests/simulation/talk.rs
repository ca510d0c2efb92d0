//! The client talks to agents: messages, conversations, stops, approvals, memory.

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{ChatMessage, Role, Usage};
use agentsvc_components::turn::{ClientTool, Origin, TurnRequest};
use agentsvc_components::usage::CallUse;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::approval::{
    ApprovalFilter, AskPerson, DecideApprovals, Decision, InvokeTool, ListApprovals, RequestApproval,
    WithdrawInvocation,
};
use agentsvc_systems::budget::{ReserveSampling, SAMPLING};
use agentsvc_systems::comms::SendBetween;
use agentsvc_systems::compaction::CompactSession;
use agentsvc_systems::kernel::record;
use agentsvc_systems::memory::{DeleteMemory, Doomed, GetMemoryUse, PutEntry, PutMemory};
use agentsvc_systems::taint::TrustFiles;
use agentsvc_systems::turn::{
    Conversation, ConversationTarget, InterruptSession, NewMessage, PostMessage, SendConversation, SendMessage,
    StopConversation, StopTurns,
};
use agentsvc_systems::usage::NoteModelCall;
use uuid::Uuid;

use super::action::What;
use super::client::agent;
use super::entries;
use super::facts::{GONE, Told};
use super::harness::Harness;
use super::{dreams, knowledge, work};

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::Send | What::Post => message(harness, what == What::Send),
        What::SendBetween => between(harness),
        What::SendPeer => peer(harness),
        What::Converse => converse(harness),
        What::StopConversation => {
            let known = harness.known.conversations.clone();
            let Some(session) = harness.rng.any(&known) else { return };
            harness.ask(StopConversation(session), |_, _| {});
        }
        What::StopTurns => {
            let Some((agent, session)) = place(harness) else { return };
            harness.ask(StopTurns { agent, session }, |_, _| {});
        }
        What::Interrupt => {
            let Some((agent, Some(session))) = place(harness) else { return };
            harness.ask(InterruptSession { agent, session }, |_, _| {});
        }
        What::Compact => {
            let Some((agent, session)) = place(harness) else { return };
            harness.ask(CompactSession { agent, session }, |_, _| {});
        }
        What::Decide => decide(harness),
        What::RequestApproval => {
            let Some(agent) = agent(harness) else { return };
            let description = harness.text("may I").into();
            harness.ask(RequestApproval { agent, action: "act".into(), description, payload: "{}".into() }, |_, _| {});
        }
        What::InvokeTool => {
            let id = u128::from(harness.rng.roll());
            harness.known.invocations.push(id);
            let (agent, tool) = (agent(harness), harness.rng.pick(&["danger", "system_time"]).into());
            harness.ask(InvokeTool { id: Uuid::from_u128(id), agent, tool, input: "{}".into() }, |_, _| {});
        }
        What::AskPerson => {
            let Some(agent) = agent(harness) else { return };
            let id = u128::from(harness.rng.roll());
            harness.known.invocations.push(id);
            let description = harness.text("fill it in").into();
            let form = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
            let answer_schema = harness.rng.chance(50).then(|| form.into());
            let (id, action, payload) = (Uuid::from_u128(id), "ask".into(), "{}".into());
            harness.ask(AskPerson { id, agent, action, description, payload, answer_schema, turn: None }, |_, _| {});
        }
        What::Sample => sample(harness),
        What::WithdrawInvocation => {
            let known = harness.known.invocations.clone();
            let Some(id) = harness.rng.any(&known) else { return };
            harness.ask(WithdrawInvocation { id: Uuid::from_u128(id) }, |_, _| {});
        }
        What::TrustFiles => {
            let Some(agent) = agent(harness) else { return };
            harness.ask(TrustFiles { agent }, |_, _| {});
        }
        What::PutEntry | What::RemoveEntry => {
            let Some(agent) = agent(harness) else { return };
            entries::act(harness, what, agent);
        }
        What::PutMemory | What::DeleteMemory => memory(harness, what == What::PutMemory),
        What::PutKnowledge | What::DeleteKnowledge => knowledge::act(harness, what == What::PutKnowledge),
        What::SetDream | What::TriggerDream | What::AbortDream => dreams::act(harness, what),
        other => work::act(harness, other),
    }
}

/// An agent, and sometimes one of its sessions.
fn place(harness: &mut Harness) -> Option<(AgentId, Option<SessionId>)> {
    if harness.rng.chance(50) {
        return Some((agent(harness)?, None));
    }
    let known = &harness.known.sessions;
    let from = known.len().saturating_sub(10);
    let (agent, session) = harness.rng.any(&known[from..])?;
    Some((agent, Some(session)))
}

fn message(harness: &mut Harness, waits: bool) {
    let Some((agent, mut session)) = place(harness) else { return };
    if harness.rng.chance(10) {
        session = Some(SessionId(Uuid::from_u128(u128::from(harness.rng.roll()))));
    }
    if let Some(session) = session {
        // A message to a session that is not there makes it.
        harness.facts.submit(format!("session/{agent}/{session}"), "lives");
    }
    let text = harness.text("message");
    let (number, message) = (harness.number, NewMessage::text(text));
    let note = move |harness: &mut Harness, session, turn| {
        harness.known.sessions.push((agent, session));
        harness.facts.told(session, Told { number, agent, turn });
    };
    if waits {
        harness.ask(SendMessage { agent, session, message }, move |harness, reply| {
            note(harness, reply.session, reply.turn)
        });
    } else {
        harness.ask(PostMessage { agent, session, message }, move |harness, taken| {
            note(harness, taken.session, taken.turn)
        });
    }
}

/// One of the agents may be removed before the message arrives, and both may be the same.
fn between(harness: &mut Harness) {
    let (Some(from), Some((to, session))) = (agent(harness), place(harness)) else { return };
    let message = NewMessage::text(harness.text("in the name of another"));
    let number = harness.number;
    if let Some(session) = session {
        harness.facts.submit(format!("session/{to}/{session}"), "lives");
    }
    harness.ask(SendBetween { from, to, session, message }, move |harness, reply| {
        harness.known.sessions.push((to, reply.session));
        harness.facts.told(reply.session, Told { number, agent: to, turn: reply.turn });
    });
}

/// A message of one of few nodes, in the session that the node has with the agent.
fn peer(harness: &mut Harness) {
    let Some(agent) = agent(harness) else { return };
    let node = harness.rng.below(3) as u128;
    let session = SessionId(Uuid::from_u128(agent.0.as_u128() ^ ((node + 1) << 64)));
    harness.facts.submit(format!("session/{agent}/{session}"), "lives");
    let text = harness.text("another node says");
    let message = NewMessage { origin: Origin::Peer, taint: Taint::PEER, ..NewMessage::text(text) };
    let number = harness.number;
    harness.ask(SendMessage { agent, session: Some(session), message }, move |harness, reply| {
        harness.known.sessions.push((agent, reply.session));
        harness.facts.told(reply.session, Told { number, agent, turn: reply.turn });
    });
}

fn converse(harness: &mut Harness) {
    let Some(agent) = agent(harness) else { return };
    let session = SessionId(Uuid::from_u128(u128::from(harness.rng.roll())));
    let is_hidden = harness.rng.chance(70);
    let venue =
        if is_hidden { ConversationTarget::Hidden(session) } else { ConversationTarget::Kept { session, label: None } };
    let tool = ClientTool { name: "client_tool".into(), input_schema: "{}".into(), ..ClientTool::default() };
    let tools = if harness.rng.chance(50) { vec![tool] } else { Vec::new() };
    let request = Some(Box::new(TurnRequest { tools, ..TurnRequest::default() }));
    let messages = vec![ChatMessage::text(Role::User, harness.text("conversation"))];
    harness.known.conversations.push(session);
    let conversation = Conversation { agent, venue, messages, origin: Origin::OpenAi, request };
    harness.ask(SendConversation(conversation), |_, _| {});
}

/// A tool that runs asks the model of its agent.
fn sample(harness: &mut Harness) {
    let runs = harness.outside.tools();
    let Some((agent, turn)) = harness.rng.any(&runs) else { return };
    harness.ask(ReserveSampling { agent, turn, answer_tokens_max: 10 }, |harness, reserved| {
        let usage = Usage::of(harness.rng.below(50) as u64, harness.rng.below(10) as u64);
        let (provider, model) = (reserved.model.provider, reserved.model.model);
        let used = CallUse { provider, model, usage, ..CallUse::default() };
        harness.ask(NoteModelCall { channel: SAMPLING.into(), grant: Some(reserved.grant), used }, |_, _| {});
    });
}

fn decide(harness: &mut Harness) {
    let Ok(page) =
        harness.read(ListApprovals { filter: ApprovalFilter { decided: false, agent: None }, after: None, limit: 20 })
    else {
        return;
    };
    let ids: Vec<_> = page.items.iter().map(|view| view.id).collect();
    let Some(id) = harness.rng.any(&ids) else { return };
    let (decision, word) = harness.rng.pick(&[(Decision::Approve, "approved"), (Decision::Reject, "rejected")]);
    let ids = if harness.rng.chance(10) { ids } else { vec![id] };
    let facts: Vec<u64> = ids.iter().map(|id| harness.facts.submit(format!("approval/{id}"), word)).collect();
    harness.ask(DecideApprovals { ids, decision, reason: None, answer: None }, move |harness, _| {
        facts.into_iter().for_each(|fact| harness.facts.acknowledge(fact));
    });
}

/// Memory is changed as the API does it: ask what is durable, look at the rows, bring what was seen.
fn memory(harness: &mut Harness, is_put: bool) {
    let Some(agent) = agent(harness) else { return };
    let key = format!("k{}", harness.rng.below(4));
    let value = harness.text("value");
    harness.ask(GetMemoryUse(agent), move |harness, seen| {
        let row = harness.disk.content.get(&record::memory_key(agent, &key)).cloned();
        let old = row.and_then(|row| {
            record::decode::<agentsvc_components::memory::record::MemoryRecord>(key.as_bytes(), &row).ok()
        });
        let bytes = old.map(|old| (key.len() + old.value.len()) as u64);
        let name = format!("memory/{agent}/{key}");
        harness.known.memories.insert((agent, key.clone()));
        let key: Box<str> = key.into();
        if is_put {
            let fact = harness.facts.submit(name, value.as_str());
            let value = value.into();
            let entry = PutEntry { key, value, created_at: None, updated_at: None, replaces: bytes };
            let put = PutMemory { agent, revision: seen.revision, entries: vec![entry], by: None };
            harness.ask(put, move |harness, _| harness.facts.acknowledge(fact));
        } else if let Some(bytes) = bytes {
            let fact = harness.facts.submit(name, GONE);
            let delete =
                DeleteMemory { agent, revision: seen.revision, entries: vec![Doomed { key, bytes }], by: None };
            harness.ask(delete, move |harness, _| harness.facts.acknowledge(fact));
        }
    });
}
