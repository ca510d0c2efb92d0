//! What the operator sets and the world needs to know.

pub mod alias;
pub mod auto_dream;
pub mod budget;
pub mod memory;
pub mod prices;
pub mod taint;

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::Resource;
use serde::{Deserialize, Serialize};

use agentsvc_components::Micros;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::ModelChoice;

use crate::config::alias::Aliases;
use crate::config::auto_dream::AutoDreamSettings;
use crate::config::budget::BudgetSettings;
use crate::config::memory::MemorySettings;
use crate::config::prices::Prices;
use crate::config::taint::TaintPolicy;
use crate::injection::InjectionPolicy;
use crate::kernel::command::{Answer, command};
use crate::kernel::domain::Domain;
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::react;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["injection", "manifest", "usage"],
    commands: &[CommandDef::of::<Reconfigure>()],
    ..Domain::named("config")
};

/// Tokens of a context where nothing better is known.
const CONTEXT_TOKENS_DEFAULT: u32 = 128_000;
/// Days that usage events are kept (spec 3, Usage, rule 5).
const USAGE_DAYS_DEFAULT: u32 = 90;

/// The part of the configuration that decisions in the world depend on.
#[derive(Resource, Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The model of agents whose manifest names none.
    pub default_model: ModelChoice,
    /// Model calls out at once for one provider.
    pub provider_calls: u32,
    /// The same, for single providers by name.
    pub provider_calls_by_name: BTreeMap<String, u32>,
    /// What models cost.
    pub prices: Prices,
    /// Tokens of the context of each provider's models.
    pub context_tokens: BTreeMap<Box<str>, u32>,
    /// The same for single models, by provider and model, where it is not the provider's.
    pub model_context_tokens: BTreeMap<Box<str>, BTreeMap<Box<str>, u32>>,
    /// List model aliases.
    pub aliases: Arc<Aliases>,
    /// Limits of what is spent.
    pub budget: BudgetSettings,
    /// Days that usage events are kept.
    pub usage_retention_days: u32,
    /// Days that sums of minutes are kept (`[history] retention_days`).
    #[serde(default = "history_days_default")]
    pub history_retention_days: u32,
    /// Seconds after which a claimed task that nobody ended waits again.
    pub claim_timeout_secs: u64,
    /// `[triggers]`.
    pub triggers: TriggerSettings,
    /// Tools whose calls a person approves, by name or glob (`[approval] require_approval`).
    pub require_approval: Vec<Box<str>>,
    /// Milliseconds that an approval waits for a person (`[approval] timeout_secs`).
    pub approval_timeout_ms: i64,
    /// `[security]`.
    pub security: SecuritySettings,
    /// `[a2a]`.
    #[serde(default)]
    pub a2a: A2aSettings,
    /// Memory entries of one agent (`[proactive_memory] max_memories_per_agent`).
    #[serde(default = "max_memories_default")]
    pub max_memories_per_agent: u32,
    /// Agents that one user may have (`[people] agents_per_user_max`).
    #[serde(default = "agents_per_user_default")]
    pub agents_per_user_max: u32,
    /// Bytes that the sessions of one family of agents may take in the store (`[sessions] family_max_bytes`).
    #[serde(default = "family_sessions_default")]
    pub family_sessions_max_bytes: u64,
    /// The same of all agents of one user (`[sessions] user_max_bytes`).
    #[serde(default = "user_sessions_default")]
    pub user_sessions_max_bytes: u64,
    /// Days after which a conversation of a channel goes in which only strangers wrote, with its sessions; 0 keeps it (`[channels]
    /// strangers_idle_days`).
    #[serde(default = "strangers_idle_default")]
    pub strangers_idle_days: u32,
    /// Bytes that the agents of one family, or of one user with a limited role, may remember together (`[proactive_memory]
    /// family_max_bytes`).
    #[serde(default = "family_memory_default")]
    pub family_memory_max_bytes: u64,
    /// The rest of `[proactive_memory]`.
    #[serde(default)]
    pub memory: MemorySettings,
    /// `[auto_dream]`.
    #[serde(default)]
    pub auto_dream: AutoDreamSettings,
    /// System prompts have versions and experiments (`[prompt_intelligence] enabled`).
    #[serde(default)]
    pub prompt_intelligence: bool,
}

/// Days that sums of minutes are kept where nothing else is said.
pub const HISTORY_DAYS_DEFAULT: u32 = 30;

const fn history_days_default() -> u32 {
    HISTORY_DAYS_DEFAULT
}

/// Memory entries of one agent where nothing else is said.
pub const MAX_MEMORIES_DEFAULT: u32 = 1_000;

/// Agents of one user where nothing else is said.
pub const AGENTS_PER_USER_DEFAULT: u32 = 1_000;

/// Bytes of the sessions of one family of agents where nothing else is said.
pub const FAMILY_SESSIONS_BYTES_DEFAULT: u64 = 10 << 30;

