//! Approvals in virtual time: tool calls that wait for a person, and those that clients ask for.

use agentsvc_components::approval::ApprovalState;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, Role, ToolCall};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::config::Settings;
use crate::kernel::entities::Get;
use crate::session::GetSession;
use crate::testing::{Asked, TestWorld, answer};
use crate::turn::{InterruptSession, NewMessage, SendMessage, StopTurns, TurnReply};

pub(super) fn world() -> (TestWorld, AgentId) {
    let settings = Settings { require_approval: vec!["danger*".into()], ..Settings::default() };
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    (world, agent)
}

pub(super) fn send(world: &mut TestWorld, agent: AgentId) -> Asked<TurnReply> {
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") });
    world.step();
    asked
}

/// The model of the next call asks for these tools.
pub(super) fn model_asks(world: &mut TestWorld, tools: &[&str]) {
    let attempt = world.next_call().attempt;
    let call = |(at, name): (usize, &&str)| {
        Block::ToolCall(ToolCall { id: format!("c{at}"), name: (*name).into(), input: format!("{{\"n\":{at}}}") })
    };
    let blocks = tools.iter().enumerate().map(call).collect();
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(blocks))));
}

fn runs(world: &mut TestWorld) -> Vec<ToolRun> {
    let effects = std::mem::take(&mut world.effects);
    effects.into_iter().filter_map(|e| e.take::<ToolRun>().ok().map(|run| *run)).collect()
}

fn tool_answers(world: &mut TestWorld, run: &ToolRun) {
    let (index, call) = (run.index, run.call.clone());
    let end = ToolEnd {
        index,
        call,
        content: "ran".into(),
        whole: None,
        notice: None,
        brought: None,
        status: ToolStatus::Ok,
    };
    world.outcome(ToolOutcome(run.attempt, end));
}

fn results(world: &mut TestWorld, agent: AgentId) -> Vec<String> {
    let log = world.ask(GetSession::Current(agent)).unwrap().log;
    let rows = world.rows(log).into_iter().filter(|row| row.role == Role::Tool).flat_map(|row| row.blocks);
    rows.filter_map(|block| if let Block::ToolResult { content, .. } = block { Some(content) } else { None }).collect()
}

pub(super) fn pending(world: &mut TestWorld) -> Vec<ApprovalView> {
    world
        .ask(ListApprovals { filter: ApprovalFilter { decided: false, agent: None }, after: None, limit: 100 })
        .unwrap()
        .items
}

pub(super) fn decide(
    world: &mut TestWorld,
    ids: &[ApprovalId],
    decision: Decision,
) -> Result<Vec<ApprovalView>, Refusal> {
    world.ask(DecideApprovals { ids: ids.to_vec(), decision, reason: None, answer: None })
}

#[test]
fn an_approved_call_runs_once_also_across_restarts_and_beside_calls_that_need_none() {
    let (mut world, agent) = world();
    let _asked = send(&mut world, agent);
    model_asks(&mut world, &["dangerous", "harmless"]);
    let out = runs(&mut world);
    assert_eq!(out.iter().map(|run| &*run.call.name).collect::<Vec<_>>(), ["harmless"]);
    tool_answers(&mut world, &out[0]);
    let [view] = &pending(&mut world)[..] else { panic!("one approval") };
    assert_eq!((&*view.approval.action, &*view.approval.payload), ("dangerous", "{\"n\":0}"));
    world.restart();
    assert!(runs(&mut world).is_empty() && world.calls.is_empty(), "the turn waits on");
    assert_eq!(pending(&mut world), std::slice::from_ref(view));
    let decided = decide(&mut world, &[view.id], Decision::Approve).unwrap();
    assert_eq!(decided[0].approval.state, ApprovalState::Approved);
    let out = runs(&mut world);
    assert_eq!((out.len(), &*out[0].call.name, out[0].runs_before), (1, "dangerous", 0));
    tool_answers(&mut world, &out[0]);
    assert_eq!(results(&mut world, agent), ["ran", "ran"]);
    assert_eq!(world.calls.len(), 1);
    let again = decide(&mut world, &[view.id], Decision::Reject).unwrap_err();
    assert_eq!((again.kind, again.code.as_deref()), (RefusalKind::Conflict, Some("approval_decided")));
    assert!(runs(&mut world).is_empty());
}

