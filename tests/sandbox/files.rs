//! The file tools through a whole turn.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::Harness;

#[test]
fn files_come_and_go() {
    let harness = Harness::new("", "");
    let wrote = harness.call("file_write", &json!({ "path": "notes/a.txt", "content": "one\ntwo\n" }));
    assert_eq!(wrote, "Wrote 8 bytes to notes/a.txt (a new file).");
    let added = harness.call("file_write", &json!({ "path": "notes/a.txt", "content": "three\n", "mode": "append" }));
    assert!(added.contains("it has 14 bytes now"), "{added}");
    let exists = harness.call("file_write", &json!({ "path": "notes/a.txt", "content": "", "mode": "create" }));
    assert_eq!(exists, "\"notes/a.txt\" exists already.");
    let part = harness.call("file_read", &json!({ "path": "notes/a.txt", "offset": 2, "limit": 1 }));
    assert_eq!(part, "two\n[Lines 2 to 2 of 3. To continue, call file_read with offset 3.]");
    let patch = "--- a/notes/a.txt\n+++ b/notes/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
    assert_eq!(harness.call("apply_patch", &json!({ "patch": patch })), "Done.\nM notes/a.txt");
    assert_eq!(fs::read_to_string(harness.workspace().join("notes/a.txt")).unwrap(), "one\nTWO\nthree\n");
    let listing = harness.call("file_list", &json!({ "recursive": true }));
    assert_eq!(listing.lines().count(), 2, "{listing}");
    assert!(listing.contains("notes/a.txt"), "{listing}");
    assert!(harness.call("file_delete", &json!({ "path": "notes" })).contains("is not empty"));
    let gone = harness.call("file_delete", &json!({ "path": "notes", "recursive": true }));
    assert_eq!(gone, "Deleted notes (2 entries).");
    assert_eq!(harness.call("file_list", &json!({})), "[The directory is empty.]");
}

#[test]
fn no_path_leads_out() {
    let harness = Harness::new("", "");
    harness.call("file_write", &json!({ "path": "own", "content": "x" }));
    let (home, workspace) = (harness.daemon.home().to_owned(), harness.workspace());
    let config = fs::read_to_string(home.join("config.toml")).unwrap();
    symlink(&home, workspace.join("home")).unwrap();
    symlink("../..", workspace.join("up")).unwrap();
    symlink(home.join("config.toml"), workspace.join("config")).unwrap();
    symlink("/proc/self/root", workspace.join("root")).unwrap();
    fs::hard_link(home.join("config.toml"), workspace.join("hard")).unwrap();
    let absolute = home.join("config.toml").display().to_string();
    for path in [
        "../../config.toml",
        "own/../../../config.toml",
        "..\\..\\config.toml",
        &absolute,
        "home/config.toml",
        "up/config.toml",
        "config",
        "root/etc/passwd",
        "/proc/self/environ",
        "hard",
        "own\0",
        &format!("{}config.toml", "../".repeat(30)),
        &"long/".repeat(400),
    ] {
        let read = harness.call("file_read", &json!({ "path": path }));
        assert!(!read.contains("api_listen") && !read.contains("root:"), "{path}: {read}");
        if path != "hard" {
            let wrote = harness.call("file_write", &json!({ "path": path, "content": "broken" }));
            assert!(!wrote.starts_with("Wrote"), "{path}: {wrote}");
        }
        let added = harness.call("file_write", &json!({ "path": path, "content": "broken", "mode": "append" }));
        assert!(!added.starts_with("Added"), "{path}: {added}");
        let patched = harness.call("apply_patch", &json!({ "patch": format!("--- a/{path}\n+++ /dev/null\n") }));
        assert!(!patched.starts_with("Done"), "{path}: {patched}");
        assert_eq!(fs::read_to_string(home.join("config.toml")).unwrap(), config, "{path}");
    }
    for path in ["home", "up", "root", ".."] {
        let listing = harness.call("file_list", &json!({ "path": path, "recursive": true }));
        assert!(!listing.contains("config.toml") && !listing.contains("etc"), "{path}: {listing}");
    }
    assert!(harness.call("file_delete", &json!({ "path": "home/config.toml" })).contains("directory"));
    assert!(home.join("config.toml").exists());
}

#[test]
fn an_agent_without_files_has_none() {
    let harness = Harness::new("", "file_system = false\n");
    for tool in ["file_read", "file_write", "file_list", "file_delete", "apply_patch"] {
        let refused = harness.call(tool, &json!({ "path": "x", "content": "x", "patch": "x" }));
        assert!(refused.contains("is not allowed to call the tool"), "{refused}");
    }
    assert!(!harness.workspace().exists());
}

#[test]
fn a_name_used_again_starts_empty() {
    let harness = Harness::new("", "");
    harness.call("file_write", &json!({ "path": "diary", "content": "private" }));
    harness.daemon.delete(&format!("/api/agents/{}", harness.agent)).expect(200);
    let agent = harness.daemon.agent_with("ann", "[capabilities]\ntools = [\"*\"]\n");
    let again = Harness { agent, ..harness };
    assert_eq!(again.call("file_list", &json!({})), "[The directory is empty.]");
    assert!(again.call("file_read", &json!({ "path": "diary" })).contains("does not exist"));
}

#[test]
fn files_follow_an_agent_that_is_renamed() {
    let harness = Harness::new("", "");
    harness.call("file_write", &json!({ "path": "diary", "content": "private" }));
    harness.daemon.patch(&format!("/api/agents/{}", harness.agent), &json!({ "name": "eve" })).expect(200);
    // Someone else takes the old name before the files were looked for under the new one.
    let (eve, ann) = (harness.agent.clone(), harness.daemon.agent_with("ann", "[capabilities]\ntools = [\"*\"]\n"));
    let harness = Harness { agent: ann, ..harness };
    assert!(harness.call("file_read", &json!({ "path": "diary" })).contains("does not exist"));
    let harness = Harness { agent: eve, ..harness };
    assert_eq!(harness.call("file_read", &json!({ "path": "diary" })), "private");
    assert!(harness.daemon.home().join("workspaces/eve/diary").exists());
}
