//! `agent_spawn`: makes a new agent, which never exceeds the one that makes it.

use agentsvc_components::manifest::{Capabilities, Manifest, ModelChoice};
use agentsvc_systems::agent::{SpawnAgent, SpawnChild};
use agentsvc_systems::manifest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_spawn",
    "Creates a new agent that you can message with agent_send. Give a name and a system prompt; without `tools` it \
     gets your tools. It never gets more rights than you have. Returns its id.",
    |context, text| on_input(context, text, run),
)
.needs(Need::Spawn)
.order(8);

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Input {
    /// Name; must not be in use.
    name: Option<String>,
    /// System prompt.
    system_prompt: Option<String>,
    /// Description in one sentence.
    description: Option<String>,
    /// Tool names or globs that it can use. Default: all of yours.
    tools: Option<Vec<String>>,
    /// Model. Default: yours.
    model: Option<String>,
    /// A complete agent manifest in TOML, instead of all other fields.
    manifest_toml: Option<String>,
}

async fn run(context: Context, input: Input) -> Result<Ended, String> {
    let child = child(input, &context.run.manifest.manifest)?;
    let spawned = context.ask(SpawnChild { parent: context.run.agent, child, by: context.turn() }).await?;
    let told = json!({ "agent_id": spawned.agent, "name": spawned.name, "session_id": spawned.session });
    Ok(Ended::Text(told.to_string()))
}

/// The child as it is asked for; the world fits it under its parent.
fn child(input: Input, parent: &Manifest) -> Result<SpawnAgent, String> {
    if let Some(text) = input.manifest_toml {
        if input.name.is_some() || input.system_prompt.is_some() || input.tools.is_some() || input.model.is_some() {
            return Err("Give either manifest_toml or the other fields, not both.".to_owned());
        }
        let parsed = manifest::parse(&text).map_err(|error| format!("manifest_toml: {error}"))?;
        let hash = manifest::hash(&parsed.manifest);
        return Ok(SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text });
    }
    let name = input.name.ok_or("The field `name` is missing.")?;
    manifest::validate_name(&name).map_err(|error| format!("name: {error}"))?;
    let tools = input.tools.map(|tools| tools.into_iter().map(Box::from).collect());
    let own = &parent.capabilities;
    let child = Manifest {
        description: input.description.unwrap_or_default().into(),
        system_prompt: input.system_prompt.unwrap_or_default().into(),
        model: ModelChoice {
            model: input.model.map_or_else(|| parent.model.model.clone(), Box::from),
            ..parent.model.clone()
        },
        capabilities: Capabilities {
            tools: tools.unwrap_or_else(|| own.tools.clone()),
            agent_spawn: Some(false),
            ..own.clone()
        },
        tool_allowlist: parent.tool_allowlist.clone(),
        tool_blocklist: parent.tool_blocklist.clone(),
        ..Manifest::default()
    };
    manifest::validate(&child).map_err(|refusal| refusal.to_string())?;
    let text = manifest::render("", &name, &child);
    Ok(SpawnAgent { name: name.into(), hash: manifest::hash(&child), manifest: child, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::toolset::input;

    fn asked(text: &str) -> Result<SpawnAgent, String> {
        let parent = manifest::parse("name = \"p\"\n[model]\nmodel = \"m\"\n[capabilities]\ntools = [\"a\", \"b\"]");
        child(input(text).unwrap(), &parent.unwrap().manifest)
    }

    #[test]
    fn a_child_has_what_its_parent_has_unless_it_asks_for_less() {
        let child = asked(r#"{"name": "c", "system_prompt": "Count."}"#).unwrap();
        assert_eq!((&*child.name, &*child.manifest.system_prompt), ("c", "Count."));
        assert_eq!((child.manifest.capabilities.tools.len(), &*child.manifest.model.model), (2, "m"));
        assert_eq!(manifest::parse(&child.text).unwrap().manifest, child.manifest);
        let less = asked(r#"{"name": "c", "tools": ["a"], "model": "other"}"#).unwrap();
        assert_eq!((less.manifest.capabilities.tools, &*less.manifest.model.model), (vec!["a".into()], "other"));
    }

    #[test]
    fn a_wrong_child_is_explained() {
        for (text, part) in [
            ("{}", "`name` is missing"),
            (r#"{"name": ""}"#, "name: "),
            (r#"{"manifest_toml": "name = 3"}"#, "manifest_toml: "),
            (r#"{"manifest_toml": "name = \"x\"", "name": "y"}"#, "not both"),
        ] {
            let error = asked(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