#[test]
fn a_kill_right_after_the_decision_neither_loses_nor_repeats_the_call() {
    let (mut world, agent) = world();
    let _asked = send(&mut world, agent);
    model_asks(&mut world, &["dangerous"]);
    let id = pending(&mut world)[0].id;
    decide(&mut world, &[id], Decision::Approve).unwrap();
    let out = runs(&mut world);
    assert_eq!(out.len(), 1);
    world.restart();
    // Whoever runs tools is told that it may have run.
    let out = runs(&mut world);
    assert_eq!((out.len(), out[0].runs_before), (1, 1));
}

#[test]
fn a_rejection_and_a_deadline_are_results_that_the_model_reads() {
    let (mut world, agent) = world();
    let asked = send(&mut world, agent);
    model_asks(&mut world, &["dangerous", "danger_too"]);
    let ids: Vec<ApprovalId> = pending(&mut world).iter().map(|view| view.id).collect();
    let reason = Some("not on a Friday".into());
    world.ask(DecideApprovals { ids: vec![ids[0]], decision: Decision::Reject, reason, answer: None }).unwrap();
    assert!(world.calls.is_empty(), "the other still waits");
    world.now = world.now.plus_ms(3_600_001);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    let told = results(&mut world, agent);
    assert!(told[0].contains("rejected") && told[0].contains("not on a Friday"), "{told:?}");
    assert!(told[1].contains("no decision was made in time"), "{told:?}");
    assert!(runs(&mut world).is_empty());
    let attempt = world.next_call().attempt;
    world.answer(attempt, "as you wish");
    assert_eq!(asked.take().unwrap().unwrap().end, TurnEnd::Done);
    let page = world
        .ask(ListApprovals { filter: ApprovalFilter { decided: true, agent: None }, after: None, limit: 100 })
        .unwrap();
    let states: Vec<ApprovalState> = page.items.iter().map(|view| view.approval.state).collect();
    assert_eq!(states, [ApprovalState::Expired, ApprovalState::Rejected], "the backups, newest first");
}

#[test]
fn a_clock_that_is_set_back_makes_nobody_wait_longer_for_a_decision() {
    for is_restarted in [false, true] {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        let (description, payload) = (Box::default(), "{}".into());
        world.ask(RequestApproval { agent, action: "act".into(), description, payload }).unwrap();
        world.now = world.now.plus_ms(-86_400_000);
        if is_restarted {
            world.restart();
        }
        for (ms, waiting) in [(0, 1), (3_600_001, 0)] {
            world.now = world.now.plus_ms(ms);
            world.engine.set_now(world.now);
            world.engine.beat();
            world.step();
            assert_eq!(pending(&mut world).len(), waiting, "restarted: {is_restarted}, {ms} ms later");
            assert_eq!(world.engine.check(), Vec::<String>::new());
        }
    }
}

#[test]
fn decisions_stand_in_the_order_in_which_they_were_made() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let request = || RequestApproval { agent, action: "act".into(), description: Box::default(), payload: "{}".into() };
    let ids: Vec<ApprovalId> = (0..5).map(|_| world.ask(request()).unwrap().id).collect();
    for at in [3, 0, 4, 1] {
        world.now = world.now.plus_ms(10);
        world.engine.set_now(world.now);
        decide(&mut world, &[ids[at]], Decision::Reject).unwrap();
    }
    let expected = [ids[1], ids[4], ids[0], ids[3]];
    for _ in 0..2 {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = world
                .ask(ListApprovals { filter: ApprovalFilter { decided: true, agent: None }, after, limit: 1 })
                .unwrap();
            listed.extend(page.items.iter().map(|view| view.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, expected);
        world.restart();
    }
    assert_eq!(world.ask(CountApprovals).unwrap(), ApprovalCounts { pending: 1, of_strangers: 0, decided: 4 });
}

