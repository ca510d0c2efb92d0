//! What a sign-in is not taken from: wrong states, other servers' answers, metadata that do not fit.

use serde_json::{Value, json};

use super::server::{Server, auth, sign_in, start, until_state};
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{ModelServer, Reply};
use crate::support::until;

/// A daemon whose server `docs` has asked for a sign-in.
fn asked(server: &Server) -> Daemon {
    let daemon = Daemon::with(&server.config("docs", ""));
    until_state(&daemon, "docs", "needs_auth");
    daemon
}

#[test]
fn a_state_is_that_of_a_sign_in_that_waits() {
    let server = Server::start();
    let daemon = Daemon::with(&format!("{}{}", server.config("docs", ""), server.config("more", "")));
    until_state(&daemon, "docs", "needs_auth");
    until_state(&daemon, "more", "needs_auth");
    let callback = "/api/mcp/servers/docs/auth/callback";
    daemon.get(&format!("{callback}?code=x")).refused_field(400, "state");
    daemon.get(&format!("{callback}?state=x")).refused_field(400, "code");
    daemon.get(&format!("{callback}?state={}&code=x", "s".repeat(5_000))).refused_field(400, "state");
    for state in ["", "x", &"A".repeat(43)] {
        assert_eq!(daemon.get(&format!("{callback}?code=x&state={state}")).expect(400)["code"], "mcp_sign_in_state");
    }
    // Of another server, and of none.
    let back = server.agree(&start(&daemon, "docs"));
    for name in ["more", "nothing"] {
        let other = back.replace("/docs/", &format!("/{name}/"));
        assert_eq!(daemon.get(&other).expect(400)["code"], "mcp_sign_in_state");
    }
    assert!(server.forms("/token").is_empty(), "no code was sent on");
    daemon.get(&back).expect(200);

    // Its time is over.
    let begun = daemon.post("/api/mcp/servers/more/auth/start", &json!({ "timeout_secs": 1 })).expect(200);
    assert_eq!(begun["expires_in"], 1);
    let back = server.agree(&text(&begun["auth_url"]));
    until_state(&daemon, "more", "needs_auth");
    assert_eq!(daemon.get(&back).expect(400)["code"], "mcp_sign_in_state");

    // No more than eight wait: the oldest ends.
    let urls: Vec<String> = (0..9).map(|_| start(&daemon, "more")).collect();
    daemon.get(&server.agree(&urls[0])).refused(400);
    daemon.get(&server.agree(&urls[1])).expect(200);
    daemon.get(&server.agree(&urls[8])).refused(400);
    assert_eq!(server.requests("/register").len(), 2, "one client for each server");
}

#[test]
fn bodies_and_servers_that_do_not_fit_are_refused() {
    let server = Server::start();
    let header = "headers = [\"Authorization: Bearer x\"]\n[mcp_servers.transport]\n";
    let fixed = server.config("fixed", "").replace("[mcp_servers.transport]\n", header);
    let daemon = Daemon::with(&format!("{}{fixed}", server.config("docs", "")));
    until_state(&daemon, "docs", "needs_auth");
    let start = "/api/mcp/servers/docs/auth/start";
    for secs in [json!(0), json!(601), json!("x")] {
        daemon.post(start, &json!({ "timeout_secs": secs })).refused_field(400, "timeout_secs");
    }
    for base in ["javascript:alert(1)", "https://h/?x", "https://u@h", "h", ""] {
        daemon.post(start, &json!({ "base_url": base })).refused_field(400, "base_url");
    }
    assert!(server.requests("/register").is_empty());
    let refused = daemon.poke("/api/mcp/servers/fixed/auth/start").expect(409);
    assert_eq!(refused["code"], "mcp_sign_in_unsupported");
    assert_eq!(auth(&daemon, "fixed")["state"], "not_required");
    for path in ["start", "revoke"] {
        daemon.poke(&format!("/api/mcp/servers/nothing/auth/{path}")).refused(404);
    }
    daemon.get("/api/mcp/servers/nothing/auth/status").refused(404);
    let keyed = Daemon::with(&format!("api_key = \"secret\"\n{}", server.config("docs", "")));
    keyed.poke(start).refused(401);
    keyed.get("/api/mcp/servers/docs/auth/status").refused(401);
    keyed.delete("/api/mcp/servers/docs/auth/revoke").refused(401);
    keyed.get(&format!("/api/mcp/servers/{}/auth/callback?state=x&code=y", "docs")).refused(400);
}

