//! Plugins of the context engine: a turn knows that one has written to it, and counts as having read untrusted content.

#[cfg(test)]
mod tests;

use agentsvc_components::TurnId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::plugin::PromptChanged;
use agentsvc_components::turn::{Turn, TurnState};
use bevy_ecs::prelude::World;

use crate::kernel::arrivals::Settle;
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::domain::Domain;
use crate::kernel::index;
use crate::kernel::inputs::table::OutcomeDef;
use crate::taint;

/// What this domain brings.
pub(crate) const DOMAIN: Domain =
    Domain { uses: &["taint", "turn"], outcomes: &[OutcomeDef::of::<PromptChanged>()], ..Domain::named("plugin") };

impl Settle for PromptChanged {
    fn settle(self, world: &mut World) {
        let Self { attempt, plugin } = self;
        let found = index::turn(world, TurnId(attempt.job.0));
        let is_out = |turn: &Turn| matches!(turn.state, TurnState::Calling | TurnState::Stopping);
        let turn = found.and_then(|entity| world.get::<Turn>(entity).map(|turn| (entity, turn)));
        let Some((entity, _)) = turn.filter(|(_, turn)| turn.attempt == attempt.number && is_out(turn)) else {
            world.resource_mut::<StaleOutcomes>().0 += 1;
            return;
        };
        taint::add(world, entity, Taint::TOOL, &format!("the plugin {plugin}"));
    }
}
