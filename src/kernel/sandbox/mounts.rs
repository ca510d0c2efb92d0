//! What a command sees of the file system: a root of its own in memory, in which only the files and directories of its
//! sandbox are mounted, read-only but for the workspace and what else it may change.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::landlock::DEVICES;
use super::sandbox_spec::SandboxSpec;

/// A directory that every system has. The new root is built over it, and what is covered is seen again behind [`OLD`].
const STAGE: &str = "/proc";
/// The old root, seen from the stage.
const OLD: &str = "/old";
/// The new root, seen from the stage.
const NEW: &str = "/new";
/// Where the processes are seen.
const PROCESSES: &str = "/proc";
/// What is shown in place of a file that is hidden.
const NOTHING: &str = "/dev/null";
/// Symbolic links that are followed on the way to one path.
const LINKS_MAX: usize = 32;
/// Names in `/dev` that lead to what a process has open.
const DESCRIPTORS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// A root while it is built.
struct Root {
    /// Where something is mounted; what lies beneath is there already.
    mounted: BTreeSet<PathBuf>,
    /// Which of these may be changed.
    writable: Vec<PathBuf>,
    /// Which of these cover what lies there.
    empty: Vec<PathBuf>,
}

/// Builds the root and makes it this process's. Needs a mount namespace of its own.
pub(super) fn build(sandbox_spec: &SandboxSpec) -> io::Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    memory(Path::new(STAGE))?;
    for place in [OLD, NEW] {
        fs::create_dir(beneath(Path::new(STAGE), Path::new(place)))?;
    }
    rustix::process::pivot_root(STAGE, beneath(Path::new(STAGE), Path::new(OLD)))?;
    std::env::set_current_dir("/")?;
    memory(Path::new(NEW))?;
    let mut root = Root { mounted: BTreeSet::new(), writable: Vec::new(), empty: Vec::new() };
    let mut visible: Vec<&Path> = sandbox_spec.readable.iter().map(PathBuf::as_path).collect();
    // Directories come before what lies in them, which then needs no mount of its own.
    visible.sort_unstable();
    for path in visible.iter().filter(|path| **path != Path::new(PROCESSES)) {
        root.show(path, Access::Read, LINKS_MAX)?;
    }
    for program in sandbox_spec.programs.iter().flatten() {
        root.show(program, Access::Read, LINKS_MAX)?;
    }
    for device in DEVICES {
        root.show(Path::new(device), Access::Device, LINKS_MAX)?;
    }
    for (to, name) in DESCRIPTORS {
        Root::parents(Path::new(name))?;
        symlink(to, inside(Path::new(name)))?;
    }
    processes()?;
    for path in &sandbox_spec.writable {
        root.show(path, Access::Write, LINKS_MAX)?;
    }
    root.hide(&sandbox_spec.hidden)?;
    for path in &sandbox_spec.shown {
        // What lies above it may be hidden, and counts as shown.
        root.mount(path, Access::Read)?;
    }
    root.show(&sandbox_spec.workspace, Access::Write, LINKS_MAX)?;
    for path in sandbox_spec.shown.iter().filter(|path| path.starts_with(&sandbox_spec.workspace)) {
        // It stays as it is although all around it may be changed: not written to, renamed, removed or linked.
        root.mount(path, Access::Read)?;
    }
    root.restrict_inner()?;
    rustix::mount::unmount(OLD, UnmountFlags::DETACH)?;
    std::env::set_current_dir(NEW)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::mount::mount_remount(
        "/",
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
        c"",
    )?;
    std::env::set_current_dir("/")
}

/// How something is mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Device,
}

impl Access {
    /// Gives the mount at `to` its flags, beside those that it has.
    fn restrict(self, to: &Path) -> io::Result<()> {
        let flags = match self {
            Self::Read => MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
            Self::Write => MountFlags::NOSUID | MountFlags::NODEV,
            // What is written to a device is no change of the mount; its mode, owner and times are.
            Self::Device => MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC,
        };
        Ok(rustix::mount::mount_remount(to, MountFlags::BIND | flags | kept(to)?, c"")?)
    }
}

impl Root {
    /// Makes `path` lead to what it leads to outside. What is not there is left out.
    fn show(&mut self, path: &Path, access: Access, links: usize) -> io::Result<()> {
        let mut at = PathBuf::from("/");
        let mut rest = path.components();
        while let Some(part) = rest.next() {
            let Component::Normal(name) = part else { continue };
            at.push(name);
            if access != Access::Write && self.is_shown(&at) {
                return Ok(());
            }
            let Ok(found) = fs::symlink_metadata(outside(&at)) else { return Ok(()) };
            if !found.is_symlink() {
                continue;
            }
            let Some(links) = links.checked_sub(1) else { return Ok(()) };
            let to = fs::read_link(outside(&at))?;
            Self::parents(&at)?;
            if fs::symlink_metadata(inside(&at)).is_err() {
                symlink(&to, inside(&at))?;
            }
            let from = at.parent().unwrap_or(Path::new("/"));
            return self.show(&flat(&from.join(to).join(rest.as_path())), access, links);
        }
        self.mount(&at, access)
    }

