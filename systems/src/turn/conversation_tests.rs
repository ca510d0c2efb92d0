//! Conversations of one request: hidden, answered, gone; or going on in a session that stays.

use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, StopReason};
use agentsvc_components::turn::stream::StreamEvent;
use agentsvc_components::turn::{ClientTool, Origin, TurnEnd, TurnRequest};
use agentsvc_components::{AgentId, RefusalKind, SessionId, Timestamp};
use uuid::Uuid;

use super::{Conversation, ConversationTarget, PostConversation, SendConversation, StopConversation, TurnReply};
use crate::agent::{GetAgent, RemoveAgents, ResolveAgent, StopAgents};
use crate::session::{CleanupSessions, ClearHistory, GetSession, ListSessions, SetLabel, SwitchSession};
use crate::testing::{Asked, TestWorld, answer, tool_call};
use crate::turn::{NewMessage, SendMessage, StopTurns};
use crate::world::GetStats;

const HIDDEN: SessionId = SessionId(Uuid::from_u128(77));

fn said(role: Role, text: &str) -> ChatMessage {
    ChatMessage::text(role, text)
}

fn conversation(agent: AgentId, venue: ConversationTarget, messages: Vec<ChatMessage>) -> Conversation {
    Conversation { agent, venue, messages, origin: Origin::OpenAi, request: None }
}

fn hidden(agent: AgentId) -> Conversation {
    let messages = vec![said(Role::User, "a"), said(Role::Assistant, "b"), said(Role::User, "c")];
    conversation(agent, ConversationTarget::Hidden(HIDDEN), messages)
}

fn begin(world: &mut TestWorld, command: Conversation) -> Asked<TurnReply> {
    let asked = world.begin(SendConversation(command));
    world.step();
    asked
}

fn own_count(world: &mut TestWorld, agent: AgentId) -> (usize, u32) {
    (world.ask(GetStats).unwrap().sessions, world.ask(GetAgent(agent)).unwrap().message_count)
}

fn is_gone(world: &mut TestWorld) {
    assert_eq!(world.ask(GetStats).unwrap().sessions_hidden, 0);
    let stored = world.store.keys().filter(|(_, key)| key.first() == Some(&b's')).count();
    assert_eq!(stored, world.ask(GetStats).unwrap().sessions, "no record of a hidden session stays");
}

#[test]
fn a_hidden_session_lives_as_long_as_its_turn() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    let before = own_count(&mut world, agent);
    let asked = begin(&mut world, hidden(agent));
    assert_eq!(own_count(&mut world, agent), before);
    assert_eq!(world.ask(GetStats).unwrap().sessions_hidden, 1);
    let call = world.next_call();
    assert_eq!((call.session, call.ordinal), (HIDDEN, 1));
    assert_eq!(world.texts(call.log), ["a", "b", "c"]);
    world.answer(call.attempt, "d");
    let reply = asked.take().unwrap().unwrap();
    assert_eq!((reply.response.as_str(), reply.session, reply.end), ("d", HIDDEN, TurnEnd::Done));
    is_gone(&mut world);
    assert_eq!(own_count(&mut world, agent), before);
    let swept = |effect: &AnyEffect| effect.get() == Some(&SweepLog(call.log));
    assert!(world.effects.iter().any(swept), "its rows are erased");
}

#[test]
fn nobody_sees_or_uses_a_hidden_session() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    let asked = begin(&mut world, hidden(agent));
    let listed = world.ask(ListSessions { agent: Some(agent), limit: 10, ..Default::default() }).unwrap();
    assert_eq!((listed.items.len(), listed.total), (1, Some(1)));
    assert_eq!(world.ask(ListSessions { limit: 10, ..Default::default() }).unwrap().items.len(), 1);
    assert!(world.ask(GetSession::ById(HIDDEN)).is_err());
    assert!(world.ask(GetSession::Of(agent, HIDDEN)).is_err());
    assert!(world.ask(SetLabel { session: HIDDEN, label: "x".into() }).is_err());
    assert!(world.ask(SwitchSession { agent, session: HIDDEN }).is_err());
    assert!(world.ask(StopTurns { agent, session: Some(HIDDEN) }).is_err());
    let message = NewMessage::text("into it");
    let refusal = world.ask(SendMessage { agent, session: Some(HIDDEN), message }).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Forbidden);
    let again = world.ask(SendConversation(hidden(agent))).unwrap_err();
    assert_eq!(again.kind, RefusalKind::Conflict);
    world.ask(ClearHistory { agent }).unwrap();
    let late = Timestamp(world.now.0 + 1_000_000);
    assert_eq!(world.ask(CleanupSessions { unused_since: late, after: None }).unwrap().0, 0);
    let call = world.next_call();
    world.answer(call.attempt, "still here");
    assert_eq!(asked.take().unwrap().unwrap().response, "still here");
}

#[test]
fn however_the_turn_ends_the_session_goes() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    begin(&mut world, hidden(agent));
    assert!(world.ask(StopConversation(HIDDEN)).unwrap());
    let call = world.next_call();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
    is_gone(&mut world);
    assert!(!world.ask(StopConversation(HIDDEN)).unwrap());

    let asked = begin(&mut world, hidden(agent));
    world.ask(StopTurns { agent, session: None }).unwrap();
    let call = world.next_call();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
    assert_eq!(asked.take().unwrap().unwrap().end, TurnEnd::Stopped);
    is_gone(&mut world);

    let asked = begin(&mut world, hidden(agent));
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(asked.take().unwrap().unwrap_err().kind, RefusalKind::Conflict);
    is_gone(&mut world);
}

