//! Every cell of the table in `docs/reference/access.md`, by what the daemon answers.

use std::fs;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::media::{answered, config as media_config, wav};
use crate::people::{person, things};
use crate::sign_in::password::hash;
use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::model_server::ModelServer;
use crate::support::routes::root;

const KEY: &str = "the-key-of-the-configuration-0123456789";
/// What is off as a rule, so that its routes decide by who asks.
const ALL_ON: &str = "rate_limit_per_second = 1000000\n[prompt_intelligence]\nenabled = true\n[terminal]\nenabled = true\n\
     [a2a]\nenabled = true\n[pairing]\nenabled = true\n[webhook_triggers]\nenabled = true\ntoken_env = \"HOOK_TOKEN\"\n";
/// What only the check of the key says.
const NO_KEY: &str = "missing or invalid bearer token";

/// One line of the table.
struct Line {
    method: String,
    path: String,
    scope: String,
    /// What owner, admin, user and viewer may.
    cells: [String; 4],
}

impl Line {
    fn is(&self, cell: &str) -> bool {
        self.cells.iter().any(|it| it == cell)
    }

    /// May a user what the line says, as far as it is about what belongs to them?
    fn is_own(&self) -> bool {
        self.cells[2] == "own"
    }

    fn is_get(&self) -> bool {
        self.method == "GET"
    }

    /// The path, with `first` for its first parameter; the others are a session or a name.
    fn filled(&self, first: &str, session: &str) -> String {
        let mut first = Some(first);
        let parts = self.path.split('/').map(|part| match part {
            "{session_id}" if first.is_none() => session,
            part if part.starts_with('{') => first.take().unwrap_or(NAME),
            part => part,
        });
        parts.collect::<Vec<_>>().join("/")
    }
}

fn lines() -> Vec<Line> {
    let page = fs::read_to_string(root().join("docs/reference/access.md")).expect("the table is there");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>();
    let line = |c: Vec<String>| Line {
        method: c[1].clone(),
        path: c[2].clone(),
        scope: c[3].clone(),
        cells: [4, 5, 6, 7].map(|at| c[at].clone()),
    };
    let lines: Vec<_> = page.lines().filter(|line| line.contains("| `/")).map(|text| line(cells(text))).collect();
    assert!(lines.len() > 250, "{}", lines.len());
    lines
}

/// A daemon where `more` is on too; its client has the key of the configuration.
fn daemon(more: &str) -> Daemon {
    let config = format!("api_key = \"{KEY}\"\n{ALL_ON}{more}");
    let environment = [("HOOK_TOKEN", "a-token-of-hooks-with-32-bytes-or-more")];
    let mut daemon = Daemon::with_env(&config, &environment);
    daemon.use_key(KEY);
    daemon
}

/// Asks so that the door decides, and hardly anything happens behind it: `HEAD` for `GET`, and a body that is no JSON.
fn ask(client: &Client, line: &Line) -> Reply {
    let nothing = Uuid::nil().to_string();
    let method = if line.is_get() { "HEAD" } else { &*line.method };
    let body = (method != "HEAD").then_some(&b"no JSON"[..]);
    client.send(method, &line.filled(&nothing, &nothing), &[], body)
}

#[test]
fn each_role_may_what_the_table_says() {
    let daemon = daemon("");
    let roles = ["owner", "admin", "user", "viewer"];
    let clients: Vec<_> = roles.iter().map(|role| person(&daemon, role, role).1).collect();
    let nobody = Client { key: None, ..daemon.client() };
    for line in lines() {
        let reply = ask(&nobody, &line);
        let said = format!("nobody: {} {}: {} {}", line.method, line.path, reply.status, reply.text());
        if line.is("anyone") || line.is("public part") {
            // A route that asks for proof of its own says so in its own words.
            assert!(!reply.text().contains(NO_KEY) && (line.method != "GET" || reply.status != 401), "{said}");
        } else {
            assert_eq!(reply.status, 401, "{said}");
        }
        for ((role, client), cell) in roles.iter().zip(&clients).zip(&line.cells) {
            // What ends the daemon is asked for only by those who may not.
            if cell != "no" && line.path == "/api/shutdown" {
                continue;
            }
            let reply = ask(client, &line);
            let said = format!("{role}: {} {}: {} {}", line.method, line.path, reply.status, reply.text());
            match cell.as_str() {
                "no" => assert_eq!(reply.status, 403, "{said}"),
                "anyone" => assert!(!reply.text().contains(NO_KEY), "{said}"),
                // What is somebody's own is asked for below.
                "public part" | "own" | "yes" => {
                    assert!(reply.status != 401 && !reply.text().contains("may not use this route"), "{said}");
                    assert!(!line.is_get() || reply.status != 403, "{said}");
                }
                other => panic!("{said}: {other}"),
            }
        }
    }
}

