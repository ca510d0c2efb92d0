//! Extensions (spec 2): templates of MCP servers, listed, installed with credentials, called by an agent, and uninstalled.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

const PYTHON: &str = "/usr/bin/python3";
const FULL: &str = "[exec_policy]\nmode = \"full\"\n";
/// Names a directory with content of others, whose `mcp` is tested as it is.
const CONTENT: &str = "AGENTSVC_TEST_CONTENT";

fn script() -> String {
    fs::read_to_string(routes::root().join("tests/http/mcp_server.py")).expect("the scripted server")
}

/// A template of the scripted server. The last key stands where others write it.
fn template(id: &str) -> String {
    format!(
        "id = \"{id}\"\nname = \"Notes\"\ndescription = \"Keeps notes\"\ncategory = \"productivity\"\nicon = \"N\"\n\
         tags = [\"text\"]\n[transport]\ntype = \"stdio\"\ncommand = \"{PYTHON}\"\nargs = [\"-c\", {:?}]\n\
         [[required_env]]\nname = \"TOKEN\"\nlabel = \"Token\"\nis_secret = true\nget_url = \"https://example.com\"\n\
         [health_check]\ninterval_secs = 60\nsetup_instructions = \"Get a token.\"\n",
        script()
    )
}

fn put(path: PathBuf, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().expect("a parent")).expect("its directory");
    fs::write(&path, text).expect("the file");
    path
}

fn entry(daemon: &Daemon, id: &str) {
    put(daemon.home().join(format!("mcp/catalog/{id}.toml")), &template(id));
}

#[track_caller]
fn ready(daemon: &Daemon, name: &str) -> Value {
    until("the extension is ready", || {
        let reply = daemon.get(&format!("/api/extensions/{name}"));
        Some(reply.expect(200)).filter(|extension| extension["status"] == "ready")
    })
}

fn install(daemon: &Daemon, body: &Value) -> crate::support::http::Reply {
    daemon.post("/api/extensions/install", body)
}

fn list(daemon: &Daemon, query: &str) -> Vec<(String, bool)> {
    let reply = match query {
        "" => daemon.get("/api/extensions"),
        query => daemon.get(&format!("/api/extensions{query}")),
    };
    let list = reply.expect(200);
    let rows = list["extensions"].as_array().expect("a list");
    assert_eq!(list["total"], rows.len());
    rows.iter().map(|row| (text(&row["name"]), row["installed"] == true)).collect()
}

