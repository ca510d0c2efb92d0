//! `audit`: an operator accepts an audit log that does not match what was signed.

use clap::{Args, Subcommand};

use crate::audit::AuditTrail;
use crate::audit::accept::{Accepted, accept};
use crate::audit::outside::Outside;
use crate::audit::vault::Vault;
use crate::config::{Config, Document as _};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::Home;
use crate::kernel::store::{Store, exchange};
use crate::kernel::world_loop::Clock;

/// Bytes of a reason.
const REASON_BYTES_MAX: usize = 1_024;

/// Subcommands of `audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Accept the audit log as it is and sign it again, such as after an older data directory was put back on purpose.
    /// The daemon must be stopped
    Accept(Accept),
}

/// Options of `audit accept`.
#[derive(Debug, Args)]
pub(crate) struct Accept {
    /// Why; recorded in the audit log
    #[arg(long)]
    reason: String,
}

impl Run for Audit {
    fn run(self, context: &Context) -> Result<(), Error> {
        let Self::Accept(Accept { reason }) = self;
        let reason = reason.trim();
        if reason.is_empty() || reason.len() > REASON_BYTES_MAX {
            return Err(Error::Usage(format!("--reason must have 1 to {REASON_BYTES_MAX} bytes")));
        }
        let accepted = accept_in(&context.home()?, reason).map_err(Error::Failed)?;
        if context.json() {
            return output::json(&accepted);
        }
        let Accepted { accepted, hash, signed, entry, sent } = accepted;
        let signed = signed.map_or_else(|| "nothing".to_owned(), |signed| format!("entry {signed}"));
        output::line(&format!("accepted the audit log up to entry {accepted} ({hash}); {signed} was signed before"))?;
        output::line(&format!("recorded as entry {entry} and signed"))?;
        if !sent {
            let lacks = "warning: audit.heads_file or audit.heads_syslog does not have this head";
            output::note(&format!(
                "{lacks}; if the audit log is still reported as broken when they can be written, accept it again"
            ));
        }
        Ok(())
    }
}

/// Accepts the trail of a home that no daemon has.
fn accept_in(home: &Home, reason: &str) -> Result<Accepted, String> {
    let config = Config::load(&home.config_file()).map_err(|error| error.to_string())?.config;
    let _lock = home.lock().map_err(|error| error.to_string())?;
    let world = home.world_dir(config.data_dir.as_deref());
    exchange::recover(&world).map_err(|error| format!("cannot complete the interrupted restore: {error}"))?;
    // Opening an empty directory would make a store there.
    if !std::fs::read_dir(&world).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("no store at {}", world.display()));
    }
    let store = Store::open(world).map_err(|error| error.to_string())?;
    let vault = Vault::open(home.vault_dir()).map_err(|error| error.to_string())?;
    let trail = AuditTrail::new(store, vault.into(), Outside::new(&config.audit, home.root()));
    let uid = rustix::process::getuid().as_raw();
    let name = ["SUDO_USER", "USER"].into_iter().find_map(|variable| std::env::var(variable).ok());
    let user = name.map_or_else(|| format!("uid {uid}"), |name| format!("{name} (uid {uid})"));
    accept(&trail, &user, reason, (Clock::system().wall)())
}