#[test]
fn scopes_narrow_a_key_of_an_owner() {
    let daemon = daemon("");
    let scopes = ["read", "chat", "write", "admin"];
    let key = |scope: &str| {
        let body = json!({ "name": scope, "role": "owner", "scopes": [scope] });
        daemon.keyed(&text(&daemon.post("/api/keys", &body).expect(201)["key"]))
    };
    let clients = scopes.map(key);
    for line in lines().iter().filter(|line| !line.is("anyone")) {
        for (scope, client) in scopes.iter().zip(&clients).filter(|(scope, _)| **scope != line.scope) {
            let reply = ask(client, line);
            let said = format!("{scope}: {} {}: {} {}", line.method, line.path, reply.status, reply.text());
            assert_eq!(reply.status == 403, !line.is("public part"), "{said}");
        }
    }
}

#[test]
fn a_key_that_may_not_talk_to_agents_makes_none_run() {
    let daemon = daemon("");
    let agent = daemon.agent("one");
    let key = |name: &str, scopes: &[&str]| {
        let body = json!({ "name": name, "role": "owner", "scopes": scopes });
        daemon.keyed(&text(&daemon.post("/api/keys", &body).expect(201)["key"]))
    };
    let writes = key("writes", &["read", "write"]);
    let manifest = |name: &str, more: &str| json!({ "manifest_toml": format!("name = \"{name}\"\n{more}") });
    let schedule = json!({ "cron": "@daily", "agent_id": agent, "prompt": "hi" });
    let trigger = json!({ "agent_id": agent, "pattern": { "all": {} }, "prompt_template": "x" });
    let steps = json!([{ "agent_id": agent, "prompt": "{{input}}" }]);
    let flow = text(&writes.post("/api/workflows", &json!({ "name": "w", "steps": steps })).expect(201)["workflow_id"]);
    let busy = [
        "schedule = { continuous = {} }\n",
        "[autonomous]\n",
        "[[triggers]]\npattern = \"all\"\nprompt_template = \"x\"\n",
    ];
    let mut calls = vec![
        ("/api/schedules".to_owned(), schedule, 201),
        ("/api/triggers".to_owned(), trigger, 201),
        (format!("/api/workflows/{flow}/run"), json!({ "input": "x" }), 200),
        ("/api/tasks".to_owned(), json!({ "title": "t", "assignee": agent }), 201),
        ("/api/events".to_owned(), json!({ "event_type": "x" }), 200),
        (format!("/api/agents/{agent}/message"), json!({ "message": "hi" }), 200),
    ];
    let busy = busy.iter().enumerate().map(|(n, more)| manifest(&format!("busy-{n}"), more));
    calls.extend(busy.map(|body| ("/api/agents".to_owned(), body, 201)));
    for (path, body, _) in &calls {
        let said = writes.post(path, body).refused(403);
        assert!(said.contains("scope chat"), "{path}: {said}");
    }
    let many = json!({ "agents": [manifest("quiet", ""), calls.last().expect("calls").1] });
    let many = writes.post("/api/agents/bulk", &many).expect(200);
    assert_eq!((&many["succeeded"], &many["failed"]), (&json!(1), &json!(1)), "{many}");
    writes.post("/api/agents", &manifest("still", "")).expect(201);
    writes.post(&format!("/api/agents/{agent}/clone"), &json!({})).expect(201);
    let both = key("both", &["read", "write", "chat"]);
    for (path, body, status) in &calls {
        both.post(path, body).expect(*status);
    }
    let busy = daemon.get("/api/agents?name=busy-0").expect(200);
    writes.post(&format!("/api/agents/{}/clone", text(&busy[0]["id"])), &json!({})).refused(403);
}

