//! The fuzz targets over their kept inputs and over changes of them, the same ones in every run. `fuzz/run` goes on where
//! this ends; docs/testing.md says more.

#[allow(unreachable_pub)]
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use agentsvc_systems::injection::scan;
use targets::TARGETS;

/// Bytes of an input.
const BYTES_MAX: usize = 4_096;
/// Bytes that mean something in many formats.
const EDGES: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\n---\n",
    b"\n\n",
    b"\"",
    b"{}",
    b"[",
    b"null",
    b"-1",
    b"9223372036854775808",
    b"1e999",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xae",
];

/// Numbers that look random and are the same in every run (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

/// `input` with one to eight changes, among them pieces of `other`.
fn changed(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=rng.below(8) {
        let at = rng.below(bytes.len() + 1);
        let end = (at + 1 + rng.below(16)).min(bytes.len()).max(at);
        match rng.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, EDGES[rng.below(EDGES.len())].iter().copied())),
            4 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            5 => {
                let from = rng.below(other.len() + 1);
                let to = (from + 1 + rng.below(64)).min(other.len()).max(from);
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
            _ => bytes.truncate(at.max(bytes.len() / 2)),
        }
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("it can be read"))).collect()
}

/// Runs a target over its inputs and over so many changes of them.
fn run(name: &str, changes: usize) {
    let (_, target) = TARGETS.iter().find(|(own, _)| *own == name).expect("there is one of this name");
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "{name} has inputs to begin with");
    let tried = |input: &[u8], from: &Path| {
        let shown = || format!("{name}: fails on {} or a change of it: {}", from.display(), input.escape_ascii());
        assert!(catch_unwind(|| target(input)).is_ok(), "{}", shown());
    };
    corpus.iter().for_each(|(path, input)| tried(input, path));
    let mut rng = Rng(name.len() as u64);
    for _ in 0..changes {
        let (path, input) = &corpus[rng.below(corpus.len())];
        let (_, other) = &corpus[rng.below(corpus.len())];
        tried(&changed(input, other, &mut rng), path);
    }
}

#[test]
fn every_target_has_a_test_and_a_binary() {
    let tests = include_str!("fuzz.rs");
    for (name, _) in TARGETS {
        assert!(tests.contains(&format!("run(\"{name}\", ")), "{name}");
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/targets/{name}.rs")).is_file(), "{name}");
    }
}

#[test]
fn lines_of_adapters_and_files_of_hooks() {
    run("adapter", 3_000);
}

#[test]
fn answers_of_providers() {
    run("answer", 3_000);
}

#[test]
fn archives() {
    run("archive", 600);
}

#[test]
fn conditions() {
    run("condition", 1_000);
}

#[test]
fn the_configuration() {
    run("config", 1_000);
}

#[test]
fn frames_of_peers() {
    run("peer", 3_000);
}

#[test]
fn cards_and_answers_of_external_agents() {
    run("external", 5_000);
}

#[test]
fn answers_of_mcp_servers() {
    run("mcp", 2_000);
}

#[test]
fn sign_ins_at_mcp_servers() {
    run("sign_in", 5_000);
}

#[test]
fn requests() {
    run("http", 400);
}

#[test]
fn the_input_log() {
    run("inputs", 1_000);
}

#[test]
fn manifests() {
    run("manifest", 2_000);
}

#[test]
fn patches() {
    run("patch", 5_000);
}

#[test]
fn patterns() {
    run("pattern", 5_000);
}

#[test]
fn queries() {
    run("query", 2_000);
}

#[test]
fn records() {
    run("record", 2_000);
}

#[test]
fn rules() {
    run("rule", 500);
}

#[test]
fn sockets() {
    run("socket", 300);
}

#[test]
fn uploads() {
    run("upload", 500);
}

/// Inputs of `record` and `inputs` are what a world wrote. After a change of the records:
/// `cargo test --test fuzz -- --ignored`.
#[test]
#[ignore = "it writes into fuzz/corpus"]
fn seeds_are_written() {
    let requests: Vec<_> = corpus("http").into_iter().map(|(_, input)| input).collect();
    for (name, input) in targets::seeds::of(&requests) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
        fs::write(&path, input).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The scanner of untrusted text: twice the text takes about twice the time; a text of quadratic cost would take four times it.
#[test]
fn the_scanner_takes_linear_time_even_for_texts_made_to_be_slow() {
    let units = [
        "ignore all ",
        "send api key ",
        "send the conversation the conversation ",
        "<!-- ",
        "display:none ",
        "i g n o r e ",
        "\\u0069",
        "&#105;",
        "%69%67",
        "aWdub3Jl",
        "ignore\u{200b}",
        "previous ",
        "<|im_start|>",
        "\n",
        "![](https://x?",
    ];
    let time = |text: &str| {
        let started = Instant::now();
        std::hint::black_box(scan(text));
        started.elapsed().as_secs_f64()
    };
    for unit in units {
        let text = unit.repeat(60_000 / unit.len());
        let eighth = &text[..text.floor_char_boundary(text.len() / 8)];
        let (mut small, mut large) = (f64::MAX, f64::MAX);
        // The least of many runs: a busy machine makes some of them long, but a quadratic cost all of them.
        for _ in 0..200 {
            (small, large) = (small.min(time(eighth)), large.min(time(&text)));
            if large < small * 24.0 + 0.05 {
                break;
            }
        }
        // Eight times the text: a fixed share, but no more than three times too long.
        assert!(large < small * 24.0 + 0.05, "{unit:?}: {small} s, then {large} s");
    }
}
