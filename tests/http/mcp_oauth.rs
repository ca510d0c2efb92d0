//! Signing in at MCP servers (OAuth 2.1), against a scripted server and its authorization server.

mod refused;
mod server;
mod tokens;

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::providers::{files, holds};
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::Gate;
use crate::support::until;
use server::{Server, auth, connected, pairs, path_of, sign_in, start, until_state};

const HTML: &[(&str, &str)] = &[
    ("accept", "text/html,application/xhtml+xml"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

#[test]
fn a_user_signs_in_with_a_client_that_the_daemon_registers() {
    let server = Server::start();
    let mut daemon = Daemon::with(&format!("log_level = \"trace\"\n{}", server.config("docs", "")));
    until_state(&daemon, "docs", "needs_auth");
    let shown = daemon.get("/api/mcp/servers/docs").expect(200);
    assert_eq!((&shown["auth"]["state"], &shown["connected"]), (&json!("needs_auth"), &json!(false)));
    assert!(text(&shown["error"]).contains("asks for a sign-in"), "{shown}");

    let begun = daemon.poke("/api/mcp/servers/docs/auth/start").expect(200);
    let auth_url = text(&begun["auth_url"]);
    assert_eq!((&begun["auth"]["state"], &begun["expires_in"]), (&json!("pending_auth"), &json!(600)));
    let asked = pairs(auth_url.split_once('?').unwrap().1);
    let own = format!("http://{}/api/mcp/servers/docs/auth/callback", daemon.client().addr);
    assert_eq!((asked["redirect_uri"].as_str(), asked["scope"].as_str()), (own.as_str(), "read write"));
    assert_eq!(asked["resource"], format!("{}/mcp", server.root()), "without the query");
    assert_eq!((asked["code_challenge_method"].as_str(), asked["response_type"].as_str()), ("S256", "code"));
    let registered = &server.requests("/register")[0].body;
    assert_eq!(registered["redirect_uris"], json!([own]));
    assert_eq!(
        (&registered["token_endpoint_auth_method"], &registered["application_type"]),
        (&json!("none"), &json!("native"))
    );
    assert_eq!(auth(&daemon, "docs")["auth_url"], auth_url.as_str());
    let list = daemon.get("/api/mcp/servers").expect(200);
    assert_eq!(list["servers"][0]["auth"], json!({ "state": "pending_auth" }));

    assert_eq!(daemon.get("/api/mcp/health").expect(200)["health"][0]["auth"]["state"], "pending_auth");

    // The browser comes back from another site, with no key and to an API that is open.
    let back = server.agree(&auth_url);
    // A preview of the link spends nothing.
    let preview = daemon.send("HEAD", &back, HTML, None);
    assert_eq!((preview.status, preview.header("referrer-policy")), (200, Some("no-referrer")));
    assert!(server.forms("/token").is_empty() && auth(&daemon, "docs")["state"] == "pending_auth");
    let page = daemon.send("GET", &back, HTML, None);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("docs is signed in"), "{}", page.text());
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!((page.header("cache-control"), page.header("referrer-policy")), (Some("no-store"), Some("no-referrer")));
    assert_eq!(connected(&daemon, "docs")["tools"][0]["name"], "mcp_docs_echo");
    let done = auth(&daemon, "docs");
    assert_eq!(
        (&done["state"], &done["scope"], &done["issuer"]),
        (&json!("authorized"), &json!("read write"), &json!(server.root()))
    );
    assert!(done["expires_at"].is_string() && done["auth_url"].is_null(), "{done}");
    let form = &server.forms("/token")[0];
    assert_eq!((&form["client_id"], &form["resource"]), (&text(&json!("client-1")), &format!("{}/mcp", server.root())));

    // A state is good for one use.
    let again = daemon.send("GET", &back, HTML, None);
    assert!(again.status == 400 && again.text().contains("was completed before"), "{}", again.text());
    assert_eq!(daemon.get(&back).expect(400)["code"], "mcp_sign_in_state");
    assert_eq!(auth(&daemon, "docs")["state"], "authorized", "nothing changed");

    // The tokens outlive the daemon.
    daemon.restart();
    connected(&daemon, "docs");
    assert_eq!((server.forms("/token").len(), auth(&daemon, "docs")["state"].clone()), (1, json!("authorized")));
    shows_no_secret(&daemon);
}

/// No token, code or verifier is shown, logged, audited or written in clear.
fn shows_no_secret(daemon: &Daemon) {
    let audit = daemon.get("/api/audit/recent").text();
    assert!(audit.contains("mcp_server_signed_in"), "{audit}");
    let places = ["/api/mcp/servers", "/api/mcp/servers/docs", "/api/mcp/health", "/api/config", "/api/config/export"];
    let seen = places.map(|path| daemon.get(path).text());
    assert!(seen.iter().chain([&audit, &daemon.stderr()]).all(|text| !text.contains("canary")), "{seen:?} {audit}");
    assert!(daemon.home().join("vault/mcp-oauth-docs.sealed").is_file());
    for path in files(daemon.home()).into_iter().filter(|path| !path.ends_with("config.toml")) {
        // What is being replaced may be gone again.
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, "canary"), "{}", path.display());
    }
}

