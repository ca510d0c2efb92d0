//! The client talks to agents: messages, conversations, stops, approvals, memory.

use agentsvc_components::session::message::{ChatMessage, Role};
use agentsvc_components::turn::{ClientTool, Origin, TurnRequest};
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::approval::{
    ApprovalFilter, DecideApprovals, Decision, InvokeTool, ListApprovals, RequestApproval, WithdrawInvocation,
};
use agentsvc_systems::compaction::CompactSession;
use agentsvc_systems::kernel::record;
use agentsvc_systems::memory::{DeleteMemory, Doomed, GetMemoryUse, PutEntry, PutMemory};
use agentsvc_systems::taint::TrustFiles;
use agentsvc_systems::turn::{
    Conversation, ConversationTarget, InterruptSession, NewMessage, PostMessage, SendConversation, SendMessage,
    StopConversation, StopTurns,
};
use uuid::Uuid;

use super::action::What;
use super::client::agent;
use super::facts::{GONE, Told};
use super::harness::Harness;
use super::work;

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::Send | What::Post => message(harness, what == What::Send),
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
        What::WithdrawInvocation => {
            let known = harness.known.invocations.clone();
            let Some(id) = harness.rng.any(&known) else { return };
            harness.ask(WithdrawInvocation { id: Uuid::from_u128(id) }, |_, _| {});
        }
        What::TrustFiles => {
            let Some(agent) = agent(harness) else { return };
            harness.ask(TrustFiles { agent }, |_, _| {});
        }
        What::PutMemory | What::DeleteMemory => memory(harness, what == What::PutMemory),
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
    harness.ask(DecideApprovals { ids, decision, reason: None }, move |harness, _| {
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
