//! The command line: what people type, what programs read, what the exit codes mean (issue, CLI).

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, command, text};

#[track_caller]
fn out(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    let text = out(output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"))
}

#[test]
fn status_for_people_and_programs() {
    let daemon = Daemon::start();
    assert!(out(&daemon.cli(&["status"])).contains("running"));
    assert_eq!(json_of(&daemon.cli(&["status", "--json"]))["status"], "running");
}

#[test]
fn without_a_daemon_commands_fail_with_a_reason() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [&["status"][..], &["agent", "list"], &["message", "assistant", "hi"], &["stop"]] {
        let output = command(home.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?} says why");
    }
}

#[test]
fn usage_errors_are_another_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let output = command(home.path()).args(["agent", "no-such-verb"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&command(home.path()).arg("--version").output().unwrap()).contains(env!("CARGO_PKG_VERSION")));
    let help = out(&command(home.path()).arg("--help").output().unwrap());
    for word in [
        "init",
        "start",
        "stop",
        "status",
        "agent",
        "chat",
        "message",
        "logs",
        "config",
        "migrate",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn agents_are_made_listed_shown_and_killed() {
    let daemon = Daemon::start();
    let file = daemon.home().join("scribe.toml");
    std::fs::write(&file, "name = \"scribe\"\ndescription = \"Writes\"\n").unwrap();
    out(&daemon.cli(&["agent", "new", file.to_str().unwrap()]));
    assert!(out(&daemon.cli(&["agent", "list"])).contains("scribe"));
    let list = json_of(&daemon.cli(&["agent", "list", "--json"]));
    assert!(list.as_array().unwrap().iter().any(|a| a["name"] == "scribe"), "{list}");
    let shown = json_of(&daemon.cli(&["agent", "show", "scribe", "--json"]));
    assert_eq!(shown["description"], "Writes");
    assert!(out(&daemon.cli(&["agent", "show", &text(&shown["id"])])).contains("scribe"));
    assert_eq!(out(&daemon.cli(&["agent", "delete", "scribe"])), "deleted scribe\n");
    assert!(!out(&daemon.cli(&["agent", "list"])).contains("scribe"));
    let again = daemon.cli(&["agent", "kill", "scribe"]);
    assert!(again.status.code() == Some(4) && String::from_utf8_lossy(&again.stderr).contains("scribe"));
}

#[test]
fn a_message_is_answered() {
    let daemon = Daemon::start();
    assert!(!out(&daemon.cli(&["message", "assistant", "hello"])).trim().is_empty());
    let answer = json_of(&daemon.cli(&["message", "assistant", "hello", "--json"]));
    assert!(answer["response"].is_string(), "{answer}");
    let unknown = daemon.cli(&["message", "nobody", "hello"]);
    assert!(unknown.status.code() == Some(4) && String::from_utf8_lossy(&unknown.stderr).contains("nobody"));
}

#[test]
fn chat_reads_lines_and_streams_answers() {
    let daemon = Daemon::start();
    let mut chat = command(daemon.home());
    chat.args(["chat", "assistant"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut chat = chat.spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"hello\nhow are you?\n").unwrap();
    let said = out(&chat.wait_with_output().unwrap());
    assert!(said.lines().filter(|line| !line.trim().is_empty()).count() >= 2, "{said}");
    let agents = daemon.get("/api/agents").expect(200);
    let session = text(&daemon.detail(&text(&agents[0]["id"]))["session_id"]);
    assert_eq!(daemon.transcript(&session).len(), 4);
}

#[test]
fn init_makes_a_home_and_config_is_shown_and_checked() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| command(home.path()).args(arguments).output().unwrap();
    out(&run(&["init"]));
    assert!(home.path().join("config.toml").exists());
    out(&run(&["config", "check"]));
    out(&run(&["config", "show"]));
    let shown = json_of(&run(&["config", "show", "--json"]));
    assert_eq!(shown["api_listen"], "127.0.0.1:4545");
    out(&run(&["init"]));
    std::fs::write(home.path().join("config.toml"), "api_key = \"top-secret\"\n").unwrap();
    assert!(!out(&run(&["config", "show"])).contains("top-secret"));
    std::fs::write(home.path().join("config.toml"), "tick = 1\n").unwrap();
    let checked = run(&["config", "check"]);
    assert!(!checked.status.success() && String::from_utf8_lossy(&checked.stderr).contains("tick"));
}

#[test]
fn init_makes_a_strong_key_that_the_command_line_finds() {
    let daemon = Daemon::start();
    let (home, config) = (daemon.home(), daemon.home().join("config.toml"));
    let key = || {
        let table: toml::Table = std::fs::read_to_string(&config).unwrap().parse().unwrap();
        table.get("api_key").map(|key| key.as_str().unwrap().to_owned())
    };
    std::fs::set_permissions(&config, Permissions::from_mode(0o644)).unwrap();
    let made = json_of(&command(home).args(["init", "--key", "--json"]).output().unwrap());
    assert_eq!((&made["api_key_created"], &made["config_created"]), (&Value::Bool(true), &Value::Bool(false)));
    let first = key().unwrap();
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(std::fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!made.to_string().contains(&first), "it is not shown");
    let again = command(home).args(["init", "--key"]).output().unwrap();
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("has an api_key"));
    assert_eq!(key(), Some(first.clone()));
    // The daemon takes it, and the command line finds it.
    daemon.post("/api/config/reload", &Value::Null).expect(200);
    assert_eq!(daemon.get("/api/agents").status, 401);
    out(&daemon.cli(&["agent", "list"]));
    // A home without any file, and one that does not start without a key.
    let fresh = tempfile::tempdir().unwrap();
    out(&command(fresh.path()).args(["init", "--key"]).output().unwrap());
    let other = std::fs::read_to_string(fresh.path().join("config.toml")).unwrap();
    assert!(other.contains("api_key = \"") && !other.contains(&first));
    std::fs::write(fresh.path().join("config.toml"), "api_listen = \"0.0.0.0:0\"\n").unwrap();
    let start = command(fresh.path()).arg("start").output().unwrap();
    assert!(String::from_utf8_lossy(&start.stderr).contains("run `agentsvc init --key`"));
    out(&command(fresh.path()).args(["init", "--key"]).output().unwrap());
    out(&command(fresh.path()).args(["config", "check"]).output().unwrap());
}

