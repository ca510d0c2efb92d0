//! `skill.toml`: the manifest of skills with code, templates and settings.

use std::collections::HashSet;

use agentsvc_systems::skill::limits::{SKILL_SCHEMA_BYTES_MAX, SKILL_TOOLS_MAX};
use serde_json::{Map, Value, json};

use super::skill::{ConfigVar, Runtime, Skill, SkillTool, Source, our_tool};
use super::skill_md::{boxed, our_os, text};
use crate::kernel::text_formats::words;
use crate::tool::toolset::built_in;

/// Bytes of a tool's name that all providers accept.
const TOOL_NAME_BYTES_MAX: usize = 64;
/// How names of tools begin that servers and other daemons bring.
const FOREIGN: &[&str] = &["mcp_", "a2a_"];
/// Keywords of JSON Schema by which a schema names another, or itself.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Fills in what the manifest says, over what `SKILL.md` has said. `prompt` is the text of `prompt_context.md`.
pub(super) fn fill(skill: &mut Skill, manifest: &str, prompt: Option<String>) -> Result<(), String> {
    let manifest: Value = toml::from_str(manifest).map_err(|error: toml::de::Error| one_line(&error.to_string()))?;
    // What was migrated by an earlier release has the keys at top level.
    let head = if manifest["skill"].is_object() { &manifest["skill"] } else { &manifest };
    skill.name = text(head, &["name"]).ok_or("skill.name: it is missing")?;
    set(&mut skill.version, text(head, &["version"]));
    set(&mut skill.description, text(head, &["description"]));
    set(&mut skill.author, text(head, &["author"]));
    set(&mut skill.license, text(head, &["license"]));
    set(&mut skill.homepage, text(head, &["homepage"]));
    let tags = words(head, &["tags"]);
    if !tags.is_empty() {
        skill.tags = boxed(tags);
    }
    runtime(skill, &manifest["runtime"])?;
    if let Some(prompt) = manifest["prompt_context"].as_str().map(str::to_owned).or(prompt) {
        skill.prompt_context = prompt.into();
    }
    skill.env_passthrough.extend(boxed(words(&manifest, &["env_passthrough"])));
    requirements(skill, &manifest["requirements"]);
    skill.config = manifest["config"].as_object().cloned().unwrap_or_default();
    skill.config_vars = config_vars(&manifest["config_vars"]);
    skill.source = source(&manifest["source"]);
    skill.template = manifest["prompt"]["template"].as_str().map(Into::into);
    for declared in manifest["tools"]["provided"].as_array().into_iter().flatten() {
        let name = text(declared, &["name"]).ok_or("tools.provided: a tool has no name")?;
        let description = text(declared, &["description"]).unwrap_or_default();
        add_tool(skill, name, description, declared["input_schema"].clone());
    }
    if let Some(inputs) = manifest["input"].as_object().filter(|_| skill.tools.is_empty()) {
        let (name, description) = (tool_name(&skill.name), skill.description.clone());
        add_tool(skill, name, description, schema_of(inputs));
    }
    Ok(())
}

/// One tool for code that declares none, and for a template.
pub(super) fn starter_tool(skill: &mut Skill) {
    let is_wanted = (skill.has_code() && skill.runtime != Runtime::Wasm) || skill.template.is_some();
    if skill.tools.is_empty() && is_wanted {
        let (name, description) = (tool_name(&skill.name), skill.description.clone());
        add_tool(skill, name, description, json!({ "type": "object" }));
    }
}

/// The name of a tool that is named after its skill.
pub(super) fn tool_name(skill: &str) -> Box<str> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    skill.chars().map(plain).take(TOOL_NAME_BYTES_MAX).collect::<String>().into()
}

/// Adds a tool, or a warning that says why it is left out.
pub(super) fn add_tool(skill: &mut Skill, name: Box<str>, description: Box<str>, schema: Value) {
    match checked(skill, &name, schema) {
        Ok(input_schema) => skill.tools.push(SkillTool { name, description, input_schema }),
        Err(why) => skill.warnings.push(format!("the tool {name:?} is left out: {why}")),
    }
}

