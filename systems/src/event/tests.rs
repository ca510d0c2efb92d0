//! Custom events: what is told and what is refused.

use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, RefusalKind};
use uuid::Uuid;

use super::*;
use crate::event::metrics::EventTotals;
use crate::kernel::record::AUDIT_PREFIX;
use crate::testing::TestWorld;

fn publish(event_type: &str, payload: &str) -> PublishEvent {
    PublishEvent { event_type: event_type.into(), payload: payload.into(), agent: None, by: None }
}

#[test]
fn a_published_event_is_told_as_it_came() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let before = world.store.clone();
    let of_trail = |key: &[u8]| key.starts_with(&AUDIT_PREFIX);
    world.ask(PublishEvent { agent: Some(agent), ..publish("report.ready-2_b", "{\"a\":1}") }).unwrap();
    let told = world.events.pop().unwrap();
    let expected = Event::Custom {
        event_type: "report.ready-2_b".into(),
        agent: Some(agent),
        payload: "{\"a\":1}".into(),
        by: None,
    };
    assert_eq!(told, expected);
    let is_new = |(row, value): &(&(_, Vec<u8>), &Vec<u8>)| before.get(*row) != Some(*value) && !of_trail(&row.1);
    assert_eq!(world.store.iter().filter(is_new).count(), 0, "an event alone is not stored, but for its audit entry");
    assert_eq!(world.engine.world().resource::<EventTotals>().custom, 1);
}

#[test]
fn what_is_no_event_is_refused_and_not_told() {
    let mut world = TestWorld::new();
    let events = world.events.len();
    let long = "t".repeat(limit::EVENT_TYPE_BYTES_MAX + 1);
    for bad in ["", "Upper", "with space", "ümlaut", "a/b", &long] {
        let refused = world.ask(publish(bad, "null")).unwrap_err();
        assert_eq!((refused.kind, refused.field.as_deref()), (RefusalKind::BadRequest, Some("event_type")), "{bad}");
    }
    let payload = format!("\"{}\"", "p".repeat(limit::EVENT_PAYLOAD_BYTES_MAX));
    assert_eq!(world.ask(publish("t", &payload)).unwrap_err().field.as_deref(), Some("payload"));
    let nobody = PublishEvent { agent: Some(AgentId(Uuid::nil())), ..publish("t", "null") };
    let refused = world.ask(nobody).unwrap_err();
    assert_eq!((refused.kind, refused.field.as_deref()), (RefusalKind::NotFound, Some("agent_id")));
    assert_eq!(world.events.len(), events);
}
