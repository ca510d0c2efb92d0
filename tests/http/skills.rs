//! Skills: what agents see of them, and the routes (spec 2, Skills and marketplaces).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;

/// Writes a file of a skill.
pub(crate) fn write(home: &Path, path: &str, content: &str) {
    let path = home.join("skills").join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    fs::write(path, content).expect("the file can be written");
}

/// Writes a `SKILL.md`.
pub(crate) fn skill(home: &Path, name: &str, head: &str, body: &str) {
    let description = if head.contains("description:") { "" } else { "description: About it.\n" };
    write(home, &format!("{name}/SKILL.md"), &format!("---\nname: {name}\n{description}{head}---\n{body}"));
}

/// Has the daemon read what is there.
pub(crate) fn reload(daemon: &Daemon) -> Value {
    daemon.post("/api/skills/reload", &json!({})).expect(200)
}

/// The system text of a request.
fn system(request: &Value) -> String {
    let first = &request["messages"][0];
    if first["role"] == "system" { text(&first["content"]) } else { String::new() }
}

/// Names of the tools that a request offers.
pub(crate) fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.map(|tool| text(&tool["function"]["name"])).collect()
}

/// Has the agent call a tool in a turn, and gives what the model read of it.
pub(crate) fn result(model: &Model, daemon: &Daemon, agent: &str, tool: &str, input: &Value) -> String {
    model.script([Reply::calls(&[("1", tool, &input.to_string())])]);
    daemon.say(agent, "go");
    let request = model.requests().pop().expect("a request");
    let messages = request["messages"].as_array().expect("messages");
    let result = messages.iter().rev().find(|message| message["role"] == "tool").expect("a result");
    text(&result["content"])
}

#[test]
fn the_model_sees_the_list_and_reads_a_skill() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let plain = daemon.agent_with("a", "");
    daemon.say(&plain, "hello");
    let before = model.requests().pop().expect("a request");
    assert!(!system(&before).contains("skill") && offered(&before).is_empty(), "{before}");

    skill(daemon.home(), "greeter", "description: Greets people. Use it to say hello.\n", "Say {baseDir} ahoy.\n");
    write(daemon.home(), "greeter/references/more.md", "Or say moin.");
    write(daemon.home(), "greeter/.hidden", "secret");
    symlink("/etc/passwd", daemon.home().join("skills/greeter/references/link.md")).expect("a link");
    let changed = reload(&daemon);
    assert_eq!((&changed["added"], &changed["total"]), (&json!(["greeter"]), &json!(1)));
    daemon.say(&plain, "hello again");
    let request = model.requests().pop().expect("a request");
    let shown = system(&request);
    assert!(shown.contains("- greeter: Greets people. Use it to say hello.\n"), "{shown}");
    assert!(!shown.contains("ahoy"), "instructions come on demand: {shown}");
    assert_eq!(offered(&request), ["skill_read_file", "skill_list"]);
    daemon.say(&plain, "and again");
    assert_eq!(system(&model.requests().pop().expect("a request")), shown, "prompts begin alike");

    let read = |input: Value| result(&model, &daemon, &plain, "skill_read_file", &input);
    let body = read(json!({ "skill": "greeter" }));
    let folder = daemon.home().canonicalize().expect("the home").join("skills/greeter");
    assert!(body.contains("ahoy.") && body.contains("references/more.md"), "{body}");
    assert!(body.contains(&folder.display().to_string()) || body.contains("skills/greeter ahoy"), "{body}");
    assert!(read(json!({ "skill": "greeter", "path": "references/more.md" })).contains("Or say moin."));
    for path in ["references/link.md", "../../config.toml", "/etc/passwd", ".hidden", "none.md"] {
        let refused = read(json!({ "skill": "greeter", "path": path }));
        assert!(refused.contains("has no file"), "{path}: {refused}");
    }
    assert!(read(json!({ "skill": "other" })).contains("Available skills: greeter"));
    let list = result(&model, &daemon, &plain, "skill_list", &json!({ "query": "GREET" }));
    assert!(list.contains("- greeter 0.1.0: Greets people."), "{list}");
}

