//! From the agents of a HAND.toml to manifests. Pure functions over text.

use std::collections::BTreeMap;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Capabilities, Manifest};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::definition::{HandDefinition, Role, Routing};
use crate::manifest;

/// An agent that is to be part of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewMember {
    /// Its role.
    pub role: Box<str>,
    /// Its name in the first instance of the hand.
    pub name: Box<str>,
    /// When others ask it.
    pub invoke_hint: Box<str>,
    /// Its manifest, without what the instance adds to its prompt.
    pub manifest: Manifest,
    /// The text of the manifest.
    pub text: String,
}

/// What is laid around the agents of a hand.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The section of prompts that says the settings.
    pub settings: String,
    /// The text of SKILL.md, by role; that of all is under the empty role.
    pub skills: BTreeMap<String, String>,
    /// The manifests of agent types that agents are laid over, by name.
    pub bases: BTreeMap<String, String>,
    /// What the tools of the hand need. Agents that do not say what they may do get it.
    pub needs: Capabilities,
}

/// Tools that agents have to reach each other.
const TEAM_TOOL: &str = "agent_send";

/// The agents of a hand, ready to be spawned.
///
/// # Errors
/// 400 that names the key of the HAND.toml.
pub fn members(hand: &HandDefinition, around: &Around) -> Result<Vec<NewMember>, Refusal> {
    let mut all: Vec<NewMember> = Vec::with_capacity(hand.roles.len());
    for role in &hand.roles {
        let new = member(hand, role, around)?;
        if all.iter().any(|other| other.name == new.name) {
            let field = format!("agents.{}.name", role.name);
            return Err(Refusal::bad_field(
                &field,
                format!("{field}: another agent of the hand has the name {:?}", new.name),
            ));
        }
        all.push(new);
    }
    Ok(all)
}

fn member(hand: &HandDefinition, role: &Role, around: &Around) -> Result<NewMember, Refusal> {
    let field = format!("agents.{}", role.name);
    let bad = |why: String| Refusal::bad_field(&field, format!("{field}: {why}"));
    let mut table = role.table.clone();
    nest_model(&mut table);
    if let Some(base) = &role.base {
        let text = around.bases.get(base).ok_or_else(|| {
            let field = format!("{field}.base");
            Refusal::bad_field(&field, format!("{field}: no agent type is called {base:?}"))
        })?;
        let mut over: Table =
            toml::from_str(text).map_err(|error| bad(format!("base {base:?}: {}", error.message())))?;
        over.remove("name");
        nest_model(&mut over);
        lay(&mut over, table);
        table = over;
    }
    daemon_defaults(&mut table);
    let own_name = match table.get("name") {
        Some(Value::String(name)) if !name.trim().is_empty() => name.trim(),
        _ => &role.name,
    };
    let name = format!("{}:{own_name}", hand.id);
    table.insert("name".to_owned(), name.clone().into());
    set_tools(hand, &mut table);
    for (key, bound) in
        [("skills", &hand.skills), ("mcp_servers", &hand.mcp_servers), ("allowed_plugins", &hand.allowed_plugins)]
    {
        narrow(&mut table, key, bound);
    }
    if role.coordinator || hand.roles.len() == 1 {
        add_aliases(&hand.routing, &mut table);
    }
    let text = toml::to_string(&table).map_err(|error| bad(error.to_string()))?;
    let mut read = manifest::parse(&text).map_err(|error| bad(error.to_string()))?.manifest;
    grant(&mut read.capabilities, &around.needs);
    read.tags.extend([format!("hand:{}", hand.id).into(), format!("hand_role:{}", role.name).into()]);
    let prompt = format!("{}{}{}", read.system_prompt, around.settings, knowledge(role, &around.skills));
    read.system_prompt = prompt.into();
    if read.bytes() > limit::MANIFEST_BYTES_MAX {
        return Err(bad(format!("the agent's texts are longer than {} bytes", limit::MANIFEST_BYTES_MAX)));
    }
    let (role, invoke_hint) = (role.name.as_str().into(), role.invoke_hint.as_str().into());
    Ok(NewMember { role, name: name.into(), invoke_hint, manifest: read, text })
}

/// The words that lead to a hand lead to the agent that people talk with.
fn add_aliases(of: &Routing, table: &mut Table) {
    fn within<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
        table.entry(key).or_insert_with(|| Value::Table(Table::new())).as_table_mut()
    }
    let both = [("aliases", &of.aliases), ("weak_aliases", &of.weak_aliases)];
    for (key, words) in both.into_iter().filter(|(_, words)| !words.is_empty()) {
        let routing = within(table, "metadata").and_then(|metadata| within(metadata, "routing"));
        let own = routing.map(|it| it.entry(key).or_insert_with(|| Value::Array(Vec::new())));
        if let Some(own) = own.and_then(Value::as_array_mut) {
            own.extend(words.iter().map(|word| Value::String(word.clone())));
        }
    }
}

