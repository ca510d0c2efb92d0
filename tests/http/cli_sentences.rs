//! What the command line says in sentences: what was made, what happened, what a noun alone shows; and what it takes.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, command, text};

#[track_caller]
fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What fails says why on standard error.
#[track_caller]
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_was_made_or_changed_is_one_sentence() {
    let daemon = Daemon::start();
    let agent = out(&daemon.cli(&["agent", "create", "assistant", "--name", "scout"]));
    assert!(agent.starts_with("Created agent scout (") && agent.ends_with("`agentsvc chat scout`\n"), "{agent}");
    let schedule = ["schedule", "create", "--agent", "scout", "--cron", "0 8 * * *", "--prompt", "x", "--name", "news"];
    let made = out(&daemon.cli(&[&schedule[..], &["--timezone", "Europe/Berlin"]].concat()));
    let days = ["today", "tomorrow"].map(|day| format!("Created schedule news; next run {day} 08:00 Europe/Berlin\n"));
    assert!(days.contains(&made), "{made}");
    let paused = out(&daemon.cli(&["schedule", "update", "news", "--enabled=false"]));
    assert_eq!(paused, "Updated schedule news; disabled\n");
    assert_eq!(out(&daemon.cli(&["goal", "create", "--title", "ship it"])), "Created goal ship it\n");
    let reached = out(&daemon.cli(&["goal", "update", "ship it", "--status", "completed"]));
    assert_eq!(reached, "Updated goal ship it\n");
    assert_eq!(out(&daemon.cli(&["task", "create", "--title", "sweep"])), "Created task sweep\n");
    let trigger = ["trigger", "create", "--agent", "scout", "--pattern", "turn_failed", "--prompt-template", "x"];
    let made = out(&daemon.cli(&trigger));
    assert!(made.starts_with("Created trigger ") && made.ends_with(" of scout\n"), "{made}");
    let job = ["cron", "create", "--agent", "scout", "--name", "beat", "--schedule", "every 1h", "--prompt", "x"];
    assert!(out(&daemon.cli(&job)).starts_with("Created cron job beat; next run "));
    let published = out(&daemon.cli(&["event", "create", "--event-type", "deployed"]));
    assert_eq!(published, "Published event deployed\n");
    // The budget of an agent is no item of a list: what is in force is shown.
    assert!(out(&daemon.cli(&["budget", "agents-update", "scout", "--daily-limit-usd", "2"])).contains("$2.00"));
}

#[test]
fn events_are_sentences_and_sessions_have_titles() {
    let daemon = Daemon::start();
    out(&daemon.cli(&["message", "assistant", "hello\nthere"]));
    out(&daemon.cli(&["message", "assistant", "/tool no_such_tool {}"]));
    let events = out(&daemon.cli(&["event", "list"]));
    for sentence in ["  Received \"hello there\"\n", "  Started a turn\n", "  Answered ("] {
        assert!(events.contains(sentence), "{sentence}: {events}");
    }
    assert!(!events.contains("iterations") && events.lines().all(|line| line.chars().count() < 260), "{events}");
    let sessions = out(&daemon.cli(&["session", "list"]));
    assert!(sessions.contains("TITLE") && sessions.contains("  hello  "), "{sessions}");
    assert!(!sessions.contains("LABEL"), "{sessions}");
    let shown = out(&daemon.cli(&["session", "show", "hello", "--json"]));
    let id = text(&shown.parse::<Value>().unwrap()["id"]);
    out(&daemon.cli(&["session", "label", &id, "--label", "work"]));
    assert!(out(&daemon.cli(&["session", "list"])).contains("  work  "));
    let typo = refusal(&daemon.cli(&["event", "list", "--kind", "turn_faild"]));
    assert!(typo.contains("unknown event kind 'turn_faild'; did you mean `turn_failed`?"), "{typo}");
}