#[test]
fn signing_out_revokes_the_token_and_asks_for_another_sign_in() {
    let server = Server::start();
    let daemon = Daemon::with(&server.config("docs", ""));
    let name = "docs";
    sign_in(&server, &daemon, "docs");
    let refresh: Vec<String> = server.script.lock().unwrap().refresh_tokens.iter().cloned().collect();
    let out = daemon.delete(&format!("/api/mcp/servers/{name}/auth/revoke")).expect(200);
    assert_eq!((&out["server"], &out["revoked"]), (&json!("docs"), &json!(true)));
    let form = &server.forms("/revoke")[0];
    assert_eq!((&form["token"], form["token_type_hint"].as_str()), (&refresh[0], "refresh_token"));
    assert!(!daemon.home().join("vault/mcp-oauth-docs.sealed").exists());
    until_state(&daemon, "docs", "needs_auth");
    assert!(daemon.get("/api/audit/recent").text().contains("mcp_server_signed_out"));
    assert_eq!(daemon.poke(&format!("/api/mcp/servers/{name}/auth/revoke")).expect(200)["revoked"], false);
    sign_in(&server, &daemon, "docs");
    assert_eq!(server.requests("/register").len(), 2, "the client went, too");
    // An authorization server that fails does not keep the user signed in.
    server.set(|script| {
        drop(script.instead.insert("/revoke".to_owned(), crate::support::model_server::Reply::raw(500, &[], "")))
    });
    assert_eq!(daemon.poke(&format!("/api/mcp/servers/{name}/auth/revoke")).expect(200)["revoked"], true);
    assert!(!daemon.home().join("vault/mcp-oauth-docs.sealed").exists());
}

#[test]
fn a_configured_client_has_its_secret_from_the_environment() {
    let server = Server::start();
    let oauth =
        "[mcp_servers.oauth]\nclient_id = \"own client\"\nclient_secret_env = \"DOCS_SECRET\"\nscopes = [\"read\"]\n";
    let open = "[exec_policy]\nmode = \"full\"\nenv_passthrough = [\"DOCS_SECRET\", \"SHOWN\"]\n[tool_invoke]\nenabled = true\n\
                allowlist = [\"shell_exec\"]\n";
    let config = format!("{open}{}", server.config("docs", oauth));
    let daemon = Daemon::with_env(&config, &[("DOCS_SECRET", "secret-canary:1"), ("SHOWN", "shown-value")]);
    sign_in(&server, &daemon, "docs");
    assert!(server.requests("/register").is_empty());
    let request = &server.requests("/token")[0];
    use base64::Engine as _;
    let expected = base64::engine::general_purpose::STANDARD.encode("own+client:secret-canary%3A1");
    assert_eq!(request.headers["authorization"], format!("Basic {expected}").as_str());
    assert!(!server.forms("/token")[0].contains_key("client_secret"));
    for path in ["/api/mcp/servers/docs", "/api/config", "/api/audit/recent"] {
        assert!(!daemon.get(path).text().contains("secret-canary"), "{path}");
    }
    assert!(!daemon.stderr().contains("secret-canary"));
    // Commands do not get it, also where the configuration passes it on.
    let agent = daemon.agent_with("ann", "[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n");
    let ran = daemon
        .post(&format!("/api/tools/shell_exec/invoke?agent_id={agent}"), &json!({ "command": "env" }))
        .expect(200);
    assert!(ran.to_string().contains("shown-value") && !ran.to_string().contains("secret-canary"), "{ran}");

    // A secret is not sent where only the server says that it belongs.
    let elsewhere = Server::start();
    let other = format!("http://localhost:{}/token", elsewhere.server.address().port());
    server.set(|script| script.issuer = json!({ "token_endpoint": other }));
    let refused = daemon.poke("/api/mcp/servers/docs/auth/start").expect(502);
    assert!(text(&refused["error"]).contains("set token_url"), "{refused}");
    assert!(elsewhere.server.requests().is_empty());

    // Without its variable the server says so.
    let daemon = Daemon::with(&server.config("docs", oauth));
    let shown = until("the server says why", || {
        let answer = daemon.get("/api/mcp/servers/docs");
        (answer.status == 200).then(|| answer.expect(200)).filter(|shown| shown["error"].is_string())
    });
    assert!(text(&shown["error"]).contains("DOCS_SECRET"), "{shown}");
}

