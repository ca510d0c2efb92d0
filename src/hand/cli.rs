//! `hand`: hands listed, shown, activated and controlled.

use std::collections::BTreeMap;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::names::Listed;
use crate::kernel::cli::output::{self, Shown, Table};
use crate::kernel::cli::{Error, Run};
use crate::kernel::percent::encoded;

/// Subcommands of `hand`.
#[derive(Debug, Subcommand)]
pub(crate) enum Hand {
    /// List hands and their instances
    List,
    /// List the hands of the registry
    Search {
        /// Words in the id, name, description, category or tags; omit to list all
        words: Vec<String>,
    },
    /// Install a hand
    Install {
        /// Name of a hand of the registry, or the path of a folder with HAND.toml on the daemon's machine
        source: String,
    },
    /// Show a hand
    Info {
        /// The hand's id
        hand: String,
    },
    /// Activate a hand: create an instance with its own agents
    Activate {
        /// The hand's id
        hand: String,
        /// A value of a setting, as key=value; can be given several times
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Pause an instance: its agents no longer act on their own
    Pause {
        /// The instance's id, or the hand's id if it has one instance
        instance: String,
    },
    /// Resume a paused instance
    Resume {
        /// The instance's id, or the hand's id if it has one instance
        instance: String,
    },
    /// Remove an instance and its agents; with a hand's id, uninstall the hand
    Remove {
        /// The id of an instance or a hand
        id: String,
    },
}

impl Run for Hand {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let get = |path: &str| context.block_on(client.get(path, &[]));
        let post = |path: &str, body: Option<&Value>| context.block_on(client.post(path, body));
        let instances = Listed::new("/api/hands/active", "hand instance").by("hand list").with_id("instance_id");
        let control = |instance: &str, what: &str| {
            let id = context.block_on(client.id_of(&instances, instance))?;
            post(&format!("/api/hands/instances/{}/{what}", encoded(&id)), None)
        };
        let (answer, shown): (Value, Shown) = match &self {
            Self::List => {
                let (hands, active) = (get("/api/hands")?, get("/api/hands/active")?);
                let shown = Shown::from(hands_table(&hands)).and_below(instances_table(&active));
                (json!({ "hands": hands["hands"], "instances": active["instances"] }), shown)
            }
            Self::Search { words } => {
                let found = with_words(get("/api/hands/registry")?, words);
                let table = registry_table(&found);
                (found, table.into())
            }
            Self::Install { source } => {
                let made = post("/api/hands/install", Some(&json!({ "source": place(source)? })))?;
                let text = installed(&made);
                (made, text.into())
            }
            Self::Info { hand } => {
                let detail = get(&format!("/api/hands/{hand}"))?;
                let shown = info(&detail);
                (detail, shown)
            }
            Self::Activate { hand, set } => {
                let body = json!({ "config": values(set)? });
                let made = post(&format!("/api/hands/{hand}/activate"), Some(&body))?;
                let (instance, agent) = (word(&made, "instance_id"), word(&made, "agent_name"));
                let text = format!("activated {hand} as {instance}; talk to it with `agentsvc chat {agent}`\n");
                (made, text.into())
            }
            Self::Pause { instance } => (control(instance, "pause")?, format!("paused {instance}\n").into()),
            Self::Resume { instance } => (control(instance, "resume")?, format!("resumed {instance}\n").into()),
            Self::Remove { id } => {
                let is_instance = is_instance(&get("/api/hands/active")?, id)?;
                let path = if is_instance { format!("/api/hands/instances/{id}") } else { format!("/api/hands/{id}") };
                (context.block_on(client.delete(&path))?, format!("removed {id}\n").into())
            }
        };
        context.print(&answer, |_| shown)
    }
}

