//! The thread that tidies the uploads: after the start, once a day, and when an agent is gone.

use std::collections::HashSet;
use std::time::Duration;

use agentsvc_components::AgentId;
use crossbeam_channel::{RecvTimeoutError, Sender};

use super::uploads::Uploads;

/// Time between two looks at what is past its retention.
const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// The way to the thread, which ends when this is dropped. What waits there is at most one id for each agent that was
/// killed, joined into one sweep.
pub(super) struct Sweeper {
    gone: Sender<AgentId>,
}

impl Sweeper {
    /// Starts the thread. Without it (the system refuses) nothing is tidied, and the total counts from zero.
    pub(super) fn start(uploads: Uploads) -> Self {
        let (gone, arrivals) = crossbeam_channel::unbounded::<AgentId>();
        let run = move || {
            sweep(&uploads, &HashSet::new());
            sweep(&uploads, &HashSet::new());
            loop {
                let mut forgotten = HashSet::new();
                match arrivals.recv_timeout(PERIOD) {
                    Ok(agent) => {
                        forgotten.insert(agent);
                        forgotten.extend(arrivals.try_iter());
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                sweep(&uploads, &forgotten);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("uploads-sweeper".to_owned()).spawn(run) {
            tracing::warn!(%error, "the uploads' sweeper could not be started");
        }
        Self { gone }
    }

    /// Removes the uploads of `agent`, in its own time.
    pub(super) fn forget(&self, agent: AgentId) {
        // The thread ends only after this.
        let _ = self.gone.send(agent);
    }
}

fn sweep(uploads: &Uploads, forgotten: &HashSet<AgentId>) {
    if let Err(error) = uploads.sweep(forgotten) {
        tracing::warn!(%error, "the uploads could not be swept");
    }
}
