//! Turns that are not the agent's whole self: what they are and may do, and where they end.

use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::manifest::{Interned, SharedManifest};
use agentsvc_components::turn::{Turn, TurnRequest};

use crate::manifest::hash;

/// The manifest that counts for a turn of `owner`.
pub(super) fn manifest(owner: &Agent, request: Option<&TurnRequest>) -> SharedManifest {
    let profile = request.and_then(|request| request.profile.as_deref());
    let model = request.and_then(|request| request.model.as_deref());
    if profile.is_none() && model.is_none() {
        return owner.manifest.clone();
    }
    let own = &owner.manifest.manifest;
    let mut manifest = profile.map_or_else(|| own.clone(), |profile| profile.applied(own));
    if let Some(model) = model {
        manifest.model = model.chosen(&manifest.model);
    }
    Arc::new(Interned { hash: hash(&manifest), manifest })
}

/// Why the turn makes no further model call, where a limit of its own is reached.
pub(super) fn exceeded(world: &World, entity: Entity) -> Option<String> {
    let turn = world.get::<Turn>(entity)?;
    let Some(profile) = turn.request.as_ref().and_then(|request| request.profile.as_deref()) else {
        let most = world.get::<Agent>(turn.agent)?.manifest.manifest.iterations_max()?;
        return (turn.iteration >= most)
            .then(|| format!("the limit of {most} model calls is reached (`max_iterations`)"));
    };
    let (calls, tokens, cost) = (profile.calls_max, profile.tokens_max, profile.cost_max);
    if calls > 0 && turn.iteration >= calls {
        Some(format!("the limit of {calls} model calls is reached"))
    } else if tokens > 0 && turn.usage.tokens() >= tokens {
        Some(format!("the limit of {tokens} tokens is reached"))
    } else if !cost.is_zero() && turn.usage.cost >= cost {
        Some(format!("the limit of {} dollars is reached", cost.usd()))
    } else {
        None
    }
}
