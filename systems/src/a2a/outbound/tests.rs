//! External agents in virtual time.

use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aCard, A2aDialect, A2aSecret, A2aSent, A2aSentState};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::StoredComponent;
use agentsvc_components::{AgentId, RefusalKind};

use super::*;
use crate::a2a::error_codes;
use crate::a2a::limits;
use crate::kernel::entities::Get;
use crate::kernel::share::Shares;
use crate::testing::TestWorld;

const HOUR_MS: i64 = 60 * 60 * 1_000;

fn card(name: &str) -> A2aCard {
    let endpoint = format!("https://{name}.example/rpc").into();
    A2aCard { name: name.into(), endpoint, digest: "1".into(), ..A2aCard::default() }
}

fn found(name: &str) -> RegisterA2aAgent {
    RegisterA2aAgent { url: format!("https://{name}.example"), name: None, card: card(name), secret: None }
}

fn known(world: &mut TestWorld, name: &str) -> A2aAgentId {
    world.ask(found(name)).unwrap().view.id
}

fn message(to: A2aAgentId) -> SendToA2aAgent {
    let message = "hello".to_owned();
    SendToA2aAgent { to, from: None, message, context: None, continues: None, key: String::new(), per_minute: 1_000 }
}

fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

fn get(world: &mut TestWorld, id: A2aSentId) -> A2aSent {
    world.ask(Get::<A2aSentView>(id)).unwrap().task
}

/// The tries that went out since this was asked last.
fn tries(world: &mut TestWorld) -> Vec<RunJob> {
    world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
}

fn report(state: A2aSentState, remote: Option<&str>, result: Option<&str>) -> String {
    let (state, remote, result) = (Some(state), remote.map(str::to_owned), result.map(str::to_owned));
    serde_json::to_string(&SentReport { state, remote, result, ..SentReport::default() }).unwrap()
}

/// The only try that is out ends.
fn end(world: &mut TestWorld, kind: &str, how: TryEnd) {
    let run = tries(world).pop().expect("a try is out");
    assert_eq!(run.kind, kind);
    world.outcome(JobOutcome(run.attempt, how));
}

fn settled(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_message_is_sent_once_and_its_task_asked_for_until_it_ends() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let id = world.ask(message(to)).unwrap().id;
    let waits = world.begin(AwaitA2aSent(id));
    world.step();
    end(&mut world, SEND, TryEnd::Done(report(A2aSentState::Submitted, Some("r"), None)));
    assert_eq!(get(&mut world, id).remote.as_deref(), Some("r"));
    let working = TryEnd::Retry { after_ms: None, reason: report(A2aSentState::Working, Some("r"), None) };
    end(&mut world, ASK, working);
    assert_eq!(get(&mut world, id).state, A2aSentState::Working);
    assert!(waits.take().is_none());
    settled(&mut world);
    world.restart();
    wait(&mut world, 2_000);
    end(&mut world, ASK, TryEnd::Done(report(A2aSentState::Completed, Some("r"), Some("hi"))));
    let task = get(&mut world, id);
    assert_eq!((task.state, task.result.as_deref()), (A2aSentState::Completed, Some("hi")));
    assert_eq!(world.ask(AwaitA2aSent(id)).unwrap().task, task);
    settled(&mut world);
}

#[test]
fn a_restart_sends_nothing_again() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let id = world.ask(message(to)).unwrap().id;
    assert_eq!(tries(&mut world).len(), 1);
    world.restart();
    wait(&mut world, HOUR_MS);
    assert!(tries(&mut world).is_empty());
    let task = get(&mut world, id);
    assert_eq!(task.state, A2aSentState::Unknown);
    assert!(task.error.unwrap().contains("not sent again"));
    settled(&mut world);
}

#[test]
fn a_restart_asks_for_a_task_whose_id_is_known() {
    let mut world = TestWorld::new();
    let old = A2aCard { dialect: A2aDialect::Tasks, ..card("a") };
    let to = world.ask(RegisterA2aAgent { card: old, ..found("a") }).unwrap().view.id;
    let id = world.ask(message(to)).unwrap().id;
    tries(&mut world);
    world.restart();
    wait(&mut world, 1);
    end(&mut world, ASK, TryEnd::Done(report(A2aSentState::Completed, None, Some("hi"))));
    let task = get(&mut world, id);
    assert_eq!((task.state, task.remote.as_deref()), (A2aSentState::Completed, Some(&*id.to_string())));
    settled(&mut world);
}

#[test]
fn what_was_not_sent_is_tried_again_and_given_up() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let id = world.ask(message(to)).unwrap().id;
    let unreached = || TryEnd::Retry { after_ms: None, reason: "{\"error\":\"it is down\"}".to_owned() };
    for _ in 0..limits::A2A_SEND_TRIES_MAX {
        end(&mut world, SEND, unreached());
        wait(&mut world, 60_000);
    }
    let task = get(&mut world, id);
    assert_eq!((task.state, task.error.as_deref()), (A2aSentState::Failed, Some("it is down")));
    let id = world.ask(message(to)).unwrap().id;
    end(&mut world, SEND, TryEnd::Lost("it took too long".to_owned()));
    assert_eq!(get(&mut world, id).state, A2aSentState::Unknown);
    settled(&mut world);
}

