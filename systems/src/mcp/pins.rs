//! The tools of MCP servers as they were accepted. The world decides which tools of a list may be offered; what models read
//! of them stays outside, and is known by its hash here.

use std::collections::BTreeMap;

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::mcp::{McpPin, McpPinId, PinnedTool};
use agentsvc_components::{Refusal, Timestamp};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{audit_kinds, error_codes, limits};
use crate::audit::Audit;
use crate::config::Settings;
use crate::config::taint::TaintPolicy;
use crate::kernel::check::Faults;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{self, Entities, Indexed, Mirrored, Put, change};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::kernel::quota::Quota;

/// Hex digits of a hash.
const HASH_DIGITS: usize = 64;
/// Milliseconds in which [`limits::MCP_CHANGES_NOTED_MAX`] changes are put on the audit log.
const NOTED_PERIOD_MS: i64 = 3_600_000;
/// Tools that a server can have beside those that it lists: for its resources and prompts.
const OWN_TOOLS_MAX: usize = 4;

type McpPins = Entities<McpPin>;

const QUOTA: Quota = Quota {
    count: limits::MCP_PINS_MAX,
    bytes: limits::MCP_PINS_BYTES_MAX,
    what: "lists of accepted MCP tools",
    code: error_codes::MCP_PINS_FULL,
};

impl Indexed for McpPin {
    type Places = PinPlaces;
    const NOUN: &'static str = "list of accepted MCP tools";

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// Pins by the names of their servers.
#[derive(Debug, Default, PartialEq)]
pub struct PinPlaces(BTreeMap<Box<str>, McpPinId>);

impl Mirrored<McpPin> for PinPlaces {
    fn place(&mut self, id: McpPinId, pin: &McpPin, is_in: bool) {
        self.0.put((pin.server.clone(), id), is_in);
    }
}

/// A tool of a server as it was listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTool {
    /// Its name, as it stands behind `mcp_<server>_`.
    pub name: String,
    /// SHA-256 of all that models read of it, in hex.
    pub hash: String,
    /// It looks like a prompt injection, and models would read that.
    pub flagged: bool,
}

/// How a list differs from what was accepted: names of tools in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChanges {
    /// Tools that were not there.
    pub new: Vec<String>,
    /// Tools that are not as they were.
    pub changed: Vec<String>,
    /// Tools that are not there any more.
    pub removed: Vec<String>,
}

impl ToolChanges {
    /// Between what was accepted and what is listed.
    #[must_use]
    pub fn between(pinned: &[PinnedTool], listed: &[ListedTool]) -> Self {
        let mut before: BTreeMap<&str, &str> = pinned.iter().map(|tool| (&*tool.name, &*tool.hash)).collect();
        let mut changes = Self::default();
        for tool in listed {
            match before.remove(&*tool.name) {
                None => changes.new.push(tool.name.clone()),
                Some(hash) if *hash != *tool.hash => changes.changed.push(tool.name.clone()),
                Some(_) => {}
            }
        }
        changes.removed = before.into_keys().map(str::to_owned).collect();
        changes
    }

    /// Is every listed tool as it was accepted? Tools may be missing.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty()
    }
}

/// What is known of a server's accepted tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPin {
    /// The tools; `None` when the server never listed any.
    pub tools: Option<Vec<PinnedTool>>,
    /// When these were accepted: a tool that is the same now was the same since then.
    pub accepted_at: Timestamp,
    /// Do other tools wait for the operator?
    pub is_strict: bool,
}

/// Reads the accepted tools of the server of this name.
#[derive(Clone, Debug)]
pub struct FindMcpPin(
    /// The name of the server.
    pub String,
);

command!(read "find_mcp_pin" FindMcpPin => FoundPin, Root, |it, world| {
    let pin = named(world, &it.0).and_then(|at| world.get::<McpPin>(at));
    let accepted_at = pin.map(|pin| pin.updated_at).unwrap_or_default();
    let tools = pin.map(|pin| pin.tools.clone());
    Answer::read(FoundPin { tools, accepted_at, is_strict: is_strict(world) })
});

/// Reads the names of all servers whose tools were accepted.
#[derive(Clone, Debug)]
pub struct ListMcpPins;

command!(read "list_mcp_pins" ListMcpPins => Vec<String>, Root, |_, world| {
    Answer::read(world.resource::<McpPins>().0.keys().map(|name| name.to_string()).collect())
});

/// A server has listed its tools. The first list is accepted, save for what looks like a prompt injection where other tools
/// wait for the operator. Later ones are accepted as a whole or not, as `[security] taint` says. Replies with the accepted
/// tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NoteMcpTools {
    /// The name of the server.
    pub server: String,
    /// The hash of the list.
    pub hash: String,
    /// The tools in the order of their names, each once.
    pub tools: Vec<ListedTool>,
}

