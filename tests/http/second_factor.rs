//! The second factor of approvals, with codes of the Python package pyotp, and the vault that keeps its secret.
//!
//! `tests/set_up.sh` installs the package; `AGENTSVC_CLIENTS=skip` skips the tests that need it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::clients::{python, skipped};
use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::until;

const TOTP: &str = "rate_limit_per_second = 1000000\n[approval]\nsecond_factor = \"totp\"\n";

/// Codes of a secret around this moment, in the order in which they may be used.
pub(crate) struct Codes {
    pub(crate) before: String,
    pub(crate) now: String,
    pub(crate) next: String,
    /// Six digits that are no code near this moment.
    pub(crate) wrong: String,
}

/// Runs a line of Python that knows `pyotp`, and has `arguments` in `a`.
fn pyotp(line: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(python("pyotp"));
    command.args(["-c", &format!("import pyotp, sys\na = sys.argv[1:]\n{line}")]).args(arguments);
    let output = command.output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

impl Codes {
    /// Early in a step, so that all of them count for as long as a test takes: Python, too, may take long to start.
    pub(crate) fn of(secret: &str) -> Self {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let line = "t = pyotp.TOTP(a[0]); n = int(a[1])\nprint(*[t.at(n + 30 * o) for o in range(-3, 4)])";
        let said = until("codes are there early in a step of thirty seconds", || {
            let then = now();
            let said = (then % 30 < 12).then(|| pyotp(line, &[secret, &then.to_string()]))?;
            (now() / 30 == then / 30 && now() % 30 < 15).then_some(said)
        });
        let codes: Vec<&str> = said.split_whitespace().collect();
        let wrong = (0..8).map(|n| format!("{n:06}")).find(|text| !codes.contains(&&**text)).expect("seven are codes");
        Self { before: codes[2].into(), now: codes[3].into(), next: codes[4].into(), wrong }
    }
}

pub(crate) fn setup(client: &Client, body: &Value) -> Reply {
    client.post("/api/approvals/totp/setup", body)
}

pub(crate) fn confirm(client: &Client, code: &str) -> Reply {
    client.post("/api/approvals/totp/confirm", &json!({ "code": code }))
}

fn revoke(client: &Client, code: &str) -> Reply {
    client.post("/api/approvals/totp/revoke", &json!({ "code": code }))
}

/// Enrolled, confirmed, enforced, and the recovery codes that are left.
fn status(client: &Client) -> (bool, bool, bool, u64) {
    let status = client.get("/api/approvals/totp/status").expect(200);
    let is = |key: &str| status[key].as_bool().expect("a boolean");
    (is("enrolled"), is("confirmed"), is("enforced"), status["remaining_recovery_codes"].as_u64().expect("a number"))
}

pub(crate) fn request(client: &Client, agent: &str) -> String {
    let asked = client.post("/api/approvals", &json!({ "agent_id": agent, "action": "act" })).expect(201);
    text(&asked["id"])
}

pub(crate) fn approve(client: &Client, id: &str, code: &str) -> Reply {
    client.post(&format!("/api/approvals/{id}/approve"), &json!({ "totp_code": code }))
}

/// A daemon with a confirmed secret: its codes (the earliest is used) and recovery codes.
fn confirmed(config: &str) -> (Daemon, String, Codes, Vec<String>) {
    let daemon = Daemon::with(config);
    let fresh = setup(&daemon, &json!({})).expect(200);
    let recovery = fresh["recovery_codes"].as_array().expect("codes").iter().map(text).collect();
    let codes = Codes::of(&text(&fresh["secret"]));
    confirm(&daemon, &codes.before).expect(200);
    let agent = daemon.agent("a");
    (daemon, agent, codes, recovery)
}

/// Every file below `dir`.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_code_approves_once_and_rejecting_needs_none() {
    if skipped() {
        return;
    }
    let daemon = Daemon::with(TOTP);
    let agent = daemon.agent("a");
    let ids: Vec<String> = (0..5).map(|_| request(&daemon, &agent)).collect();
    assert_eq!(status(&daemon), (false, false, true, 0));
    daemon.poke(&format!("/api/approvals/{}/approve", ids[0])).refused_field(400, "totp_code");
    approve(&daemon, &ids[0], "123456").refused_field(400, "totp_code");

    let reply = setup(&daemon, &json!({}));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let fresh = reply.expect(200);
    let secret = text(&fresh["secret"]);
    assert_eq!(status(&daemon), (true, false, true, 10));
    let line = "t = pyotp.parse_uri(a[0]); print(t.secret, t.issuer, t.digits, t.interval, t.digest().name)";
    assert_eq!(pyotp(line, &[&text(&fresh["otpauth_uri"])]).trim(), format!("{secret} agentsvc 6 30 sha1"));
    let codes = Codes::of(&secret);
    approve(&daemon, &ids[0], &codes.now).refused_field(400, "totp_code");
    confirm(&daemon, &codes.wrong).refused_field(400, "code");
    confirm(&daemon, "12345").refused_field(400, "code");
    assert_eq!(confirm(&daemon, &codes.before).expect(200)["status"], "confirmed");
    assert_eq!(status(&daemon), (true, true, true, 10));

    daemon.poke(&format!("/api/approvals/{}/approve", ids[0])).refused_field(400, "totp_code");
    approve(&daemon, &ids[0], &codes.before).refused_field(400, "totp_code");
    approve(&daemon, &ids[0], &codes.wrong).refused_field(400, "totp_code");
    let batch = |ids: &[String], code: Value| {
        daemon.post("/api/approvals/batch", &json!({ "ids": ids, "decision": "approve", "totp_code": code }))
    };
    batch(&ids[..2], Value::Null).refused_field(400, "totp_code");
    batch(&ids[..2], json!(codes.wrong)).refused_field(400, "totp_code");
    assert_eq!(daemon.get("/api/approvals/count").expect(200)["pending"], 5, "nothing was decided");
    assert_eq!(batch(&ids[..2], json!(codes.now)).expect(200)["total"], 2);
    approve(&daemon, &ids[2], &codes.now).refused_field(400, "totp_code");
    // What cannot be approved uses no code up.
    approve(&daemon, &ids[0], &codes.next).refused(409);
    approve(&daemon, "00000000-0000-7000-8000-000000000000", &codes.next).refused(404);
    assert_eq!(approve(&daemon, &ids[2], &codes.next).expect(200)["status"], "approved");
    daemon.poke(&format!("/api/approvals/{}/reject", ids[3])).expect(200);
    daemon.post("/api/approvals/batch", &json!({ "ids": [ids[4]], "decision": "reject" })).expect(200);
}

