//! Any sequence of changes leaves a tree: no circle, no goal without its parent, no depth over the bound; what a
//! deletion takes is exactly what stood below; and the indexes are what a full scan finds.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId};
use proptest::prelude::*;

use super::*;
use crate::testing::TestWorld;

/// One change; goals are meant by their place among those that live.
#[derive(Clone, Debug)]
enum Change {
    Create { parent: Option<usize>, agent: usize },
    Move { goal: usize, parent: Option<usize> },
    Finish { goal: usize },
    Remove { goal: usize },
    Restart,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let place = || 0..40_usize;
    let change = prop_oneof![
        // Newest first, so that chains grow deep.
        8 => (prop::option::weighted(0.9, 0..3_usize), 0..3_usize)
            .prop_map(|(parent, agent)| Change::Create { parent, agent }),
        6 => (place(), prop::option::weighted(0.8, place())).prop_map(|(goal, parent)| Change::Move { goal, parent }),
        2 => place().prop_map(|goal| Change::Finish { goal }),
        1 => place().prop_map(|goal| Change::Remove { goal }),
        1 => Just(Change::Restart),
    ];
    prop::collection::vec(change, 1..80)
}

type Parents = BTreeMap<GoalId, Option<GoalId>>;

fn parents(world: &mut TestWorld) -> Parents {
    let page = world.ask(ListGoals { limit: limit::PAGE_ITEMS_MAX, ..ListGoals::default() }).unwrap();
    page.items.iter().map(|view| (view.id, view.goal.parent)).collect()
}

/// A goal and those above it; panics on a circle or a parent that is not there.
fn above(parents: &Parents, goal: GoalId) -> Vec<GoalId> {
    let mut row = vec![goal];
    while let Some(parent) = parents[row.last().unwrap()] {
        assert!(!row.contains(&parent), "a circle");
        assert!(parents.contains_key(&parent), "a parent that is not there");
        row.push(parent);
    }
    row
}

fn check(world: &mut TestWorld) -> Parents {
    let parents = parents(world);
    for goal in parents.keys() {
        assert!(above(&parents, *goal).len() <= limit::GOAL_DEPTH_MAX);
        let filter = GoalFilter { parent: Some(Some(*goal)), ..GoalFilter::default() };
        let page = world.ask(ListGoals { filter, limit: 1_000, ..ListGoals::default() }).unwrap();
        let children: Vec<GoalId> = page.items.iter().map(|view| view.id).collect();
        let scanned: Vec<GoalId> = parents.iter().filter(|(_, p)| **p == Some(*goal)).map(|(id, _)| *id).collect();
        assert_eq!(children, scanned);
    }
    let scanned = world.engine.world().iter_entities().filter(|entity| entity.contains::<Goal>()).count();
    assert_eq!(scanned, parents.len());
    parents
}

fn open_of(world: &mut TestWorld, agent: AgentId) -> (usize, usize) {
    let goals = world.engine.world().resource::<Goals>();
    let indexed = goals.open_of(agent).count();
    let filter = GoalFilter { agent: Some(Some(agent)), ..GoalFilter::default() };
    let page = world.ask(ListGoals { filter, limit: 1_000, ..ListGoals::default() }).unwrap();
    (indexed, page.items.iter().filter(|view| view.goal.status.is_open()).count())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn goals_are_always_a_tree(changes in changes()) {
        let mut world = TestWorld::new();
        let agents = ["a", "b", "c"].map(|name| world.spawn(name));
        for change in changes {
            let before = check(&mut world);
            let ids: Vec<GoalId> = before.keys().rev().copied().collect();
            let at = |place: usize| ids.get(place % ids.len().max(1)).copied();
            match change {
                Change::Create { parent, agent } => {
                    let (parent, agent) = (parent.and_then(at), Some(agents[agent]));
                    let made = world.ask(CreateGoal { title: "t".into(), parent, agent, ..CreateGoal::default() });
                    let depth = parent.map_or(0, |parent| above(&before, parent).len());
                    prop_assert_eq!(made.is_ok(), depth < limit::GOAL_DEPTH_MAX);
                }
                Change::Move { goal, parent } => {
                    let Some(goal) = at(goal) else { continue };
                    let parent = parent.and_then(at);
                    let patch = GoalPatch { parent: Some(parent), ..GoalPatch::default() };
                    let moved = world.ask(UpdateGoal { goal, patch, only_of: None });
                    let circle = parent.is_some_and(|parent| above(&before, parent).contains(&goal));
                    prop_assert!(!(circle && moved.is_ok()));
                    prop_assert!(moved.is_ok() || parents(&mut world) == before, "a refusal changes nothing");
                }
                Change::Finish { goal } => {
                    let Some(goal) = at(goal) else { continue };
                    let patch = GoalPatch { status: Some(GoalStatus::Completed), ..GoalPatch::default() };
                    world.ask(UpdateGoal { goal, patch, only_of: None }).unwrap();
                }
                Change::Remove { goal } => {
                    let Some(goal) = at(goal) else { continue };
                    let below: BTreeSet<GoalId> =
                        before.keys().filter(|other| above(&before, **other).contains(&goal)).copied().collect();
                    prop_assert_eq!(world.ask(Remove::<Goal>(goal)).unwrap(), below.len());
                    let left: BTreeSet<GoalId> = parents(&mut world).into_keys().collect();
                    let expected: BTreeSet<GoalId> =
                        before.keys().filter(|other| !below.contains(other)).copied().collect();
                    prop_assert_eq!(left, expected);
                }
                Change::Restart => {
                    world.restart();
                    prop_assert_eq!(parents(&mut world), before);
                }
            }
        }
        check(&mut world);
        for agent in agents {
            let (indexed, listed) = open_of(&mut world, agent);
            prop_assert_eq!(indexed, listed);
        }
    }
}
