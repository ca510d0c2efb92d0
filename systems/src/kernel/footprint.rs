//! What the world takes in memory, kind by kind: an estimate that is made from counts and sizes.
//!
//! | part | how it is known |
//! |---|---|
//! | rows | exact: how many entities there are of each set of components, times the sizes of those |
//! | heap | texts and boxes behind the components: measured on at most [`SAMPLES`] entities of a kind and multiplied |
//! | index | a fixed guess for each entity: the entries in maps and sets that lead to it |
//!
//! Room that tables and maps keep in reserve is not in it, nor is what belongs to no entity, such as sums of usage.

use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::{Component, Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::approval::Approval;
use agentsvc_components::goal::Goal;
use agentsvc_components::schedule::Schedule;
use agentsvc_components::session::Session;
use agentsvc_components::task::Task;
use agentsvc_components::trigger::{Filter, Trigger, TriggerState};
use agentsvc_components::turn::Turn;
use agentsvc_components::workflow::{Workflow, WorkflowRun};
use agentsvc_components::{
    AgentId, ApprovalId, CompactionId, GoalId, RunId, ScheduleId, SessionId, TaskId, TriggerId, TurnId, WorkflowId,
};

use crate::kernel::command::{Answer, Command};

/// Entities of a kind whose texts are measured.
pub(crate) const SAMPLES: usize = 64;
/// Bytes that the world keeps for every entity beside its components: where it stands.
const ENTITY_BYTES: usize = 24;

/// What one kind takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindFootprint {
    /// The kind, as queries call it.
    pub kind: &'static str,
    /// How many there are.
    pub count: usize,
    /// Bytes of their components.
    pub rows_bytes: usize,
    /// Bytes of their texts and boxes, estimated.
    pub heap_bytes: usize,
    /// Bytes of the indexes that lead to them, guessed.
    pub index_bytes: usize,
}

impl KindFootprint {
    /// All of it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rows_bytes + self.heap_bytes + self.index_bytes
    }
}

/// A kind of entities, and how it is measured.
struct Measure {
    kind: &'static str,
    id: fn(&World) -> Option<ComponentId>,
    heap: fn(&World, Entity) -> usize,
    index_bytes: usize,
}

/// A node of an ordered set is full to about two thirds.
pub(crate) const fn entries(of: usize, count: usize) -> usize {
    of * count * 3 / 2
}

fn id<C: Component>(world: &World) -> Option<ComponentId> {
    world.components().component_id::<C>()
}

/// What `measure` says of a component; 0 when the entity has none.
fn of<C: Component>(world: &World, entity: Entity, measure: impl FnOnce(&C) -> usize) -> usize {
    world.get::<C>(entity).map_or(0, measure)
}

const MEASURES: [Measure; 11] = [
    Measure {
        kind: "agents",
        id: id::<AgentId>,
        heap: |w, e| of(w, e, |it: &Agent| it.name.len()),
        index_bytes: 24 + 12,
    },
    Measure { kind: "sessions", id: id::<SessionId>, heap: session, index_bytes: 12 + entries(24, 1) },
    Measure { kind: "turns", id: id::<TurnId>, heap: turn, index_bytes: entries(24, 1) + entries(16, 1) },
    Measure { kind: "triggers", id: id::<TriggerId>, heap: trigger, index_bytes: entries(24, 4) },
    Measure { kind: "schedules", id: id::<ScheduleId>, heap: schedule, index_bytes: entries(28, 3) },
    Measure { kind: "goals", id: id::<GoalId>, heap: |w, e| of(w, e, Goal::bytes), index_bytes: entries(32, 4) },
    Measure { kind: "tasks", id: id::<TaskId>, heap: |w, e| of(w, e, Task::bytes), index_bytes: entries(28, 3) },
    Measure { kind: "workflows", id: id::<WorkflowId>, heap: workflow, index_bytes: entries(28, 2) },
    Measure { kind: "runs", id: id::<RunId>, heap: run, index_bytes: entries(32, 3) },
    Measure { kind: "approvals", id: id::<ApprovalId>, heap: approval, index_bytes: entries(28, 3) },
    Measure { kind: "compactions", id: id::<CompactionId>, heap: |_, _| 0, index_bytes: 40 },
];

fn session(world: &World, entity: Entity) -> usize {
    // A label stands in the index once more.
    of(world, entity, |it: &Session| it.label.as_ref().map_or(0, |label| size_of::<Box<str>>() + 3 * label.len()))
}

fn turn(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Turn| {
        let call = |input: usize| size_of::<agentsvc_components::turn::PendingTool>() + input;
        let pending: usize = it.pending.iter().map(|tool| call(tool.call.input.len())).sum();
        let journal = it.journal.as_ref().map_or(0, |journal| {
            let texts: usize = journal.notices.iter().map(|text| text.len() + 16).sum();
            size_of_val(&**journal)
                + size_of_val(&*journal.steps)
                + size_of_val(&*journal.guard)
                + journal.said.len()
                + texts
        });
        let request = it
            .request
            .as_ref()
            .map_or(0, |request| size_of_val(&**request) + request.system.as_ref().map_or(0, String::len));
        pending + journal + request + it.link.as_ref().map_or(0, |link| size_of_val(&**link))
    })
}

