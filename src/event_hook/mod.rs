//! Event hooks: programs of the operator, one folder each in `{home}/hooks`, that run when something happens (facts 3.3).
//!
//! | rule | why |
//! |---|---|
//! | a hook hears of what is on the disk, and nothing waits for it | it can neither change nor hold up what happens |
//! | so many run at once, so many events wait; those beyond are dropped and counted | a slow hook does not take the memory |
//! | it runs in the sandbox of servers, without a shell, for so long at most | it gets no secrets, and what it starts ends with it |

mod cli;
mod files;
pub(crate) mod fuzzing;
mod run;

use std::sync::Arc;

use agentsvc_api::event_hook::host::EventHookList;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
pub(crate) use run::EventHooks;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "event_hook",
    uses: &["event", "session"],
    commands: &[Subcommand::new::<cli::Hooks>(45, "hooks", "List hooks, the programs that run on events")
        .examples(&[Example::new("hooks", "List the hooks, how often they ran, and what failed")])
        .under(Group::Connections)],
    open: |opening| {
        let hooks = EventHooks::new(opening.home.root().join("hooks"));
        opening.settings.set(hooks.clone());
        opening.provide::<dyn EventHookList>(Arc::new(hooks.clone()));
        hooks.start(opening.commands.clone(), opening.settings.clone(), opening.api.shutdown.clone())
    },
    ..Domain::EMPTY
};