#[test]
fn a_trigger_names_the_kinds_of_events() {
    let daemon = Daemon::start();
    let help = out(&daemon.cli(&["trigger", "create", "--help"]));
    for shown in ["Examples:\n", "Event kinds:\n", "turn_failed, session_compacted", "{\"event_type\": \"deployed\"}"] {
        assert!(help.contains(shown), "{shown}: {help}");
    }
    assert!(out(&daemon.cli(&["event", "list", "--help"])).contains("Event kinds:\n"));
    let create = |pattern: &str| {
        daemon.cli(&["trigger", "create", "--agent", "assistant", "--pattern", pattern, "--prompt-template", "x"])
    };
    let typo = refusal(&create("turn_faild"));
    assert!(typo.contains("`turn_faild` is not an event kind; did you mean `turn_failed`?"), "{typo}");
    out(&create("turn_failed"));
    out(&create(r#"{"custom": {"event_type": "deployed"}}"#));
}

/// The commands that people ask the help of have an example of their own.
#[test]
fn verbs_have_examples() {
    let daemon = Daemon::start();
    for verb in [
        &["trigger", "create"][..],
        &["workflow", "create"],
        &["workflow", "run"],
        &["goal", "create"],
        &["task", "create"],
        &["budget", "update"],
        &["agent", "update"],
        &["approvals", "approve"],
        &["channel", "add"],
        &["schedule", "create"],
        &["event", "list"],
    ] {
        let help = out(&daemon.cli(&[verb, &["--help"]].concat()));
        assert!(help.contains(&format!("\n  agentsvc {} ", verb.join(" "))), "{verb:?}: {help}");
    }
    let help = out(&daemon.cli(&["agent", "update", "--help"]));
    assert!(help.contains("--tags <TEXT>") && help.contains("repeat it for several"), "{help}");
    for bare in ["  Max tokens\n", "  Mcp servers\n", "  Tags\n", "  Description\n"] {
        assert!(!help.contains(bare), "{bare}: {help}");
    }
}

#[test]
fn a_list_of_texts_is_a_repeated_option() {
    let daemon = Daemon::start();
    daemon.agent("scout");
    let tags = |options: &[&str]| {
        out(&daemon.cli(&[&["agent", "update", "scout"][..], options].concat()));
        let shown = out(&daemon.cli(&["agent", "show", "scout", "--json"]));
        shown.parse::<Value>().unwrap()["tags"].clone()
    };
    assert_eq!(tags(&["--tags", "work", "--tags", "rust"]), json!(["work", "rust"]));
    assert_eq!(tags(&["--description", "Writes"]), json!(["work", "rust"]), "what is not named stays");
    assert_eq!(tags(&["--tags", "[]"]), json!([]));
}

#[test]
fn a_noun_alone_shows() {
    let daemon = Daemon::start();
    assert!(out(&daemon.cli(&["usage"])).contains("today requests"));
    assert!(out(&daemon.cli(&["budget"])).contains("daily limit"));
    assert!(out(&daemon.cli(&["budget", "--json"])).parse::<Value>().unwrap()["daily_limit_usd"].is_number());
    assert!(out(&daemon.cli(&["budgets"])).contains("daily limit"), "in the plural, too");
    // No hour without anything in it, but for programs.
    assert_eq!(out(&daemon.cli(&["history"])), "");
    let all: Value = out(&daemon.cli(&["history", "--json"])).parse().unwrap();
    assert!(all["points"].as_array().unwrap().len() > 20);
    out(&daemon.cli(&["message", "assistant", "hello"]));
    assert_eq!(out(&daemon.cli(&["history"])).lines().count(), 2);
    let types = out(&daemon.cli(&["agent-type", "list"]));
    assert_eq!(types.lines().filter(|line| line.starts_with("assistant ")).count(), 1, "{types}");
    assert!(!types.contains("PROVIDER"), "a column without a value is left out: {types}");
    let platforms = out(&daemon.cli(&["channel", "list", "--available"]));
    assert!(platforms.starts_with("PLATFORM") && platforms.contains("telegram"), "{platforms}");
}

#[test]
fn a_table_of_the_configuration_is_shown() {
    let daemon = Daemon::with("[budget]\ndaily_limit_usd = 5.0\n");
    let budget = out(&daemon.cli(&["config", "get", "budget"]));
    assert!(budget.contains("daily_limit_usd = 5.0\n") && budget.contains("agent_daily_limit_usd"), "{budget}");
    assert_eq!(out(&daemon.cli(&["config", "get", "budget.daily_limit_usd"])), "5.0\n");
    let json: Value = out(&daemon.cli(&["config", "get", "budget", "--json"])).parse().unwrap();
    assert_eq!(json["daily_limit_usd"], 5.0);
    assert!(refusal(&daemon.cli(&["config", "get", "bugdet"])).contains("unknown configuration key bugdet"));
}

#[test]
fn api_takes_a_whole_body_and_errors_name_what_is_missing() {
    let daemon = Daemon::start();
    let goal = out(&daemon.cli(&["api", "POST", "/api/goals", r#"{"title": "ship it"}"#]));
    assert_eq!(goal.parse::<Value>().unwrap()["title"], "ship it");
    let missing = refusal(&daemon.cli(&["api", "POST", "/api/goals", "{}"]));
    assert!(missing.contains("error: title: missing\n"), "{missing}");
    assert!(refusal(&daemon.cli(&["api", "POST", "/api/goals", "{title"])).contains("not JSON"));
    assert!(refusal(&daemon.cli(&["api", "POST", "/api/goals", "title"])).contains("neither KEY=VALUE nor"));
    let required = refusal(&daemon.cli(&["goal", "create", "--status", "pending"]));
    assert!(required.contains("--title is required") && !required.contains("column"), "{required}");
}

#[test]
fn an_approval_is_waited_for() {
    let daemon = Daemon::start();
    assert_eq!(out(&daemon.cli(&["approvals", "list", "--quiet"])), "");
    let mut waiting = command(daemon.home());
    waiting.args(["approvals", "list", "--wait", "--quiet"]).stdout(std::process::Stdio::piped());
    let waiting = waiting.spawn().unwrap();
    let agent = daemon.agent("scout");
    let body = json!({ "agent_id": agent, "action": "deploy", "description": "x", "payload": {} });
    let id = text(&daemon.post("/api/approvals", &body).expect(201)["id"]);
    assert_eq!(out(&waiting.wait_with_output().unwrap()), format!("{id}\n"));
    out(&daemon.cli(&["approvals", "approve", &id]));
    assert_eq!(out(&daemon.cli(&["approvals", "list", "--quiet"])), "");
}

/// The key is in the environment of the daemon alone.
#[test]
fn the_doctor_asks_the_daemon_about_keys() {
    let model = crate::support::model::Model::start();
    let daemon = Daemon::with_env(
        &format!(
            "[default_model]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\napi_key_env = \"KEY_OF_THE_DAEMON\"\n",
            model.server.base_url()
        ),
        &[("KEY_OF_THE_DAEMON", "k")],
    );
    let done = daemon.cli(&["doctor", "--json"]);
    let report: Value = String::from_utf8_lossy(&done.stdout).parse().unwrap();
    let of = |name: &str| report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
    let (key, reached) = (of("provider_key").unwrap(), of("model").unwrap());
    assert_eq!((&key["status"], &reached["status"]), (&json!("pass"), &json!("pass")), "{key} {reached}");
    assert!(text(&key["message"]).contains("the daemon has the key"), "{key}");
    // One that the daemon does not have either is a failure.
    let other = Daemon::with("[default_model]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"NO_SUCH_KEY\"\n");
    let done = other.cli(&["doctor", "--json", "--offline"]);
    let report: Value = String::from_utf8_lossy(&done.stdout).parse().unwrap();
    let key = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "provider_key").cloned();
    assert_eq!(key.unwrap()["status"], "fail", "{report}");
}
