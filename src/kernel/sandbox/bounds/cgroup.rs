//! A cgroup of its own for each command, where this process was given a cgroup (version 2) to divide. The kernel counts
//! every kind of memory in it, also what is shared, locked or mapped nowhere, and kills all of it at once.
//!
//! ```text
//! the cgroup of the service      hands its controllers on, so no process may be in it
//!   |- daemon                    this process
//!   `- command-<number>          a command with all that it starts; the number is its supervisor's
//! ```

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::Exceeded;
use crate::kernel::openat2;
use crate::kernel::sandbox::sandbox_spec::Limits;

/// The cgroup of this process.
const DAEMON: &str = "daemon";
/// What the cgroups of commands are called, before the number.
const COMMAND: &str = "command-";
/// A cgroup without these bounds nothing that counts here.
const NEEDED: [&str; 2] = ["memory", "pids"];
/// These share out what there is.
const WANTED: [&str; 2] = ["cpu", "io"];
/// Set by systemd on a cgroup that it leaves to its service.
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// The processes of a cgroup; to write 0 is to join.
const PROCESSES: &str = "cgroup.procs";
/// Kills every process of a cgroup.
const KILL: &str = "cgroup.kill";
/// A command's share where it competes with the daemon, which has 100.
const WEIGHT: &str = "50";
/// How long what was killed may take to be gone.
const REMOVE_TIME_MAX: Duration = Duration::from_secs(10);
/// Time between two tries to remove a cgroup.
const REMOVE_AGAIN: Duration = Duration::from_millis(1);

/// The cgroup that this process has begun to divide.
static PLACE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Where cgroups of commands are made; `None`: nowhere, or [`divide`] was not called.
pub(in crate::kernel::sandbox) fn place() -> Option<&'static Path> {
    PLACE.get()?.as_deref()
}

/// Begins to divide the cgroup of this process, if it was given to it, and removes what a daemon before it has left there.
/// Moves this process into a cgroup below. Only the first call does something.
pub fn divide() {
    PLACE.get_or_init(|| {
        let place = divisible(own()?)?;
        match hand_on(&place) {
            Ok(()) => {
                remove_left(&place);
                Some(place)
            }
            Err(error) => {
                tracing::warn!(%error, place = %place.display(), "the daemon's cgroup cannot be divided for commands");
                None
            }
        }
    });
}

/// The cgroup of this process.
fn own() -> Option<PathBuf> {
    let read = |file| fs::read_to_string(file).ok();
    located(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

/// Where the cgroup of `groups` (`/proc/self/cgroup`) is by `mounts` (`/proc/self/mountinfo`).
fn located(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root).ok()?;
        kind.starts_with("cgroup2 ").then(|| Path::new(at).join(below))
    })
}

/// The cgroup to divide when this process is in `own`: it holds no other process, has the controllers, and nobody else
/// manages it.
fn divisible(own: PathBuf) -> Option<PathBuf> {
    // A service manager may have made the cgroup below.
    let place = if own.ends_with(DAEMON) { own.parent()?.to_owned() } else { own };
    let read = |file: &str| fs::read_to_string(place.join(file)).ok();
    let me = std::process::id().to_string();
    let is_alone = read(PROCESSES)?.lines().all(|process| process == me);
    let controllers = read("cgroup.controllers")?;
    let has_controllers = NEEDED.iter().all(|needed| controllers.split_whitespace().any(|found| found == *needed));
    // The root of the whole machine has no such file. It is the system's.
    let is_part = place.join(KILL).exists();
    (is_alone && has_controllers && is_part && !is_managed(&place)).then_some(place)
}

/// Is it a unit that systemd has not left to its service?
fn is_managed(place: &Path) -> bool {
    let is_unit = place.extension().is_some_and(|kind| kind == "service" || kind == "scope");
    let is_set = |name: &str| rustix::fs::getxattr(place, name, &mut [0_u8; 8][..]).is_ok();
    is_unit && !DELEGATED.into_iter().any(is_set)
}