#[test]
fn a_batch_is_all_or_nothing() {
    let (mut world, agent) = world();
    let _asked = send(&mut world, agent);
    model_asks(&mut world, &["dangerous", "danger_too"]);
    let ids: Vec<ApprovalId> = pending(&mut world).iter().map(|view| view.id).collect();
    let nobody = ApprovalId(uuid::Uuid::from_u128(7));
    assert_eq!(decide(&mut world, &[ids[0], nobody], Decision::Approve).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(pending(&mut world).len(), 2, "nothing has changed");
    assert_eq!(decide(&mut world, &[ids[0], ids[1], ids[0]], Decision::Approve).unwrap().len(), 2);
    assert_eq!(runs(&mut world).len(), 2);
}

#[test]
fn an_approval_goes_with_its_turn_and_its_agent() {
    type End = fn(&mut TestWorld, AgentId);
    let stop: End = |world, agent| {
        world.ask(StopTurns { agent, session: None }).unwrap();
    };
    let interrupt: End = |world, agent| {
        let session = world.ask(GetSession::Current(agent)).unwrap().id;
        world.ask(InterruptSession { agent, session }).unwrap();
    };
    let remove: End = |world, agent| {
        world.ask(RemoveAgents(vec![agent])).unwrap();
    };
    for end in [stop, interrupt, remove] {
        let (mut world, agent) = world();
        let asked = send(&mut world, agent);
        model_asks(&mut world, &["dangerous"]);
        let id = pending(&mut world)[0].id;
        end(&mut world, agent);
        assert!(asked.take().is_some(), "the turn has ended");
        assert_eq!(world.ask(CountApprovals).unwrap(), ApprovalCounts { pending: 0, of_strangers: 0, decided: 1 });
        let late = decide(&mut world, &[id], Decision::Approve).unwrap_err();
        assert_eq!(late.kind, RefusalKind::Conflict);
        assert!(runs(&mut world).is_empty());
    }
}

#[test]
fn the_manifest_gates_too_and_a_client_may_ask() {
    let mut world = TestWorld::new();
    let text = "name = \"m\"\nrequire_approval = [\"x\"]\n[capabilities]\ntools = [\"*\"]\n";
    let parsed = crate::manifest::parse(text).unwrap();
    let hash = crate::manifest::hash(&parsed.manifest);
    let command =
        crate::agent::SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
    let agent = world.ask(command).unwrap().agent;
    let _asked = send(&mut world, agent);
    model_asks(&mut world, &["x", "y"]);
    assert_eq!(runs(&mut world).len(), 1);
    let request = |action: &str| RequestApproval {
        agent,
        action: action.into(),
        description: "Send the mail".into(),
        payload: "{}".into(),
    };
    let asked = world.ask(request("send_mail")).unwrap();
    assert!(asked.approval.call.is_none());
    assert_eq!(world.ask(request(" ")).unwrap_err().field.as_deref(), Some("action"));
    assert_eq!(world.ask(CountApprovals).unwrap().pending, 2);
    world.restart();
    decide(&mut world, &[asked.id], Decision::Approve).unwrap();
    assert_eq!(world.ask(Get::<ApprovalView>(asked.id)).unwrap().approval.state, ApprovalState::Approved);
}

#[test]
fn what_a_client_asked_for_expires_with_its_agent_and_no_other() {
    let mut world = TestWorld::new();
    let (gone, stays) = (world.spawn("gone"), world.spawn("stays"));
    let request = |agent| RequestApproval {
        agent,
        action: "send_mail".into(),
        description: "Send the mail".into(),
        payload: "{}".into(),
    };
    let ids: Vec<ApprovalId> = [gone, stays, gone].map(|agent| world.ask(request(agent)).unwrap().id).into();
    world.restart();
    world.ask(RemoveAgents(vec![gone])).unwrap();
    let states: Vec<ApprovalState> =
        ids.iter().map(|id| world.ask(Get::<ApprovalView>(*id)).unwrap().approval.state).collect();
    assert_eq!(states, [ApprovalState::Expired, ApprovalState::Pending, ApprovalState::Expired]);
    assert_eq!(world.ask(CountApprovals).unwrap(), ApprovalCounts { pending: 1, of_strangers: 0, decided: 2 });
}

#[test]
fn one_beat_ends_a_bounded_number_of_approvals_and_the_next_the_rest() {
    let (mut world, agent) = world();
    let agents = [agent, world.spawn("b")];
    let many = limit::APPROVALS_EXPIRED_MAX + 5;
    for at in 0..many {
        let (agent, action, payload) = (agents[at % 2], "act".into(), "{}".into());
        let asked = RequestApproval { agent, action, description: Box::default(), payload };
        world.begin(asked);
    }
    world.step();
    assert_eq!(world.engine.stats().approvals_pending, many);
    world.now = world.now.plus_ms(3_600_001);
    world.engine.set_now(world.now);
    for left in [5, 0] {
        world.engine.beat();
        world.step();
        assert_eq!(world.engine.stats().approvals_pending, left);
    }
}

fn small(agent: AgentId) -> RequestApproval {
    RequestApproval { agent, action: "act".into(), description: Box::default(), payload: "{}".into() }
}

/// Asks for so many approvals as one agent may have.
fn take_share(world: &mut TestWorld, agent: AgentId) {
    for _ in 0..limit::APPROVALS_PENDING_OF_AGENT_MAX {
        world.begin(small(agent));
    }
    world.step();
}

#[test]
fn an_agent_leaves_approvals_to_others_also_after_a_restart() {
    let (mut world, agent) = world();
    let other = world.spawn("b");
    take_share(&mut world, agent);
    for _ in 0..2 {
        let refused = world.ask(small(agent)).unwrap_err();
        assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::TooMany, Some(60)));
        assert!(refused.message.contains("calls of this agent wait for approval (1000)"), "{}", refused.message);
        let tool = "dangerous".into();
        let invoked = InvokeTool { id: Uuid::from_u128(7), agent: Some(agent), tool, input: "{}".into() };
        assert_eq!(world.ask(invoked).unwrap_err().kind, RefusalKind::TooMany);
        world.ask(small(other)).unwrap();
        world.restart();
    }
    let asked = send(&mut world, agent);
    model_asks(&mut world, &["dangerous"]);
    assert!(results(&mut world, agent)[0].contains("needs approval, and too many calls of this agent wait"));
    let attempt = world.next_call().attempt;
    world.answer(attempt, "then not");
    assert!(asked.take().is_some());
    // What is decided makes room for as many.
    let id = pending(&mut world)[0].id;
    decide(&mut world, &[id], Decision::Approve).unwrap();
    world.ask(small(agent)).unwrap();
    world.ask(small(agent)).unwrap_err();
    // So does what expires, and the share of an agent goes with it.
    world.now = world.now.plus_ms(3_600_001);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    world.ask(small(agent)).unwrap();
    world.ask(RemoveAgents(vec![agent, other])).unwrap();
    assert!(world.engine.world_mut().resource::<Approvals>().pending_of.is_empty());
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn the_texts_of_one_agents_approvals_leave_room_to_others() {
    let (mut world, agent) = world();
    let other = world.spawn("b");
    let payload: Box<str> = "p".repeat(limit::APPROVAL_PAYLOAD_BYTES_MAX).into();
    let request = |agent| RequestApproval { payload: payload.clone(), ..small(agent) };
    let most = limit::APPROVALS_PENDING_OF_AGENT_BYTES_MAX / payload.len();
    for _ in 0..most {
        world.ask(request(agent)).unwrap();
    }
    let refused = world.ask(request(agent)).unwrap_err();
    assert!(refused.message.contains("calls of this agent wait for approval (128)"), "{}", refused.message);
    world.ask(request(other)).unwrap();
    let ids: Vec<ApprovalId> = pending(&mut world).iter().map(|view| view.id).collect();
    decide(&mut world, &ids[..1], Decision::Reject).unwrap();
    world.ask(request(agent)).unwrap();
}