#[test]
fn a_key_that_may_not_talk_to_agents_turns_off_what_makes_them_run() {
    let daemon = daemon("");
    let agent = daemon.agent("one");
    let key = |scopes: &[&str]| {
        let body = json!({ "name": scopes.join("-"), "role": "owner", "scopes": scopes });
        daemon.keyed(&text(&daemon.post("/api/keys", &body).expect(201)["key"]))
    };
    let (writes, both, talks) = (key(&["read", "write"]), key(&["read", "write", "chat"]), key(&["read", "chat"]));
    let made = |path: &str, body: &Value, id: &str| text(&both.post(path, body).expect(201)[id]);
    let trigger = json!({ "agent_id": agent, "pattern": { "all": {} }, "prompt_template": "x" });
    let (schedule, job) = (
        json!({ "cron": "@daily", "agent_id": agent, "prompt": "hi" }),
        json!({ "schedule": "@daily", "agent_id": agent, "prompt": "hi", "name": "n" }),
    );
    let schedule = made("/api/schedules", &schedule, "id");
    let job = made("/api/cron/jobs", &job, "id");
    let trigger = made("/api/triggers", &trigger, "trigger_id");
    let routes = [
        ("PUT", format!("/api/schedules/{schedule}"), "prompt"),
        ("PUT", format!("/api/cron/jobs/{job}"), "prompt"),
        ("PUT", format!("/api/cron/jobs/{job}/enable"), ""),
        ("PATCH", format!("/api/triggers/{trigger}"), "prompt_template"),
        ("PUT", format!("/api/auto-dream/agents/{agent}/enabled"), ""),
    ];
    for (method, path, text) in &routes {
        let send = |client: &Client, body: Value| {
            let headers = [("content-type", "application/json")];
            client.send(method, path, &headers, Some(body.to_string().as_bytes()))
        };
        send(&talks, json!({ "enabled": false })).refused(403);
        send(&writes, json!({ "enabled": false })).expect(200);
        let said = send(&writes, json!({ "enabled": true })).refused(403);
        assert!(said.contains("scope chat"), "{path}: {said}");
        if !text.is_empty() {
            for body in [json!({ (*text): "y" }), json!({ (*text): "y", "enabled": false }), json!({})] {
                send(&writes, body).refused(403);
            }
        }
        send(&both, json!({ "enabled": true })).expect(200);
    }
}

/// Whoever may not use a route that has a public part is nobody there.
#[test]
fn a_key_that_may_not_use_a_route_gets_its_public_part() {
    let daemon = daemon(
        "[mcp_server]\npublic_tools = [\"system_time\"]\n[tool_invoke]\nenabled = true\nallowlist = [\"task_list\"]\n",
    );
    let agent = daemon.agent("one");
    let narrow = daemon.post("/api/keys", &json!({ "name": "n", "role": "owner", "scopes": ["read", "write"] }));
    let narrow = daemon.keyed(&text(&narrow.expect(201)["key"]));
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let names = |client: &Client| {
        let listed = client.post("/mcp", &list).expect(200);
        let tools = listed["result"]["tools"].as_array().expect("tools").iter();
        tools.map(|tool| text(&tool["name"])).collect::<Vec<_>>()
    };
    let (_, admin) = person(&daemon, "root", "admin");
    assert!(["task_list", "agentsvc_agent_one"].iter().all(|name| names(&admin).iter().any(|it| it == name)));
    let nobody = Client { key: None, ..daemon.client() };
    assert_eq!(names(&nobody), ["system_time"]);
    for client in [person(&daemon, "bob", "user").1, person(&daemon, "eve", "viewer").1, narrow] {
        assert_eq!(names(&client), ["system_time"]);
        let headers = [("content-type", "application/json"), ("x-agentsvc-agent-id", &*agent)];
        client.send("POST", "/mcp", &headers, Some(list.to_string().as_bytes())).refused(401);
        client.post("/api/mcp", &list).refused(403);
    }
    daemon.keyed("wrong").post("/mcp", &list).refused(401);
}

/// What the things are called that have names and no ids.
const NAME: &str = "x";

