//! Rehearsals' place in the daemon: they see the store of the present world, and the directory of snapshots.

use std::sync::Arc;

use super::{Error, Front, system};
use crate::launch::Launch;
use crate::rehearsal::keeper::{Keeper, Places};
use crate::world_loop::Clock;

/// Lets clients rehearse.
pub(super) fn open(launch: &Launch, front: &Front) -> Result<(), Error> {
    let data = launch.home.data_dir(launch.config.data_dir.as_deref());
    let late = Arc::clone(&front.store);
    let places = Places {
        dir: data.join("rehearsals"),
        snapshots: data.join("snapshots"),
        store: Box::new(move || late.store().ok()),
        clock: Clock::system(),
    };
    let keeper = Keeper::new(places).map_err(system("no randomness"))?;
    front.api.set_rehearsals(Arc::new(keeper));
    Ok(())
}
