//! Where the rows of a kind come from: in the order of an index, from a place on, a bounded number at a time. What lives
//! from the first look to the last is seen exactly once, for the keys of the indexes never change.

use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::ManifestHash;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::usage::{Bucket, Scope};
use agentsvc_components::{
    AgentId, ApprovalId, CompactionId, GoalId, RunId, ScheduleId, SessionId, TaskId, TriggerId, TurnId, WorkflowId,
};

use super::table::{Item, Row};
use crate::agent::manifests::Manifests;
use crate::approval::Approvals;
use crate::compaction::Compactions;
use crate::goal::Goals;
use crate::kernel::index;
use crate::kernel::index::Index;
use crate::schedule::Schedules;
use crate::task::Tasks;
use crate::trigger::Triggers;
use crate::turn::Admission;
use crate::usage::Rollups;
use crate::workflow::Workflows;

/// Where the rows of a kind come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Agents,
    Sessions,
    Turns,
    Triggers,
    Schedules,
    CronJobs,
    Goals,
    Tasks,
    Workflows,
    Runs,
    Approvals,
    Compactions,
    Budgets,
    Manifests,
    Providers,
    Models,
}

/// Which rows of a source are looked at; the filter is asked for each of them all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// All.
    All,
    /// Those with these ids.
    Ids(Vec<Uuid>),
    /// Those of one agent.
    Agent(AgentKey),
    /// Runs of one workflow.
    Workflow(Uuid),
}

/// An agent that a filter names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentKey {
    Id(Uuid),
    Name(Box<str>),
}

/// How far the rows were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Cursor {
    #[default]
    Start,
    After(Uuid),
    AfterOwned(Entity, Uuid),
    AfterEntity(Entity, Entity),
    /// A workflow and one of its runs.
    AfterRun(Uuid, Uuid),
    /// So many of a list that was made with the first look.
    Nth(usize),
    End,
}

/// Keys of rows that stand in no order: taken down with the first look, at most [`limit::QUERY_KEYS_MAX`].
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    manifests: Vec<ManifestHash>,
    compactions: Vec<CompactionId>,
    /// There were more.
    pub(super) cut: bool,
}

impl Source {
    /// Rows that one look goes over where it would be `most` of any other kind: a budget is summed up for each of its
    /// fields, which takes as long as many rows.
    pub(super) fn look_of(self, most: usize) -> usize {
        if matches!(self, Self::Budgets) { (most / 8).max(1) } else { most }
    }

    /// Are its rows found by their ids?
    pub(super) const fn has_ids(self) -> bool {
        !matches!(self, Self::Budgets | Self::Manifests | Self::Providers | Self::Models)
    }

    /// Are its rows found by their agent?
    pub(super) const fn has_agents(self) -> bool {
        matches!(
            self,
            Self::Sessions
                | Self::Turns
                | Self::Triggers
                | Self::Schedules
                | Self::CronJobs
                | Self::Goals
                | Self::Budgets
        )
    }

    /// The row with this id.
    fn by_id(self, world: &World, id: Uuid) -> Option<Entity> {
        match self {
            Self::Agents => index::agent(world, AgentId(id)).ok(),
            Self::Sessions => {
                // Sessions that no list shows are not found here either.
                let found = index::session(world, SessionId(id))?;
                let session = world.get::<agentsvc_components::session::Session>(found)?;
                (!session.ephemeral).then_some(found)
            }
            Self::Turns => index::turn(world, TurnId(id)),
            Self::Triggers => world.resource::<Triggers>().get(TriggerId(id)),
            Self::Schedules => world.resource::<Schedules>().get(ScheduleKind::Schedule, ScheduleId(id)),
            Self::CronJobs => world.resource::<Schedules>().get(ScheduleKind::Cron, ScheduleId(id)),
            Self::Goals => world.resource::<Goals>().get(GoalId(id)),
            Self::Tasks => world.resource::<Tasks>().get(TaskId(id)),
            Self::Workflows => crate::workflow::entity_of(world, WorkflowId(id)),
            Self::Runs => world.resource::<Workflows>().run(RunId(id)),
            Self::Approvals => world.resource::<Approvals>().get(ApprovalId(id)),
            Self::Compactions => world.resource::<Compactions>().get(CompactionId(id)),
            Self::Budgets | Self::Manifests | Self::Providers | Self::Models => None,
        }
    }

