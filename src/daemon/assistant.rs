//! The agent of a fresh home.

use agentsvc_components::Actor;
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::{Engine, ReplySlot, manifest};

use crate::kernel::home::ASSISTANT_MANIFEST;

/// A fresh home gets one agent to talk to; the world's first step stores it.
pub(super) fn spawn(engine: &mut Engine) {
    let parsed = match manifest::parse(ASSISTANT_MANIFEST) {
        Ok(parsed) => parsed,
        Err(error) => return tracing::error!(%error, "the default agent's manifest is not valid"),
    };
    let hash = manifest::hash(&parsed.manifest);
    let text = ASSISTANT_MANIFEST.to_owned();
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