fn checked(skill: &Skill, name: &str, schema: Value) -> Result<Value, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err("its name is not 1 to 64 of letters, digits, _ and -".to_owned());
    }
    if FOREIGN.iter().any(|prefix| name.starts_with(prefix)) || built_in().find(name).is_some() {
        return Err("a tool of the daemon has such a name, and agents may be granted it".to_owned());
    }
    if skill.tools.iter().any(|tool| *tool.name == *name) {
        return Err("another tool of the skill has its name".to_owned());
    }
    if skill.tools.len() >= SKILL_TOOLS_MAX {
        return Err(format!("the skill has more than {SKILL_TOOLS_MAX} tools"));
    }
    let mut schema = match schema {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        _ => return Err("its input_schema is not a table".to_owned()),
    };
    if !schema.contains_key("type") {
        schema.insert("type".to_owned(), "object".into());
    }
    if schema["type"] != "object" {
        return Err("its input is not an object".to_owned());
    }
    let schema = Value::Object(schema);
    if schema.to_string().len() > SKILL_SCHEMA_BYTES_MAX {
        return Err(format!("its input_schema is larger than {SKILL_SCHEMA_BYTES_MAX} bytes"));
    }
    // One that leads back to itself could take any time, or the whole stack.
    if refers(&schema) {
        return Err("its input_schema has a $ref; write the schema out".to_owned());
    }
    Ok(schema)
}

fn refers(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| REFERENCES.contains(&&**key) || refers(value)),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// `runtime`: a table, or the name alone.
fn runtime(skill: &mut Skill, value: &Value) -> Result<(), String> {
    let named = value.as_str().or_else(|| value["type"].as_str()).unwrap_or_default();
    let known = "must be python, node, shell, wasm, builtin or promptonly";
    skill.runtime = Runtime::parse(named).ok_or_else(|| format!("runtime.type: {known}; {named:?} is not known"))?;
    skill.entry = text(value, &["entry", "entrypoint", "main"]);
    Ok(())
}

fn requirements(skill: &mut Skill, value: &Value) {
    let own = &mut skill.requirements;
    own.tools = words(value, &["tools"]).iter().map(|tool| our_tool(tool)).collect();
    own.capabilities = boxed(words(value, &["capabilities"]));
    own.timeout_secs = value["timeout_secs"].as_u64();
    for (key, list) in
        [("bins", &mut own.bins), ("any_bins", &mut own.any_bins), ("env", &mut own.env), ("config", &mut own.config)]
    {
        let more = words(value, &[key]);
        if !more.is_empty() {
            *list = boxed(more);
        }
    }
    let os = words(value, &["os"]);
    if !os.is_empty() {
        own.os = os.iter().map(|os| our_os(os).into()).collect();
    }
}

fn config_vars(value: &Value) -> Vec<ConfigVar> {
    let mut seen = HashSet::new();
    let read = |var: &Value| {
        let key = text(var, &["key"])?;
        let default = match &var["default"] {
            Value::Null => None,
            Value::String(text) => Some(text.as_str().into()),
            other => Some(other.to_string().into()),
        };
        Some(ConfigVar { key, description: text(var, &["description"]).unwrap_or_default(), default })
    };
    let all = value.as_array().into_iter().flatten().filter_map(read);
    all.filter(|var| seen.insert(var.key.clone())).collect()
}

fn source(value: &Value) -> Source {
    let kind = text(value, &["type"]).unwrap_or_else(|| "local".into());
    Source { kind, slug: text(value, &["slug"]), version: text(value, &["version"]) }
}