fn trigger(world: &World, entity: Entity) -> usize {
    let definition = of(world, entity, |it: &Trigger| {
        let filter = match &it.pattern.filter {
            Filter::Name(text) | Filter::CustomType(text) | Filter::Content(text) => text.len(),
            Filter::None | Filter::Assignee(_) => 0,
        };
        it.prompt_template.len() + filter
    });
    let log = of(world, entity, |it: &TriggerState| {
        it.0.as_ref().map_or(0, |log| {
            size_of_val(&**log) + log.fires.capacity() * size_of::<agentsvc_components::trigger::Fire>()
        })
    });
    definition + log
}

fn schedule(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Schedule| {
        let past = it
            .past
            .as_ref()
            .map_or(0, |past| size_of_val(&**past) + past.last_result.as_ref().map_or(0, |last| last.text.len()));
        it.name.as_ref().map_or(0, |name| name.len()) + it.rule.len() + it.timezone.len() + it.prompt.len() + past
    })
}

fn workflow(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Workflow| {
        let steps: usize = it.steps.iter().map(|step| size_of_val(step) + step.name.len() + step.prompt.len()).sum();
        2 * it.name.len() + it.description.len() + steps
    })
}

fn run(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &WorkflowRun| {
        let outputs: usize = it.outputs.iter().flatten().map(|output| output.len()).sum();
        let progress = size_of_val(&*it.progress) + size_of_val(&*it.outputs);
        it.name.len() + it.input.len() + outputs + progress + it.output.as_ref().map_or(0, |output| output.len())
    })
}

fn approval(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Approval| {
        let reason = it.reason.as_ref().map_or(0, |reason| reason.len());
        it.action.len() + it.description.len() + it.payload.len() + reason
    })
}

/// What the world takes, kind by kind.
pub(crate) fn measure(world: &World) -> Vec<KindFootprint> {
    let mut found: Vec<KindFootprint> = MEASURES.iter().map(|measure| kind(world, measure)).collect();
    found.extend(crate::kernel::domain::all().iter().filter_map(|domain| (domain.shared_footprint)(world)));
    found
}

fn kind(world: &World, measure: &Measure) -> KindFootprint {
    let none = KindFootprint { kind: measure.kind, ..KindFootprint::default() };
    let Some(id) = (measure.id)(world) else { return none };
    let (mut found, mut sampled, mut heap) = (none, 0, 0);
    for archetype in world.archetypes().iter().filter(|archetype| archetype.contains(id)) {
        let count = archetype.len() as usize;
        let sizes = archetype.components().iter().filter_map(|id| world.components().get_info(*id));
        let row: usize = sizes.map(|of| of.layout().size()).sum::<usize>() + ENTITY_BYTES;
        found.count += count;
        found.rows_bytes += count * row;
        let stride = (count / SAMPLES).max(1);
        for at in archetype.entities().iter().step_by(stride).take(SAMPLES.saturating_sub(sampled)) {
            heap += (measure.heap)(world, at.id());
            sampled += 1;
        }
    }
    found.heap_bytes = (heap * found.count).checked_div(sampled).unwrap_or(0);
    found.index_bytes = found.count * measure.index_bytes;
    found
}

/// Reads what the world takes. Looks at a bounded number of entities.
#[derive(Clone, Copy, Debug)]
pub struct MeasureWorld;

impl Command for MeasureWorld {
    type Reply = Vec<KindFootprint>;
    const NAME: &'static str = "measure_world";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Vec<KindFootprint>> {
        Answer::read(measure(world))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::PostTask;
    use crate::testing::TestWorld;

    #[test]
    fn what_there_is_more_of_takes_more() {
        let mut world = TestWorld::new();
        let of = |world: &mut TestWorld, kind: &str| {
            let all = world.ask(MeasureWorld).unwrap();
            *all.iter().find(|found| found.kind == kind).unwrap()
        };
        assert_eq!(of(&mut world, "agents").bytes(), 0);
        world.spawn("a");
        let one = of(&mut world, "agents");
        assert_eq!((one.count, one.heap_bytes), (1, 1));
        assert!(one.rows_bytes >= size_of::<Agent>() + size_of::<AgentId>());
        for at in 0..200 {
            world.spawn(&format!("agent-{at:04}"));
        }
        let many = of(&mut world, "agents");
        assert_eq!((many.count, many.rows_bytes), (201, 201 * one.rows_bytes));
        assert!((8 * 201..=10 * 201).contains(&many.heap_bytes), "{many:?}");
        let manifests = of(&mut world, "manifests");
        assert!(manifests.count == 1 && manifests.bytes() > size_of::<agentsvc_components::manifest::Interned>());
        let task = |text: &str| PostTask {
            title: "t".into(),
            description: text.into(),
            assignee: None,
            posted_by: None,
            by: None,
        };
        world.ask(task(&"x".repeat(8_000))).unwrap();
        assert!((8_000..8_100).contains(&of(&mut world, "tasks").heap_bytes));
    }

    #[test]
    fn every_kind_that_is_made_of_entities_is_measured() {
        let kinds: Vec<&str> = MEASURES.iter().map(|measure| measure.kind).collect();
        // Cron jobs are schedules; the rest of the kinds are sums.
        let sums = ["cron_jobs", "budgets", "manifests", "providers", "models"];
        for kind in crate::query::KINDS.iter().filter(|kind| !sums.contains(&kind.name)) {
            assert!(kinds.contains(&kind.name), "{}", kind.name);
        }
    }
}