#[test]
fn a_detached_daemon_answers_once_the_command_returns() {
    /// Ends the daemon whatever the test finds.
    struct Ends<'a>(&'a std::path::Path);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            let _stopped = command(self.0).arg("stop").output();
        }
    }

    let home = tempfile::tempdir().unwrap();
    let _ends = Ends(home.path());
    let start = || command(home.path()).args(["start", "--detach", "--listen", "127.0.0.1:0"]).output().unwrap();
    let started = start();
    let said = out(&started) + &String::from_utf8_lossy(&started.stderr);
    assert!(said.contains("agentsvc is running at http://127.0.0.1:") && said.contains("`agentsvc stop`"), "{said}");
    let status: Value =
        serde_json::from_str(&out(&command(home.path()).args(["status", "--json"]).output().unwrap())).unwrap();
    assert_eq!(status["status"], "running", "{status}");
    let again = start();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("the daemon did not start"), "{again:?}");
    out(&command(home.path()).arg("stop").output().unwrap());
}

#[test]
fn stop_ends_the_daemon() {
    let mut daemon = Daemon::start();
    out(&daemon.cli(&["stop"]));
    assert!(daemon.wait().success());
}

#[test]
fn the_key_of_the_home_is_used() {
    let daemon = Daemon::with("api_key = \"k\"\n");
    out(&daemon.cli(&["agent", "list"]));
    let mut wrong = command(daemon.home());
    wrong.env("AGENTSVC_API_KEY", "wrong").args(["agent", "list"]);
    let code = wrong.output().unwrap().status.code();
    assert!(code == Some(5) || code == Some(0), "the home's own key or a refusal: {code:?}");
}

#[test]
fn logs_and_completions() {
    let daemon = Daemon::start();
    daemon.agent("noise");
    out(&daemon.cli(&["logs"]));
    for shell in ["bash", "zsh", "fish"] {
        assert!(out(&daemon.cli(&["completions", shell])).contains("agentsvc"));
    }
}