#[test]
fn an_entry_is_installed_used_by_an_agent_and_uninstalled() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    entry(&daemon, "notes");
    assert_eq!(list(&daemon, ""), []);
    assert_eq!(list(&daemon, "?available=true"), [("notes".to_owned(), false)]);
    let before = daemon.get("/api/extensions/notes").expect(200);
    assert_eq!(
        (&before["status"], &before["installed"], &before["installed_at"]),
        (&json!("available"), &json!(false), &Value::Null)
    );
    assert_eq!(
        (&before["setup_instructions"], &before["required_env"][0]["name"]),
        (&json!("Get a token."), &json!("TOKEN"))
    );
    let done = install(&daemon, &json!({ "name": "notes", "credentials": { "TOKEN": "secret-value" } })).expect(201);
    assert_eq!((&done["status"], &done["name"], &done["missing"]), (&json!("installed"), &json!("notes"), &json!([])));
    let extension = ready(&daemon, "notes");
    assert_eq!((&extension["display_name"], &extension["tool_count"]), (&json!("Notes"), &json!(5)));
    assert_eq!((&extension["server"], &extension["health"]["status"]), (&json!("notes"), &json!("connected")));
    assert_eq!((&extension["required_env"][0]["is_set"], &extension["source"]), (&json!(true), &json!("catalog")));
    assert_eq!(extension["tools"][0]["name"], "mcp_notes_echo");
    assert!(text(&extension["installed_at"]).ends_with('Z'), "{extension}");
    assert_eq!(list(&daemon, ""), [("notes".to_owned(), true)]);
    assert_eq!(install(&daemon, &json!({ "name": "notes" })).expect(409)["code"], "extension_installed");

    let agent = daemon.agent_with("ann", "mcp_servers = [\"notes\"]\n[capabilities]\ntools = [\"mcp_*\"]\n");
    model.script([Reply::calls(&[("c", "mcp_notes_echo", r#"{"text":"hi"}"#)]), Reply::text("done")]);
    daemon.say(&agent, "go on");
    let requests = model.requests();
    let last = requests.iter().rev().filter_map(|request| request["messages"].as_array()?.last());
    let result = last.into_iter().find(|message| message["role"] == "tool").expect("a result");
    assert!(text(&result["content"]).contains("echo hi"), "{result}");

    // What is installed survives a kill, and no list, log or audit entry has its credentials.
    daemon.kill();
    daemon.restart();
    ready(&daemon, "notes");
    let audit = daemon.get("/api/audit/recent").expect(200).to_string();
    assert!(audit.contains("mcp_server_created"), "{audit}");
    for path in ["/api/extensions", "/api/extensions/notes", "/api/mcp/servers/notes", "/api/mcp/servers/notes/logs"] {
        assert!(!daemon.get(path).text().contains("secret-value"), "{path}");
    }
    assert!(!audit.contains("secret-value"));

    let gone = daemon.post("/api/extensions/uninstall", &json!({ "name": "notes" })).expect(200);
    assert_eq!(gone, json!({ "status": "uninstalled", "name": "notes" }));
    assert_eq!(daemon.get("/api/tools/mcp_notes_echo").status, 404);
    assert_eq!(daemon.get("/api/extensions/notes").expect(200)["status"], "available");
    daemon.post("/api/extensions/uninstall", &json!({ "name": "notes" })).refused(404);
    // Its credentials went with it.
    let again = install(&daemon, &json!({ "name": "notes" })).expect(201);
    assert_eq!((&again["connected"], &again["missing"]), (&json!(false), &json!(["TOKEN"])));
    assert_eq!(daemon.get("/api/extensions/notes").expect(200)["status"], "setup");
}

#[test]
fn a_template_is_installed_from_a_path() {
    let mut daemon = Daemon::with(FULL);
    let given = tempfile::tempdir().unwrap();
    let file = put(given.path().join("any.toml"), &template("notes"));
    let body = json!({ "source": file, "credentials": { "TOKEN": "secret-value" } });
    assert_eq!(install(&daemon, &body).expect(201)["name"], "notes");
    let extension = ready(&daemon, "notes");
    assert_eq!((&extension["source"], &extension["required_env"][0]["is_set"]), (&json!("path"), &json!(true)));
    assert_eq!(install(&daemon, &body).expect(409)["code"], "extension_installed");
    let log = text(&daemon.get("/api/mcp/servers/notes/logs").expect(200)["log"]);
    assert!(log.contains("started with ***"), "{log}");
    daemon.kill();
    daemon.restart();
    ready(&daemon, "notes");
    // It does not become an entry of the catalog, which is the operator's.
    assert_eq!(daemon.get("/api/mcp/catalog").expect(200)["count"], 0);
    daemon.post("/api/extensions/uninstall", &json!({ "name": "notes" })).expect(200);
    daemon.get("/api/extensions/notes").refused(404);
    assert_eq!(fs::read_dir(daemon.home().join("extensions")).unwrap().count(), 0);
    // A directory, as registries have it.
    put(given.path().join("notes/MCP.toml"), &template("notes"));
    install(&daemon, &json!({ "source": given.path().join("notes") })).expect(201);
    // Its server was removed as such: the template is left, and can be installed again or removed.
    assert_eq!(daemon.delete("/api/mcp/servers/notes").status, 204);
    assert_eq!(list(&daemon, "?available=true"), [("notes".to_owned(), false)]);
    install(&daemon, &json!({ "name": "notes", "credentials": { "TOKEN": "t" } })).expect(201);
    ready(&daemon, "notes");
    daemon.post("/api/extensions/uninstall", &json!({ "name": "notes" })).expect(200);
    daemon.get("/api/extensions/notes").refused(404);
}

#[test]
fn a_path_gives_a_client_no_more_than_it_has() {
    let daemon = Daemon::with_env("", &[("TOKEN", "of-the-daemon")]);
    let given = tempfile::tempdir().unwrap();
    // Commands of clients do not start, and variables of the daemon are not for them.
    let file = put(given.path().join("notes.toml"), &template("notes"));
    let done = install(&daemon, &json!({ "source": file })).expect(201);
    assert_eq!((&done["connected"], &done["missing"]), (&json!(false), &json!(["TOKEN"])));
    assert!(text(&done["error"]).contains("[exec_policy] mode"), "{done}");
    // The operator's entry of the same kind has both.
    entry(&daemon, "mine");
    install(&daemon, &json!({ "name": "mine" })).expect(201);
    ready(&daemon, "mine");
    // An entry of the catalog is not replaced.
    let mine = put(given.path().join("mine.toml"), &template("mine"));
    assert_eq!(install(&daemon, &json!({ "source": mine })).expect(409)["code"], "extension_installed");
    // Hosts in a private network need the operator, and a refusal leaves nothing.
    let web = "id = \"web\"\n[transport]\ntype = \"http\"\nurl = \"http://127.0.0.1:9/mcp\"\n";
    install(&daemon, &json!({ "source": put(given.path().join("web.toml"), web) })).refused_field(400, "transport");
    daemon.get("/api/extensions/web").refused(404);
    let headers = "id = \"web\"\n[transport]\ntype = \"http_compat\"\nbase_url = \"https://example.com\"\n\
                   headers = [{ name = \"K\", value_env = \"TOKEN\" }]\n\
                   tools = [{ name = \"t\", path = \"/t\" }]\n";
    let headers = put(given.path().join("headers.toml"), headers);
    install(&daemon, &json!({ "source": headers })).refused_field(400, "source");
}

#[test]
fn what_cannot_be_installed_is_refused_and_changes_nothing() {
    let daemon = Daemon::start();
    let given = tempfile::tempdir().unwrap();
    entry(&daemon, "notes");
    put(daemon.home().join("mcp/catalog/broken.toml"), "id = ");
    install(&daemon, &json!({})).refused_field(400, "name");
    install(&daemon, &json!({ "name": "notes", "source": "/x" })).refused_field(400, "source");
    install(&daemon, &json!({ "name": 7 })).refused_field(400, "name");
    install(&daemon, &json!({ "name": "none" })).refused(404);
    install(&daemon, &json!({ "source": "none" })).refused(404);
    install(&daemon, &json!({ "name": "../notes" })).refused(404);
    assert_eq!(install(&daemon, &json!({ "name": "broken" })).expect(409)["code"], "mcp_template");
    let undeclared = json!({ "name": "notes", "credentials": { "LD_PRELOAD": "x" } });
    install(&daemon, &undeclared).refused_field(400, "credentials");
    install(&daemon, &json!({ "source": given.path().join("none.toml") })).refused(404);
    for (name, content) in
        [("a", "id = "), ("b", "id = \"../b\""), ("c", "name = \"c\""), ("d", &"#".repeat(1 << 20)), ("e", "\u{0}")]
    {
        let file = put(given.path().join(name), content);
        let reply = install(&daemon, &json!({ "source": file }));
        reply.refused_field(400, "source");
    }
    install(&daemon, &json!({ "source": given.path() })).refused_field(400, "source");
    let file = put(given.path().join("given.toml"), &template("given"));
    install(&daemon, &json!({ "source": file, "credentials": { "OTHER": "x" } })).refused_field(400, "credentials");
    daemon.post("/api/extensions/uninstall", &json!({})).refused_field(400, "name");
    daemon.post("/api/extensions/uninstall", &json!({ "name": "none" })).refused(404);
    daemon.get("/api/extensions/none").refused(404);
    assert_eq!(list(&daemon, ""), []);
    assert_eq!(daemon.get("/api/mcp/servers").expect(200)["total"], 0);
    assert!(!daemon.home().join("extensions/given.toml").exists());
}

#[test]
fn an_extension_of_the_configuration_is_changed_there() {
    let daemon = Daemon::with("[mcp_servers.mine]\ntemplate_id = \"notes\"\nenv = [\"TOKEN=t\"]\n");
    entry(&daemon, "notes");
    daemon.post("/api/mcp/reload", &json!({})).expect(200);
    let extension = ready(&daemon, "notes");
    assert_eq!((&extension["server"], &extension["installed_at"]), (&json!("mine"), &Value::Null));
    assert_eq!(install(&daemon, &json!({ "name": "notes" })).expect(409)["code"], "extension_installed");
    let refused = daemon.post("/api/extensions/uninstall", &json!({ "name": "notes" })).expect(409);
    assert_eq!(refused["code"], "mcp_server_configured");
}

#[test]
fn the_command_line_lists_searches_installs_shows_and_removes() {
    let daemon = Daemon::start();
    entry(&daemon, "notes");
    entry(&daemon, "other");
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output.stderr));
        (said(&output.stdout), said(&output.stderr))
    };
    assert!(!run(&["ext", "list"]).0.contains("notes"));
    let found = run(&["ext", "search", "KEEPS", "notes"]).0;
    assert!(found.contains("notes") && found.contains("other") && found.contains("available"), "{found}");
    assert!(!run(&["ext", "search", "nothing-like-it"]).0.contains("notes"));
    run(&["ext", "install", "notes", "--env", "TOKEN=secret-value"]);
    ready(&daemon, "notes");
    assert!(run(&["ext", "list"]).0.contains("ready"));
    let info = run(&["ext", "info", "notes"]).0;
    assert!(
        info.contains("mcp_notes_echo") && info.contains("Get a token.") && !info.contains("secret-value"),
        "{info}"
    );
    assert!(run(&["ext", "install", "other"]).1.contains("it needs TOKEN"));
    assert_eq!(run(&["ext", "remove", "notes"]).0, "removed notes\n");
    assert!(!daemon.cli(&["ext", "remove", "notes"]).status.success());
}

/// Templates of others, each as it is.
#[test]
fn templates_of_others_are_listed_with_all_that_they_say() {
    let Some(content) = std::env::var_os(CONTENT) else { return };
    let daemon = Daemon::start();
    let templates = Path::new(&content).join("mcp");
    let files: Vec<PathBuf> = fs::read_dir(templates).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in &files {
        put(daemon.home().join("mcp/catalog").join(file.file_name().unwrap()), &fs::read_to_string(file).unwrap());
    }
    let mut names: Vec<_> = files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(list(&daemon, "?available=true"), names.iter().map(|name| (name.clone(), false)).collect::<Vec<_>>());
    for name in &names {
        let extension = daemon.get(&format!("/api/extensions/{name}")).expect(200);
        for key in ["display_name", "description", "category", "icon", "setup_instructions"] {
            assert!(!text(&extension[key]).is_empty(), "{name}: {key}");
        }
        let done = install(&daemon, &json!({ "name": name })).expect(201);
        let needed: Vec<_> =
            extension["required_env"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
        assert_eq!(done["missing"], Value::from(needed), "{name}");
        daemon.post("/api/extensions/uninstall", &json!({ "name": name })).expect(200);
    }
    assert_eq!(list(&daemon, ""), []);
    // From a path, too.
    let first = &files[0];
    install(&daemon, &json!({ "source": first })).expect(409);
    fs::remove_dir_all(daemon.home().join("mcp/catalog")).unwrap();
    install(&daemon, &json!({ "source": first })).expect(201);
    assert_eq!(list(&daemon, "").len(), 1);
}