#[test]
fn when_too_many_wait_nobody_is_asked_and_so_many_decisions_are_kept() {
    let (mut world, agent) = world();
    for other in 1..limit::APPROVALS_PENDING_MAX / limit::APPROVALS_PENDING_OF_AGENT_MAX {
        let other = world.spawn(&format!("other-{other}"));
        take_share(&mut world, other);
    }
    take_share(&mut world, agent);
    let late = world.spawn("late");
    let refused = world.ask(small(late)).unwrap_err();
    assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::TooMany, Some(60)));
    assert!(refused.message.contains("10000 pending approvals"), "{}", refused.message);
    let invoked =
        InvokeTool { id: Uuid::from_u128(7), agent: Some(late), tool: "dangerous".into(), input: "{}".into() };
    assert_eq!(world.ask(invoked).unwrap_err().kind, RefusalKind::TooMany);
    // A call of a turn that needs one does not run; its model is told, and goes on.
    let asked = send(&mut world, late);
    model_asks(&mut world, &["dangerous"]);
    assert!(runs(&mut world).is_empty());
    assert!(results(&mut world, late)[0].contains("needs approval, and the limit of 10000 pending"));
    let attempt = world.next_call().attempt;
    world.answer(attempt, "then not");
    assert_eq!(asked.take().unwrap().unwrap().response, "then not");
    // Decided ones are kept up to their own bound; the oldest go.
    let (first, its) = pending(&mut world).first().map(|view| (view.id, view.approval.agent)).unwrap();
    while world.engine.stats().approvals_pending > 0 {
        let page = ListApprovals {
            filter: ApprovalFilter { decided: false, agent: None },
            after: None,
            limit: limit::APPROVAL_BATCH_MAX,
        };
        let ids: Vec<ApprovalId> = world.ask(page).unwrap().items.iter().map(|view| view.id).collect();
        decide(&mut world, &ids, Decision::Reject).unwrap();
    }
    let all = ApprovalCounts { pending: 0, of_strangers: 0, decided: limit::APPROVALS_DECIDED_MAX };
    assert_eq!(world.ask(CountApprovals).unwrap(), all);
    // Whose most are kept loses its oldest.
    let last = world.ask(small(its)).unwrap().id;
    decide(&mut world, &[last], Decision::Approve).unwrap();
    assert_eq!(world.ask(CountApprovals).unwrap(), all);
    assert!(world.ask(Get::<ApprovalView>(first)).is_err() && world.ask(Get::<ApprovalView>(last)).is_ok());
}