    fn is_shown(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.mounted.contains(above))
    }

    fn mount(&mut self, path: &Path, access: Access) -> io::Result<()> {
        let (from, to) = (outside(path), inside(path));
        Self::parents(path)?;
        if fs::metadata(&from)?.is_dir() {
            directory(&to)?;
        } else if fs::symlink_metadata(&to).is_err() {
            fs::File::create(&to)?;
        }
        rustix::mount::mount_bind_recursive(&from, &to)?;
        access.restrict(&to)?;
        if access == Access::Write {
            self.writable.push(path.to_owned());
        }
        self.mounted.insert(path.to_owned());
        Ok(())
    }

    /// Restricts what was mounted outside within something that is shown, and came along with it.
    fn restrict_inner(&self) -> io::Result<()> {
        let own = |path: &Path| path == Path::new("/") || path == Path::new(PROCESSES) || self.mounted.contains(path);
        for line in fs::read_to_string(outside(Path::new("/proc/self/mountinfo")))?.lines() {
            let at = unescaped(line.split(' ').nth(4).unwrap_or_default());
            let Ok(path) = Path::new(&at).strip_prefix(NEW).map(|path| Path::new("/").join(path)) else { continue };
            if own(&path) {
                continue;
            }
            let is_writable = self.writable.iter().any(|writable| path.starts_with(writable));
            // No path leads to what is covered.
            if !is_writable && self.empty.iter().any(|empty| path.starts_with(empty)) {
                continue;
            }
            let access = if is_writable { Access::Write } else { Access::Read };
            access.restrict(Path::new(&at))?;
        }
        Ok(())
    }

    /// The directories above `path`.
    fn parents(path: &Path) -> io::Result<()> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.into_iter().rev().try_for_each(|above| directory(&inside(above)))
    }

    /// Puts an empty directory over each of `hidden` that can be seen, and an empty device over each file.
    fn hide(&mut self, hidden: &[PathBuf]) -> io::Result<()> {
        for path in hidden.iter().filter(|path| self.is_shown(path)).cloned().collect::<Vec<_>>() {
            match fs::metadata(inside(&path)) {
                Ok(found) if found.is_dir() => memory(&inside(&path))?,
                Ok(_) => {
                    rustix::mount::mount_bind(outside(Path::new(NOTHING)), inside(&path))?;
                    Access::Device.restrict(&inside(&path))?;
                }
                Err(_) => continue,
            }
            self.mounted.insert(path.clone());
            self.empty.push(path);
        }
        Ok(())
    }
}

/// A file system in memory that holds nothing but names of mounts.
fn memory(at: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount("tmpfs", at, "tmpfs", flags, Some(c"mode=0755,size=1m,nr_inodes=16k"))?)
}

/// The processes of this namespace. Read-only: what the kernel can be told beneath `/proc` concerns the whole machine.
fn processes() -> io::Result<()> {
    let to = inside(Path::new(PROCESSES));
    directory(&to)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    Ok(rustix::mount::mount("proc", &to, "proc", flags, None)?)
}

/// What a mount has and its copy must keep.
fn kept(at: &Path) -> io::Result<MountFlags> {
    let found = rustix::fs::statvfs(at)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
    ];
    Ok(pairs.into_iter().filter(|(has, _)| found.contains(*has)).fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}

fn directory(at: &Path) -> io::Result<()> {
    if fs::metadata(at).is_ok() { Ok(()) } else { fs::create_dir(at) }
}

/// A path of the list of mounts, in which spaces and the like are written as three octal digits behind a backslash.
fn unescaped(path: &str) -> OsString {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..3).filter(|_| *first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(bytes)
}

/// `path` without `.` and `..`, which lead nowhere above the root.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => flat.push(name),
            Component::ParentDir => {
                flat.pop();
            }
            _ => {}
        }
    }
    flat
}

fn outside(path: &Path) -> PathBuf {
    beneath(Path::new(OLD), path)
}

fn inside(path: &Path) -> PathBuf {
    beneath(Path::new(NEW), path)
}

fn beneath(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn paths_of_mounts_are_read() {
        assert_eq!(unescaped("/new/a\\040b\\134c\\12"), "/new/a b\\c\\12");
    }
}