#[test]
fn settings_stand_in_for_metadata() {
    let server = Server::start();
    server.set(|script| {
        for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"] {
            script.instead.insert(path.to_owned(), crate::support::model_server::Reply::raw(404, &[], ""));
        }
    });
    let bare = Daemon::with(&server.config("docs", ""));
    until_state(&bare, "docs", "needs_auth");
    let refused = bare.poke("/api/mcp/servers/docs/auth/start").expect(502);
    assert!(text(&refused["error"]).contains("set auth_url, token_url and client_id"), "{refused}");
    let root = server.root();
    let oauth = format!(
        "[mcp_servers.oauth]\nclient_id = \"c\"\nauth_url = \"{root}/authorize\"\ntoken_url = \"{root}/token\"\n"
    );
    let daemon = Daemon::with(&server.config("docs", &oauth));
    sign_in(&server, &daemon, "docs");
    assert_eq!(server.forms("/token")[0]["client_id"], "c");
}

#[test]
fn a_server_that_was_added_over_the_api_is_signed_in_to_and_leaves_nothing() {
    let server = Server::start();
    let daemon = Daemon::with("[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1\"]\n");
    let body = json!({ "name": "My-Docs", "url": format!("{}/mcp", server.root()) });
    let added = daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!((&added["connected"], &added["auth"]["state"]), (&json!(false), &json!("needs_auth")));
    sign_in(&server, &daemon, "My-Docs");
    assert!(daemon.home().join("vault/mcp-oauth-my_docs.sealed").is_file());
    // A token is not for another address.
    let moved = json!({ "url": format!("{}/other", server.root()) });
    daemon.put("/api/mcp/servers/My-Docs", &moved).expect(200);
    assert_ne!(auth(&daemon, "My-Docs")["state"], "authorized");
    assert!(server.requests("/other").iter().all(|request| !request.headers.contains_key("authorization")));
    daemon.put("/api/mcp/servers/My-Docs", &json!({ "url": format!("{}/mcp", server.root()) })).expect(200);
    connected(&daemon, "My-Docs");
    daemon.delete("/api/mcp/servers/My-Docs").expect(204);
    assert!(!daemon.home().join("vault/mcp-oauth-my_docs.sealed").exists());
    daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!(until_state(&daemon, "My-Docs", "needs_auth")["message"], Value::Null);
}

#[test]
fn a_server_that_is_reached_in_another_way_before_its_removal_leaves_nothing_either() {
    let server = Server::start();
    let daemon = Daemon::with("[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1\"]\n");
    let elsewhere = json!({ "url": format!("{}/other", server.root()) });
    let program = json!({ "transport": { "type": "stdio", "command": "/bin/false", "args": [] } });
    for (name, change, signs_out) in
        [("moved", &elsewhere, false), ("program", &program, false), ("out", &program, true)]
    {
        let (path, sealed) =
            (format!("/api/mcp/servers/{name}"), daemon.home().join(format!("vault/mcp-oauth-{name}.sealed")));
        let body = json!({ "name": name, "url": format!("{}/mcp", server.root()) });
        daemon.post("/api/mcp/servers", &body).expect(201);
        sign_in(&server, &daemon, name);
        let refresh: Vec<String> = server.script.lock().unwrap().refresh_tokens.iter().cloned().collect();
        daemon.put(&path, change).expect(200);
        assert!(sealed.exists(), "{name}: it may come back to its URL");
        if signs_out {
            assert_eq!(daemon.poke(&format!("{path}/auth/revoke")).expect(200)["revoked"], true);
            assert!(!sealed.exists(), "{name}");
        }
        daemon.delete(&path).expect(204);
        assert!(!sealed.exists(), "{name}");
        assert_eq!(server.forms("/revoke").last().map(|form| &form["token"]), refresh.last(), "{name}");
        daemon.post("/api/mcp/servers", &body).expect(201);
        until_state(&daemon, name, "needs_auth");
    }
    let audit = daemon.get("/api/audit/recent").text();
    assert_eq!(audit.matches("mcp_server_signed_out").count(), 3, "{audit}");
}