    /// Shows at most `most` rows behind `cursor` to `visit`, until it says that it has seen enough, and moves the cursor.
    pub(super) fn look<'w>(
        self,
        world: &'w World,
        access: &Access,
        cursor: &mut Cursor,
        keys: &mut Keys,
        most: usize,
        visit: &mut dyn FnMut(Row<'w>) -> bool,
    ) {
        let mut visit = |item| visit(Row { world, item, text_max: usize::MAX });
        *cursor = match access {
            Access::All => self.all(world, cursor, keys, most, &mut visit),
            Access::Ids(ids) => nth(ids, cursor, most, |id| self.by_id(world, *id).map(Item::Entity), &mut visit),
            Access::Agent(key) => match agent_of(world, key) {
                Some((id, agent)) => self.of_agent(world, id, agent, cursor, most, &mut visit),
                None => Cursor::End,
            },
            Access::Workflow(id) => {
                let runs = world.resource::<Workflows>();
                let found = runs.runs_after(WorkflowId(*id), id_of(cursor).map(RunId));
                walk(found.filter_map(|id| Some((id.0, Item::Entity(runs.run(id)?)))), most, Cursor::After, &mut visit)
            }
        };
    }

    fn all<'w>(
        self,
        world: &'w World,
        cursor: &Cursor,
        keys: &mut Keys,
        most: usize,
        visit: &mut dyn FnMut(Item<'w>) -> bool,
    ) -> Cursor {
        let after = id_of(cursor);
        let index = world.resource::<Index>();
        match self {
            Self::Agents => walk(index.agents_after(after.map(AgentId)).map(by_id), most, Cursor::After, visit),
            Self::Sessions => sessions(world, cursor, most, visit),
            Self::Turns => turns(world, cursor, most, visit),
            Self::Triggers => {
                let found = world.resource::<Triggers>().after(after.map(TriggerId));
                walk(found.map(by_id), most, Cursor::After, visit)
            }
            Self::Schedules | Self::CronJobs => {
                let (schedules, kind) = (world.resource::<Schedules>(), self.family());
                let found = schedules.after(kind, after.map(ScheduleId));
                let found = found.filter_map(|id| Some((id.0, Item::Entity(schedules.get(kind, id)?))));
                walk(found, most, Cursor::After, visit)
            }
            Self::Goals => {
                let goals = world.resource::<Goals>();
                let found = goals.all(after.map(GoalId)).filter_map(|id| Some((id.0, Item::Entity(goals.get(id)?))));
                walk(found, most, Cursor::After, visit)
            }
            Self::Tasks => {
                walk(world.resource::<Tasks>().all(after.map(TaskId)).map(by_id), most, Cursor::After, visit)
            }
            Self::Workflows => {
                let found = world.resource::<Workflows>().definitions_after(after.map(WorkflowId));
                walk(found.map(by_id), most, Cursor::After, visit)
            }
            Self::Runs => runs(world, cursor, most, visit),
            Self::Approvals => {
                let found = world.resource::<Approvals>().after(after.map(ApprovalId));
                walk(found.map(by_id), most, Cursor::After, visit)
            }
            Self::Budgets => {
                let global = matches!(cursor, Cursor::Start).then_some((Uuid::nil(), Item::Scope(Scope::Global)));
                let agents =
                    index.agents_after(after.map(AgentId)).map(|(id, _)| (id.0, Item::Scope(Scope::Agent(id))));
                walk(global.into_iter().chain(agents), most, Cursor::After, visit)
            }
            Self::Compactions | Self::Manifests => listed(self, world, cursor, keys, most, visit),
            // Few: as many as the configuration and the catalog have.
            Self::Providers => {
                for name in world.resource::<Admission>().providers() {
                    visit(Item::Provider(name));
                }
                Cursor::End
            }
            Self::Models => {
                for (bucket, sum) in world.resource::<Rollups>().models() {
                    if let Bucket::Model(provider, model) = bucket {
                        visit(Item::Model(provider, model, *sum));
                    }
                }
                Cursor::End
            }
        }
    }

