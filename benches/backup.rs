//! A backup of a large home under load, and its way back: `cargo bench --bench all -- backup`.
//!
//! `AGENTSVC_BACKUP_AGENTS` (100,000) agents with `AGENTSVC_BACKUP_MESSAGES` (1,000,000) messages between them. A backup is made while
//! messages are posted, restored into an empty home without a daemon, backed up again there, and both are compared row
//! for row by the checksums of their rows files; then it is restored into the running daemon, too.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::process::{forget_peak, peak_bytes};
use crate::measure::{Row as Line, head, resident_bytes, size};
use crate::support::daemon::{Daemon, command, text};
use agentsvc::kernel::store::Store;
use agentsvc::kernel::store::rows::Row;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::manifest::ManifestHash;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::{AgentId, LogId, SessionId, Timestamp, TurnId};
use agentsvc_systems::kernel::record::{MessageKey, encode, manifest_text_key, message_key};
use agentsvc_systems::manifest;
use serde_json::{Value, json};
use uuid::Uuid;

const MANIFEST: &str = "name = \"a\"\n[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n";
const CONFIG: &str = "api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 10000000\nlog_level = \"warn\"\n";

/// An id whose order is that of its number.
fn id(kind: u64, n: u64) -> Uuid {
    Uuid::from_u64_pair(0x0190_0000_0000_7000 | kind << 32, 0x8000_0000_0000_0000 | n)
}

/// The record of agent `n`.
fn agent_record(n: u64, manifest: ManifestHash, at: Timestamp) -> AgentRecord {
    AgentRecord {
        id: AgentId(id(1, n)),
        name: format!("agent-{n}").into(),
        manifest,
        current: SessionId(id(2, n)),
        created_at: at,
        updated_at: at,
        input_tokens: 0,
        output_tokens: 0,
        state: Default::default(),
        mode: Default::default(),
        parent: None,
        taint: Default::default(),
        imported_from: None,
        owner: None,
    }
}