#[test]
fn what_a_skill_says_is_untrusted_content() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    skill(daemon.home(), "a", "", "Do it.");
    reload(&daemon);
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"shell_exec\"]\nshell = [\"*\"]\n");
    model.script([
        Reply::calls(&[("1", "skill_read_file", "{\"skill\":\"a\"}")]),
        Reply::calls(&[("2", "shell_exec", "{\"command\":\"true\"}")]),
    ]);
    daemon.say(&agent, "go");
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200);
    let entries = entries["entries"].as_array().expect("entries").clone();
    let tainted = entries.iter().find(|entry| entry["event_type"] == "tool_tainted");
    assert!(tainted.is_some_and(|entry| entry.to_string().contains("skill_read_file")), "{entries:?}");
}

#[test]
fn manifests_restrict_skills_and_stable_freezes_them() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    for name in ["one", "two"] {
        skill(daemon.home(), name, "", "Text.");
    }
    reload(&daemon);
    let [all, some, none] = ["", "skills = [\"two\"]\n", "skills_disabled = true\n"]
        .map(|rest| daemon.agent_with(&format!("a{}", rest.len()), rest));
    let seen = |daemon: &Daemon, agent: &str| {
        daemon.say(agent, "x");
        let shown = system(&model.requests().pop().expect("a request"));
        ["one", "two", "three"].map(|name| shown.contains(&format!("- {name}: ")))
    };
    assert_eq!(seen(&daemon, &all), [true, true, false]);
    assert_eq!(seen(&daemon, &some), [false, true, false]);
    assert_eq!(seen(&daemon, &none), [false, false, false]);
    let refused = result(&model, &daemon, &some, "skill_read_file", &json!({ "skill": "one" }));
    assert!(refused.contains("no skill named"), "{refused}");
    let refused = result(&model, &daemon, &none, "skill_list", &json!({}));
    assert!(refused.contains("not allowed"), "{refused}");

    daemon.put(&format!("/api/agents/{all}/mode"), &json!({ "mode": "Stable" })).expect(200);
    skill(daemon.home(), "one", "", "Another text.");
    skill(daemon.home(), "three", "", "New.");
    reload(&daemon);
    assert_eq!(seen(&daemon, &all), [false, true, false], "what changed is not the skill that was frozen");
    daemon.kill();
    daemon.restart();
    assert_eq!(seen(&daemon, &all), [false, true, false]);
    daemon.put(&format!("/api/agents/{all}/mode"), &json!({ "mode": "Normal" })).expect(200);
    assert_eq!(seen(&daemon, &all), [true, true, true]);
}

#[test]
fn unmet_needs_hide_a_skill_and_the_list_says_why() {
    let model = Model::start();
    let config = format!("{}[skills.config]\n\"own.key\" = \"set\"\n", model.config());
    let daemon = Daemon::with_env(&config, &[("HAVE_IT", "1")]);
    let needs = |needs: &str| format!("metadata: {{\"openclaw\": {{\"requires\": {needs},}}}}\n");
    skill(daemon.home(), "met", &needs("{\"bins\": [\"sh\"], \"env\": [\"HAVE_IT\"], \"config\": [\"own.key\"]}"), "x");
    skill(daemon.home(), "unmet", &needs("{\"bins\": [\"no-such-program\"], \"env\": [\"LACK_IT\"]}"), "x");
    reload(&daemon);
    let list = daemon.get("/api/skills").expect(200);
    let unmet = &list["skills"][1];
    let why = json!(["program no-such-program is not installed", "environment variable LACK_IT is not set"]);
    assert_eq!((&unmet["unmet"], &unmet["enabled"], &unmet["requirements_met"]), (&why, &json!(false), &json!(false)));
    assert_eq!(list["skills"][0]["enabled"], true);
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "x");
    let shown = system(&model.requests().pop().expect("a request"));
    assert!(shown.contains("- met: ") && !shown.contains("unmet"), "{shown}");
    let refused = result(&model, &daemon, &agent, "skill_read_file", &json!({ "skill": "unmet" }));
    assert!(refused.contains("cannot be used here: program no-such-program"), "{refused}");
    assert!(result(&model, &daemon, &agent, "skill_list", &json!({})).contains("LACK_IT is not set"));
    let printed = daemon.cli(&["skill", "list"]);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(printed.contains("unmet: program no-such-program is not installed"), "{printed}");
}

