//! The tokens of a sign-in: refreshed before they end, once when they are refused, and gone when they are taken back.

use std::thread;

use serde_json::{Value, json};

use super::server::{Server, auth, connected, sign_in, start, until_state};
use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply as Answer;
use crate::support::until;

/// A daemon that is signed in at `docs`, and an agent that has its tools, which clients may call.
fn signed_in(server: &Server) -> (Daemon, String) {
    let open = "rate_limit_per_second = 1000000\n[tool_invoke]\nenabled = true\nallowlist = [\"mcp_docs_echo\"]\n";
    let daemon = Daemon::with(&format!("{open}{}", server.config("docs", "")));
    sign_in(server, &daemon, "docs");
    let agent = daemon.agent_with("ann", "mcp_servers = [\"docs\"]\n[capabilities]\ntools = [\"mcp_*\"]\n");
    (daemon, agent)
}

fn call(daemon: &Daemon, agent: &str) -> Answer {
    daemon.post(&format!("/api/tools/mcp_docs_echo/invoke?agent_id={agent}"), &json!({}))
}

#[track_caller]
fn works(daemon: &Daemon, agent: &str) {
    let answer = call(daemon, agent).expect(200);
    assert!(answer.to_string().contains("called") && answer["is_error"] != true, "{answer}");
}

#[track_caller]
fn fails(daemon: &Daemon, agent: &str) {
    let answer = call(daemon, agent);
    assert!(answer.text().contains("asks for a sign-in"), "{}", answer.text());
}

/// Requests without the token that is good.
fn refused(server: &Server) -> usize {
    let good = server.script.lock().unwrap().good.clone();
    let is_good = |value: &str| value.strip_prefix("Bearer ").is_some_and(|token| good.contains(token));
    let requests = server.requests("/mcp");
    requests
        .iter()
        .filter(|it| !it.headers.get("authorization").is_some_and(|value| is_good(value.to_str().unwrap())))
        .count()
}

#[test]
fn a_token_is_refreshed_before_it_ends() {
    let server = Server::start();
    server.set(|script| script.expires_in = 2);
    let (daemon, agent) = signed_in(&server);
    let before = refused(&server);
    server.set(|script| script.expires_in = 3_600);
    until("the token is refreshed", || {
        works(&daemon, &agent);
        (server.grants("refresh_token") == 1).then_some(())
    });
    let form = server.forms("/token").pop().unwrap();
    assert_eq!((&form["resource"], form["client_id"].as_str()), (&format!("{}/mcp", server.root()), "client-1"));
    works(&daemon, &agent);
    assert_eq!(server.grants("refresh_token"), 1, "it holds for an hour");
    assert_eq!(refused(&server), before, "the server saw no token that had ended");
}

#[test]
fn a_token_that_is_refused_is_refreshed_once_whoever_needs_it() {
    let server = Server::start();
    let (daemon, agent) = signed_in(&server);
    // The server takes the token back: calls at the same time share one refresh.
    server.set(|script| script.good.clear());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| works(&daemon, &agent));
        }
    });
    assert_eq!(server.grants("refresh_token"), 1);
    // The rotated refresh token is on disk.
    server.set(|script| script.good.clear());
    works(&daemon, &agent);
    assert_eq!(server.grants("refresh_token"), 2);
    // A server that accepts no token is not asked for one again and again.
    let useless = json!({ "access_token": "useless-canary", "refresh_token": "next-canary", "expires_in": 3_600 });
    server.set(|script| {
        script.good.clear();
        script.refresh = Some((200, useless));
    });
    fails(&daemon, &agent);
    assert_eq!(server.grants("refresh_token"), 3);
    fails(&daemon, &agent);
    fails(&daemon, &agent);
    assert_eq!(server.grants("refresh_token"), 3);
    let shown = auth(&daemon, "docs");
    assert_eq!(shown["state"], "needs_auth", "{shown}");
    server.set(|script| script.refresh = None);
    daemon.get(&server.agree(&start(&daemon, "docs"))).expect(200);
    until("the server is used again", || call(&daemon, &agent).text().contains("called").then_some(()));
    assert!(!daemon.stderr().contains("canary"));
}

