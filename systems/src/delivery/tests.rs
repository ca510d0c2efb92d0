//! Targets and deliveries in virtual time.

use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::send::SendState;
use agentsvc_components::delivery::{DeliveryOrder, SourceKind, Target, TargetKind};
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{Actor, AgentId, RefusalKind, ScheduleId};

use super::*;
use crate::agent::RemoveAgents;
use crate::channel::{SEND, SetInstances};
use crate::kernel::entities::List;
use crate::schedule::{CreateSchedule, RemoveSchedule, RunSchedule, tests::plain};
use crate::testing::TestWorld;
use crate::turn::{NewMessage, PostMessage};

/// A world with an agent, one channel and a schedule.
fn world() -> (TestWorld, AgentId, Source) {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let bot = InstanceRules {
        name: "bot".into(),
        channel_type: "telegram".into(),
        default_conversation: Some("ops".into()),
        ..InstanceRules::default()
    };
    world.ask(SetInstances(vec![bot])).unwrap();
    let new = plain(agent, "0 0 1 1 *");
    let id = world.ask(CreateSchedule { new, by_tool: false }).unwrap().id;
    (world, agent, Source::new(SourceKind::Schedule, id.0))
}

fn channel(instance: &str) -> Target {
    Target::Channel { instance: instance.into(), recipient: None, thread: None }
}

fn webhook() -> Target {
    let url = "https://user:pw@hooks.example/secret?key=1".into();
    Target::Webhook { url, secret: Some("sealed".into()), auth_header: None }
}

fn file(path: &str) -> Target {
    Target::LocalFile { path: path.into(), append: true }
}

fn set(world: &mut TestWorld, source: Source, targets: Vec<Target>) -> TargetsView {
    world.ask(SetTargets { source, targets }).unwrap()
}

/// The schedule fires, and the agent answers.
fn fire(world: &mut TestWorld, source: Source, answer: &str) {
    world.ask(RunSchedule { kind: ScheduleKind::Schedule, id: ScheduleId(source.id) }).unwrap();
    let attempt = world.next_call().attempt;
    world.answer(attempt, answer);
}

/// What went out of a kind since the last look.
fn jobs(world: &mut TestWorld, kind: &str) -> Vec<RunJob> {
    let (own, others): (Vec<_>, Vec<_>) =
        world.effects.drain(..).partition(|effect| effect.get::<RunJob>().is_some_and(|job| job.kind == kind));
    world.effects = others;
    own.into_iter().filter_map(|effect| effect.take::<RunJob>().ok().map(|job| *job)).collect()
}

fn states(world: &mut TestWorld, source: Source) -> Vec<(TargetKind, SendState)> {
    let view = world.ask(GetTargets(source)).unwrap();
    view.deliveries.into_iter().rev().map(|view| (view.receipt.target, view.receipt.state)).collect()
}

#[test]
fn an_answer_goes_to_each_target_and_its_end_is_known() {
    let (mut world, agent, source) = world();
    set(&mut world, source, vec![channel("telegram"), webhook(), file("log.md"), channel("bot")]);
    fire(&mut world, source, "all is well");
    let sends = jobs(&mut world, SEND);
    let own = jobs(&mut world, NAME);
    assert_eq!(own.len(), 2, "each has a lane of its own");
    // Those to one chat are in order.
    assert_eq!(sends.len(), 1);
    world.outcome(JobOutcome(sends[0].attempt, TryEnd::Done("{\"state\":\"sent\"}".to_owned())));
    let order: DeliveryOrder = serde_json::from_str(&own[0].input).unwrap();
    assert_eq!((&*order.text, order.agent, order.target), ("all is well", Some(agent), webhook()));
    let reason = "the receiver responded with 503".to_owned();
    world.outcome(JobOutcome(own[0].attempt, TryEnd::Retry { after_ms: None, reason: reason.clone() }));
    world.outcome(JobOutcome(own[1].attempt, TryEnd::Failed("no room".to_owned())));
    let newest = world.ask(GetTargets(source)).unwrap().deliveries;
    let of = |kind| newest.iter().find(|view| view.receipt.target == kind).unwrap();
    let hook = of(TargetKind::Webhook);
    assert_eq!((hook.receipt.state, hook.receipt.reason.as_deref()), (SendState::Queued, Some(&*reason)));
    assert_eq!(&*hook.receipt.channel, "hooks.example", "the rest of the address may be a secret");
    assert!(hook.next_try_at.is_some() && hook.receipt.tries == 1);
    assert_eq!(of(TargetKind::LocalFile).receipt.reason.as_deref(), Some("no room"));
    let mut all = states(&mut world, source);
    all.sort_by_key(|(target, _)| target.as_str());
    let expected = [
        (TargetKind::Channel, SendState::Sent),
        (TargetKind::Channel, SendState::Queued),
        (TargetKind::LocalFile, SendState::Refused),
        (TargetKind::Webhook, SendState::Queued),
    ];
    assert_eq!(all, expected);
    let list = List::<ReceiptView> { filter: ReceiptFilter::Agent(agent), after: None, limit: 10 };
    assert_eq!(world.ask(list).unwrap().items.len(), 4);
}

