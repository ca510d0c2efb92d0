//! What the command line says: of typos, of empty lists, of widths, units and the beginnings of ids.

use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::support::daemon::{Daemon, text};

/// Standard output and standard error.
#[track_caller]
fn said(output: &Output) -> (String, String) {
    let of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (of(&output.stdout), of(&output.stderr))
}

#[track_caller]
fn out(output: &Output) -> String {
    let (out, error) = said(output);
    assert!(output.status.success(), "{}: {error}", output.status);
    out
}

/// What a typo is answered with, whichever command has it.
#[test]
fn what_was_probably_meant_is_named() {
    let daemon = Daemon::start();
    daemon.agent("scout");
    out(&daemon.cli(&["task", "create", "--title", "sweep"]));
    for (arguments, code, meant) in [
        (&["tool", "show", "fil_read"][..], 4, "did you mean file_read?"),
        (&["tool", "show", "store"], 4, "did you mean memory_store"),
        (&["agent-type", "show", "codr"], 4, "did you mean coder?"),
        (&["agent", "create", "codr", "--name", "x"], 4, "did you mean coder?"),
        (&["providers", "test", "opnai"], 4, "did you mean openai?"),
        (&["config", "get", "budget.dayly_limit_usd"], 2, "did you mean budget.daily_limit_usd?"),
        (&["config", "set", "log_level", "debg"], 1, "did you mean `debug`?"),
        (&["message", "scuot", "hello"], 4, "did you mean scout?"),
        (&["agent", "list", "--state", "Runing"], 2, "a similar value exists: 'Running'"),
        (&["key", "create", "x", "--role", "owne"], 2, "a similar value exists: 'owner'"),
        (&["schedul", "list"], 2, "'schedule'"),
        (&["schedule", "creat"], 2, "'create'"),
    ] {
        let output = daemon.cli(arguments);
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(meant), "{arguments:?}: {error}");
    }
    let (_, error) = said(&daemon.cli(&["tool", "show", "weather"]));
    assert!(error.contains("list them with `agentsvc tool list`"), "{error}");
}

/// Nothing on standard output, so that a pipe has no rows, and one sentence beside it.
#[test]
fn an_empty_list_says_so_beside_the_output() {
    let daemon = Daemon::start();
    for (arguments, sentence) in [
        (&["schedule", "list"][..], "No schedules. Create one with `agentsvc schedule create`.\n"),
        (&["goal", "list"], "No goals. Create one with `agentsvc goal create`.\n"),
        (&["workflow", "list"], "No workflows. Create one with `agentsvc workflow create`.\n"),
        (&["task", "list", "--status", "failed"], "No matching tasks.\n"),
        (&["agent", "list", "--q", "nobody"], "No matching agents.\n"),
        (&["snapshot", "list"], "No snapshots. Take one with `agentsvc snapshot create`.\n"),
        (&["backup", "list"], "No backups. Make one with `agentsvc backup`.\n"),
        (&["approvals", "list"], "No pending approvals.\n"),
        (&["key", "list"], "No keys. Create one with `agentsvc key create`.\n"),
    ] {
        let output = daemon.cli(arguments);
        assert!(output.status.success(), "{arguments:?}");
        assert_eq!(said(&output), (String::new(), sentence.to_owned()), "{arguments:?}");
        let (json, note) = said(&daemon.cli(&[arguments, &["--json"]].concat()));
        assert!(json.parse::<serde_json::Value>().is_ok() && note.is_empty(), "{arguments:?}: {json} {note}");
    }
}

/// What a terminal of so many columns shows of a command.
fn on_terminal(daemon: &Daemon, columns: u32, arguments: &str, variables: &[(&str, &str)]) -> String {
    let line = format!("stty cols {columns} rows 24; {} {arguments}", env!("CARGO_BIN_EXE_agentsvc"));
    let mut terminal = Command::new("script");
    terminal.args(["-qefc", &line, "/dev/null"]).env("AGENTSVC_HOME", daemon.home()).stdin(Stdio::null());
    terminal.env("TERM", "xterm").env_remove("COLUMNS").env_remove("NO_COLOR").env("AGENTSVC_PAGER", "cat");
    terminal.envs(variables.iter().copied());
    String::from_utf8_lossy(&terminal.output().unwrap().stdout).replace('\r', "")
}

