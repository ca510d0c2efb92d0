//! The addresses that a tainted turn may fetch while sensitive calls are more than noted: those that the user gave in
//! the session, and those that stood in pages and search results that the session has read. An attacker's page cannot
//! have the address in it that carries a secret it does not know.
//!
//! What counts is where an address comes from, never what the session wrote itself: a file, a recording, an entry of memory or
//! another agent can hand an address back that a tainted turn made up, and so can a tool that repeats its input. A tool therefore
//! names what it has read outside ([`addresses_in`]); nothing else of a result counts. The world keeps hashes of them with the session,
//! at most [`limit::ADDRESSES_MAX`]; those that pages showed go before those that the user gave. An address is what the
//! reader of URLs takes it for that connects, too: no other spelling means another place.

use bevy_ecs::prelude::{Entity, World};
use sha2::{Digest, Sha256};
use url::Url;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{KnownAddresses, Taint};
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_components::turn::{Origin, Turn};

use crate::config::Settings;
use crate::config::taint::TaintPolicy;
use crate::kernel::outbox::Emit;

/// Are addresses judged by where they come from?
pub(super) const fn count(policy: TaintPolicy) -> bool {
    matches!(policy, TaintPolicy::Approve | TaintPolicy::Deny)
}

/// The addresses in the texts of a user's messages, where they count.
pub(crate) fn of_messages(world: &World, messages: &[ChatMessage]) -> Vec<u64> {
    let users = messages.iter().filter(|message| message.role == Role::User).flat_map(|message| &message.blocks);
    let texts = users.filter_map(|block| if let Block::Text { text } = block { Some(&**text) } else { None });
    of_texts(world, texts)
}

/// The addresses in the message of a fired turn, where they count.
pub(crate) fn of_prompt(world: &World, text: &str) -> Vec<u64> {
    of_texts(world, [text])
}

fn of_texts<'t>(world: &World, texts: impl IntoIterator<Item = &'t str>) -> Vec<u64> {
    let mut found = Vec::new();
    if count(world.resource::<Settings>().security.taint) {
        for text in texts {
            find(text, true, &mut found);
        }
    }
    found
}

/// A session's turn begins with these addresses. They count when a person wrote them, or at least nobody who had read
/// untrusted content.
pub(crate) fn begin(world: &mut World, session: Entity, origin: Origin, taint: Taint, found: &[u64]) {
    if origin.is_message() || Taint::AGENT.holds(taint) {
        let given: Vec<u64> = found.iter().map(|hash| hash | GIVEN).collect();
        learn(world, session, &given);
    }
}

/// A turn has read a page or search results with these addresses.
pub(crate) fn read(world: &mut World, turn: Entity, shown: &[u64]) {
    let session = world.get::<Turn>(turn).map(|turn| turn.session);
    if let Some(session) = session.filter(|_| count(world.resource::<Settings>().security.taint)) {
        let found: Vec<u64> = shown.iter().take(limit::ADDRESSES_MAX).map(|hash| hash & !GIVEN).collect();
        learn(world, session, &found);
    }
}

/// The addresses in what a tool has read outside.
#[must_use]
pub fn addresses_in(text: &str) -> Vec<u64> {
    let mut found = Vec::new();
    find(text, false, &mut found);
    found
}

fn learn(world: &mut World, session: Entity, found: &[u64]) {
    if found.is_empty() || world.get::<Session>(session).is_none() {
        return;
    }
    let mut known = world.get::<KnownAddresses>(session).cloned().unwrap_or_default().0;
    for hash in found {
        let before = known.iter().position(|known| (known ^ hash) & !GIVEN == 0).map(|at| known.remove(at));
        known.push(hash | before.unwrap_or_default() & GIVEN);
    }
    let mut over = known.len().saturating_sub(limit::ADDRESSES_MAX);
    known.retain(|hash| {
        let goes = over > 0 && hash & GIVEN == 0;
        over -= usize::from(goes);
        !goes
    });
    known.drain(..over);
    known.shrink_to_fit();
    world.entity_mut(session).insert(KnownAddresses(known));
    world.mark(session);
}