#[test]
fn a_kill_loses_no_delivery_and_adds_none() {
    let (mut world, _, source) = world();
    set(&mut world, source, vec![channel("bot"), webhook()]);
    fire(&mut world, source, "once");
    let before = jobs(&mut world, NAME).remove(0);
    world.restart();
    world.step();
    let again = jobs(&mut world, NAME);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].attempt.job, before.attempt.job, "the receiver can tell");
    world.outcome(JobOutcome(again[0].attempt, TryEnd::Done(String::new())));
    // What may have been written to a chat is not sent again.
    let expected = [(TargetKind::Channel, SendState::Unknown), (TargetKind::Webhook, SendState::Acknowledged)];
    assert_eq!(states(&mut world, source), expected);
    assert!(jobs(&mut world, SEND).is_empty());
}

#[test]
fn silence_and_failures_are_not_delivered_and_a_target_that_is_gone_harms_no_turn() {
    let (mut world, agent, source) = world();
    set(&mut world, source, vec![channel("bot"), Target::LastChannel]);
    fire(&mut world, source, "NO_REPLY");
    assert!(states(&mut world, source).is_empty());
    world.ask(SetInstances(Vec::new())).unwrap();
    fire(&mut world, source, "to nowhere");
    let expected = [(TargetKind::Channel, SendState::Refused), (TargetKind::LastChannel, SendState::Refused)];
    assert_eq!(states(&mut world, source), expected);
    let run = RemoveSchedule { kind: ScheduleKind::Schedule, id: ScheduleId(source.id), owner: None };
    world.ask(run).unwrap();
    assert_eq!(world.ask(GetTargets(source)).unwrap_err().kind, RefusalKind::NotFound);
    world.ask(RemoveAgents(vec![agent])).unwrap();
}

#[test]
fn wrong_targets_are_named_and_change_nothing() {
    let (mut world, _, source) = world();
    set(&mut world, source, vec![file("a.md")]);
    let email = |to: &str| Target::Email { instance: "bot".into(), to: to.into(), subject_template: None };
    for (target, key) in [
        (channel("nope"), "channel_type"),
        (file("../a"), "path"),
        (file("/etc/passwd"), "path"),
        (file("a/../../b"), "path"),
        (file(""), "path"),
        (Target::Webhook { url: "ftp://x".into(), secret: None, auth_header: None }, "url"),
        (email("ann"), "to"),
        (email("ann@example.com"), "account_id"),
    ] {
        let refusal = world.ask(SetTargets { source, targets: vec![file("b.md"), target] }).unwrap_err();
        assert!(refusal.message.starts_with(&format!("delivery_targets[1].{key}")), "{refusal}");
    }
    let many = vec![file("b.md"); limits::TARGETS_MAX + 1];
    assert!(world.ask(SetTargets { source, targets: many }).unwrap_err().message.contains("16"));
    assert_eq!(world.ask(GetTargets(source)).unwrap().targets, [file("a.md")]);
    let nothing = Source::new(SourceKind::Workflow, source.id);
    assert_eq!(world.ask(GetTargets(nothing)).unwrap_err().kind, RefusalKind::NotFound);
}

#[test]
fn a_turn_that_has_read_untrusted_content_sets_no_targets() {
    let (mut world, agent, source) = world();
    let message = NewMessage { taint: Taint::WEB, ..NewMessage::text("go") };
    let turn = world.ask(PostMessage { agent, session: None, message }).unwrap().turn;
    world.actor = Actor::Agent { agent, turn };
    for target in [webhook(), channel("bot"), file("out.md"), Target::LastChannel] {
        let refusal = world.ask(SetTargets { source, targets: vec![target] }).unwrap_err();
        assert_eq!(refusal.code, Some(error_codes::DELIVERY_UNTRUSTED), "{refusal}");
    }
    world.actor = Actor::Api;
    assert!(world.ask(GetTargets(source)).unwrap().targets.is_empty());
    set(&mut world, source, vec![webhook()]);
}

#[test]
fn deliveries_that_are_kept_are_bounded_and_a_receiver_that_hangs_is_not_waited_for() {
    let (mut world, _, source) = world();
    set(&mut world, source, vec![webhook(), file("a.md")]);
    for n in 0..limits::RECEIPTS_EACH_MAX + 5 {
        fire(&mut world, source, &format!("answer {n}"));
        for job in jobs(&mut world, NAME) {
            let order: DeliveryOrder = serde_json::from_str(&job.input).unwrap();
            if order.target.kind() == TargetKind::LocalFile {
                world.outcome(JobOutcome(job.attempt, TryEnd::Done(String::new())));
            }
        }
    }
    let all = List::<ReceiptView> { filter: ReceiptFilter::Source(source.id), after: None, limit: 1_000 };
    let all = world.ask(all).unwrap().items;
    let ended = all.iter().filter(|view| view.receipt.state == SendState::Acknowledged).count();
    assert_eq!(ended, limits::RECEIPTS_EACH_MAX);
    assert_eq!(all.len() - ended, limits::RECEIPTS_EACH_MAX + 5, "those that wait are kept");
}
