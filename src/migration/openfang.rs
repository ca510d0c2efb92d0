//! OpenFang and LibreFang: `agent.toml` is the manifest that agents have here too; hands are `HAND.toml`.

use std::path::{Path, PathBuf};

use agentsvc_systems::manifest;
use toml::Table;

use super::convert::{Draft, plain_name};
use super::history::Lines;
use super::openclaw::sessions;
use super::tree::Tree;
use super::{Agent, Found, Kind, secrets, skill};

/// Where agents are, by release.
const AGENTS: &[&str] = &["agents", "workspaces/agents"];
/// Where hands are, by release.
const HANDS: &[&str] = &["hands", "workspaces/hands"];
/// Where conversations are mirrored as text: with the agent, or in its workspace.
const WORKSPACES: &[&str] = &["workspaces", "workspaces/agents", "agents"];
/// Databases whose conversations have no other form.
const DATABASES: &[&str] = &["data/openfang.db", "data/librefang.db"];

pub(super) const KIND: Kind = Kind { name: "openfang", places: &[".openfang", ".librefang"], is, read };

fn is(tree: &Tree) -> bool {
    let agents =
        AGENTS.iter().flat_map(|dir| tree.dirs(dir).into_iter().map(move |name| place(dir, &name, "agent.toml")));
    let hands = HANDS.iter().flat_map(|dir| tree.dirs(dir).into_iter().map(move |name| place(dir, &name, "HAND.toml")));
    DATABASES.iter().any(|path| tree.is_file(path)) || agents.chain(hands).any(|path| tree.is_file(path))
}

fn place(dir: &str, name: &str, file: &str) -> PathBuf {
    PathBuf::from(dir).join(name).join(file)
}

fn read(tree: &Tree) -> Found {
    let mut found = Found::default();
    for dir in AGENTS {
        for name in tree.dirs(dir) {
            agent(tree, dir, &name, &mut found);
        }
    }
    for dir in HANDS {
        for name in tree.dirs(dir) {
            hand(tree, dir, &name, &mut found);
        }
    }
    skill::find(tree, "skills", &mut found);
    let databases: Vec<&&str> = DATABASES.iter().filter(|path| tree.is_file(path)).collect();
    if !databases.is_empty() && found.sessions.is_empty() {
        found.warn("conversations are only in a database, which is not read");
    }
    if ["vault.enc", "secrets.env", ".env"].iter().any(|name| tree.is_file(name)) {
        found.warn("keys and tokens are not imported; set the providers' keys again");
    }
    found
}

fn agent(tree: &Tree, dir: &str, name: &str, found: &mut Found) {
    let file = place(dir, name, "agent.toml");
    if !tree.is_file(&file) {
        return;
    }
    let read = tree.text(&file);
    let parsed = read.and_then(|text| {
        // First, because it bounds what is walked then.
        let parsed = manifest::parse(&text).map_err(|error| error.to_string())?;
        let (text, keys) = secrets::without(text)?;
        manifest::parse(&text).map_err(|error| error.to_string())?;
        Ok((parsed.name.to_string(), text, keys))
    });
    let (name, manifest) = match parsed {
        Ok((name, text, keys)) => {
            secrets::tell(&name, &keys, found);
            (name, Ok(text))
        }
        Err(why) => (plain_name(name), Err(why)),
    };
    push(tree, name, "agent.toml", manifest, found);
}

/// A hand becomes the agent that runs it: its manifest stands in `[agent]`, or by role in `[agents.<role>]`.
fn hand(tree: &Tree, dir: &str, name: &str, found: &mut Found) {
    let file = place(dir, name, "HAND.toml");
    if !tree.is_file(&file) {
        return;
    }
    let read = tree.text(&file);
    let parsed = read.and_then(|text| toml::from_str::<Table>(&text).map_err(|error| error.message().to_owned()));
    let table = match parsed {
        Ok(table) => table,
        Err(why) => return push(tree, plain_name(name), "HAND.toml", Err(why), found),
    };
    secrets::tell(name, &secrets::named(&serde_json::to_value(&table).unwrap_or_default()), found);
    let inner = |key: &str| table.get(key).and_then(toml::Value::as_table).cloned();
    let roles = inner("agents").unwrap_or_default();
    let roles =
        roles.into_iter().filter_map(|(role, agent)| Some((format!("{name}-{role}"), agent.as_table()?.clone())));
    let alone = inner("agent").map(|agent| (name.to_owned(), agent));
    let all: Vec<(String, Table)> = alone.into_iter().chain(roles).collect();
    if all.is_empty() {
        let why = "it has neither [agent] nor [agents]".to_owned();
        return push(tree, plain_name(name), "HAND.toml", Err(why), found);
    }
    for (name, agent) in all {
        let draft = hand_draft(&name, &table, &agent);
        let name = draft.name();
        let (manifest, warnings) = draft.into_manifest();
        warnings.into_iter().for_each(|warning| found.warn(warning));
        push(tree, name, "HAND.toml", manifest, found);
    }
}

fn hand_draft(name: &str, hand: &Table, agent: &Table) -> Draft {
    let model = agent.get("model").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let of = |table: &Table, key: &str| table.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let either = |key: &str| Some(of(&model, key)).filter(|text| !text.is_empty()).unwrap_or_else(|| of(agent, key));
    let list = |key: &str| {
        let items = hand.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let number = |key: &str| model.get(key).or_else(|| agent.get(key));
    Draft {
        name: name.to_owned(),
        description: of(hand, "description"),
        // Here the default is an empty text.
        provider: Some(either("provider")).filter(|provider| provider != "default").unwrap_or_default(),
        model: Some(either("model")).filter(|model| model != "default").unwrap_or_default(),
        base_url: either("base_url"),
        api_key_env: either("api_key_env"),
        temperature: number("temperature").and_then(toml::Value::as_float),
        max_tokens: number("max_tokens").and_then(toml::Value::as_integer),
        tools: list("tools"),
        skills: list("skills"),
        tags: vec!["hand".to_owned()],
        prompt: vec![either("system_prompt")],
        ..Draft::default()
    }
}

fn push(tree: &Tree, name: String, format: &'static str, manifest: Result<String, String>, found: &mut Found) {
    if found.agents.iter().any(|agent| agent.name == name) {
        return found.warn(format!("duplicate agent {name:?}; one is skipped"));
    }
    let at = found.agents.len();
    let homes: Vec<PathBuf> = WORKSPACES.iter().map(|dir| Path::new(dir).join(&name)).collect();
    let memory = homes.iter().map(|home| home.join("MEMORY.md")).find(|path| tree.is_file(path));
    let files = memory.map(|path| (path, "MEMORY.md".to_owned())).into_iter().collect();
    found.agents.push(Agent { id: name.clone(), name, format, manifest, files });
    if let Some(home) = homes.iter().find(|home| tree.is_dir(home.join("sessions"))) {
        sessions(tree, &home.join("sessions"), at, Lines::Flat, found);
    }
}
