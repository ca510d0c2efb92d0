//! OpenClaw as it is now: `openclaw.json`, workspaces of Markdown files, conversations as trees of entries.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::convert::Draft;
use super::history::Lines;
use super::tree::Tree;
use super::{Agent, Found, Kind, Session, secrets, skill};
use crate::kernel::text_formats::{json5, word, words};

/// Names that the configuration has had.
const CONFIGS: &[&str] = &["openclaw.json", "clawdbot.json", "moltbot.json"];
/// The files of a workspace that make the system prompt, in their order there.
const PROMPT: &[&str] = &["SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md", "TOOLS.md"];
/// The files of a workspace that the agent keeps.
const KEPT: &[&str] = &["MEMORY.md", "USER.md", "TOOLS.md", "HEARTBEAT.md"];

pub(super) const KIND: Kind = Kind { name: "openclaw", places: &[".openclaw", ".clawdbot", ".moltbot"], is, read };

fn is(tree: &Tree) -> bool {
    CONFIGS.iter().any(|name| tree.is_file(name))
}

fn read(tree: &Tree) -> Found {
    let mut found = Found::default();
    let name = CONFIGS.iter().find(|name| tree.is_file(name)).copied().unwrap_or_default();
    let config = match tree.text(name).and_then(|text| json5(&text)) {
        Ok(config) => config,
        Err(why) => {
            found.warn(format!("{name} cannot be read; only files are considered: {why}"));
            Value::Null
        }
    };
    found.version = config.pointer("/meta/lastTouchedVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let defaults = config.pointer("/agents/defaults").or_else(|| config.get("agent")).cloned().unwrap_or_default();
    for (id, entry) in entries(tree, &config) {
        agent(tree, &id, &entry, &defaults, &mut found);
    }
    skill::find(tree, "skills", &mut found);
    for (key, what) in [("channels", "channels"), ("cron", "cron jobs"), ("hooks", "hooks")] {
        if config.get(key).and_then(Value::as_object).is_some_and(|table| !table.is_empty()) {
            found.warn(format!("{what} are not imported; set them up again"));
        }
    }
    if tree.is_file("cron/jobs.json") {
        found.warn("cron/jobs.json is not imported; create the jobs again");
    }
    if tree.is_dir("credentials") || config.get("auth").is_some() {
        found.warn("keys and tokens are not imported; set the providers' keys again");
    }
    found
}

/// The agents by id: those of the configuration, else those that have conversations, else the one there always is.
fn entries(tree: &Tree, config: &Value) -> Vec<(String, Value)> {
    let id = |entry: &Value| word(entry, &["id", "name"]).map(str::to_owned);
    let mut entries: Vec<(String, Value)> = match config.pointer("/agents/list").or(config.pointer("/agents/entries")) {
        Some(Value::Array(list)) => list.iter().filter_map(|entry| Some((id(entry)?, entry.clone()))).collect(),
        Some(Value::Object(table)) => table.iter().map(|(id, entry)| (id.clone(), entry.clone())).collect(),
        _ => Vec::new(),
    };
    for id in tree.dirs("agents") {
        if !entries.iter().any(|(known, _)| *known == id) {
            entries.push((id, Value::Null));
        }
    }
    if entries.is_empty() {
        entries.push(("main".to_owned(), Value::Null));
    }
    entries
}

fn agent(tree: &Tree, id: &str, entry: &Value, defaults: &Value, found: &mut Found) {
    secrets::tell(id, &secrets::named(entry), found);
    let workspace = workspace(tree, id, entry, defaults, found);
    let model = entry.get("model").filter(|model| !model.is_null()).or_else(|| defaults.get("model"));
    let (model, fallbacks) = match model {
        Some(Value::String(model)) => (model.clone(), Vec::new()),
        Some(model) => (word(model, &["primary"]).unwrap_or_default().to_owned(), words(model, &["fallbacks"])),
        None => (String::new(), Vec::new()),
    };
    let tools = entry.get("tools").cloned().unwrap_or_default();
    let mut prompt = Vec::new();
    let mut files = Vec::new();
    if let Some(workspace) = &workspace {
        for name in PROMPT {
            let path = workspace.join(name);
            match tree.is_file(&path).then(|| tree.text(&path)) {
                Some(Ok(text)) if !text.trim().is_empty() => prompt.push(format!("# {name}\n\n{}", text.trim())),
                Some(Err(why)) => found.warn(format!("agent {id:?}: {why}")),
                _ => {}
            }
        }
        kept(tree, workspace, &mut files);
        skill::find(tree, &workspace.join("skills").to_string_lossy(), found);
    }
    let identity = entry.get("identity").cloned().unwrap_or_default();
    let name = word(entry, &["name"]).or_else(|| word(&identity, &["name"])).unwrap_or(id);
    let draft = Draft {
        name: name.to_owned(),
        description: word(entry, &["description"])
            .or_else(|| word(&identity, &["theme"]))
            .unwrap_or_default()
            .to_owned(),
        model,
        fallbacks,
        tools: words(&tools, &["allow", "alsoAllow"]),
        denied: words(&tools, &["deny"]),
        skills: words(entry, &["skills"]),
        tags: vec!["imported".to_owned()],
        prompt,
        ..Draft::default()
    };
    let place = found.agents.len();
    let name = draft.name();
    let (manifest, warnings) = draft.into_manifest();
    warnings.into_iter().for_each(|warning| found.warn(warning));
    found.agents.push(Agent { id: id.to_owned(), name, format: "openclaw.json", manifest, files });
    sessions(tree, &PathBuf::from("agents").join(id).join("sessions"), place, Lines::Tree, found);
}

/// The agent's workspace, when it lies in the home.
fn workspace(tree: &Tree, id: &str, entry: &Value, defaults: &Value, found: &mut Found) -> Option<PathBuf> {
    let written = word(entry, &["workspace"]).or_else(|| word(defaults, &["workspace"]));
    let inside = written.and_then(|written| {
        // As it is written: below the user's home, or from the root on; only what lies in this home is read.
        let root = tree.root();
        let tail = written.strip_prefix("~/").unwrap_or(written);
        let tail = tail.split_once('/').filter(|(first, _)| Path::new(first).file_name() == root.file_name());
        let below = Path::new(written).strip_prefix(root).ok().map(Path::to_owned);
        below.or_else(|| tail.map(|(_, tail)| PathBuf::from(tail)))
    });
    if let (Some(written), None) = (written, &inside) {
        found.warn(format!("the workspace {written:?} of agent {id:?} is outside the home and is not read"));
    }
    let usual = [format!("workspace-{id}"), "workspace".to_owned()];
    let is_first = found.agents.is_empty();
    let usual = usual.into_iter().take(if is_first { 2 } else { 1 }).map(PathBuf::from);
    inside.into_iter().chain(usual).find(|path| tree.is_dir(path))
}

/// The files that go into the agent's workspace here.
fn kept(tree: &Tree, workspace: &Path, files: &mut Vec<(PathBuf, String)>) {
    let own = KEPT.iter().map(|name| (*name).to_owned());
    let daily = tree.names(workspace.join("memory")).into_iter().filter(|name| name.ends_with(".md"));
    for name in own.chain(daily.map(|name| format!("memory/{name}"))) {
        let path = workspace.join(&name);
        if tree.is_file(&path) {
            files.push((path, name));
        }
    }
}

/// The conversations in a directory.
pub(super) fn sessions(tree: &Tree, dir: &Path, agent: usize, lines: Lines, found: &mut Found) {
    let files = tree.names(dir).into_iter().filter(|name| name.ends_with(".jsonl"));
    found.sessions.extend(files.map(|name| Session { agent, file: dir.join(name), lines }));
}
