//! What a start has prepared when the daemon takes over.

use crate::config::{Config, Warning};
use crate::kernel::home::{Home, Lock};
use crate::kernel::logging::Logging;

/// Everything the daemon starts with. The home exists and is locked, the configuration is valid, logging runs.
#[derive(Debug)]
pub struct Launch {
    /// The home.
    pub home: Home,
    /// The effective configuration, `--listen` included.
    pub config: Config,
    /// What `--listen` said; holds for later readings of the file, too.
    pub listen: Option<String>,
    /// What is written in the configuration but has no effect (`config_warnings` of `/api/health/detail`).
    pub warnings: Vec<Warning>,
    /// The log writers; dropping it writes out what waits.
    pub logging: Logging,
    /// True when no world was ever stored here: the assistant is to be created
    /// ([`ASSISTANT_MANIFEST`](crate::kernel::home::ASSISTANT_MANIFEST)).
    pub first_run: bool,
    /// Keeps the home to this process; the last field, so that it is dropped last.
    pub lock: Lock,
}
