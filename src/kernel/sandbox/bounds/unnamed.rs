//! Files that have no name any more but are still open: they take room that no look at directories finds. And what programs
//! have written lately, by which they are compared when a disk runs low.
//!
//! Seen are files that a process has open, runs or has mapped. Not seen is a file that a process has sent to a socket where
//! nobody has taken it yet; what was written to it is.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FileType, makedev};
use rustix::io::Errno;

use super::sampling::below;

/// Processes of a program that are looked at.
const PROCESSES_MAX: usize = 16_384;
/// Descriptors that are looked at.
const DESCRIPTORS_MAX: usize = 100_000;
/// Bytes of a block of which the system counts how many a file has.
const BLOCK_BYTES: u64 = 512;

/// Bytes that the processes below a supervisor hold on a file system in files without a name. Processes that this one may not
/// look into hold none.
///
/// # Errors
/// `EOVERFLOW`: they are too many, or have too many descriptors.
pub(in super::super) fn unnamed_bytes(supervisor: u32, device: u64) -> Result<u64, Errno> {
    let mut found = Found { device, ..Found::default() };
    let processes = below(supervisor, PROCESSES_MAX).ok_or(Errno::OVERFLOW)?;
    for process in &processes {
        found.look(format!("/proc/{process}/exe"))?;
        for entry in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            found.look(entry.path())?;
        }
    }
    for process in &processes {
        found.look_at_maps(process);
    }
    Ok(found.bytes.saturating_add(found.mapped.values().sum()))
}

/// Bytes that the processes below a supervisor have written to disks so far, those that have ended included. 0 where the kernel
/// does not count them, as for files in memory.
pub(super) fn written_bytes(supervisor: u32) -> u64 {
    let processes = below(supervisor, PROCESSES_MAX).unwrap_or_default();
    processes.iter().filter_map(|process| written(&fs::read_to_string(format!("/proc/{process}/io")).ok()?)).sum()
}

/// By the text of `/proc/<number>/io`: what was written, without what was deleted before it reached a disk.
fn written(text: &str) -> Option<u64> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse::<u64>().ok())
    };
    Some(value("write_bytes")?.saturating_sub(value("cancelled_write_bytes")?))
}

#[derive(Default)]
struct Found {
    device: u64,
    bytes: u64,
    looked: usize,
    /// Files by their inodes.
    seen: HashSet<u64>,
    /// Those that are only mapped, and how much of them, where no more is known.
    mapped: HashMap<u64, u64>,
}

impl Found {
    /// Looks at what is behind a link of `/proc`; one that is gone is none.
    fn look(&mut self, link: impl AsRef<std::path::Path>) -> Result<(), Errno> {
        self.looked += 1;
        if self.looked > DESCRIPTORS_MAX {
            return Err(Errno::OVERFLOW);
        }
        let _gone = self.add(&fs::metadata(link));
        Ok(())
    }

    /// Counts a file; `None`: it is not known.
    fn add(&mut self, found: &io::Result<fs::Metadata>) -> Option<()> {
        let found = found.as_ref().ok()?;
        let is_file = FileType::from_raw_mode(found.mode()) == FileType::RegularFile;
        if is_file && found.nlink() == 0 && found.dev() == self.device && self.seen.insert(found.ino()) {
            self.bytes = self.bytes.saturating_add(found.blocks().saturating_mul(BLOCK_BYTES));
        }
        Some(())
    }

    fn look_at_maps(&mut self, process: &str) {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        let (device, mut mapped) = (self.device, HashMap::<u64, u64>::new());
        for Map { range, bytes, inode } in maps.lines().filter_map(|line| Map::of(line, device)) {
            // Without rights over the machine only what is mapped is known.
            let known = self.add(&fs::metadata(format!("/proc/{process}/map_files/{range}")));
            if known.is_none() && !self.seen.contains(&inode) {
                *mapped.entry(inode).or_default() += bytes;
            }
        }
        // Several processes may have mapped the same.
        for (inode, bytes) in mapped {
            let most = self.mapped.entry(inode).or_default();
            *most = bytes.max(*most);
        }
    }
}

/// A mapping of a file without a name.
struct Map<'m> {
    range: &'m str,
    bytes: u64,
    inode: u64,
}

impl<'m> Map<'m> {
    /// By a line of `/proc/<number>/maps`.
    fn of(line: &'m str, device: u64) -> Option<Self> {
        let mut fields = line.strip_suffix(" (deleted)")?.split_ascii_whitespace();
        let range = fields.next()?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let inode = fields.next()?.parse().ok()?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        let (from, to) = range.split_once('-')?;
        (makedev(number(major)?, number(minor)?) == device).then_some(Self {
            range,
            bytes: hex(to)?.saturating_sub(hex(from)?),
            inode,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn files_without_a_name_are_found_and_count_once() {
        let dir = tempfile::tempdir().unwrap();
        let device = fs::metadata(dir.path()).unwrap().dev();
        let path = dir.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; 3 << 20]).unwrap();
        file.sync_all().unwrap();
        let opened = || File::open(&path).unwrap();
        let mut child = Command::new("sh");
        child.args(["-c", "sleep 100 <&0 & wait"]).stdin(opened()).stdout(opened()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        assert_eq!(unnamed_bytes(child.id(), device), Ok(0), "it has a name");
        fs::remove_file(&path).unwrap();
        let held = unnamed_bytes(child.id(), device).unwrap();
        assert!((3 * MIB..4 * MIB).contains(&held), "{held}");
        assert_eq!(unnamed_bytes(child.id(), device + 1), Ok(0), "on another file system");
        for process in below(child.id(), 100).unwrap().iter().rev() {
            let process = process.parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        }
        child.wait().unwrap();
        assert_eq!(unnamed_bytes(child.id(), device), Ok(0), "it has ended");
    }

    #[test]
    fn what_is_mapped_and_what_was_written_is_read() {
        let line = "7f0000000000-7f0000200000 rw-s 00000000 fd:01 1234       /a file (deleted)";
        let map = Map::of(line, makedev(0xfd, 1)).unwrap();
        assert_eq!((map.bytes, map.inode, map.range), (2 * MIB, 1_234, "7f0000000000-7f0000200000"));
        assert!(
            Map::of(line, makedev(0xfd, 2)).is_none() && Map::of(&line[..line.len() - 10], makedev(0xfd, 1)).is_none()
        );
        let text = "rchar: 9\nwchar: 9\nread_bytes: 5\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";
        assert_eq!((written(text), written("rchar: 9\n")), (Some(4_096), None));
    }
}
