//! `config show` and `config check`.

use clap::Subcommand;
use serde_json::json;

use super::context::Context;
use super::{Error, output};
use crate::config::{self, Loaded};

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print the configuration in effect; secrets are replaced
    Show,
    /// Check config.toml; fails when the daemon would not start with it
    Check,
}

impl Config {
    /// Runs the subcommand. Neither needs a daemon.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Show => show(context),
            Self::Check => check(context),
        }
    }
}

fn show(context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    let Loaded { mut config, warnings } = config::load(&home.config_file())?;
    let (providers, _) = config.models().map_err(|error| Error::Usage(error.to_string()))?;
    let model = config.default_of(&providers.with_overrides(crate::providers::kept(&home, &config)));
    config.default_model.provider = Some(model.provider);
    config.default_model.model = Some(model.model);
    config.data_dir = Some(home.data_dir(config.data_dir.as_deref()));
    warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
    if context.json() {
        return output::json(&config);
    }
    let text = toml::to_string(&config).map_err(|error| Error::Protocol(error.to_string()))?;
    output::print(&text)
}

fn check(context: &Context) -> Result<(), Error> {
    let path = context.home()?.config_file();
    let loaded = config::load(&path);
    if context.json() {
        let (problems, warnings) = match &loaded {
            Ok(loaded) => (Vec::new(), loaded.warnings.clone()),
            Err(config::Error::Invalid(problems)) => (problems.list.clone(), Vec::new()),
            Err(_) => (Vec::new(), Vec::new()),
        };
        let valid = loaded.is_ok();
        output::json(&json!({ "config": path, "valid": valid, "problems": problems, "warnings": warnings }))?;
    }
    let Loaded { warnings, .. } = loaded?;
    if context.json() {
        return Ok(());
    }
    warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
    output::line(&format!("{}: ok", path.display()))
}
