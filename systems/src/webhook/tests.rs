//! Webhooks in virtual time.

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::webhook::{DeliveryState, Mount, Webhook, WebhookId};
use serde_json::Value;

use super::*;
use crate::event::PublishEvent;
use crate::kernel::entities::{Get, List};
use crate::testing::{TestWorld, two_users};

const HOUR_MS: i64 = 60 * 60 * 1_000;

fn fields(events: &[&str]) -> WebhookFields {
    let events = events.iter().map(|event| (*event).to_owned()).collect();
    WebhookFields {
        url: Some("https://hooks.example/a?key=1".to_owned()),
        events: Some(events),
        ..WebhookFields::default()
    }
}

fn made(world: &mut TestWorld, events: &[&str]) -> WebhookId {
    world.ask(CreateWebhook { mount: Mount::Webhooks, fields: fields(events) }).unwrap().id
}

fn webhook(world: &mut TestWorld, id: WebhookId) -> Webhook {
    world.ask(Get::<WebhookView>(id)).unwrap().webhook
}

fn deliveries(world: &mut TestWorld, id: WebhookId) -> Vec<DeliveryView> {
    let list = List::<DeliveryView> { filter: id, after: None, limit: 1_000 };
    world.ask(list).unwrap().items
}

/// The tries that went out since this was asked last.
fn tries(world: &mut TestWorld) -> Vec<RunJob> {
    world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
}

fn publish(world: &mut TestWorld, event_type: &str) {
    let event_type = event_type.to_owned();
    world.ask(PublishEvent { event_type, payload: "{}".into(), agent: None, by: None }).unwrap();
}

fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

fn report(status: u16) -> String {
    format!("{{\"status\":{status},\"took_ms\":5,\"error\":null}}")
}

fn unavailable() -> TryEnd {
    TryEnd::Retry { after_ms: None, reason: report(503) }
}

#[test]
fn an_event_goes_to_those_that_want_it() {
    let mut world = TestWorld::new();
    let all = made(&mut world, &["all"]);
    let agents = made(&mut world, &["agent.spawned", "agent_stopped"]);
    let other = made(&mut world, &["workflow.completed"]);
    let off = world.ask(CreateWebhook {
        mount: Mount::Events,
        fields: WebhookFields { enabled: Some(false), ..fields(&["all"]) },
    });
    let off = off.unwrap().id;
    let agent = world.spawn("scout");
    let out = tries(&mut world);
    assert_eq!(out.iter().map(|run| WebhookId(run.subject)).collect::<Vec<_>>(), [all, agents]);
    let body: Value = serde_json::from_str(&format!("{{{}", out[0].input)).unwrap();
    assert_eq!((&body["event_type"], &body["event"]), (&"agent_spawned".into(), &"agent.spawned".into()));
    let data = &body["data"];
    assert_eq!((&data["agent_id"], &data["agent_name"]), (&agent.to_string().into(), &"scout".into()));
    assert_eq!(body["timestamp"], world.now.to_string());
    assert!(data.get("kind").is_none() && out[0].input == out[1].input);
    assert!(deliveries(&mut world, other).is_empty() && deliveries(&mut world, off).is_empty());
    assert_eq!(deliveries(&mut world, agents)[0].delivery.state, DeliveryState::Pending);
    world.outcome(JobOutcome(out[1].attempt, TryEnd::Done(report(204))));
    let ended_at = world.now;
    let view = deliveries(&mut world, agents).remove(0);
    assert_eq!((view.delivery.state, view.delivery.tried, view.next_try_at), (DeliveryState::Delivered, 1, None));
    assert_eq!((view.delivery.tries[0].status, view.delivery.ended_at), (Some(204), Some(ended_at)));
    assert_eq!(view.id.0, out[1].attempt.job.0);
}