/// Is this the id of an instance, and not that of a hand?
///
/// # Errors
/// It is the id of a hand that has instances: either could be meant.
fn is_instance(active: &Value, id: &str) -> Result<bool, Error> {
    let all = || output::items(active, "instances");
    let of_hand: Vec<&str> = all().filter(|it| it["hand_id"] == id).map(|it| word(it, "instance_id")).collect();
    if !of_hand.is_empty() {
        let (ids, id) = (of_hand.join(", "), output::clean(id));
        let text = format!(
            "{id} is a hand and has instances; to remove one, pass its id: {ids}; the hand can be uninstalled when it has none"
        );
        return Err(Error::Usage(text));
    }
    Ok(uuid::Uuid::try_parse(id).is_ok() || all().any(|it| it["instance_id"] == id))
}

fn word<'v>(answer: &'v Value, key: &str) -> &'v str {
    answer[key].as_str().unwrap_or("-")
}

/// The values of `--set`.
fn values(set: &[String]) -> Result<BTreeMap<&str, &str>, Error> {
    let mut values = BTreeMap::new();
    for text in set {
        let (key, value) =
            text.split_once('=').ok_or_else(|| Error::Usage(format!("--set {text:?}: expected KEY=VALUE")))?;
        values.insert(key, value);
    }
    Ok(values)
}

/// What an installation asks for: the name of a hand, or an absolute path, as the daemon may run in another directory.
fn place(source: &str) -> Result<String, Error> {
    if !source.contains('/') && !source.starts_with('.') {
        return Ok(source.to_owned());
    }
    let path = std::path::absolute(source).map_err(Error::io("cannot find the hand"))?;
    Ok(path.to_string_lossy().into_owned())
}

fn installed(made: &Value) -> String {
    let warnings = output::items(made, "warnings").filter_map(Value::as_str);
    let mut text: String = warnings.map(|warning| format!("Warning: {warning}\n")).collect();
    let (id, version) = (word(made, "id"), word(made, "version"));
    text.push_str(&format!("Installed {id} {version}. What it needs and may do: agentsvc hand info {id}\n"));
    text
}

/// The hands of the registry that have all of the words.
fn with_words(mut found: Value, words: &[String]) -> Value {
    if let Some(hands) = found["hands"].as_array_mut() {
        hands.retain(|hand| has_words(hand, words));
        found["total"] = hands.len().into();
    }
    found
}

/// Does a hand of the registry have all of the words?
fn has_words(hand: &Value, words: &[String]) -> bool {
    let texts = ["id", "name", "description", "category", "tags"].map(|key| hand[key].to_string());
    let text = texts.join(" ").to_lowercase();
    words.iter().all(|word| text.contains(&word.to_lowercase()))
}

fn registry_table(answer: &Value) -> Table {
    let columns = [
        ("HAND", "/id"),
        ("VERSION", "/version"),
        ("CATEGORY", "/category"),
        ("INSTALLED", "/is_installed"),
        ("DESCRIPTION", "/description"),
    ];
    Table::of("matching hands", output::items(answer, "hands"), &columns)
}

fn hands_table(answer: &Value) -> Table {
    let columns = [
        ("HAND", "/id"),
        ("NAME", "/name"),
        ("VERSION", "/version"),
        ("CATEGORY", "/category"),
        ("REQUIREMENTS MET", "/requirements_met"),
        ("INSTANCES", "/instance_count"),
    ];
    Table::of("hands", output::items(answer, "hands"), &columns).hint("Find some with `agentsvc hand search`.")
}

fn instances_table(answer: &Value) -> Table {
    let columns = [("INSTANCE", "/instance_id"), ("HAND", "/hand_id"), ("STATUS", "/status"), ("AGENT", "/agent_name")];
    Table::of("instances", output::items(answer, "instances"), &columns)
}

