//! Rehearsals' place in the daemon: they see the rows of the present world, and the directory of snapshots.

use std::sync::Arc;

use super::exchange::Exchange;
use super::{Error, Front, system};
use crate::launch::Launch;
use crate::rehearsal::keeper::{Keeper, Places};
use crate::world_loop::Clock;

/// Lets clients rehearse.
pub(crate) fn open(launch: &Launch, front: &Front, exchange: &Arc<Exchange>) -> Result<(), Error> {
    let configured = launch.config.data_dir.as_deref();
    let exchange = Arc::downgrade(exchange);
    let places = Places {
        dir: launch.home.data_dir(configured).join("rehearsals"),
        snapshots: launch.home.snapshots_dir(configured),
        view: Box::new(move || Some(exchange.upgrade()?.view().ok()?.into_parts())),
        clock: Clock::system(),
    };
    let keeper = Arc::new(Keeper::new(places).map_err(system("no randomness"))?);
    front.api.add_probe(Arc::clone(&keeper) as _);
    front.api.set_rehearsals(keeper);
    Ok(())
}
