//! Taint: what a turn has read that nobody vouches for, and what it may do then.
//!
//! | what a turn reads or begins with                            | label                              |
//! |-------------------------------------------------------------|------------------------------------|
//! | a page, search results                                      | `web`                              |
//! | a file that was sent with its message, or uploaded          | `upload`                           |
//! | the message or the answer of another agent, a task of one   | `agent`, and the labels of its turn |
//! | a custom event                                              | `event`, and those of its publisher |
//! | the output of a command that could reach the network        | `command`                          |
//! | the result of a tool that is not in [`tools`], a client's   | `tool`                             |
//! | a file of its workspace, or a command, which can run any    | those of the turns that wrote there |
//! | an entry or a key of its memory                             | those of the turn that stored it   |
//! | the name of an agent                                        | that of the agent's instructions   |
//! | a turn of a schedule, trigger or workflow                   | those of what made or fired it     |
//! | a message of a chat, but of an administrator               | `chat`                             |
//! | text in which the scanner found a prompt injection          | `injection`, beside its own        |
//!
//! A turn's taint is its own, that of its session (whose history it reads), and that of its agent's instructions. It is
//! stored with each of them, so that no restart loses it, and goes when a history is cleared. It is judged once, when a
//! model asks for a tool ([`judge`]), before the call is journaled: the tool itself decides nothing.

pub(crate) mod addresses;
pub mod audit_kinds;
mod exfiltration;
mod judge;
mod metrics;
mod tools;
mod trust;
mod upload;

pub use addresses::addresses_in;
pub use exfiltration::carries_away;
pub(crate) use judge::{Judgement, judge};
pub(crate) use tools::writes_files;
pub use tools::{Brings, brings, labelled};
pub use trust::TrustFiles;
pub(crate) use trust::{TrustingFiles, may_be_written};
pub use upload::{NoteFiles, NoteUpload};

use bevy_ecs::prelude::{Entity, Resource, World};
use serde_json::json;

use agentsvc_components::agent::Agent;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{InjectionFound, Taint, UntrustedContent};
use agentsvc_components::session::Session;
use agentsvc_components::turn::{Journal, Origin, Turn};
use agentsvc_components::{Actor, AgentId, Refusal, RefusalKind, SessionId, TurnId};

use crate::audit;
use crate::config::Settings;
use crate::event::told::inherits;
use crate::kernel::acting::Acting;
use crate::kernel::counters::Totals;
use crate::kernel::domain::Domain;
use crate::kernel::index::{self, id_of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::outbox::Emit;
use crate::taint::metrics::TaintTotals;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "config", "manifest", "redact", "agent", "event", "session", "turn"],
    install,
    commands: &[CommandDef::of::<NoteUpload>(), CommandDef::of::<NoteFiles>(), CommandDef::of::<TrustFiles>()],
    audit_kinds: audit_kinds::ALL,
    totals: &[Totals::of::<metrics::TaintTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("taint")
};

/// What the command that is carried out for a tool call has read for it, once it said so. Taken by whoever settles the
/// call.
#[derive(Resource, Default)]
struct Carried(Option<Taint>);

/// Prepares a new world.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Carried>();
    inherits(world, |world, event, _, inherited| {
        if matches!(event, Event::Custom { .. }) {
            inherited.taint = inherited.taint.with(tracked(world, Taint::EVENT));
        }
    });
}

/// A command has read something of this taint.
pub(crate) fn carry(world: &mut World, taint: Taint) {
    let mut carried = world.resource_mut::<Carried>();
    carried.0 = Some(carried.0.unwrap_or_default().with(taint));
}

/// Nothing is carried: another call is carried out.
pub(crate) fn forget_carried(world: &mut World) {
    world.resource_mut::<Carried>().0 = None;
}

/// What the command that was carried out for a call of `tool` has read.
pub(crate) fn take_carried(world: &mut World, tool: &str) -> Taint {
    tools::settled(tool, world.resource_mut::<Carried>().0.take())
}