#[test]
fn a_task_that_never_ends_is_given_up_after_a_day() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let id = world.ask(message(to)).unwrap().id;
    end(&mut world, SEND, TryEnd::Done(report(A2aSentState::Working, Some("r"), None)));
    for _ in 0..30 {
        for run in tries(&mut world) {
            let reason = report(A2aSentState::Working, None, None);
            world.outcome(JobOutcome(run.attempt, TryEnd::Retry { after_ms: None, reason }));
        }
        wait(&mut world, HOUR_MS);
    }
    assert_eq!(get(&mut world, id).state, A2aSentState::Unknown);
    settled(&mut world);
    wait(&mut world, limits::A2A_SENT_KEPT_MS);
    assert!(world.ask(Get::<A2aSentView>(id)).is_err());
    assert!(!world.store.keys().any(|(_, key)| key[0] == A2aSent::KEY || key[0] == b'q'));
    settled(&mut world);
}

#[test]
fn a_repeated_call_is_the_same_task() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let keyed = SendToA2aAgent { key: "turn:3".to_owned(), ..message(to) };
    let first = world.ask(keyed.clone()).unwrap();
    world.restart();
    let again = world.ask(keyed).unwrap();
    assert_eq!(again.id, first.id);
    let (one, two) = (world.ask(message(to)).unwrap().id, world.ask(message(to)).unwrap().id);
    assert!(one != two, "what has no key is never a repetition");
    settled(&mut world);
}

#[test]
fn an_interrupted_task_is_continued_and_an_ended_one_is_a_conversation() {
    let mut world = TestWorld::new();
    let (to, other) = (known(&mut world, "a"), known(&mut world, "b"));
    let agent = world.spawn("scout");
    let sent = SendToA2aAgent { from: Some(agent), ..message(to) };
    let id = world.ask(sent.clone()).unwrap().id;
    let more = SendToA2aAgent { continues: Some(id), ..sent.clone() };
    assert_eq!(world.ask(more.clone()).unwrap_err().code, Some(error_codes::A2A_SENT_OPEN));
    let asks = SentReport {
        state: Some(A2aSentState::InputRequired),
        remote: Some("r".to_owned()),
        context: Some("c".to_owned()),
        ..SentReport::default()
    };
    end(&mut world, SEND, TryEnd::Done(serde_json::to_string(&asks).unwrap()));
    let next = world.ask(more.clone()).unwrap();
    assert_eq!((next.task.remote.as_deref(), next.task.context.as_deref()), (Some("r"), Some("c")));
    assert!(next.task.continues);
    end(&mut world, SEND, TryEnd::Done(report(A2aSentState::Completed, Some("r"), Some("x"))));
    let after = world.ask(SendToA2aAgent { continues: Some(next.id), ..sent.clone() }).unwrap();
    assert_eq!((after.task.remote, after.task.context.as_deref()), (None, Some("c")));
    for wrong in
        [SendToA2aAgent { to: other, ..more.clone() }, SendToA2aAgent { from: Some(world.spawn("two")), ..more }]
    {
        assert!(world.ask(wrong).is_err());
    }
    settled(&mut world);
}

#[test]
fn a_removed_agent_takes_its_open_tasks_along() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let id = world.ask(message(to)).unwrap().id;
    let late = tries(&mut world).pop().unwrap();
    world.ask(Remove::<A2aAgent>(to)).unwrap();
    assert_eq!(get(&mut world, id).state, A2aSentState::Cancelled);
    world.outcome(JobOutcome(late.attempt, TryEnd::Done(report(A2aSentState::Completed, None, Some("late")))));
    assert_eq!(get(&mut world, id).state, A2aSentState::Cancelled);
    assert_eq!(world.ask(message(to)).unwrap_err().kind, RefusalKind::NotFound);
    world.restart();
    settled(&mut world);
}

#[test]
fn discovering_again_keeps_what_is_not_said_anew() {
    let mut world = TestWorld::new();
    let secret = A2aSecret { origin: "https://a.example".into(), header: "x".into(), sealed: "s".into() };
    let first = world.ask(RegisterA2aAgent { secret: Some(Some(secret.clone())), ..found("a") }).unwrap();
    assert!(first.is_new && !first.has_changed);
    let again = world.ask(found("a")).unwrap();
    assert!(!again.is_new && !again.has_changed && again.view.agent.secret == Some(secret));
    let other = A2aCard { digest: "2".into(), name: "evil".into(), ..card("a") };
    let changed = world.ask(RegisterA2aAgent { card: other, secret: Some(None), ..found("a") }).unwrap();
    assert!(changed.has_changed && changed.view.agent.secret.is_none());
    assert_eq!((&*changed.view.agent.name, &*changed.view.agent.card.name), ("a", "evil"));
    let taken = RegisterA2aAgent { name: Some("a".to_owned()), ..found("b") };
    assert_eq!(world.ask(taken).unwrap_err().code, Some(error_codes::A2A_EXTERNAL_AGENT_EXISTS));
    world.restart();
    for text in ["a", "https://a.example", "https://a.example/", &first.view.id.to_string()] {
        assert_eq!(world.ask(FindA2aAgent(text.to_owned())).unwrap().id, first.view.id, "{text}");
    }
    assert!(world.ask(FindA2aAgent("evil".to_owned())).is_err());
    settled(&mut world);
}

