//! The first configuration: what `POST /api/init` writes.

use agentsvc_api::config::audit_kinds;
use agentsvc_api::config::configuration::{ConfigError, ConfigInit, ConfigInitialized};
use agentsvc_components::Actor;
use serde_json::json;

use super::{Live, problems_of};
use crate::config::{self, Config, ConfigFile, Document as _, Loaded, edit};
use crate::daemon::launch;

impl Live {
    /// Makes what is missing of the home, and writes the first configuration.
    ///
    /// # Errors
    /// As [`Configuration::init`](agentsvc_api::config::configuration::Configuration::init).
    pub(crate) fn write_first(&self, actor: Actor, wanted: &ConfigInit) -> Result<ConfigInitialized, ConfigError> {
        let _alone = self.turn.lock();
        let (config_created, _) = launch::install(&self.home, self.started.data_dir.as_deref()).map_err(|error| {
            tracing::error!(%error, "the home cannot be completed");
            ConfigError::Failed
        })?;
        let entry = |changed: &Vec<String>, _: &_| {
            let is_new = config_created || !changed.is_empty();
            is_new.then(|| (audit_kinds::CONFIG_INITIALIZED, json!({ "changed": changed })))
        };
        let changed = self.write(actor, |text| first(text, wanted, &self.file), entry)?;
        let is_new = config_created || !changed.is_empty();
        let (state, providers) = (self.state.load(), self.parts.providers.load());
        let model = state.in_force.models().map(|(_, model)| model).unwrap_or_default();
        let provider = providers.get(&model.provider);
        let named = model.api_key_env.clone().filter(|variable| !variable.is_empty());
        let key_present = match &named {
            Some(variable) => std::env::var(&**variable).is_ok_and(|key| !key.trim().is_empty()),
            None => provider.is_none_or(|provider| providers.is_usable(provider)),
        };
        let own = provider.and_then(|provider| provider.api_key_env.clone());
        Ok(ConfigInitialized {
            status: if is_new { "initialized" } else { "unchanged" },
            config_created,
            changed,
            provider: model.provider.to_string(),
            model: model.model.to_string(),
            key_present,
            api_key_env: named.or(own).map(String::from),
        })
    }
}

/// The text of a first configuration, the keys that are new in it, and what it is.
fn first(text: &str, wanted: &ConfigInit, file: &ConfigFile) -> Result<(String, Vec<String>, Loaded), ConfigError> {
    let ConfigInit { provider, model, api_key_env, force } = wanted;
    let keys: [(&'static str, _); 3] = [("provider", provider), ("model", model), ("api_key_env", api_key_env)];
    let mut after = if text.is_empty() { Config::template() } else { text.to_owned() };
    let before: toml::Table = after.parse().unwrap_or_default();
    let is_edited = !before.is_empty();
    let mut changed = Vec::new();
    for (field, value) in keys {
        let now = before.get("default_model").and_then(|table| table.get(field)).and_then(toml::Value::as_str);
        let Some(value) = value.as_deref().filter(|value| now != Some(*value)) else { continue };
        if is_edited && !force {
            let message = "config.toml has been edited; set the keys one by one, or use `force` to overwrite them";
            return Err(ConfigError::Conflict(message.to_owned()));
        }
        if is_edited && field == "api_key_env" {
            let message = "default_model.api_key_env refers to a credential; edit it in config.toml";
            return Err(ConfigError::Forbidden(message.to_owned()));
        }
        let path = ["default_model".to_owned(), field.to_owned()];
        let wrong = |message| ConfigError::Wrong { field, message: format!("{field}: {message}") };
        after = edit::set(&after, &path, &json!(value)).map_err(wrong)?;
        changed.push(format!("default_model.{field}"));
    }
    match Config::parse(&after, file.path()) {
        Ok(loaded) => Ok((after, changed, loaded)),
        Err(config::Error::Invalid(problems)) => {
            let at = |field: &str, key: &str| key.strip_prefix("default_model.") == Some(field);
            let ours = problems.list.iter().find_map(|problem| {
                let field = keys.iter().map(|(field, _)| *field).find(|field| at(field, &problem.key))?;
                changed.contains(&problem.key).then(|| (field, problem.message.clone()))
            });
            Err(match ours {
                Some((field, message)) => ConfigError::Wrong { field, message: format!("{field}: {message}") },
                None => ConfigError::Broken(problems_of(&problems)),
            })
        }
        Err(_) => Err(ConfigError::Failed),
    }
}
