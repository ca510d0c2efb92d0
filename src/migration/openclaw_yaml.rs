//! OpenClaw-like homes of YAML: `agents/<name>/agent.yaml`, with the memory and the conversations beside it.

use std::path::PathBuf;

use serde_json::Value;

use super::convert::{Draft, plain_name};
use super::history::Lines;
use super::openclaw::sessions;
use super::tree::Tree;
use super::{Agent, Found, Kind, secrets, skill};
use crate::kernel::text_formats::{word, words, yaml};

/// Names of an agent's manifest.
const MANIFESTS: &[&str] = &["agent.yaml", "agent.yml"];
/// Names of the home's configuration.
const CONFIGS: &[&str] = &["config.yaml", "config.yml"];
/// Keys of a manifest that have a place here; others are told.
const KNOWN: &str = "name description version author module model provider base_url api_key_env temperature \
    max_tokens fallback_models tools tool_blocklist skills tags system_prompt prompt";

pub(super) const KIND: Kind = Kind { name: "openclaw-yaml", places: &[".openclaw", ".clawdbot"], is, read };

fn is(tree: &Tree) -> bool {
    let has = |name: &String| MANIFESTS.iter().any(|file| tree.is_file(PathBuf::from("agents").join(name).join(file)));
    tree.dirs("agents").iter().any(has)
}

fn read(tree: &Tree) -> Found {
    let mut found = Found::default();
    let config = CONFIGS.iter().find(|name| tree.is_file(name));
    if let Some(name) = config {
        match tree.text(name).and_then(|text| yaml(&text)) {
            Ok(config) => word(&config, &["version"]).unwrap_or_default().clone_into(&mut found.version),
            Err(why) => found.warn(format!("{name} cannot be read: {why}")),
        }
    }
    for name in tree.dirs("agents") {
        agent(tree, &name, &mut found);
    }
    skill::find(tree, "skills", &mut found);
    if tree.is_dir("messaging") {
        found.warn("channels are not imported; set them up again");
    }
    found
}

fn agent(tree: &Tree, dir: &str, found: &mut Found) {
    let place = PathBuf::from("agents").join(dir);
    let Some(file) = MANIFESTS.iter().map(|name| place.join(name)).find(|path| tree.is_file(path)) else { return };
    let read = tree
        .text(&file)
        .and_then(|text| yaml(&text))
        .and_then(|manifest| if manifest.is_object() { Ok(manifest) } else { Err("expected a table".to_owned()) });
    let (name, manifest) = match read {
        Err(why) => (plain_name(dir), Err(why)),
        Ok(manifest) => {
            let draft = draft(dir, &manifest, found);
            let name = draft.name();
            let (text, warnings) = draft.into_manifest();
            warnings.into_iter().for_each(|warning| found.warn(warning));
            (name, text)
        }
    };
    let memory = place.join("MEMORY.md");
    let files = if tree.is_file(&memory) { vec![(memory, "MEMORY.md".to_owned())] } else { Vec::new() };
    let agent = found.agents.len();
    found.agents.push(Agent { id: dir.to_owned(), name, format: "agent.yaml", manifest, files });
    sessions(tree, &place.join("sessions"), agent, Lines::Flat, found);
}

fn draft(dir: &str, manifest: &Value, found: &mut Found) -> Draft {
    for key in manifest.as_object().into_iter().flat_map(|table| table.keys()) {
        if !KNOWN.split(' ').any(|known| known == key) && !secrets::is_secret(key) {
            found.warn(format!("agent {dir:?}: {key:?} is not supported"));
        }
    }
    secrets::tell(dir, &secrets::named(manifest), found);
    let text = |keys: &[&str]| word(manifest, keys).unwrap_or_default().to_owned();
    // The model is a text, or a table of its own.
    let model = manifest.get("model").cloned().unwrap_or_default();
    let inner = |keys: &[&str]| word(&model, keys).map(str::to_owned).unwrap_or_else(|| text(keys));
    let number = |key: &str| model.get(key).or_else(|| manifest.get(key)).cloned().unwrap_or_default();
    Draft {
        name: word(manifest, &["name"]).unwrap_or(dir).to_owned(),
        description: text(&["description"]),
        model: model.as_str().map_or_else(|| inner(&["name", "model"]), str::to_owned),
        provider: inner(&["provider"]),
        base_url: inner(&["base_url"]),
        api_key_env: inner(&["api_key_env"]),
        temperature: number("temperature").as_f64(),
        max_tokens: number("max_tokens").as_i64(),
        fallbacks: words(manifest, &["fallback_models"]),
        tools: words(manifest, &["tools"]),
        denied: words(manifest, &["tool_blocklist"]),
        skills: words(manifest, &["skills"]),
        tags: words(manifest, &["tags"]),
        prompt: vec![text(&["system_prompt", "prompt"])],
    }
}