#[test]
fn the_secret_and_the_recovery_codes_are_nowhere_in_clear() {
    if skipped() {
        return;
    }
    let mut daemon = Daemon::with(TOTP);
    let fresh = setup(&daemon, &json!({})).expect(200);
    let secret = text(&fresh["secret"]);
    let bytes = pyotp("print(pyotp.TOTP(a[0]).byte_secret().hex())", &[&secret]);
    let bytes: Vec<u8> = (0..20).map(|n| u8::from_str_radix(&bytes[2 * n..2 * n + 2], 16).unwrap()).collect();
    let listed = serde_json::to_string(&bytes).unwrap();
    let mut hidden = vec![bytes, secret.into_bytes(), listed.trim_matches(['[', ']']).into()];
    for code in fresh["recovery_codes"].as_array().unwrap() {
        hidden.extend([text(code).into_bytes(), text(code).replace('-', "").into_bytes()]);
    }
    daemon.restart();
    let found = files(daemon.home());
    assert!(found.iter().any(|path| path.ends_with("vault/totp.sealed")));
    for path in found {
        let content = fs::read(&path).unwrap_or_default();
        let shows = |text: &Vec<u8>| content.windows(text.len()).any(|window| window == text);
        assert!(!hidden.iter().any(shows), "{}", path.display());
    }
    assert_eq!(status(&daemon), (true, false, true, 10));
}

