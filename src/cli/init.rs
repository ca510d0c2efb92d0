//! `init`: the home and its commented configuration.

use clap::Args;
use serde_json::json;

use super::context::Context;
use super::{Error, output};
use crate::config;

/// Options of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {}

impl Init {
    /// Creates what is missing; a second run changes nothing.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let home = context.home()?;
        let path = home.config_file();
        let data_dir = config::load(&path)?.config.data_dir;
        let created = home.install(data_dir.as_deref())?;
        if context.json() {
            return output::json(&json!({ "home": home.root(), "config": path, "config_created": created }));
        }
        let deed = if created { "wrote" } else { "kept" };
        output::line(&format!("{deed} {}", path.display()))?;
        output::line("next: `agentsvc start`, then `agentsvc chat` in another terminal")
    }
}