/// The same of all agents of one user.
pub const USER_SESSIONS_BYTES_DEFAULT: u64 = 20 << 30;

/// Days that conversations of strangers are kept in which nothing happens, where nothing else is said.
pub const STRANGERS_IDLE_DAYS_DEFAULT: u32 = 30;

const fn strangers_idle_default() -> u32 {
    STRANGERS_IDLE_DAYS_DEFAULT
}

/// Bytes that the agents of one family remember where nothing else is said.
pub const FAMILY_MEMORY_BYTES_DEFAULT: u64 = 10 << 30;

const fn family_memory_default() -> u64 {
    FAMILY_MEMORY_BYTES_DEFAULT
}

const fn family_sessions_default() -> u64 {
    FAMILY_SESSIONS_BYTES_DEFAULT
}

const fn user_sessions_default() -> u64 {
    USER_SESSIONS_BYTES_DEFAULT
}

const fn agents_per_user_default() -> u32 {
    AGENTS_PER_USER_DEFAULT
}

const fn max_memories_default() -> u32 {
    MAX_MEMORIES_DEFAULT
}

/// What clients without a key may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aSettings {
    /// No agent is offered: what such clients began earlier calls no model.
    pub is_off: bool,
    /// What all that they began may cost in a UTC day; nothing means no limit (`[a2a] daily_limit_usd`).
    pub daily_limit: Micros,
}

/// What is done with content from outside and with the turns that read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecuritySettings {
    /// What becomes of a text that looks like a prompt injection.
    pub prompt_injection: InjectionPolicy,
    /// What becomes of a sensitive tool call of a turn that has read untrusted content.
    pub taint: TaintPolicy,
    /// Tools, by name or glob, whose calls wait for a person then, sensitive or not.
    pub taint_approve: Vec<Box<str>>,
    /// Tools, by name or glob, whose calls are refused then, sensitive or not.
    pub taint_deny: Vec<Box<str>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_model: ModelChoice { provider: "builtin".into(), model: "builtin".into(), ..Default::default() },
            provider_calls: limit::PROVIDER_CALLS_DEFAULT,
            provider_calls_by_name: BTreeMap::new(),
            prices: Prices::default(),
            context_tokens: BTreeMap::new(),
            model_context_tokens: BTreeMap::new(),
            aliases: Arc::default(),
            budget: BudgetSettings::default(),
            usage_retention_days: USAGE_DAYS_DEFAULT,
            history_retention_days: HISTORY_DAYS_DEFAULT,
            claim_timeout_secs: limit::CLAIM_TIMEOUT_SECS_DEFAULT,
            triggers: TriggerSettings::default(),
            require_approval: Vec::new(),
            approval_timeout_ms: 3_600_000,
            security: SecuritySettings::default(),
            a2a: A2aSettings::default(),
            max_memories_per_agent: MAX_MEMORIES_DEFAULT,
            agents_per_user_max: AGENTS_PER_USER_DEFAULT,
            family_sessions_max_bytes: FAMILY_SESSIONS_BYTES_DEFAULT,
            user_sessions_max_bytes: USER_SESSIONS_BYTES_DEFAULT,
            strangers_idle_days: STRANGERS_IDLE_DAYS_DEFAULT,
            family_memory_max_bytes: FAMILY_MEMORY_BYTES_DEFAULT,
            memory: MemorySettings::default(),
            auto_dream: AutoDreamSettings::default(),
            prompt_intelligence: false,
        }
    }
}

impl Settings {
    /// `choice` with its alias resolved and the daemon's defaults in its empty places. One that names the default model's
    /// provider and neither endpoint nor key has those of the default model (decisions, Models).
    #[must_use]
    pub fn resolve(&self, choice: &ModelChoice) -> ModelChoice {
        let mut resolved = choice.clone();
        resolved.provider = self.provider_of(choice).into();
        resolved.model = self.model_of(choice).into();
        let is_bare = choice.base_url.is_none() && choice.api_key_env.is_none();
        if (choice.provider.is_empty() || is_bare) && resolved.provider == self.default_model.provider {
            if resolved.base_url.is_none() {
                resolved.base_url.clone_from(&self.default_model.base_url);
            }
            if resolved.api_key_env.is_none() {
                resolved.api_key_env.clone_from(&self.default_model.api_key_env);
            }
        }
        resolved
    }

    /// The provider that `choice` means.
    #[must_use]
    pub fn provider_of<'a>(&'a self, choice: &'a ModelChoice) -> &'a str {
        match self.aliases.of(choice) {
            Some(name) => &name.provider,
            None if choice.provider.is_empty() => &self.default_model.provider,
            None => &choice.provider,
        }
    }

    /// The model that `choice` means.
    #[must_use]
    pub fn model_of<'a>(&'a self, choice: &'a ModelChoice) -> &'a str {
        match self.aliases.of(choice) {
            Some(name) => &name.model,
            None if choice.model.is_empty() => &self.default_model.model,
            None => &choice.model,
        }
    }

