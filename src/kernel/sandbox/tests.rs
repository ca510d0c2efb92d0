//! Files of one workspace: what works, and the tricks that must not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use agentsvc_components::AgentId;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use uuid::Uuid;

use super::{Error, Kind, Resolver, Workspace, Workspaces, Write};
use crate::kernel::settings::Settings;

const ANN: AgentId = AgentId(Uuid::from_u128(1));

/// A workspace in a directory that also holds `secret`, which must never be seen or change.
struct Harness {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

impl Harness {
    fn new(resolver: Resolver) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret"), "SECRET").unwrap();
        let all = Workspaces::with_resolver(dir.path().join("workspaces"), resolver);
        let workspace = all.open(ANN, "ann").unwrap();
        Self { dir, workspace }
    }

    fn inside(&self, path: &str) -> std::path::PathBuf {
        self.workspace.path().join(path)
    }

    #[track_caller]
    fn untouched(&self) {
        assert_eq!(fs::read_to_string(self.dir.path().join("secret")).unwrap(), "SECRET");
        let beside: Vec<_> = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(beside.len(), 2, "{beside:?}");
    }
}

fn both() -> [Harness; 2] {
    [Harness::new(Resolver::probe()), Harness::new(Resolver::Walk)]
}

fn text(workspace: &Workspace, path: &str) -> Result<String, Error> {
    workspace.read(path, 0, 1_000).map(|piece| String::from_utf8(piece.bytes).unwrap())
}

#[test]
fn files_are_written_read_listed_and_deleted() {
    for harness in both() {
        let w = &harness.workspace;
        assert!(w.write("a/b/c.txt", b"hello", Write::Overwrite).unwrap());
        assert!(!w.write("a/b/c.txt", b"hello there", Write::Overwrite).unwrap());
        assert!(matches!(w.write("a/b/c.txt", b"", Write::Create), Err(Error::Exists(_))));
        assert_eq!(w.append("a/b/c.txt", b"!").unwrap(), 12);
        assert_eq!(w.append("new", b"12").unwrap(), 2);
        let piece = w.read("a/b/c.txt", 6, 3).unwrap();
        assert_eq!((piece.bytes.as_slice(), piece.size), (&b"the"[..], 12));
        assert_eq!(w.read("new", 99, 9).unwrap().bytes, b"");
        let listing = w.list("", true, 100).unwrap();
        let found: Vec<_> = listing.entries.iter().map(|e| (e.path.as_str(), e.kind, e.size)).collect();
        let file = Kind::File;
        let dir = Kind::Directory;
        assert_eq!(found, [("a", dir, 0), ("a/b", dir, 0), ("a/b/c.txt", file, 12), ("new", file, 2)]);
        assert_eq!(w.list(".", false, 100).unwrap().entries.len(), 2);
        let cut = w.list("", true, 2).unwrap();
        assert!(cut.more && cut.entries.len() == 2);
        assert_eq!(w.list("a/b", false, 9).unwrap().entries[0].path, "a/b/c.txt");
        assert!(w.metadata("a/b/c.txt").unwrap().modified > chrono::DateTime::UNIX_EPOCH);
        assert!(matches!(w.remove("a", false), Err(Error::NotEmpty(_))));
        assert_eq!(w.remove("a", true).unwrap(), 3);
        assert_eq!(w.remove("new", false).unwrap(), 1);
        assert!(matches!(w.remove("new", false), Err(Error::NotFound(_))));
        assert!(w.list("", true, 9).unwrap().entries.is_empty());
        harness.untouched();
    }
}

