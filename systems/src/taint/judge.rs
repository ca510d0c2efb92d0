//! A tool call of a turn that may be tainted is judged.
//!
//! | the turn has read untrusted content, and the call                    | what happens                          |
//! |----------------------------------------------------------------------|---------------------------------------|
//! | sets up what runs by itself, and outsiders began the turn             | refused, whatever the policy          |
//! | has a URL or a search with a secret, or with much that is encoded    | refused, whatever the policy (not `off`) |
//! | has a URL or a text for a page that is too long to be searched       | refused, whatever the policy (not `off`) |
//! | is of a tool that `taint_deny` names                                 | refused                               |
//! | is of a tool that `taint_approve` names                              | it waits for a person                 |
//! | fetches an address that is new ([`super::addresses`]), or searches   | if `taint` says so: waits, refused    |
//! | is sensitive ([`super::tools`])                                      | as `taint` says: noted, waits, refused |
//! | is any other                                                         | it runs                               |
//!
//! Everything but the last leaves an entry in the audit trail. A command may run any file of the workspace: it is judged as if
//! its turn had read all of them, and the turn is tainted by them before the command runs.

use bevy_ecs::prelude::{Entity, World};
use serde_json::Value;

use agentsvc_components::Refusal;
use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::{Manifest, Wake};
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::turn::{Origin, Turn};

use super::addresses::Part;
use super::tools::{Sink, deletes, sink};
use super::{EVENT_OF_TRIGGER, OUTLIVES, add, addresses, exfiltration, files_run, of, user_of};
use crate::config::Settings;
use crate::config::taint::TaintPolicy;
use crate::kernel::glob;
use crate::manifest::{bound_child, lacks};
use crate::taint::metrics::TaintTotals;

/// Tools that set up what begins turns by itself.
const LASTING: [&str; 3] = ["cron_create", "schedule_create", "workflow_run"];

/// Tools whose texts stand in the prompts of all users.
const SHARED: [&str; 1] = ["goal_update"];
/// Why they are refused.
const FOR_ALL: &str = "goals stand in the prompts of all users of this agent, and this conversation is for one of them";

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It runs.
    Run,
    /// It runs, and goes on record with these sources.
    Note(Taint),
    /// It waits for a person, who reads why.
    Approve(Taint, String),
    /// It does not run; the model reads why. The word is for the record.
    Deny(Taint, &'static str, String),
}

/// Finds the agent that a name or an id means.
type FindAgent = fn(&World, &str) -> Result<Entity, Refusal>;

/// Judges a call that the model of a turn asks for. `find` tells whom a call writes to.
pub(crate) fn judge(world: &mut World, turn: Entity, call: &ToolCall, find: FindAgent) -> Judgement {
    let files = files_run(world, turn, &call.name);
    let taint = of(world, turn).with(files);
    if !taint.of_outsiders().is_none() && LASTING.contains(&&*call.name) {
        world.resource_mut::<TaintTotals>().calls_refused += 1;
        return Judgement::Deny(taint, "stranger", format!("Refused: {OUTLIVES}. It did not run."));
    }
    let is_apart = user_of(world, turn).is_some() || !of(world, turn).of_outsiders().is_none();
    if SHARED.contains(&&*call.name) && is_apart {
        return Judgement::Deny(taint, "user", format!("Refused: {FOR_ALL}. It did not run."));
    }
    let security = &world.resource::<Settings>().security;
    if taint.is_none() || security.taint == TaintPolicy::Off {
        return Judgement::Run;
    }
    let (deny, approve) = (glob::any(&security.taint_deny, &call.name), glob::any(&security.taint_approve, &call.name));
    let policy = security.taint;
    let input = serde_json::from_str::<Value>(&call.input).unwrap_or_default();
    let sources = sources(world, turn, taint, files);
    let judgement = if let Some(why) = exfiltration::carries(&call.name, &input) {
        let text = format!(
            "Refused: {why}, and this turn has read untrusted content: {sources}. That is how secrets are stolen. It \
             did not run; fetch a plain address, or ask the user."
        );
        Judgement::Deny(taint, "exfiltration", text)
    } else if deny {
        refused(taint, &sources, NOT_ALLOWED)
    } else if approve {
        Judgement::Approve(taint, because(&sources))
    } else if !is_sensitive(world, turn, &call.name, &input, find) {
        return Judgement::Run;
    } else {
        match policy {
            TaintPolicy::Off => return Judgement::Run,
            TaintPolicy::Audit => Judgement::Note(taint),
            TaintPolicy::Approve => Judgement::Approve(taint, because(&sources)),
            TaintPolicy::Deny if matches!(sink(&call.name), Sink::NewAddress | Sink::NewPage) => {
                refused(taint, &sources, NEW_ADDRESS)
            }
            TaintPolicy::Deny => refused(taint, &sources, NOT_ALLOWED),
        }
    };
    if !matches!(judgement, Judgement::Deny(..)) {
        add(world, turn, files, FILES_RUN);
    }
    let mut counters = world.resource_mut::<TaintTotals>();
    match judgement {
        Judgement::Run => {}
        Judgement::Note(_) => counters.calls_noted += 1,
        Judgement::Approve(..) => counters.calls_gated += 1,
        Judgement::Deny(..) => counters.calls_refused += 1,
    }
    judgement
}

/// What brought the taint of a command that may run tainted files, for people.
const FILES_RUN: &str = "files of the workspace, which a command can run";

/// Why a tool is refused.
const NOT_ALLOWED: &str = "The operator does not allow this tool then.";
/// Why an address is refused.
const NEW_ADDRESS: &str = "Then only addresses that the user gave or that a page or search result showed can be fetched, \
    written exactly like there; this one is new.";

