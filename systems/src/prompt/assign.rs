//! Which variant a session has, and what prompt its turns have for that.

use std::sync::Arc;

use agentsvc_components::manifest::{Interned, SharedManifest};
use agentsvc_components::prompt::{PromptExperiment, PromptExperimentId, PromptVariant, PromptVersion, TurnVariant};
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, SessionId};
use bevy_ecs::prelude::{Entity, World};
use sha2::{Digest, Sha256};

use super::index::Experiments;
use crate::config::Settings;
use crate::kernel::entities::state;
use crate::kernel::index::id_of;
use crate::manifest::hash;

/// The variant of a session: it follows from the two ids and the shares alone, none of which changes, so it is the same in
/// each turn, after a restart and in a replay, and nothing is kept for it.
pub(super) fn assigned(
    id: PromptExperimentId,
    experiment: &PromptExperiment,
    session: SessionId,
) -> Option<&PromptVariant> {
    let mut hasher = Sha256::new();
    hasher.update(id.0.as_bytes());
    hasher.update(session.0.as_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    let (high, _) = digest.split_first_chunk::<8>()?;
    let mut point = u64::from_be_bytes(*high) % 100;
    experiment.variants.iter().find(|variant| {
        let is_here = point < u64::from(variant.share);
        point = point.saturating_sub(variant.share.into());
        is_here
    })
}

/// The manifest that counts for the next model call of a turn: `own`, with the prompt of the turn's variant where it has one.
/// The first call of a turn chooses it.
pub(crate) fn for_call(world: &mut World, entity: Entity, own: SharedManifest) -> SharedManifest {
    if !world.resource::<Settings>().prompt_intelligence {
        return own;
    }
    let found = of_turn(world, entity);
    let Some((of_turn, text)) = found else { return own };
    if let Some(mut turn) = world.get_mut::<Turn>(entity) {
        // The call marks the turn.
        turn.journal.get_or_insert_default().variant = Some(of_turn);
    }
    let mut manifest = own.manifest.clone();
    manifest.system_prompt = text;
    Arc::new(Interned { hash: hash(&manifest), manifest })
}

/// The variant of a turn, and its text.
fn of_turn(world: &World, entity: Entity) -> Option<(TurnVariant, Box<str>)> {
    let turn = world.get::<Turn>(entity)?;
    let chosen = turn.journal.as_ref().and_then(|journal| journal.variant);
    let TurnVariant { experiment: id, variant } = match chosen {
        Some(chosen) => chosen,
        None if turn.iteration == 0 => {
            let id = world.resource::<Experiments>().running(id_of::<AgentId>(world, turn.agent))?;
            let experiment = state::<PromptExperiment>(world, id)?;
            let variant = assigned(id, experiment, id_of(world, turn.session))?.id;
            TurnVariant { experiment: id, variant }
        }
        None => return None,
    };
    let version = state::<PromptExperiment>(world, id)?.variant(variant)?.version;
    let text = state::<PromptVersion>(world, version)?.system_prompt.clone();
    Some((TurnVariant { experiment: id, variant }, text))
}
