//! Rehearsals' place in the daemon: they see the rows of the present world, and the directory of snapshots.

use std::sync::Arc;

use crate::daemon::launch::Launch;
use crate::daemon::{Error, Front, system};
use crate::kernel::exchange::Exchange;
use crate::kernel::world_loop::Clock;
use crate::rehearsal::keeper::{Keeper, Places};

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
    let keeper = Arc::new(Keeper::new(places).map_err(system("the system's random number generator failed"))?);
    front.api.add_probe(Arc::clone(&keeper) as _);
    front.api.services.provide::<dyn agentsvc_api::rehearsal::runs::Rehearsals>(keeper);
    Ok(())
}