/// The rows of a home, in order.
fn rows(agents: u64, messages: u64) -> impl Iterator<Item = Result<Row, Infallible>> {
    let parsed = manifest::parse(MANIFEST).expect("the manifest is right");
    let hash = manifest::hash(&parsed.manifest);
    let key = |kind: u8, id: Uuid| [[kind].as_slice(), id.as_bytes()].concat();
    let world = |key, value| Row { space: Space::World, key, value };
    let content = |key, value| Row { space: Space::Content, key, value };
    let at = Timestamp(1_790_000_000_000);
    let rows_of = move |n: u64| messages / agents + u64::from(n < messages % agents);
    let agent = move |n| world(key(b'a', id(1, n)), encode(&agent_record(n, hash, at)));
    let session = move |n| {
        let record = SessionRecord {
            id: SessionId(id(2, n)),
            agent: AgentId(id(1, n)),
            log: LogId(n + 1),
            created_at: at,
            updated_at: at,
            label: None,
            message_count: rows_of(n) as u32,
            next_ordinal: rows_of(n).div_ceil(2) as u32,
            interrupted: false,
            ephemeral: false,
            compacted: 0,
            stored: 0,
            taint: Default::default(),
            addresses: Vec::new(),
            ending: None,
            is_strangers: false,
        };
        world(key(b's', id(2, n)), encode(&record))
    };
    let message = move |n: u64, m: u64| {
        let role = if m.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let text = format!(
            "message {m} of agent {n}: {:x} words that differ a little from row to row",
            n.wrapping_mul(2_654_435_761) ^ m
        );
        let record = MessageRecord {
            turn: TurnId(id(3, n << 20 | m)),
            role,
            blocks: vec![Block::Text { text }],
            created_at: at,
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        };
        let at = MessageKey { log: LogId(n + 1), ordinal: (m / 2) as u32, index: (m % 2) as u32 };
        content(message_key(at), encode(&record))
    };
    let shared = world([b"m".as_slice(), &hash.0].concat(), encode(&parsed.manifest));
    let text = move |n| content(manifest_text_key(AgentId(id(1, n))), MANIFEST.as_bytes().to_vec());
    (0..agents)
        .map(agent)
        .chain([shared])
        .chain((0..agents).map(session))
        .chain((0..agents).flat_map(move |n| (0..rows_of(n)).map(move |m| message(n, m))))
        .chain((0..agents).map(text))
        .map(Ok)
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

fn cli(home: &Path, arguments: &[&str]) -> Value {
    let output = command(home).args(arguments).arg("--json").output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("an answer in JSON")
}

/// Name, checksum and rows of every rows file of a backup.
fn hashes(path: &Path) -> Vec<(String, String, u64)> {
    let manifest = agentsvc::backup::read::manifest_of(path).expect("a backup");
    manifest.entries.into_iter().filter_map(|entry| Some((entry.name, entry.sha256, entry.rows?))).collect()
}

pub(crate) fn main() {
    let agents = size("AGENTSVC_BACKUP_AGENTS", 100_000, 5_000) as u64;
    let messages = size("AGENTSVC_BACKUP_MESSAGES", 1_000_000, 50_000) as u64;
    let home = tempfile::tempdir().expect("a directory");
    fs::create_dir(home.path().join("data")).expect("a directory");
    fs::write(home.path().join("config.toml"), CONFIG).expect("a file");
    Store::build(&home.path().join("data/world"), rows(agents, messages)).expect("a store");
    let daemon = Daemon::on(home);
    head("backup");

    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|n| {
            let (client, stop) = (daemon.client(), Arc::clone(&stop));
            let agent = id(1, n * agents / 4).to_string();
            thread::spawn(move || {
                let (mut said, mut slowest) = (0_u64, Duration::ZERO);
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    client.say(&agent, "hello meanwhile");
                    (said, slowest) = (said + 1, slowest.max(begun.elapsed()));
                }
                (said, slowest)
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(200));
    forget_peak(daemon.pid());
    let before = resident_bytes(daemon.pid());
    let mut made = Value::Null;
    let backup = seconds(|| made = daemon.post("/api/backup", &json!({})).expect(200));
    let grown = peak_bytes(daemon.pid()).saturating_sub(before);
    stop.store(true, Ordering::Relaxed);
    let load: Vec<_> = load.into_iter().map(|thread| thread.join().expect("the load goes on")).collect();
    let said: u64 = load.iter().map(|(said, _)| said).sum();
    let slowest = load.iter().map(|(_, slowest)| *slowest).max().unwrap_or_default();
    let bytes = made["size_bytes"].as_u64().unwrap_or_default();
    let counts = format!("{} agents, {} messages", made["counts"]["agents"], made["counts"]["messages"]);
    let result = format!("{backup:.1} s, {} MiB, {counts}", bytes >> 20);
    Line::new(format!("backup of {agents} agents with {messages} messages, under load"), result).print();
    let meanwhile = format!("{said} turns, the slowest {} ms", slowest.as_millis());
    Line::new("turns meanwhile, four clients", meanwhile).bound("go on", said > 0).print();
    Line::new("memory at its peak meanwhile, on top of what was there", format!("{} MiB", grown >> 20))
        .bound("< 512 MiB", grown < 512 << 20)
        .print();

    let filename = text(&made["filename"]);
    let archive = daemon.home().join("backups").join(&filename);
    let empty = tempfile::tempdir().expect("a directory");
    let path = archive.to_str().expect("a path in UTF-8");
    let restore = seconds(|| drop(cli(empty.path(), &["restore", path])));
    let again = text(&cli(empty.path(), &["backup"])["filename"]);
    let (first, second) = (hashes(&archive), hashes(&empty.path().join("backups").join(again)));
    let rows: u64 = first.iter().map(|(_, _, rows)| rows).sum();
    let equal =
        first.iter().zip(&second).all(|(a, b)| a == b || a.0 == "audit/trail.rows") && first.len() == second.len();
    let result = format!("{restore:.1} s, {rows} rows");
    Line::new("its restore into an empty home", result).bound("equal in every row", equal).print();

    let mut done = Value::Null;
    let live = seconds(|| done = daemon.post("/api/restore", &json!({ "filename": filename })).expect(200));
    let result = format!("{live:.1} s, {} ms without a world", done["pause_ms"]);
    Line::new("its restore into the running daemon", result).print();
    let third = text(&daemon.post("/api/backup", &json!({})).expect(200)["filename"]);
    let third = hashes(&daemon.home().join("backups").join(third));
    // Turns that were open when the first was made have come to their end since.
    let same = first.iter().zip(&third).filter(|(a, b)| a.2 == b.2 && a.0 != "audit/trail.rows").count();
    let result = format!("{same} of {}", first.len() - 1);
    Line::new("rows files with as many rows as before", result).print();
}