/// Routes are subcommands: with names of agents for their ids, tables for people and JSON for programs.
#[test]
fn every_noun_has_the_same_verbs() {
    let daemon = Daemon::start();
    daemon.agent("scout");
    let schedule =
        ["schedule", "create", "--agent", "scout", "--cron", "@daily", "--prompt", "What is new?", "--name", "news"];
    let made = json_of(&daemon.cli(&[&schedule[..], &["--json"]].concat()));
    let id = text(&made["id"]);
    let listed = out(&daemon.cli(&["schedule", "ls"]));
    assert!(listed.starts_with("ID ") && listed.contains(&id) && listed.contains("news"), "{listed}");
    assert!(out(&daemon.cli(&["schedule", "show", &id])).contains("@daily"));
    let changed = json_of(&daemon.cli(&["schedule", "edit", &id, "--enabled=false", "--json"]));
    assert_eq!(changed["enabled"], false);
    assert!(daemon.cli(&["schedule", "rm", &id]).status.success());
    assert_eq!(out(&daemon.cli(&["schedule", "list"])), "");
    for noun in ["session", "task", "trigger", "workflow", "goal", "webhook", "agent-type", "tool", "agent", "approval"]
    {
        let done = daemon.cli(&[noun, "ls"]);
        assert!(done.status.success(), "{noun}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let file = daemon.home().join("goal.json");
    fs::write(&file, r#"{"title": "from a file", "status": "in_progress"}"#).unwrap();
    let file = file.display().to_string();
    let goal = json_of(&daemon.cli(&["goal", "new", "--from", &file, "--title", "from an option", "--json"]));
    assert_eq!((&goal["title"], &goal["status"]), (&json!("from an option"), &json!("in_progress")));
    assert_eq!(json_of(&daemon.cli(&["api", "post", "/api/goals", "title=third"]))["title"], "third");
    let typo = daemon.cli(&["schedule", "create", "--agent", "scuot", "--cron", "@daily", "--prompt", "x"]);
    assert_eq!(typo.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&typo.stderr).contains("did you mean scout?"));
}

/// What fails says why on standard error.
#[track_caller]
fn refusal(output: &Output, code: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    error
}

#[test]
fn names_stand_for_ids_everywhere() {
    let daemon = Daemon::start();
    daemon.agent("scout");
    let make = |arguments: &[&str]| json_of(&daemon.cli(&[arguments, &["--json"]].concat()));
    let schedule = ["schedule", "create", "--agent", "scout", "--cron", "@daily", "--prompt", "x", "--name", "news"];
    let first = text(&make(&schedule)["id"]);
    assert_eq!(make(&["schedule", "show", "news"])["id"], first);
    assert_eq!(make(&["schedule", "edit", "news", "--enabled=false"])["enabled"], false);
    let missing = refusal(&daemon.cli(&["schedule", "delete", "newz"]), 4);
    assert!(missing.contains("schedule newz does not exist; did you mean news?"), "{missing}");
    let missing = refusal(&daemon.cli(&["schedule", "delete", "weather"]), 4);
    assert!(missing.contains("list them with `agentsvc schedule list`"), "{missing}");
    // Two of one name: nothing is changed, and both ids are told.
    let second = text(&make(&schedule)["id"]);
    let ambiguous = refusal(&daemon.cli(&["schedule", "delete", "news"]), 2);
    assert!(ambiguous.contains(&first) && ambiguous.contains(&second), "{ambiguous}");
    assert!(daemon.cli(&["schedule", "delete", &second]).status.success());
    assert!(daemon.cli(&["schedule", "delete", "news"]).status.success());
    assert_eq!(out(&daemon.cli(&["schedule", "list"])), "");
    // Titles, labels, and names in options.
    let goal = text(&make(&["goal", "create", "--title", "ship it", "--agent", "scout"])["id"]);
    let part = make(&["goal", "create", "--title", "write it", "--parent-id", "ship it"]);
    assert_eq!(part["parent_id"], goal);
    assert_eq!(make(&["goal", "children", "ship it"])["children"][0]["title"], "write it");
    let session = text(&make(&["agent", "session", "scout"])["id"]);
    make(&["session", "label", &session, "--label", "main"]);
    assert_eq!(make(&["session", "show", "main"])["id"], session);
    let steps = r#"[{"name": "a", "agent_name": "scout", "prompt": "{{input}}"}]"#;
    make(&["workflow", "create", "--name", "nightly", "--steps", steps]);
    assert!(daemon.cli(&["workflow", "run", "nightly", "--input", "x"]).status.success());
    make(&["task", "create", "--title", "sweep"]);
    assert!(daemon.cli(&["task", "delete", "sweep"]).status.success());
    // A trigger goes by its agent, as long as that has one.
    let trigger =
        ["trigger", "create", "--agent", "scout", "--pattern", r#"{"task_failed": {}}"#, "--prompt-template", "x"];
    let only = text(&make(&trigger)["trigger_id"]);
    assert_eq!(make(&["trigger", "show", "scout"])["id"], only);
    make(&trigger);
    assert!(refusal(&daemon.cli(&["trigger", "delete", "scout"]), 2).contains("agent scout has 2 triggers"));
    let wrong = refusal(&daemon.cli(&["schedule", "create", "--agent", "scout", "--cron", "x", "--prompt", "x"]), 1);
    assert!(wrong.contains("see `agentsvc schedule create --help`"), "{wrong}");
    // Commands that are not made from routes.
    out(&daemon.cli(&["key", "create", "laptop", "--role", "owner"]));
    assert!(refusal(&daemon.cli(&["key", "revoke", "lap"]), 4).contains("did you mean laptop?"));
    assert!(daemon.cli(&["key", "revoke", "laptop"]).status.success());
    out(&daemon.cli(&["snapshot", "create", "--label", "before"]));
    assert!(out(&daemon.cli(&["snapshot", "restore", "before"])).starts_with("dry run"));
    assert!(refusal(&daemon.cli(&["snapshot", "rm", "before", "none"]), 4).contains("snapshot none does not exist"));
    assert!(daemon.cli(&["snapshot", "rm", "before"]).status.success());
    assert!(refusal(&daemon.cli(&["snapshot", "rm", "before"]), 4).contains("snapshot before does not exist"));
}

#[test]
fn a_session_goes_by_its_label_its_first_line_or_the_beginning_of_its_id() {
    let daemon = Daemon::start();
    let (agent, other) = (daemon.agent("scout"), daemon.agent("other"));
    let new = |agent: &str, body: &Value| {
        text(&daemon.post(&format!("/api/agents/{agent}/sessions"), body).expect(201)["session_id"])
    };
    let (work, plain) = (new(&agent, &json!({ "label": "work" })), new(&agent, &json!({})));
    let sent = |session: &str| daemon.cli(&["message", "scout", "hi", "--session", session, "--json"]);
    assert_eq!(json_of(&sent("work"))["session_id"], work);
    daemon.say_in(&agent, &plain, "plan the trip\nto the sea");
    assert_eq!(json_of(&sent("plan the trip"))["session_id"], plain);
    assert_eq!(json_of(&sent("plan the…"))["session_id"], plain);
    assert_eq!(json_of(&sent(&plain[..35].to_uppercase()))["session_id"], plain);
    assert_eq!(json_of(&daemon.cli(&["session", "show", "plan the trip", "--json"]))["id"], plain);
    // Ids of the same moment begin alike: all are told, and nothing is sent.
    let ambiguous = refusal(&sent(&plain[..4]), 2);
    assert!(ambiguous.contains(&work) && ambiguous.contains(&plain), "{ambiguous}");
    daemon.say_in(&agent, &new(&agent, &json!({})), "plan the trip");
    assert!(refusal(&sent("plan the trip"), 2).contains("2 sessions match plan the trip"));
    // Sessions of others are not meant, nor part of a line, and a label is not made.
    new(&other, &json!({ "label": "foreign" }));
    assert!(refusal(&sent("foreign"), 4).contains("session foreign does not exist"));
    assert!(refusal(&sent("plan"), 4).contains("agentsvc session list"));
    let arguments = ["chat", "scout", "--session", "work"];
    let mut chat = command(daemon.home()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    out(&chat.wait_with_output().unwrap());
    assert_eq!(daemon.transcript(&work).len(), 4);
    assert_eq!(daemon.transcript(&plain).len(), 8);
}

/// A list that is longer than a page is read to its end.
#[test]
fn a_name_on_a_later_page_is_found() {
    let daemon = Daemon::with("rate_limit_per_second = 100000\n");
    for number in 0..1_005 {
        daemon.post("/api/goals", &json!({ "title": format!("goal {number}") })).expect(201);
    }
    for title in ["goal 0", "goal 1004"] {
        assert_eq!(json_of(&daemon.cli(&["goal", "show", title, "--json"]))["title"], title);
    }
}

#[test]
fn tables_have_names_of_agents_and_json_has_ids() {
    let daemon = Daemon::start();
    let agent = daemon.agent("scout");
    out(&daemon.cli(&["schedule", "create", "--agent", "scout", "--cron", "@daily", "--prompt", "x"]));
    out(&daemon.cli(&["goal", "create", "--title", "ship it", "--agent", "scout"]));
    let pattern = r#"{"task_failed": {}}"#;
    let trigger = ["trigger", "create", "--agent", "scout", "--pattern", pattern, "--prompt-template", "x"];
    out(&daemon.cli(&trigger));
    out(&daemon.cli(&["task", "create", "--title", "sweep", "--assignee", "scout"]));
    out(&daemon.cli(&["task", "claim", "sweep", "--agent", "scout"]));
    out(&daemon.cli(&["event", "create", "--event-type", "deployed", "--agent", "scout"]));
    for command in ["schedule", "trigger", "goal", "session", "task", "audit", "event"] {
        let table = out(&daemon.cli(&[command, "list"]));
        assert!(table.contains("scout") && !table.contains("AGENT ID"), "{command}: {table}");
        let json = out(&daemon.cli(&[command, "list", "--json"]));
        assert!(json.contains(&agent), "{command}: {json}");
        let has_id = command != "audit" && table.contains(&agent);
        assert!(!has_id, "{command}: {table}");
    }
}

#[test]
fn recent_events_are_listed() {
    let daemon = Daemon::start();
    daemon.agent("scout");
    for number in 0..3 {
        out(&daemon.cli(&["event", "create", "--event-type", &format!("deployed.{number}"), "--agent", "scout"]));
    }
    let listed = |options: &[&str]| json_of(&daemon.cli(&[&["event", "list", "--json"], options].concat()));
    let types = |answer: &Value| {
        let events = answer["events"].as_array().unwrap().iter();
        events.map(|event| text(&event["event"]["event_type"])).collect::<Vec<_>>()
    };
    assert_eq!(types(&listed(&["--kind", "custom"])), ["deployed.0", "deployed.1", "deployed.2"]);
    assert_eq!(types(&listed(&["--kind", "custom", "-n", "1"])), ["deployed.2"]);
    assert_eq!(listed(&["--kind", "task_failed"])["events"], json!([]));
    let table = out(&daemon.cli(&["event", "list", "--agent", "scout"]));
    assert!(table.starts_with("TIME ") && table.contains("  deployed.1\n"), "{table}");
    assert!(refusal(&daemon.cli(&["event", "list", "--kind", "nonsense"]), 1).contains("unknown event kind"));
}

/// The words that people try first are understood.
#[test]
fn usual_words_are_commands() {
    let daemon = Daemon::start();
    assert!(out(&daemon.cli(&["open", "--print"])).starts_with("http://127.0.0.1:"));
    assert!(out(&daemon.cli(&["version"])).starts_with("agentsvc "));
    assert!(out(&daemon.cli(&["models", "list"])).starts_with("PROVIDER "));
    assert!(daemon.cli(&["event", "create", "--event-type", "deployed"]).status.success());
    let audit = out(&daemon.cli(&["audit", "recent"]));
    assert!(audit.lines().count() > 1 && !audit.contains("\"actor\""), "{audit}");
    assert!(out(&daemon.cli(&["audit", "list"])).lines().count() > 1);
    assert!(daemon.cli(&["budget", "list"]).status.success());
    let usage = out(&daemon.cli(&["usage", "summary"]));
    assert!(usage.contains("today requests"), "{usage}");
    let help = String::from_utf8_lossy(&daemon.cli(&["--help"]).stdout).into_owned();
    assert_eq!(help.matches("\n  workflow ").count(), 1, "{help}");
}

/// Where the user has no systemd, nothing is left of a service.
#[test]
fn a_service_that_cannot_be_installed_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let programs = home.path().join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/bin/false", programs.join("systemctl")).unwrap();
    for (path, why) in [(&*programs, "systemctl --user daemon-reload"), (home.path(), "systemctl was not found")] {
        let done = command(home.path()).args(["service", "install"]).env("PATH", path).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains(why) && said.contains("agentsvc start --detach"), "{said}");
        assert!(!home.path().join(".config").exists(), "{said}");
    }
}

/// On a terminal, `start` says where the daemon is, and leaves its log to the files.
#[test]
fn a_person_who_starts_it_reads_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("config.toml"), "api_listen = \"127.0.0.1:0\"\n").unwrap();
    let daemon = format!("{} start", env!("CARGO_BIN_EXE_agentsvc"));
    let mut started = Command::new("script");
    started.args(["-qefc", &daemon, "/dev/null"]).env("AGENTSVC_HOME", home.path()).env_remove("RUST_LOG");
    let mut started = started.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(started.stdout.take().unwrap()).lines();
    let mut shown = Vec::new();
    for line in lines.map_while(Result::ok) {
        shown.push(line);
        if shown.last().is_some_and(|line| line.contains("agentsvc logs -f")) {
            break;
        }
    }
    let stopped = command(home.path()).arg("stop").status().unwrap();
    assert!(stopped.success() && started.wait().unwrap().success());
    let shown = shown.join("\n");
    assert!(shown.contains("agentsvc is running at http://127.0.0.1:") && !shown.contains("INFO"), "{shown}");
    let logs = fs::read_dir(home.path().join("logs")).unwrap().flatten();
    assert!(logs.map(|file| fs::read_to_string(file.path()).unwrap()).any(|text| text.contains("listening")));
}
