//! Memory that this process can still take.

use std::fs;
use std::path::{Path, PathBuf};

/// What there is and what this process has of it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident in this process.
    pub(crate) resident: u64,
    /// What the system can give without swapping, within the bounds of this process's cgroups.
    pub(crate) available: u64,
}

impl Memory {
    /// As of now; `None` where the system does not tell.
    pub(crate) fn now() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        let resident = process_bytes("VmRSS:")?;
        let free = in_kib(&read("/proc/meminfo")?, "MemAvailable:")?;
        let own = read("/proc/self/cgroup").and_then(|groups| below(&groups));
        let bound = own.and_then(|own| left(Path::new(ROOT), &own));
        Some(Self { resident, available: free.min(bound.unwrap_or(u64::MAX)) })
    }
}

/// Bytes of a field of `/proc/self/status` (`VmRSS:`); `None` where the system has none.
pub(crate) fn process_bytes(field: &str) -> Option<u64> {
    in_kib(&fs::read_to_string("/proc/self/status").ok()?, field)
}

/// Where the tree of cgroups (version 2) is.
const ROOT: &str = "/sys/fs/cgroup";

/// The number of a line such as `VmRSS:     1234 kB`, in bytes.
fn in_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The cgroup of `/proc/self/cgroup`, below the root.
fn below(groups: &str) -> Option<PathBuf> {
    groups.lines().find_map(|line| line.strip_prefix("0::/")).map(PathBuf::from)
}

/// What is left in the tightest of a cgroup and those above it; `None`: none has a bound.
fn left(root: &Path, own: &Path) -> Option<u64> {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let of = |at: &Path| {
        Some(
            number(root.join(at).join("memory.max"))?
                .saturating_sub(number(root.join(at).join("memory.current"))?.saturating_sub(cache(&root.join(at)))),
        )
    };
    own.ancestors().filter_map(of).min()
}

/// Bytes of files that the kernel drops first when a cgroup needs memory.
fn cache(at: &Path) -> u64 {
    let stat = fs::read_to_string(at.join("memory.stat")).unwrap_or_default();
    let number = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_some_and_there_is_more() {
        let memory = Memory::now().unwrap();
        assert!(memory.resident > 1 << 20 && memory.available > 0, "{memory:?}");
        assert!(process_bytes("RssAnon:").is_some_and(|bytes| bytes > 0));
        assert_eq!(process_bytes("Nothing:"), None);
    }

    #[test]
    fn the_tightest_cgroup_bounds() {
        let root = tempfile::tempdir().unwrap();
        let put = |at: &str, max: &str, current: &str| {
            fs::create_dir_all(root.path().join(at)).unwrap();
            fs::write(root.path().join(at).join("memory.max"), max).unwrap();
            fs::write(root.path().join(at).join("memory.current"), current).unwrap();
        };
        put("a/b/c", "max\n", "7\n");
        assert_eq!(left(root.path(), Path::new("a/b/c")), None);
        put("a", "1000\n", "400\n");
        put("a/b", "900\n", "1000\n");
        assert_eq!(left(root.path(), Path::new("a")), Some(600));
        fs::write(root.path().join("a/memory.stat"), "anon 7\ninactive_file 100\n").unwrap();
        assert_eq!(left(root.path(), Path::new("a")), Some(700));
        assert_eq!(left(root.path(), Path::new("a/b/c")), Some(0));
        assert_eq!(below("1:name=x:/y\n0::/a/b\n"), Some("a/b".into()));
        assert_eq!(in_kib("VmPeak:\t 9 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12_288));
        assert_eq!(in_kib("VmRSS:\t x kB\n", "VmRSS:"), None);
    }
}
