//! Usage of models: its events as they are stored, how long they are kept, and what models cost.

pub mod config;
mod rows;

use std::sync::Arc;

use agentsvc_api::usage::store::UsageStore;

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Sweep, Sweeping};
use agentsvc_components::usage::record::SweepUsage;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "usage",
    uses: &[],
    open: |opening| {
        opening.provide::<dyn UsageStore>(Arc::clone(opening.store) as _);
        Ok(())
    },
    performers,
    ..Domain::EMPTY
};

/// Erases old usage events.
fn performers(performers: &mut Performers) {
    let sweep = performers.part::<Sweep>();
    performers.on(move |of: Box<SweepUsage>| sweep(Sweeping::Usage(of.0)));
}
