//! Paths made of everything that was ever used to escape, against a workspace full of traps. Whatever is asked, nothing
//! outside of the workspace is read or changed.
//!
//! `AGENTSVC_FUZZ_CASES` sets the number of cases, such as 1000000.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use agentsvc::kernel::sandbox::{Resolver, Workspace, Workspaces, Write};
use agentsvc_components::AgentId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use uuid::Uuid;

const CASES_DEFAULT: u32 = 20_000;
/// Parts of paths: plain names, traps that [`Harness::plant`] sets, and what parsers stumble over.
const PARTS: &[&str] = &[
    "a",
    "b",
    "c.txt",
    "deep",
    "..",
    "..",
    ".",
    "",
    "up",
    "out",
    "root",
    "file-link",
    "hard",
    "in-link",
    "loop",
    "OUTSIDE",
    "outside",
    "etc",
    "passwd",
    "proc",
    "self",
    "fd",
    "cwd",
    "~",
    "..\\",
    "\\",
    "\0",
    "%2e%2e",
    "%00",
    "．．",
    "‥",
    "..\u{200b}",
    "\u{202e}",
    "...",
    ". .",
    " ",
    "\t",
    "\n",
    "C:",
    "NUL",
    "ﬁ",
    "é",
    "e\u{301}",
    "🦀",
    "-rf",
    "*",
    "$HOME",
    "`id`",
    "a\u{0}b",
    "\u{7f}",
    "\u{85}",
    "aux/../..",
    "//",
    "/",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

struct Harness {
    /// Holds `OUTSIDE`, a directory of secrets, and the workspaces.
    root: tempfile::TempDir,
    workspace: Workspace,
}

impl Harness {
    fn new(resolver: Resolver) -> Self {
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        fs::create_dir(root.path().join("OUTSIDE")).unwrap();
        fs::write(root.path().join("OUTSIDE/secret"), "SECRET").unwrap();
        let all = Workspaces::with_resolver(root.path().join("workspaces"), resolver);
        let workspace = all.open(AgentId(Uuid::from_u128(1)), "ann").unwrap();
        let harness = Self { root, workspace };
        harness.plant();
        harness
    }

    fn outside(&self) -> PathBuf {
        self.root.path().join("OUTSIDE")
    }

    /// Sets the traps that are gone.
    fn plant(&self) {
        let inside = self.workspace.path();
        let _may_be_there = fs::create_dir_all(inside.join("deep"));
        for place in [inside.to_owned(), inside.join("deep")] {
            for (name, target) in [
                ("up", PathBuf::from("../../..")),
                ("out", self.outside()),
                ("root", PathBuf::from("/proc/self/root")),
                ("file-link", self.outside().join("secret")),
                ("in-link", PathBuf::from("deep")),
                ("loop", PathBuf::from("loop")),
            ] {
                let _may_be_there = symlink(target, place.join(name));
            }
            let _may_be_there = fs::hard_link(self.outside().join("secret"), place.join("hard"));
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(fs::read(self.outside().join("secret")).ok(), Some(b"SECRET".to_vec()));
        prop_assert_eq!(fs::read_dir(self.outside()).unwrap().count(), 1);
        prop_assert_eq!(fs::read_dir(self.root.path()).unwrap().count(), 2);
        prop_assert_eq!(fs::read_dir(self.root.path().join("workspaces")).unwrap().count(), 3);
        Ok(())
    }

    /// Does one thing. What it reads must not be the secret; what it lists must lie inside.
    fn act(&self, what: u8, path: &str) -> Result<(), TestCaseError> {
        let w = &self.workspace;
        match what {
            0..=2 => {
                if let Ok(piece) = w.read(path, 0, 64) {
                    prop_assert_eq!(piece.bytes, b"own");
                }
            }
            3 => drop(w.write(path, b"own", Write::Overwrite)),
            4 => drop(w.write(path, b"own", Write::Create)),
            5 => {
                // What was there is kept out of the way, so that files stay what readers expect.
                if w.append(path, b"").is_ok_and(|size| size == 0) {
                    prop_assert!(w.append(path, b"own").is_ok());
                }
            }
            6 => {
                if let Ok(listing) = w.list(path, true, 200) {
                    prop_assert!(listing.entries.iter().all(|entry| !entry.path.ends_with("secret")));
                }
            }
            7 => drop(w.remove(path, true)),
            8 => drop(w.remove(path, false)),
            _ => {
                if let Ok(entry) = w.metadata(path) {
                    prop_assert!(!entry.path.contains("secret"));
                }
            }
        }
        Ok(())
    }
}

fn paths() -> impl Strategy<Value = String> {
    let part = prop_oneof![9 => proptest::sample::select(PARTS).prop_map(str::to_owned), 1 => any::<String>()];
    let parts = proptest::collection::vec((part, prop_oneof![8 => Just("/"), 1 => Just("//"), 1 => Just("\\")]), 0..7);
    (proptest::bool::weighted(0.1), parts).prop_map(|(absolute, parts)| {
        let start = if absolute { "/" } else { "" }.to_owned();
        let mut path = parts.into_iter().fold(start, |path, (part, separator)| path + &part + separator);
        path.pop();
        path
    })
}

#[test]
fn no_path_escapes() {
    let cases = std::env::var("AGENTSVC_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES_DEFAULT);
    for resolver in [Resolver::probe(), Resolver::Walk] {
        let harness = Harness::new(resolver);
        let config = Config { cases: cases / 2, failure_persistence: None, ..Config::default() };
        let outcome = TestRunner::new(config).run(&(0_u8..10, paths()), |(what, path)| {
            harness.act(what, &path)?;
            harness.check()?;
            if what == 7 {
                harness.plant();
            }
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{resolver:?}: {error}"));
    }
}