/// What a flat agent says of its model belongs into `[model]`.
fn nest_model(table: &mut Table) {
    if table.get("model").is_some_and(Value::is_table) {
        return;
    }
    let keys = ["provider", "model", "max_tokens", "temperature", "base_url", "api_key_env"];
    let model: Table = keys.into_iter().filter_map(|key| table.remove_entry(key)).collect();
    if !model.is_empty() {
        table.insert("model".to_owned(), model.into());
    }
}

/// `default` names the daemon's own provider and model.
fn daemon_defaults(table: &mut Table) {
    let Some(model) = table.get_mut("model").and_then(Value::as_table_mut) else { return };
    model.retain(|key, value| !["provider", "model"].contains(&key) || value.as_str() != Some("default"));
}

/// Lays `upper` over `lower`: tables key by key, anything else in its place.
fn lay(lower: &mut Table, upper: Table) {
    for (key, value) in upper {
        match (lower.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay(below, above),
            (_, value) => drop(lower.insert(key, value)),
        }
    }
}

/// The tools of the hand in place of the agent's own, and the way to the others of the team.
fn set_tools(hand: &HandDefinition, table: &mut Table) {
    let own = |table: &Table| {
        let below = table.get("capabilities").and_then(|own| own.get("tools"));
        table.get("tools").or(below).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut tools = if hand.tools.is_empty() {
        own(table)
    } else {
        hand.tools.iter().map(|tool| Value::String(tool.clone())).collect()
    };
    if hand.roles.len() > 1 && tools.iter().all(|tool| tool.as_str() != Some(TEAM_TOOL)) {
        tools.push(TEAM_TOOL.into());
    }
    if let Some(capabilities) = table.get_mut("capabilities").and_then(Value::as_table_mut) {
        capabilities.remove("tools");
    }
    table.insert("tools".to_owned(), Value::Array(tools));
}

/// A list of the agent within that of the hand. An agent without one has that of the hand, and a hand without one bounds none.
/// When nothing of the agent's list is within the hand's, the agent has none: an empty list of skills would mean all of them.
fn narrow(table: &mut Table, key: &str, bound: &[String]) {
    if bound.is_empty() {
        return;
    }
    let own = table.get(key).and_then(Value::as_array).filter(|own| !own.is_empty());
    let is_within = |name: &&String| own.is_none_or(|own| own.iter().any(|item| item.as_str() == Some(name.as_str())));
    let list: Vec<Value> = bound.iter().filter(is_within).map(|name| Value::String(name.clone())).collect();
    if list.is_empty() && key == "skills" {
        table.insert("skills_disabled".to_owned(), true.into());
    }
    table.insert(key.to_owned(), list.into());
}

/// Grants what tools need where the agent does not say what it may do.
fn grant(own: &mut Capabilities, needs: &Capabilities) {
    for (have, need) in [
        (&mut own.network, &needs.network),
        (&mut own.memory_read, &needs.memory_read),
        (&mut own.memory_write, &needs.memory_write),
        (&mut own.shell, &needs.shell),
    ] {
        if have.is_empty() {
            have.clone_from(need);
        }
    }
    own.agent_spawn = own.agent_spawn.or(needs.agent_spawn);
}

/// The section of an agent's prompt with the texts of its SKILL.md.
fn knowledge(role: &Role, skills: &BTreeMap<String, String>) -> String {
    let texts = ["", &role.name].into_iter().filter_map(|role| skills.get(role)).map(|text| body(text));
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { String::new() } else { format!("\n\n## Reference Knowledge\n\n{}\n", texts.join("\n\n")) }
}

/// The text of a SKILL.md without the header between its first two `---` lines.
fn body(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim();
    let Some(rest) = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r'])) else { return text };
    rest.split_once("\n---").map_or(text, |(_, body)| body.trim_start_matches('-').trim())
}

/// The section of a prompt that names the other agents; empty for an agent alone.
pub(super) fn team(members: &[(Box<str>, &NewMember)], own: usize) -> String {
    if members.len() < 2 {
        return String::new();
    }
    let mut text = format!("\n\n## Your Team\nAsk these agents with `{TEAM_TOOL}`, by name:\n");
    for (at, (name, member)) in members.iter().enumerate() {
        if at != own {
            let hint = match (&*member.invoke_hint, &*member.manifest.description) {
                ("", description) => description,
                (hint, _) => hint,
            };
            text.push_str(&format!("- `{name}` ({}): {hint}\n", member.role));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::definition::parse;
    use super::*;

    fn prepared(text: &str, around: &Around) -> Result<Vec<NewMember>, Refusal> {
        members(&parse(text).unwrap(), around)
    }

    const TEAM: &str = r#"
id = "herald"
tools = ["web_fetch", "memory_store"]
mcp_servers = ["news", "mail"]
[agents.main]
coordinator = true
name = "writer"
model = "default"
provider = "default"
temperature = 0.5
max_iterations = 9
system_prompt = "Write."
mcp_servers = ["mail", "other"]
exec_policy = "allowlist"
[agents.helper]
invoke_hint = "Facts"
base = "clerk"
[agents.helper.model]
temperature = 0.1
[agents.helper.capabilities]
memory_read = ["self.facts.*"]
"#;

    fn around() -> Around {
        let base = "name = \"clerk\"\nsystem_prompt = \"Look up.\"\n[model]\nmodel = \"m\"\nprovider = \"p\"\ntemperature = 0.9";
        Around {
            settings: "\n\n## User Configuration\n- a: b\n".to_owned(),
            skills: BTreeMap::from([
                (String::new(), "---\nname: x\n---\nFor all.".to_owned()),
                ("helper".to_owned(), "For one.".to_owned()),
            ]),
            bases: BTreeMap::from([("clerk".to_owned(), base.to_owned())]),
            needs: Capabilities { memory_read: vec!["*".into()], network: vec!["*".into()], ..Capabilities::default() },
        }
    }

    #[test]
    fn flat_and_whole_agents_become_manifests() {
        let all = prepared(TEAM, &around()).unwrap();
        let [helper, main] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*main.name, &*helper.name), ("herald:writer", "herald:helper"));
        let own = &main.manifest;
        assert_eq!((&*own.model.model, &*own.model.provider, own.model.temperature), ("", "", Some(0.5)));
        assert_eq!((own.max_iterations, own.capabilities.tools.len()), (Some(9), 3));
        assert_eq!(
            (&own.mcp_servers[..], &helper.manifest.mcp_servers[..]),
            (&["mail".into()][..], &["news".into(), "mail".into()][..])
        );
        assert_eq!(own.tags, ["hand:herald".into(), "hand_role:main".into()]);
        let text = "Write.\n\n## User Configuration\n- a: b\n\n\n## Reference Knowledge\n\nFor all.\n";
        assert_eq!(&*own.system_prompt, text);
        let own = &helper.manifest;
        assert_eq!((&*own.model.model, own.model.temperature), ("m", Some(0.1)), "the hand over the agent type");
        assert!(own.system_prompt.starts_with("Look up.") && own.system_prompt.contains("For all.\n\nFor one."));
        assert_eq!(own.capabilities.memory_read, ["self.facts.*".into()]);
        assert_eq!(own.capabilities.network, ["*".into()]);
        assert!(main.text.contains("exec_policy"), "unknown keys stay in the text");
    }

    #[test]
    fn words_that_lead_to_a_hand_lead_to_its_coordinator() {
        let text = format!("{TEAM}\n[routing]\naliases = [\"daily news\"]\nweak_aliases = [\"news\"]\n");
        let all = prepared(&text, &around()).unwrap();
        let [helper, main] = &all[..] else { panic!("{all:?}") };
        let routing = &main.manifest.routing;
        assert_eq!(
            (&routing.aliases[..], &routing.weak_aliases[..]),
            (&["daily news".into()][..], &["news".into()][..])
        );
        assert!(helper.manifest.routing.aliases.is_empty() && !helper.text.contains("metadata"));
    }

    #[test]
    fn an_agent_whose_skills_are_all_out_of_bounds_has_none() {
        let skills = |own: &str| {
            let text = format!("id = 'x'\nskills = ['a', 'b']\n[agents.main]\n{own}");
            let own = prepared(&text, &Around::default()).unwrap().remove(0).manifest;
            (own.skills.join(","), own.skills_disabled)
        };
        assert_eq!(skills("skills = ['c']"), (String::new(), true));
        assert_eq!(skills("skills = ['b', 'c']"), ("b".to_owned(), false));
        assert_eq!(skills("skills = []"), ("a,b".to_owned(), false));
        assert_eq!(skills("skills_disabled = true"), ("a,b".to_owned(), true));
    }

    #[test]
    fn errors_name_the_agent_and_the_key() {
        let one = |keys: &str| format!("id = 'x'\n[agents.main]\n{keys}");
        for (text, field, expected) in [
            (one("base = 'absent'"), "agents.main.base", "no agent type"),
            (one("temperature = 9"), "agents.main", "`model.temperature`"),
            (one("system_prompt = 5"), "agents.main", "`system_prompt`: expected a string"),
            (one("schedule = 'often'"), "agents.main", "`schedule`: expected `reactive`"),
            (one("name = 'a'\n[agents.b]\nname = 'a'"), "agents.main.name", "another agent of the hand"),
        ] {
            let refusal = prepared(&text, &Around::default()).unwrap_err();
            assert!(refusal.field.as_deref() == Some(field) && refusal.message.contains(expected), "{refusal:?}");
        }
    }

    #[test]
    fn a_header_of_a_skill_is_left_out() {
        for (text, expected) in [
            ("x", "x"),
            ("---\nname: a\n---\n\nBody\n---\nmore", "Body\n---\nmore"),
            ("---\r\nname: a\r\n---\r\nBody", "Body"),
            ("--- no header", "--- no header"),
            ("---\nnever closed", "---\nnever closed"),
        ] {
            assert_eq!(body(text), expected);
        }
    }
}
