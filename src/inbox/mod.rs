//! The inbox: files in a directory become messages of agents, each once, also over a kill (spec 3; facts 7.6).
//!
//! | step | after a kill here |
//! |---|---|
//! | the file is read | it is read again |
//! | its message is stored, with a key of its name and content, and held | the key is known: no second turn |
//! | the file moves to `processed/` | the key is released without the file |
//! | the key is released | the same file may come again |

pub mod config;
mod files;
mod watch;

use std::sync::Arc;

use crate::kernel::domain::Domain;
use watch::Watch;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "inbox",
    uses: &["agent", "hook", "injection"],
    open: |opening| {
        let watch = Watch::new(opening.home.root().join("inbox"), opening.settings.clone());
        opening.provide::<dyn agentsvc_api::inbox::host::Inbox>(Arc::clone(&watch) as _);
        watch.start(Arc::downgrade(opening.api))
    },
    ..Domain::EMPTY
};