#[test]
fn recovery_codes_revoke_and_set_up_once_each() {
    if skipped() {
        return;
    }
    let (mut daemon, agent, codes, recovery) = confirmed(TOTP);
    let approval = request(&daemon, &agent);
    approve(&daemon, &approval, &recovery[0]).refused_field(400, "totp_code");
    setup(&daemon, &json!({})).refused_field(400, "code");
    setup(&daemon, &json!({ "code": codes.wrong })).refused_field(400, "code");
    let second = setup(&daemon, &json!({ "code": recovery[0] })).expect(200);
    assert_eq!(status(&daemon), (true, true, true, 9));
    setup(&daemon, &json!({ "code": recovery[0] })).refused_field(400, "code");
    // The old secret counts until the new one is confirmed.
    approve(&daemon, &approval, &codes.now).expect(200);
    daemon.restart();
    revoke(&daemon, &recovery[0]).refused_field(400, "code");
    let new_codes = Codes::of(&text(&second["secret"]));
    confirm(&daemon, &new_codes.now).expect(200);
    assert_eq!(status(&daemon), (true, true, true, 10));
    revoke(&daemon, &recovery[1]).refused_field(400, "code");
    let recovery: Vec<String> = second["recovery_codes"].as_array().unwrap().iter().map(text).collect();
    let delete = |code: &str| {
        let body = json!({ "code": code }).to_string();
        daemon.send("DELETE", "/api/approvals/totp", &[], Some(body.as_bytes()))
    };
    delete(&codes.wrong).refused_field(400, "code");
    assert_eq!(delete(&recovery[2].replace('-', "").to_uppercase()).expect(200)["status"], "revoked");
    assert_eq!(status(&daemon), (false, false, true, 0));
    delete(&recovery[3]).refused(400);
    delete(&new_codes.next).refused(400);
    daemon.send("DELETE", "/api/approvals/totp", &[], Some(b"{}")).refused_field(400, "code");
    let trail = daemon.get("/api/audit/recent").expect(200);
    let entries: Vec<&Value> = trail["entries"].as_array().unwrap().iter().rev().collect();
    let kinds = entries.iter().map(|entry| text(&entry["event_type"]));
    let kinds: Vec<String> = kinds.filter(|kind| kind.starts_with("totp_")).collect();
    let (set_up, confirmed) = ("totp_set_up", "totp_confirmed");
    assert_eq!(kinds, [set_up, confirmed, set_up, confirmed, "totp_revoked"], "what was refused is not among them");
    // Wrong codes have entries of their own: these, and none of what was malformed or missing.
    let failed = entries.iter().filter(|entry| entry["event_type"] == "second_factor_failed");
    let failed: Vec<Value> = failed.map(|entry| serde_json::from_str(&text(&entry["details"])).unwrap()).collect();
    let at = |route: &str| json!({ "peer": "127.0.0.1", "route": format!("/api/approvals/totp{route}") });
    assert_eq!(failed, ["/setup", "/setup", "/revoke", "/revoke", ""].map(at));
}

#[test]
fn a_used_code_is_used_also_after_a_kill() {
    if skipped() {
        return;
    }
    let (mut daemon, agent, codes, _) = confirmed(TOTP);
    let (first, second) = (request(&daemon, &agent), request(&daemon, &agent));
    approve(&daemon, &first, &codes.now).expect(200);
    daemon.restart();
    approve(&daemon, &second, &codes.now).refused_field(400, "totp_code");
    revoke(&daemon, &codes.now).refused_field(400, "code");
    approve(&daemon, &second, &codes.next).expect(200);
}

/// For how long codes are not looked at any more.
#[track_caller]
fn locked_secs(reply: &Reply) -> u64 {
    reply.refused(429);
    reply.header("retry-after").expect("Retry-After").parse().expect("seconds")
}

#[test]
fn wrong_codes_are_counted_and_a_kill_does_not_forget_them() {
    if skipped() {
        return;
    }
    let (mut daemon, agent, codes, recovery) = confirmed(TOTP);
    let approval = request(&daemon, &agent);
    // What has not the form of a code is no attempt.
    approve(&daemon, &approval, "abc").refused_field(400, "totp_code");
    for n in 0..5 {
        approve(&daemon, &approval, &codes.wrong).refused_field(400, "totp_code");
        if n == 2 {
            daemon.restart();
        }
    }
    let reply = approve(&daemon, &approval, &codes.now);
    assert!((1..=60).contains(&locked_secs(&reply)), "{}", reply.text());
    // It outlives a kill. Where that takes longer than the lock, more wrong codes make the next one, which is longer.
    for left in [10, 5] {
        let wrong = || approve(&daemon, &approval, &codes.wrong);
        let lasts = || Some(wrong()).filter(|reply| reply.status == 429).map(|reply| locked_secs(&reply));
        let secs = until("it is locked for a while", || lasts().filter(|secs| *secs >= left));
        approve(&daemon, &approval, &codes.now).refused(429);
        let begun = Instant::now();
        daemon.restart();
        let reply = approve(&daemon, &approval, &codes.wrong);
        let is_over = begun.elapsed() + Duration::from_secs(1) >= Duration::from_secs(secs);
        assert!(reply.status == 429 || is_over, "the lock was forgotten: {}", reply.text());
    }
    assert_eq!(daemon.get(&format!("/api/approvals/{approval}")).expect(200)["status"], "pending");
    daemon.poke(&format!("/api/approvals/{approval}/reject")).expect(200);
    // Attempts to approve are counted by themselves: the owner can still take the factor away.
    revoke(&daemon, &recovery[0]).expect(200);
}

