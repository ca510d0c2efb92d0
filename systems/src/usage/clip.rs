//! What a provider reports is bounded by what was sent to it and by what its model can take: one wrong number must not use a budget up for ever.

use bevy_ecs::prelude::World;
use serde_json::json;

use agentsvc_components::Actor;
use agentsvc_components::session::message::Usage;
use agentsvc_components::usage::CallUse;
use agentsvc_components::usage::record::CallRecord;

use super::audit_kinds;
use crate::audit;
use crate::config::Settings;
use crate::usage::metrics::CallTotals;

/// Contexts that a prompt or an answer is believed to have had at most where nothing better is known. Providers count
/// tokens in their own way, and the context that is set may be less than the model's.
const CONTEXTS_MAX: u64 = 2;

/// The tokens of a use, as far as they can be. A prompt may always have had a full context: providers add to it.
pub(super) fn tokens(settings: &Settings, used: &CallUse) -> Usage {
    let context = u64::from(settings.context_tokens_of(&used.provider, &used.model));
    let most = CONTEXTS_MAX * context;
    let input_max = used.tokens_max.map_or(most, |sent| sent.input.max(context));
    let output_max = used.tokens_max.and_then(|sent| sent.output).unwrap_or(most);
    let Usage { input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, cost } = used.usage;
    let input_tokens = input_tokens.min(input_max);
    Usage {
        input_tokens,
        output_tokens: output_tokens.min(output_max),
        cached_input_tokens: cached_input_tokens.min(input_tokens),
        cache_write_tokens: cache_write_tokens.min(input_tokens),
        cost,
    }
}

/// Puts a report that was not believed on record, and counts it.
pub(super) fn alarm(world: &mut World, call: &CallRecord, used: &CallUse, reported: Usage) {
    world.resource_mut::<CallTotals>().clipped += 1;
    let agent = call.scope().agent();
    let details = json!({
        "provider": used.provider, "model": used.model, "job": call.job.0,
        "reported_input_tokens": reported.input_tokens, "reported_output_tokens": reported.output_tokens,
        "booked_usd": used.usage.cost.usd(),
    });
    audit::append(world, Actor::System, audit_kinds::USAGE_CLIPPED, agent, &details);
}
