//! Which environment variables manifests may name (`api_key_env`), and where each may go.
//!
//! A provider's own variable goes to the origin that the provider is configured with, the one of `[default_model]` to the
//! default model's, and those that the configuration lists (`[security] manifest_key_envs`) wherever the manifest says.
//! No other is read: whoever writes manifests would read the environment of the daemon with it.

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::manifest::{Manifest, ModelChoice};
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_systems::Settings;

use super::{Provider, Providers};
use crate::kernel::config::text::is_own_variable;
use crate::kernel::host::origin_of;
use crate::model::error::CallError;

/// What becomes of a variable beside an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// It goes there.
    Granted,
    /// It is the default model's, which a manifest with an endpoint of its own gets without naming it: the call goes without.
    Elsewhere,
    /// The call is refused.
    Refused,
}

impl Providers {
    /// The same providers, where manifests may name `variables` beside any endpoint, and `default` is `[default_model]`.
    pub fn naming(mut self, variables: &[Box<str>], default: ModelChoice) -> Self {
        self.nameable.extend(variables.iter().cloned());
        self.default = default;
        self
    }

    /// Is the provider that of `[default_model]`, whose `api_key_env` is there?
    pub fn has_default_key(&self, provider: &Provider) -> bool {
        *self.default_model(&self.default).provider == *provider.name
            && self.key_of(variable_of(&self.default)).is_some()
    }

    /// The base URL of the provider's calls: what clients of the API set, else that of `[default_model]` if it is the default
    /// provider, else its own.
    pub fn shown_base_url(&self, provider: &Provider) -> Box<str> {
        let of_default =
            self.default_for(&provider.name).and_then(|choice| choice.base_url).filter(|url| !url.is_empty());
        of_default.unwrap_or_else(|| self.base_url_of(provider))
    }

    /// `[default_model]` if the provider called `name` is its provider and clients of the API have not put it elsewhere.
    pub fn default_for(&self, name: &str) -> Option<ModelChoice> {
        let default = self.default_model(&self.default);
        let is_it = *default.provider == *name && self.overrides.base_url(name).is_none();
        is_it.then_some(default)
    }

    /// The variable that is read for a call of `choice` to `base_url`, where it names one.
    pub(super) fn named<'a>(&self, choice: &'a ModelChoice, base_url: &str) -> Result<Option<&'a str>, CallError> {
        let Some(variable) = variable_of(choice) else { return Ok(None) };
        match self.naming_of(variable, base_url) {
            Naming::Granted => Ok(Some(variable)),
            Naming::Elsewhere => Ok(None),
            Naming::Refused => {
                let message = format!("`api_key_env` of the model: {}", not_sent(variable, base_url));
                Err(CallError::last(FailureCode::ProviderAuth, message))
            }
        }
    }

    /// Checks the variables that a new manifest names for its models.
    ///
    /// # Errors
    /// 400 naming the field.
    pub fn check_variables(&self, manifest: &Manifest) -> Result<(), Refusal> {
        // Most name none.
        if std::iter::once(&manifest.model).chain(&manifest.fallback_models).all(|choice| variable_of(choice).is_none())
        {
            return Ok(());
        }
        let aliases = Arc::clone(self.catalog.table().aliases());
        let default_model = self.default_model(&self.default);
        let settings = Settings { default_model, aliases, ..Settings::default() };
        let own = settings.resolve(&manifest.model);
        let check = |place: &str, written: &ModelChoice, asked: &ModelChoice| {
            let Some(variable) = variable_of(written) else { return Ok(()) };
            let known = self.get(&asked.provider).map(|provider| self.base_url_of(provider));
            let Some(base_url) = asked.base_url.clone().filter(|url| !url.is_empty()).or(known) else { return Ok(()) };
            if self.naming_of(variable, &base_url) == Naming::Granted {
                return Ok(());
            }
            let field = format!("{place}.api_key_env");
            let message = format!("`{field}`: {}", not_sent(variable, &base_url));
            Err(Refusal::bad_field(field, message))
        };
        check("model", &manifest.model, &own)?;
        manifest.fallback_models.iter().enumerate().try_for_each(|(index, choice)| {
            check(&format!("fallback_models[{index}]"), choice, &settings.aliases.fallback(&own, choice))
        })
    }

    fn naming_of(&self, variable: &str, base_url: &str) -> Naming {
        let asked = origin_of(base_url);
        let is_there = |url: &str| asked.is_some() && origin_of(url) == asked;
        let is_default = self.default.api_key_env.as_deref() == Some(variable);
        if is_default {
            let default = self.default_model(&self.default);
            let known = self.get(&default.provider).map(|provider| &provider.base_url);
            if default.base_url.as_ref().or(known).is_some_and(|url| is_there(url)) {
                return Naming::Granted;
            }
        }
        let is_of = |variable: &str| {
            let mut own = self.iter().filter(|provider| provider.api_key_env.as_deref() == Some(variable));
            own.any(|provider| is_there(&provider.base_url))
        };
        if !is_own_variable(variable) && (self.nameable.contains(variable) || is_of(variable)) {
            Naming::Granted
        } else if is_default {
            Naming::Elsewhere
        } else {
            Naming::Refused
        }
    }
}

fn variable_of(choice: &ModelChoice) -> Option<&str> {
    choice.api_key_env.as_deref().filter(|variable| !variable.is_empty())
}

/// Why the variable stays here, and what helps.
fn not_sent(variable: &str, base_url: &str) -> String {
    if is_own_variable(variable) {
        return format!("{variable} is a variable of agentsvc itself, which no manifest can name");
    }
    let place = origin_of(base_url).unwrap_or_else(|| "this base_url".to_owned());
    format!(
        "the environment variable {variable} is not sent to {place}; the operator can allow it with \
         `[security] manifest_key_envs` in config.toml"
    )
}
