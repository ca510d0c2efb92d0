//! Answers of sources that are kept for a while, so that pages and repeated searches do not ask again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Answers that are kept; the oldest goes for a new one.
const ANSWERS_MAX: usize = 64;
/// How long one is good.
const FRESH: Duration = Duration::from_secs(120);

/// Answers by what was asked.
pub(super) struct Cache<T>(Mutex<HashMap<String, (Instant, Arc<T>)>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Cache<T> {
    /// The answer, if it is still good.
    pub(super) fn get(&self, asked: &str) -> Option<Arc<T>> {
        let answers = self.0.lock();
        answers.get(asked).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, answer)| Arc::clone(answer))
    }

    /// Keeps an answer.
    pub(super) fn put(&self, asked: String, answer: T) -> Arc<T> {
        let mut answers = self.0.lock();
        answers.retain(|_, (at, _)| at.elapsed() < FRESH);
        if answers.len() >= ANSWERS_MAX
            && let Some(oldest) = answers.iter().min_by_key(|(_, (at, _))| *at).map(|(asked, _)| asked.clone())
        {
            answers.remove(&oldest);
        }
        let answer = Arc::new(answer);
        answers.insert(asked, (Instant::now(), Arc::clone(&answer)));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes() {
        let cache = Cache::default();
        for at in 0..=ANSWERS_MAX {
            cache.put(at.to_string(), at);
        }
        assert!(cache.get("0").is_none());
        assert_eq!(cache.get("64").as_deref(), Some(&64));
    }
}
