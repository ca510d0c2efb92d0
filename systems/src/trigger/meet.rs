//! Events meet the triggers that wait for them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bevy_ecs::prelude::{Entity, Mut, World};
use uuid::Uuid;

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::trigger::record::AskedRecord;
use agentsvc_components::trigger::{FireOutcome, Trigger};
use agentsvc_components::{Actor, TriggerId};

use super::TriggerTotals;
use super::index::{Candidates, Found, Line, Members, Subject, Triggers};
use super::waves::{self, Occurrence, Shown, Wave, Waves};
use crate::agent::limit_of;
use crate::config::Settings;
use crate::event::told::{self, Events};
use crate::injection::{Shielded, shield};
use crate::kernel::index;
use crate::taint;

/// Triggers of a line that are listed as soon as an event has found them. Of more those are found whose turn it is.
const LISTED_MAX: usize = 64;

/// The event as agents read it, made when it is first asked for: what nobody reads is neither written nor scanned.
pub(super) fn show<'o>(world: &mut World, what: &'o Occurrence) -> &'o Shown {
    if let Some(shown) = what.shown.get() {
        return shown;
    }
    let Some(happened) = world.resource::<Events>().get(what.place) else {
        return what.shown.get_or_init(|| Shown { event: Box::default(), taint: what.taint });
    };
    let (agent, Shielded { text, found }) = (happened.event.agent(), shielded(world, &happened.event));
    let mut taint = what.taint;
    if let Some(found) = found {
        taint = taint.with(Taint::INJECTION);
        taint::note_injection(world, Actor::System, agent, "event", &found);
    }
    what.shown.get_or_init(|| Shown { event: text.into(), taint })
}

/// At the end of a step: what waits and is not stored as it is gets its record.
// &mut World: shows an event's texts through the scanner, which counts what it finds.
pub(crate) fn keep_waiting(world: &mut World) {
    waves::keep_waiting(world, |world, what| {
        show(world, what);
    });
}

/// Shows the triggers what happened since they looked last.
// &mut World: matching reads agents, settings and the index of triggers, and may tell events.
pub(crate) fn meet(world: &mut World) {
    if world.resource::<Events>().has_unmatched() {
        told::unmatched(world, match_events);
    }
}

/// Events meet the triggers that wait for them. Each event comes here once, in the step in which it happened; `from` is
/// which event of the step the first of them is.
fn match_events(world: &mut World, events: &[EventEnvelope], from: usize) {
    if world.resource::<Triggers>().len() == 0 {
        return;
    }
    world.resource_scope(|world, mut waves: Mut<'_, Waves>| {
        let (mut refused, mut limited) = (0, 0);
        let matcher = world.resource::<Triggers>().matcher();
        let mut found = Found::new();
        for (place, happened) in (from..).zip(events) {
            found.clear();
            let subject = matcher.find(&happened.event, || name_of(world, &happened.event), &mut found);
            let all = found.iter().flat_map(|of| of.set.lines().map(move |(line, members)| (line, *of, members)));
            // Those of nobody are compared at once; most events find none but those.
            let lines: Vec<_> = all.filter(|(line, of, _)| line.is_some() || of.pass(&subject)).collect();
            let count: usize = lines.iter().map(|(_, _, members)| members.len()).sum();
            if count == 0 {
                continue;
            }
            if happened.depth > 0 && waves.waiting() + count > limit::CASCADE_WAITING_MAX {
                limited += count as u64;
            } else if waves.waiting() + count > limit::MATCHES_WAITING_MAX {
                refused += count as u64;
            } else {
                let over = if happened.depth > 0 { &mut limited } else { &mut refused };
                *over += enqueue(world, &mut waves, (happened, place), (lines, &subject), count > LISTED_MAX);
            }
        }
        let totals = &mut world.resource_mut::<TriggerTotals>().outcomes;
        totals.add(FireOutcome::RateLimited, limited);
        totals.add(FireOutcome::Refused, refused);
    });
}

