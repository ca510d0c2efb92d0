//! Answers of a hook that are remembered for a while (`hook_cache_ttl_secs`).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Answers of one hook.
const ANSWERS_MAX: usize = 256;
/// Bytes of one; a longer one is not remembered.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What was asked.
pub(super) type Asked = [u8; 32];

/// Answers by what was asked.
#[derive(Default)]
pub(crate) struct Memo(Mutex<HashMap<Asked, (Instant, Value)>>);

/// The key of an input.
pub(super) fn asked(input: &Value) -> Asked {
    Sha256::digest(input.to_string().as_bytes()).into()
}

impl Memo {
    pub(super) fn get(&self, asked: &Asked, now: Instant) -> Option<Value> {
        self.0.lock().get(asked).filter(|(until, _)| *until > now).map(|(_, answer)| answer.clone())
    }

    pub(super) fn put(&self, asked: Asked, answer: &Value, now: Instant, ttl_secs: u64) {
        if answer.to_string().len() > ANSWER_BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() >= ANSWERS_MAX {
            kept.retain(|_, (until, _)| *until > now);
        }
        if kept.len() >= ANSWERS_MAX {
            kept.clear();
        }
        kept.insert(asked, (now + Duration::from_secs(ttl_secs), answer.clone()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_forgotten_in_time_and_bounded() {
        let (memo, now) = (Memo::default(), Instant::now());
        let key = asked(&json!({ "a": 1 }));
        memo.put(key, &json!({ "x": 1 }), now, 2);
        assert_eq!(memo.get(&key, now + Duration::from_secs(1)), Some(json!({ "x": 1 })));
        assert_eq!(memo.get(&key, now + Duration::from_secs(2)), None);
        assert_eq!(memo.get(&asked(&json!({ "a": 2 })), now), None);
        memo.put(asked(&json!(1)), &json!("x".repeat(ANSWER_BYTES_MAX)), now, 2);
        assert_eq!(memo.get(&asked(&json!(1)), now), None);
        for n in 0..1_000 {
            memo.put(asked(&json!(n)), &json!({}), now, 100);
            assert!(memo.0.lock().len() <= ANSWERS_MAX);
        }
    }
}
