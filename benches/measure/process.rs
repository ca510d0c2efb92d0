//! A look at a process from outside, by `/proc`; and a profile of it where one is asked for.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Resident bytes of a process.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// Resident bytes of a process that no file stands behind: heap and stacks.
pub(crate) fn anonymous_bytes(pid: u32) -> u64 {
    status_bytes(pid, "RssAnon:")
}

/// Has the kernel measure the peak of a process's memory anew. Where this is not allowed, what was before counts too.
pub(crate) fn forget_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// The most bytes of a process that were resident at once.
pub(crate) fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

/// Threads of a process.
pub(crate) fn threads(pid: u32) -> u64 {
    status(pid, "Threads:")
}

/// Open files and sockets of a process.
pub(crate) fn open_files(pid: u32) -> u64 {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |entries| entries.count() as u64)
}

fn status_bytes(pid: u32, field: &str) -> u64 {
    status(pid, field) << 10
}

fn status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Seconds of processor time that a process has used. Linux counts them in hundredths.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<u64> = after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse().ok()).collect();
    ticks.iter().sum::<u64>() as f64 / 100.0
}

/// Bytes of the files below a directory. What vanishes meanwhile counts nothing.
pub(crate) fn bytes_below(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

/// The sum of a family of the metrics page over its labels; 0 when it is not there.
pub(crate) fn metric(page: &str, name: &str) -> f64 {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.strip_prefix('{') {
            Some(labels) => labels.rsplit_once("} ")?.1,
            None => rest.strip_prefix(' ')?,
        };
        value.trim().parse::<f64>().ok()
    };
    page.lines().filter_map(value).sum()
}

/// The variable that names a directory for profiles. Unset: none are taken.
const PROFILES: &str = "AGENTSVC_BENCH_PERF";

/// `perf record` of a process while something is measured; ends when dropped, with the profile written.
pub(crate) struct Profile(Option<Child>);

impl Profile {
    /// Begins, where profiles are asked for: `<directory>/<name>.data`.
    pub(crate) fn of(pid: u32, name: &str) -> Self {
        let Some(folder) = std::env::var_os(PROFILES) else { return Self(None) };
        let path = Path::new(&folder).join(format!("{name}.data"));
        let mut command = Command::new("perf");
        command.args(["record", "--freq", "1999", "-g", "--pid"]).arg(pid.to_string()).arg("--output").arg(path);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("perf can be started");
        // It takes a moment to attach to every thread.
        std::thread::sleep(Duration::from_millis(300));
        Self(Some(child))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        // By its signal it writes what it has; only a perf that has ended by itself cannot be told.
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let _ = child.wait();
    }
}