#[test]
fn wrong_kinds_are_named() {
    let harness = Harness::new(Resolver::probe());
    let w = &harness.workspace;
    w.write("f", b"x", Write::Create).unwrap();
    w.write("d/f", b"x", Write::Create).unwrap();
    assert!(matches!(w.read("d", 0, 9), Err(Error::IsDirectory(_))));
    assert!(matches!(w.write("d", b"", Write::Overwrite), Err(Error::IsDirectory(_))));
    assert!(matches!(w.append("d", b""), Err(Error::IsDirectory(_))));
    assert!(matches!(w.read("f/x", 0, 9), Err(Error::NotDirectory(_))));
    assert!(matches!(w.write("f/x", b"", Write::Overwrite), Err(Error::NotDirectory(_))));
    assert!(matches!(w.list("f", false, 9), Err(Error::NotDirectory(_))));
    for root in ["", ".", "./"] {
        assert!(matches!(w.remove(root, true), Err(Error::Path { .. })));
        assert!(matches!(w.write(root, b"", Write::Overwrite), Err(Error::Path { .. })));
    }
    let name = "n".repeat(255);
    assert!(w.write(&name, b"", Write::Create).is_ok());
    assert!(matches!(w.read_whole("f", 0), Err(Error::TooLarge { .. })));
    assert_eq!(w.read_whole("f", 1).unwrap(), b"x");
    let mut endless = std::io::repeat(7);
    assert!(matches!(w.write_from("big", &mut endless, 1_000, Write::Create), Err(Error::TooLarge { .. })));
    assert!(!harness.inside("big").exists());
    let leftovers = fs::read_dir(w.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with(".writing"));
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn permissions_are_kept_and_new_files_are_private() {
    let harness = Harness::new(Resolver::probe());
    let mode = || fs::metadata(harness.inside("run.sh")).unwrap().permissions().mode() & 0o777;
    harness.workspace.write("run.sh", b"1", Write::Create).unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(harness.inside("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    harness.workspace.write("run.sh", b"2", Write::Overwrite).unwrap();
    assert_eq!(mode(), 0o750);
}

/// Every operation on `path`; none may see the secret, and none may succeed in changing something through it.
#[track_caller]
fn nothing_works(harness: &Harness, path: &str) {
    let w = &harness.workspace;
    let results =
        [text(w, path).map(drop), w.write(path, b"x", Write::Overwrite).map(drop), w.append(path, b"x").map(drop)];
    for (at, result) in results.into_iter().enumerate() {
        assert!(result.is_err(), "operation {at} on {path:?}");
    }
    harness.untouched();
}

#[test]
fn tricks_of_text_fail() {
    for harness in both() {
        let outside = harness.dir.path().join("secret");
        let deep = format!("{}etc/passwd", "../".repeat(40));
        for path in [
            "../secret",
            "../../secret",
            "a/../../secret",
            "./../secret",
            "/etc/passwd",
            "//etc/passwd",
            "..\\secret",
            "..\\..\\secret",
            "secret\0.txt",
            "\0",
            "a\n/b",
            "/proc/self/root/etc/passwd",
            outside.to_str().unwrap(),
            &deep,
            &"a/".repeat(5_000),
            &"x".repeat(300),
        ] {
            nothing_works(&harness, path);
            assert!(harness.workspace.remove(path, true).is_err(), "{path:?}");
            assert!(harness.workspace.list(path, true, 9).is_err(), "{path:?}");
        }
        // They look like tricks, and are names.
        for path in ["..%2fsecret", "%2e%2e", "~/secret", "．．/secret", "‥/x", "$HOME", "file:", "...", "a:b"] {
            harness.workspace.write(path, b"own", Write::Overwrite).unwrap();
            assert_eq!(text(&harness.workspace, path).unwrap(), "own");
            harness.untouched();
        }
    }
}

#[test]
fn symbolic_links_lead_nowhere_outside() {
    for harness in both() {
        let outside = harness.dir.path().to_owned();
        for (name, target) in [
            ("secret-link", outside.join("secret").as_path()),
            ("relative", Path::new("../../secret")),
            ("missing", &outside.join("made-by-link")),
            ("loop", Path::new("loop")),
            ("magic", Path::new("/proc/self/root/etc/passwd")),
        ] {
            symlink(target, harness.inside(name)).unwrap();
            nothing_works(&harness, name);
            assert!(harness.workspace.metadata(name).unwrap().kind == Kind::Link);
        }
        symlink("relative", harness.inside("chain")).unwrap();
        nothing_works(&harness, "chain");
        symlink("../..", harness.inside("up")).unwrap();
        symlink(&outside, harness.inside("absolute")).unwrap();
        symlink("/proc/self/cwd", harness.inside("cwd")).unwrap();
        for path in ["up/secret", "absolute/secret", "up/new", "absolute/new/deep", "cwd/x"] {
            nothing_works(&harness, path);
            assert!(harness.workspace.remove(path, true).is_err());
        }
        for path in ["up", "absolute"] {
            assert!(harness.workspace.list(path, true, 99).is_err());
        }
        assert_eq!(harness.workspace.list("", true, 99).unwrap().entries.len(), 9, "links are not gone into");
        // Deleting a link, also within a tree, deletes the link.
        fs::create_dir(harness.inside("tree")).unwrap();
        symlink(&outside, harness.inside("tree/out")).unwrap();
        assert_eq!(harness.workspace.remove("tree", true).unwrap(), 2);
        assert_eq!(harness.workspace.remove("absolute", true).unwrap(), 1);
        harness.untouched();
    }
}

#[test]
fn links_that_stay_inside_may_be_read_and_never_written() {
    let harness = Harness::new(Resolver::probe());
    harness.workspace.write("real", b"own", Write::Create).unwrap();
    symlink("real", harness.inside("link")).unwrap();
    if harness.workspace.shared.resolver == Resolver::Openat2 {
        assert_eq!(text(&harness.workspace, "link").unwrap(), "own");
    }
    assert!(matches!(harness.workspace.write("link", b"x", Write::Overwrite), Err(Error::Link(_))));
    assert!(harness.workspace.append("link", b"x").is_err());
    assert_eq!(text(&harness.workspace, "real").unwrap(), "own");
}

#[test]
fn hard_links_and_special_files_are_not_opened() {
    for harness in both() {
        fs::hard_link(harness.dir.path().join("secret"), harness.inside("hard")).unwrap();
        assert!(matches!(text(&harness.workspace, "hard"), Err(Error::HardLink(_))));
        assert!(matches!(harness.workspace.append("hard", b"x"), Err(Error::HardLink(_))));
        // Writing gives the name a file of its own.
        harness.workspace.write("hard", b"x", Write::Overwrite).unwrap();
        harness.untouched();
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            harness.inside("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        );
        fifo.unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(harness.inside("socket")).unwrap();
        for name in ["fifo", "socket"] {
            nothing_works(&harness, name);
            assert_eq!(harness.workspace.metadata(name).unwrap().kind, Kind::Special);
            assert_eq!(harness.workspace.remove(name, false).unwrap(), 1);
        }
    }
}

/// Ends the other thread, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_name_that_changes_under_the_call_never_escapes() {
    for harness in both() {
        let (w, over) = (&harness.workspace, AtomicBool::new(false));
        fs::create_dir(harness.inside("kept")).unwrap();
        fs::write(harness.inside("kept/secret"), "own").unwrap();
        symlink("../..", harness.inside("out")).unwrap();
        std::thread::scope(|scope| {
            // `place` is in turn a directory of ours and a link to what lies outside.
            scope.spawn(|| {
                let (kept, out, place) = (harness.inside("kept"), harness.inside("out"), harness.inside("place"));
                while !over.load(Ordering::Relaxed) {
                    for real in [&kept, &out] {
                        // A call may have made a directory of this name meanwhile.
                        if fs::rename(real, &place).is_err() {
                            let _may_be_gone = fs::remove_dir_all(&place);
                        } else {
                            let _may_be_filled = fs::rename(&place, real);
                        }
                    }
                }
            });
            let _ends = Ends(&over);
            for _ in 0..3_000 {
                if let Ok(seen) = text(w, "place/secret") {
                    assert_eq!(seen, "own");
                }
                let _may_fail = w.append("place/secret2", b"x");
                let _may_fail = w.list("place", true, 10).map(|listing| {
                    assert!(listing.entries.iter().all(|entry| !entry.path.contains("workspaces")));
                });
                let _may_fail = w.remove("place/secret2", false);
            }
        });
        harness.untouched();
    }
}

/// Does something where the system cannot sync a directory: files are synced by `fdatasync`.
fn without_directory_sync<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let work = || {
        let rules = [(libc::SYS_fsync, Vec::new())].into();
        let (refused, arch) = (SeccompAction::Errno(libc::EIO as u32), std::env::consts::ARCH.try_into().unwrap());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).unwrap();
        let filter: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&filter).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn no_change_is_told_before_its_name_is_durable() {
    let harness = Harness::new(Resolver::probe());
    let (w, all) = (&harness.workspace, Workspaces::new(harness.dir.path().join("workspaces")));
    for name in ["old", "gone", "directory/file"] {
        w.write(name, b"1", Write::Overwrite).unwrap();
    }
    without_directory_sync(|| {
        assert!(w.write("old", b"2", Write::Overwrite).is_err());
        assert!(w.write("new", b"2", Write::Create).is_err());
        assert!(w.write("a/b/new", b"2", Write::Create).is_err());
        assert!(w.append("added", b"2").is_err());
        assert!(w.make_directory(&super::WorkspacePath::parse("c").unwrap()).is_err());
        assert!(w.remove("gone", false).is_err() && w.remove("directory", true).is_err());
        assert!(all.open(AgentId(Uuid::from_u128(2)), "bob").is_err());
        assert!(all.renamed(ANN, "ann", "anna").is_err());
        assert_eq!(w.append("old", b"3").unwrap(), 2, "its name is durable");
    });
    // It is done all the same; who is told of a failure may try again.
    assert_eq!(text(w, "new").unwrap(), "2");
}

fn limits(max_bytes: u64, max_total_bytes: u64) -> super::config::Workspaces {
    super::config::Workspaces { max_bytes, max_total_bytes, ..Default::default() }
}

#[test]
fn a_workspace_holds_no_more_than_it_may() {
    let (dir, settings) = (tempfile::tempdir().unwrap(), Settings::default());
    settings.set(limits(1 << 20, 1 << 40));
    let all = Workspaces::limited(dir.path().join("workspaces"), settings.clone());
    let (w, other) = (all.open(ANN, "ann").unwrap(), all.open(AgentId(Uuid::from_u128(2)), "bob").unwrap());
    let full = |result: Result<bool, Error>| matches!(result, Err(Error::Quota { max, .. }) if max == 1 << 20);
    let half = vec![7; 600 << 10];
    w.write("a", &half, Write::Overwrite).unwrap();
    assert!(full(w.write("b", &half, Write::Overwrite)) && full(w.append("a", &half).map(|_| true)));
    assert!(full(w.append("new", &half).map(|_| true)));
    assert!(!w.write("a", &half, Write::Overwrite).unwrap(), "what is replaced counts no more");
    other.write("a", &half, Write::Overwrite).unwrap();
    // What a command has written counts as well, whatever was known before.
    fs::write(w.path().join("c"), &half).unwrap();
    w.shared.quotas.forget(w.path());
    assert!(full(w.write("small", b"x", Write::Overwrite)) && full(w.for_command().map(|_| true)));
    let names: Vec<_> = w.list("", true, 100).unwrap().entries.into_iter().map(|entry| entry.path).collect();
    assert_eq!(names, ["a", "c"], "nothing is left of what was refused");
    w.remove("c", false).unwrap();
    w.write("small", b"x", Write::Overwrite).unwrap();
    settings.set(limits(2 << 20, 1 << 40));
    w.write("b", &half, Write::Overwrite).unwrap();
}

#[test]
fn what_a_command_wrote_is_measured_behind_its_end() {
    let (dir, settings) = (tempfile::tempdir().unwrap(), Settings::default());
    settings.set(limits(1 << 20, 1 << 40));
    let all = Workspaces::limited(dir.path().join("workspaces"), settings.clone());
    let w = all.open(ANN, "ann").unwrap();
    let refused = |result: Result<super::CommandWorkspace, Error>| matches!(result, Err(Error::Quota { .. }));
    let (first, second) = (w.for_command().unwrap(), w.for_command().unwrap());
    fs::write(w.path().join("big"), vec![7; 2 << 20]).unwrap();
    assert_eq!(first.full(None).unwrap(), Some(super::Full::Workspace));
    assert!(refused(w.for_command()) && w.write("small", b"x", Write::Overwrite).is_err());
    fs::remove_file(w.path().join("big")).unwrap();
    w.for_command().unwrap();
    fs::write(w.path().join("big"), vec![7; 2 << 20]).unwrap();
    drop((first, second));
    // Nobody measures now but the thread behind the last end.
    let begun = std::time::Instant::now();
    while !refused(w.for_command()) {
        assert!(begun.elapsed().as_secs() < 20, "a workspace that is full is found");
        std::thread::yield_now();
    }
    fs::remove_file(w.path().join("big")).unwrap();
    w.for_command().unwrap();
}

#[test]
fn a_workspace_that_moves_takes_what_it_holds_along() {
    let (dir, settings) = (tempfile::tempdir().unwrap(), Settings::default());
    settings.set(limits(1 << 20, 1 << 40));
    let (all, bob) = (Workspaces::limited(dir.path().join("workspaces"), settings), AgentId(Uuid::from_u128(2)));
    let (ann, small) = (all.open(ANN, "ann").unwrap(), all.open(bob, "bob").unwrap());
    small.write("a", b"x", Write::Overwrite).unwrap();
    drop(small.for_command().unwrap());
    fs::write(ann.path().join("big"), vec![7; 2 << 20]).unwrap();
    all.renamed(bob, "bob", "other").unwrap();
    all.renamed(ANN, "ann", "bob").unwrap();
    let moved = all.open(ANN, "bob").unwrap();
    assert!(matches!(moved.for_command(), Err(Error::Quota { .. })));
}
