//! The bodies of hands.

use std::collections::BTreeMap;

use agentsvc_systems::hand::HandView;
use agentsvc_systems::hand::definition::{HandDefinition, Requirement, Setting};
use agentsvc_systems::hand::values::chosen_values;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::agents::HandAgent;
use super::hands::{DepResult, HandOrigin, HandSummary, Hands, StoredHand};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// A hand in a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HandItem {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    /// `content`, `security`, `productivity`, `development`, `communication`, `data`, `finance` or `other`.
    pub(crate) category: String,
    /// An emoji, or `lucide:<name>`.
    pub(crate) icon: String,
    pub(crate) tags: Vec<String>,
    /// Tools of its agents.
    pub(crate) tools: Vec<String>,
    /// Tools that do not exist in this release or configuration.
    pub(crate) missing_tools: Vec<String>,
    /// Whether all requirements that are not optional are met.
    pub(crate) requirements_met: bool,
    /// Whether it has instances.
    pub(crate) active: bool,
    /// Number of its instances.
    pub(crate) instance_count: usize,
    /// Whether it has instances, and requirements or tools are missing.
    pub(crate) degraded: bool,
    /// Whether it is neither bundled nor from the registry.
    pub(crate) is_custom: bool,
    /// Where it came from: `bundled`, `registry` or `custom`.
    pub(crate) origin: &'static str,
    pub(crate) requirements: Vec<RequirementItem>,
    /// Number of metrics of the dashboard.
    pub(crate) dashboard_metrics: usize,
    pub(crate) has_settings: bool,
    pub(crate) settings_count: usize,
    pub(crate) agent_count: usize,
    /// Further facts as written, for display.
    pub(crate) metadata: BTreeMap<String, Value>,
    /// Translations of name, description and category, by language.
    pub(crate) i18n: BTreeMap<String, BTreeMap<String, String>>,
}

/// A requirement.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RequirementItem {
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) satisfied: bool,
    pub(crate) optional: bool,
    /// `binary`, `env_var`, `api_key`, `any_env_var` or `integration`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The name that is looked for; names of `any_env_var` have commas between them.
    pub(crate) check_value: String,
    pub(crate) description: String,
    /// Commands by system, addresses and steps, as written.
    pub(crate) install: BTreeMap<String, Value>,
}

impl RequirementItem {
    fn of(requirement: &Requirement, satisfied: bool) -> Self {
        let Requirement { key, label, description, optional, install, .. } = requirement.clone();
        let (kind, check_value) = (requirement.requirement_type.as_str(), requirement.wanted().to_owned());
        Self { key, label, satisfied, optional, kind, check_value, description, install }
    }
}

impl HandItem {
    /// `instances`: how many it has. `servers`: names of MCP servers.
    pub(crate) fn of(hand: &HandSummary, hands: &dyn Hands, instances: usize, servers: &[String]) -> Self {
        let it = &hand.definition;
        let met = hands.met(&it.requires, servers);
        let requirements: Vec<RequirementItem> =
            std::iter::zip(&it.requires, met).map(|(requirement, met)| RequirementItem::of(requirement, met)).collect();
        let requirements_met = requirements.iter().all(|it| it.satisfied || it.optional);
        let missing_tools = hands.missing_tools(&it.tools);
        Self {
            id: it.id.clone(),
            name: it.name.clone(),
            version: it.version.clone(),
            description: it.description.clone(),
            category: it.category.clone(),
            icon: it.icon.clone(),
            tags: it.tags.clone(),
            tools: it.tools.clone(),
            active: instances > 0,
            instance_count: instances,
            degraded: instances > 0 && !(requirements_met && missing_tools.is_empty()),
            missing_tools,
            requirements_met,
            is_custom: hand.origin == HandOrigin::Custom,
            origin: hand.origin.as_str(),
            requirements,
            dashboard_metrics: hand.metrics,
            has_settings: hand.settings > 0,
            settings_count: hand.settings,
            agent_count: hand.agents,
            metadata: it.metadata.clone(),
            i18n: it.i18n.iter().map(|(language, texts)| (language.clone(), translation(texts))).collect(),
        }
    }
}

