//! The thread that tidies the uploads: after the start, once a day, and when an agent is gone. Where nodes share them, it also tells the
//! others what they are still to be told.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use agentsvc_components::AgentId;
use crossbeam_channel::{RecvTimeoutError, Sender};

use super::uploads::Uploads;

/// Time between two looks at what is past its retention.
const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);
/// Time between two tries to tell other nodes something.
const RETRY: Duration = Duration::from_secs(60);

/// What the thread is told.
enum Told {
    /// This agent is gone.
    Gone(AgentId),
    /// What is here and what all nodes have is to be brought together.
    Agree,
}

/// The way to the thread, which ends when this is dropped. What waits there is at most one id for each agent that was
/// killed, joined into one sweep, and one word for each time that this node took the world over.
pub(super) struct Sweeper {
    told: Sender<Told>,
}

impl Sweeper {
    /// Starts the thread. Without it (the system refuses) nothing is tidied, and the total counts from zero.
    pub(super) fn start(uploads: Uploads) -> Self {
        let (told, arrivals) = crossbeam_channel::unbounded();
        let run = move || {
            let mut forgotten = HashSet::new();
            sweep(&uploads, &forgotten);
            sweep(&uploads, &forgotten);
            let mut swept = Instant::now();
            loop {
                let is_shared = uploads.is_shared();
                match arrivals.recv_timeout(if is_shared { RETRY } else { PERIOD }) {
                    Ok(told) => {
                        for told in std::iter::once(told).chain(arrivals.try_iter()) {
                            match told {
                                Told::Gone(agent) => _ = forgotten.insert(agent),
                                Told::Agree => uploads.owe(),
                            }
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if is_shared && !uploads.owes() && swept.elapsed() < PERIOD {
                            continue;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                sweep(&uploads, &forgotten);
                swept = Instant::now();
                match uploads.agree(&forgotten) {
                    Ok(()) => forgotten.clear(),
                    Err(error) => tracing::warn!(%error, "the uploads of the nodes could not be brought together yet"),
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("uploads-sweeper".to_owned()).spawn(run) {
            tracing::warn!(%error, "the uploads' sweeper could not be started");
        }
        Self { told }
    }

    /// Removes the uploads of `agent`, in its own time.
    pub(super) fn forget(&self, agent: AgentId) {
        // The thread ends only after this.
        let _ = self.told.send(Told::Gone(agent));
    }

    /// Brings what is here and what all nodes have together, in its own time.
    pub(super) fn agree(&self) {
        let _ = self.told.send(Told::Agree);
    }
}

fn sweep(uploads: &Uploads, forgotten: &HashSet<AgentId>) {
    if let Err(error) = uploads.sweep(forgotten) {
        tracing::warn!(%error, "the uploads could not be swept");
    }
}
