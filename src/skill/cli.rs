//! `skill`: the skills of the daemon.

use clap::Subcommand;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Shown, Table};
use crate::kernel::cli::{Error, Run};
use crate::kernel::percent::encoded;

/// Subcommands of `skill`.
#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List skills, and what unusable ones are missing
    List {
        /// Only skills of this category
        #[arg(long)]
        category: Option<String>,
    },
    /// Show a skill: its tools, needs, settings and files
    Info {
        /// The skill's name
        name: String,
    },
    /// Reload the skill folders
    Reload,
}

impl Run for Skills {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let answer = match &self {
            Self::List { category: None } => context.block_on(client.get("/api/skills", &[]))?,
            Self::List { category: Some(category) } => {
                context.block_on(client.get("/api/skills", &[("category", category.as_str())]))?
            }
            Self::Info { name } => {
                let path = format!("/api/skills/{}", encoded(name));
                context.block_on(client.get(&path, &[]))?
            }
            Self::Reload => context.block_on(client.post("/api/skills/reload", None))?,
        };
        context.print(&answer, |answer| match self {
            Self::List { .. } => listed(answer),
            Self::Info { .. } => shown(answer).into(),
            Self::Reload => reloaded(answer).into(),
        })
    }
}

fn listed(answer: &Value) -> Shown {
    let columns = [
        ("SKILL", "/name"),
        ("VERSION", "/version"),
        ("RUNTIME", "/runtime"),
        ("CATEGORY", "/category"),
        ("TOOLS", "/tools_count"),
        ("ENABLED", "/enabled"),
    ];
    let hint = "Find some with `agentsvc skill search`.";
    let shown = Shown::from(Table::of("skills", output::items(answer, "skills"), &columns).hint(hint));
    let mut text = String::new();
    for skill in output::items(answer, "skills") {
        for need in skill["unmet"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            text.push_str(&format!("{}: {need}\n", skill["name"].as_str().unwrap_or_default()));
        }
    }
    text.push_str(&failed(answer));
    shown.and(text)
}

fn failed(answer: &Value) -> String {
    let line = |failed: &Value| {
        let of = |key: &str| failed[key].as_str().unwrap_or_default();
        format!("{} was not loaded: {}\n", of("folder"), of("error"))
    };
    output::items(answer, "failed").map(line).collect()
}

fn shown(skill: &Value) -> String {
    let of = |key: &str| skill[key].as_str().unwrap_or_default().to_owned();
    let mut text = format!("{} {} ({})\n{}\n", of("name"), of("version"), of("runtime"), of("description"));
    for (title, key) in [("Author", "author"), ("License", "license"), ("Category", "category"), ("Folder", "path")] {
        if !of(key).is_empty() {
            text.push_str(&format!("{title}: {}\n", of(key)));
        }
    }
    let words = |key: &str| {
        let list = skill[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        list.map(str::to_owned).collect::<Vec<_>>()
    };
    for (title, key) in [
        ("Needs tools", "required_tools"),
        ("Needs capabilities", "required_capabilities"),
        ("Asks for variables", "env_passthrough"),
        ("Missing", "unmet"),
        ("Note", "warnings"),
    ] {
        if !words(key).is_empty() {
            text.push_str(&format!("{title}: {}\n", words(key).join("; ")));
        }
    }
    for tool in skill["tools"].as_array().into_iter().flatten() {
        let of = |key: &str| tool[key].as_str().unwrap_or_default();
        text.push_str(&format!("Tool {}: {}\n", of("name"), of("description")));
    }
    for setting in skill["config_vars"].as_array().into_iter().flatten() {
        let state = if setting["is_set"] == true { "set" } else { "not set" };
        let of = |key: &str| setting[key].as_str().unwrap_or_default();
        text.push_str(&format!("Setting {} ({state}): {}\n", of("key"), of("description")));
    }
    let files = skill["linked_files"].as_object().into_iter().flatten();
    for file in files.flat_map(|(_, files)| files.as_array()).flatten().filter_map(Value::as_str) {
        text.push_str(&format!("File {file}\n"));
    }
    text
}

fn reloaded(answer: &Value) -> String {
    let count = |key: &str| answer[key].as_array().map_or(0, Vec::len);
    let (added, updated, removed) = (count("added"), count("updated"), count("removed"));
    let mut text = format!("{} skills: {added} added, {updated} updated, {removed} removed.\n", answer["total"]);
    text.push_str(&failed(answer));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_say_what_is_missing_and_what_failed() {
        let skill = json!({ "name": "gh", "version": "1.0.0", "runtime": "PromptOnly", "category": "dev",
            "tools_count": 0, "enabled": false, "unmet": ["program gh is not installed"] });
        let text = listed(&json!({ "skills": [skill], "failed": [{ "folder": "x", "error": "no" }] })).text;
        assert!(
            text.contains("gh: program gh is not installed\n") && text.contains("x was not loaded: no\n"),
            "{text}"
        );
    }

    #[test]
    fn a_skill_is_shown_with_its_tools_and_files() {
        let skill = json!({ "name": "gh", "version": "1.0.0", "runtime": "Python", "description": "Does.",
            "author": "", "tools": [{ "name": "gh_run", "description": "Runs" }], "unmet": [],
            "config_vars": [{ "key": "gh.host", "description": "Host", "is_set": true }],
            "linked_files": { "scripts": ["scripts/a.py"] } });
        let text = shown(&skill);
        for line in ["gh 1.0.0 (Python)", "Tool gh_run: Runs", "Setting gh.host (set): Host", "File scripts/a.py"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("Author") && !text.contains("Missing"), "{text}");
    }

    #[test]
    fn a_reload_is_counted() {
        let answer = json!({ "added": ["a"], "updated": [], "removed": [], "total": 7, "failed": [] });
        assert_eq!(reloaded(&answer), "7 skills: 1 added, 0 updated, 0 removed.\n");
    }
}
