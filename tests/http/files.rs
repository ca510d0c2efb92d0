//! The files of a workspace over HTTP.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::Daemon;
use crate::support::http::Reply;
use crate::support::until;

/// Writes a file.
#[track_caller]
fn write(daemon: &Daemon, agent: &str, name: &str, content: &[u8]) -> Reply {
    let kind = ("content-type", "application/octet-stream");
    daemon.send("PUT", &format!("/api/agents/{agent}/files/{name}"), &[kind], Some(content))
}

fn list(daemon: &Daemon, agent: &str) -> Value {
    daemon.get(&format!("/api/agents/{agent}/files")).expect(200)
}

#[test]
fn files_are_written_read_listed_and_deleted() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    assert_eq!(list(&daemon, &agent), json!({ "files": [], "total": 0, "truncated": false }));
    let made = write(&daemon, &agent, "notes.md", b"one").expect(201);
    assert_eq!((&made["status"], &made["filename"], &made["size"]), (&json!("created"), &json!("notes.md"), &json!(3)));
    let changed = write(&daemon, &agent, "notes.md", b"three").expect(200);
    assert_eq!((&changed["status"], &changed["size"]), (&json!("updated"), &json!(5)));
    // Slashes as they are, and encoded.
    write(&daemon, &agent, "deep/er/a.json", b"{}").expect(201);
    write(&daemon, &agent, "deep%2Fb%20c.txt", b"").expect(201);
    let listed = list(&daemon, &agent);
    let names: Vec<_> = listed["files"].as_array().unwrap().iter().map(|file| file["filename"].clone()).collect();
    assert_eq!(names, ["deep/b c.txt", "deep/er/a.json", "notes.md"]);
    assert_eq!(listed["total"], 3);
    let file = &listed["files"][1];
    assert_eq!((&file["size"], &file["kind"], &file["path"]), (&json!(2), &json!("file"), &json!("deep/er/a.json")));
    assert_eq!(file["content_type"], "application/json");
    assert!(file["modified_at"].as_str().unwrap().ends_with('Z'));

    let reply = daemon.get(&format!("/api/agents/{agent}/files/deep/er/a.json"));
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"a.json\"; filename*=UTF-8''a.json"));
    assert_eq!(reply.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    let head = daemon.send("HEAD", &format!("/api/agents/{agent}/files/notes.md"), &[], None);
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("5"), 0));

    let gone = daemon.delete(&format!("/api/agents/{agent}/files/{}", "notes.md")).expect(200);
    assert_eq!(gone, json!({ "status": "deleted", "filename": "notes.md" }));
    daemon.get(&format!("/api/agents/{agent}/files/{}", "notes.md")).refused(404);
    daemon.delete(&format!("/api/agents/{agent}/files/{}", "notes.md")).refused(404);
    assert_eq!(fs::read(daemon.home().join("workspaces/a/deep/er/a.json")).unwrap(), b"{}");
}

#[test]
fn a_lost_owner_of_a_workspace_is_found_again_or_told() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    write(&daemon, &agent, "notes.md", b"one").expect(201);
    let root = daemon.home().join("workspaces");
    let mark = root.join(".owners/a");
    let warnings = || daemon.get("/api/health/detail").expect(200)["workspace_warnings"].clone();
    for damage in [None, Some("")] {
        damage.map_or_else(|| fs::remove_file(&mark), |text| fs::write(&mark, text)).unwrap();
        assert_eq!(list(&daemon, &agent)["total"], 1);
        assert_eq!(fs::read_to_string(&mark).unwrap().trim(), agent);
    }
    assert_eq!(warnings(), json!([]));
    // Where nothing else says whose it is, an operator must.
    fs::write(&mark, "x").unwrap();
    fs::remove_file(root.join(".agents").join(&agent)).unwrap();
    let refused = daemon.get(&format!("/api/agents/{agent}/files"));
    assert!(refused.status == 500 && refused.text().contains("workspace_warnings"), "{}", refused.text());
    assert!(warnings()[0].as_str().unwrap().contains("workspaces/.owners/a is damaged"), "{}", warnings());
    until("it is logged", || daemon.stderr().contains("workspaces/.owners/a is damaged").then_some(()));
    fs::write(&mark, &agent).unwrap();
    assert_eq!(list(&daemon, &agent)["total"], 1);
    assert_eq!(warnings(), json!([]));
}

