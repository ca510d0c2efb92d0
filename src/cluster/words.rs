//! Tells what nodes say to one another just now from what others say, or repeat.
//!
//! A word is a code made with a key that only nodes have, and then: the number of the start of the node that says it, a number that rises
//! with each of its words, the starts that it has heard lately, and the text. Starts are random. So who finds its own one among those
//! that were heard knows that the word was said since then, and of words that were said since then it takes each once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use ring::hmac::{Context, HMAC_SHA256, Key, verify};

use super::moment::boot_time;

/// Bytes of a word; a beat has some hundred.
const WORD_BYTES_MAX: usize = 16 << 10;
/// Starts that a word names, and for how long after they were heard, in milliseconds.
const STARTS_MAX: usize = 64;
const LATELY_MS: u64 = 10_000;
/// Starts whose words are told apart from repeated ones.
const KNOWN_MAX: usize = 1_024;

/// What one who listens has heard: the newest number of each start.
#[derive(Debug, Default)]
pub(super) struct Heard(BTreeMap<u64, u64>);

/// What this node signs with, and whom it has heard.
#[derive(Debug)]
pub(crate) struct Words {
    key: Key,
    /// The number of this start.
    start: u64,
    count: AtomicU64,
    /// Other starts, and when they were last heard, in milliseconds since the machine was started.
    starts: Mutex<BTreeMap<u64, u64>>,
    /// Messages that no node said.
    foreign: AtomicU64,
}

impl Words {
    /// Those of this start of a node.
    pub(super) fn new(key: &[u8; 32], start: u64) -> Self {
        let key = Key::new(HMAC_SHA256, key);
        Self { key, start, count: AtomicU64::new(0), starts: Mutex::default(), foreign: AtomicU64::new(0) }
    }

    /// `text` as a word that is said under `subject`.
    pub(super) fn say(&self, subject: &str, text: &[u8]) -> Vec<u8> {
        let count = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        let starts = self.heard_lately(boot_time());
        let mut bytes = [self.start.to_be_bytes(), count.to_be_bytes()].concat();
        bytes.push(u8::try_from(starts.len()).unwrap_or_default());
        starts.iter().for_each(|start| bytes.extend_from_slice(&start.to_be_bytes()));
        bytes.extend_from_slice(text);
        let mut signing = Context::with_key(&self.key);
        signed(subject, &bytes).into_iter().for_each(|part| signing.update(part));
        [signing.sign().as_ref(), &bytes].concat()
    }

    /// The text of what was said under `subject`; `None` when no node said it, or not since this one was started, or it was heard
    /// before.
    pub(super) fn hear<'a>(&self, subject: &str, message: &'a [u8], heard: &mut Heard) -> Option<&'a [u8]> {
        let Some(bytes) = self.open(subject, message) else {
            if self.foreign.fetch_add(1, Ordering::AcqRel) == 0 {
                tracing::warn!(subject, "something that is no node of this cluster says something to its nodes");
            }
            return None;
        };
        let (start, rest) = number(bytes)?;
        let (count, rest) = number(rest)?;
        let (named, rest) = rest.split_first()?;
        let (named, text) = rest.split_at_checked(usize::from(*named) * 8)?;
        if heard.0.get(&start).is_some_and(|newest| *newest >= count) {
            tracing::debug!(subject, start, "what a node said came again");
            return None;
        }
        if start != self.start {
            self.note(start, boot_time());
            if !named.chunks(8).any(|named| named == self.start.to_be_bytes()) {
                return None;
            }
        }
        if heard.0.len() >= KNOWN_MAX {
            let lately = self.starts.lock();
            heard.0.retain(|start, _| *start == self.start || lately.contains_key(start));
        }
        heard.0.insert(start, count);
        Some(text)
    }

    /// How many messages no node said.
    pub(super) fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Acquire)
    }

    fn open<'a>(&self, subject: &str, message: &'a [u8]) -> Option<&'a [u8]> {
        let (tag, bytes) = message.split_at_checked(32).filter(|_| message.len() <= WORD_BYTES_MAX)?;
        verify(&self.key, &signed(subject, bytes).concat(), tag).ok().map(|()| bytes)
    }

    fn note(&self, start: u64, now: u64) {
        let mut starts = self.starts.lock();
        starts.retain(|_, at| now.saturating_sub(*at) < LATELY_MS);
        if starts.len() < STARTS_MAX || starts.contains_key(&start) {
            starts.insert(start, now);
        }
    }

    fn heard_lately(&self, now: u64) -> Vec<u64> {
        let starts = self.starts.lock();
        starts.iter().filter(|(_, at)| now.saturating_sub(**at) < LATELY_MS).map(|(start, _)| *start).collect()
    }
}