#[test]
fn a_dead_receiver_of_all_other_webhooks_holds_none_up() {
    let mut world = TestWorld::new();
    for _ in 1..limits::WEBHOOKS_MAX {
        made(&mut world, &["custom"]);
    }
    let alive = made(&mut world, &["custom"]);
    let (events, at_once) = (6, limits::WEBHOOK_DELIVERIES_OUT_MAX);
    for _ in 0..events {
        publish(&mut world, "build.done");
    }
    // Nothing comes back from the others.
    let mut delivered = 0;
    while delivered < events {
        let out: Vec<_> = tries(&mut world).into_iter().filter(|run| run.subject == alive.0).collect();
        assert!(!out.is_empty() && out.len() <= at_once, "{} are out, {delivered} are delivered", out.len());
        delivered += out.len();
        out.into_iter().for_each(|run| world.outcome(JobOutcome(run.attempt, TryEnd::Done(report(204)))));
    }
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn every_kind_of_event_has_a_word_and_a_body() {
    for kind in EventKind::ALL {
        assert_eq!(words::parse(words::word_of(kind)), Some(words::word_of(kind)));
    }
    let data = words::data_of(&Event::AgentStopped { agent: agentsvc_components::AgentId(uuid::Uuid::nil()) });
    assert_eq!(data.len(), 2);
    let mut world = TestWorld::new();
    made(&mut world, &["custom"]);
    publish(&mut world, "build.done");
    let body: Value = serde_json::from_str(&format!("{{{}", tries(&mut world)[0].input)).unwrap();
    assert_eq!(body["data"]["event_type"], "build.done");
}

#[test]
fn what_is_wrong_names_its_field_and_changes_nothing() {
    let mut world = TestWorld::new();
    let id = made(&mut world, &["all"]);
    let before = webhook(&mut world, id);
    let wrong = [
        ("url", WebhookFields { url: Some("ftp://x".to_owned()), ..WebhookFields::default() }),
        ("url", WebhookFields { url: Some(format!("http://{}", "x".repeat(2_048))), ..WebhookFields::default() }),
        ("name", WebhookFields { name: Some(" ".to_owned()), ..WebhookFields::default() }),
        ("name", WebhookFields { name: Some("x".repeat(129)), ..WebhookFields::default() }),
        ("events", WebhookFields { events: Some(Vec::new()), ..WebhookFields::default() }),
        ("events", WebhookFields { events: Some(vec!["agent".to_owned()]), ..WebhookFields::default() }),
        ("events", WebhookFields { events: Some(vec!["all".to_owned(); 65]), ..WebhookFields::default() }),
    ];
    for (field, fields) in wrong {
        let fields = WebhookFields { enabled: Some(false), ..fields };
        let refusal = world.ask(UpdateWebhook { webhook: id, fields }).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
        assert_eq!(webhook(&mut world, id), before);
    }
    let without = world.ask(CreateWebhook::default()).unwrap_err();
    assert_eq!(without.field.as_deref(), Some("url"));
    for _ in 1..limits::WEBHOOKS_MAX {
        made(&mut world, &["all"]);
    }
    let full = world.ask(CreateWebhook { mount: Mount::Events, fields: fields(&["all"]) }).unwrap_err();
    assert_eq!(full.code, Some(error_codes::WEBHOOKS_FULL));
    assert_eq!(before.name, "hooks.example".into());
}

#[test]
fn a_webhook_that_fails_for_a_day_is_switched_off_and_an_event_says_so() {
    let mut world = TestWorld::new();
    let id = made(&mut world, &["custom"]);
    publish(&mut world, "first");
    let mut ended = 0;
    for _ in 0..120 {
        for run in tries(&mut world) {
            world.outcome(JobOutcome(run.attempt, unavailable()));
        }
        ended += usize::from(!webhook(&mut world, id).enabled);
        if ended > 0 {
            break;
        }
        wait(&mut world, HOUR_MS / 2);
        publish(&mut world, "more");
    }
    let off = webhook(&mut world, id);
    assert!(!off.enabled && off.disabled_reason.is_some() && ended == 1, "{off:?}");
    let told = |event: &Event| matches!(event, Event::Custom { event_type, .. } if event_type == "webhook_disabled");
    assert_eq!(world.events.iter().filter(|event| told(event)).count(), 1);
    let states: Vec<_> = deliveries(&mut world, id).into_iter().map(|view| view.delivery.state).collect();
    assert!(states.contains(&DeliveryState::Cancelled) && !states.contains(&DeliveryState::Pending), "{states:?}");
    let on = WebhookFields { enabled: Some(true), ..WebhookFields::default() };
    let again = world.ask(UpdateWebhook { webhook: id, fields: on }).unwrap().webhook;
    assert_eq!((again.enabled, again.failing_since, again.disabled_reason), (true, None, None));
}

#[test]
fn two_failures_far_apart_do_not_disable_a_webhook() {
    let mut world = TestWorld::new();
    let id = made(&mut world, &["custom"]);
    for _ in 0..3 {
        publish(&mut world, "weekly");
        let run = tries(&mut world).remove(0);
        world.outcome(JobOutcome(run.attempt, TryEnd::Failed(report(410))));
        assert!(webhook(&mut world, id).enabled);
        wait(&mut world, 7 * 24 * HOUR_MS);
    }
    publish(&mut world, "last");
    let run = tries(&mut world).remove(0);
    world.outcome(JobOutcome(run.attempt, unavailable()));
    wait(&mut world, 25 * HOUR_MS);
    let late = deliveries(&mut world, id).remove(0).delivery;
    assert_eq!((late.state, late.tries.last().unwrap().status), (DeliveryState::Failed, None), "out of time");
    assert!(webhook(&mut world, id).enabled, "the receiver was not asked");
    let url = Some("https://hooks.example/new".to_owned());
    let moved = world.ask(UpdateWebhook { webhook: id, fields: WebhookFields { url, ..WebhookFields::default() } });
    assert_eq!(moved.unwrap().webhook.failing_since, None);
}

#[test]
fn a_removed_agent_is_named_and_a_payload_is_json() {
    let mut world = TestWorld::new();
    made(&mut world, &["agent_terminated", "custom"]);
    let agent = world.spawn("scout");
    world.ask(crate::agent::RemoveAgents(vec![agent])).unwrap();
    let (event_type, payload) = ("a".to_owned(), r#"{"n":[1]}"#.into());
    world.ask(PublishEvent { event_type, payload, agent: None, by: None }).unwrap();
    let bodies: Vec<Value> =
        tries(&mut world).iter().map(|run| serde_json::from_str(&format!("{{{}", run.input)).unwrap()).collect();
    assert_eq!(bodies[0]["data"]["agent_name"], "scout");
    assert_eq!(bodies[1]["data"]["payload"]["n"][0], 1);
}

#[test]
fn one_success_ends_a_row_of_failures() {
    let mut world = TestWorld::new();
    let id = made(&mut world, &["custom"]);
    publish(&mut world, "a");
    let run = tries(&mut world).remove(0);
    world.outcome(JobOutcome(run.attempt, unavailable()));
    let failed_at = world.now;
    assert_eq!(webhook(&mut world, id).failing_since, Some(failed_at));
    let view = deliveries(&mut world, id).remove(0);
    assert_eq!((view.delivery.state, view.delivery.tries[0].status), (DeliveryState::Pending, Some(503)));
    assert!(view.next_try_at > Some(failed_at));
    wait(&mut world, 1_000);
    let run = tries(&mut world).remove(0);
    assert_eq!(run.attempt.number, 2);
    world.outcome(JobOutcome(run.attempt, TryEnd::Done(report(200))));
    assert_eq!(webhook(&mut world, id).failing_since, None);
    assert_eq!(deliveries(&mut world, id)[0].delivery.tried, 2);
}

#[test]
fn too_many_open_deliveries_are_dropped_and_counted() {
    let mut world = TestWorld::new();
    let (id, other) = (made(&mut world, &["custom"]), made(&mut world, &["agent_spawned"]));
    for _ in 0..limits::WEBHOOK_DELIVERIES_OPEN_MAX + 3 {
        publish(&mut world, "a");
    }
    assert_eq!(webhook(&mut world, id).dropped, 3);
    assert_eq!(tries(&mut world).len(), limits::WEBHOOK_DELIVERIES_OUT_MAX);
    world.spawn("a");
    assert_eq!(tries(&mut world)[0].subject, other.0, "one slow receiver does not hold up others");
    let off = WebhookFields { enabled: Some(false), ..WebhookFields::default() };
    world.ask(UpdateWebhook { webhook: id, fields: off }).unwrap();
    let kept = deliveries(&mut world, id);
    assert_eq!(kept.len(), limits::WEBHOOK_DELIVERIES_KEPT_MAX);
    assert!(kept.iter().all(|view| view.delivery.state == DeliveryState::Cancelled));
    let given_up = world.effects.drain(..).filter(|effect| effect.get::<Abort>().is_some()).count();
    assert_eq!(given_up, limits::WEBHOOK_DELIVERIES_OUT_MAX);
}

#[test]
fn who_fills_a_webhook_with_events_leaves_places_to_the_events_of_others() {
    let (mut world, [anns, bobs, _]) = two_users();
    let id = made(&mut world, &["custom"]);
    let publish = |world: &mut TestWorld, agent| {
        let event_type = "a".to_owned();
        world.ask(PublishEvent { event_type, payload: "{}".into(), agent: Some(agent), by: None }).unwrap();
    };
    let share = limits::WEBHOOK_DELIVERIES_OPEN_MAX / agentsvc_components::kernel::limit::POOL_SHARES;
    for _ in 0..share + 3 {
        publish(&mut world, anns);
    }
    assert_eq!((webhook(&mut world, id).dropped, deliveries(&mut world, id).len()), (3, share));
    let out = tries(&mut world);
    assert_eq!(out.len(), 1, "nor has it all places of those that are under way");
    publish(&mut world, bobs);
    let of_bob = tries(&mut world);
    assert_eq!((of_bob.len(), webhook(&mut world, id).dropped), (1, 3));
    let body: Value = serde_json::from_str(&format!("{{{}", of_bob[0].input)).unwrap();
    assert_eq!(body["data"]["agent_id"], bobs.to_string());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_restart_repeats_what_was_out_under_the_same_id_and_a_removal_leaves_nothing() {
    let mut world = TestWorld::new();
    let id = made(&mut world, &["all"]);
    world.spawn("a");
    let before = tries(&mut world).remove(0);
    world.restart();
    let after = tries(&mut world).remove(0);
    assert_eq!((after.attempt.job, after.attempt.number), (before.attempt.job, 2));
    assert_eq!(after.input, before.input);
    assert_eq!(world.engine.check(), [] as [String; 0]);
    let kept = deliveries(&mut world, id);
    assert_eq!((kept.len(), kept[0].delivery.tried), (1, 0));
    world.ask(Remove::<Webhook>(id)).unwrap();
    assert!(world.ask(Get::<WebhookView>(id)).is_err() && world.ask(Remove::<Webhook>(id)).is_err());
    assert!(!world.store.keys().any(|(_, key)| matches!(key[0], b'u' | b'r' | b'q')));
    world.outcome(JobOutcome(after.attempt, TryEnd::Done(report(200))));
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_clock_that_was_ahead_does_not_keep_a_webhook_on_for_ever() {
    let mut world = TestWorld::new();
    let id = made(&mut world, &["custom"]);
    for ms in [0, -48 * HOUR_MS, HOUR_MS] {
        wait(&mut world, ms);
        publish(&mut world, "a");
        for run in tries(&mut world) {
            world.outcome(JobOutcome(run.attempt, unavailable()));
        }
    }
    let since = webhook(&mut world, id).failing_since.unwrap();
    assert!(since <= world.now, "{since} is still to come at {}", world.now);
}