/// The taint of an agent's instructions, which its name and goals came with.
pub(crate) fn of_agent(world: &World, agent: Entity) -> Taint {
    world.get::<Agent>(agent).map(|agent| agent.taint.own).unwrap_or_default()
}

fn is_off(world: &World) -> bool {
    world.resource::<Settings>().security.taint == crate::config::taint::TaintPolicy::Off
}

/// All that counts for a turn.
pub(crate) fn of(world: &World, turn: Entity) -> Taint {
    let Some(turn) = world.get::<Turn>(turn) else { return Taint::NONE };
    let session = world.get::<Session>(turn.session).map(|session| session.taint).unwrap_or_default();
    turn.taint.with(session).with(of_agent(world, turn.agent))
}

/// The taint of the turn that acts now; none for a client, or the daemon.
pub(crate) fn acting(world: &World) -> Taint {
    match world.resource::<Acting>().0 {
        Actor::Agent { turn, .. } => index::turn(world, turn).map(|turn| of(world, turn)).unwrap_or_default(),
        Actor::System | Actor::Api | Actor::Client | Actor::Key { .. } | Actor::Hook | Actor::Peer | Actor::Chat => {
            Taint::NONE
        }
    }
}

/// What the turn that acts now hands to others: its taint, and that an agent wrote it.
pub(crate) fn handed_on(world: &World) -> Taint {
    match world.resource::<Acting>().0 {
        Actor::Agent { .. } => tracked(world, acting(world).with(Taint::AGENT)),
        Actor::System | Actor::Api | Actor::Client | Actor::Key { .. } | Actor::Hook | Actor::Peer | Actor::Chat => {
            Taint::NONE
        }
    }
}

/// Why a turn that outsiders began makes nothing that begins turns by itself.
pub(crate) const OUTLIVES: &str = "a stranger began this conversation, or someone in a chat who is no administrator, so nothing \
    may be set up in it that runs by itself or goes on after it: no schedules, cron jobs, triggers and workflows";

/// Refuses to set up what begins turns by itself where outsiders began the turn that acts now.
pub(crate) fn check_lasting(world: &World) -> Result<(), Refusal> {
    match acting(world).of_outsiders().is_none() {
        true => Ok(()),
        false => Err(Refusal::new(RefusalKind::Forbidden, OUTLIVES)),
    }
}

/// The user that the turn is for that acts now, where its client named one.
pub(crate) fn acting_user(world: &World) -> Option<Box<str>> {
    let Actor::Agent { turn, .. } = world.resource::<Acting>().0 else { return None };
    user_of(world, index::turn(world, turn)?)
}

/// Does the turn that acts now have to stay with what is its user's own? So it is for one of several users, and where outsiders
/// began it. Gives that user.
pub(crate) fn apart(world: &World) -> Option<Option<Box<str>>> {
    let user = acting_user(world);
    (user.is_some() || !acting(world).of_outsiders().is_none()).then_some(user)
}

/// The user that a turn is for, where its client named one.
pub(crate) fn user_of(world: &World, turn: Entity) -> Option<Box<str>> {
    world.get::<Turn>(turn)?.request.as_ref()?.user.clone()
}

/// What brought the taint of a turn that a trigger fired, for people.
pub(crate) const EVENT_OF_TRIGGER: &str = "the event of its trigger";

/// A turn has read something: the turn, its session and its agent know from now on. `source` is for people.
pub(crate) fn add(world: &mut World, turn: Entity, taint: Taint, source: &str) {
    let taint = tracked(world, taint.as_read());
    if taint.is_none() {
        return;
    }
    let Some(mut component) = world.get_mut::<Turn>(turn) else { return };
    component.taint = component.taint.with(taint);
    let (agent, session) = (component.agent, component.session);
    let journal = component.journal.get_or_insert_default();
    let source = &source[..source.floor_char_boundary(limit::TAINT_SOURCE_BYTES_MAX)];
    if journal.tainted_by.len() < limit::TAINT_SOURCES_MAX && !journal.tainted_by.iter().any(|known| **known == *source)
    {
        journal.tainted_by.push(source.into());
    }
    world.mark(turn);
    known(world, agent, session, taint);
}

