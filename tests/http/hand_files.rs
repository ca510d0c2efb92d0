//! Hands on the disk, what they need of the machine, and the command line (spec 2, Hands).

use std::fs;
use std::path::Path;

use serde_json::json;

use super::hands::{HAND, HERALD, activate, install, instances};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;

#[test]
fn requirements_are_checked_and_installed_only_when_that_is_allowed() {
    let daemon = Daemon::start();
    install(&daemon, HERALD);
    let checked = daemon.post(&format!("/api/hands/{HAND}/check-deps"), &json!({})).expect(200);
    assert_eq!(
        (&checked["requirements_met"], &checked["results"][0]["status"]),
        (&json!(true), &json!("already_installed"))
    );
    assert_eq!(checked["results"][1]["status"], "skipped");
    let refused = daemon.post(&format!("/api/hands/{HAND}/install-deps"), &json!({}));
    assert!(refused.status == 403 && refused.text().contains("install_deps_disabled"), "{}", refused.text());
    let allowed = Daemon::with("[hands]\ninstall_deps = true\n");
    let toml = HERALD.replace("pip install printer", "sudo rm -rf printer");
    install(&allowed, &toml);
    let tried = allowed.post(&format!("/api/hands/{HAND}/install-deps"), &json!({})).expect(200);
    assert_eq!(tried["results"][1]["status"], "error", "{tried}");
}

#[test]
fn hands_on_the_disk_are_found_by_a_reload_and_many_are_read_fast() {
    let daemon = Daemon::start();
    let folder = |name: &str| daemon.home().join("hands").join(name);
    let put = |name: &str, toml: &str| {
        fs::create_dir_all(folder(name)).unwrap();
        fs::write(folder(name).join("HAND.toml"), toml).unwrap();
    };
    put("broken", "id = ");
    (0..200).for_each(|n| put(&format!("h{n}"), &HERALD.replace("\"herald\"", &format!("\"h{n}\""))));
    let reloaded = daemon.post("/api/hands/reload", &json!({})).expect(200);
    assert_eq!((&reloaded["added"], &reloaded["total"]), (&json!(200), &json!(200)));
    assert!(text(&reloaded["failed"]["broken"]).contains("line 1"), "{reloaded}");
    put("h7", &HERALD.replace("\"herald\"", "\"h7\"").replace("Writes news", "Writes novels"));
    let reloaded = daemon.post("/api/hands/reload", &json!({})).expect(200);
    assert_eq!((&reloaded["added"], &reloaded["updated"]), (&json!(0), &json!(1)));
    assert_eq!(daemon.get("/api/hands/h7").expect(200)["description"], "Writes novels");
}

#[test]
fn a_hand_is_installed_from_a_folder_and_from_the_registry() {
    let daemon = Daemon::start();
    let put = |dir: &Path| {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("HAND.toml"), HERALD).unwrap();
        fs::write(dir.join("SKILL-helper.md"), "Facts are facts.").unwrap();
    };
    let elsewhere = tempfile::tempdir().unwrap();
    put(elsewhere.path());
    let made = daemon.post("/api/hands/install", &json!({ "source": elsewhere.path() })).expect(201);
    assert_eq!(made["is_custom"], true);
    daemon.delete(&format!("/api/hands/{HAND}")).expect(200);
    put(&daemon.home().join("registry/hands/herald"));
    let made = daemon.post("/api/hands/install", &json!({ "source": "herald" })).expect(201);
    assert_eq!(made["is_custom"], false);
    let activated = activate(&daemon, "herald", &json!({}));
    let prompt = daemon.detail(&text(&activated["agent_ids"]["helper"]))["system_prompt"].to_string();
    assert!(prompt.contains("Facts are facts."), "{prompt}");
}

#[test]
fn the_command_line_lists_activates_and_removes() {
    let daemon = Daemon::start();
    install(&daemon, HERALD);
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(run(&["hand", "list"]).contains("herald"));
    assert!(run(&["hand", "info", "herald"]).contains("Missing tools: browser_open"));
    assert!(run(&["hand", "activate", "herald", "--set", "style=long"]).contains("herald:writer"));
    let id = text(&instances(&daemon)[0]["instance_id"]);
    run(&["hand", "pause", &id]);
    assert!(run(&["hand", "list"]).contains("paused"));
    run(&["hand", "resume", &id]);
    run(&["hand", "remove", &id]);
    run(&["hand", "remove", "herald"]);
    assert_eq!(daemon.get("/api/hands").expect(200)["total"], 0);
}

/// Content of others, where the variable says that there is some: everything is listed, and activated.
#[test]
fn hands_of_others_load_and_run_unmodified() {
    let Some(content) = std::env::var_os("AGENTSVC_TEST_HANDS") else { return };
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 100000\n{}", model.config()));
    for folder in fs::read_dir(content).unwrap().flatten().filter(|it| it.path().join("HAND.toml").is_file()) {
        let made = daemon.post("/api/hands/install", &json!({ "source": folder.path() })).expect(201);
        let id = text(&made["id"]);
        let detail = daemon.get(&format!("/api/hands/{id}")).expect(200);
        assert!(!detail["agents"].as_array().unwrap().is_empty(), "{id}");
        let instance = activate(&daemon, &id, &json!({}));
        daemon.say(&text(&instance["agent_id"]), "hello");
        let stats = daemon.get(&format!("/api/hands/instances/{}/stats", text(&instance["instance_id"]))).expect(200);
        assert_eq!(stats["metrics"].as_object().unwrap().len(), detail["dashboard"].as_array().unwrap().len(), "{id}");
        for language in detail["i18n"].as_object().unwrap().keys() {
            let shown = daemon
                .send("GET", &format!("/api/hands/{id}"), &[("accept-language", language.as_str())], None)
                .expect(200);
            assert_eq!(shown["name"], detail["i18n"][language]["name"], "{id} {language}");
        }
    }
}
