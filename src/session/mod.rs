//! The tool that searches sessions.

pub(crate) mod config;
mod rows;
pub(crate) mod search;

use std::sync::Arc;

use agentsvc_api::session::content::Content;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Rows, Sweep, Sweeping};
use agentsvc_components::LogId;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_systems::kernel::record::log_prefixes;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "session",
    uses: &["compaction", "tool"],
    brings: |brought| brought.add([search::TOOL]),
    open: |opening| {
        opening.provide::<dyn Content>(Arc::clone(opening.store) as _);
        Ok(())
    },
    performers,
    commands: &[Subcommand::of(
        56,
        "session",
        "List, read, label and delete conversations",
        &[Resource::at("/api/sessions").columns(&[
            ("ID", "/id"),
            ("TITLE", "/title"),
            ("AGENT", "/agent"),
            ("MESSAGES", "/message_count"),
            ("CURRENT", "/current"),
            ("UPDATED", "/updated_at"),
        ])],
    )
    .examples(&[
        Example::new("session list --agent assistant", "List the conversations of an agent"),
        Example::new("session show work", "Print one by its label, first line or id"),
        Example::new("session search --q 'the trip'", "Find text in all of them"),
    ])
    .under(Group::Agents)],
};

/// Erases logs.
fn performers(performers: &mut Performers) {
    let sweep = performers.part::<Sweep>();
    performers.on(move |of: Box<SweepLog>| sweep(swept(of.0)));
}

/// The log of a session that was cleared or removed.
pub(crate) fn swept(log: LogId) -> Sweeping {
    let prefixes = log_prefixes(log).map(|prefix| prefix.to_vec()).collect();
    Sweeping::telling(Rows::Under(prefixes), LogSwept(log))
}