/// Moves this process into a cgroup below `place`, and lets those below have the controllers.
fn hand_on(place: &Path) -> io::Result<()> {
    let daemon = place.join(DAEMON);
    if !daemon.is_dir() {
        fs::create_dir(&daemon)?;
    }
    join(&daemon)?;
    let control = |controllers: &[&str]| {
        let all: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
        fs::write(place.join("cgroup.subtree_control"), all.join(" "))
    };
    if let Err(error) = control(&NEEDED) {
        join(place)?;
        fs::remove_dir(&daemon)?;
        return Err(error);
    }
    for wanted in WANTED {
        if let Err(error) = control(&[wanted]) {
            tracing::debug!(%error, wanted, "commands get no share of this in their cgroups");
        }
    }
    Ok(())
}

/// Moves this process into the cgroup at `path`.
pub(in crate::kernel::sandbox) fn join(path: &Path) -> io::Result<()> {
    fs::write(path.join(PROCESSES), "0")
}

/// Ends the commands that are left in `place`, before there can be others, and begins to remove their cgroups.
fn remove_left(place: &Path) {
    let Ok(place) = File::open(place) else { return };
    let is_left = |name: &CString| name.to_str().is_ok_and(|name| name.starts_with(COMMAND));
    let left: Vec<CString> = openat2::names(place.as_fd()).into_iter().flatten().filter(is_left).collect();
    left.iter().for_each(|name| kill(&place, name));
    // What does not end at once must not hold up a start.
    thread::spawn(move || left.iter().for_each(|name| remove(&place, name)));
}

/// Kills what is in a cgroup; one that is not there is no error.
fn kill(place: &File, name: &CStr) {
    if let Ok(directory) = openat2::directory(place.as_fd(), name) {
        let _ = set(&directory, KILL, "1");
    }
}

/// Removes a cgroup as soon as nothing is in it; one that is not there is no error.
fn remove(place: &File, name: &CStr) {
    let begun = Instant::now();
    let is_held = |error| error == Errno::BUSY;
    while rustix::fs::unlinkat(place, name, AtFlags::REMOVEDIR).is_err_and(is_held) && begun.elapsed() < REMOVE_TIME_MAX
    {
        thread::sleep(REMOVE_AGAIN);
    }
}

/// Writes a file of a cgroup.
fn set(directory: impl AsFd, file: &str, value: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CREATE | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, file, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(opened).write_all(value.as_bytes())
}

/// The cgroup of one command. Removed, and what is in it killed, when it goes.
///
/// It is reached by descriptors: the process that supervises the command sees no path of the machine once the command has
/// mounts of its own.
#[derive(Debug)]
pub(in crate::kernel::sandbox) struct Cgroup {
    path: PathBuf,
    place: File,
    name: CString,
    directory: OwnedFd,
    memory_bytes: u64,
}

