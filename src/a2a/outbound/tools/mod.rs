//! What agents call: external agents that the operator discovered. What these say is untrusted.

mod discover;
mod list;
mod send;
mod status;

use agentsvc_components::a2a::outbound::{A2aCard, A2aSentState};
use agentsvc_systems::a2a::outbound::A2aSentView;

use crate::kernel::egress::granted;
use crate::tool::toolset::{Context, Tool};

/// The table rows.
pub(in crate::a2a) const ALL: [Tool; 4] = [discover::TOOL, list::TOOL, send::TOOL, status::TOOL];

/// Refuses an agent whose manifest does not grant the host of `url`.
fn check_granted(context: &Context, url: &str) -> Result<(), String> {
    granted(&context.run.manifest.manifest.capabilities.network, url).map_err(|error| error.to_string())
}

/// A task as the model reads it.
fn shown(view: &A2aSentView) -> String {
    let A2aSentView { id, task } = view;
    let mut text = format!("Task {id} at external agent {:?}: {}", task.to_name, task.state.as_str());
    match task.state {
        A2aSentState::InputRequired | A2aSentState::AuthRequired => {
            text += ". It waits for another message: call a2a_send with this task_id.";
        }
        state if state.is_open() => text += ". Ask again later with a2a_status.",
        _ => text.push('.'),
    }
    if let Some(error) = &task.error {
        text += &format!("\nReason: {error}");
    }
    if let Some(result) = &task.result {
        text += &format!("\n\n{result}");
    }
    text
}

/// What a card says, as the model reads it.
fn described(card: &A2aCard) -> String {
    let mut text =
        format!("Description: {}\nVersion: {}\nProtocol: {}", card.description, card.version, card.dialect.as_str());
    for skill in &card.skills {
        text += &format!("\nSkill {} ({}): {}", skill.name, skill.id, skill.description);
    }
    text
}