/// The session in which strangers began a turn, the chain of messages that it is part of, or what fired it; `None` where none did.
pub(crate) fn began_in(world: &World, turn: Entity) -> Option<SessionId> {
    let component = world.get::<Turn>(turn).filter(|_| !of(world, turn).of_strangers().is_none())?;
    let first = component.link.as_ref().and_then(|link| link.began_in);
    let first = first.or_else(|| component.request.as_ref()?.began_in);
    first.or_else(|| Some(id_of(world, component.session)))
}

/// What is tracked of a taint. Where the operator wants none to be, that of outsiders still is: which conversations they reach
/// does not depend on it.
pub(crate) fn tracked(world: &World, taint: Taint) -> Taint {
    if is_off(world) { taint.of_outsiders() } else { taint }
}

/// What the journal of a turn that begins with a taint says of its source. What fired a turn says its origin: very many
/// that wait for one event need no journal each.
pub(crate) fn began_by(taint: Taint, origin: Origin, source: &str) -> Option<Box<Journal>> {
    let says = !taint.is_none() && !matches!(origin, Origin::Trigger { .. });
    says.then(|| Box::new(Journal { tainted_by: vec![source.into()], ..Journal::default() }))
}

/// A turn begins with a taint: its session and its agent know from now on.
pub(crate) fn began(world: &mut World, agent: Entity, session: Entity, taint: Taint) {
    if !taint.is_none() {
        known(world, agent, session, taint);
    }
}

fn known(world: &mut World, agent: Entity, session: Entity, taint: Taint) {
    if let Some(mut home) = world.get_mut::<Session>(session).filter(|home| !home.taint.holds(taint)) {
        home.taint = home.taint.with(taint);
        world.mark(session);
    }
    if let Some(mut owner) = world.get_mut::<Agent>(agent).filter(|owner| !owner.taint.seen.holds(taint)) {
        owner.taint.seen = owner.taint.seen.with(taint);
        world.mark(agent);
    }
}

/// A text came into a session that no turn has read, such as a summary that a plugin wrote.
pub(crate) fn brought(world: &mut World, session: Entity, taint: Taint) {
    let taint = tracked(world, taint.as_read());
    let agent = world.get::<Session>(session).map(|home| home.agent);
    if let Some(agent) = agent.filter(|_| !taint.is_none()) {
        known(world, agent, session, taint);
    }
}

/// A session came with a history: its agent has seen what stands in it.
pub(crate) fn seen(world: &mut World, session: Entity) {
    let Some((agent, taint)) = world.get::<Session>(session).map(|home| (home.agent, home.taint)) else { return };
    if let Some(mut owner) = world.get_mut::<Agent>(agent).filter(|owner| !owner.taint.seen.holds(taint)) {
        owner.taint.seen = owner.taint.seen.with(taint);
        world.mark(agent);
    }
}

/// A turn takes in what a tool's result brought.
pub(crate) fn take_in(world: &mut World, turn: Entity, tool: &str, brought: &UntrustedContent) {
    let found = if brought.found.is_some() { Taint::INJECTION } else { Taint::NONE };
    add(world, turn, brought.taint.with(found), &brought.source);
    addresses::read(world, turn, &brought.addresses);
    if let Some(found) = &brought.found {
        let agent = world.get::<Turn>(turn).map(|turn| turn.agent).map(|agent| id_of::<AgentId>(world, agent));
        let turn = id_of::<TurnId>(world, turn);
        let actor = agent.map_or(Actor::System, |agent| Actor::Agent { agent, turn });
        note_injection(world, actor, agent, tool, found);
    }
}

/// A call of this turn has come back: what its agent's other turns wrote while it ran may stand in what it has read.
pub(crate) fn read_meanwhile(world: &mut World, turn: Entity, tool: &str) {
    let Some(agent) = world.get::<Turn>(turn).map(|turn| turn.agent) else { return };
    let Some(taint) = world.get::<Agent>(agent).map(|owner| tools::reads_of(tool, owner.taint).as_read()) else {
        return;
    };
    if !of(world, turn).holds(taint) {
        add(world, turn, taint, tool);
    }
}

