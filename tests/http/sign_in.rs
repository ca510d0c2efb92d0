//! Single sign-on at a scripted identity provider: programs and browsers sign in, are told apart, and sign out.

mod browser;
mod misbehaving;
pub(crate) mod password;
mod provider;
mod real;
mod several;

use serde_json::json;

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use provider::{KEY, Provider, Script, pairs};

/// Where a program that signs in is sent.
#[track_caller]
fn login(daemon: &Daemon) -> String {
    let sent = daemon.get("/api/auth/login");
    assert_eq!(sent.status, 307, "{}", sent.text());
    assert_eq!((sent.header("cache-control"), sent.header("set-cookie")), (Some("no-store"), None));
    sent.header("location").unwrap().to_owned()
}

/// A program signs in: the answer to the callback.
#[track_caller]
fn sign_in(provider: &Provider, daemon: &Daemon) -> Reply {
    daemon.get(&provider.agree(&login(daemon)))
}

/// The cookies that a response sets.
fn cookies(reply: &Reply) -> Vec<String> {
    reply.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.clone()).collect()
}

fn owner(daemon: &Daemon) -> Client {
    daemon.keyed(KEY)
}

#[test]
fn a_program_signs_in_and_out() {
    let provider = Provider::start();
    let mut daemon = provider.daemon("");
    let listed = daemon.get("/api/auth/providers").expect(200);
    let shown =
        json!({ "enabled": true, "password": false, "providers": [{ "id": "default", "display_name": "127.0.0.1" }] });
    assert_eq!(listed, shown);
    assert_eq!(
        daemon.get("/api/auth/dashboard-check").expect(200),
        json!({ "mode": "api_key", "single_sign_on": true })
    );
    daemon.get("/api/auth/login/nothing").refused(404);

    let location = login(&daemon);
    let asked = pairs(location.split_once('?').unwrap().1);
    assert_eq!(asked["redirect_uri"], format!("http://{}/api/auth/callback", daemon.client().addr));
    let back = provider.agree(&location);
    // A preview of the link spends nothing.
    assert_eq!(daemon.send("HEAD", &back, &[], None).status, 200);
    let signed_in = daemon.get(&back);
    assert_eq!((signed_in.header("cache-control"), signed_in.header("set-cookie")), (Some("no-store"), None));
    let signed_in = signed_in.expect(200);
    assert_eq!((&signed_in["token_type"], &signed_in["expires_in"]), (&json!("Bearer"), &json!(86_400)));
    assert_eq!((&signed_in["provider"], &signed_in["user"]["email"]), (&json!("default"), &json!("ann@example.com")));
    assert_eq!((&signed_in["user"]["role"], &signed_in["user"]["name"]), (&json!("user"), &json!("Ann")));

    let token = text(&signed_in["token"]);
    let ann = daemon.keyed(&token);
    let who = ann.get("/api/whoami").expect(200);
    assert_eq!(
        (&who["kind"], &who["name"], &who["role"]),
        (&json!("session"), &json!("ann@example.com"), &json!("user"))
    );
    let info = ann.get("/api/auth/userinfo").expect(200);
    assert_eq!((&info["auth_method"], &info["sub"], &info["name"]), (&json!("oidc"), &json!("1"), &json!("Ann")));
    assert_eq!(owner(&daemon).get("/api/auth/userinfo").expect(200)["auth_method"], "api_key");
    // What is in the store, the log and the audit log lets nobody in.
    let records = owner(&daemon).get("/api/audit/recent").text();
    assert!(records.contains("\"signed_in\"") && !records.contains(&token) && !records.contains("canary"));
    // A session outlives a kill.
    daemon.restart();
    let ann = daemon.keyed(&token);
    ann.get("/api/agents").expect(200);
    assert_eq!(ann.poke("/auth/logout").expect(200), json!({ "ok": true }));
    ann.get("/api/agents").refused(401);
    // Without a session, too.
    assert_eq!(daemon.poke("/api/auth/logout").expect(200), json!({ "ok": true }));
    owner(&daemon).get("/api/agents").expect(200);
    assert!(owner(&daemon).get("/api/audit/recent").text().contains("\"sign_in_ended\""));
    // The same person is the same user.
    let again = sign_in(&provider, &daemon).expect(200);
    assert_eq!(again["user"]["user_id"], signed_in["user"]["user_id"]);
    assert_eq!(owner(&daemon).get("/api/users").expect(200)["total"], 1);
    assert_eq!(text(&owner(&daemon).get("/api/users").expect(200)["users"][0]["identities"][0]), provider.root());
}