#[test]
fn lists_details_and_files_have_their_shapes() {
    let daemon = Daemon::start();
    skill(daemon.home(), "b", "version: 2.1.0\nauthor: me\nlicense: MIT\ntags: [linux, ops]\n", "Body.\n");
    write(daemon.home(), "b/references/a.md", "reference");
    write(daemon.home(), "b/forms.md", "form");
    write(
        daemon.home(),
        "a/skill.toml",
        "[skill]\nname = \"a\"\nversion = \"1.0.0\"\ndescription = \"A\"\n[runtime]\ntype = \"shell\"\nentry = \"main.sh\"\n\
         [[tools.provided]]\nname = \"a_run\"\ndescription = \"Runs\"\ninput_schema = { type = \"object\" }\n\
         [requirements]\ntools = [\"web_fetch\"]\ncapabilities = [\"NetConnect(api.example.com)\"]\n\
         [[config_vars]]\nkey = \"a.units\"\ndescription = \"Units\"\ndefault = \"metric\"\n",
    );
    write(daemon.home(), "a/main.sh", "echo");
    write(daemon.home(), "broken/SKILL.md", "---\nname: [\n---\n");
    write(daemon.home(), "empty/README.md", "x");
    let changed = reload(&daemon);
    assert_eq!((&changed["status"], &changed["added"]), (&json!("reloaded"), &json!(["a", "b"])));
    let list = daemon.get("/api/skills").expect(200);
    assert_eq!((&list["total"], &list["categories"]), (&json!(2), &json!(["general", "ops"])));
    let row = &list["skills"][0];
    assert_eq!((&row["runtime"], &row["tools_count"], &row["version"]), (&json!("Shell"), &json!(1), &json!("1.0.0")));
    assert_eq!((&row["required_tools"], &row["required_tools_count"]), (&json!(["web_fetch"]), &json!(1)));
    assert_eq!(row["required_capabilities"], json!(["NetConnect(api.example.com)"]));
    assert_eq!((&row["source"], &row["has_prompt_context"]), (&json!({ "type": "local" }), &json!(false)));
    let failed = list["failed"].as_array().expect("failed");
    assert_eq!(failed.len(), 2);
    assert!(text(&failed[0]["error"]).contains("SKILL.md") && failed[1]["folder"] == "empty", "{failed:?}");
    let ops = daemon.get("/api/skills?category=ops").expect(200);
    assert_eq!((&ops["total"], &ops["skills"][0]["name"]), (&json!(1), &json!("b")));

    let shown = |name: &str| daemon.get(&format!("/api/skills/{name}"));
    let detail = shown("b").expect(200);
    assert_eq!(
        (&detail["source"], &detail["license"], &detail["author"]),
        (&json!("Local"), &json!("MIT"), &json!("me"))
    );
    assert_eq!((&detail["prompt_context"], &detail["prompt_context_length"]), (&json!("Body.\n"), &json!(6)));
    assert_eq!(detail["linked_files"], json!({ "files": ["SKILL.md", "forms.md"], "references": ["references/a.md"] }));
    assert_eq!(detail["evolution"], json!({ "versions": [], "use_count": 0, "evolution_count": 0 }));
    let tool = shown("a").expect(200);
    assert_eq!((&tool["tools"][0]["name"], &tool["config_vars"][0]["is_set"]), (&json!("a_run"), &json!(false)));
    assert_eq!(shown("none").expect(404)["code"], "skill_not_found");

    let name = "b";
    let file = |path: &str| daemon.get(&format!("/api/skills/{name}/file?{path}"));
    let found = file("path=references/a.md").expect(200);
    assert_eq!(found, json!({ "name": "b", "path": "references/a.md", "content": "reference", "truncated": false }));
    assert_eq!(file("file=forms.md").expect(200)["content"], "form");
    write(daemon.home(), "b/long.txt", &"x".repeat(300 << 10));
    reload(&daemon);
    let long = file("path=long.txt").expect(200);
    assert_eq!((text(&long["content"]).len(), &long["truncated"]), (256 << 10, &json!(true)));
    for path in ["../a/main.sh", "%2fetc%2fpasswd", "references/../../a/main.sh", "references", "none"] {
        assert_eq!(file(&format!("path={path}")).expect(404)["code"], "skill_file_not_found", "{path}");
    }
    assert_eq!(file("").expect(400)["field"], "path");
    assert!(daemon.get("/api/skills/none/file?path=x").expect(404)["code"] == "skill_not_found");
    let names: Vec<_> = fs::read_dir(daemon.home().join("skills/b")).expect("the folder").collect();
    assert_eq!(names.len(), 4, "nothing is written into a skill");
    let info = daemon.cli(&["skill", "info", "b"]);
    assert!(String::from_utf8_lossy(&info.stdout).contains("File references/a.md"));
    let reloaded = daemon.cli(&["skill", "reload"]);
    assert!(String::from_utf8_lossy(&reloaded.stdout).starts_with("2 skills: 0 added, 0 updated, 0 removed."));
}

