//! What installed skills and hands cost: `cargo bench --bench all -- library`.
//!
//! The start of the daemon with and without them, the memory that they take, and reloads after all of their files changed.
//!
//! `AGENTSVC_BENCH_SKILLS` is how many skills there are (1,000 unless set), `AGENTSVC_BENCH_HANDS` how many hands (500).

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::process::anonymous_bytes;
use crate::measure::start::{start, start_on};
use crate::measure::{Row, UNLIMITED, goals, head, middle, ms, size};
use crate::support::daemon::Daemon;
use crate::support::until;
use serde_json::json;

/// Skills of the goal.
const SKILLS: usize = 1_000;
/// Hands of the goal.
const HANDS: usize = 500;
/// Starts of each kind.
const STARTS: usize = 15;

pub(crate) fn main() {
    let skills = size("AGENTSVC_BENCH_SKILLS", SKILLS, 50);
    let hands = size("AGENTSVC_BENCH_HANDS", HANDS, 25);
    head("library");
    starts(skills, hands);
    let daemon = running(skills, hands);
    memory(&daemon, skills, hands);
    reloads(&daemon, skills, hands);
}

/// What a start takes longer. The daemon answers before it has read them.
fn starts(skills: usize, hands: usize) {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..size("AGENTSVC_BENCH_STARTS", STARTS, 3) {
        without.push(start("").as_secs_f64());
        let home = tempfile::tempdir().expect("a temporary directory");
        install(home.path(), skills, hands, "");
        with.push(start_on(&home, "").as_secs_f64());
    }
    let (with, without) = (middle(with), middle(without));
    Row::new(format!("exec to first 200 with {skills} skills and {hands} hands"), format!("{:.1} ms", with * 1e3))
        .beside(format!("{:.1} ms without, in turns", without * 1e3))
        .goal(&goals::LIBRARY_START, with <= without + 0.1)
        .print();
}

/// A daemon that has read all of them.
fn running(skills: usize, hands: usize) -> Daemon {
    let home = tempfile::tempdir().expect("a temporary directory");
    install(home.path(), skills, hands, "");
    fs::write(home.path().join("config.toml"), format!("api_listen = \"127.0.0.1:0\"\n{UNLIMITED}"))
        .expect("a file is written");
    let daemon = Daemon::on(home);
    until("they are read", || {
        let has = |path: &str| daemon.get(path).expect(200)["total"].clone();
        (has("/api/skills") == json!(skills) && has("/api/hands") == json!(hands)).then_some(())
    });
    daemon
}

fn memory(daemon: &Daemon, skills: usize, hands: usize) {
    let of = |daemon: &Daemon| {
        thread::sleep(Duration::from_secs(5));
        anonymous_bytes(daemon.pid()) as f64 / f64::from(1 << 20)
    };
    let all = of(daemon);
    let none = of(&Daemon::with(UNLIMITED));
    Row::new(format!("memory with {skills} skills and {hands} hands"), format!("{:.1} MiB more", all - none))
        .beside(format!("{none:.1} MiB without; both without a file behind it"))
        .goal(&goals::LIBRARY_MEMORY, all - none <= 20.0)
        .print();
}

/// Reloads where nothing changed, and where all files did.
fn reloads(daemon: &Daemon, skills: usize, hands: usize) {
    let reload = || {
        let mut longest = Duration::ZERO;
        for path in ["/api/skills/reload", "/api/hands/reload"] {
            let begun = Instant::now();
            daemon.post(path, &json!({})).expect(200);
            longest = longest.max(begun.elapsed());
        }
        longest
    };
    let same = reload();
    install(daemon.home(), skills, hands, "Changed since.");
    let changed = reload();
    Row::new("reload after all files changed, the longer of both", ms(changed))
        .beside(format!("{} when nothing changed", ms(same)))
        .goal(&goals::LIBRARY_RELOAD, changed <= Duration::from_secs(1))
        .print();
}

/// Writes skills and hands of the size of real ones; of ten skills one has a tool.
fn install(home: &Path, skills: usize, hands: usize, more: &str) {
    let body =
        "Read the whole text first. Then list what is missing, with the line where it should stand.\n".repeat(40);
    let write = |path: &Path, text: String| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
        fs::write(path, text).expect("a file is written");
    };
    for n in 0..skills {
        let folder = home.join(format!("skills/skill-{n}"));
        let text = format!(
            "---\nname: skill-{n}\ndescription: Reviews texts of the kind {n} and says what is missing in them\n\
             version: 1.0.{n}\nauthor: bench\ntags: [writing, kind-{}]\n---\n# Skill {n}\n\n{body}{more}\n",
            n % 20
        );
        write(&folder.join("SKILL.md"), text);
        if n % 10 == 0 {
            let toml = format!(
                "[skill]\nname = \"skill-{n}\"\n[runtime]\ntype = \"python\"\nentry = \"main.py\"\n[[tools.provided]]\n\
                 name = \"review_{n}\"\ndescription = \"Reviews a text\"\n\
                 input_schema = {{ type = \"object\", properties = {{ text = {{ type = \"string\" }} }} }}\n"
            );
            write(&folder.join("skill.toml"), toml);
            write(&folder.join("main.py"), format!("def run(input):\n    return 'read'\n# {more}\n"));
        }
    }
    for n in 0..hands {
        let text = format!(
            "id = \"hand-{n}\"\nname = \"Hand {n}\"\ndescription = \"Watches the kind {n}\"\ncategory = \"data\"\n\
             tools = [\"memory_store\", \"memory_recall\", \"file_write\"]\n[[settings]]\nkey = \"depth\"\n\
             label = \"Depth\"\nsetting_type = \"text\"\ndefault = \"2\"\n[agent]\nname = \"agent-{n}\"\n\
             description = \"Watches\"\nmodule = \"builtin:chat\"\nprovider = \"default\"\nmodel = \"default\"\n\
             system_prompt = \"\"\"\n{body}{more}\"\"\"\n[dashboard]\n[[dashboard.metrics]]\nlabel = \"Seen\"\n\
             memory_key = \"seen_{n}\"\nformat = \"number\"\n"
        );
        write(&home.join(format!("hands/hand-{n}/HAND.toml")), text);
        write(&home.join(format!("hands/hand-{n}/SKILL.md")), format!("# What it knows\n\n{body}"));
    }
}