    fn of_agent<'w>(
        self,
        world: &'w World,
        id: AgentId,
        agent: Entity,
        cursor: &Cursor,
        most: usize,
        visit: &mut dyn FnMut(Item<'w>) -> bool,
    ) -> Cursor {
        let after = id_of(cursor);
        let index = world.resource::<Index>();
        match self {
            Self::Sessions => {
                let found = index.sessions_of(agent, after.map(SessionId));
                let found = found.filter_map(|id| Some((id.0, Item::Entity(index::session(world, id)?))));
                walk(found, most, Cursor::After, visit)
            }
            Self::Turns => {
                let after = if let Cursor::AfterEntity(_, turn) = cursor { Some(*turn) } else { None };
                let found = index.turns_of_after(agent, after).map(|turn| (turn, Item::Entity(turn)));
                walk(found, most, |turn| Cursor::AfterEntity(agent, turn), visit)
            }
            Self::Triggers => {
                let found = world.resource::<Triggers>().of_owner(agent, after.map(TriggerId));
                walk(found.map(by_id), most, Cursor::After, visit)
            }
            Self::Schedules | Self::CronJobs => {
                let (schedules, kind) = (world.resource::<Schedules>(), self.family());
                let found = schedules.of(agent, kind, after.map(ScheduleId));
                let found = found.filter_map(|id| Some((id.0, Item::Entity(schedules.get(kind, id)?))));
                walk(found, most, Cursor::After, visit)
            }
            Self::Goals => {
                let goals = world.resource::<Goals>();
                let found = goals.of_agent(Some(id), after.map(GoalId));
                walk(found.filter_map(|id| Some((id.0, Item::Entity(goals.get(id)?)))), most, Cursor::After, visit)
            }
            Self::Budgets => {
                visit(Item::Scope(Scope::Agent(id)));
                Cursor::End
            }
            Self::Agents => {
                visit(Item::Entity(agent));
                Cursor::End
            }
            _ => Cursor::End,
        }
    }

    const fn family(self) -> ScheduleKind {
        if matches!(self, Self::CronJobs) { ScheduleKind::Cron } else { ScheduleKind::Schedule }
    }
}

/// The agent that a filter names.
fn agent_of(world: &World, key: &AgentKey) -> Option<(AgentId, Entity)> {
    let entity = match key {
        AgentKey::Id(id) => index::agent(world, AgentId(*id)).ok()?,
        AgentKey::Name(name) => index::agent_named(world, name)?,
    };
    Some((*world.get::<AgentId>(entity)?, entity))
}

const fn id_of(cursor: &Cursor) -> Option<Uuid> {
    if let Cursor::After(id) = cursor { Some(*id) } else { None }
}

fn by_id<'w, T: Into<Key>>((id, entity): (T, Entity)) -> (Uuid, Item<'w>) {
    (id.into().0, Item::Entity(entity))
}

/// An id of any kind.
struct Key(Uuid);

macro_rules! keys {
    ($($id:ident)*) => {$(
        impl From<$id> for Key {
            fn from(id: $id) -> Self {
                Self(id.0)
            }
        }
    )*};
}
keys!(AgentId TriggerId TaskId WorkflowId ApprovalId);