#[test]
fn a_message_can_name_the_skill() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    skill(daemon.home(), "pdf", "", "x");
    skill(daemon.home(), "quiet", "user-invocable: false\n", "x");
    skill(daemon.home(), "manual", "disable-model-invocation: true\n", "Only by name.");
    reload(&daemon);
    let agent = daemon.agent_with("a", "");
    let heard = |message: &str| {
        daemon.say(&agent, message);
        let request = model.requests().pop().expect("a request");
        let last = request["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
        text(&last["content"])
    };
    let invoked = heard("/pdf  merge a and b");
    assert!(
        invoked.starts_with("/pdf merge a and b\n") && invoked.contains("skill_read_file (skill \"pdf\")"),
        "{invoked}"
    );
    assert_eq!(heard("/quiet please"), "/quiet please");
    assert_eq!(heard("/nothing"), "/nothing");
    assert!(heard("/manual").contains("invokes the skill \"manual\""));
    assert!(!system(&model.requests().pop().expect("a request")).contains("- manual"));
    assert!(
        result(&model, &daemon, &agent, "skill_read_file", &json!({ "skill": "manual" })).contains("Only by name.")
    );
    let command = |command: &str| daemon.post(&format!("/api/agents/{agent}/command"), &json!({ "command": command }));
    let answer = text(&command("/pdf merge").expect(200)["response"]);
    assert!(answer.starts_with("echo: /pdf merge"), "{answer}");
    command("/nothing").refused(400);
}

#[test]
fn a_compacted_conversation_keeps_what_it_read() {
    let model = Model::start();
    model.server.respond(|request| match request.wants_summary() {
        true => Reply::text("They talked."),
        false => Reply::text(format!("echo: {}", request.last_user())),
    });
    let daemon = Daemon::with(&model.config());
    skill(daemon.home(), "greeter", "", "Always say ahoy.");
    reload(&daemon);
    let agent = daemon.agent_with("a", "");
    result(&model, &daemon, &agent, "skill_read_file", &json!({ "skill": "greeter" }));
    for _ in 0..3 {
        daemon.say(&agent, &"many words ".repeat(300));
    }
    daemon.poke(&format!("/api/agents/{agent}/session/compact")).expect(200);
    daemon.say(&agent, "and now?");
    let request = model.requests().pop().expect("a request");
    let messages = request["messages"].as_array().expect("messages");
    assert!(messages.iter().all(|message| message["role"] != "tool"), "the call itself is gone: {request}");
    assert!(system(&request).contains("Always say ahoy."), "{}", system(&request));
    assert!(!request.to_string().contains("Skills that were read"), "{request}");
}