command!(write "note_mcp_tools" NoteMcpTools => Vec<PinnedTool>, Root, |it, world| Answer::stored(note(world, &it)));

/// The operator accepts the tools of a server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AcceptMcpTools {
    /// The name of the server.
    pub server: String,
    /// The tools in the order of their names, each once.
    pub tools: Vec<ListedTool>,
}

command!(write "accept_mcp_tools" AcceptMcpTools => (), Root, |it, world| Answer::stored(accept(world, &it)));

/// The server of this name is gone, and one that comes by its name is another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForgetMcpTools(
    /// The name of the server.
    pub String,
);

command!(write "forget_mcp_tools" ForgetMcpTools => (), Root, |it, world| {
    forget(world, &it.0);
    Answer::Stored(())
});

fn is_strict(world: &World) -> bool {
    matches!(world.resource::<Settings>().security.taint, TaintPolicy::Approve | TaintPolicy::Deny)
}

fn named(world: &World, server: &str) -> Option<Entity> {
    let all = world.resource::<McpPins>();
    all.0.get(server).and_then(|id| all.get(*id))
}

/// Forgets what was accepted of this server.
pub(super) fn forget(world: &mut World, server: &str) {
    if let Some(at) = named(world, server) {
        world.despawn(at);
    }
}

fn checked(server: &str, tools: &[ListedTool]) -> Result<(), Refusal> {
    if server.is_empty() || server.len() > limits::MCP_TOOL_NAME_BYTES_MAX {
        return Err(Refusal::bad_field("server", "server must be the name of an MCP server"));
    }
    let most = limits::MCP_SERVER_TOOLS_MAX + OWN_TOOLS_MAX;
    if tools.len() > most {
        return Err(Refusal::bad_field("tools", format!("tools must be at most {most}")));
    }
    let is_name = |name: &str| (1..=limits::MCP_TOOL_NAME_BYTES_MAX).contains(&name.len());
    let are_valid = tools.iter().all(|tool| is_name(&tool.name) && tool.hash.len() == HASH_DIGITS);
    if !are_valid || !tools.is_sorted_by(|a, b| a.name < b.name) {
        return Err(Refusal::bad_field("tools", "tools must have names, each once and in order, and hashes"));
    }
    Ok(())
}

fn pinned(tools: &[ListedTool], takes: impl Fn(&ListedTool) -> bool) -> Vec<PinnedTool> {
    let pin = |tool: &ListedTool| PinnedTool { name: tool.name.as_str().into(), hash: tool.hash.as_str().into() };
    tools.iter().filter(|tool| takes(tool)).map(pin).collect()
}

/// The pin of this server with these tools, new or changed.
fn put(world: &mut World, server: &str, tools: Vec<PinnedTool>) -> Result<Entity, Refusal> {
    let now = world.resource::<Now>().0;
    if let Some(at) = named(world, server) {
        let before = world.get::<McpPin>(at).map_or(0, McpPin::bytes);
        let after = McpPin { server: server.into(), tools: tools.clone(), ..McpPin::default() }.bytes();
        QUOTA.admit(world.resource::<McpPins>().used, 0, after.saturating_sub(before))?;
        change(world, at, |pin: &mut McpPin| (pin.tools, pin.noted, pin.updated_at) = (tools, None, now));
        return Ok(at);
    }
    let pin = McpPin { server: server.into(), tools, updated_at: now, noted_since: now, ..McpPin::default() };
    QUOTA.admit(world.resource::<McpPins>().used, 1, pin.bytes())?;
    let id: McpPinId = mint(world, Slot::ROOT);
    let at = world.spawn((id, pin)).id();
    world.mark(at);
    Ok(at)
}

fn note(world: &mut World, it: &NoteMcpTools) -> Result<Vec<PinnedTool>, Refusal> {
    checked(&it.server, &it.tools)?;
    if it.hash.len() != HASH_DIGITS {
        return Err(Refusal::bad_field("hash", format!("hash must have {HASH_DIGITS} digits")));
    }
    let is_strict = is_strict(world);
    let at = match named(world, &it.server) {
        Some(at) => at,
        None => put(world, &it.server, pinned(&it.tools, |tool| !(is_strict && tool.flagged)))?,
    };
    let pin = world.get::<McpPin>(at).cloned().unwrap_or_default();
    let changes = ToolChanges::between(&pin.tools, &it.tools);
    if changes.is_accepted() {
        return Ok(pin.tools);
    }
    if !is_strict {
        put(world, &it.server, pinned(&it.tools, |_| true))?;
    }
    // A list that was held is noted again when it is accepted after all.
    let is_known = is_strict && pin.noted.as_deref() == Some(&*it.hash);
    if !is_known && may_note(world, at, is_strict.then_some(&*it.hash)) {
        audit(world, audit_kinds::MCP_TOOLS_CHANGED, &it.server, Some(is_strict), &changes);
    }
    Ok(world.get::<McpPin>(at).map(|pin| pin.tools.clone()).unwrap_or_default())
}

