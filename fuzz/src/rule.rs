//! Rules of schedules: reading ends, and slots come strictly one after the other.

use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{Actor, Timestamp};
use agentsvc_systems::schedule::{PreviewRule, Rule};
use agentsvc_systems::{Engine, Records, ReplySlot, Settings};

use super::feed::Feed;

/// When the rules are set: near the end of a day, a month with 31 days, a change of the clocks, and of what can be said.
const MOMENTS: &[i64] =
    &[1_700_000_000_000, 1_709_251_199_999, 1_774_746_000_000, 0, -1, 253_402_300_799_000, 4_102_444_800_000];
/// Where.
const ZONES: &[Option<&str>] =
    &[None, Some("America/New_York"), Some("Australia/Lord_Howe"), Some("Asia/Kathmandu"), Some("Africa/Casablanca")];

/// `input` is a moment, a zone and a rule.
pub fn run(input: &[u8]) {
    let mut feed = Feed(input);
    let (now, zone) = (Timestamp(*feed.one(MOMENTS)), *feed.one(ZONES));
    let Ok(text) = std::str::from_utf8(feed.0) else { return };
    if Rule::parse(text).is_err() {
        return;
    }
    let mut engine = Engine::new(Settings::default(), [1; 32]);
    engine.restore(Records::default(), now).expect("an empty world");
    for kind in [ScheduleKind::Schedule, ScheduleKind::Cron] {
        let preview = PreviewRule { kind, rule: text.into(), timezone: zone.map(Into::into), count: 20 };
        let slot = ReplySlot::new(move |reply| {
            if let Ok((slots, _)) = reply {
                let slots: Vec<Timestamp> = slots;
                let is_later = slots.iter().all(|slot| *slot > now);
                assert!(slots.is_sorted_by(|a, b| a < b) && is_later, "{slots:?}");
            }
        });
        engine.command(Actor::Api, preview, slot);
        engine.step().releases.into_iter().for_each(|release| release());
    }
}
