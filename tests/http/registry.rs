//! What others have made and put into registries: agents and workflows that come in as they are.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::workflows::{harness, prompts};

/// Names a directory with content of others, which is tested as it is.
const CONTENT: &str = "AGENTSVC_TEST_CONTENT";

/// An agent as registries have them.
const AGENT: &str = r#"name = "scout"
version = "0.4.3"
module = "builtin:chat"
profile = "research"

[metadata.routing]
aliases = ["look around"]

[model]
provider = "default"
model = "default"
system_prompt = "You look around."

[resources]
max_llm_tokens_per_hour = 50000

[i18n.de]
name = "Späher"
"#;

/// A workflow as registries have them.
const WORKFLOW: &str = r#"id = "compare"
name = "Compare"
description = "Compares two things"
tags = ["thinking"]

[[parameters]]
name = "topic"
param_type = "string"
required = true

[[parameters]]
name = "tone"
param_type = "string"
required = false
default = "plain"

[[steps]]
name = "for"
prompt_template = "For {{topic}}, {{tone}}"

[[steps]]
name = "against"
prompt_template = "Against {{topic}}"

[[steps]]
name = "verdict"
prompt_template = "{{for}} / {{against}}"
depends_on = ["for", "against"]

[i18n.de]
name = "Vergleich"
"#;

fn run(daemon: &Daemon, workflow: &Value, input: &str) -> Value {
    let id = text(&workflow["workflow_id"]);
    daemon.post(&format!("/api/workflows/{id}/run"), &json!({ "input": input })).expect(200)
}

#[test]
fn an_agent_has_the_tools_of_its_profile_and_its_hourly_limit() {
    let daemon = Daemon::start();
    let made = daemon.post("/api/agents", &json!({ "manifest_toml": AGENT })).expect(201);
    let id = text(&made["agent_id"]);
    let budget = daemon.get(&format!("/api/budget/agents/{id}")).expect(200).to_string();
    assert!(budget.contains("50000"), "{budget}");
    let tools = daemon.get(&format!("/api/agents/{id}/tools")).expect(200).to_string();
    assert!(tools.contains("web_search") && !tools.contains("shell_exec"), "{tools}");
    let wrong = AGENT.replace("\"research\"", "\"everything\"");
    daemon.post("/api/agents", &json!({ "manifest_toml": wrong })).refused_field(400, "profile");
}

#[test]
fn a_workflow_is_imported_and_run() {
    let (model, daemon, _) = harness();
    let import = |body: &Value| daemon.post("/api/workflows/import", body);
    let body = json!({ "workflow_toml": WORKFLOW, "agent_name": "a" });
    let made = import(&body).expect(201);
    assert_eq!(made["name"], "Compare");
    let shown = daemon.get(&format!("/api/workflows/{}", text(&made["workflow_id"]))).expect(200);
    let modes: Vec<_> = shown["steps"].as_array().unwrap().iter().map(|step| step["mode"].clone()).collect();
    assert_eq!(modes, ["fan_out", "fan_out", "sequential"]);
    // A text is the only parameter that is required; an object names them all.
    let done = run(&daemon, &made, "tea");
    assert_eq!(done["output"], "echo: echo: For tea, plain / echo: Against tea");
    let done = run(&daemon, &made, r#"{"topic": "tea", "tone": "short"}"#);
    assert_eq!(done["output"], "echo: echo: For tea, short / echo: Against tea");
    assert_eq!(prompts(&model).len(), 6);
    let fixed =
        import(&json!({ "workflow_toml": WORKFLOW, "agent_name": "a", "values": { "topic": "rain" } })).expect(201);
    assert_eq!(run(&daemon, &fixed, "ignored")["output"], "echo: echo: For rain, plain / echo: Against rain");

    let count = || daemon.get("/api/workflows").expect(200).as_array().map(Vec::len);
    let before = count();
    import(&json!({ "agent_name": "a" })).refused_field(400, "workflow_toml");
    import(&json!({ "workflow_toml": "name = ", "agent_name": "a" })).refused_field(400, "workflow_toml");
    import(&json!({ "workflow_toml": WORKFLOW })).refused_field(400, "agent_id");
    import(&json!({ "workflow_toml": WORKFLOW, "agent_name": "a", "values": { "x": "1" } }))
        .refused_field(400, "values");
    let circle = WORKFLOW.replace("name = \"for\"\n", "name = \"for\"\ndepends_on = [\"verdict\"]\n");
    import(&json!({ "workflow_toml": circle, "agent_name": "a" })).refused_field(400, "workflow_toml");
    assert_eq!(count(), before);
}

/// The files of `folder` of the content of others.
fn content(folder: &str) -> Option<Vec<PathBuf>> {
    let folder = Path::new(&std::env::var_os(CONTENT)?).join(folder);
    let files = fs::read_dir(folder).expect("the content").map(|entry| entry.expect("an entry").path());
    let files: Vec<PathBuf> = files.collect();
    assert!(!files.is_empty());
    Some(files)
}

#[test]
fn agents_of_others_load() {
    let Some(folders) = content("agents") else { return };
    let daemon = Daemon::start();
    // The first start made one that has the name of one of these.
    for agent in daemon.get("/api/agents").expect(200).as_array().expect("the agents") {
        daemon.delete(&format!("/api/agents/{}", text(&agent["id"]))).expect(200);
    }
    for folder in folders {
        let manifest = fs::read_to_string(folder.join("agent.toml")).unwrap();
        let made = daemon.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201);
        let id = text(&made["agent_id"]);
        let line = manifest.lines().find(|line| line.starts_with("max_llm_tokens_per_hour")).expect("a limit");
        let most = line.rsplit(' ').next().expect("a number");
        let budget = daemon.get(&format!("/api/budget/agents/{id}")).expect(200).to_string();
        assert!(budget.contains(most), "{}: {budget}", folder.display());
    }
}

#[test]
fn workflows_of_others_are_imported_and_run() {
    let Some(files) = content("workflows") else { return };
    let (_model, daemon, _) = harness();
    for file in files {
        let toml = fs::read_to_string(&file).unwrap();
        let made =
            daemon.post("/api/workflows/import", &json!({ "workflow_toml": toml, "agent_name": "a" })).expect(201);
        // Every parameter, and more than there are.
        let names = toml.split("[[parameters]]").skip(1).filter_map(|part| part.split('"').nth(1));
        let input: serde_json::Map<_, _> = names.map(|name| (name.to_owned(), format!("<{name}>").into())).collect();
        let done = run(&daemon, &made, &Value::Object(input).to_string());
        assert!(!text(&done["output"]).contains("{{"), "{}: {done}", file.display());
    }
}
