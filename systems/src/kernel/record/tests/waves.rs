//! Matches that wait, as they are stored.

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::trigger::record::{AskedRecord, UnlistedRecord, WaveRecord};
use agentsvc_components::{SessionId, Timestamp, TriggerId};
use uuid::Uuid;

use super::{agent, put, trigger, trigger_state};
use crate::trigger::rows::{put_wave, remove_wave};

/// One in which there is everything.
pub(super) fn wave() -> WaveRecord {
    let triggers = vec![trigger().id, TriggerId(Uuid::from_u128(12))];
    let event = r#"{"kind":"custom"}"#.into();
    let (at, taint) = (Timestamp(8), Taint::EVENT);
    let began_in = Some(SessionId(Uuid::from_u128(9)));
    let asked = Event::Custom { event_type: "ping".into(), agent: Some(agent().id), payload: "1".into(), by: None };
    let owner = Some(UserId(Uuid::from_u128(4)));
    let asked = AskedRecord { event: asked, name: Some("a".into()), owner };
    let unlisted = UnlistedRecord { asked, after: Some(triggers[0]), upto: triggers[1], waiting: 3 };
    let (kind, holder, unlisted) = (EventKind::Custom, owner.map(Holder::User), Some(Box::new(unlisted)));
    WaveRecord { number: 1 << 40, kind, event, at, depth: 2, taint, began_in, triggers, holder, unlisted }
}

#[test]
fn waves_sort_by_number_and_counts_are_stored_without_zeros() {
    let op = |number| put_wave(&WaveRecord { number, ..wave() });
    assert!(op(255).key < op(256).key && remove_wave(255).key == op(255).key);
    let value = put(&trigger_state()).value.unwrap();
    let has = |word: &str| value.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(has("cooling_down") && !has("exhausted"));
}