fn translation(texts: &agentsvc_systems::hand::definition::Translation) -> BTreeMap<String, String> {
    let all = [("name", &texts.name), ("description", &texts.description), ("category", &texts.category)];
    all.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.clone()?))).collect()
}

/// All hands.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HandList {
    pub(crate) hands: Vec<HandItem>,
    pub(crate) total: usize,
}

/// A hand that was installed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstalledHand {
    #[serde(flatten)]
    pub(crate) item: HandItem,
    /// What the scan warns of: `file:line: rule: excerpt`.
    pub(crate) warnings: Vec<String>,
}

/// A hand of the registry.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RegistryHand {
    /// Id to install it by.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) category: String,
    pub(crate) tags: Vec<String>,
    /// Whether a hand of this id is installed.
    pub(crate) is_installed: bool,
}

impl RegistryHand {
    pub(crate) fn of(hand: StoredHand, is_installed: bool) -> Self {
        let it = hand.definition;
        let (id, name, version, description) = (it.id, it.name, it.version, it.description);
        Self { id, name, version, description, category: it.category, tags: it.tags, is_installed }
    }
}

/// The hands of the registry.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RegistryHands {
    pub(crate) hands: Vec<RegistryHand>,
    pub(crate) total: usize,
}

/// A hand with all of its parts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HandDetail {
    #[serde(flatten)]
    pub(crate) item: HandItem,
    /// Operating system of the daemon: `linux`, `macos` or `windows`.
    pub(crate) server_platform: &'static str,
    /// Role of the coordinator: the agent that users talk with.
    pub(crate) coordinator_role: String,
    /// The coordinator.
    pub(crate) agent: HandAgent,
    pub(crate) agents: Vec<HandAgent>,
    pub(crate) dashboard: Vec<MetricItem>,
    pub(crate) settings: Vec<SettingItem>,
    /// Variables of the daemon's environment that commands of its agents may get, by its settings.
    pub(crate) environment: Vec<String>,
    pub(crate) skills: Vec<String>,
    pub(crate) mcp_servers: Vec<String>,
    pub(crate) allowed_plugins: Vec<String>,
    pub(crate) routing: RoutingItem,
    /// Whether it has a SKILL.md.
    pub(crate) has_skill: bool,
}

/// Words that lead to a hand.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RoutingItem {
    pub(crate) aliases: Vec<String>,
    pub(crate) weak_aliases: Vec<String>,
}

/// A metric of the dashboard.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MetricItem {
    pub(crate) label: String,
    /// Key in the memory of the coordinator.
    pub(crate) memory_key: String,
    /// `number`, `duration`, `bytes`, `percentage`, `text` or `date`.
    pub(crate) format: String,
}

/// A setting.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingItem {
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) description: String,
    /// `select`, `text` or `toggle`.
    pub(crate) setting_type: &'static str,
    pub(crate) default: String,
    /// Environment variable of commands that has the value; the value is a secret then.
    pub(crate) env_var: Option<String>,
    pub(crate) options: Vec<OptionItem>,
}

/// An option of a select.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OptionItem {
    pub(crate) value: String,
    pub(crate) label: String,
    /// Environment variable of the daemon that commands get.
    pub(crate) provider_env: Option<String>,
    /// Program that it needs.
    pub(crate) binary: Option<String>,
    /// Whether the daemon has the variable and the program.
    pub(crate) available: bool,
}

impl SettingItem {
    pub(crate) fn of(setting: &Setting, hands: &dyn Hands) -> Self {
        let is_set = |name: &Option<String>| name.as_deref().is_none_or(has_variable);
        let is_found = |name: &Option<String>| name.as_deref().is_none_or(|name| hands.has_program(name));
        let options = setting.options.iter().map(|option| OptionItem {
            value: option.value.clone(),
            label: option.label.clone(),
            provider_env: option.provider_env.clone(),
            binary: option.binary.clone(),
            available: is_set(&option.provider_env) && is_found(&option.binary),
        });
        Self {
            key: setting.key.clone(),
            label: if setting.label.is_empty() { setting.key.clone() } else { setting.label.clone() },
            description: setting.description.clone(),
            setting_type: setting.setting_type.as_str(),
            default: if setting.is_secret() { String::new() } else { setting.default.clone() },
            env_var: setting.env_var.clone(),
            options: options.collect(),
        }
    }
}