#[test]
fn a_dialect_that_was_found_out_holds_until_the_card_changes() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let id = world.ask(message(to)).unwrap().id;
    let learned =
        SentReport { state: Some(A2aSentState::Completed), dialect: Some(A2aDialect::Tasks), ..SentReport::default() };
    end(&mut world, SEND, TryEnd::Done(serde_json::to_string(&learned).unwrap()));
    assert_eq!(get(&mut world, id).state, A2aSentState::Completed);
    let dialect = |world: &mut TestWorld| world.ask(FindA2aAgent("a".to_owned())).unwrap().agent.card.dialect;
    world.ask(found("a")).unwrap();
    assert_eq!(dialect(&mut world), A2aDialect::Tasks);
    let other = A2aCard { digest: "2".into(), ..card("a") };
    world.ask(RegisterA2aAgent { card: other, ..found("a") }).unwrap();
    assert_eq!(dialect(&mut world), A2aDialect::V0);
    settled(&mut world);
}

#[test]
fn so_many_agents_so_many_open_so_many_a_minute() {
    let mut world = TestWorld::new();
    for n in 0..limits::A2A_EXTERNAL_AGENTS_MAX {
        known(&mut world, &n.to_string());
    }
    let full = world.ask(found("more")).unwrap_err();
    assert_eq!((full.kind, full.code), (RefusalKind::TooMany, Some(error_codes::A2A_EXTERNAL_AGENTS_FULL)));
    let all: Vec<A2aAgentId> =
        world.engine.world().resource::<ExternalAgents>().after(None).map(|(id, _)| id).collect();
    for n in 0..limits::A2A_SENT_OPEN_MAX {
        world.ask(message(all[n % all.len()])).unwrap();
    }
    let full = world.ask(message(all[0])).unwrap_err();
    assert_eq!((full.kind, full.code), (RefusalKind::TooMany, Some(error_codes::A2A_SENT_FULL)));
    settled(&mut world);
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let slow = || SendToA2aAgent { per_minute: 1, ..message(to) };
    world.ask(slow()).unwrap();
    let refused = world.ask(slow()).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::A2A_SENT_RATE_LIMITED)));
    assert!(refused.retry_after_secs.is_some_and(|secs| secs <= 61));
    world.restart();
    assert!(world.ask(slow()).is_err(), "a restart forgives nothing");
    wait(&mut world, 60_000);
    world.ask(slow()).unwrap();
    settled(&mut world);
}

#[test]
fn wrong_messages_change_nothing() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "a");
    let text = |message: String| SendToA2aAgent { message, ..self::message(to) };
    for (wrong, field) in [
        (text(String::new()), "message"),
        (text("x".repeat(limits::A2A_SENT_MESSAGE_BYTES_MAX + 1)), "message"),
        (SendToA2aAgent { context: Some(String::new()), ..message(to) }, "context_id"),
    ] {
        assert_eq!(world.ask(wrong).unwrap_err().field.as_deref(), Some(field));
    }
    let long = RegisterA2aAgent { name: Some("x".repeat(999)), ..found("b") };
    assert_eq!(world.ask(long).unwrap_err().field.as_deref(), Some("name"));
    assert!(world.ask(Get::<A2aSentView>(A2aSentId(AgentId(uuid::Uuid::nil()).0))).is_err());
    assert!(tries(&mut world).is_empty());
    settled(&mut world);
}

#[test]
fn the_agents_of_a_family_leave_tasks_to_others_also_over_a_restart() {
    let mut world = TestWorld::new();
    let to = known(&mut world, "one");
    let [agent, other] = ["a", "b"].map(|name| world.spawn(name));
    let holder = Holder::Family(agent);
    let of = |agent| SendToA2aAgent { from: Some(agent), ..message(to) };
    let shares = |world: &TestWorld| world.engine.world().resource::<SentTasks>().shares.clone();
    world.ask(of(agent)).unwrap();
    end(&mut world, SEND, TryEnd::Done(report(A2aSentState::Submitted, Some("r"), None)));
    let before = shares(&world);
    assert_ne!(before, Shares::default());
    world.restart();
    assert_eq!(shares(&world), before);
    let share = limits::A2A_SENT_OPEN_MAX / limit::POOL_SHARES;
    world.engine.world_mut().resource_mut::<SentTasks>().shares.add(Some(holder), share - 1, 0);
    let refused = world.ask(of(agent)).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("a2a_sent_full"));
    assert!(refused.message.contains("family") && refused.retry_after_secs.is_some(), "{refused:?}");
    world.ask(of(other)).unwrap();
    world.ask(message(to)).unwrap();
}