#[test]
fn a_server_of_the_catalog_is_signed_out_of_at_its_private_host() {
    let server = Server::start();
    let daemon = Daemon::with("");
    let catalog = daemon.home().join("mcp/catalog");
    fs::create_dir_all(&catalog).unwrap();
    let entry = format!("id = \"docs\"\n[transport]\ntype = \"http\"\nurl = \"{}/mcp\"\n", server.root());
    fs::write(catalog.join("docs.toml"), entry).unwrap();
    daemon.post("/api/mcp/servers", &json!({ "template_id": "docs" })).expect(201);
    sign_in(&server, &daemon, "docs");
    daemon.delete("/api/mcp/servers/docs").expect(204);
    assert_eq!(server.forms("/revoke").len(), 1);
    assert!(!daemon.home().join("vault/mcp-oauth-docs.sealed").exists());
    let audit = daemon.get("/api/audit/recent").text();
    assert_eq!(audit.matches("mcp_server_signed_out").count(), 1, "{audit}");
}

#[test]
fn a_kill_during_a_sign_in_leaves_nothing_half() {
    let server = Server::start();
    let mut daemon = Daemon::with(&server.config("docs", ""));
    until_state(&daemon, "docs", "needs_auth");
    let back = server.agree(&start(&daemon, "docs"));
    daemon.restart();
    assert_eq!(daemon.get(&back).expect(400)["code"], "mcp_sign_in_state");
    until_state(&daemon, "docs", "needs_auth");

    // While the code is exchanged.
    let gate = Gate::default();
    server.set(|script| script.gate = Some(gate.clone()));
    let back = server.agree(&start(&daemon, "docs"));
    let client = daemon.client();
    let asking = thread::spawn(move || client.try_send("GET", &back, &[], None).is_ok());
    until("the code is exchanged", || (server.grants("authorization_code") == 1).then_some(()));
    daemon.kill();
    assert!(!asking.join().unwrap(), "there was no answer");
    gate.open();
    daemon.restart();
    until_state(&daemon, "docs", "needs_auth");
    sign_in(&server, &daemon, "docs");

    // Right after the answer.
    daemon.kill();
    daemon.restart();
    connected(&daemon, "docs");
}

#[test]
fn the_command_line_signs_in_and_out() {
    let server = Server::start();
    let daemon = Daemon::with(&format!("api_key = \"k3y-of-the-api\"\n{}", server.config("docs", "")));
    let keyed = daemon.keyed("k3y-of-the-api");
    until_state(&keyed, "docs", "needs_auth");
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = run(&["mcp", "login", "docs", "--no-wait", "--base-url", "https://agents.example"]);
    let asked = pairs(out.lines().find(|line| line.contains("/authorize?")).unwrap().split_once('?').unwrap().1);
    assert_eq!((code, &*asked["redirect_uri"]), (Some(0), "https://agents.example/api/mcp/servers/docs/auth/callback"));
    let (code, out, _) = thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&["mcp", "login", "docs"]));
        let before = asked["state"].clone();
        let auth_url = until("the sign-in of the command waits", || {
            auth(&keyed, "docs")["auth_url"].as_str().filter(|url| !url.contains(&before)).map(str::to_owned)
        });
        // The callback needs no key.
        daemon.get(&server.agree(&auth_url)).expect(200);
        // The first one is not needed any more.
        let first = format!("{}?error=access_denied&state={before}", path_of(&asked["redirect_uri"]));
        daemon.get(&first).refused(400);
        waiting.join().unwrap()
    });
    assert!(code == Some(0) && out.contains("/authorize?") && out.ends_with("signed in at docs\n"), "{out}");
    // Another one that is declined is not the one that works.
    let (code, _, said) = thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&["mcp", "login", "docs"]));
        let auth_url =
            until("the sign-in of the command waits", || auth(&keyed, "docs")["auth_url"].as_str().map(str::to_owned));
        let state = pairs(auth_url.split_once('?').unwrap().1)["state"].clone();
        let declined = format!("/api/mcp/servers/docs/auth/callback?error=access_denied&state={state}");
        daemon.get(&declined).refused(400);
        waiting.join().unwrap()
    });
    assert!(code == Some(1) && said.contains("access_denied"), "{said}");
    assert_eq!(auth(&keyed, "docs")["state"], "authorized", "the one before still works");
    assert!(run(&["mcp", "list"]).1.contains("SIGN-IN"));
    let (code, out, _) = run(&["mcp", "logout", "docs"]);
    assert_eq!((code, out.trim()), (Some(0), "signed out at docs"));
    assert_eq!(run(&["mcp", "logout", "docs"]).1.trim(), "there was no sign-in at docs");
    assert_eq!(run(&["mcp", "login", "nobody"]).0, Some(4));
}