/// The schema of `[input]`.
fn schema_of(inputs: &Map<String, Value>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, input) in inputs {
        let mut property = match input {
            Value::Object(map) => map.clone(),
            // Only its type.
            Value::String(kind) => Map::from_iter([("type".to_owned(), Value::from(kind.as_str()))]),
            _ => Map::new(),
        };
        if property.remove("required") == Some(Value::Bool(true)) {
            required.push(name.clone());
        }
        let kind = match property.get("type").and_then(Value::as_str).unwrap_or("string") {
            kind @ ("string" | "number" | "integer" | "boolean" | "array" | "object") => kind.to_owned(),
            "int" => "integer".to_owned(),
            "float" => "number".to_owned(),
            "bool" => "boolean".to_owned(),
            "list" => "array".to_owned(),
            _ => "string".to_owned(),
        };
        property.insert("type".to_owned(), kind.into());
        properties.insert(name.clone(), property.into());
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Replaces `old` where there is something new.
fn set(old: &mut Box<str>, new: Option<Box<str>>) {
    if let Some(new) = new {
        *old = new;
    }
}

fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Skill {
        let mut skill = Skill::default();
        fill(&mut skill, text, None).unwrap();
        starter_tool(&mut skill);
        skill
    }

    #[test]
    fn every_table() {
        let skill = read(
            r#"
env_passthrough = ["GOG_KEYRING"]
prompt_context = "Use it."
[skill]
name = "weather"
version = "1.0.0"
description = "Weather"
author = "me"
license = "MIT"
tags = ["net"]
[runtime]
type = "python"
entry = "src/main.py"
[[tools.provided]]
name = "forecast"
description = "Says it"
input_schema = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
[requirements]
tools = ["Read", "web_fetch"]
capabilities = ["NetConnect(*)"]
timeout_secs = 30
[config]
units = "metric"
[[config_vars]]
key = "weather.key"
description = "The key"
default = 7
[source]
type = "claw_hub"
slug = "me/weather"
version = "1.0.0"
"#,
        );
        assert_eq!((skill.runtime, skill.entry.as_deref()), (Runtime::Python, Some("src/main.py")));
        assert_eq!((&*skill.prompt_context, skill.timeout_secs()), ("Use it.", 30));
        assert_eq!(skill.requirements.tools, ["file_read".into(), Box::<str>::from("web_fetch")]);
        assert_eq!(skill.tools[0].input_schema["required"], json!(["city"]));
        assert_eq!(skill.config["units"], "metric");
        assert_eq!(skill.config_vars[0].default.as_deref(), Some("7"));
        assert_eq!((&*skill.source.kind, skill.source.slug.as_deref()), ("claw_hub", Some("me/weather")));
        assert_eq!(skill.env_passthrough, [Box::<str>::from("GOG_KEYRING")]);
    }

    #[test]
    fn the_starter_form_makes_one_tool() {
        let skill = read(
            "[skill]\nname = \"meeting-agenda\"\n[runtime]\ntype = \"promptonly\"\n[input]\n\
             topic = { type = \"string\", description = \"What\", required = true }\nminutes = { type = \"int\" }\n\
             [prompt]\ntemplate = \"About {{topic}}\"\n",
        );
        let [tool] = &skill.tools[..] else { panic!("{:?}", skill.tools) };
        assert_eq!((&*tool.name, &tool.input_schema["required"]), ("meeting_agenda", &json!(["topic"])));
        assert_eq!(tool.input_schema["properties"]["topic"]["description"], "What");
        assert_eq!(tool.input_schema["properties"]["minutes"]["type"], "integer");
        assert_eq!(skill.template.as_deref(), Some("About {{topic}}"));
    }

    #[test]
    fn a_name_is_enough_and_flat_keys_count() {
        assert_eq!(read("[skill]\nname = \"a\"\n").runtime, Runtime::PromptOnly);
        let flat = read("name = \"a\"\nversion = \"2\"\nruntime = \"PromptOnly\"\ntags = [\"x\"]\n");
        assert_eq!((&*flat.version, flat.category()), ("2", "x"));
        let wrong = |text: &str| fill(&mut Skill::default(), text, None).unwrap_err();
        assert!(wrong("[skill]\n").contains("skill.name"));
        assert!(wrong("[skill]\nname = \"a\"\n[runtime]\ntype = \"cobol\"\n").contains("runtime.type"));
        assert!(!wrong("[skill\n").contains('\n'));
    }

    #[test]
    fn tools_that_cannot_be_offered_are_left_out() {
        let skill = read(
            "[skill]\nname = \"a\"\n[[tools.provided]]\nname = \"has space\"\n[[tools.provided]]\nname = \"twice\"\n\
             [[tools.provided]]\nname = \"twice\"\n[[tools.provided]]\nname = \"refers\"\n\
             input_schema = { properties = { x = { \"$ref\" = \"#\" } } }\n[[tools.provided]]\nname = \"text\"\n\
             input_schema = { type = \"string\" }\n",
        );
        assert_eq!((skill.tools.len(), &*skill.tools[0].name), (1, "twice"));
        assert_eq!(skill.warnings.len(), 4, "{:?}", skill.warnings);
    }

    #[test]
    fn tools_with_names_of_others_are_left_out() {
        let tool = |name: &str| format!("[[tools.provided]]\nname = \"{name}\"\n");
        let names = ["mcp_github_create_issue", "a2a_send", "a2a_more", "shell_exec", "mcpish"].map(tool);
        let skill = read(&format!("[skill]\nname = \"a\"\n{}", names.concat()));
        assert_eq!((skill.tools.len(), &*skill.tools[0].name), (1, "mcpish"));
        assert_eq!(skill.warnings.len(), 4, "{:?}", skill.warnings);
    }
}
