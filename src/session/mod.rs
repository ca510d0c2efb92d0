//! The tool that searches sessions.

mod rows;
pub(crate) mod search;

use std::sync::Arc;

use agentsvc_api::session::content::Content;

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Sweep, Sweeping};
use agentsvc_components::session::sweep::SweepLog;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "session",
    uses: &["compaction"],
    tools: &[search::TOOL],
    open: |opening| {
        opening.provide::<dyn Content>(Arc::clone(opening.store) as _);
        Ok(())
    },
    performers,
    ..Domain::EMPTY
};

/// Erases logs.
fn performers(performers: &mut Performers) {
    let sweep = performers.part::<Sweep>();
    performers.on(move |of: Box<SweepLog>| sweep(Sweeping::Log(of.0)));
}
