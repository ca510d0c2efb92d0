//! What is no backup, or none for this home, is refused and changes nothing (spec 2, Backup and restore).

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::backup_house::{COMPONENTS, backup, daemon, entries, furnish, picture, restore};
use crate::support::daemon::{command, text};

#[test]
fn bad_requests_are_refused_and_change_nothing() {
    let daemon = daemon();
    furnish(&daemon, "a");
    let filename = backup(&daemon);
    let before = picture(&daemon);
    let ask = |body: Value| daemon.post("/api/restore", &body);
    ask(json!({})).refused_field(400, "filename");
    ask(json!({ "filename": filename, "components": [] })).refused_field(400, "components");
    let refused = ask(json!({ "filename": filename, "components": ["agents", "soul"] })).expect(400);
    assert!(COMPONENTS.iter().all(|name| text(&refused["error"]).contains(name)), "{refused}");
    assert_eq!(refused["field"], "components");
    for name in ["../config.toml", "/etc/passwd", "a/b.tar.zst", "config.toml", "..", ""] {
        ask(json!({ "filename": name })).refused_field(400, "filename");
    }
    ask(json!({ "filename": "other.tar.zst" })).refused(404);
    daemon.delete("/api/backups/..%2Fconfig.toml").refused(400);
    daemon.delete("/api/backups/a%2Fb.tar.zst").refused(400);
    daemon.get("/api/backups/..%2F..%2Fetc%2Fpasswd").refused(400);
    daemon.delete("/api/backups/other.tar.zst").refused(404);
    assert!(daemon.home().join("config.toml").exists());

    // Archives that are none, or none of ours, or not whole.
    let dir = daemon.home().join("backups");
    let whole = fs::read(dir.join(&filename)).unwrap();
    let mut cut = whole.clone();
    cut.truncate(whole.len() - 100);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let mut foreign = tar::Builder::new(Vec::new());
    foreign.append_data(&mut header(4), "etc/passwd", b"root".as_slice()).unwrap();
    let foreign = zstd::encode_all(foreign.into_inner().unwrap().as_slice(), 1).unwrap();
    for (name, bytes, codes) in [
        ("text.tar.zst", b"hello".to_vec(), ["backup_foreign", ""]),
        ("foreign.tar.zst", foreign, ["backup_foreign", ""]),
        ("cut.tar.zst", cut, ["backup_damaged", "backup_foreign"]),
        ("flipped.tar.zst", flipped, ["backup_damaged", "backup_unsafe"]),
    ] {
        fs::write(dir.join(name), bytes).unwrap();
        for dry_run in [true, false] {
            let refused = ask(json!({ "filename": name, "dry_run": dry_run })).expect(400);
            assert!(codes.contains(&refused["code"].as_str().unwrap()), "{name}: {refused}");
        }
    }
    // The one that is not there and these four; a dry run restores nothing.
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_restores_refused_total{source=\"backup\"} 5\n"), "{metrics}");
    let listed = daemon.get("/api/backups").expect(200);
    let of = |name: &str| {
        listed["backups"].as_array().unwrap().iter().find(|line| line["filename"] == name).unwrap().clone()
    };
    assert_eq!((&of("text.tar.zst")["valid"], of("text.tar.zst")["problem"].is_string()), (&json!(false), true));
    assert_eq!(picture(&daemon), before);
    assert!(!daemon.home().join("data/world.next").exists() && !daemon.home().join("data/.restore").exists());
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// An archive of ours whose rows make no world, or that names another place: everything else about it is right.
#[test]
fn rows_that_make_no_world_are_refused_whole() {
    let mut daemon = daemon();
    let agent = furnish(&daemon, "a");
    let filename = backup(&daemon);
    let before = picture(&daemon);
    let path = daemon.home().join("backups").join(&filename);
    // The agents of the archive are gone, what is theirs stays: sessions dangle.
    let other = furnish(&daemon, "b");
    daemon.delete(&format!("/api/agents/{other}")).expect(200);
    let dangling = daemon.home().join("backups/dangling.tar.zst");
    rewritten(
        &path,
        &dangling,
        |name, content| {
            if name == "world/agents.rows" { without_agents(content) } else { content.to_vec() }
        },
    );
    let refused = daemon.post("/api/restore", &json!({ "filename": "dangling.tar.zst" })).expect(400);
    assert!(text(&refused["error"]).contains("no world can be created"), "{refused}");
    let elsewhere = daemon.home().join("backups/elsewhere.tar.zst");
    rewritten(&path, &elsewhere, |name, content| match name {
        "config.toml" => b"data_dir = \"/srv/other\"\n".to_vec(),
        _ => content.to_vec(),
    });
    let done = restore(&daemon, &json!({ "filename": "elsewhere.tar.zst", "dry_run": true }));
    assert!(done["config_kept"].as_array().unwrap().contains(&json!("data_dir")), "{done}");
    daemon.kill();
    let arguments = ["restore", "elsewhere.tar.zst", "--dry-run"];
    let refused = command(daemon.home()).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("keep_config"), "{said}");
    daemon.restart();
    let broken = daemon.home().join("backups/broken.tar.zst");
    rewritten(&path, &broken, |name, content| match name {
        "config.toml" => b"no_such_key = 1\n".to_vec(),
        _ => content.to_vec(),
    });
    daemon.post("/api/restore", &json!({ "filename": "broken.tar.zst" })).refused(400);
    restore(&daemon, &json!({ "filename": "broken.tar.zst", "keep_config": true }));
    assert_eq!(picture(&daemon)["agents"], before["agents"]);
    daemon.get(&format!("/api/agents/{agent}")).expect(200);
}

