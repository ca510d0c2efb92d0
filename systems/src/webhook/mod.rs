//! Outbound webhooks: events of the world are posted to addresses that clients name (spec 3, Webhooks).
//!
//! | rule | why |
//! |---|---|
//! | an event becomes a delivery, and the delivery a job, in the step in which it happens | no event is lost over a kill |
//! | all tries of a delivery have its id; an answer of 2xx ends it | receivers can tell repetitions |
//! | deliveries of one webhook are in no order; so many at once, so many open | one slow receiver does not hold up others |
//! | an event for which there is no room is dropped and counted | memory stays bounded |
//! | a delivery takes the share of the user or family whose agent its event is about, or who published it | none fills a webhook with events of its own |
//! | a webhook of which every try has failed for a day is switched off, and an event says so | nobody waits for it |
//! | the secret is sealed before it comes here | no record, input log or backup has it in clear |

pub mod audit_kinds;
mod change;
mod deliver;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
#[cfg(test)]
mod tests;
mod words;

use agentsvc_components::webhook::{Delivery, DeliveryId, Webhook, WebhookId};

pub use change::{CreateWebhook, UpdateWebhook, WebhookFields};
pub use deliver::{NAME, TryReport};
pub use list::{DeliveryView, WebhookView};

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities::{self, Remove};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "event", "trigger"],
    kinds: &[Kind::component::<Webhook>(), Kind::component::<Delivery>()],
    restore: &[(Phase::Owned, restore_components::<Webhook>), (Phase::Owned, restore_components::<Delivery>)],
    install: |world| {
        entities::install::<Webhook>(world);
        entities::install::<Delivery>(world);
        on(world, deliver::happened);
        on(world, deliver::trigger_fired);
    },
    measures: &[
        Measure::of::<WebhookId>("webhooks", |world, at| of(world, at, Webhook::bytes), entries(32, 4)),
        Measure::of::<DeliveryId>("deliveries", |world, at| of(world, at, Delivery::bytes), entries(32, 2)),
    ],
    check: index::check,
    jobs: &[deliver::DELIVERY],
    commands: &[
        CommandDef::of::<CreateWebhook>(),
        CommandDef::of::<UpdateWebhook>(),
        CommandDef::of::<Remove<Webhook>>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("webhook")
};
