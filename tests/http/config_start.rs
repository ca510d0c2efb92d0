//! Configuration and the first start: what is accepted, what stops the daemon, where its files go
//! (issue, Config; decisions, Process; spec 2, Limits).

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::daemon::{Daemon, command};
use crate::support::until;

/// Starts on a home with `config`; the daemon must refuse. Gives what it said.
#[track_caller]
fn refused(config: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("config.toml"), config).unwrap();
    let said = start_fails(home.path());
    assert!(!home.path().join("data/world").exists(), "a refused start creates no world");
    said
}

#[track_caller]
fn start_fails(home: &Path) -> String {
    let mut command = command(home);
    command.arg("start").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    until("the start is refused", || child.try_wait().unwrap());
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_home_whose_world_is_gone_is_not_served_with_another() {
    let mut daemon = Daemon::start();
    daemon.agent("kept");
    assert!(daemon.cli(&["stop"]).status.success());
    daemon.wait();
    let home = daemon.home().to_owned();
    let (world, aside) = (home.join("data/world"), home.join("aside"));
    fs::rename(&world, &aside).unwrap();
    for _ in 0..2 {
        let said = start_fails(&home);
        assert!(said.contains("this home had a world") && said.contains("--new-world"), "{said}");
        assert_eq!(fs::read_dir(&world).unwrap().count(), 0, "nothing is made in its place");
    }
    // It comes back.
    fs::remove_dir(&world).unwrap();
    fs::rename(&aside, &world).unwrap();
    daemon.restart();
    assert!(daemon.get("/api/agents").expect(200).to_string().contains("kept"));
    // Or an empty one is wanted.
    daemon.kill();
    fs::remove_dir_all(&world).unwrap();
    let mut child = command(&home).args(["start", "--new-world"]).stderr(Stdio::null()).spawn().unwrap();
    until("the empty world is there", || world.join("version").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_unknown_key_is_named_with_line_and_nearest() {
    let said = refused("api_listen = \"127.0.0.1:0\"\nlog_levle = \"info\"\n");
    for part in ["config.toml", "2", "log_levle", "log_level"] {
        assert!(said.contains(part), "'{part}' is missing: {said}");
    }
    let said = refused("api_listen = \"127.0.0.1:0\"\n\n[world]\ntick_rate = 10\n");
    assert!(said.contains('4') && said.contains("tick_rate") && said.contains("tick_hz"), "{said}");
}

#[test]
fn a_wrong_type_or_value_is_named_with_line() {
    for (config, parts) in [
        ("api_listen = 7\n", ["1", "api_listen"]),
        ("api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = \"many\"\n", ["2", "rate_limit_per_second"]),
        ("api_listen = \"127.0.0.1:0\"\n[world]\ntick_hz = 0\n", ["3", "tick_hz"]),
        ("api_listen = \"127.0.0.1:0\"\n[world]\ntick_hz = -5\n", ["3", "tick_hz"]),
        ("api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 0\n", ["2", "rate_limit_per_second"]),
        ("api_listen = \"127.0.0.1:0\"\nlog_level = \"loud\"\n", ["2", "log_level"]),
        ("api_listen = \"127.0.0.1:0\"\ncors_origin = \"x\"\n", ["2", "cors_origin"]),
        ("api_listen = \"nowhere\"\n", ["1", "api_listen"]),
        ("api_listen = \"127.0.0.1:0\"\n[world\n", ["2", "config.toml"]),
    ] {
        let said = refused(config);
        for part in parts {
            assert!(said.contains(part), "'{part}' is missing for {config}: {said}");
        }
    }
}

#[test]
fn an_open_daemon_does_not_listen_to_the_world() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let said = refused(&format!("api_listen = \"{listen}\"\n"));
        assert!(said.contains("api_key") && said.contains("api_listen"), "{said}");
        let said = refused(&format!("api_listen = \"{listen}\"\napi_key = \"\"\n"));
        assert!(said.contains("api_key"), "{said}");
    }
}

#[test]
fn an_empty_key_is_an_open_daemon() {
    let daemon = Daemon::with("api_key = \"\"\n");
    daemon.get("/api/agents").expect(200);
}

#[test]
fn every_reserved_table_is_accepted() {
    let daemon = Daemon::with("log_level = \"debug\"\nrate_limit_per_second = 500\n[world]\ntick_hz = 50\n");
    daemon.get("/api/status").expect(200);
}

#[test]
fn a_taken_port_is_a_clear_error() {
    let daemon = Daemon::start();
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("config.toml"), format!("api_listen = \"{}\"\n", daemon.addr)).unwrap();
    let said = start_fails(home.path());
    assert!(said.contains(&daemon.addr.to_string()), "{said}");
}

