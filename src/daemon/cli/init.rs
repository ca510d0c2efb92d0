//! `init`: the home, its commented configuration, and the agent types that come with the daemon.

use clap::Args;
use serde_json::json;

use crate::config::{Config, Document as _};
use crate::daemon::launch;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};

/// Options of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {}

impl Run for Init {
    fn run(self, context: &Context) -> Result<(), Error> {
        let home = context.home()?;
        let path = home.config_file();
        let data_dir = Config::load(&path)?.config.data_dir;
        let (created, types) = launch::install(&home, data_dir.as_deref())?;
        if context.json() {
            return output::json(
                &json!({ "home": home.root(), "config": path, "config_created": created, "agent_types_created": types }),
            );
        }
        let deed = if created { "wrote" } else { "kept" };
        output::line(&format!("{deed} {}", path.display()))?;
        if types > 0 {
            output::line(&format!("wrote {types} agent types to {}", home.agent_types_dir().display()))?;
        }
        output::line("next: `agentsvc start`, then `agentsvc chat` in another terminal")
    }
}
