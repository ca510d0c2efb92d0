//! The open goals of an agent as its prompt shows them.

use std::fmt::Write;
use std::sync::Arc;

use bevy_ecs::prelude::World;

use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId};

use super::Goals;
use crate::kernel::entities::state;

/// What stands before the goals.
const TITLE: &str = "Your open goals, those that are due first. Work towards them, and say with goal_update how far you \
    are, where you may call it:";

/// The open goals of `agent`, at most [`limit::GOALS_IN_PROMPT_MAX`], those that are due first, then the oldest. `None` when
/// it has none.
///
/// The text depends on the goals alone, never on the time, so that the beginning of the prompt stays the same from call
/// to call and providers can cache it.
pub(crate) fn in_prompt(world: &World, agent: AgentId) -> Option<Arc<str>> {
    let goals = world.resource::<Goals>();
    let mut ids = goals.open_of(agent).peekable();
    ids.peek()?;
    let mut text = String::from(TITLE);
    for id in ids.by_ref().take(limit::GOALS_IN_PROMPT_MAX) {
        if let Some(goal) = state::<Goal>(world, id) {
            line(&mut text, id, goal);
        }
    }
    if ids.next().is_some() {
        text.push_str("\n- (more goals are open; these come first)");
    }
    Some(text.into())
}

fn line(text: &mut String, id: GoalId, goal: &Goal) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\n- [{id}] {}", goal.title);
    let _ = write!(text, " ({}", goal.status.as_str());
    if let Some(due_at) = goal.due_at {
        let _ = write!(text, ", due {due_at}");
    }
    if let Some(parent) = goal.parent {
        let _ = write!(text, ", part of {parent}");
    }
    text.push(')');
    for (before, more) in [(": ", &goal.description), (" Note: ", &goal.note)] {
        let more = on_one_line(more);
        if !more.is_empty() {
            let _ = write!(text, "{before}{more}");
        }
    }
}

/// The beginning of a text on one line, so that it cannot pass for more goals.
fn on_one_line(text: &str) -> String {
    let most = limit::GOAL_PROMPT_CHARS_MAX;
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(most) {
        line.truncate(cut);
        line.push('…');
    }
    line
}