#[test]
fn a_state_is_good_once_and_a_code_is_good_for_its_sign_in() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    let callback = "/api/auth/callback";
    daemon.get("/api/auth/callback?code=x").refused_field(400, "state");
    daemon.get(&format!("{callback}?state=x")).refused_field(400, "code");
    let long = "s".repeat(17_000);
    daemon.get(&format!("{callback}?state={long}&code=x")).expect(414);
    daemon.post(callback, &json!({ "state": long, "code": "x" })).expect(413);
    for state in ["x", "a.b", &"A".repeat(43)] {
        assert_eq!(daemon.get(&format!("{callback}?code=x&state={state}")).expect(400)["code"], "sign_in_state");
    }
    let (one, two) = (login(&daemon), login(&daemon));
    let (back, other) = (provider.agree(&one), provider.agree(&two));
    // The code of one sign-in with the state of the other: the verifier does not fit.
    let state = |back: &str| pairs(back.split_once('?').unwrap().1)["state"].clone();
    let mixed = back.replace(&state(&back), &state(&other));
    let refused = daemon.get(&mixed).expect(502);
    assert!(
        text(&refused["error"]).contains("invalid_grant") && !text(&refused["error"]).contains("canary"),
        "{refused}"
    );
    assert_eq!(daemon.get(&back).expect(502)["code"], "sign_in_failed", "its code was used");
    // What the provider did not accept, and what is of another provider, uses no state up.
    daemon.get(&format!("{other}&iss=https://evil.example")).refused(502);
    daemon.get(&other).expect(200);
    assert_eq!(daemon.get(&other).expect(400)["code"], "sign_in_state", "its state was used");
    let back = provider.agree(&login(&daemon));
    daemon.get(&back).expect(200);
    assert_eq!(daemon.get(&back).expect(400)["code"], "sign_in_state");
    // A form or JSON.
    let query = provider.agree(&login(&daemon)).split_once('?').unwrap().1.to_owned();
    let form = &[("content-type", "application/x-www-form-urlencoded")];
    assert!(daemon.send("POST", callback, form, Some(query.as_bytes())).expect(200)["token"].is_string());
    let sent = pairs(provider.agree(&login(&daemon)).split_once('?').unwrap().1);
    assert!(daemon.post("/api/auth/callback", &json!(sent)).expect(200)["token"].is_string());
    // The person says no.
    let declined = format!(
        "{callback}?error=access_denied&error_description=canary&state={}",
        state(&provider.agree(&login(&daemon)))
    );
    let declined = daemon.get(&declined).expect(401);
    assert_eq!(declined["code"], "sign_in_declined");
    assert!(text(&declined["error"]).ends_with("access_denied"), "{declined}");
}

#[test]
fn callbacks_that_fail_slow_an_address_down_and_leave_few_entries() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    let state = pairs(login(&daemon).split_once('?').unwrap().1)["state"].clone();
    let back = provider.agree(&login(&daemon));
    let declined = format!("/api/auth/callback?error=access_denied&state={state}");
    (0..5).for_each(|_| drop(daemon.get(&declined).expect(401)));
    let entries = owner(&daemon).get("/api/audit/recent").text();
    assert_eq!(entries.matches("\"sign_in_refused\"").count(), 1, "those of a minute share one: {entries}");
    let asked = |daemon: &Daemon, query: &str| daemon.get(&format!("/api/auth/callback?state={state}&{query}"));
    let statuses: Vec<_> = (0..40).map(|_| asked(&daemon, "code=x&iss=https://evil.example").status).collect();
    assert!(statuses.starts_with(&[502]) && statuses.ends_with(&[429]), "{statuses:?}");
    let slowed = daemon.get(&back);
    assert!(slowed.header("retry-after").is_some());
    assert_eq!(slowed.expect(429)["code"], "auth_slowed");
    // It is the callbacks of this address that wait, not its keys.
    owner(&daemon).get("/api/agents").expect(200);
    daemon.get("/api/agents").refused(401);
    assert_eq!(daemon.get("/api/auth/login").status, 307);
}

