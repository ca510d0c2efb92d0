//! What must hold of triggers: each is found in exactly one place, and what matched is delivered.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::TriggerId;
use agentsvc_components::agent::Agent;
use agentsvc_components::trigger::{Trigger, TriggerState};

use super::index::{Member, QUOTA};
use super::{Triggers, Waves};
use crate::kernel::check::Faults;
use crate::kernel::index;
use crate::kernel::quota::Used;
use crate::kernel::share::Shares;

/// Says which index is wrong, and whose turn's end was not heard ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut found = world.query::<(Entity, &TriggerId, &Trigger, &TriggerState)>();
    let world = &*world;
    let triggers = world.resource::<Triggers>();
    let (mut by_id, mut by_owner, mut by_target) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut used, mut shares, mut places) = (Used::default(), Shares::default(), BTreeSet::new());
    for (entity, id, trigger, state) in found.iter(world) {
        by_id.insert((*id, entity));
        places.insert(Member { id: *id, entity, line: trigger.line() });
        used.add(trigger.bytes());
        shares.add(trigger.holder, 1, trigger.bytes());
        by_owner.insert((trigger.agent, *id));
        by_target.extend(trigger.target.map(|target| (target, *id)));
        let lives = |agent: Entity| world.get::<Agent>(agent).is_some();
        faults.that(lives(trigger.agent), || format!("trigger {id}: the agent does not exist"));
        faults.that(trigger.target.is_none_or(lives), || format!("trigger {id}: the target does not exist"));
        let unheard = state
            .0
            .iter()
            .flat_map(|log| &log.fires)
            .find(|fire| fire.end.is_none() && index::turn(world, fire.turn).is_none());
        faults.that(unheard.is_none(), || format!("trigger {id}: it missed the end of {unheard:?}"));
    }
    faults.same("triggers", &triggers.all(), &by_id);
    faults.same("room of triggers", &triggers.used, &used);
    faults.same("shares of triggers", &triggers.shares, &shares);
    QUOTA.check(used, faults);
    faults.same("triggers by owner", triggers.by_owner(), &by_owner);
    faults.same("triggers by target", triggers.by_target(), &by_target);
    let mut members = triggers.members();
    let count = members.len();
    members.sort_unstable();
    members.dedup();
    faults.same("places of triggers, each once", &count, &members.len());
    faults.same("triggers by pattern", &members.into_iter().collect(), &places);
    let waves = world.resource::<Waves>();
    faults.same("matches that wait", &waves.waiting(), &waves.count());
    let (kept, scan) = waves.shares();
    faults.same("shares of matches that wait", kept, &scan);
    let (ready, waiting) = waves.lines();
    faults.same("lines of matches that wait", ready, &waiting);
}
