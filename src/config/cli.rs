//! `config`: show, check and change config.toml.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{ChangeError, Config as File, ConfigFile, Document as _, Editable as _, Loaded, key_guard, toml_of};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Exit, Run};
use crate::kernel::config;

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print the configuration in effect; secrets are replaced
    Show,
    /// Check config.toml; fails when the daemon would not start with it
    Check,
    /// Print the value of a key, such as default_model.model, or a table, such as budget
    Get(Get),
    /// Set one key: over the API when the daemon runs, else in config.toml
    Set(Set),
    /// Reload config.toml in the running daemon
    Reload,
    /// Print the JSON Schema of config.toml, for editors
    Schema,
    /// Print every key, what its value must be and when a new one takes effect
    Keys,
}

/// Options of `config get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The key, such as default_model.model, or a table
    key: String,
}

/// Options of `config set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The key, such as default_model.model
    key: String,
    /// The value in TOML syntax; strings need no quotes
    #[arg(required_unless_present = "unset")]
    value: Option<String>,
    /// Remove the key from the file to restore its default
    #[arg(long, conflicts_with = "value")]
    unset: bool,
}

impl From<config::Error> for Error {
    fn from(error: config::Error) -> Self {
        let exit = if matches!(error, config::Error::Listen(_)) { Exit::Usage } else { Exit::Failure };
        Self::domain(exit, error)
    }
}

impl From<ChangeError> for Error {
    fn from(error: ChangeError) -> Self {
        let exit = match error {
            ChangeError::Path(_) | ChangeError::Forbidden(_) => Exit::Usage,
            _ => Exit::Failure,
        };
        Self::domain(exit, error)
    }
}

impl Run for Config {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Show => show(context),
            Self::Check => check(context),
            Self::Get(get) => get.run(context),
            Self::Set(set) => set.run(context),
            Self::Reload => reload(context),
            Self::Schema => output::json(&File::schema()),
            Self::Keys => keys(context),
        }
    }
}

fn show(context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    let Loaded { config, warnings } = File::load(&home.config_file())?;
    warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
    let shown = config.shown(&home);
    if context.json() {
        return output::json(&shown);
    }
    output::print(&toml_of(&shown).map_err(|error| Error::Protocol(error.to_string()))?)
}

fn check(context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    let path = home.config_file();
    let loaded = File::load(&path).and_then(|loaded| key_guard::check(&home, &loaded.config).map(|()| loaded));
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

impl Get {
    fn run(self, context: &Context) -> Result<(), Error> {
        let home = context.home()?;
        let path = File::place_of(&self.key)?;
        let value = File::load(&home.config_file())?.config.shown_at(&home, &path);
        match &value {
            _ if context.json() => output::json(&value),
            Value::String(text) => output::line(text),
            Value::Null => output::line("not set"),
            Value::Object(_) => output::print(&toml_of(&value).map_err(|error| Error::Protocol(error.to_string()))?),
            other => output::line(&other.to_string()),
        }
    }
}

impl Set {
    fn run(self, context: &Context) -> Result<(), Error> {
        let path = File::path_of(&self.key)?;
        let value = self.value.as_deref().map_or(Value::Null, |text| File::value_of(&path, text));
        let body = json!({ "path": self.key, "value": value });
        if context.is_elsewhere() || context.home()?.address().is_some() {
            let client = context.client()?;
            match context.block_on(async { client.post("/api/config/set", Some(&body)).await }) {
                // What a killed daemon left behind is no obstacle.
                Err(Error::Unreachable { .. }) if !context.is_elsewhere() => {}
                answered => return set_by_daemon(context, &answered?),
            }
        }
        let file = ConfigFile::new(&context.home()?);
        file.change(|text| {
            let text = if text.is_empty() { File::template() } else { text.to_owned() };
            let (after, _) = File::changed(&text, &path, &value, file.path())?;
            Ok::<_, ChangeError>((after, ()))
        })?;
        if context.json() {
            return output::json(&json!({ "status": "saved", "path": self.key, "value": value }));
        }
        output::line(&format!("saved in {}", file.path().display()))
    }
}

fn set_by_daemon(context: &Context, answer: &Value) -> Result<(), Error> {
    if context.json() {
        return output::json(answer);
    }
    let needs = if answer["restart_required"] == true { "; takes effect at the next start" } else { "" };
    output::line(&format!("{}{needs}", answer["status"].as_str().unwrap_or("saved")))
}

fn reload(context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    let answer = context.block_on(async { client.post("/api/config/reload", None).await })?;
    if context.json() {
        return output::json(&answer);
    }
    let names = |key: &str| {
        let names = answer[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    output::line(&format!("{}: {}", answer["status"].as_str().unwrap_or("reloaded"), names("changed")))?;
    let waiting = names("restart_required");
    if waiting.is_empty() { Ok(()) } else { output::line(&format!("takes effect at the next start: {waiting}")) }
}

fn keys(context: &Context) -> Result<(), Error> {
    let lines = File::key_lines();
    if context.json() { output::json(&lines) } else { output::print(&File::key_table()) }
}