#[test]
fn sessions_are_listed_and_ended_by_those_whose_they_are_and_by_admins() {
    let provider = Provider::start();
    let daemon = provider.daemon("default_role = \"viewer\"\n");
    let person = |sub: &str| {
        let email = format!("{sub}@example.com");
        provider.set(|script| script.claims = json!({ "sub": sub, "email": email }));
        let signed_in = sign_in(&provider, &daemon).expect(200);
        (daemon.keyed(&text(&signed_in["token"])), text(&signed_in["session_id"]), text(&signed_in["user"]["user_id"]))
    };
    let ((ann, of_ann, ann_id), (bob, of_bob, _)) = (person("ann"), person("bob"));
    let (ann_too, more, _) = person("ann");
    let listed = ann.get("/api/auth/sessions").expect(200);
    let ids: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|it| text(&it["id"])).collect();
    assert_eq!(ids, [of_ann.clone(), more.clone()], "{listed}");
    assert_eq!(
        (&listed["sessions"][0]["provider"], &listed["sessions"][0]["client"]),
        (&json!("default"), &json!("127.0.0.1"))
    );
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 3);
    // A viewer ends their own, and knows of no others.
    ann.delete(&format!("/api/auth/sessions/{of_bob}")).refused(404);
    ann.delete(&format!("/api/auth/sessions/{more}")).expect(204);
    ann_too.get("/api/agents").refused(401);
    ann.get("/api/agents").expect(200);
    owner(&daemon).delete(&format!("/api/auth/sessions/{of_bob}")).expect(204);
    bob.get("/api/agents").refused(401);
    // A change of the role holds at once, and a user goes with their sessions.
    owner(&daemon).put(&format!("/api/users/{ann_id}"), &json!({ "role": "admin" })).expect(200);
    assert_eq!(ann.get("/api/whoami").expect(200)["role"], "admin");
    owner(&daemon).put(&format!("/api/users/{ann_id}"), &json!({ "role": "owner" })).expect(200);
    let admin = owner(&daemon).post("/api/keys", &json!({ "name": "admin" })).expect(201);
    daemon.keyed(&text(&admin["key"])).delete(&format!("/api/auth/sessions/{of_ann}")).refused(403);
    let reader = owner(&daemon).post("/api/keys", &json!({ "name": "reader", "scopes": ["read"] })).expect(201);
    daemon.keyed(&text(&reader["key"])).delete(&format!("/api/auth/sessions/{of_ann}")).refused(403);
    let own = json!({ "name": "ann-reads", "user_id": ann_id, "scopes": ["read"] });
    let own = owner(&daemon).post("/api/keys", &own).expect(201);
    let refused = daemon.keyed(&text(&own["key"])).delete(&format!("/api/auth/sessions/{of_ann}"));
    let why = refused.refused(403);
    assert!(why.contains("scope write"), "a key that only reads ends not even those of its user: {why}");
    ann.get("/api/agents").expect(200);
    owner(&daemon).delete(&format!("/api/users/{ann_id}")).expect(204);
    ann.get("/api/agents").refused(401);
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 0);
    daemon.get("/api/auth/sessions").refused(401);
}

#[test]
fn named_users_have_their_role_and_strangers_none() {
    let provider = Provider::start();
    let users = "[[users]]\nname = \"ann@example.com\"\nrole = \"admin\"\n[[users]]\nname = \"bob\"\nrole = \"viewer\"\n\
        channel_bindings = { email = \"bob@partner.example\" }\n";
    let daemon = Daemon::with_env(&provider.config(users), &[("SIGN_IN_TEST_SECRET", "client-secret-canary")]);
    assert_eq!(sign_in(&provider, &daemon).expect(200)["user"]["role"], "admin");
    provider.set(|script| script.claims = json!({ "sub": "2", "email": "bob@partner.example" }));
    let bob = sign_in(&provider, &daemon).expect(200);
    assert_eq!((&bob["user"]["role"], &bob["user"]["username"]), (&json!("viewer"), &json!("bob")));
    // Another account with the address of one, and one whom nobody named.
    for (sub, email, code) in
        [("3", "bob@partner.example", "identity_in_use"), ("4", "eve@example.com", "sign_in_not_allowed")]
    {
        provider.set(|script| script.claims = json!({ "sub": sub, "email": email }));
        assert_eq!(sign_in(&provider, &daemon).expect(403)["code"], code);
    }
    provider.set(|script| script.claims = json!({ "sub": "5", "email": "ann@example.com", "email_verified": false }));
    assert_eq!(sign_in(&provider, &daemon).expect(403)["code"], "sign_in_unverified");
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 2);
    assert!(owner(&daemon).get("/api/audit/recent").text().contains("\"sign_in_refused\""));
    // What the token does not say, the profile says; of the same person.
    provider.set(|script| script.claims = json!({ "email": null, "email_verified": null }));
    assert_eq!(sign_in(&provider, &daemon).expect(200)["user"]["username"], "ann@example.com");
    provider.set(|script| script.profile = json!({ "sub": "2" }));
    assert_eq!(sign_in(&provider, &daemon).expect(502)["code"], "sign_in_failed");
}

