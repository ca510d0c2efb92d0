//! `SKILL.md`: YAML between `---` lines, then Markdown (Agent Skills, with the keys of OpenClaw and ClawHub).

use agentsvc_systems::skill::limits::SKILL_DESCRIPTION_SHOWN_CHARS_MAX;
use serde_json::{Map, Value};

use super::skill::{Skill, our_tool};
use crate::kernel::front_matter;
use crate::kernel::text_formats::{json5, split_front_matter, word, words};

/// Names under which OpenClaw's keys stand in `metadata`.
const OPENCLAW: &[&str] = &["openclaw", "clawdbot", "clawdis"];

/// Fills in what the text says. `Err`: the front matter cannot be read.
pub(super) fn fill(skill: &mut Skill, content: &str) -> Result<(), String> {
    let (head, body) = split_front_matter(content);
    skill.prompt_context = body.replace("\r\n", "\n").into();
    let head = match head {
        Some(head) => front_matter::lenient(&head.replace("\r\n", "\n"))?,
        None => Value::Null,
    };
    let metadata = object(&head["metadata"]);
    let inner = Value::Object(metadata.clone());
    let text_of = |keys: &[&str]| text(&head, keys).or_else(|| text(&inner, keys)).unwrap_or_default();
    (skill.name, skill.version) = (text(&head, &["name"]).unwrap_or_default(), text_of(&["version"]));
    (skill.description, skill.author) = (text(&head, &["description"]).unwrap_or_default(), text_of(&["author"]));
    (skill.license, skill.homepage) = (text(&head, &["license"]).unwrap_or_default(), text_of(&["homepage"]));
    skill.compatibility = text(&head, &["compatibility"]).unwrap_or_default();
    let tags = words(&head, &["tags"]);
    skill.tags = boxed(if tags.is_empty() { words(&inner, &["tags"]) } else { tags });
    skill.allowed_tools = allowed(&head["allowed-tools"]);
    skill.invocation.by_user = head["user-invocable"].as_bool().unwrap_or(true);
    skill.invocation.by_model = !head["disable-model-invocation"].as_bool().unwrap_or(false);
    if head["command-dispatch"] == "tool" {
        skill.invocation.tool = text(&head, &["command-tool"]);
    }
    if let Some(claw) = OPENCLAW.iter().find_map(|name| metadata.get(*name)) {
        openclaw(skill, &Value::Object(object(claw)));
    }
    if skill.description.chars().count() > SKILL_DESCRIPTION_SHOWN_CHARS_MAX {
        let most = SKILL_DESCRIPTION_SHOWN_CHARS_MAX;
        skill.warnings.push(format!("the description has more than {most} characters; prompts show the beginning"));
    }
    skill.metadata = metadata;
    Ok(())
}

/// What `metadata.openclaw` says, in our words.
fn openclaw(skill: &mut Skill, claw: &Value) {
    let needs = &claw["requires"];
    let own = &mut skill.requirements;
    own.always = claw["always"].as_bool().unwrap_or(false);
    own.bins = boxed(words(needs, &["bins"]));
    own.any_bins = boxed(words(needs, &["anyBins"]));
    own.env = boxed(words(needs, &["env"]));
    own.config = boxed(words(needs, &["config"]));
    own.os = words(claw, &["os"]).iter().map(|os| our_os(os).into()).collect();
    let variables = claw["envVars"].as_array().into_iter().flatten();
    for name in variables.clone().filter(|variable| variable["required"] == true).filter_map(|v| text(v, &["name"])) {
        if !own.env.contains(&name) {
            own.env.push(name);
        }
    }
    let asked = variables.filter_map(|variable| text(variable, &["name"])).chain(text(claw, &["primaryEnv"]));
    for name in asked.chain(own.env.clone()) {
        if !skill.env_passthrough.contains(&name) {
            skill.env_passthrough.push(name);
        }
    }
    if skill.homepage.is_empty() {
        skill.homepage = text(claw, &["homepage"]).unwrap_or_default();
    }
}

/// An operating system as [`std::env::consts::OS`] writes it.
pub(super) fn our_os(name: &str) -> String {
    match &*name.to_ascii_lowercase() {
        "darwin" | "mac" | "osx" => "macos".to_owned(),
        "win32" | "win" => "windows".to_owned(),
        other => other.to_owned(),
    }
}

/// A table; also where it is written as a text of JSON5.
fn object(value: &Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map.clone(),
        Value::String(text) => match json5(text) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        },
        _ => Map::new(),
    }
}

/// A text under one of `keys`; numbers are texts, too, as versions are written.
pub(super) fn text(value: &Value, keys: &[&str]) -> Option<Box<str>> {
    if let Some(text) = word(value, keys) {
        return Some(text.into());
    }
    let number = keys.iter().find_map(|key| value.get(key).filter(|value| value.is_number()));
    number.map(|number| number.to_string().into())
}