/// Did the user give the address, or did the turn's session read it? What the agent's instructions and the request say
/// counts as given, unless the instructions come from a tainted turn.
pub(super) fn knows(world: &World, turn: Entity, url: &str, part: Part) -> bool {
    let Some(turn) = world.get::<Turn>(turn) else { return false };
    let Some(asked) = hash(url, part) else { return false };
    let is_asked = |hash: &u64| hash & !GIVEN == asked;
    if world.get::<KnownAddresses>(turn.session).is_some_and(|known| known.0.iter().any(is_asked)) {
        return true;
    }
    let agent = world.get::<Agent>(turn.agent).filter(|agent| agent.taint.own.is_none());
    let instructions = agent.map(|agent| &*agent.manifest.manifest.system_prompt);
    let request = turn.request.as_ref().and_then(|request| request.system.as_deref());
    let mut found = Vec::new();
    for text in instructions.into_iter().chain(request) {
        find(text, true, &mut found);
    }
    found.contains(&asked)
}

/// How much of an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What is sent to its host.
    Sent,
    /// That, and the fragment: who reads the address there sees it all.
    Whole,
}

/// The bit of a hash that tells an address that was given from one that was read.
const GIVEN: u64 = 1 << 63;
/// Bytes of an address that is remembered.
const ADDRESS_BYTES_MAX: usize = 2 << 10;
/// Places of a text that are looked at: what is no address costs time, too.
const LOOKED_AT_MAX: usize = 4 * limit::ADDRESSES_MAX;

/// Punctuation behind an address.
const BEHIND: [char; 10] = ['.', ',', ';', ':', '!', '?', '\'', '*', '_', '|'];