#[test]
fn a_terminal_has_styles_and_lines_that_fit() {
    let daemon = Daemon::start();
    let long = "a title that is much longer than a narrow terminal has columns for all of its words";
    let id = text(&daemon.post("/api/goals", &json!({ "title": long })).expect(201)["id"]);
    let narrow = on_terminal(&daemon, 80, "goal list", &[("NO_COLOR", "1")]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(
        narrow.contains(&id) && narrow.contains('…') && narrow.contains("ago") && !narrow.contains('\u{1b}'),
        "{narrow}"
    );
    let wide = on_terminal(&daemon, 240, "goal list", &[]);
    assert!(
        wide.contains(long) && wide.contains("\u{1b}[1mTITLE\u{1b}[0m") && wide.contains("\u{1b}[33mpending"),
        "{wide}"
    );
    assert!(on_terminal(&daemon, 240, "goal list", &[("TERM", "dumb")]).lines().all(|line| !line.contains('\u{1b}')));
    // A pipe has all of it, as it is.
    let piped = out(&daemon.cli(&["goal", "list"]));
    assert!(piped.contains(long) && !piped.contains('\u{1b}') && !piped.contains(" ago"), "{piped}");
}

/// A list that is longer than the screen goes to the pager; a short one does not.
#[test]
fn long_lists_go_to_the_pager() {
    let daemon = Daemon::start();
    let line = format!("stty rows 24; {} tool list", env!("CARGO_BIN_EXE_agentsvc"));
    let paged = |line: &str| {
        let mut terminal = Command::new("script");
        terminal.args(["-qefc", line, "/dev/null"]).env("AGENTSVC_HOME", daemon.home()).env("AGENTSVC_PAGER", "wc -l");
        terminal.stdin(Stdio::null());
        String::from_utf8_lossy(&terminal.output().unwrap().stdout).trim().to_owned()
    };
    let lines = paged(&line);
    assert!(lines.parse::<u32>().is_ok_and(|lines| lines > 24), "{lines}");
    assert!(paged(&line.replace("tool list", "agent list")).contains("assistant"));
}

#[test]
fn a_noun_is_understood_in_the_plural() {
    let daemon = Daemon::start();
    let id = text(&daemon.post("/api/goals", &json!({ "title": "ship it" })).expect(201)["id"]);
    assert!(out(&daemon.cli(&["goals", "ls"])).contains(&id));
    assert!(out(&daemon.cli(&["goals", "show", "ship it"])).contains(&id));
    assert!(out(&daemon.cli(&["agents", "list"])).contains("assistant"));
    assert!(out(&daemon.cli(&["approval", "count"])).contains('0'));
}

#[test]
fn the_beginning_of_an_id_stands_for_it() {
    let daemon = Daemon::start();
    let agent = daemon.agent("scout");
    let goal = text(&daemon.post("/api/goals", &json!({ "title": "ship it" })).expect(201)["id"]);
    assert!(out(&daemon.cli(&["goal", "show", &goal[..30]])).contains("ship it"));
    assert!(out(&daemon.cli(&["agent", "show", &agent[..34].to_uppercase()])).contains("scout"));
    assert_eq!(out(&daemon.cli(&["goal", "delete", &goal[..30]])), format!("deleted {}\n", &goal[..30]));
    // Two that begin alike: nothing happens, and both are named.
    let made: Vec<String> =
        ["a", "b"].map(|title| text(&daemon.post("/api/goals", &json!({ "title": title })).expect(201)["id"])).into();
    let output = daemon.cli(&["goal", "delete", &made[0][..4]]);
    let (_, error) = said(&output);
    assert!(output.status.code() == Some(2) && made.iter().all(|id| error.contains(id)), "{error}");
}

#[test]
fn figures_have_units_and_headings_are_words() {
    let daemon = Daemon::start();
    out(&daemon.cli(&["message", "assistant", "hello"]));
    let history = out(&daemon.cli(&["history"]));
    let heading = history.lines().next().unwrap();
    assert!(heading.starts_with("FROM ") && heading.contains("MODEL CALLS") && !heading.contains('_'), "{heading}");
    assert!(history.contains("$0.00"), "{history}");
    let schedule =
        ["schedule", "create", "--agent", "assistant", "--cron", "@daily", "--prompt", "x", "--name", "news"];
    out(&daemon.cli(&schedule));
    let made = out(&daemon.cli(&["schedule", "show", "news"]));
    assert!(made.contains("outcomes") && made.contains("none") && !made.contains("schedule id"), "{made}");
    let steps = r#"[{"name": "draft", "agent_name": "assistant", "prompt": "draft it"}]"#;
    out(&daemon.cli(&["workflow", "create", "--name", "nightly", "--steps", steps]));
    let shown = out(&daemon.cli(&["workflow", "show", "nightly"]));
    assert!(
        shown.contains("\nsteps:\n") && shown.contains("NAME") && shown.contains("draft") && !shown.contains('{'),
        "{shown}"
    );
    let trigger =
        ["trigger", "create", "--agent", "assistant", "--pattern", r#"{"task_failed": {}}"#, "--prompt-template", "x"];
    out(&daemon.cli(&trigger));
    let listed = out(&daemon.cli(&["trigger", "list"]));
    assert!(listed.contains("task failed") && !listed.contains('{'), "{listed}");
}

/// Each command has an example, and its help says how to go on.
#[test]
fn the_help_of_each_command_has_an_example() {
    let daemon = Daemon::start();
    let help = out(&daemon.cli(&["--help"]));
    let commands: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
        .map(|(name, _)| name)
        .filter(|name| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|character| character.is_ascii_lowercase() || character == '-' || character.is_ascii_digit())
        })
        .filter(|name| name.parse::<u8>().is_err())
        .collect();
    assert!(commands.len() > 40, "{commands:?}");
    for command in commands {
        let help = out(&daemon.cli(&[command, "--help"]));
        let is_plain = ["init", "stop", "open", "service", "version", "completions"].contains(&command);
        assert!(is_plain || help.contains("Examples:\n"), "{command}: {help}");
    }
}