/// Is this variable of the daemon set?
fn has_variable(name: &str) -> bool {
    name.is_empty() || std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

shape! {
    /// An instance of a hand.
    pub(crate) struct InstanceItem from view: HandView {
        let (status, error) = (view.status(), view.error());
        let HandView { id, instance } = view;
        let coordinator = instance.coordinator().cloned();
        // Without the definition each value is known by itself.
        let [_, config] = chosen_values(&HandDefinition::default(), &instance.config);
    } {
        pub(crate) instance_id: Uuid = id.0,
        pub(crate) hand_id: Box<str> = instance.hand,
        /// Version of the hand that was activated.
        pub(crate) version: Box<str> = instance.version,
        /// Number of the instance among those of the hand, from 1.
        pub(crate) number: u32 = instance.number,
        /// `running`, `paused` or `error`.
        pub(crate) status: &'static str = status,
        /// Why it does not do its work; null otherwise.
        pub(crate) error: Option<String> = error,
        /// The coordinator.
        pub(crate) agent_id: Option<Uuid> = coordinator.as_ref().map(|member| member.agent.0),
        /// Agents by role.
        pub(crate) agent_ids: BTreeMap<Box<str>, Uuid> = instance.members.iter().map(|member| (member.role.clone(), member.agent.0)).collect(),
        /// Name of the coordinator.
        pub(crate) agent_name: Option<Box<str>> = coordinator.as_ref().map(|member| member.name.clone()),
        pub(crate) coordinator_role: Option<Box<str>> = coordinator.map(|member| member.role),
        /// Values of settings that were chosen; secrets as `***`.
        pub(crate) config: BTreeMap<String, String> = config,
        pub(crate) activated_at: Moment = Moment(instance.activated_at),
        pub(crate) updated_at: Moment = Moment(instance.updated_at),
    }
}

/// All instances.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstanceList {
    pub(crate) instances: Vec<InstanceItem>,
    pub(crate) total: usize,
}

/// A hand to install: either its texts or a source.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct InstallBody {
    /// Text of HAND.toml.
    pub(crate) toml_content: Option<String>,
    /// Text of SKILL.md.
    pub(crate) skill_content: Option<String>,
    /// Absolute path of a directory with a HAND.toml, or the name of a hand of the registry.
    pub(crate) source: Option<String>,
}

/// How to activate a hand.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ActivateBody {
    /// Values of settings: strings, numbers or booleans.
    pub(crate) config: BTreeMap<String, Value>,
}

/// What was done.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Uninstalled {
    /// `uninstalled`
    pub(crate) status: &'static str,
    pub(crate) hand_id: String,
}

/// What a reload found.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReloadedItem {
    /// Hands that were not there before.
    pub(crate) added: usize,
    /// Hands that changed.
    pub(crate) updated: usize,
    /// Hands that are gone.
    pub(crate) removed: usize,
    pub(crate) total: usize,
    /// Folders that could not be read, and why.
    pub(crate) failed: BTreeMap<String, String>,
}

/// What came of the requirements of a hand.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DepsItem {
    pub(crate) requirements_met: bool,
    pub(crate) results: Vec<DepItem>,
}

/// What came of one requirement.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DepItem {
    pub(crate) key: String,
    /// `already_installed`, `installed`, `skipped`, `no_command`, `error` or `timeout`.
    pub(crate) status: &'static str,
    /// Command that installs it on this machine; null if there is none.
    pub(crate) command: Option<String>,
    pub(crate) message: String,
}

impl From<DepResult> for DepItem {
    fn from(result: DepResult) -> Self {
        let DepResult { key, status, command, message } = result;
        Self { key, status, command, message }
    }
}