/// Writes an archive anew with other contents, and a manifest that agrees.
fn rewritten(from: &Path, to: &Path, change: impl Fn(&str, &[u8]) -> Vec<u8>) {
    let mut found = entries(from);
    let (_, text) = found.remove(0);
    let mut manifest: Value = serde_json::from_slice(&text).unwrap();
    for (at, (name, content)) in found.iter_mut().enumerate() {
        *content = change(name, content);
        let line = &mut manifest["entries"][at];
        line["size"] = json!(content.len());
        line["sha256"] = json!(hex(content));
        if name.ends_with(".rows") {
            let counts = &content[content.len() - 56..];
            let word = |at: usize| u64::from_be_bytes(counts[at..at + 8].try_into().unwrap());
            line["rows"] = json!(word(0) + word(8));
        }
    }
    let mut archive = tar::Builder::new(Vec::new());
    let text = manifest.to_string();
    archive.append_data(&mut header(text.len() as u64), "manifest.json", text.as_bytes()).unwrap();
    for (name, content) in &found {
        archive.append_data(&mut header(content.len() as u64), name, content.as_slice()).unwrap();
    }
    fs::write(to, zstd::encode_all(archive.into_inner().unwrap().as_slice(), 1).unwrap()).unwrap();
}

fn hex(content: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The rows file without the rows of kind `a`.
fn without_agents(rows: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    let (mut at, mut out, mut counts, mut bytes) = (16, Vec::new(), [0_u64; 2], 0_u64);
    while rows[at] != 0xff {
        let key = usize::from(u16::from_be_bytes([rows[at + 1], rows[at + 2]]));
        let lengths: [u8; 4] = rows[at + 3 + key..at + 7 + key].try_into().unwrap();
        let value = u32::from_be_bytes(lengths) as usize;
        let end = at + 7 + key + value;
        if !(rows[at] == 1 && rows[at + 3] == b'a') {
            out.extend_from_slice(&rows[at..end]);
            counts[usize::from(rows[at] - 1)] += 1;
            bytes += (key + value) as u64;
        }
        at = end;
    }
    let hash = sha2::Sha256::digest(&out);
    let mut file = rows[..16].to_vec();
    file.extend_from_slice(&out);
    file.push(0xff);
    counts.iter().chain([&bytes]).for_each(|count| file.extend_from_slice(&count.to_be_bytes()));
    file.extend_from_slice(&hash);
    file
}