fn info(detail: &Value) -> Shown {
    let head = format!("{} {}\n{}\n\n", word(detail, "name"), word(detail, "version"), word(detail, "description"));
    let agents = [("AGENT", "/role"), ("COORDINATOR", "/coordinator"), ("DESCRIPTION", "/description")];
    let mut shown = Shown::from(head).and(Table::of("agents", output::items(detail, "agents"), &agents));
    for (key, columns) in [
        ("settings", [("SETTING", "/key"), ("TYPE", "/setting_type"), ("DEFAULT", "/default")]),
        ("requirements", [("REQUIREMENT", "/key"), ("MET", "/satisfied"), ("OPTIONAL", "/optional")]),
    ] {
        shown = shown.and_below(Table::of(key, output::items(detail, key), &columns));
    }
    let mut text = String::new();
    for agent in output::items(detail, "agents") {
        let tools: Vec<&str> = output::items(agent, "tools").filter_map(Value::as_str).collect();
        if !tools.is_empty() {
            text.push_str(&format!("\nTools of {}: {}\n", word(agent, "role"), tools.join(", ")));
        }
        for (key, said) in agent["wakes"].as_object().into_iter().flatten() {
            text.push_str(&format!("{} acts by itself, by {key}: {said}\n", word(agent, "role")));
        }
    }
    let variables: Vec<&str> = output::items(detail, "environment").filter_map(Value::as_str).collect();
    if !variables.is_empty() {
        text.push_str(&format!("\nCommands may get these variables: {}\n", variables.join(", ")));
    }
    let missing: Vec<&str> = output::items(detail, "missing_tools").filter_map(Value::as_str).collect();
    if !missing.is_empty() {
        text.push_str(&format!("\nMissing tools: {}\n", missing.join(", ")));
    }
    shown.and(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hands_and_instances_are_rows() {
        let hands =
            json!({ "hands": [{ "id": "herald", "name": "Herald", "version": "1", "requirements_met": true }] });
        assert!(hands_table(&hands).render().contains("herald"));
        let none = json!({ "instances": [] });
        assert!(instances_table(&none).is_empty());
        let one = json!({ "instances": [{ "instance_id": "i", "hand_id": "herald", "status": "paused" }] });
        assert!(instances_table(&one).render().contains("paused"));
    }

    #[test]
    fn a_hand_is_shown_with_what_it_lacks() {
        let detail = json!({ "name": "Herald", "version": "1", "description": "News", "missing_tools": ["browser_open"],
            "agents": [{ "role": "main", "coordinator": true, "description": "", "tools": ["shell_exec"],
                "wakes": { "schedule": { "periodic": { "cron": "every 5m" } } } }], "environment": ["NEWS_KEY"],
            "settings": [{ "key": "style", "setting_type": "text", "default": "" }], "requirements": [] });
        let text = info(&detail).text;
        assert!(
            ["Tools of main: shell_exec", "main acts by itself, by schedule", "variables: NEWS_KEY"]
                .iter()
                .all(|part| text.contains(part)),
            "{text}"
        );
        assert!(
            text.contains("style") && text.contains("Missing tools: browser_open") && !text.contains("MET"),
            "{text}"
        );
    }

    #[test]
    fn what_is_both_a_hand_and_its_instances_is_asked_for() {
        let id = "0198a7c1-5d7e-7b1a-8000-000000000001";
        let active = json!({ "instances": [{ "instance_id": id, "hand_id": "herald" }, { "instance_id": "two", "hand_id": "herald" }] });
        let said = is_instance(&active, "herald").unwrap_err().to_string();
        assert!(said.contains(&format!("pass its id: {id}, two;")), "{said}");
        assert!(is_instance(&active, id).unwrap() && is_instance(&active, "two").unwrap());
        assert!(!is_instance(&active, "scribe").unwrap());
    }

    #[test]
    fn values_are_pairs() {
        let set = ["a=b=c".to_owned(), "d=".to_owned()];
        assert_eq!(values(&set).unwrap(), BTreeMap::from([("a", "b=c"), ("d", "")]));
        assert!(values(&["a".to_owned()]).is_err());
    }
}
