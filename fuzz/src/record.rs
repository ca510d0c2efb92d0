//! Stored rows: any bytes are read or refused, and a world of what was read comes to life or is refused, and goes on.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::kernel::record;
use agentsvc_systems::{Engine, Records, Settings};

use super::feed::Feed;

/// Rows of one input.
const ROWS_MAX: usize = 32;
/// A time behind every record that was written by a real world.
const NOW: Timestamp = Timestamp(1_700_000_100_000);

/// `input` are keys and values, each behind its length in two bytes.
pub fn run(input: &[u8]) {
    let mut feed = Feed(input);
    let mut records = Records::default();
    for _ in 0..ROWS_MAX {
        if feed.is_empty() {
            break;
        }
        let (key, value) = (feed.piece(), feed.piece());
        let _ = Records::check(Space::Content, key, value);
        let _ = record::parse_message_key(key);
        let _ = record::parse_audit_key(key);
        let _ = agentsvc_systems::usage::parse_active_key(key);
        let _ = records.read(key, value);
    }
    let mut engine = Engine::new(Settings::default(), [3; 32]);
    if engine.restore(records, NOW).is_err() {
        return;
    }
    for minutes in 1..4 {
        engine.set_now(NOW.plus_ms(minutes * 60_000));
        engine.beat();
        engine.step();
    }
}
