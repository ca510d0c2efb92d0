//! Rules of schedules: reading ends, and slots come strictly one after the other.
#![no_main]

use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{Timestamp, audit::Actor};
use agentsvc_systems::schedule::{PreviewRule, Rule};
use agentsvc_systems::{Engine, Records, ReplySlot, Settings};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if Rule::parse(text).is_err() {
        return;
    }
    let mut engine = Engine::new(Settings::default(), [1; 32]);
    let now = Timestamp(1_700_000_000_000);
    engine.restore(Records::default(), now).expect("an empty world");
    for timezone in [None, Some("America/New_York".into())] {
        let preview = PreviewRule { kind: ScheduleKind::Schedule, rule: text.into(), timezone, count: 20 };
        engine.command(Actor::Api, preview, ReplySlot::new(move |reply| {
            if let Ok((slots, _)) = reply {
                assert!(slots.is_sorted_by(|a, b| a < b) && slots.iter().all(|slot| *slot > now), "{slots:?}");
            }
        }));
    }
});
