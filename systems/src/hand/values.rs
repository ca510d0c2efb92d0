//! The values of settings: what a client may choose, what counts, and what agents are told of it. Pure functions.

use std::collections::BTreeMap;

use agentsvc_components::Refusal;
use agentsvc_components::hand::{HandValue, HandVariable};

use super::definition::{HandDefinition, Setting, SettingKind};
use super::limits::HAND_VALUE_BYTES_MAX;

/// Values by key; those of secrets are sealed.
pub type Config = BTreeMap<Box<str>, HandValue>;

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// Refuses a value that the setting `key` cannot have. A key that the hand does not have is kept, and does nothing.
///
/// # Errors
/// 400 that names the key.
pub fn check(hand: &HandDefinition, key: &str, value: &str) -> Result<(), Refusal> {
    let bad = |why: String| Err(Refusal::bad_field(format!("config.{key}"), format!("config.{key}: {why}")));
    if key.is_empty() || key.len() > super::limits::HAND_KEY_BYTES_MAX {
        return bad("not a valid key".to_owned());
    }
    if value.len() > HAND_VALUE_BYTES_MAX || value.contains('\0') {
        return bad(format!("must be text of at most {HAND_VALUE_BYTES_MAX} bytes"));
    }
    let Some(setting) = hand.setting(key) else { return Ok(()) };
    match setting.setting_type {
        SettingKind::Select if setting.options.iter().all(|option| option.value != value) => {
            let known: Vec<&str> = setting.options.iter().map(|option| &*option.value).collect();
            bad(format!("must be one of {}", known.join(", ")))
        }
        SettingKind::Toggle if !["true", "false"].contains(&value) => bad("must be true or false".to_owned()),
        _ => Ok(()),
    }
}

/// The value that counts for a setting: the chosen one, where it still can be, else the default.
fn effective<'v>(setting: &'v Setting, config: &'v Config) -> &'v str {
    let is_option = |text: &str| {
        setting.setting_type != SettingKind::Select || setting.options.iter().any(|option| option.value == text)
    };
    let chosen = config.get(&*setting.key).map(|value| &*value.text);
    chosen.filter(|text| is_option(text)).unwrap_or(&setting.default)
}

/// The values that count, by key; secrets are hidden.
#[must_use]
pub fn effective_values(hand: &HandDefinition, config: &Config) -> BTreeMap<String, String> {
    let shown = |setting: &Setting| {
        let value = effective(setting, config);
        if setting.is_secret() && !value.is_empty() { HIDDEN.to_owned() } else { value.to_owned() }
    };
    hand.settings.iter().map(|setting| (setting.key.clone(), shown(setting))).collect()
}

/// The values that were chosen, of settings that the hand has and of others; secrets are hidden.
#[must_use]
pub fn chosen_values(hand: &HandDefinition, config: &Config) -> [BTreeMap<String, String>; 2] {
    let mut both = [BTreeMap::new(), BTreeMap::new()];
    for (key, value) in config {
        let is_secret = value.is_sealed || hand.setting(key).is_some_and(Setting::is_secret);
        let text = if is_secret { HIDDEN } else { &*value.text };
        let place = usize::from(hand.setting(key).is_none());
        both[place].insert(key.to_string(), text.to_owned());
    }
    both
}

/// The variables that the commands of an instance get: those of the options that count, and those of texts.
#[must_use]
pub fn environment(hand: &HandDefinition, config: &Config) -> Vec<HandVariable> {
    let mut all: Vec<HandVariable> = Vec::new();
    let mut add = |name: &str, sealed: Option<Box<str>>| {
        if !name.is_empty() && all.iter().all(|other| &*other.name != name) {
            all.push(HandVariable { name: name.into(), sealed });
        }
    };
    for setting in &hand.settings {
        let value = effective(setting, config);
        let options = setting.options.iter().filter(|option| option.value == value);
        options.filter_map(|option| option.provider_env.as_deref()).for_each(|name| add(name, None));
        if let Some(name) = setting.env_var.as_deref() {
            let stored = config.get(&*setting.key).filter(|value| value.is_sealed && !value.text.is_empty());
            add(name, stored.map(|value| value.text.clone()));
        }
    }
    all
}

/// The section of prompts that says the settings; empty for a hand without any.
#[must_use]
pub fn section(hand: &HandDefinition, config: &Config) -> String {
    if hand.settings.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n\n## User Configuration\n");
    for setting in &hand.settings {
        let value = effective(setting, config);
        let label = if setting.label.is_empty() { &setting.key } else { &setting.label };
        let option = setting.options.iter().find(|option| option.value == value);
        let shown = match (setting.is_secret(), option) {
            (true, _) => format!("in the environment variable {}", setting.env_var.as_deref().unwrap_or_default()),
            (_, Some(option)) if !option.label.is_empty() => format!("{} ({value})", option.label),
            _ if value.is_empty() => "not set".to_owned(),
            _ => value.to_owned(),
        };
        text.push_str(&format!("- {label} (`{}`): {shown}\n", setting.key));
    }
    text
}
