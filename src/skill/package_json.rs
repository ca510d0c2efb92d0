//! `package.json`: skills of OpenClaw that are Node packages.

use serde_json::{Value, json};

use super::skill::{Runtime, Skill};
use super::skill_md::text;
use super::skill_toml::{add_tool, tool_name};
use crate::kernel::text_formats::words;

/// Fills in what the package says, where it is a skill: one beside a `SKILL.md` only if it has OpenClaw's keys.
pub(super) fn fill(skill: &mut Skill, package: &str, entry: Option<&str>, has_text: bool) -> Result<(), String> {
    let package: Value = serde_json::from_str(package).map_err(|error| format!("it is not valid JSON: {error}"))?;
    let claw = &package["openclaw"];
    let (Some(entry), true) = (entry, !has_text || claw.is_object()) else {
        return if has_text { Ok(()) } else { Err("it has neither dist/index.js nor index.js".to_owned()) };
    };
    let own = text(&package, &["name"]).unwrap_or_default();
    // `@owner/name` is a name without its owner.
    let own = own.rsplit('/').next().unwrap_or_default();
    for (value, new) in [
        (&mut skill.name, Some(own.into())),
        (&mut skill.version, text(&package, &["version"])),
        (&mut skill.description, text(&package, &["description"])),
        (&mut skill.author, text(&package, &["author"]).or_else(|| text(&package["author"], &["name"]))),
        (&mut skill.license, text(&package, &["license"])),
        (&mut skill.homepage, text(&package, &["homepage"])),
    ] {
        if value.is_empty() {
            *value = new.unwrap_or_default();
        }
    }
    if skill.tags.is_empty() {
        skill.tags = words(&package, &["keywords"]).into_iter().map(Into::into).collect();
    }
    (skill.runtime, skill.entry) = (Runtime::Node, Some(entry.into()));
    for tool in claw["tools"].as_array().into_iter().flatten() {
        let name = text(tool, &["name"]).ok_or("openclaw.tools: a tool has no name")?;
        let schema = ["input_schema", "inputSchema", "parameters"].into_iter().find_map(|key| tool.get(key));
        add_tool(skill, name, text(tool, &["description"]).unwrap_or_default(), schema.cloned().unwrap_or_default());
    }
    if skill.tools.is_empty() {
        let (name, description) = (tool_name(&skill.name), skill.description.clone());
        let schema = json!({ "type": "object", "properties": { "input": { "type": "string" } } });
        add_tool(skill, name, description, schema);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_skill() {
        let mut skill = Skill::default();
        let package = r#"{"name":"@me/my-tool","version":"2.1.0","description":"Does","author":{"name":"me"}}"#;
        fill(&mut skill, package, Some("dist/index.js"), false).unwrap();
        assert_eq!((&*skill.name, &*skill.version, &*skill.author), ("my-tool", "2.1.0", "me"));
        assert_eq!((skill.runtime, skill.entry.as_deref()), (Runtime::Node, Some("dist/index.js")));
        assert_eq!((skill.tools.len(), &*skill.tools[0].name), (1, "my_tool"));
        assert!(skill.tools[0].input_schema["properties"]["input"].is_object());
        assert!(fill(&mut Skill::default(), package, None, false).is_err());
    }

    #[test]
    fn beside_a_text_only_its_own_tools_make_it_code() {
        let mut skill = Skill { name: "x".into(), ..Skill::default() };
        fill(&mut skill, "{\"name\":\"scripts\"}", Some("index.js"), true).unwrap();
        assert_eq!((&*skill.name, skill.runtime), ("x", Runtime::PromptOnly));
        let package = r#"{"openclaw":{"tools":[{"name":"run_it","parameters":{"type":"object"}}]}}"#;
        fill(&mut skill, package, Some("index.js"), true).unwrap();
        assert_eq!((&*skill.tools[0].name, skill.runtime), ("run_it", Runtime::Node));
    }
}