#[test]
fn a_restart_ends_hidden_turns_and_asks_no_model() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    let before = own_count(&mut world, agent);
    begin(&mut world, hidden(agent));
    let other = ConversationTarget::Hidden(SessionId(Uuid::from_u128(78)));
    begin(&mut world, conversation(agent, other, vec![said(Role::User, "x")]));
    let calls = [world.next_call(), world.next_call()];
    // One of them waits for a tool.
    world.outcome(ModelOutcome(calls[0].attempt, ModelEnd::Answered(answer(vec![tool_call("t")]))));
    world.restart();
    assert!(world.calls.is_empty(), "nobody reads the answer");
    let stats = world.ask(GetStats).unwrap();
    assert_eq!((stats.turns_open, stats.sessions_hidden), (0, 0));
    assert_eq!(own_count(&mut world, agent), before);
    is_gone(&mut world);
    for call in calls {
        assert!(world.effects.iter().any(|effect| effect.get() == Some(&SweepLog(call.log))));
    }
}

#[test]
fn a_call_of_a_clients_tool_ends_the_turn() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    let look = ClientTool { name: "look".into(), input_schema: "{}".into(), ..ClientTool::default() };
    let request = TurnRequest { tools: vec![look], ..TurnRequest::default() };
    let command = Conversation { request: Some(Box::new(request)), ..hidden(agent) };
    let asked = begin(&mut world, command);
    let call = world.next_call();
    assert_eq!(call.request.as_ref().unwrap().tools.len(), 1);
    let theirs = ToolCall { id: "c".into(), name: "look".into(), input: "{}".into() };
    let blocks = vec![Block::Text { text: "hm".into() }, tool_call("own"), Block::ToolCall(theirs.clone())];
    let mut said = answer(blocks);
    said.stop = StopReason::ToolUse;
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
    let reply = asked.take().unwrap().unwrap();
    assert_eq!((reply.response.as_str(), &reply.tool_calls), ("hm", &vec![theirs.clone()]));
    assert_eq!((reply.stop, reply.end), (StopReason::ToolUse, TurnEnd::Done));
    assert!(!world.effects.iter().any(|effect| effect.is::<ToolRun>()), "own tools did not run");
    let done = world.published.iter().rev().find_map(|item| match &item.event {
        StreamEvent::Done { tool_calls, response, stop, .. } => Some((tool_calls.clone(), response.clone(), *stop)),
        _ => None,
    });
    assert_eq!(done, Some((vec![theirs], None, StopReason::ToolUse)));
    is_gone(&mut world);
}

#[test]
fn a_kept_session_is_made_labelled_and_used_again() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    let venue = || ConversationTarget::Kept { session: HIDDEN, label: Some("user:tom".into()) };
    for (n, text) in ["one", "two"].into_iter().enumerate() {
        let asked = begin(&mut world, conversation(agent, venue(), vec![said(Role::User, text)]));
        let call = world.next_call();
        assert_eq!(call.ordinal, n as u32);
        world.answer(call.attempt, "yes");
        assert_eq!(asked.take().unwrap().unwrap().session, HIDDEN);
    }
    let view = world.ask(GetSession::ById(HIDDEN)).unwrap();
    assert_eq!((view.label.as_deref(), view.message_count), (Some("user:tom"), 4));
    // Another session bears the label already: the new one goes without.
    let other = SessionId(Uuid::from_u128(5));
    let venue = ConversationTarget::Kept { session: other, label: Some("user:tom".into()) };
    world.ask(PostConversation(conversation(agent, venue, vec![said(Role::User, "x")]))).unwrap();
    assert_eq!(world.ask(GetSession::ById(other)).unwrap().label, None);
}

#[test]
fn what_cannot_begin_changes_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("ada");
    let empty =
        world.ask(SendConversation(conversation(agent, ConversationTarget::Hidden(HIDDEN), vec![]))).unwrap_err();
    assert_eq!(empty.field.as_deref(), Some("messages"));
    world.ask(StopAgents(vec![agent])).unwrap();
    let refusal = world.ask(SendConversation(hidden(agent))).unwrap_err();
    assert_eq!(refusal.code.as_deref(), Some("agent_not_running"));
    is_gone(&mut world);
}

#[test]
fn an_agent_is_found_by_id_then_name_then_age() {
    let mut world = TestWorld::new();
    let resolve = |world: &mut TestWorld, id, name: &str| {
        world.ask(ResolveAgent { id, name: name.into() }).map(|view| view.name.to_string())
    };
    assert_eq!(resolve(&mut world, None, "ada").unwrap_err().kind, RefusalKind::NotFound);
    let (ada, bob) = (world.spawn("ada"), world.spawn("bob"));
    assert_eq!(resolve(&mut world, Some(bob), "ada").unwrap(), "bob");
    assert_eq!(resolve(&mut world, None, "bob").unwrap(), "bob");
    assert_eq!(resolve(&mut world, Some(AgentId(Uuid::nil())), "nobody").unwrap(), "ada");
    world.ask(RemoveAgents(vec![ada])).unwrap();
    assert_eq!(resolve(&mut world, None, "nobody").unwrap(), "bob");
}
