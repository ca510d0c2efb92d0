//! The agents of a hand: what they are, what they may do, and when they act by themselves.

use std::collections::BTreeMap;

use agentsvc_systems::hand::definition::{HandDefinition, Role, Setting};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An agent of a hand.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct HandAgent {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) coordinator: bool,
    /// When other agents of the hand ask it.
    pub(crate) invoke_hint: String,
    /// Provider of its model; `default` for the daemon's.
    pub(crate) provider: String,
    /// Its model; `default` for the daemon's.
    pub(crate) model: String,
    /// Headings of the prompt.
    pub(crate) steps: Vec<String>,
    pub(crate) system_prompt: String,
    /// Its tools: those of the hand, or its own if the hand has none.
    pub(crate) tools: Vec<String>,
    /// Agent type that it is laid over: what it does not say itself is that type's.
    pub(crate) base: Option<String>,
    /// `[capabilities]` of its manifest, as written; without them it gets what the tools of the hand need.
    pub(crate) capabilities: Value,
    /// What makes it act without a message: `schedule` and `autonomous`, as written. Each time is a paid turn.
    pub(crate) wakes: BTreeMap<String, Value>,
}

/// Headings that are shown of a prompt.
const STEPS_MAX: usize = 50;

impl HandAgent {
    fn of(hand: &HandDefinition, role: &Role, coordinator: bool) -> Self {
        let or_default = |text: &str| if text.is_empty() { "default" } else { text }.to_owned();
        let system_prompt = role.text("system_prompt").to_owned();
        let headings = system_prompt.lines().filter_map(|line| line.strip_prefix("## "));
        Self {
            role: role.name.clone(),
            name: if role.text("name").is_empty() { role.name.clone() } else { role.text("name").to_owned() },
            description: role.text("description").to_owned(),
            coordinator,
            invoke_hint: role.invoke_hint.clone(),
            provider: or_default(role.text("provider")),
            model: or_default(role.text("model")),
            steps: headings.take(STEPS_MAX).map(|line| line.trim().to_owned()).collect(),
            system_prompt,
            tools: if hand.tools.is_empty() { own_tools(role) } else { hand.tools.clone() },
            base: role.base.clone(),
            capabilities: role.written("capabilities").unwrap_or_default(),
            wakes: wakes(role),
        }
    }

    /// The agents of a hand.
    pub(crate) fn all(hand: &HandDefinition) -> Vec<Self> {
        let first = hand.coordinator();
        hand.roles.iter().enumerate().map(|(at, role)| Self::of(hand, role, at == first)).collect()
    }
}

/// The tools that a role's own manifest names.
fn own_tools(role: &Role) -> Vec<String> {
    let own = role.written("tools").or_else(|| Some(role.written("capabilities")?.get("tools")?.clone()));
    let own = own.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    own.iter().filter_map(|tool| tool.as_str().map(str::to_owned)).collect()
}

/// What makes an agent of this role act by itself.
fn wakes(role: &Role) -> BTreeMap<String, Value> {
    let keys = ["schedule", "autonomous"].into_iter();
    let written = keys.filter_map(|key| Some((key.to_owned(), role.written(key)?)));
    written.filter(|(_, value)| value != "reactive").collect()
}

/// The variables of the daemon that a hand's settings name, sorted.
pub(crate) fn environment(hand: &HandDefinition) -> Vec<String> {
    let of = |setting: &Setting| {
        let options = setting.options.iter().filter_map(|option| option.provider_env.clone());
        setting.env_var.clone().into_iter().chain(options).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = hand.settings.iter().flat_map(of).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
