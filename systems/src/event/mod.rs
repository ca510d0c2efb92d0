//! Events: the patterns that pick some of them out, the texts that they carry, and those that clients and agents publish
//! themselves (spec 1, Trigger event kinds, `custom`).

pub mod audit_kinds;
mod metrics;
pub(crate) mod pattern;
mod publish;
pub mod told;

use agentsvc_components::kernel::limit;

use crate::kernel::counters::Totals;
use crate::kernel::domain::Domain;
use crate::kernel::inputs::table::CommandDef;
pub use pattern::{parse_pattern, render_pattern, unknown_kind};
pub use publish::PublishEvent;
pub(crate) use publish::Publishing;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "trigger"],
    commands: &[CommandDef::of::<PublishEvent>()],
    audit_kinds: audit_kinds::ALL,
    install: |world| {
        world.init_resource::<told::Events>();
    },
    before_close: told::tell_events,
    told: told::take,
    totals: &[Totals::of::<metrics::EventTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("event")
};

/// The part of a text that events carry.
pub(crate) fn event_text(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(limit::EVENT_TEXT_BYTES_MAX)].into()
}

#[cfg(test)]
mod tests;
