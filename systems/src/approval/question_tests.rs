//! Questions to a person, in virtual time.

use agentsvc_components::approval::ApprovalState;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use uuid::Uuid;

use super::*;
use crate::agent::{RemoveAgents, StopAgents};
use crate::kernel::entities::Get;
use crate::testing::{Asked, TestWorld};

const FORM: &str = r#"{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}"#;

fn question(agent: AgentId) -> AskPerson {
    AskPerson {
        id: Uuid::from_u128(7),
        agent,
        action: "mcp_elicitation".into(),
        description: "The MCP server asks.".into(),
        payload: "{}".into(),
        answer_schema: Some(FORM.into()),
        turn: None,
    }
}

fn begin(world: &mut TestWorld, question: AskPerson) -> (Asked<PersonAnswer>, ApprovalId) {
    let asked = world.begin(question);
    world.step();
    assert!(asked.take().is_none(), "the approval is pending");
    let list = ListApprovals { filter: ApprovalFilter::default(), after: None, limit: 100 };
    let [view] = &world.ask(list).unwrap().items[..] else { panic!("one approval") };
    (asked, view.id)
}

fn decide(world: &mut TestWorld, id: ApprovalId, decision: Decision, answer: Option<&str>) -> Result<(), Refusal> {
    let command = DecideApprovals { ids: vec![id], decision, reason: None, answer: answer.map(Into::into) };
    world.ask(command).map(drop)
}

fn ended(asked: &Asked<PersonAnswer>) -> (ApprovalState, Option<Box<str>>) {
    let PersonAnswer { state, answer } = asked.take().unwrap().unwrap();
    (state, answer)
}

#[test]
fn an_answer_that_the_form_takes_goes_to_who_asked_and_is_not_kept() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let (asked, id) = begin(&mut world, question(agent));
    for (answer, field) in [(None, "answer.name"), (Some("{\"name\":\"\"}"), "answer.name"), (Some("[]"), "answer")] {
        let refusal = decide(&mut world, id, Decision::Approve, answer).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::BadRequest, Some(field)));
        assert!(asked.take().is_none());
    }
    let refusal = decide(&mut world, id, Decision::Reject, Some("{}")).unwrap_err();
    assert_eq!(refusal.field.as_deref(), Some("answer"));
    decide(&mut world, id, Decision::Approve, Some("{\"name\":\"hunter2\"}")).unwrap();
    assert_eq!(ended(&asked), (ApprovalState::Approved, Some("{\"name\":\"hunter2\"}".into())));
    assert_eq!(world.ask(Get::<ApprovalView>(id)).unwrap().approval.state, ApprovalState::Approved);
    assert!(!world.store.values().any(|value| value.windows(7).any(|part| part == b"hunter2")));
}

#[test]
fn without_an_answer_it_is_rejected_withdrawn_or_expires() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let (asked, id) = begin(&mut world, question(agent));
    decide(&mut world, id, Decision::Reject, None).unwrap();
    assert_eq!(ended(&asked), (ApprovalState::Rejected, None));

    let (asked, id) = begin(&mut world, question(agent));
    world.ask(WithdrawInvocation { id: Uuid::from_u128(7) }).unwrap();
    assert_eq!(ended(&asked), (ApprovalState::Expired, None));
    let reason = world.ask(Get::<ApprovalView>(id)).unwrap().approval.reason;
    assert_eq!(reason.as_deref(), Some("what asked for it has ended"));

    let (asked, id) = begin(&mut world, question(agent));
    world.now = world.ask(Get::<ApprovalView>(id)).unwrap().approval.deadline.plus_ms(1);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    assert_eq!(ended(&asked), (ApprovalState::Expired, None));

    let (asked, _) = begin(&mut world, question(agent));
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(ended(&asked), (ApprovalState::Expired, None));
}

#[test]
fn a_restart_expires_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let (_asked, id) = begin(&mut world, question(agent));
    assert!(!world.engine.is_quiet());
    world.restart();
    let approval = world.ask(Get::<ApprovalView>(id)).unwrap().approval;
    assert_eq!((approval.state, approval.answer_schema.as_deref()), (ApprovalState::Expired, Some(FORM)));
    assert!(approval.reason.unwrap().contains("restarted"));
}

#[test]
fn refusals_change_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let long: Box<str> = "x".repeat(limit::APPROVAL_PAYLOAD_BYTES_MAX + 1).into();
    for (field, wrong) in [
        ("answer_schema", AskPerson { answer_schema: Some("{\"type\":\"object\"}".into()), ..question(agent) }),
        ("payload", AskPerson { payload: long.clone(), ..question(agent) }),
        ("description", AskPerson { description: long.clone(), ..question(agent) }),
        ("action", AskPerson { action: long.clone(), ..question(agent) }),
    ] {
        assert_eq!(world.ask(wrong).unwrap_err().field.as_deref(), Some(field));
    }
    let gone = AskPerson { agent: AgentId(Uuid::from_u128(9)), ..question(agent) };
    assert_eq!(world.ask(gone).unwrap_err().kind, RefusalKind::NotFound);
    world.ask(StopAgents(vec![agent])).unwrap();
    assert_eq!(world.ask(question(agent)).unwrap_err().code.as_deref(), Some("agent_not_running"));
    assert_eq!(world.ask(CountApprovals).unwrap(), ApprovalCounts::default());
}

#[test]
fn what_needs_an_answer_is_approved_by_itself_and_what_does_not_takes_none() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let request = RequestApproval { agent, action: "act".into(), description: "".into(), payload: "{}".into() };
    let plain = world.ask(request).unwrap().id;
    let refusal = decide(&mut world, plain, Decision::Approve, Some("{}")).unwrap_err();
    assert_eq!(refusal.field.as_deref(), Some("answer"));
    let asked = world.begin(question(agent));
    world.step();
    let list = ListApprovals { filter: ApprovalFilter::default(), after: None, limit: 100 };
    let ids: Vec<_> = world.ask(list).unwrap().items.iter().map(|view| view.id).collect();
    assert_eq!(ids.len(), 2);
    let both = |decision| DecideApprovals { ids: ids.clone(), decision, reason: None, answer: None };
    assert_eq!(world.ask(both(Decision::Approve)).unwrap_err().field.as_deref(), Some("answer"));
    world.ask(both(Decision::Reject)).unwrap();
    assert_eq!(ended(&asked).0, ApprovalState::Rejected);
}
