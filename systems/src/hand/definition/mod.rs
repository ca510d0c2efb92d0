//! HAND.toml: what a hand is (spec 2, Hands). Pure functions over text. Unknown keys are allowed; known ones are typed, and an
//! error names the key.

mod language;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use agentsvc_components::Refusal;
use serde::Deserialize;
use serde_json::Value;

pub use language::preferred;
pub use read::parse;

/// A hand as its HAND.toml says it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HandDefinition {
    /// Its id: letters, digits, `-` and `_`.
    pub id: String,
    /// Version of the author.
    pub version: String,
    /// Its name; the id when there is none.
    pub name: String,
    /// Description in a sentence.
    pub description: String,
    /// One of [`CATEGORIES`].
    pub category: String,
    /// An emoji, or `lucide:<name>`.
    pub icon: String,
    /// The tools that its agents get.
    pub tools: Vec<String>,
    /// The skills that its agents may have at most; empty for no bound.
    pub skills: Vec<String>,
    /// The MCP servers that its agents may have at most; empty for no bound.
    pub mcp_servers: Vec<String>,
    /// The plugins that its agents may have at most; empty for no bound.
    pub allowed_plugins: Vec<String>,
    /// Free words to find it by.
    pub tags: Vec<String>,
    /// What the machine must have.
    pub requires: Vec<Requirement>,
    /// What the user may choose.
    pub settings: Vec<Setting>,
    /// Its agents, by role; at least one.
    #[serde(skip)]
    pub roles: Vec<Role>,
    /// What its instances show.
    pub dashboard: Dashboard,
    /// Words that lead to it.
    pub routing: Routing,
    /// Further facts, for display.
    pub metadata: BTreeMap<String, Value>,
    /// Translations, by language.
    pub i18n: BTreeMap<String, Translation>,
}

/// The categories of hands; anything else counts as `other`.
pub const CATEGORIES: &[&str] =
    &["content", "security", "productivity", "development", "communication", "data", "finance", "other"];

/// One agent of a hand, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    /// The role; `main` when the hand has one agent in `[agent]`.
    pub name: String,
    /// The table of the agent, without the keys that are read here.
    pub table: toml::Table,
    /// Does the user talk with it?
    pub coordinator: bool,
    /// When others ask it, in a sentence.
    pub invoke_hint: String,
    /// The agent type that it is laid over.
    pub base: Option<String>,
}

agentsvc_components::enum_words! {
    /// Kind of a requirement.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RequirementKind [as_str] {
        /// A program is found.
        #[default]
        Binary = "binary",
        /// An environment variable of the daemon is set.
        EnvVar = "env_var",
        /// The same, for a key.
        ApiKey = "api_key",
        /// One of several variables is set; `check_value` has commas between them.
        AnyEnvVar = "any_env_var",
        /// An MCP server is there.
        Integration = "integration",
    }
}

/// What the machine must have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// Its key.
    pub key: String,
    /// What it is called.
    pub label: String,
    /// What is looked for.
    pub requirement_type: RequirementKind,
    /// The name that is looked for; the key when there is none.
    pub check_value: String,
    /// Description in a sentence.
    pub description: String,
    /// Does the hand do without it?
    pub optional: bool,
    /// How it is had: commands by system, addresses and steps, as written.
    pub install: BTreeMap<String, Value>,
}

impl Requirement {
    /// The name that is looked for.
    #[must_use]
    pub fn wanted(&self) -> &str {
        if self.check_value.is_empty() { &self.key } else { &self.check_value }
    }
}

agentsvc_components::enum_words! {
    /// Kind of a setting.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SettingKind [as_str] {
        /// One of its options.
        Select = "select",
        /// Any text.
        #[default]
        Text = "text",
        /// `true` or `false`.
        Toggle = "toggle",
    }
}

/// What the user may choose.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Its key.
    pub key: String,
    /// What it is called.
    pub label: String,
    /// Description in a sentence.
    pub description: String,
    /// What its values are.
    pub setting_type: SettingKind,
    /// Its value until the user chooses.
    #[serde(deserialize_with = "read::scalar")]
    pub default: String,
    /// The environment variable of commands that has its value.
    pub env_var: Option<String>,
    /// What a select offers.
    pub options: Vec<SettingOption>,
}

impl Setting {
    /// Is its value a secret, which only commands get?
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.setting_type == SettingKind::Text && self.env_var.as_ref().is_some_and(|name| !name.is_empty())
    }
}