fn refused(taint: Taint, sources: &str, rule: &str) -> Judgement {
    let text = format!(
        "Refused: this turn has read untrusted content: {sources}. {rule} It did not run; answer with what you have, or \
         ask the user."
    );
    Judgement::Deny(taint, "taint", text)
}

fn because(sources: &str) -> String {
    format!("Its turn has read untrusted content: {sources}.")
}

/// The labels, and what brought them as far as the turn remembers. `files` are those that only the workspace brings.
fn sources(world: &World, turn: Entity, taint: Taint, files: Taint) -> String {
    let labels = taint.words().join(", ");
    if !files.is_none() && of(world, turn).is_none() {
        return format!("{labels} ({FILES_RUN}; a user can declare them trusted)");
    }
    let turn = world.get::<Turn>(turn);
    let fired = turn.is_some_and(|turn| matches!(turn.origin, Origin::Trigger { .. }) && !turn.taint.is_none());
    let journal = turn.and_then(|turn| turn.journal.as_deref());
    match journal.map(|journal| journal.tainted_by.join(", ")).filter(|named| !named.is_empty()) {
        Some(named) => format!("{labels} ({named})"),
        None if fired => format!("{labels} ({EVENT_OF_TRIGGER})"),
        None => format!("{labels} (earlier in this session, or what began it)"),
    }
}

fn is_sensitive(world: &World, turn: Entity, tool: &str, input: &Value, find: FindAgent) -> bool {
    let by_origin = addresses::count(world.resource::<Settings>().security.taint);
    match sink(tool) {
        Sink::Never => false,
        Sink::Always => true,
        Sink::Deletion => input["patch"].as_str().is_none_or(deletes),
        Sink::With(argument) => !input[argument].is_null(),
        Sink::Search => by_origin,
        sink @ (Sink::NewAddress | Sink::NewPage) if by_origin => {
            let part = if sink == Sink::NewPage { Part::Whole } else { Part::Sent };
            input["url"].as_str().is_none_or(|url| !addresses::knows(world, turn, url, part))
        }
        Sink::NewAddress | Sink::NewPage => input["url"].as_str().is_none_or(exfiltration::has_query),
        Sink::ToMore => {
            let receiver = input["agent"].as_str().and_then(|name| find(world, name).ok());
            receiver.is_none_or(|receiver| has_more(world, turn, receiver))
        }
    }
}

/// May the receiver do what the turn's agent may not?
fn has_more(world: &World, turn: Entity, receiver: Entity) -> bool {
    let manifest = |agent: Entity| world.get::<Agent>(agent).map(|agent| &agent.manifest);
    let sender = world.get::<Turn>(turn).and_then(|turn| manifest(turn.agent));
    let (Some(sender), Some(receiver)) = (sender, manifest(receiver)) else { return true };
    if sender.hash == receiver.hash {
        return false;
    }
    exceeds(&sender.manifest, receiver.manifest.clone())
}

/// Does a receiver's manifest give more than that of the sender? What is left out is allowed.
fn exceeds(own: &Manifest, mut asked: Manifest) -> bool {
    // Triggers, schedules and models are no rights of whoever is asked.
    asked.triggers.clear();
    (asked.wake, asked.autonomous, asked.max_iterations) = (Wake::Reactive, None, None);
    asked.model = own.model.clone();
    asked.fallback_models.clear();
    let files = asked.capabilities.file_system != Some(false) && own.capabilities.file_system == Some(false);
    let freed =
        lacks(&asked.require_approval, &own.require_approval) || lacks(&asked.tool_blocklist, &own.tool_blocklist);
    // An empty list is all.
    let is_unbound = |child: &[Box<str>], parent: &[Box<str>]| child.is_empty() && !parent.is_empty();
    let skills = !asked.skills_disabled
        && (own.skills_disabled
            || is_unbound(&asked.skills, &own.skills)
            || (own.frozen_skills.is_some() && asked.frozen_skills != own.frozen_skills));
    let tools = is_unbound(&asked.tool_allowlist, &own.tool_allowlist);
    if asked.skills_disabled {
        asked.skills.clear();
    }
    files || freed || skills || tools || bound_child(own, &mut asked).is_err()
}

#[cfg(test)]
mod tests {
    use super::exceeds;
    use crate::manifest::parse;

    #[test]
    fn a_receiver_with_an_open_list_has_more_and_one_that_wakes_by_itself_has_not() {
        let read = |text: &str| parse(&format!("name = \"a\"\n{text}")).unwrap().manifest;
        for (own, asked, more) in [
            ("", "", false),
            ("skills = [\"a\"]", "", true),
            ("skills = [\"a\"]", "skills = [\"b\"]", true),
            ("skills = [\"a\"]", "skills = [\"a\"]", false),
            ("skills = [\"a\"]", "skills_disabled = true", false),
            ("skills = [\"a\"]", "skills = [\"b\"]\nskills_disabled = true", false),
            ("", "skills = [\"b\"]", false),
            ("skills_disabled = true", "skills = [\"b\"]", true),
            ("skills_disabled = true", "", true),
            ("tool_allowlist = [\"a\"]", "", true),
            ("tool_allowlist = [\"a\"]", "tool_allowlist = [\"a\"]", false),
            ("", "[autonomous]", false),
            ("", "schedule = { continuous = {} }", false),
        ] {
            assert_eq!(exceeds(&read(own), read(asked)), more, "{own} / {asked}");
        }
    }

    #[test]
    fn a_receiver_whose_skills_are_not_frozen_has_more() {
        let plain = parse("name = \"a\"").unwrap().manifest;
        let mut frozen = plain.clone();
        frozen.frozen_skills = Some(Vec::new());
        assert!(exceeds(&frozen, plain.clone()));
        assert!(!exceeds(&frozen, frozen.clone()) && !exceeds(&plain, frozen));
    }
}