#[test]
fn paths_that_lead_out_lead_nowhere() {
    let daemon = Daemon::start();
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    write(&daemon, &other, "secret", b"of b").expect(201);
    write(&daemon, &agent, "own", b"of a").expect(201);
    let workspace = daemon.home().join("workspaces/a");
    symlink("/etc", workspace.join("etc")).unwrap();
    symlink("../b/secret", workspace.join("secret")).unwrap();
    for path in [
        "..%2Fb%2Fsecret",
        "%2e%2e/b/secret",
        "../b/secret",
        "x/../../b/secret",
        "%2Fetc%2Fpasswd",
        "a%00b",
        "a%0Ab",
        "..%5Cb",
        "etc/passwd",
        "secret",
        "%ff",
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            if path == "secret" && method != "GET" {
                continue;
            }
            let body = (method == "PUT").then_some(&b"x"[..]);
            let reply = daemon.send(method, &format!("/api/agents/{agent}/files/{path}"), &[], body);
            assert!(matches!(reply.status, 400 | 404 | 409), "{method} {path}: {} {}", reply.status, reply.text());
            assert!(!reply.refused(reply.status).contains(&daemon.home().display().to_string()), "{}", reply.text());
        }
    }
    assert_eq!(fs::read(daemon.home().join("workspaces/b/secret")).unwrap(), b"of b");
    let listed = list(&daemon, &agent).to_string();
    assert!(!listed.contains("passwd") && listed.contains("own"), "{listed}");
    // Another agent of the same name, later, sees nothing of it.
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    let next = daemon.agent("a");
    assert_eq!(list(&daemon, &next)["total"], 0);
}

#[test]
fn what_is_no_file_is_refused() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    write(&daemon, &agent, "dir/file", b"x").expect(201);
    for method in ["GET", "PUT", "DELETE"] {
        let body = (method == "PUT").then_some(&b"x"[..]);
        daemon.send(method, &format!("/api/agents/{agent}/files/dir"), &[], body).refused(409);
    }
    write(&daemon, &agent, "dir/file/below", b"x").refused(409);
    daemon.get(&format!("/api/agents/{agent}/files/")).refused(404);
    let nobody = Uuid::nil().to_string();
    write(&daemon, &nobody, "a", b"x").refused(404);
    daemon.get(&format!("/api/agents/{nobody}/files")).refused(404);
    daemon.get("/api/agents/nonsense/files").refused_field(400, "id");
    let patched = daemon.send("PATCH", &format!("/api/agents/{agent}/files/a"), &[], Some(b"{}"));
    patched.refused(405);
    assert_eq!(patched.header("allow"), Some("GET, HEAD, PUT, DELETE, OPTIONS"));
}

#[test]
fn sizes_are_bounded_and_a_refused_file_changes_nothing() {
    let daemon = Daemon::with("[uploads]\nmax_bytes = 1000\n");
    let agent = daemon.agent("a");
    write(&daemon, &agent, "a", &[7; 1_000]).expect(201);
    write(&daemon, &agent, "a", &[8; 1_001]).refused(413);
    write(&daemon, &agent, "a", &vec![8; 3 << 20]).refused(413);
    assert_eq!(daemon.get(&format!("/api/agents/{agent}/files/{}", "a")).body, [7; 1_000]);
    write(&daemon, &agent, "zero", b"").expect(201);
    let names: Vec<_> = fs::read_dir(daemon.home().join("workspaces/a")).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
