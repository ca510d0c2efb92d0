//! Identity providers that are wrong, slow, away or someone else: nobody signs in, and why is said.

use std::thread;

use serde_json::{Value, json};

use super::provider::{Provider, Signature};
use super::{login, owner, sign_in};
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{Gate, ModelServer, Reply};

/// A sign-in that fails: why.
#[track_caller]
fn failure(provider: &Provider, daemon: &Daemon) -> String {
    let refused = sign_in(provider, daemon).expect(502);
    assert_eq!(refused["code"], "sign_in_failed", "{refused}");
    text(&refused["error"])
}

#[test]
fn tokens_that_are_not_for_this_sign_in_let_nobody_in() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    for (claims, why) in [
        (json!({ "iss": "https://evil.example" }), "another issuer"),
        (json!({ "aud": "someone-else" }), "another client"),
        (json!({ "aud": ["me", "someone-else"] }), "another client"),
        (json!({ "azp": "someone-else" }), "another client"),
        (json!({ "nonce": "other" }), "another sign-in"),
        (json!({ "nonce": null }), "another sign-in"),
        (json!({ "exp": 1_000 }), "has expired"),
        (json!({ "iat": 1_000 }), "too long ago"),
        (json!({ "iat": 99_999_999_999_u64 }), "not valid yet"),
        (json!({ "sub": "" }), "names no person"),
    ] {
        provider.set(|script| script.claims = claims);
        let said = failure(&provider, &daemon);
        assert!(said.contains(why), "{why}: {said}");
    }
    provider.set(|script| script.claims = Value::Null);
    for (signature, why) in [
        (Signature::None, "algorithm that is not accepted"),
        (Signature::PublicKey, "algorithm that is not accepted"),
        (Signature::Foreign, "none of the provider's keys"),
    ] {
        provider.set(|script| script.signature = signature);
        let said = failure(&provider, &daemon);
        assert!(said.contains(why), "{why}: {said}");
    }
    provider.set(|script| script.signature = Signature::Right);
    // The token of an earlier sign-in again, with a nonce that was good then.
    sign_in(&provider, &daemon).expect(200);
    let before = provider.get(|script| script.nonces.last().cloned().unwrap());
    provider.set(|script| script.claims = json!({ "nonce": before }));
    assert!(failure(&provider, &daemon).contains("another sign-in"));
    for body in ["{}", "no json", "{\"id_token\":\"a.b\"}", "{\"id_token\":7}"] {
        provider.set(|script| drop(script.instead.insert("/token".to_owned(), Reply::raw(200, &[], body))));
        failure(&provider, &daemon);
    }
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 1);
}

#[test]
fn keys_change_and_old_ones_are_good_no_more() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    sign_in(&provider, &daemon).expect(200);
    provider.rotate();
    sign_in(&provider, &daemon).expect(200);
    let old = provider.get(|script| script.tokens[0].clone());
    let body = json!({ "access_token": "a", "id_token": old }).to_string();
    provider.set(|script| drop(script.instead.insert("/token".to_owned(), Reply::raw(200, &[], &body))));
    assert!(failure(&provider, &daemon).contains("none of the provider's keys"));
    // Tokens of unknown keys do not have the provider asked for ever.
    (0..12).for_each(|_| drop(failure(&provider, &daemon)));
    let asked = provider.server.requests().iter().filter(|request| request.path == "/keys").count();
    assert!(asked <= 8, "{asked}");
}

#[test]
fn a_provider_that_is_away_slow_or_someone_else_is_said_so() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    let document = "/.well-known/openid-configuration";
    let page = [("accept", "text/html")];
    for (status, body, why) in [
        (302, String::new(), "redirect"),
        (500, String::new(), "status 500"),
        (404, String::new(), "no discovery document"),
        (200, format!("\"{}\"", "x".repeat(70_000)), "more than"),
        (200, "no json".to_owned(), "no discovery document"),
    ] {
        let reply = Reply::raw(status, &[("location", "http://10.0.0.1/")], &body);
        provider.set(|script| drop(script.instead.insert(document.to_owned(), reply)));
        let refused = daemon.get("/api/auth/login").expect(502);
        assert!(text(&refused["error"]).contains(why), "{why}: {refused}");
        let shown = daemon.send("GET", "/api/auth/login/default", &page, None);
        assert!(shown.status == 502 && shown.text().contains("<a href=\"../../../\">"), "{}", shown.text());
    }
    provider.set(|script| script.instead.clear());
    for (change, why) in [
        (json!({ "issuer": "https://evil.example" }), "another issuer"),
        (json!({ "token_endpoint": "http://192.168.0.1/token" }), "`token_endpoint`"),
        (json!({ "authorization_endpoint": "javascript:alert(1)" }), "`authorization_endpoint`"),
        (json!({ "jwks_uri": null }), "does not say `jwks_uri`"),
    ] {
        provider.set(|script| script.document = change);
        let refused = daemon.get("/api/auth/login").expect(502);
        assert!(text(&refused["error"]).contains(why), "{why}: {refused}");
    }
    provider.set(|script| script.document = Value::Null);
    // Keys that never end, and keys that are late: the daemon answers others meanwhile.
    let back = provider.agree(&login(&daemon));
    let huge = format!("{{\"keys\":[\"{}\"]}}", "x".repeat(70_000));
    provider.set(|script| drop(script.instead.insert("/keys".to_owned(), Reply::raw(200, &[], &huge))));
    assert!(text(&daemon.get(&back).expect(502)["error"]).contains("more than"));
    provider.set(|script| script.instead.clear());
    let (gate, back, client) = (Gate::default(), provider.agree(&login(&daemon)), daemon.client());
    let late = Reply::raw(200, &[("content-type", "application/json")], "{\"keys\":[]}").gated(&gate);
    provider.set(|script| drop(script.instead.insert("/keys".to_owned(), late)));
    let before = provider.server.requests().len();
    let waiting = thread::spawn(move || client.get(&back).status);
    // For tokens, and for keys.
    provider.server.wait_for_requests(before + 2);
    daemon.get("/api/health").expect(200);
    gate.open();
    let status = waiting.join().unwrap();
    assert_eq!(status, 502, "the keys of someone else");
    provider.set(|script| script.instead.clear());
    sign_in(&provider, &daemon).expect(200);
}

#[test]
fn endpoints_lead_to_no_private_place_and_not_to_the_daemon() {
    let (provider, inside) = (Provider::start(), ModelServer::start());
    let places = [Some(format!("http://{}", inside.address())), Some("https://10.0.0.1".to_owned()), None];
    for place in places {
        // What was found is kept for a while: a daemon of its own each time.
        let daemon = provider.daemon("");
        let place = place.unwrap_or_else(|| format!("http://{}/api/shutdown?x=", daemon.client().addr));
        provider.set(|script| script.document = json!({ "token_endpoint": format!("{place}/token") }));
        let said = text(&sign_in(&provider, &daemon).expect(502)["error"]);
        assert!(said.contains("is refused"), "{place}: {said}");
        daemon.get("/api/health").expect(200);
    }
    assert!(inside.requests().is_empty());
    // An issuer that the operator did not open.
    let config = provider.config("").replace("ssrf_allowed_hosts", "# ssrf_allowed_hosts");
    let closed = Daemon::with(&config);
    assert!(text(&closed.get("/api/auth/login").expect(502)["error"]).contains("is refused"));
}
