//! Two nodes with one name: neither hears that the other one owns the world, so each would take it from the other for ever. The one
//! that was started later gives way.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::members::{BEAT_MS, Beat, Members, SILENCE_MS};

/// Milliseconds for which another node has spoken under this name before it is believed to be there: the last words of the process
/// that this one takes the place of may come late.
const SURE_MS: u64 = 2 * BEAT_MS;

/// What was heard of another node with the name of this one.
#[derive(Default)]
pub(super) struct Namesake {
    heard: Mutex<Option<Heard>>,
    /// It is there, and was there before this node.
    comes_first: AtomicBool,
}

struct Heard {
    instance: u64,
    /// When it was first and last heard, in milliseconds since the machine was started.
    first: u64,
    last: u64,
}

impl Members {
    /// Another process says that it has the name of this node.
    pub(super) fn hear_namesake(&self, beat: &Beat) {
        let now = self.now();
        let mut heard = self.namesake.heard.lock();
        let first = match &*heard {
            Some(before) if before.instance == beat.instance => before.first,
            _ => now,
        };
        *heard = Some(Heard { instance: beat.instance, first, last: now });
        if now - first < SURE_MS {
            return;
        }
        let text = format!(
            "another node is called {:?}, too, and is reached at {}: give each its own name in `[cluster] node`",
            self.node(),
            beat.url
        );
        let is_earlier = (beat.started, beat.instance) < (self.started.0, self.instance);
        self.namesake.comes_first.store(is_earlier, Ordering::Release);
        self.set_problem("name", Some(text));
    }

    /// Time has passed: the other one may have gone.
    pub(super) fn forget_namesake(&self) {
        let mut heard = self.namesake.heard.lock();
        if heard.as_ref().is_some_and(|it| self.now().saturating_sub(it.last) >= SILENCE_MS) {
            *heard = None;
            self.set_problem("name", None);
        }
    }

    /// Why this node must end, if another one has its name and was there before.
    pub(super) fn must_give_way(&self) -> Option<String> {
        let comes_first = self.namesake.comes_first.load(Ordering::Acquire);
        comes_first.then(|| self.problem("name")).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::super::members::tests::at;
    use super::*;

    #[test]
    fn of_two_nodes_with_one_name_the_later_one_gives_way_and_says_why() {
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        for (started, gives_way) in [(members.started.0 - 1, true), (members.started.0 + 1, false)] {
            let other = Beat { instance: 7, started, url: "http://other".to_owned(), ..members.beat() };
            let of_before = Beat { instance: 6, ..other.clone() };
            members.hear(of_before);
            members.hear(other.clone());
            assert_eq!(members.must_give_way(), None, "it may have ended just now");
            now.fetch_add(SURE_MS, Ordering::Relaxed);
            members.hear(other);
            let said = members.problems().concat();
            assert!(
                said.contains("\"b\"") && said.contains("http://other") && said.contains("[cluster] node"),
                "{said}"
            );
            assert_eq!(members.must_give_way(), gives_way.then_some(said));
            now.fetch_add(SILENCE_MS, Ordering::Relaxed);
            members.hear(members.beat());
            assert_eq!((members.must_give_way(), members.problems()), (None, Vec::new()), "it has gone");
        }
    }
}
