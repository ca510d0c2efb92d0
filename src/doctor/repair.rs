//! `doctor --repair`: a damaged store is replaced by what can be read of it.

use std::path::PathBuf;

use serde::Serialize;

use crate::config;
use crate::home::Home;
use crate::store::repair::{self, Repaired};

/// What a repair came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Records of the world that the new store has.
    pub world_rows: u64,
    /// Rows of content that it has.
    pub content_rows: u64,
    /// What is lost, one sentence each.
    pub lost: Vec<String>,
    /// Where the old store is.
    pub old_store: PathBuf,
}

/// Repairs the store of a home that no daemon has.
///
/// # Errors
/// A sentence: the configuration cannot be read, a daemon has the home, there is no store, or nothing of it can be saved.
pub fn repair(home: &Home) -> Result<Repair, String> {
    let config = config::load(&home.config_file()).map_err(|error| error.to_string())?;
    let _lock = home.lock().map_err(|error| error.to_string())?;
    let world = home.world_dir(config.config.data_dir.as_deref());
    if !world.is_dir() {
        return Err(format!("there is no store at {}", world.display()));
    }
    let Repaired { kept, lost, aside } = repair::repair(&world).map_err(|error| error.to_string())?;
    Ok(Repair { world_rows: kept.world, content_rows: kept.content, lost, old_store: aside })
}
