//! `start`: prepares the home and hands over to the daemon.

use std::fs;
use std::path::Path;

use clap::Args;

use crate::audit::vault::Vault;
use crate::backup::place;
use crate::config::{Config, Document as _, Loaded, key_guard};
use crate::daemon;
use crate::daemon::cli::detach;
use crate::daemon::launch::{self, Launch};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Exit, Run};
use crate::kernel::descriptors;
use crate::kernel::disk_watch;
use crate::kernel::home::Home;
use crate::kernel::logging;
use crate::kernel::logging::config::Format;
use crate::kernel::store::exchange;

/// Options of `start`.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Address to listen on; overrides `api_listen`
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Log format on stderr; overrides `[log] format`. Without it, a terminal shows warnings and errors only
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
    /// Begin with an empty world in a home that had another one
    #[arg(long)]
    new_world: bool,
    /// Run the daemon in the background, and return once it answers
    #[arg(long)]
    detach: bool,
    /// This is the process in the background
    #[arg(long, hide = true)]
    detached: bool,
}

impl Run for Start {
    /// Checks everything that can be checked before anything runs, then runs the daemon.
    fn run(self, context: &Context) -> Result<(), Error> {
        if self.detach {
            return detach::detach();
        }
        if self.detached {
            detach::leave_terminal();
        }
        descriptors::close_inherited();
        let home = context.home()?;
        finish_restore(&home)?;
        let Loaded { mut config, warnings } = Config::load(&home.config_file())?;
        if let Some(listen) = &self.listen {
            config = config.with_listen(listen)?;
        }
        key_guard::check(&home, &config)?;
        let world = home.world_dir(config.data_dir.as_deref());
        // Those that the operator has deleted since stay away.
        let has_types = home.agent_types_dir().exists();
        home.create(config.data_dir.as_deref())?;
        let lock = home.lock()?;
        let data = home.data_dir(config.data_dir.as_deref());
        disk_watch::make_room(&data).map_err(Error::io("cannot give up the reserve of a full disk"))?;
        // Without it the home is served as before; a disk that takes no file is no reason not to start.
        if let Err(error) = key_guard::remember(&home, &config) {
            output::note(&format!("warning: whether there is an API key could not be remembered: {error}"));
        }
        if let Err(error) = place::tidy(&home, &data) {
            output::note(&format!("warning: temporary files of a restore could not be removed: {error}"));
        }
        // Nobody else has the home: what a kill has left of an exchange of worlds is put in order.
        exchange::recover(&world).map_err(Error::io("cannot complete the interrupted restore"))?;
        let first_run = is_empty(&world);
        if first_run && !self.new_world {
            check_had_none(&home, &world)?;
        }
        if home.write_config(&Config::template())? {
            output::note(&format!("first start: wrote {}", home.config_file().display()));
        }
        if !has_types {
            let types = launch::install_agent_types(&home)?;
            output::note(&format!("first start: wrote {types} agent types to {}", home.agent_types_dir().display()));
        }
        let is_human = self.log_format.is_none() && config.log.format == Format::Human;
        let greets = self.detached || is_human && logging::is_watched();
        let logging = logging::start(logging::Settings {
            level: config.log_level,
            format: self.log_format.unwrap_or(config.log.format),
            is_brief: greets,
            directory: &home.logs_dir(),
            bytes_max: config.log.max_bytes,
            secrets: launch::secrets(&config),
            redact: agentsvc_systems::redact::redact,
        })?;
        for warning in warnings.iter().map(ToString::to_string).chain(logging.warning.clone()) {
            tracing::warn!("config.toml: {warning}");
        }
        let launch = Launch {
            home,
            lock,
            config,
            listen: self.listen,
            warnings,
            logging,
            first_run,
            greets,
            detached: self.detached,
        };
        daemon::run(&launch).map_err(|error| Error::domain(Exit::Failure, error))
    }
}

/// Completes a restore that was cut off, before the configuration is read, which may be a part of it.
fn finish_restore(home: &Home) -> Result<(), Error> {
    if !place::is_decided(home) {
        return Ok(());
    }
    let _lock = home.lock()?;
    if let Some(archive) = place::complete(home)? {
        output::note(&format!("completed the interrupted restore of {archive}"));
    }
    Ok(())
}

/// An empty directory in the place of a world is a disk that is not mounted more often than a wish for another world.
fn check_had_none(home: &Home, world: &Path) -> Result<(), Error> {
    let vault = Vault::open(home.vault_dir()).map_err(|error| Error::domain(Exit::Failure, error))?;
    // A first start that was cut off has signed no entry.
    if vault.checkpoint().is_ok_and(|signed| signed.is_none_or(|signed| signed.sequence == 0)) {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "this home had a world, and there is none in {}. If the directory is on a disk that is not mounted, mount it. If the \
         world is lost, restore a backup, or begin with an empty one: `agentsvc start --new-world`.",
        world.display()
    )))
}

/// True when no world was ever stored in `directory`.
fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::is_empty;

    #[test]
    fn a_first_run_has_no_world() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_empty(&dir.path().join("none")) && is_empty(dir.path()));
        fs::write(dir.path().join("x"), "").unwrap();
        assert!(!is_empty(dir.path()));
    }
}
