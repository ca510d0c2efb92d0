//! The tree of goals: who stands below whom, and how deep.

use std::collections::VecDeque;

use bevy_ecs::prelude::World;

use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::limit;
use agentsvc_components::{GoalId, Refusal};

use super::Goals;
use crate::kernel::entities::{find, state};

/// Refuses a parent that is not there, that stands below `moved` (or is it), or under which the goals in a row would be
/// more than [`limit::GOAL_DEPTH_MAX`]. `moved` is the goal that is to go there; `None` when it is a new one.
pub(super) fn check_parent(world: &World, parent: Option<GoalId>, moved: Option<GoalId>) -> Result<(), Refusal> {
    let Some(parent) = parent else { return Ok(()) };
    let field = |refusal| Refusal { field: Some("parent_id".to_owned()), ..refusal };
    find::<Goal>(world, parent).map_err(field)?;
    let above: Vec<GoalId> = upwards(world, parent).collect();
    if moved.is_some_and(|moved| above.contains(&moved)) {
        return Err(Refusal::bad_field("parent_id", "parent_id: a goal cannot be its own ancestor"));
    }
    let height = moved.map_or(1, |moved| height(world, moved));
    if above.len() + height > limit::GOAL_DEPTH_MAX {
        let most = limit::GOAL_DEPTH_MAX;
        return Err(Refusal::bad_field("parent_id", format!("parent_id: goals can be nested at most {most} deep")));
    }
    Ok(())
}

/// A goal and those above it, nearest first.
pub(super) fn upwards(world: &World, from: GoalId) -> impl Iterator<Item = GoalId> + '_ {
    let parent = |id: &GoalId| state::<Goal>(world, *id)?.parent;
    // The checks keep the tree so shallow; the bound is for a store that somebody else wrote.
    std::iter::successors(Some(from), parent).take(limit::GOAL_DEPTH_MAX)
}

/// How many goals stand in a row from `top` down, itself included.
fn height(world: &World, top: GoalId) -> usize {
    let (goals, mut deepest) = (world.resource::<Goals>(), 1);
    let mut open = VecDeque::from([(top, 1)]);
    while let Some((id, depth)) = open.pop_front() {
        deepest = deepest.max(depth);
        if depth <= limit::GOAL_DEPTH_MAX {
            open.extend(goals.below(Some(id), None).map(|child| (child, depth + 1)));
        }
    }
    deepest
}

/// A goal and all below it, each before those below it.
pub(super) fn subtree(world: &World, top: GoalId) -> Vec<GoalId> {
    let (goals, mut found) = (world.resource::<Goals>(), vec![top]);
    let mut at = 0;
    while let Some(id) = found.get(at).copied() {
        found.extend(goals.below(Some(id), None));
        at += 1;
    }
    found
}
