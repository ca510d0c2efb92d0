//! Sign-in with a password, and with a code of the authenticator.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::json;

use super::cookies;
use super::provider::KEY;
use crate::second_factor::{Codes, approve, confirm, request, setup};
use crate::support::clients::skipped;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;

/// The hash of a password, as the command line makes it.
pub(crate) fn hash(password: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentsvc"));
    command.args(["user", "hash-password"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn config(more: &str) -> String {
    let hash = hash("correct horse");
    format!(
        "api_key = \"{KEY}\"\nrate_limit_per_second = 1000000\n[[users]]\nname = \"ann\"\nrole = \"admin\"\npassword_hash = \"{hash}\"\n\
         [[users]]\nname = \"bob\"\n{more}"
    )
}

#[test]
fn a_user_signs_in_with_a_password() {
    let daemon = Daemon::with(&config(""));
    assert_eq!(
        daemon.get("/api/auth/dashboard-check").expect(200),
        json!({ "mode": "hybrid", "single_sign_on": false })
    );
    assert_eq!(daemon.get("/api/auth/providers").expect(200)["password"], true);
    let login = |name: &str, password: &str| json!({ "username": name, "password": password }).to_string();
    let route = "/api/auth/dashboard-login";
    let ask = |body: &str, headers: &[(&str, &str)]| daemon.send("POST", route, headers, Some(body.as_bytes()));
    for (name, password) in [("ann", "wrong"), ("bob", "correct horse"), ("eve", "correct horse")] {
        assert_eq!(ask(&login(name, password), &[]).expect(401)["code"], "wrong_password");
    }
    ask(&login("", "x"), &[]).refused_field(400, "username");
    ask(&login("ann", ""), &[]).refused_field(400, "password");
    ask(&login("ann", &"x".repeat(2_000)), &[]).refused_field(400, "password");
    // A program gets the token; a page gets the cookie alone; a page of another site gets nothing.
    let program = ask(&login("ann", "correct horse"), &[]).expect(200);
    assert_eq!((&program["provider"], &program["user"]["role"]), (&json!("password"), &json!("admin")));
    let ann = daemon.keyed(&text(&program["token"]));
    assert_eq!(ann.get("/api/auth/userinfo").expect(200)["auth_method"], "password");
    let own = format!("http://{}", daemon.client().addr);
    let page = ask(&login("ann", "correct horse"), &[("origin", &own), ("sec-fetch-site", "same-origin")]);
    let cookie = cookies(&page)[0].split(';').next().unwrap().to_owned();
    assert!(page.expect(200).get("token").is_none());
    assert_eq!(daemon.send("GET", "/api/whoami", &[("cookie", &cookie)], None).expect(200)["kind"], "session");
    let foreign = ask(&login("ann", "correct horse"), &[("origin", "https://evil.example")]);
    assert!(cookies(&foreign).is_empty());
    assert_eq!(foreign.expect(403)["code"], "origin");
    let records = daemon.keyed(KEY).get("/api/audit/recent").text();
    assert!(records.contains("\"sign_in_refused\"") && !records.contains("correct horse"));
}

#[test]
fn wrong_passwords_slow_an_address_down() {
    let daemon = Daemon::with(&config(""));
    let body = json!({ "username": "ann", "password": "wrong" });
    let statuses: Vec<u16> = (0..40).map(|_| daemon.post("/api/auth/dashboard-login", &body).status).collect();
    assert!(statuses.starts_with(&[401]) && statuses.ends_with(&[429]), "{statuses:?}");
    let right = json!({ "username": "ann", "password": "correct horse" });
    daemon.post("/api/auth/dashboard-login", &right).refused(429);
    daemon.keyed(KEY).get("/api/agents").expect(200);
}

#[test]
fn wrong_passwords_that_come_at_the_same_time_slow_an_address_down() {
    let daemon = Daemon::with(&config(""));
    let (client, began) = (daemon.client(), Instant::now());
    let login = |password: &str| {
        let body = json!({ "username": "ann", "password": password });
        client.post("/api/auth/dashboard-login", &body).status
    };
    let statuses: Vec<u16> = thread::scope(|scope| {
        let all: Vec<_> = (0..40).map(|_| scope.spawn(|| login("wrong"))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    // Ten are free. Another one is looked at after a second, the next after two more, then after four more.
    let most = 10 + (began.elapsed().as_secs() + 1).ilog2() as usize;
    let looked_at = statuses.iter().filter(|status| **status == 401).count();
    assert!(looked_at <= most && statuses.contains(&401) && statuses.contains(&429), "{most}: {statuses:?}");
}

#[test]
fn right_passwords_slow_nobody_down() {
    let daemon = Daemon::with(&config(""));
    let right = json!({ "username": "ann", "password": "correct horse" });
    for _ in 0..12 {
        daemon.post("/api/auth/dashboard-login", &right).expect(200);
    }
}

#[test]
fn a_password_alone_is_not_enough_where_approvals_need_a_code() {
    let daemon = Daemon::with(&config("[approval]\nsecond_factor = \"totp\"\n"));
    let body = json!({ "username": "ann", "password": "correct horse" });
    // No authenticator is confirmed yet: nobody gets in by a password.
    daemon.post("/api/auth/dashboard-login", &body).refused_field(400, "totp_code");
    let wrong = json!({ "username": "ann", "password": "wrong", "totp_code": "123456" });
    assert_eq!(daemon.post("/api/auth/dashboard-login", &wrong).expect(401)["code"], "wrong_password");
}

#[test]
fn a_password_needs_a_code_each_time_also_while_approvals_need_none() {
    if skipped() {
        return;
    }
    let more = "[approval]\nsecond_factor = \"totp\"\ntotp_grace_period_secs = 300\n";
    let mut daemon = Daemon::with(&config(more));
    daemon.use_key(KEY);
    let agent = daemon.agent("a");
    let (first, second) = (request(&daemon, &agent), request(&daemon, &agent));
    let codes = Codes::of(&text(&setup(&daemon, &json!({})).expect(200)["secret"]));
    confirm(&daemon, &codes.before).expect(200);
    let client = Client::new(daemon.client().addr);
    let login = |code: Option<&str>| {
        let body = json!({ "username": "ann", "password": "correct horse", "totp_code": code });
        client.post("/api/auth/dashboard-login", &body)
    };
    login(None).refused_field(400, "totp_code");
    login(Some(&codes.wrong)).refused_field(400, "totp_code");
    let signed_in = login(Some(&codes.now)).expect(200);
    assert_eq!(daemon.keyed(&text(&signed_in["token"])).get("/api/whoami").expect(200)["name"], "ann");
    for code in [None, Some(&*codes.now), Some(&*codes.wrong)] {
        login(code).refused_field(400, "totp_code");
    }
    // The sign-in spared no approval its code, and the approval spares no sign-in one.
    let alone = |id: &str| daemon.poke(&format!("/api/approvals/{id}/approve"));
    alone(&first).refused_field(400, "totp_code");
    approve(&daemon, &first, &codes.next).expect(200);
    alone(&second).expect(200);
    login(None).refused_field(400, "totp_code");
}