impl Cgroup {
    /// Makes that of the command which this process supervises.
    pub(super) fn make(place: &Path, limits: Limits) -> io::Result<Self> {
        let name = format!("{COMMAND}{}", std::process::id());
        let (path, name, place) = (place.join(&name), CString::new(name)?, File::open(place)?);
        // That of a process which had this number before.
        kill(&place, &name);
        remove(&place, &name);
        rustix::fs::mkdirat(&place, &*name, Mode::RWXU)?;
        let directory = openat2::directory(place.as_fd(), &*name)?;
        let made = Self { path, place, name, directory, memory_bytes: limits.memory_bytes };
        let set = |file: &str, value: &str| set(&made.directory, file, value);
        set("memory.max", &limits.memory_bytes.to_string())?;
        set("memory.oom.group", "1")?;
        // The first process of its namespace is none of the command's.
        set("pids.max", &limits.processes.saturating_add(1).to_string())?;
        // Machines without swap or these controllers have no such files.
        for (file, value) in [("memory.swap.max", "0"), ("cpu.weight", WEIGHT), ("io.weight", WEIGHT)] {
            let _ = set(file, value);
        }
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel has ended it because it had too much.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.directory, "memory.events", flags, Mode::empty()).ok()?;
        let events = io::read_to_string(File::from(opened)).ok()?;
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        (kills.trim() != "0").then_some(Exceeded::Memory(self.memory_bytes))
    }

    pub(super) fn kill(&self) {
        // What cannot be killed so is killed one by one.
        let _ = set(&self.directory, KILL, "1");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.kill();
        remove(&self.place, &self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELSEWHERE: &str = "23 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n";

    #[test]
    fn the_own_cgroup_is_found_by_its_mount() {
        let mounts = format!("{ELSEWHERE}30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
        let service = located("0::/system.slice/agentsvc.service\n", &mounts);
        assert_eq!(service, Some("/sys/fs/cgroup/system.slice/agentsvc.service".into()));
        assert_eq!(located("9:pids:/x\n0::/\n", &mounts), Some("/sys/fs/cgroup/".into()));
        // A container that sees the whole hierarchy's names, but only its own part.
        let part = format!("{ELSEWHERE}30 23 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
        assert_eq!(located("0::/docker/1/own\n", &part), Some("/sys/fs/cgroup/own".into()));
        for groups in ["0::/docker/2\n", "0::/../other\n", "4:memory:/docker/1\n", ""] {
            assert_eq!(located(groups, &part), None, "{groups}");
        }
        assert_eq!(located("0::/\n", ELSEWHERE), None);
    }

    /// A directory that looks like a cgroup.
    fn group(path: &Path, controllers: &str, processes: &str) -> PathBuf {
        fs::create_dir_all(path).unwrap();
        for (file, text) in [("cgroup.controllers", controllers), (PROCESSES, processes), (KILL, "")] {
            fs::write(path.join(file), text).unwrap();
        }
        path.to_owned()
    }

    #[test]
    fn only_a_cgroup_of_its_own_is_divided() {
        let dir = tempfile::tempdir().unwrap();
        let me = format!("{}\n", std::process::id());
        let at = |name: &str| dir.path().join(name);
        let own = group(&at("own"), "cpu io memory pids\n", &me);
        assert_eq!(divisible(own.clone()), Some(own));
        let below = group(&at("empty"), "memory pids\n", "");
        assert_eq!(divisible(group(&at("empty/daemon"), "", &me)), Some(below));
        for refused in [
            group(&at("shared"), "memory pids\n", &format!("{me}1\n")),
            group(&at("poor"), "cpu memory\n", &me),
            group(&at("agentsvc.service"), "memory pids\n", &me),
            at("missing"),
        ] {
            assert_eq!(divisible(refused.clone()), None, "{refused:?}");
        }
        let root = group(&at("root"), "memory pids\n", &me);
        fs::remove_file(root.join(KILL)).unwrap();
        assert_eq!(divisible(root), None);
    }

    #[test]
    fn commands_that_are_left_are_killed_before_there_are_others() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["command-7", "other"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        remove_left(dir.path());
        assert_eq!(fs::read_to_string(dir.path().join("command-7").join(KILL)).unwrap(), "1");
        assert!(!dir.path().join("other").join(KILL).exists());
    }

    #[test]
    fn a_command_gets_a_cgroup_with_its_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let read = |file: &Path| fs::read_to_string(dir.path().join(file)).unwrap_or_default();
        hand_on(dir.path()).unwrap();
        assert_eq!(read(Path::new("daemon/cgroup.procs")), "0");
        assert_eq!(read(Path::new("cgroup.subtree_control")), "+io", "the last that was written");
        let limits = Limits { cpu_secs: 1, memory_bytes: 7 << 20, processes: 9, open_files: 1, file_bytes: 1 };
        let cgroup = Cgroup::make(dir.path(), limits).unwrap();
        let path = dir.path().join(format!("command-{}", std::process::id()));
        assert_eq!(cgroup.path(), path);
        for (file, text) in [("memory.max", "7340032"), ("memory.oom.group", "1"), ("pids.max", "10")] {
            assert_eq!(read(&path.join(file)), text, "{file}");
        }
        let events = |kills: u32| fs::write(path.join("memory.events"), format!("max 3\noom 1\noom_kill {kills}\n"));
        assert_eq!(cgroup.exceeded(), None);
        events(0).unwrap();
        assert_eq!(cgroup.exceeded(), None);
        events(2).unwrap();
        assert_eq!(cgroup.exceeded(), Some(Exceeded::Memory(7 << 20)));
        drop(cgroup);
        assert_eq!(read(&path.join(KILL)), "1", "all of it is killed");
    }
}