/// What is signed of a word: the subject comes first, and what ends it is in none.
fn signed<'a>(subject: &'a str, bytes: &'a [u8]) -> [&'a [u8]; 3] {
    [subject.as_bytes(), &[0], bytes]
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [3; 32];

    /// Two nodes that have heard each other.
    fn both() -> (Words, Words, Heard) {
        let (a, b, mut heard) = (Words::new(&KEY, 1), Words::new(&KEY, 2), Heard::default());
        let first = a.say("beat", b"first");
        assert_eq!(b.hear("beat", &first, &mut heard), None, "it has not heard that this node lives");
        assert_eq!(a.hear("beat", &b.say("beat", b"b"), &mut Heard::default()), Some(&b"b"[..]), "it names the other");
        (a, b, heard)
    }

    #[test]
    fn what_a_node_says_is_heard_once_and_under_its_own_subject_only() {
        let (a, b, mut heard) = both();
        let (one, two, three) = (a.say("beat", b"one"), a.say("beat", b"two"), a.say("drain", b"three"));
        assert_eq!(b.hear("beat", &three, &mut heard), None, "it was said under another subject");
        assert_eq!(b.hear("beat", &one, &mut heard), Some(&b"one"[..]));
        assert_eq!(b.hear("beat", &one, &mut heard), None, "it is repeated");
        assert_eq!(b.hear("beat", &two, &mut heard), Some(&b"two"[..]));
        assert_eq!(b.hear("beat", &one, &mut heard), None, "it is older");
        assert_eq!(a.hear("beat", &two, &mut Heard::default()), Some(&b"two"[..]), "its own by way of a server");
        assert_eq!(b.foreign(), 1);
    }

    #[test]
    fn what_no_node_says_is_not_heard_and_counted() {
        let (_, b, mut heard) = both();
        let stranger = Words::new(&[4; 32], 1);
        stranger.note(2, boot_time());
        let mut damaged = b.say("beat", b"text");
        damaged[50] ^= 1;
        let large = b.say("beat", &[0; WORD_BYTES_MAX]);
        let forged = [stranger.say("beat", b"text"), damaged, large, b"{\"node\":\"a\"}".to_vec(), Vec::new()];
        for (at, message) in forged.iter().enumerate() {
            assert_eq!(b.hear("beat", message, &mut heard), None);
            assert_eq!(b.foreign(), at as u64 + 1);
        }
    }

    #[test]
    fn what_was_said_before_a_node_was_started_is_not_heard() {
        let (a, _, _) = both();
        let old = a.say("beat", b"old");
        let again = Words::new(&KEY, 5);
        assert_eq!(again.hear("beat", &old, &mut Heard::default()), None);
        let mut heard = Heard::default();
        a.hear("beat", &again.say("beat", b"again"), &mut Heard::default());
        assert_eq!(again.hear("beat", &a.say("beat", b"new"), &mut heard), Some(&b"new"[..]));
    }

    #[test]
    fn nodes_name_a_few_that_they_heard_lately() {
        let words = Words::new(&KEY, 1);
        (2..200).for_each(|start| words.note(start, 10_000));
        assert_eq!(words.heard_lately(10_000).len(), STARTS_MAX);
        words.note(500, 10_000 + LATELY_MS);
        assert_eq!(words.heard_lately(10_000 + LATELY_MS), [500]);
    }
}