#[test]
fn one_home_has_one_daemon() {
    let daemon = Daemon::start();
    let said = start_fails(daemon.home());
    assert!(!said.is_empty());
    daemon.get("/api/health").expect(200);
}

#[test]
fn a_broken_config_file_later_still_says_where() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("kept");
    daemon.kill();
    let path = daemon.home().join("config.toml");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{good}nonsense here\n")).unwrap();
    let said = start_fails(daemon.home());
    assert!(said.contains("config.toml"), "{said}");
    fs::write(&path, good).unwrap();
    daemon.restart();
    daemon.detail(&agent);
}

#[test]
fn daily_log_files_are_written_and_pruned() {
    let mut daemon = Daemon::start();
    let logs = daemon.home().join("logs");
    let files = || -> Vec<String> {
        let entries = fs::read_dir(&logs).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let today = until("today's file is there", || files().into_iter().find(|name| name.starts_with("daemon-")));
    let (start, end) = (&today["daemon-".len()..], today.strip_suffix(".log"));
    assert!(end.is_some() && start.len() == "2026-01-01.log".len(), "{today}");
    daemon.kill();
    let size = fs::metadata(logs.join(&today)).unwrap().len();
    fs::write(logs.join("daemon-2020-01-01.log"), "old\n").unwrap();
    fs::write(logs.join("notes.txt"), "mine\n").unwrap();
    daemon.restart();
    until("the old file is pruned", || (!logs.join("daemon-2020-01-01.log").exists()).then_some(()));
    assert!(logs.join("notes.txt").exists(), "only the daemon's own files are pruned");
    assert!(fs::metadata(logs.join(&today)).is_ok_and(|m| m.len() >= size), "same-day restarts append");
}

#[test]
fn the_home_is_not_for_others() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let home = parent.path().join("fresh");
    let output = command(&home).arg("init").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mode = fs::metadata(&home).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o007, 0, "{mode:o}");
}

#[test]
fn a_configuration_that_lost_the_key_is_not_served() {
    let mut daemon = Daemon::with("api_key = \"a-key-of-the-test\"\n");
    let path = daemon.home().join("config.toml");
    let whole = fs::read_to_string(&path).unwrap();
    // While the daemon runs, a reload keeps what is in force.
    fs::write(&path, "").unwrap();
    let keyed = daemon.keyed("a-key-of-the-test");
    let said = keyed.post("/api/config/reload", &json!({})).expect(400);
    assert!(said.to_string().contains("api_key"), "{said}");
    daemon.get("/api/agents").expect(401);
    daemon.kill();
    for text in [Some(""), Some("api_listen = \"127.0.0.1:0\"\n"), None] {
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let said = start_fails(daemon.home());
        assert!(said.contains("api_key = \"\"") && said.contains("init --key"), "{text:?}: {said}");
        assert_eq!(path.exists(), text.is_some(), "nothing is written in the place of a lost file");
        assert!(!daemon.cli(&["config", "check"]).status.success());
    }
    fs::write(&path, whole).unwrap();
    daemon.restart();
    daemon.get("/api/agents").expect(401);
    // The operator takes it out on purpose; from then on the line is not needed.
    fs::write(&path, "api_listen = \"127.0.0.1:0\"\napi_key = \"\"\n").unwrap();
    daemon.restart();
    daemon.get("/api/agents").expect(200);
    fs::write(&path, "api_listen = \"127.0.0.1:0\"\n").unwrap();
    daemon.restart();
    daemon.get("/api/agents").expect(200);
}