/// What a select offers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SettingOption {
    /// The value.
    #[serde(deserialize_with = "read::scalar")]
    pub value: String,
    /// What it is called.
    pub label: String,
    /// A variable of the daemon that commands get when it is chosen.
    pub provider_env: Option<String>,
    /// The program that it needs.
    pub binary: Option<String>,
}

/// What instances of a hand show.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Dashboard {
    /// Numbers and texts, from the memory of the coordinator.
    pub metrics: Vec<DashboardMetric>,
}

/// One number or text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DashboardMetric {
    /// What it is called.
    pub label: String,
    /// Its key in the memory of the coordinator.
    pub memory_key: String,
    /// `number`, `duration`, `bytes`, `percentage`, `text` or `date`.
    pub format: String,
}

/// Words that lead to a hand.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Routing {
    /// Strong ones.
    pub aliases: Vec<String>,
    /// Weak ones.
    pub weak_aliases: Vec<String>,
}

/// The texts of a hand in another language.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Translation {
    /// Its name.
    pub name: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its category.
    pub category: Option<String>,
    /// Its tags.
    pub tags: Option<Vec<String>>,
    /// Its agents, by role.
    pub agents: BTreeMap<String, TranslatedAgent>,
    /// Its settings, by key.
    pub settings: BTreeMap<String, TranslatedSetting>,
}

/// The texts of an agent in another language.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TranslatedAgent {
    /// Its name.
    pub name: Option<String>,
    /// Its description.
    pub description: Option<String>,
}

/// The texts of a setting in another language.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TranslatedSetting {
    /// What it is called.
    pub label: Option<String>,
    /// Its description.
    pub description: Option<String>,
}

impl Role {
    /// The value of a key of its table, as written.
    #[must_use]
    pub fn written(&self, key: &str) -> Option<Value> {
        serde_json::to_value(self.table.get(key)?).ok()
    }

    /// A text of the agent, at top level or under `[model]`; empty when there is none.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        let below = self.table.get("model").and_then(toml::Value::as_table).and_then(|model| model.get(key));
        self.table.get(key).and_then(toml::Value::as_str).or_else(|| below?.as_str()).unwrap_or_default()
    }
}

impl HandDefinition {
    /// Index of the coordinator: the marked role, else `main`, else the first.
    #[must_use]
    pub fn coordinator(&self) -> usize {
        let marked = self.roles.iter().position(|role| role.coordinator);
        marked.or_else(|| self.roles.iter().position(|role| role.name == "main")).unwrap_or(0)
    }

    /// The setting of this key.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// Puts the texts of a language in place of those in English.
    pub fn translate(&mut self, language: &str) {
        let Some(translation) = self.i18n.get(language).cloned() else { return };
        let put = |place: &mut String, text: Option<String>| {
            if let Some(text) = text {
                *place = text;
            }
        };
        put(&mut self.name, translation.name);
        put(&mut self.description, translation.description);
        put(&mut self.category, translation.category);
        self.tags = translation.tags.unwrap_or_else(|| std::mem::take(&mut self.tags));
        for setting in &mut self.settings {
            if let Some(texts) = translation.settings.get(&setting.key).cloned() {
                put(&mut setting.label, texts.label);
                put(&mut setting.description, texts.description);
            }
        }
        for role in &mut self.roles {
            if let Some(texts) = translation.agents.get(&role.name).cloned() {
                for (key, text) in [("name", texts.name), ("description", texts.description)] {
                    if let Some(text) = text {
                        role.table.insert(key.to_owned(), text.into());
                    }
                }
            }
        }
    }
}

/// Ids that routes have for themselves.
const RESERVED_IDS: &[&str] = &["active", "install", "instances", "registry", "reload"];

/// Is this the id of a hand?
///
/// # Errors
/// What it must be.
pub fn check_id(id: &str) -> Result<(), Refusal> {
    let well_formed = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let starts = id.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if RESERVED_IDS.contains(&id) {
        return Err(Refusal::bad_field("id", format!("id: {id:?} is reserved; choose another id")));
    }
    if well_formed && starts && id.len() <= super::limits::HAND_ID_BYTES_MAX {
        Ok(())
    } else {
        let most = super::limits::HAND_ID_BYTES_MAX;
        Err(Refusal::bad_field("id", format!("id: must be letters, digits, `-` and `_`, at most {most} bytes")))
    }
}