#[test]
fn after_a_correct_code_the_grace_period_needs_none() {
    if skipped() {
        return;
    }
    let (mut daemon, agent, codes, _) = confirmed(&format!("{TOTP}totp_grace_period_secs = 600\n"));
    let ids: Vec<String> = (0..3).map(|_| request(&daemon, &agent)).collect();
    daemon.poke(&format!("/api/approvals/{}/approve", ids[0])).refused_field(400, "totp_code");
    approve(&daemon, &ids[0], &codes.now).expect(200);
    daemon.poke(&format!("/api/approvals/{}/approve", ids[1])).expect(200);
    daemon.restart();
    daemon.poke(&format!("/api/approvals/{}/approve", ids[2])).refused_field(400, "totp_code");
}

#[test]
fn without_enforcement_the_secret_can_be_made_and_is_not_asked_for() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    assert_eq!(status(&daemon), (false, false, false, 0));
    confirm(&daemon, "123456").refused(400);
    assert!(!daemon.home().join("vault/totp.sealed").exists());
    setup(&daemon, &json!({})).expect(200);
    assert_eq!(status(&daemon), (true, false, false, 10));
    let approval = request(&daemon, &agent);
    daemon.poke(&format!("/api/approvals/{approval}/approve")).expect(200);
    daemon.get("/api/approvals/totp").refused(405);
}

#[test]
fn a_vault_that_does_not_open_blocks_approving_and_loses_nothing() {
    let daemon = Daemon::with(TOTP);
    setup(&daemon, &json!({})).expect(200);
    let approval = request(&daemon, &daemon.agent("a"));
    let (key, sealed) = (daemon.home().join("vault/vault.key"), daemon.home().join("vault/totp.sealed"));
    let (right, kept) = (fs::read(&key).unwrap(), fs::read(&sealed).unwrap());
    fs::write(&key, format!("{}=\n", "A".repeat(43))).unwrap();
    for reply in [setup(&daemon, &json!({})), approve(&daemon, &approval, "123456"), revoke(&daemon, "123456")] {
        let sentence = reply.refused(500);
        assert_eq!(reply.expect(500)["code"], "vault_unavailable");
        assert!(!sentence.contains(&daemon.home().display().to_string()), "{sentence}");
    }
    daemon.get("/api/approvals/totp/status").refused(500);
    until("the log says why", || daemon.stderr().contains("is the wrong key, or the file is damaged").then_some(()));
    fs::remove_file(&key).unwrap();
    daemon.get("/api/approvals/totp/status").refused(500);
    assert!(!key.exists() && fs::read(&sealed).unwrap() == kept, "nothing was made in its place");
    daemon.poke(&format!("/api/approvals/{approval}/reject")).expect(200);
    fs::write(&key, right).unwrap();
    assert_eq!(fs::metadata(&sealed).unwrap().permissions().mode() & 0o777, 0o600, "for the owner only");
    // A key that others may read is none.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    daemon.get("/api/approvals/totp/status").refused(500);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(status(&daemon), (true, false, true, 10));
}

#[test]
fn the_key_may_come_from_the_environment() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let mut daemon = Daemon::with_env(TOTP, &[("AGENTSVC_VAULT_KEY", key)]);
    setup(&daemon, &json!({})).expect(200);
    daemon.restart();
    assert_eq!(status(&daemon), (true, false, true, 10));
    assert!(daemon.home().join("vault/totp.sealed").exists() && !daemon.home().join("vault/vault.key").exists());
    assert!(!daemon.stderr().contains(key));
    let wrong = Daemon::with_env(TOTP, &[("AGENTSVC_VAULT_KEY", "not a key")]);
    setup(&wrong, &json!({})).refused(500);
    until("the log says why", || {
        wrong.stderr().contains("AGENTSVC_VAULT_KEY must be 32 bytes in base64").then_some(())
    });
}
