//! Every cell of the table in `docs/reference/access.md`, by what the daemon answers.

use std::fs;

use serde_json::json;
use uuid::Uuid;

use crate::people::{daemon, person};
use crate::support::daemon::text;
use crate::support::http::{Client, Reply};
use crate::support::routes::root;

/// One line of the table: method, path, and what owner, admin, user and viewer may.
type Line = (String, String, [String; 4]);

fn lines() -> Vec<Line> {
    let page = fs::read_to_string(root().join("docs/reference/access.md")).expect("the table is there");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>();
    let lines: Vec<_> = page.lines().filter(|line| line.contains("| `/")).map(cells).collect();
    assert!(lines.len() > 250, "{}", lines.len());
    let line = |c: &Vec<String>| (c[1].clone(), c[2].clone(), [c[4].clone(), c[5].clone(), c[6].clone(), c[7].clone()]);
    lines.iter().map(line).collect()
}

/// Asks so that the door decides, and hardly anything happens behind it: `HEAD` for `GET`, and a body that is no JSON.
fn ask(client: &Client, method: &str, path: &str, id: &str) -> Reply {
    let filled: Vec<_> = path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect();
    let method = if method == "GET" { "HEAD" } else { method };
    let body = (method != "HEAD").then_some(&b"no JSON"[..]);
    client.send(method, &filled.join("/"), &[], body)
}

#[test]
fn each_role_may_what_the_table_says() {
    let daemon = daemon();
    let roles = ["owner", "admin", "user", "viewer"];
    let clients: Vec<_> = roles.iter().map(|role| person(&daemon, role, role)).collect();
    let other = daemon.agent("other");
    let nothing = Uuid::nil().to_string();
    for (method, path, cells) in lines() {
        for ((role, (_, client)), cell) in roles.iter().zip(&clients).zip(&cells) {
            let is_of_agent = cell == "own" && path.contains('{');
            // What ends the daemon, or the test, is asked for only by those who may not.
            if cell != "no" && (path == "/api/shutdown" || cell == "anyone") {
                continue;
            }
            let reply = ask(client, &method, &path, if is_of_agent { &other } else { &nothing });
            let said = format!("{role}: {method} {path}: {} {}", reply.status, reply.text());
            match cell.as_str() {
                "no" => assert_eq!(reply.status, 403, "{said}"),
                // Where the path names no agent, the body is read before what is asked for is looked up.
                "own" if is_of_agent && !path.contains("/agents/{") && ["POST", "PUT", "PATCH"].contains(&&*method) => {
                    assert!([400, 404, 415].contains(&reply.status), "{said}");
                }
                "own" if is_of_agent => assert_eq!(reply.status, 404, "{said}"),
                "own" | "yes" => {
                    assert!(reply.status != 401 && !reply.text().contains("may not use this route"), "{said}");
                    let is_for_owners = *role != "owner" && path == "/api/backups/{filename}";
                    // Terminals are off here, for everyone.
                    let is_for_owners = is_for_owners || path == "/api/terminal/ws";
                    assert!(method != "GET" || reply.status != 403 || is_for_owners, "{said}");
                }
                other => panic!("{said}: {other}"),
            }
        }
    }
    assert!(daemon.get("/api/agents").text().contains(&other), "nothing was removed");
}

#[test]
fn scopes_narrow_a_key_of_an_owner() {
    let daemon = daemon();
    let scopes = ["read", "chat", "write", "admin"];
    let key = |scope: &str| {
        let body = json!({ "name": scope, "role": "owner", "scopes": [scope] });
        daemon.keyed(&text(&daemon.post("/api/keys", &body).expect(201)["key"]))
    };
    let clients = scopes.map(key);
    let page = fs::read_to_string(root().join("docs/reference/access.md")).expect("the table is there");
    for line in page.lines().filter(|line| line.contains("| `/") && !line.contains("| anyone |")) {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        for (scope, client) in scopes.iter().zip(&clients).filter(|(scope, _)| **scope != cells[3]) {
            let reply = ask(client, cells[1], cells[2], &Uuid::nil().to_string());
            assert_eq!(reply.status, 403, "{scope}: {line}: {}", reply.text());
        }
    }
}
