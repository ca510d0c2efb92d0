//! The doctor of the command line (issue, Doctor; spec 2, Limits: diagnostic audit checks).

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::daemon::{Daemon, command, text};

/// What `doctor --json` says of `home`, and its exit code.
#[track_caller]
fn report(command: &mut Command) -> (Value, Option<i32>) {
    let output = command.args(["doctor", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    (report, output.status.code())
}

#[track_caller]
fn of(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().unwrap();
    let check =
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}: {report}"));
    (text(&check["status"]), text(&check["message"]))
}

fn configured(home: &Path, config: &str) {
    fs::write(home.join("config.toml"), config).unwrap();
    fs::set_permissions(home.join("config.toml"), fs::Permissions::from_mode(0o600)).unwrap();
}

/// A server that answers every request with `status`; gives its address.
fn answering(status: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    address
}

#[test]
fn a_running_daemon_is_well() {
    let daemon = Daemon::start();
    fs::set_permissions(daemon.home(), fs::Permissions::from_mode(0o700)).unwrap();
    let (report, code) = report(&mut command(daemon.home()));
    assert_eq!((code, report["running"].as_bool()), (Some(0), Some(true)), "{report}");
    // Not the disk: a slow one is warned about.
    for name in ["config", "vault_key", "api_key", "home", "vault", "listen"] {
        assert_eq!(of(&report, name).0, "pass", "{name}: {report}");
    }
    assert!(of(&report, "listen").1.contains("responds"), "{report}");
    for name in ["config_mode", "restore", "provider_key", "model", "disk_space", "fsync", "clock", "open_files"] {
        of(&report, name);
    }
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["fix"].is_string(), check["status"] != "pass", "what is wrong has a fix in words: {check}");
    }
}

#[test]
fn the_store_that_a_killed_daemon_left_is_read_and_its_trail_walked() {
    let mut daemon = Daemon::start();
    (0..5).for_each(|n| drop(daemon.agent(&format!("agent-{n}"))));
    daemon.kill();
    let (report, code) = report(&mut command(daemon.home()));
    assert_eq!(code, Some(0), "{report}");
    let (store, audit) = (of(&report, "store"), of(&report, "audit"));
    assert!(store.0 == "pass" && store.1.contains("of 6 agents"), "{store:?}");
    assert!(audit.0 == "pass" && audit.1.contains("entries"), "{audit:?}");
    daemon.restart();
    assert_eq!(daemon.get("/api/health").expect(200)["status"], "ok");
}

#[test]
fn the_three_checks_of_the_specification() {
    let home = tempfile::tempdir().unwrap();
    configured(home.path(), "api_listen = \"127.0.0.1:0\"\n");
    let key = |value: &str| {
        let (report, code) = report(command(home.path()).env("AGENTSVC_VAULT_KEY", value));
        (of(&report, "vault_key").0, code, report)
    };
    assert_eq!(key("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").0, "pass");
    for wrong in ["hunter2", "MDEyMzQ1Njc4OWFiY2RlZg==", "%%%"] {
        let (status, code, report) = key(wrong);
        assert_eq!((status.as_str(), code), ("fail", Some(1)), "{wrong}");
        assert!(!report.to_string().contains(wrong), "a key is never shown: {report}");
    }

    configured(home.path(), "api_listen = \"0.0.0.0:0\"\n");
    let (open, code) = report(&mut command(home.path()));
    assert_eq!((of(&open, "config").0, code), ("fail".to_owned(), Some(1)), "{open}");
    assert!(of(&open, "config").1.contains("api_key"), "{open}");

    configured(home.path(), "api_listen = 7\nlog_levle = \"info\"\n[world]\ntick_hz = 0\n");
    let (broken, code) = report(&mut command(home.path()));
    let (status, message) = of(&broken, "config");
    assert_eq!((status.as_str(), code), ("fail", Some(1)));
    for part in ["1:14: api_listen", "2:1: log_levle: unknown key", "4:11: world.tick_hz: must be 1 to 1000"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_provider_is_asked() {
    let home = tempfile::tempdir().unwrap();
    let asked = |address: SocketAddr, more: &[&str]| {
        let config = format!(
            "api_listen = \"127.0.0.1:0\"\n[default_model]\nprovider = \"openai\"\nmodel = \"m\"\n\
             base_url = \"http://{address}/v1\"\napi_key_env = \"TEST_MODEL_KEY\"\n"
        );
        configured(home.path(), &config);
        let (report, code) = report(command(home.path()).args(more));
        (of(&report, "model"), of(&report, "provider_key").0, code, report)
    };
    let (model, key, code, _) = asked(answering("200 OK"), &[]);
    assert_eq!((model.0.as_str(), key.as_str(), code), ("pass", "pass", Some(0)));
    let (model, _, code, report) = asked(answering("401 Unauthorized"), &[]);
    assert_eq!((model.0.as_str(), code), ("fail", Some(1)), "{model:?}");
    assert!(!report.to_string().contains("key-of-the-test-model"), "{report}");
    assert_eq!(asked(answering("503 Service Unavailable"), &[]).0.0, "warn");

    // Nobody listens at the port of "discard"; a port that was free a moment ago may be another test's by now.
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let (model, _, code, _) = asked(nobody, &[]);
    assert_eq!((model.0.as_str(), code), ("fail", Some(1)), "{model:?}");
}

#[test]
fn people_read_what_mends_it() {
    let home = tempfile::tempdir().unwrap();
    configured(home.path(), "api_listen = \"127.0.0.1:0\"\nlog_levle = \"info\"\n");
    let output = command(home.path()).args(["doctor", "--offline"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("fail  config") && said.contains("-> correct the lines"), "{said}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("check failed"));
}

#[test]
fn a_port_that_another_program_has_is_named() {
    let (home, taken) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    configured(home.path(), &format!("api_listen = \"{address}\"\n"));
    let (report, code) = report(&mut command(home.path()));
    let (status, message) = of(&report, "listen");
    assert_eq!((status.as_str(), code), ("fail", Some(1)), "{report}");
    assert!(message.contains(&address), "{message}");
    for name in ["sandbox", "store", "audit"] {
        of(&report, name);
    }
}

#[test]
fn a_damaged_key_of_the_audit_log_is_an_error_with_a_way_out() {
    let mut daemon = Daemon::start();
    daemon.agent("a");
    daemon.kill();
    let key = daemon.home().join("vault/audit.key");
    let whole = fs::read(&key).unwrap();
    let doctor = |more: &[&str]| {
        let output = command(daemon.home()).args(["doctor", "--offline"]).args(more).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    for damaged in [&whole[..10], b"not a key\n", &[0xff; 64]] {
        fs::write(&key, damaged).unwrap();
        for more in [[].as_slice(), &["--repair"]] {
            let (code, said) = doctor(more);
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("audit.key does not contain a key") && said.contains("audit accept"), "{said}");
        }
    }
    fs::write(&key, &whole).unwrap();
    let (code, said) = doctor(&["--repair"]);
    assert_eq!(code, Some(0), "{said}");
}
