//! The agent of a fresh home.

use agentsvc_components::Actor;
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::{Engine, ReplySlot, manifest};
use toml_edit::DocumentMut;

use crate::template::EMBEDDED;

/// The type of the agent of a fresh home, which is also its name.
const TYPE: &str = "assistant";

/// A fresh home gets one agent to talk to; the world's first step stores it.
pub(super) fn spawn(engine: &mut Engine) {
    let Some((_, text)) = EMBEDDED.iter().find(|(name, _)| *name == TYPE) else { return };
    let text = without_limits(text);
    let parsed = match manifest::parse(&text) {
        Ok(parsed) => parsed,
        Err(error) => return tracing::error!(%error, "the default agent's manifest is not valid"),
    };
    let hash = manifest::hash(&parsed.manifest);
    let spawn = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text };
    engine.command(
        Actor::System,
        spawn,
        ReplySlot::new(|reply| {
            if let Err(refusal) = reply {
                tracing::error!(%refusal, "the default agent could not be created");
            }
        }),
    );
}

/// Limits are the owner's to set: with one, a model whose price is not known would not answer the first message.
fn without_limits(text: &str) -> String {
    let Ok(mut document) = text.parse::<DocumentMut>() else { return text.to_owned() };
    document.remove("limits");
    document.to_string()
}