#[test]
fn tokens_are_looked_at_by_those_who_see_everything() {
    let provider = Provider::start();
    let daemon = provider.daemon("audience = \"https://agents.example.com\"\n");
    let token = text(&sign_in(&provider, &daemon).expect(200)["token"]);
    let look = |client: &Client, token: &str| client.post("/api/auth/introspect", &json!({ "token": token }));
    let owner = owner(&daemon);
    let own = look(&owner, &token).expect(200);
    assert_eq!(
        (&own["active"], &own["token_type"], &own["username"]),
        (&json!(true), &json!("session"), &json!("ann@example.com"))
    );
    assert!(own["exp"].is_i64() && text(&own["scope"]).contains("chat"));
    look(&daemon.keyed(&token), &token).refused(403);
    look(&daemon.client(), &token).refused(401);
    look(&owner, "").refused_field(400, "token");
    assert_eq!(look(&owner, "nothing").expect(200), json!({ "active": false }));
    let root = provider.root();
    let signed = |change: fn(&mut serde_json::Value)| {
        let mut claims = Script::good(&root);
        change(&mut claims);
        provider.get(|script| script.sign(&claims))
    };
    let good = look(&owner, &signed(|_| ())).expect(200);
    assert_eq!((&good["active"], &good["provider"], &good["scope"]), (&json!(true), &json!("default"), &json!("a b")));
    assert_eq!(look(&owner, &signed(|it| it["aud"] = "https://agents.example.com".into())).expect(200)["active"], true);
    assert_eq!(look(&owner, &signed(|it| it["aud"] = "someone".into())).expect(200)["active"], false);
    assert_eq!(look(&owner, &signed(|it| it["exp"] = 1.into())).expect(200)["active"], false);
    assert_eq!(look(&owner, &signed(|it| it["iss"] = "https://evil.example".into())).expect(200)["active"], false);
    // The provider knows tokens that say nothing themselves.
    let opaque = look(&owner, "opaque-canary").expect(200);
    assert_eq!((&opaque["active"], &opaque["secret"]), (&json!(true), &serde_json::Value::Null));
    let at = json!({ "token": "opaque-canary", "provider": "nothing" });
    owner.post("/api/auth/introspect", &at).refused(404);
    // After the end of the session.
    daemon.keyed(&token).poke("/auth/logout").expect(200);
    assert_eq!(look(&owner, &token).expect(200)["active"], false);
}

#[test]
fn without_a_configuration_sign_in_is_off() {
    let mut daemon = Daemon::with(&format!("api_key = \"{KEY}\"\n"));
    assert_eq!(daemon.get("/api/auth/login").expect(503)["code"], "sign_in_off");
    for provider in ["default", "company"] {
        assert_eq!(daemon.get(&format!("/api/auth/login/{provider}")).expect(503)["code"], "sign_in_off");
    }
    let listed = daemon.get("/api/auth/providers").expect(200);
    assert_eq!(listed, json!({ "enabled": false, "password": false, "providers": [] }));
    daemon.get("/api/auth/userinfo").refused(401);
    daemon.use_key(KEY);
    assert_eq!(daemon.post("/api/auth/introspect", &json!({ "token": "x" })).expect(200), json!({ "active": false }));
    let open = Daemon::start();
    assert_eq!(open.get("/api/auth/dashboard-check").expect(200)["mode"], "none");
}
