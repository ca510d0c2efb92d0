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
use agentsvc_systems::turn::{
    Conversation, InterruptSession, NewMessage, PostMessage, SendConversation, SendMessage, StopConversation,
    StopTurns, Venue,
};
use uuid::Uuid;

use super::action::What;
use super::client::agent;
use super::facts::{GONE, Told};
use super::house::House;
use super::work;

/// One request.
pub(crate) fn act(house: &mut House, what: What) {
    match what {
        What::Send | What::Post => message(house, what == What::Send),
        What::Converse => converse(house),
        What::StopConversation => {
            let known = house.known.conversations.clone();
            let Some(session) = house.dice.any(&known) else { return };
            house.ask(StopConversation(session), |_, _| {});
        }
        What::StopTurns => {
            let Some((agent, session)) = place(house) else { return };
            house.ask(StopTurns { agent, session }, |_, _| {});
        }
        What::Interrupt => {
            let Some((agent, Some(session))) = place(house) else { return };
            house.ask(InterruptSession { agent, session }, |_, _| {});
        }
        What::Compact => {
            let Some((agent, session)) = place(house) else { return };
            house.ask(CompactSession { agent, session }, |_, _| {});
        }
        What::Decide => decide(house),
        What::RequestApproval => {
            let Some(agent) = agent(house) else { return };
            let description = house.text("may I").into();
            house.ask(RequestApproval { agent, action: "act".into(), description, payload: "{}".into() }, |_, _| {});
        }
        What::InvokeTool => {
            let id = u128::from(house.dice.roll());
            house.known.invocations.push(id);
            let (agent, tool) = (agent(house), house.dice.pick(&["danger", "system_time"]).into());
            house.ask(InvokeTool { id: Uuid::from_u128(id), agent, tool, input: "{}".into() }, |_, _| {});
        }
        What::WithdrawInvocation => {
            let known = house.known.invocations.clone();
            let Some(id) = house.dice.any(&known) else { return };
            house.ask(WithdrawInvocation { id: Uuid::from_u128(id) }, |_, _| {});
        }
        What::PutMemory | What::DeleteMemory => memory(house, what == What::PutMemory),
        other => work::act(house, other),
    }
}

/// An agent, and sometimes one of its sessions.
fn place(house: &mut House) -> Option<(AgentId, Option<SessionId>)> {
    if house.dice.chance(50) {
        return Some((agent(house)?, None));
    }
    let known = &house.known.sessions;
    let from = known.len().saturating_sub(10);
    let (agent, session) = house.dice.any(&known[from..])?;
    Some((agent, Some(session)))
}

fn message(house: &mut House, waits: bool) {
    let Some((agent, mut session)) = place(house) else { return };
    if house.dice.chance(10) {
        session = Some(SessionId(Uuid::from_u128(u128::from(house.dice.roll()))));
    }
    if let Some(session) = session {
        // A message to a session that is not there makes it.
        house.facts.submit(format!("session/{agent}/{session}"), "lives");
    }
    let text = house.text("message");
    let (number, message) = (house.number, NewMessage::text(text));
    let note = move |house: &mut House, session, turn| {
        house.known.sessions.push((agent, session));
        house.facts.told(session, Told { number, agent, turn });
    };
    if waits {
        house.ask(SendMessage { agent, session, message }, move |house, reply| note(house, reply.session, reply.turn));
    } else {
        house.ask(PostMessage { agent, session, message }, move |house, taken| note(house, taken.session, taken.turn));
    }
}

fn converse(house: &mut House) {
    let Some(agent) = agent(house) else { return };
    let session = SessionId(Uuid::from_u128(u128::from(house.dice.roll())));
    let is_hidden = house.dice.chance(70);
    let venue = if is_hidden { Venue::Hidden(session) } else { Venue::Kept { session, label: None } };
    let tool = ClientTool { name: "client_tool".into(), input_schema: "{}".into(), ..ClientTool::default() };
    let tools = if house.dice.chance(50) { vec![tool] } else { Vec::new() };
    let request = Some(Box::new(TurnRequest { tools, ..TurnRequest::default() }));
    let messages = vec![ChatMessage::text(Role::User, house.text("conversation"))];
    house.known.conversations.push(session);
    let conversation = Conversation { agent, venue, messages, origin: Origin::OpenAi, request };
    house.ask(SendConversation(conversation), |_, _| {});
}

fn decide(house: &mut House) {
    let Ok(page) =
        house.read(ListApprovals { filter: ApprovalFilter { decided: false, agent: None }, after: None, limit: 20 })
    else {
        return;
    };
    let ids: Vec<_> = page.items.iter().map(|view| view.id).collect();
    let Some(id) = house.dice.any(&ids) else { return };
    let (decision, word) = house.dice.pick(&[(Decision::Approve, "approved"), (Decision::Reject, "rejected")]);
    let ids = if house.dice.chance(10) { ids } else { vec![id] };
    let facts: Vec<u64> = ids.iter().map(|id| house.facts.submit(format!("approval/{id}"), word)).collect();
    house.ask(DecideApprovals { ids, decision, reason: None }, move |house, _| {
        facts.into_iter().for_each(|fact| house.facts.acknowledge(fact));
    });
}

/// Memory is changed as the API does it: ask what is durable, look at the rows, bring what was seen.
fn memory(house: &mut House, is_put: bool) {
    let Some(agent) = agent(house) else { return };
    let key = format!("k{}", house.dice.below(4));
    let value = house.text("value");
    house.ask(GetMemoryUse(agent), move |house, seen| {
        let row = house.disk.content.get(&record::memory_key(agent, &key)).cloned();
        let old = row.and_then(|row| {
            record::decode::<agentsvc_components::memory::record::MemoryRecord>(key.as_bytes(), &row).ok()
        });
        let bytes = old.map(|old| (key.len() + old.value.len()) as u64);
        let name = format!("memory/{agent}/{key}");
        house.known.memories.insert((agent, key.clone()));
        let key: Box<str> = key.into();
        if is_put {
            let fact = house.facts.submit(name, value.as_str());
            let value = value.into();
            let entry = PutEntry { key, value, created_at: None, updated_at: None, replaces: bytes };
            let put = PutMemory { agent, revision: seen.revision, entries: vec![entry], by: None };
            house.ask(put, move |house, _| house.facts.acknowledge(fact));
        } else if let Some(bytes) = bytes {
            let fact = house.facts.submit(name, GONE);
            let delete =
                DeleteMemory { agent, revision: seen.revision, entries: vec![Doomed { key, bytes }], by: None };
            house.ask(delete, move |house, _| house.facts.acknowledge(fact));
        }
    });
}
