//! Comms events on their way to streams, as they become durable.

use std::sync::Arc;

use agentsvc_systems::comms::limits::{COMMS_STREAM_BACKLOG_MAX, COMMS_STREAMS_MAX};
use agentsvc_systems::comms::{Noted, noted_of};
use agentsvc_systems::kernel::engine::Told;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use crate::http::error::Error;

/// Those who watch comms events.
pub struct CommsHub {
    watchers: broadcast::Sender<Arc<Noted>>,
    /// One permit for each stream.
    streams: Arc<Semaphore>,
}

impl Default for CommsHub {
    fn default() -> Self {
        let streams = Arc::new(Semaphore::new(COMMS_STREAMS_MAX));
        Self { watchers: broadcast::Sender::new(COMMS_STREAM_BACKLOG_MAX), streams }
    }
}

impl CommsHub {
    /// Shows the comms events of what a step told, which is durable, to those who watch; gives back what is something else.
    /// Never waits.
    pub fn take(&self, told: Told) -> Option<Told> {
        match noted_of(told) {
            Ok(noted) => {
                for event in noted {
                    // An error says that nobody watches.
                    let _ = self.watchers.send(Arc::new(event));
                }
                None
            }
            Err(told) => Some(told),
        }
    }

    /// Every event from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<Noted>> {
        self.watchers.subscribe()
    }

    /// Open streams.
    pub(super) fn open_streams(&self) -> usize {
        COMMS_STREAMS_MAX - self.streams.available_permits()
    }

    /// A permit for a stream.
    ///
    /// # Errors
    /// 429 when there is none.
    pub(super) fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        permit.map_err(|_| Error::too_many("streams of comms events are open", COMMS_STREAMS_MAX))
    }
}