/// Ends an address in a text.
fn is_end(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`')
}

/// Finds addresses in a text, at most [`limit::ADDRESSES_MAX`] in all. People leave `https://` out: in their prose every
/// word that looks like a host counts too.
fn find(text: &str, is_prose: bool, found: &mut Vec<u64>) {
    for (at, _) in text.match_indices("://").take(LOOKED_AT_MAX) {
        let before = &text.as_bytes()[..at];
        let is_scheme = |name: &&str| {
            before
                .len()
                .checked_sub(name.len())
                .is_some_and(|from| before[from..].eq_ignore_ascii_case(name.as_bytes()))
        };
        if let Some(scheme) = ["https", "http"].into_iter().find(is_scheme) {
            let rest = &text[at + 3..];
            let rest = &rest[..rest.floor_char_boundary(ADDRESS_BYTES_MAX + 1)];
            add(scheme, &rest[..rest.find(is_end).unwrap_or(rest.len())], found);
        }
        if found.len() >= limit::ADDRESSES_MAX {
            return found.truncate(limit::ADDRESSES_MAX);
        }
    }
    if is_prose && text.len() <= limit::SCAN_INLINE_BYTES_MAX {
        for word in text.split(is_end).filter(|word| !word.contains("://") && word.contains('.')).take(LOOKED_AT_MAX) {
            let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
            if word.trim_end_matches(BEHIND).contains('.') {
                add("https", word, found);
            }
        }
        found.truncate(limit::ADDRESSES_MAX);
    }
}

/// Adds an address as it stands in a text: without the punctuation behind it, and without what a bracket closes.
fn add(scheme: &str, address: &str, found: &mut Vec<u64>) {
    let bare = address.trim_end_matches(BEHIND);
    let within = &bare[..bare.find([')', ']', '}']).unwrap_or(bare.len())];
    for form in [address, bare, within] {
        let url = format!("{scheme}://{}", form.replace("&amp;", "&"));
        for hash in [Part::Sent, Part::Whole].into_iter().filter_map(|part| hash(&url, part)) {
            if !found.contains(&hash) {
                found.push(hash);
            }
        }
    }
}

/// The hash of a part of an address as the reader of URLs takes it; `None` for what it does not take, and for long ones. The
/// scheme does not count.
fn hash(url: &str, part: Part) -> Option<u64> {
    let url = Url::parse(url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?;
    if url.as_str().len() > ADDRESS_BYTES_MAX || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let (path, query) = (url.path(), url.query().map(|query| format!("?{query}")).unwrap_or_default());
    let path = if query.is_empty() { path.strip_suffix('/').unwrap_or(path) } else { path };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let fragment = url.fragment().filter(|_| part == Part::Whole).map(|fragment| format!("#{fragment}"));
    let digest = Sha256::digest(format!("{host}{port}{path}{query}{}", fragment.unwrap_or_default()));
    Some(u64::from_be_bytes(digest[..8].try_into().unwrap_or_default()) & !GIVEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, is_prose: bool, url: &str) -> bool {
        let mut found = Vec::new();
        find(text, is_prose, &mut found);
        hash(url, Part::Sent).is_some_and(|hash| found.contains(&hash))
    }

    #[test]
    fn addresses_are_found_as_people_and_pages_write_them() {
        for (text, url) in [
            ("read https://x.example/a?b=1&c=2.", "https://x.example/a?b=1&c=2"),
            ("(see HTTPS://X.example/Path)", "https://x.example/Path"),
            ("[title](https://x.example/a/b), and so on", "https://x.example/a/b"),
            ("[https://x.example/a](https://x.example/b)", "https://x.example/b"),
            ("https://w.example/wiki/Foo_(bar)", "https://w.example/wiki/Foo_(bar)"),
            ("<a href=\"http://x.example/?a=1&amp;b=2\">", "http://x.example/?a=1&b=2"),
            ("{\"url\":\"https://x.example\"}", "https://x.example/"),
            ("https://x.example/a#part", "https://x.example/a"),
            ("http://x.example:80/a", "http://x.example:80/a"),
        ] {
            assert!(has(text, false, url), "{text}: {url}");
        }
        assert!(has("look at example.org/page, please", true, "https://example.org/page"));
        assert!(!has("look at example.org/page, please", false, "https://example.org/page"));
    }

    #[test]
    fn no_other_address_is_taken_for_a_known_one() {
        let text = "https://x.example/a and https://y.example/b?c=1";
        for url in [
            "https://x.example/a/secret",
            "https://x.example/a?secret",
            "https://x.example/A",
            "https://x.example.evil.example/a",
            "https://secret@x.example/a",
            "https://x.example/",
            "https://y.example/b?c=12",
            "https:evil.example/secret/://x.example/a",
            "https:/evil.example/secret://x.example/a",
            "https:evil.example/secret#://x.example/a",
            "https:\\\\evil.example/x.example/a",
            "https://x.example:444/a",
            "javascript://x.example/a",
            "https://x.example/b?c=1",
        ] {
            assert!(!has(text, true, url), "{url}");
        }
    }

    #[test]
    fn other_spellings_of_a_known_address_are_known() {
        let text = "https://x.example/a and https://y.example/b?c=1";
        for url in [
            "https:x.example/a",
            "https:/x.example/a",
            "HTTP://X.example:80/a#z",
            "https://x.example/./a/",
            "https://y.example:443/b?c=1",
        ] {
            assert!(has(text, true, url), "{url}");
        }
    }

    #[test]
    fn a_fragment_is_a_part_of_the_whole_address() {
        let mut found = Vec::new();
        find("https://x.example/a#part, https://x.example/b", false, &mut found);
        for (url, is_known) in [
            ("https://x.example/a#part", true),
            ("https://x.example/a", true),
            ("https://x.example/a#other", false),
            ("https://x.example/b#part", false),
            ("https://x.example/b#", false),
        ] {
            assert_eq!(found.contains(&hash(url, Part::Whole).unwrap()), is_known, "{url}");
            assert!(found.contains(&hash(url, Part::Sent).unwrap()), "{url}");
        }
    }

    #[test]
    fn a_hostile_text_is_not_looked_at_for_long() {
        let mut found = Vec::new();
        find(&"http://".repeat(200_000), true, &mut found);
        find(&format!("https://x.example/{}", "a".repeat(1 << 20)), true, &mut found);
        assert!(found.len() <= 3, "{}", found.len());
    }

    #[test]
    fn a_page_of_very_many_links_has_a_bound() {
        let text: String = (0..10_000).map(|n| format!("https://x.example/{n} ")).collect();
        let mut found = Vec::new();
        find(&text, false, &mut found);
        assert_eq!(found.len(), limit::ADDRESSES_MAX);
    }
}