/// What a call of the tool may run of its agent's workspace and its turn has not read.
fn files_run(world: &World, turn: Entity, tool: &str) -> Taint {
    let agent =
        world.get::<Turn>(turn).filter(|_| tools::runs_files(tool)).and_then(|turn| world.get::<Agent>(turn.agent));
    // As read: a turn that has read what a stranger wrote holds that, and so does the stranger's own.
    let files = agent.map(|agent| agent.taint.files.as_read()).unwrap_or_default();
    let held = of(world, turn);
    if held.with(held.as_read()).holds(files) { Taint::NONE } else { files }
}

/// Does the judgement of a call that has not gone out hold no more, because files that it may run have been written since by
/// a turn of another taint?
pub(crate) fn is_outdated(world: &World, turn: Entity, tool: &str) -> bool {
    let policy = world.resource::<Settings>().security.taint;
    addresses::count(policy) && !files_run(world, turn, tool).is_none()
}

/// A call of this turn may have written files of the workspace.
pub(crate) fn files_written(world: &mut World, turn: Entity) {
    let taint = of(world, turn);
    if let Some(agent) = world.get::<Turn>(turn).map(|turn| turn.agent) {
        stain_files(world, agent, taint);
    }
}

/// The taint that a call of the tool may give to files of the workspace: what its turn has read, and for a command what it can get
/// from the network by itself.
pub(crate) fn may_write(world: &World, turn: Entity, tool: &str) -> Taint {
    if !writes_files(tool) {
        return Taint::NONE;
    }
    let agent = world.get::<Turn>(turn).and_then(|turn| world.get::<Agent>(turn.agent));
    let loads = agent.map(|agent| tools::loads(tool, &agent.manifest.manifest)).unwrap_or_default();
    of(world, turn).with(tracked(world, loads))
}

/// A call of this turn went out, and no result says what it has read: what it may have written is there nonetheless.
pub(crate) fn files_left(world: &mut World, turn: Entity, tool: &str) {
    let taint = may_write(world, turn, tool);
    if let Some(agent) = world.get::<Turn>(turn).map(|turn| turn.agent) {
        stain_files(world, agent, taint);
    }
}

/// The agent's workspace holds content of this taint from now on.
fn stain_files(world: &mut World, agent: Entity, taint: Taint) {
    if let Some(mut owner) = world.get_mut::<Agent>(agent).filter(|owner| !owner.taint.files.holds(taint)) {
        owner.taint.files = owner.taint.files.with(taint);
        world.mark(agent);
    }
}

/// The instructions of an agent come from the turn that acts now, or a part of them does.
pub(crate) fn stain(world: &mut World, agent: Entity) {
    let taint = acting(world).as_read();
    stain_with(world, agent, taint);
}

/// The instructions of an agent hold content of this taint from now on.
pub(crate) fn stain_with(world: &mut World, agent: Entity, taint: Taint) {
    if let Some(mut owner) = world.get_mut::<Agent>(agent).filter(|owner| !owner.taint.own.holds(taint)) {
        owner.taint.own = owner.taint.own.with(taint);
        world.mark(agent);
    }
}

/// Puts on record that a text from outside looks like a prompt injection, and counts it.
pub(crate) fn note_injection(
    world: &mut World,
    actor: Actor,
    agent: Option<AgentId>,
    source: &str,
    found: &InjectionFound,
) {
    let InjectionFound { level, score, reasons, at, withheld } = found;
    let mut counters = world.resource_mut::<TaintTotals>();
    counters.injections_found += 1;
    counters.injections_withheld += u64::from(*withheld);
    let details = json!({
        "source": source, "level": level, "score": score, "reasons": reasons, "at": at, "withheld": withheld,
    });
    audit::append(world, actor, audit_kinds::INJECTION_FOUND, agent, &details);
}

#[cfg(test)]
mod tests;