/// The event as text. What is published from outside is scanned, once for all who read it.
fn shielded(world: &World, event: &Event) -> Shielded {
    let text = serde_json::to_string(event).unwrap_or_default();
    match event {
        Event::Custom { .. } => {
            shield(world.resource::<Settings>().security.prompt_injection, "a custom event", text).here()
        }
        _ => Shielded { text, found: None },
    }
}

/// Adds the matches of an event to their lines; gives the number of those whose holders have no room for more. `is_large`: there are
/// so many that those of a line may be too many to list.
fn enqueue(
    world: &World,
    waves: &mut Waves,
    (happened, place): (&EventEnvelope, usize),
    (mut lines, subject): (Vec<(Line, Candidates<'_>, &Members)>, &Subject<'_>),
    is_large: bool,
) -> u64 {
    lines.sort_by_key(|(line, ..)| *line);
    let about = happened.event.agent().and_then(|agent| index::agent(world, agent).ok());
    let owner = about.and_then(|agent| world.get::<OwnedBy>(agent)).map(|owner| owner.0);
    let pool = if happened.depth > 0 { limit::CASCADE_WAITING_MAX } else { limit::MATCHES_WAITING_MAX };
    let (mut what, mut over) = (None, 0);
    for of_line in lines.chunk_by(|one, other| one.0 == other.0) {
        let line = of_line[0].0;
        let mut count: usize = of_line.iter().map(|(_, _, members)| members.len()).sum();
        let mut listed: Option<Vec<(TriggerId, Entity)>> = None;
        if count <= LISTED_MAX {
            let all = of_line.iter().filter(|(_, of, _)| line.is_none() || of.pass(subject));
            let all = all.flat_map(|(_, _, members)| members.iter().copied());
            let mut all: Vec<_> = all.filter(|(_, trigger)| may_see(world, *trigger, owner)).collect();
            if all.is_empty() {
                continue;
            }
            if of_line.len() > 1 {
                all.sort_unstable();
            }
            count = all.len();
            listed = Some(all);
        }
        if !waves.admit(line, count, pool) {
            over += count as u64;
            continue;
        }
        let what = what.get_or_insert_with(|| Arc::new(occurrence(world, happened, place, is_large.then_some(owner))));
        let newest = || world.resource::<Triggers>().newest().unwrap_or(TriggerId(Uuid::nil()));
        let wave = listed.map_or_else(|| Wave::unlisted(what, newest(), count), |listed| Wave::of(what, listed));
        waves.push(line, wave);
    }
    over
}

/// What is kept of an event, and if `asked` it itself with the user whom its agent belongs to.
fn occurrence(world: &World, happened: &EventEnvelope, place: usize, asked: Option<Option<UserId>>) -> Occurrence {
    let name = || name_of(world, &happened.event).map(|name| name.as_ref().into());
    let asked = asked.map(|owner| Box::new(AskedRecord { event: happened.event.clone(), name: name(), owner }));
    Occurrence {
        kind: happened.event.kind(),
        at: happened.at,
        depth: happened.depth,
        taint: happened.taint,
        began_in: happened.began_in,
        place,
        shown: OnceLock::new(),
        asked,
    }
}

/// May a trigger see an event about an agent of this user? That of a user with a limited role sees those about agents of the user.
pub(super) fn may_see(world: &World, trigger: Entity, owner: Option<UserId>) -> bool {
    let limit = world.get::<Trigger>(trigger).and_then(|trigger| limit_of(world, trigger.agent));
    limit.is_none_or(|user| owner == Some(user))
}

/// The name of the agent that an event is about. An agent that is gone has one only in the event that says so.
fn name_of<'w>(world: &'w World, event: &'w Event) -> Option<Cow<'w, str>> {
    if let Event::AgentSpawned { name, .. } | Event::AgentTerminated { name, .. } = event {
        return Some(Cow::Borrowed(name));
    }
    let agent = index::agent(world, event.agent()?).ok()?;
    world.get::<Agent>(agent).map(|agent| Cow::Borrowed(&*agent.name))
}