#[test]
fn an_answer_that_declines_or_is_of_another_server_gives_no_tokens() {
    let server = Server::start();
    server.set(|script| script.issuer = json!({ "authorization_response_iss_parameter_supported": true }));
    let daemon = asked(&server);
    let state = |url: &str| super::server::pairs(url.split_once('?').unwrap().1)["state"].clone();
    let callback = "/api/mcp/servers/docs/auth/callback";
    let url = start(&daemon, "docs");
    let declined = daemon.get(&format!(
        "{callback}?error=access_denied&error_description=x&iss={}&state={}",
        server.root(),
        state(&url)
    ));
    let declined = declined.expect(400);
    assert_eq!(declined["code"], "mcp_sign_in_declined");
    let shown = auth(&daemon, "docs");
    assert_eq!((&shown["state"], &shown["message"]), (&json!("error"), &declined["error"]));
    assert!(text(&declined["error"]).ends_with("access_denied"), "{declined}");
    for iss in ["", "&iss=https%3A%2F%2Fevil.example"] {
        let back = server.agree(&start(&daemon, "docs"));
        let refused = daemon.get(&format!("{back}{iss}")).expect(502);
        assert!(text(&refused["error"]).contains("authorization server"), "{refused}");
    }
    assert!(server.forms("/token").is_empty());
    // A code that is not accepted, and answers that make no sense.
    let url = start(&daemon, "docs");
    let wrong = format!("{callback}?code=other&iss={}&state={}", server.root(), state(&url));
    let refused = daemon.get(&wrong).expect(502);
    assert!(
        text(&refused["error"]).contains("invalid_grant") && !text(&refused["error"]).contains("canary"),
        "{refused}"
    );
    for body in ["{}", "no json", "{\"access_token\":\"a b\"}", "{\"access_token\":\"a\",\"token_type\":\"mac\"}"] {
        server.set(|script| drop(script.instead.insert("/token".to_owned(), Reply::raw(200, &[], body))));
        let back = server.agree(&start(&daemon, "docs"));
        daemon.get(&format!("{back}&iss={}", server.root())).refused(502);
    }
    assert!(!daemon.get("/api/mcp/servers/docs").expect(200)["connected"].as_bool().unwrap());
    server.set(|script| script.instead.clear());
    let back = server.agree(&start(&daemon, "docs"));
    daemon.get(&format!("{back}&iss={}", server.root())).expect(200);
    assert_eq!(auth(&daemon, "docs")["message"], Value::Null);
}

/// Starts a sign-in that fails; gives why.
#[track_caller]
fn failure(daemon: &Daemon) -> String {
    let refused = daemon.poke("/api/mcp/servers/docs/auth/start").expect(502);
    assert_eq!(refused["code"], "mcp_sign_in_failed");
    text(&refused["error"])
}

#[test]
fn metadata_that_do_not_fit_are_not_used() {
    let server = Server::start();
    let daemon = asked(&server);
    let resource = |value: Value| server.set(|script| script.resource = value);
    for (value, why) in [
        (json!({ "resource": "https://other.example/mcp" }), "another resource"),
        (json!({ "resource": null }), "no `resource`"),
        (json!({ "authorization_servers": [] }), "no authorization server"),
        (json!({ "authorization_servers": ["http://10.0.0.1"] }), "not an https URL"),
        (json!({ "authorization_servers": ["https://10.0.0.1"] }), "is refused"),
        (json!({ "authorization_servers": ["https://169.254.169.254"] }), "is refused"),
        (json!({ "authorization_servers": ["file:///etc/passwd"] }), "not an https URL"),
    ] {
        resource(value);
        let said = failure(&daemon);
        assert!(said.contains(why), "{why}: {said}");
    }
    resource(Value::Null);
    for (value, why) in [
        (json!({ "issuer": "https://evil.example" }), "another issuer"),
        (json!({ "code_challenge_methods_supported": ["plain"] }), "PKCE"),
        (json!({ "code_challenge_methods_supported": null }), "PKCE"),
        (json!({ "token_endpoint": "http://192.168.0.1/token" }), "`token_endpoint`"),
        (json!({ "authorization_endpoint": "javascript:alert(1)" }), "`authorization_endpoint`"),
        (json!({ "registration_endpoint": null }), "set client_id"),
        (json!({ "registration_endpoint": "https://10.0.0.1/register" }), "is refused"),
        (json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }), "set client_id"),
    ] {
        server.set(|script| script.issuer = value);
        let said = failure(&daemon);
        assert!(said.contains(why), "{why}: {said}");
    }
    assert!(server.requests("/register").is_empty() && server.forms("/token").is_empty());
    server.set(|script| script.issuer = Value::Null);
    for (status, body) in [(302, String::new()), (500, String::new()), (200, format!("\"{}\"", "x".repeat(70_000)))] {
        let place = "/.well-known/oauth-authorization-server".to_owned();
        let reply = Reply::raw(status, &[("location", "http://127.0.0.1:1/")], &body);
        server.set(|script| drop(script.instead.insert(place, reply)));
        failure(&daemon);
    }
    server.set(|script| script.instead.clear());
    server.set(|script| script.client = json!({ "client_id": "a b" }));
    assert!(failure(&daemon).contains("returned no client_id"));
    server.set(|script| script.client = Value::Null);
    sign_in(&server, &daemon, "docs");
}

