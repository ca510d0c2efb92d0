//! `doctor --repair`: a restore that was cut off is carried out or taken back; without one, a damaged store is replaced by
//! what can be read of it. An intact store is left alone.

use std::path::PathBuf;

use serde::Serialize;

use super::mend::mend;
use crate::backup::unfinished::{self, Mended};
use crate::config::{Config, Document as _};
use crate::kernel::home::Home;
use crate::kernel::store::exchange;
use crate::kernel::store::repair;
use crate::kernel::store::repair::Repaired;

/// What a repair came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Repair {
    /// There was a restore that was cut off. The store was not looked at.
    Restore(Mended),
    /// The store is intact, or was replaced by what can be read of it.
    Store {
        /// Records of the world in the store.
        world_rows: u64,
        /// Rows of content in it.
        content_rows: u64,
        /// What was damaged, one sentence each.
        damage: Vec<String>,
        /// What is lost, one sentence each.
        lost: Vec<String>,
        /// Where the old store is; nothing when nothing was changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        old_store: Option<PathBuf>,
    },
}

/// Repairs a home that no daemon has.
///
/// # Errors
/// A sentence: the configuration cannot be read, a daemon has the home, a restore can neither be carried out nor taken
/// back, there is no store, or nothing of it can be saved.
pub fn repair(home: &Home) -> Result<Repair, String> {
    let config = Config::load(&home.config_file());
    let _lock = home.lock().map_err(|error| error.to_string())?;
    // The configuration may be a part of it: what it says is only needed for a plan that cannot be read.
    let configured = config.as_ref().ok().and_then(|loaded| loaded.config.data_dir.clone());
    let mended = unfinished::mend(home, &home.data_dir(configured.as_deref())).map_err(|error| error.to_string())?;
    if let Some(mended) = mended {
        return Ok(Repair::Restore(mended));
    }
    config.map_err(|error| error.to_string())?;
    let world = home.world_dir(configured.as_deref());
    exchange::recover(&world).map_err(|error| format!("cannot complete the interrupted restore: {error}"))?;
    // Opening an empty directory would make a store there, and the next start would not be the first.
    if !std::fs::read_dir(&world).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("no store at {}", world.display()));
    }
    let Repaired { world, content, damage, lost, aside } =
        repair::repair(&world, mend).map_err(|error| error.to_string())?;
    Ok(Repair::Store { world_rows: world, content_rows: content, damage, lost, old_store: aside })
}