/// A user, and what is theirs.
struct Anns {
    client: Client,
    agent: String,
    session: String,
    /// Where the paths of each kind begin, and the id of one of them.
    ids: Vec<(&'static str, String)>,
    /// Fields of all bodies.
    body: Value,
}

impl Anns {
    /// A thing of each kind that a user can have. The model server answers for media.
    fn new(daemon: &Daemon, server: &ModelServer) -> Self {
        let login = json!({ "username": "ann", "password": "correct horse" });
        let session = daemon.post("/api/auth/dashboard-login", &login).expect(200);
        let client = daemon.keyed(&text(&session["token"]));
        let made = |path: &str, body: &Value, key: &str| text(&client.post(path, body).expect(201)[key]);
        let agent = client.agent("anns");
        let of_agent = |rest: &str| format!("/api/agents/{agent}/{rest}");
        let last = |path: &str| path.rsplit('/').next().expect("an id").to_owned();
        let mut ids: Vec<_> = things(&client, &agent).iter().map(|(list, path)| (*list, last(path))).collect();
        let id_of = |kind: &str| ids.iter().find(|(list, _)| *list == kind).expect("it was made").1.clone();
        let (talk, flow) = (id_of("/api/sessions"), id_of("/api/workflows"));
        let run = client.post(&format!("/api/workflows/{flow}/run"), &json!({ "input": "hi" })).expect(200);
        let versions = ["One.", "Two."]
            .map(|prompt| made(&of_agent("prompts/versions"), &json!({ "system_prompt": prompt }), "id"));
        let variants = json!(versions.each_ref().map(|version| json!({ "prompt_version_id": version })));
        let experiment = json!({ "name": "e", "variants": variants });
        let experiment = made(&of_agent("prompts/experiments"), &experiment, "id");
        // Whoever asks the server is told of a task that never ends.
        server.respond(|_| answered(&json!({ "task_id": "t1", "status": "Processing" })));
        let video = client.post("/api/media/video", &json!({ "prompt": "x", "agent_id": agent })).expect(202);
        let video = text(&video["task_id"]);
        let user = text(&client.get("/api/whoami").expect(200)["user_id"]);
        ids.extend(
            ["/agents", "/api/agents", "/api/memory/agents", "/api/budget/agents"].map(|of| (of, agent.clone())),
        );
        ids.extend(["/prompts/versions", "/api/prompts/versions"].map(|of| (of, versions[0].clone())));
        ids.extend(["/prompts/experiments", "/api/prompts/experiments"].map(|of| (of, experiment.clone())));
        ids.extend([
            ("/api/budget/users", user),
            ("/api/workflows/runs", text(&run["run_id"])),
            ("/api/uploads", client.upload(&agent, "note.txt", b"mine")),
            ("/api/media/video", video.clone()),
            ("/api/media/tasks", video),
            ("/api/auth/sessions", text(&session["session_id"])),
        ]);
        client.put(&format!("/api/sessions/{talk}/label"), &json!({ "label": NAME })).expect(200);
        client.put(&format!("/api/memory/agents/{agent}/kv/{NAME}"), &json!({ "value": 1 })).expect(200);
        client.put(&of_agent(&format!("files/{NAME}")), &json!({ "content": "mine" })).expect(201);
        let body = fields(&agent, &talk, variants);
        Self { client, agent, session: talk, ids, body }
    }

    /// Where a line leads whose first parameter is what is theirs.
    #[track_caller]
    fn path(&self, line: &Line) -> String {
        if !line.path.contains('{') {
            return line.path.clone();
        }
        let is_of = |kind: &str| line.path.strip_prefix(kind).is_some_and(|rest| rest.starts_with("/{"));
        match self.ids.iter().find(|(kind, _)| is_of(kind)) {
            Some((_, id)) => line.filled(id, &self.session),
            None => panic!("{}: a kind of thing of a user that this test does not make", line.path),
        }
    }