#[test]
fn a_refresh_token_that_was_taken_back_asks_for_a_sign_in() {
    let server = Server::start();
    let (mut daemon, agent) = signed_in(&server);
    server.set(|script| {
        script.good.clear();
        script.refresh_tokens.clear();
    });
    fails(&daemon, &agent);
    let shown = until_state(&daemon, "docs", "needs_auth");
    assert!(
        text(&shown["message"]).contains("invalid_grant") && !text(&shown["message"]).contains("canary"),
        "{shown}"
    );
    assert!(!daemon.home().join("vault/mcp-oauth-docs.sealed").exists());
    let asked = server.grants("refresh_token");
    fails(&daemon, &agent);
    assert_eq!(server.grants("refresh_token"), asked, "there is nothing to refresh");
    daemon.restart();
    until_state(&daemon, "docs", "needs_auth");
    sign_in(&server, &daemon, "docs");
    works(&daemon, &agent);
}

#[test]
fn an_authorization_server_that_is_down_ends_no_sign_in() {
    let server = Server::start();
    let (mut daemon, agent) = signed_in(&server);
    server.set(|script| {
        script.good.clear();
        script.refresh = Some((503, Value::Null));
    });
    fails(&daemon, &agent);
    let shown = auth(&daemon, "docs");
    assert_eq!(shown["state"], "error");
    assert!(text(&shown["message"]).contains("status 503"), "{shown}");
    fails(&daemon, &agent);
    assert_eq!(server.grants("refresh_token"), 1, "it is not asked again at once");
    // It is back: the refresh token is still there.
    server.set(|script| script.refresh = None);
    daemon.restart();
    connected(&daemon, "docs");
    works(&daemon, &agent);
    assert_eq!((server.grants("refresh_token"), auth(&daemon, "docs")["state"].clone()), (2, json!("authorized")));
}

#[test]
fn a_token_without_a_refresh_token_expires() {
    let server = Server::start();
    let token = json!({ "access_token": "only-canary", "expires_in": 1 }).to_string();
    server.set(|script| {
        script.good.insert("only-canary".to_owned());
        let reply = crate::support::model_server::Reply::raw(200, &[("content-type", "application/json")], &token);
        script.instead.insert("/token".to_owned(), reply);
    });
    let daemon = Daemon::with(&server.config("docs", ""));
    until_state(&daemon, "docs", "needs_auth");
    daemon.get(&server.agree(&start(&daemon, "docs"))).expect(200);
    until_state(&daemon, "docs", "expired");
    // It is not sent any more.
    let sent =
        |server: &Server| server.requests("/mcp").iter().filter(|it| it.headers.contains_key("authorization")).count();
    let before = sent(&server);
    daemon.poke("/api/mcp/servers/docs/reconnect").refused(502);
    assert_eq!(sent(&server), before);
    server.set(|script| script.instead.clear());
    daemon.get(&server.agree(&start(&daemon, "docs"))).expect(200);
    connected(&daemon, "docs");
}

#[test]
fn a_server_that_needs_more_permissions_asks_for_another_sign_in() {
    let server = Server::start();
    let (daemon, agent) = signed_in(&server);
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
    let reply = crate::support::model_server::Reply::raw(403, &[("www-authenticate", challenge)], "");
    server.set(|script| drop(script.instead.insert("/mcp".to_owned(), reply)));
    fails(&daemon, &agent);
    let shown = auth(&daemon, "docs");
    assert_eq!(shown["state"], "needs_auth");
    assert!(text(&shown["message"]).contains("more permissions"), "{shown}");
    assert_eq!(server.grants("refresh_token"), 0, "the same token would come");
    server.set(|script| script.instead.clear());
    works(&daemon, &agent);
    daemon.poke("/api/mcp/servers/docs/reconnect").expect(200);
    assert_eq!(auth(&daemon, "docs")["state"], "needs_auth", "what it may do it still does");
    let url = start(&daemon, "docs");
    assert!(url.ends_with("scope=read+write+admin"), "{url}");
    daemon.get(&server.agree(&url)).expect(200);
    until("the server is used again", || call(&daemon, &agent).text().contains("called").then_some(()));
}
