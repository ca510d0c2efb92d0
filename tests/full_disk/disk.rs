//! A small disk of its own for a daemon: a tmpfs in a mount namespace.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A disk of a few megabytes. It is there as long as the process that holds its namespace.
pub(crate) struct Disk {
    holder: Child,
    /// Words before a program that run it where the disk is mounted.
    pub(crate) launcher: Vec<String>,
    pub(crate) place: TempDir,
}

impl Disk {
    /// One of so many MiB and 20,000 files; `None`, and a word about it, where the system permits none.
    pub(crate) fn of(mib: u32) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mount = format!(
            "mount -t tmpfs -o size={mib}m,nr_inodes=20k,mode=0777 tmpfs \"$0\" && echo mounted && exec sleep 100000"
        );
        let mut why = String::new();
        for (unshare, enter) in [
            (&["--mount"][..], &["--mount"][..]),
            (&["--user", "--map-root-user", "--mount"], &["--user", "--preserve-credentials", "--mount"]),
        ] {
            let mut holder = Command::new("unshare");
            holder.args(unshare).args(["--propagation", "private", "sh", "-c", &mount]).arg(place.path());
            let Ok(mut holder) = holder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else { continue };
            let mut line = String::new();
            BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if line.trim() == "mounted" {
                let mut launcher = vec!["nsenter".to_owned(), "--target".to_owned(), holder.id().to_string()];
                launcher.extend(enter.iter().map(|word| (*word).to_owned()));
                launcher.push("--".to_owned());
                return Some(Self { holder, launcher, place });
            }
            let _ended = holder.wait();
            why.clear();
            let _read = holder.stderr.take().unwrap().read_to_string(&mut why);
        }
        eprintln!("SKIPPED: this system permits no mount in a namespace of its own: {}", why.trim());
        None
    }

    /// The disk as the test sees it.
    pub(crate) fn path(&self) -> PathBuf {
        let place = self.place.path().strip_prefix("/").unwrap();
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(place)
    }

    /// Bytes that are free.
    pub(crate) fn room(&self) -> u64 {
        let found = rustix::fs::statvfs(self.path()).unwrap();
        found.f_bavail * found.f_frsize
    }

    /// Takes up all room but so many KiB.
    pub(crate) fn fill(&self, spare_kib: u64) {
        let path = self.path().join("ballast");
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        let mut left = self.room().saturating_sub(spare_kib << 10);
        while left > 0 {
            let piece = left.min(64 << 10);
            if file.write_all(&[7; 64 << 10][..piece as usize]).is_err() {
                return;
            }
            left -= piece;
        }
    }

    /// Takes up all room at once.
    pub(crate) fn take(&self) {
        let path = self.path().join("ballast");
        let file = File::options().create(true).append(true).open(path).unwrap();
        let (mut at, mut piece) = (file.metadata().unwrap().len(), 256 << 20);
        while piece >= 4 << 10 {
            match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), at, piece) {
                Ok(()) => at += piece,
                Err(_) => piece /= 2,
            }
        }
    }

    /// Gives the room back.
    pub(crate) fn free(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }

    /// Mounts the disk again as it is, `ro` or `rw`.
    pub(crate) fn remount(&self, how: &str) {
        let (program, words) = self.launcher.split_first().unwrap();
        let mut remount = Command::new(program);
        remount.args(words).args(["mount", "-o", &format!("remount,{how}")]).arg(self.place.path());
        assert!(remount.status().unwrap().success());
    }

    /// Every file, but the ballast, with its length.
    pub(crate) fn files(&self, below: &str) -> Vec<(String, u64)> {
        fn walk(dir: &Path, from: &Path, into: &mut Vec<(String, u64)>) {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, from, into);
                } else {
                    let name = path.strip_prefix(from).unwrap().to_string_lossy().into_owned();
                    into.push((name, entry.metadata().map_or(0, |metadata| metadata.len())));
                }
            }
        }
        let (root, mut files) = (self.path(), Vec::new());
        walk(&root.join(below), &root, &mut files);
        files.sort();
        files
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Its end is the disk's.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