    /// Tokens of a model's context; where no model is named, no fewer than any of the provider's has.
    #[must_use]
    pub fn context_tokens_of(&self, provider: &str, model: &str) -> u32 {
        let general = self.context_tokens.get(provider).copied().unwrap_or(CONTEXT_TOKENS_DEFAULT);
        let Some(models) = self.model_context_tokens.get(provider) else { return general };
        if model.is_empty() {
            return models.values().copied().fold(general, u32::max);
        }
        models.get(model).copied().unwrap_or(general)
    }

    /// How many calls may be out at `provider` at once.
    #[must_use]
    pub fn calls_max(&self, provider: &str) -> u32 {
        self.provider_calls_by_name.get(provider).copied().unwrap_or(self.provider_calls).max(1)
    }
}

/// The world has other settings: what waits is judged by them.
pub(crate) struct SettingsChanged;

/// Gives the world other settings, from this step on. What runs goes on; what waits is judged by them. They are not
/// stored: a start begins with those of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reconfigure(pub Box<Settings>);

command! {
    write "reconfigure" Reconfigure => (), All, |it, world| {
        world.insert_resource(*it.0);
        react(world, &SettingsChanged);
        Answer::Stored(())
    }
}

/// Reads the settings in force; a rehearsal runs with them.
#[derive(Clone, Copy, Debug)]
pub struct ReadSettings;

command! {
    read "read_settings" ReadSettings => Box<Settings>, Any, |_, world|
        Answer::read(Box::new(world.resource::<Settings>().clone()))
}

/// What bounds triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerSettings {
    /// Seconds between two fires of a trigger that does not say.
    pub default_cooldown_secs: u32,
    /// Turns that triggers and messages of agents may begin one after the other.
    pub max_depth: u8,
    /// Fires of one trigger, and messages of one agent to others, in a minute from such turns.
    pub cascade_per_minute: u32,
}

impl Default for TriggerSettings {
    fn default() -> Self {
        Self { default_cooldown_secs: 5, max_depth: 8, cascade_per_minute: 60 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::alias::ModelName;

    #[test]
    fn an_alias_means_its_model_and_only_its_providers_endpoint() {
        let choice = |provider: &str, model: &str| ModelChoice {
            provider: provider.into(),
            model: model.into(),
            ..ModelChoice::default()
        };
        let mut aliases = Aliases::default();
        aliases.set("quick", ModelName { provider: "groq".into(), model: "llama".into() });
        aliases.set("small", ModelName { provider: "openai".into(), model: "mini".into() });
        let place = Some(Box::from("http://h"));
        let settings = Settings {
            default_model: ModelChoice { base_url: place.clone(), ..choice("openai", "gpt") },
            aliases: Arc::new(aliases),
            ..Settings::default()
        };
        assert_eq!(settings.resolve(&choice("", "quick")), choice("groq", "llama"));
        assert_eq!(
            settings.resolve(&choice("", "small")),
            ModelChoice { base_url: place.clone(), ..choice("openai", "mini") }
        );
        assert_eq!(
            settings.resolve(&choice("openai", "quick")),
            ModelChoice { base_url: place.clone(), ..choice("openai", "quick") },
            "not an alias of that provider"
        );
        assert_eq!(settings.resolve(&choice("", "")), ModelChoice { base_url: place, ..choice("openai", "gpt") });
        assert_eq!(settings.provider_of(&choice("", "quick")), "groq");
    }

    #[test]
    fn the_default_providers_name_means_its_endpoint_and_key() {
        let named = ModelChoice { provider: "openai".into(), model: "gpt".into(), ..ModelChoice::default() };
        let default_model =
            ModelChoice { base_url: Some("http://h".into()), api_key_env: Some("KEY".into()), ..named.clone() };
        let settings = Settings { default_model: default_model.clone(), ..Settings::default() };
        assert_eq!(settings.resolve(&named), default_model);
        let other = ModelChoice { provider: "groq".into(), ..named.clone() };
        assert_eq!(settings.resolve(&other), other);
        for own in [
            ModelChoice { base_url: Some("http://own".into()), ..named.clone() },
            ModelChoice { api_key_env: Some("OWN".into()), ..named },
        ] {
            assert_eq!(settings.resolve(&own), own, "the default's key goes to no other endpoint");
        }
    }

    #[test]
    fn a_context_is_the_models_else_the_providers() {
        let mut settings = Settings::default();
        settings.context_tokens.insert("p".into(), 100);
        settings.model_context_tokens.entry("p".into()).or_default().insert("large".into(), 900);
        assert_eq!(settings.context_tokens_of("p", "large"), 900);
        assert_eq!(settings.context_tokens_of("p", "other"), 100);
        assert_eq!(settings.context_tokens_of("p", ""), 900);
        assert_eq!(settings.context_tokens_of("q", "large"), CONTEXT_TOKENS_DEFAULT);
    }
}