#[test]
fn the_texts_of_approvals_take_so_many_bytes() {
    let (mut world, agent) = world();
    let request =
        || RequestApproval { agent, action: "act".into(), description: "d".repeat(90).into(), payload: "{}".into() };
    let ids = [(); 2].map(|()| world.ask(request()).unwrap().id);
    let approvals = |world: &mut TestWorld, change: fn(&mut Approvals)| {
        change(&mut world.engine.world_mut().resource_mut::<Approvals>());
    };
    // As if others were there.
    approvals(&mut world, |all| all.pending_bytes += limit::APPROVALS_PENDING_BYTES_MAX - 191);
    world.ask(request()).unwrap();
    let refused = world.ask(request()).unwrap_err();
    assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::TooMany, Some(60)));
    decide(&mut world, &ids[..1], Decision::Approve).unwrap();
    world.ask(request()).unwrap();
    // The oldest decisions make room for the newest, which stays.
    approvals(&mut world, |all| all.decided_bytes += limit::APPROVALS_DECIDED_BYTES_MAX);
    decide(&mut world, &ids[1..], Decision::Approve).unwrap();
    assert!(world.ask(Get::<ApprovalView>(ids[0])).is_err() && world.ask(Get::<ApprovalView>(ids[1])).is_ok());
    assert!(!world.store.keys().any(|(_, key)| key.ends_with(ids[0].0.as_bytes())), "its record went with it");
}
