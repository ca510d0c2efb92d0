//! What tests of several rooms stand on.

use std::fmt::{Debug, Write};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, spawn};

use rustix::fs::{CWD, Mode, RenameFlags, mkdirat, renameat_with};
use tracing::field::{Field, Visit};

/// The fields of a span or an event, one behind the other.
pub(crate) struct Fields(pub(crate) String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, " {field}={value:?}");
    }
}

/// Makes a directory with so many others in each other.
pub(crate) fn deep(path: &Path, levels: usize) {
    mkdirat(CWD, path, Mode::RWXU).unwrap();
    let mut here = File::open(path).unwrap().into();
    for _ in 0..levels {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = super::openat2::directory(std::os::fd::AsFd::as_fd(&here), "d").unwrap();
    }
}

/// Directories and files that somebody exchanges with symbolic links which lead elsewhere, as long as this lives.
pub(crate) struct Exchanging {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exchanging {
    /// Makes `tree` with files of its own, and links to the directory `outside`, which has `file` and `inner/file`.
    pub(crate) fn begin(tree: &Path, outside: &Path) -> Self {
        const PAIRS: usize = 40;
        for n in 0..PAIRS {
            fs::create_dir_all(tree.join(format!("d{n}/inner"))).unwrap();
            for file in [format!("d{n}/file"), format!("d{n}/inner/file"), format!("f{n}")] {
                fs::write(tree.join(file), "own").unwrap();
            }
            symlink(outside, tree.join(format!("x-d{n}"))).unwrap();
            symlink(outside.join("file"), tree.join(format!("x-f{n}"))).unwrap();
        }
        let (stop, tree) = (Arc::new(AtomicBool::new(false)), File::open(tree).unwrap());
        let (began, begun) = channel();
        let is_over = Arc::clone(&stop);
        let thread = spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                for (one, n) in (0..PAIRS).flat_map(|n| [("d", n), ("f", n)]) {
                    let (one, other) = (format!("{one}{n}"), format!("x-{one}{n}"));
                    // Until it is gone.
                    let _ = renameat_with(&tree, one, &tree, other, RenameFlags::EXCHANGE);
                }
                let _ = began.send(());
            }
        });
        begun.recv().unwrap();
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Exchanging {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