/// Shows at most `most` items, and says where the next look goes on.
fn walk<'w, K: Copy>(
    items: impl Iterator<Item = (K, Item<'w>)>,
    most: usize,
    cursor: impl Fn(K) -> Cursor,
    visit: &mut dyn FnMut(Item<'w>) -> bool,
) -> Cursor {
    let (mut count, mut last) = (0, None);
    for (key, item) in items.take(most) {
        (count, last) = (count + 1, Some(key));
        if !visit(item) {
            return cursor(key);
        }
    }
    if count < most { Cursor::End } else { last.map_or(Cursor::End, cursor) }
}

fn sessions<'w>(world: &'w World, cursor: &Cursor, most: usize, visit: &mut dyn FnMut(Item<'w>) -> bool) -> Cursor {
    let after = if let Cursor::AfterOwned(agent, id) = cursor { Some((*agent, Some(SessionId(*id)))) } else { None };
    let found = world.resource::<Index>().sessions_after(after);
    let found = found.filter_map(|(agent, id)| Some(((agent, id.0), Item::Entity(index::session(world, id)?))));
    walk(found, most, |(agent, id)| Cursor::AfterOwned(agent, id), visit)
}

fn turns<'w>(world: &'w World, cursor: &Cursor, most: usize, visit: &mut dyn FnMut(Item<'w>) -> bool) -> Cursor {
    let after = if let Cursor::AfterEntity(agent, turn) = cursor { Some((*agent, *turn)) } else { None };
    let found = world.resource::<Index>().turns_after(after).map(|key| (key, Item::Entity(key.1)));
    walk(found, most, |(agent, turn)| Cursor::AfterEntity(agent, turn), visit)
}

fn runs<'w>(world: &'w World, cursor: &Cursor, most: usize, visit: &mut dyn FnMut(Item<'w>) -> bool) -> Cursor {
    let after = if let Cursor::AfterRun(of, run) = cursor { Some((WorkflowId(*of), RunId(*run))) } else { None };
    let workflows = world.resource::<Workflows>();
    let found = workflows.all_runs_after(after);
    let found = found.filter_map(|(of, run)| Some(((of.0, run.0), Item::Entity(workflows.run(run)?))));
    walk(found, most, |(of, run)| Cursor::AfterRun(of, run), visit)
}

/// Rows that stand in no order: their keys are taken down first.
fn listed<'w>(
    source: Source,
    world: &'w World,
    cursor: &Cursor,
    keys: &mut Keys,
    most: usize,
    visit: &mut dyn FnMut(Item<'w>) -> bool,
) -> Cursor {
    let (manifests, compactions) = (world.resource::<Manifests>(), world.resource::<Compactions>());
    let bound = limit::QUERY_KEYS_MAX;
    if *cursor == Cursor::Start {
        if source == Source::Manifests {
            keys.manifests = manifests.hashes().take(bound).collect();
            keys.cut = manifests.len() > bound;
        } else {
            keys.compactions = compactions.ids().take(bound).collect();
            keys.cut = compactions.len() > bound;
        }
    }
    if source == Source::Manifests {
        let item = |hash: &ManifestHash| manifests.get(*hash).map(|(shared, owners)| Item::Manifest(shared, owners));
        nth(&keys.manifests, cursor, most, item, visit)
    } else {
        nth(&keys.compactions, cursor, most, |id| compactions.get(*id).map(Item::Entity), visit)
    }
}

/// Shows at most `most` of the items that stand in a list by their keys, and says where the next look goes on.
fn nth<'w, K>(
    keys: &[K],
    cursor: &Cursor,
    most: usize,
    item: impl Fn(&K) -> Option<Item<'w>>,
    visit: &mut dyn FnMut(Item<'w>) -> bool,
) -> Cursor {
    let from = if let Cursor::Nth(from) = cursor { *from } else { 0 };
    let mut at = from;
    for key in keys.iter().skip(from).take(most) {
        at += 1;
        if item(key).is_some_and(|item| !visit(item)) {
            break;
        }
    }
    if at < keys.len() { Cursor::Nth(at) } else { Cursor::End }
}
