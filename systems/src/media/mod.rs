//! Media: images, speech, videos, music and transcripts of providers (spec 2, Media generation).
//!
//! | in         | by                                             | goes to    |
//! |------------|------------------------------------------------|------------|
//! |            | a request                                      | pending    |
//! | pending    | the provider answered with the result          | completed  |
//! | pending    | the provider answered with a task              | queued     |
//! | pending    | the provider answered with links to the result | processing |
//! | queued     | the provider is asked for its task             | processing |
//! | processing | the result is downloaded into uploads          | completed  |
//! | open       | the provider refuses, fails, or takes too long | failed     |
//! | pending    | the daemon ended while the provider was asked  | failed     |
//! | pending    | the daemon ended before the provider was asked | pending    |
//! | ended      | a month later, or too many newer ones          | removed    |
//! | ended      | a client removes it with its files             | removed    |
//!
//! | rule | why |
//! |---|---|
//! | a task and the job that asks the provider begin in one step, and so does each job that follows | no kill leaves one without the other |
//! | the job that asks for what is paid is never repeated; those that ask for the task and download are | nothing is paid twice |
//! | what a request may cost is reserved before the provider is asked, and settled in the step that has its result | budgets hold |
//! | what is asked again under the same key is the same task | a tool call that is repeated after a restart asks for nothing |
//! | links and texts of providers are untrusted | others wrote them |

pub mod audit_kinds;
mod create;
pub mod error_codes;
mod index;
mod keep;
#[cfg(test)]
mod keep_tests;
pub mod limits;
mod list;
mod metrics;
mod request;
mod settle;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;

use agentsvc_components::media::{MediaTask, MediaTaskId};

pub use create::{CHANNEL, CreateMedia, ReserveMedia};
pub use keep::RemoveMedia;
pub use list::{AwaitMedia, MediaFilter, MediaTaskView};
pub use settle::{FETCH, FetchOrder, MAKE, MakeOrder, MediaReport, MediaSource, POLL, PollOrder};

use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use crate::kernel::waiters::Waiters;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "budget", "taint", "turn", "usage"],
    kinds: &[Kind::component::<MediaTask>()],
    restore: &[(Phase::Owned, restore_components::<MediaTask>), (Phase::Joined, keep::restored)],
    install: |world| {
        entities::install::<MediaTask>(world);
        world.init_resource::<Waiters<MediaTaskView>>();
        world.init_resource::<metrics::MediaTotals>();
        world.init_resource::<settle::Orphans>();
        on(world, settle::agent_removed);
    },
    measures: &[Measure::of::<MediaTaskId>("media_tasks", |world, at| of(world, at, MediaTask::bytes), entries(56, 4))],
    systems: &[System { stage: Stage::Time, name: "media_beat", run: keep::beat }],
    next_due: keep::next_due,
    before_close: settle::settle_orphans,
    clock_set_back: keep::clock_set_back,
    check: index::check,
    jobs: &[settle::MAKING, settle::POLLING, settle::FETCHING],
    commands: &[CommandDef::of::<CreateMedia>(), CommandDef::of::<ReserveMedia>(), CommandDef::of::<RemoveMedia>()],
    totals: &[Totals::of::<metrics::MediaTotals>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("media")
};