/// Counts a change of the pin's server. False when there were too many within an hour.
fn may_note(world: &mut World, at: Entity, hash: Option<&str>) -> bool {
    let now: Timestamp = world.resource::<Now>().0;
    let mut may = false;
    change(world, at, |pin: &mut McpPin| {
        if now.0.saturating_sub(pin.noted_since.0) >= NOTED_PERIOD_MS {
            (pin.noted_since, pin.notes) = (now, 0);
        }
        may = pin.notes < limits::MCP_CHANGES_NOTED_MAX;
        if may {
            pin.notes += 1;
            pin.noted = hash.map(Box::from);
        }
    });
    may
}

fn accept(world: &mut World, it: &AcceptMcpTools) -> Result<(), Refusal> {
    checked(&it.server, &it.tools)?;
    let before = named(world, &it.server).and_then(|at| world.get::<McpPin>(at)).map(|pin| pin.tools.clone());
    let changes = ToolChanges::between(&before.unwrap_or_default(), &it.tools);
    put(world, &it.server, pinned(&it.tools, |_| true))?;
    audit(world, audit_kinds::MCP_TOOLS_ACCEPTED, &it.server, None, &changes);
    Ok(())
}

/// Puts a change on the audit log. `is_held`: its tools wait for the operator.
fn audit(world: &mut World, kind: AuditKind, server: &str, is_held: Option<bool>, changes: &ToolChanges) {
    let mut details = Map::new();
    details.insert("server".to_owned(), server.into());
    details.extend(is_held.map(|is_held| ("held".to_owned(), is_held.into())));
    let mut more = 0;
    for (key, names) in [("new", &changes.new), ("changed", &changes.changed), ("removed", &changes.removed)] {
        let named = names.iter().take(limits::MCP_CHANGES_NAMED_MAX).cloned();
        more += names.len().saturating_sub(limits::MCP_CHANGES_NAMED_MAX);
        details.insert(key.to_owned(), named.map(Value::from).collect());
    }
    if more > 0 {
        details.insert("more".to_owned(), more.into());
    }
    world.audit(kind, None, Value::Object(details));
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<McpPin>(world, faults, |world, id, pin, faults| {
        let found = world.resource::<McpPins>().0.get(&pin.server);
        faults.that(found == Some(&id), || format!("accepted tools of {}: the name leads to {found:?}", pin.server));
    });
    QUOTA.check(world.resource::<McpPins>().used, faults);
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Actor;

    use super::*;
    use crate::testing::TestWorld;

    fn world(taint: TaintPolicy) -> TestWorld {
        let mut settings = Settings::default();
        settings.security.taint = taint;
        let mut world = TestWorld::with(settings);
        world.actor = Actor::System;
        world
    }

    /// Tools by name and a digit of their hash; `!` marks one that looks like a prompt injection.
    fn tools(given: &[&str]) -> Vec<ListedTool> {
        let tool = |given: &&str| {
            let (name, digit) = given.trim_end_matches('!').split_at(given.trim_end_matches('!').len() - 1);
            ListedTool { name: name.to_owned(), hash: digit.repeat(HASH_DIGITS), flagged: given.ends_with('!') }
        };
        given.iter().map(tool).collect()
    }

    fn list(world: &mut TestWorld, given: &[&str]) -> Vec<String> {
        let hash = format!("{:0>64}", given.join(""));
        let note = NoteMcpTools { server: "s".to_owned(), hash, tools: tools(given) };
        names(&world.ask(note).unwrap())
    }

    fn names(tools: &[PinnedTool]) -> Vec<String> {
        tools.iter().map(|tool| format!("{}{}", tool.name, &tool.hash[..1])).collect()
    }

    fn found(world: &mut TestWorld) -> Option<Vec<String>> {
        world.ask(FindMcpPin("s".to_owned())).unwrap().tools.map(|tools| names(&tools))
    }

    #[test]
    fn what_changes_waits_for_the_operator_where_taint_counts() {
        for taint in [TaintPolicy::Approve, TaintPolicy::Deny] {
            let mut world = world(taint);
            assert_eq!(found(&mut world), None);
            assert_eq!(list(&mut world, &["a1", "b1"]), ["a1", "b1"]);
            assert_eq!(list(&mut world, &["a2", "b1", "c1"]), ["a1", "b1"]);
            world.restart();
            assert_eq!(found(&mut world).unwrap(), ["a1", "b1"]);
            // What comes back as it was is no change; what is missing stays accepted.
            assert_eq!(list(&mut world, &["b1"]), ["a1", "b1"]);
            world.ask(AcceptMcpTools { server: "s".to_owned(), tools: tools(&["a2", "c1"]) }).unwrap();
            assert_eq!(found(&mut world).unwrap(), ["a2", "c1"]);
            assert_eq!(list(&mut world, &["a2", "c1"]), ["a2", "c1"]);
            world.ask(ForgetMcpTools("s".to_owned())).unwrap();
            assert_eq!(found(&mut world), None);
            assert_eq!(list(&mut world, &["z1"]), ["z1"]);
        }
    }

    #[test]
    fn what_changes_is_accepted_where_taint_does_not_count() {
        for taint in [TaintPolicy::Off, TaintPolicy::Audit] {
            let mut world = world(taint);
            assert_eq!(list(&mut world, &["a1", "b1!"]), ["a1", "b1"]);
            assert_eq!(list(&mut world, &["b2", "c1"]), ["b2", "c1"]);
            assert_eq!(found(&mut world).unwrap(), ["b2", "c1"]);
            assert!(!world.ask(FindMcpPin("s".to_owned())).unwrap().is_strict);
        }
    }

    #[test]
    fn what_looks_like_an_injection_is_not_accepted_by_adding_the_server() {
        let mut world = world(TaintPolicy::Deny);
        assert_eq!(list(&mut world, &["a1", "b1!"]), ["a1"]);
        assert_eq!(list(&mut world, &["a1", "b1!"]), ["a1"]);
        world.ask(AcceptMcpTools { server: "s".to_owned(), tools: tools(&["a1", "b1!"]) }).unwrap();
        assert_eq!(list(&mut world, &["a1", "b1!"]), ["a1", "b1"]);
    }

    #[test]
    fn the_audit_log_has_each_list_once_and_not_more_than_so_many() {
        let mut world = world(TaintPolicy::Deny);
        list(&mut world, &["a1"]);
        let notes = |world: &mut TestWorld| {
            let at = named(world.engine.world(), "s").unwrap();
            world.engine.world().get::<McpPin>(at).unwrap().notes
        };
        for _ in 0..3 {
            list(&mut world, &["a2"]);
        }
        assert_eq!(notes(&mut world), 1);
        for at in 0..100 {
            let note = NoteMcpTools { server: "s".to_owned(), hash: format!("{at:064}"), tools: tools(&["a3"]) };
            world.ask(note).unwrap();
        }
        assert_eq!(notes(&mut world), limits::MCP_CHANGES_NOTED_MAX);
        world.now.0 += NOTED_PERIOD_MS;
        list(&mut world, &["a4"]);
        assert_eq!(notes(&mut world), 1);
        // What was held is accepted by a laxer policy, once.
        world.engine.world_mut().resource_mut::<Settings>().security.taint = TaintPolicy::Audit;
        (0..2).for_each(|_| assert_eq!(list(&mut world, &["a4"]), ["a4"]));
        assert_eq!(notes(&mut world), 2);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let mut world = world(TaintPolicy::Deny);
        let hash = "0".repeat(HASH_DIGITS);
        let many: Vec<_> = (0..2_000).map(|at| format!("t{at:04}1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for given in [&["b1", "a1"][..], &["a1", "a2"], &["1"], &many] {
            let note = NoteMcpTools { server: "s".to_owned(), hash: hash.clone(), tools: tools(given) };
            assert_eq!(world.ask(note).unwrap_err().field.as_deref(), Some("tools"));
        }
        let bad = NoteMcpTools { server: "s".to_owned(), hash: "1".to_owned(), tools: Vec::new() };
        assert_eq!(world.ask(bad).unwrap_err().field.as_deref(), Some("hash"));
        let bad = AcceptMcpTools { server: String::new(), tools: Vec::new() };
        assert_eq!(world.ask(bad).unwrap_err().field.as_deref(), Some("server"));
        assert!(world.ask(ListMcpPins).unwrap().is_empty());
    }

    #[test]
    fn there_are_so_many_lists() {
        let mut world = world(TaintPolicy::Audit);
        let hash = "0".repeat(HASH_DIGITS);
        let note = |at: usize| NoteMcpTools { server: format!("s{at}"), hash: hash.clone(), tools: tools(&["a1"]) };
        for at in 0..limits::MCP_PINS_MAX {
            world.ask(note(at)).unwrap();
        }
        let refusal = world.ask(note(limits::MCP_PINS_MAX)).unwrap_err();
        assert_eq!(refusal.code, Some(error_codes::MCP_PINS_FULL));
        assert_eq!(world.ask(ListMcpPins).unwrap().len(), limits::MCP_PINS_MAX);
    }
}