    /// Asks as a line says, with a valid body.
    fn asked(&self, client: &Client, line: &Line) -> Reply {
        let path = self.path(line);
        match &*line.method {
            "GET" | "DELETE" => client.send(&line.method, &path, &[], None),
            _ if line.path.ends_with("/upload") => client.upload_as(&self.agent, "other.txt", None, b"other"),
            _ if path == "/api/media/transcribe" => {
                let path = format!("{path}?agent_id={}", self.agent);
                client.send("POST", &path, &[("content-type", "audio/wav")], Some(wav().as_bytes()))
            }
            _ => client.send(&line.method, &path, &[], Some(self.body.to_string().as_bytes())),
        }
    }

    /// Does a text name something of theirs?
    fn are_in(&self, text: &str) -> bool {
        self.ids.iter().any(|(_, id)| text.contains(id))
    }
}

/// A valid body of every route about what belongs to a user: each takes what it knows.
fn fields(agent: &str, session: &str, variants: Value) -> Value {
    json!({
        "agent_id": agent, "assignee": agent, "session_id": session, "turn_id": agent, "message_id": 1, "name": "anns",
        "title": "x", "label": NAME, "message": "x", "prompt": "x", "text": "x", "input": "x", "content": "x",
        "command": "/help", "cron": "@daily", "schedule": "@daily", "pattern": { "all": {} }, "prompt_template": "x",
        "steps": [{ "agent_id": agent }], "enabled": false, "helpful": true, "reason": "x", "result": "x", "error": "x",
        "key": NAME, "value": "x", "mode": "Normal", "model": "builtin", "tools": [], "skills": [], "entries": [],
        "relations": [], "from": "a", "relation": "b", "to": "c", "system_prompt": "y", "variants": variants,
        "manifest_toml": "name = \"anns\"\n[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n",
    })
}

/// A daemon where Ann has a password, and something of everything.
fn with_ann(server: &ModelServer) -> (Daemon, Anns) {
    let ann = format!("[[users]]\nname = \"ann\"\nrole = \"user\"\npassword_hash = \"{}\"\n", hash("correct horse"));
    let daemon = daemon(&(media_config(server) + &ann));
    let anns = Anns::new(&daemon, server);
    (daemon, anns)
}

#[test]
fn what_is_anns_is_not_there_for_others_and_is_for_ann() {
    let server = ModelServer::start();
    let (daemon, anns) = with_ann(&server);
    let lines: Vec<_> = lines().into_iter().filter(Line::is_own).collect();
    let (_, bob) = person(&daemon, "bob", "user");
    let (_, eve) = person(&daemon, "eve", "viewer");
    let mut asked = 0;
    for line in &lines {
        for (client, cell) in [(&bob, &line.cells[2]), (&eve, &line.cells[3])] {
            let is_list = line.is_get() && !line.path.contains('{');
            let wanted = match &**cell {
                "no" => 403,
                _ if is_list => 200,
                // It asks for nothing of anyone's: one's own is made, under a name that is taken here.
                _ if line.path == "/api/agents" => 409,
                _ => 404,
            };
            let reply = anns.asked(client, line);
            let said = format!("{cell}: {} {}: {} {}", line.method, line.path, reply.status, reply.text());
            assert_eq!(reply.status, wanted, "{said}");
            assert!(!is_list || !anns.are_in(&reply.text()), "{said}");
            asked += 1;
        }
    }
    assert!(asked > 250, "{asked}");
    // Nothing of it has changed, and it is for Ann alone that it is there.
    for line in lines.iter().filter(|line| line.is_get()) {
        let head = anns.client.send("HEAD", &anns.path(line), &[], None);
        assert!(![401, 403, 404].contains(&head.status), "{}: {}", line.path, head.status);
        let is_list = !line.path.contains('{');
        assert!(!is_list || anns.are_in(&anns.client.get(&line.path).text()), "{}: none of Ann's", line.path);
    }
    // What resets the session of the others comes last.
    let (resets, changes): (Vec<_>, Vec<_>) = lines
        .iter()
        .filter(|line| !line.is_get() && line.method != "DELETE")
        .partition(|line| line.path.ends_with("/reset"));
    for line in changes.into_iter().chain(resets) {
        let reply = anns.asked(&anns.client, line);
        let said = format!("ann: {} {}: {} {}", line.method, line.path, reply.status, reply.text());
        assert!(![400, 401, 403, 404, 415, 422].contains(&reply.status), "{said}");
    }
}
