//! Several identity providers, and what each may say of whom.

use serde_json::json;

use super::owner;
use super::provider::{Provider, SECRET};
use crate::support::daemon::Daemon;
use crate::support::http::Reply;
use crate::support::until;

const USERS: &str = r#"
[[users]]
name = "ann@example.com"
role = "owner"
[[users]]
name = "bob"
role = "admin"
channel_bindings = { email = "bob@example.com" }
[[users]]
name = "carl@partner.example"
role = "admin"
[[users]]
name = "dan@elsewhere.example"
role = "viewer"
"#;

/// A daemon with a default provider, and one that is limited to a domain of its own.
fn daemon(default: &Provider, partner: &Provider) -> Daemon {
    let (root, secret) = (partner.root(), SECRET.0);
    let more = format!(
        "allowed_domains = [\"example.com\"]\n[[external_auth.providers]]\nname = \"partner\"\nissuer_url = \"{root}\"\n\
         client_id = \"me\"\nclient_secret_env = \"{secret}\"\nallowed_domains = [\"partner.example\"]\n{USERS}"
    );
    let hosts = "ssrf_allowed_hosts = [";
    let both = format!("{hosts}\"{}\", ", partner.server.address());
    Daemon::with_env(&default.config(&more).replace(hosts, &both), &[SECRET])
}

/// Someone signs in at a provider, which says that this is their address.
#[track_caller]
fn sign_in(daemon: &Daemon, provider: &Provider, id: &str, subject: &str, email: &str) -> Reply {
    provider.set(|script| script.claims = json!({ "sub": subject, "email": email }));
    let sent = daemon.get(&format!("/api/auth/login/{id}"));
    assert_eq!(sent.status, 307, "{}", sent.text());
    daemon.get(&provider.agree(sent.header("location").unwrap()))
}

#[test]
fn a_provider_with_domains_of_its_own_says_of_no_other_address_whose_it_is() {
    let (default, partner) = (Provider::start(), Provider::start());
    let daemon = daemon(&default, &partner);
    let listed = daemon.get("/api/auth/providers").expect(200);
    assert_eq!(listed["providers"][1], json!({ "id": "partner", "display_name": "partner" }));
    let at_partner = |subject: &str, email: &str| sign_in(&daemon, &partner, "partner", subject, email);
    let at_default = |subject: &str, email: &str| sign_in(&daemon, &default, "default", subject, email);

    let users = until("the users of the configuration are there", || {
        let users = owner(&daemon).get("/api/users").expect(200);
        (users["total"] == 4).then_some(users)
    });
    let others = ["ann@example.com", "bob@example.com", "dan@elsewhere.example", "eve@example.com"];
    for (at, email) in others.iter().enumerate() {
        assert_eq!(at_partner(&format!("evil-{at}"), email).expect(403)["code"], "sign_in_not_allowed", "{email}");
    }
    assert_eq!(owner(&daemon).get("/api/users").expect(200), users, "nobody is known by an account there");
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 0);

    // Of its own domain: a user who was added, and a stranger.
    let carl = at_partner("carl", "carl@partner.example").expect(200);
    assert_eq!((&carl["provider"], &carl["user"]["role"]), (&json!("partner"), &json!("admin")));
    let zoe = at_partner("zoe", "zoe@partner.example").expect(200);
    assert_eq!((&zoe["user"]["username"], &zoe["user"]["role"]), (&json!("zoe@partner.example"), &json!("user")));
    // Someone who is known by the account stays who they are, whatever their address is now.
    let moved = at_partner("carl", "ann@example.com").expect(200);
    assert_eq!(moved["user"]["user_id"], carl["user"]["user_id"]);
    assert_eq!(
        (&moved["user"]["username"], &moved["user"]["email"]),
        (&json!("carl@partner.example"), &json!("ann@example.com"))
    );

    // The default provider has none of its own: it says whose each address is.
    for (subject, email, name, role) in [
        ("ann", "ann@example.com", "ann@example.com", "owner"),
        ("bob", "bob@example.com", "bob", "admin"),
        ("dan", "dan@elsewhere.example", "dan@elsewhere.example", "viewer"),
        ("eve", "eve@example.com", "eve@example.com", "user"),
    ] {
        let user = at_default(subject, email).expect(200)["user"].clone();
        assert_eq!((&user["username"], &user["role"]), (&json!(name), &json!(role)), "{email}");
    }
}