/// Tools that are parted by spaces or commas, with patterns in parentheses, or a list.
fn allowed(value: &Value) -> Vec<Box<str>> {
    let list: Vec<&str> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => {
            let mut depth = 0_usize;
            let parts = text.split(move |c: char| {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (c == ',' || c.is_whitespace())
            });
            parts.collect()
        }
        _ => Vec::new(),
    };
    let mut tools: Vec<Box<str>> = Vec::new();
    for tool in list.into_iter().map(our_tool).filter(|tool| !tool.is_empty()) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    tools
}

pub(super) fn boxed(words: Vec<String>) -> Vec<Box<str>> {
    words.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Skill {
        let mut skill = Skill::default();
        fill(&mut skill, text).unwrap();
        skill
    }

    #[test]
    fn the_keys_of_agent_skills() {
        let skill = read(
            "---\r\nname: pdf\r\ndescription: >\r\n  Works with\r\n  PDF files.\r\nversion: 1.2\r\nauthor: me\r\n\
             license: MIT\r\ncompatibility: Needs git\r\ntags: [docs, linux]\r\n\
             allowed-tools: Bash(git add:*) Read, WebFetch\r\n---\r\n\r\n# PDF\r\nRead `forms.md`.\r\n",
        );
        assert_eq!((&*skill.name, &*skill.description), ("pdf", "Works with PDF files."));
        assert_eq!((&*skill.version, &*skill.author, &*skill.license), ("1.2", "me", "MIT"));
        assert_eq!((skill.category(), &*skill.compatibility), ("docs", "Needs git"));
        assert_eq!(skill.allowed_tools, ["shell_exec".into(), "file_read".into(), Box::<str>::from("web_fetch")]);
        assert_eq!(&*skill.prompt_context, "# PDF\nRead `forms.md`.\n");
        assert!(skill.invocation.by_user && skill.invocation.by_model);
    }

    #[test]
    fn the_keys_of_openclaw_as_json5() {
        let skill = read(
            "---\nname: gh\ndescription: GitHub: issues and pull requests\nuser-invocable: false\n\
             disable-model-invocation: true\ncommand-dispatch: tool\ncommand-tool: gh_run\nmetadata:\n  {\n    \
             // what it needs\n    \"clawdbot\": {\n      \"emoji\": \"x\", \"os\": [\"darwin\", \"linux\"],\n      \
             \"requires\": { \"bins\": [\"gh\"], \"anyBins\": [\"a\", \"b\"], \"env\": [\"GH_HOST\"], },\n      \
             \"primaryEnv\": \"GH_TOKEN\",\n      \"envVars\": [{ \"name\": \"GH_REPO\", \"required\": true, }],\n    \
             },\n  }\n---\nbody\n",
        );
        assert_eq!(&*skill.description, "GitHub: issues and pull requests");
        assert!(!skill.invocation.by_user && !skill.invocation.by_model);
        assert_eq!(skill.invocation.tool.as_deref(), Some("gh_run"));
        let needs = &skill.requirements;
        assert_eq!((&needs.bins[..], needs.any_bins.len()), (&["gh".into()][..], 2));
        assert_eq!(needs.env, ["GH_HOST".into(), Box::<str>::from("GH_REPO")]);
        assert_eq!(needs.os, ["macos".into(), Box::<str>::from("linux")]);
        assert_eq!(skill.env_passthrough, ["GH_REPO".into(), "GH_TOKEN".into(), Box::<str>::from("GH_HOST")]);
    }

    #[test]
    fn metadata_on_one_line_or_as_a_text() {
        let line = "metadata: {\"openclaw\":{\"requires\":{\"bins\":[\"a\"],},\"always\":true,}}";
        let text = "metadata: '{openclaw: {requires: {bins: [\"a\"]}, always: true}}'";
        for metadata in [line, text] {
            let skill = read(&format!("---\nname: x\ndescription: y\n{metadata}\n---\nz"));
            assert!(skill.requirements.always, "{metadata}");
            assert_eq!(skill.requirements.bins, [Box::<str>::from("a")]);
        }
        let standard = read("---\nname: x\ndescription: y\nmetadata:\n  version: \"2.0\"\n  author: z\n---\n");
        assert_eq!((&*standard.version, &*standard.author), ("2.0", "z"));
    }

    #[test]
    fn a_text_without_front_matter_is_all_body() {
        let skill = read("# Only text\n");
        assert_eq!((&*skill.name, &*skill.prompt_context), ("", "# Only text\n"));
        let broken = fill(&mut Skill::default(), "---\nname: [\n---\nx").unwrap_err();
        assert!(broken.starts_with("the front matter is not valid YAML: "), "{broken}");
    }
}