#[test]
fn metadata_of_another_origin_are_not_fetched() {
    let (server, other) = (Server::start(), ModelServer::start());
    let place = format!("http://{}/.well-known/oauth-protected-resource", other.address());
    server.set(|script| script.challenge = Some(format!("Bearer resource_metadata=\"{place}\"")));
    let daemon = asked(&server);
    assert!(failure(&daemon).contains("another origin"));
    assert!(other.requests().is_empty());
    // Without the hint the server's own are found.
    server.set(|script| script.challenge = Some("Basic realm=\"x\", Bearer scope=\"write\"".to_owned()));
    daemon.poke("/api/mcp/servers/docs/reconnect").refused(502);
    let url = start(&daemon, "docs");
    assert!(url.ends_with("scope=write"), "{url}");
}

#[test]
fn a_server_of_a_client_reaches_no_private_authorization_server() {
    let (server, inside) = (Server::start(), ModelServer::start());
    let (port, root) = (inside.address().port(), server.root());
    let host = root.trim_start_matches("http://");
    let daemon = Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = [\"{host}\"]\n"));
    daemon.post("/api/mcp/servers", &json!({ "name": "docs", "url": format!("{root}/mcp") })).expect(201);
    until_state(&daemon, "docs", "needs_auth");
    server.set(|script| script.resource = json!({ "authorization_servers": [format!("http://127.0.0.1:{port}")] }));
    assert!(failure(&daemon).contains("is refused"));
    server.set(|script| {
        (script.resource, script.issuer) =
            (Value::Null, json!({ "registration_endpoint": format!("http://localhost:{port}/") }));
    });
    assert!(failure(&daemon).contains("is refused"));
    server.set(|script| script.issuer = json!({ "token_endpoint": format!("http://127.0.0.1:{port}/token") }));
    let back = server.agree(&start(&daemon, "docs"));
    assert!(text(&daemon.get(&back).expect(502)["error"]).contains("is refused"));
    assert!(inside.requests().is_empty());
    // A server that is not known to ask for a sign-in is not asked for one.
    let plain = ModelServer::start();
    plain.respond(|_| Reply::raw(404, &[], ""));
    let open = Daemon::with(&format!(
        "[[mcp_servers]]\nname = \"docs\"\n[mcp_servers.transport]\ntype = \"http\"\nurl = \"http://{}/mcp\"\n",
        plain.address()
    ));
    until("the server was tried", || (!plain.requests().is_empty()).then_some(()));
    assert_eq!(open.poke("/api/mcp/servers/docs/auth/start").expect(409)["code"], "mcp_sign_in_unsupported");
}

#[test]
fn metadata_reach_other_ports_of_this_machine_only_where_the_settings_name_them() {
    let inside = ModelServer::start();
    inside.respond(|_| Reply::raw(404, &[], ""));
    let other = format!("http://127.0.0.1:{}", inside.address().port());
    for is_api in [false, true] {
        let server = Server::start();
        let daemon = asked(&server);
        let api = format!("http://{}", daemon.client().addr);
        let (place, why) = if is_api { (&api, "the API of this daemon") } else { (&other, "is refused") };
        server.set(|script| script.resource = json!({ "authorization_servers": [place] }));
        let said = failure(&daemon);
        assert!(said.contains(why), "{place}: {said}");
        for name in [place.clone(), place.replace("127.0.0.1", "localhost")] {
            server.set(|script| {
                (script.resource, script.issuer) =
                    (Value::Null, json!({ "registration_endpoint": format!("{name}/api/shutdown") }));
            });
            let said = failure(&daemon);
            assert!(said.contains(why), "{name}: {said}");
        }
        server.set(|script| script.issuer = json!({ "token_endpoint": format!("{place}/api/shutdown") }));
        let back = server.agree(&start(&daemon, "docs"));
        let said = text(&daemon.get(&back).expect(502)["error"]);
        assert!(said.contains(why), "{place}: {said}");
        daemon.get("/api/health").expect(200);
    }
    assert!(inside.requests().is_empty());

    // The operator names the other port, or one that is not that.
    let server = Server::start();
    for (token_url, is_asked) in [(&other, true), (&server.root(), false)] {
        let oauth = format!("[mcp_servers.oauth]\ntoken_url = \"{token_url}/token\"\n");
        let open = Daemon::with(&server.config("docs", &oauth));
        until_state(&open, "docs", "needs_auth");
        let registers = json!({ "registration_endpoint": format!("{other}/register") });
        server.set(|script| script.issuer = registers);
        let said = failure(&open);
        assert_eq!(said.contains("returned status 404"), is_asked, "{said}");
    }
    assert!(inside.requests().iter().all(|request| request.path == "/register"));
    assert_eq!(inside.requests().len(), 1);
}
