//! The machine: disk, clock, limits, kernel.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Resource, getrlimit};

use super::{Finding, Patient};
use crate::browser;
use crate::kernel::disk_watch::{RESERVE, RESERVE_FROM_BYTES};
use crate::kernel::sandbox::{Bound, Report, Resolver};

/// With less free the store may fail at any moment.
const SPACE_LEAST: u64 = 100 << 20;
/// With less free it is time to do something.
const SPACE_LOW: u64 = 1 << 30;
/// A sync that takes longer makes every write slow.
const SYNC_SLOW: Duration = Duration::from_millis(50);
/// Syncs that are tried; the median counts.
const SYNCS: usize = 5;
/// No clock shows an earlier time: 2025-01-01.
const TIME_LEAST: Duration = Duration::from_secs(1_735_689_600);
/// How far the newest file of the store may lie in the future.
const SKEW_MOST: Duration = Duration::from_secs(60);
/// Files that a daemon with many connections has open.
const FILES_LEAST: u64 = 4_096;
/// A file system in memory (Linux, `TMPFS_MAGIC`).
const TMPFS: u64 = 0x0102_1994;

/// The nearest directory above the data that exists.
fn data_dir(patient: &Patient) -> PathBuf {
    let data = patient.home.data_dir(patient.config().data_dir.as_deref());
    data.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Agents have a browser, or it is said why not. Only hands that browse need one.
pub(super) fn browser(patient: &Patient) -> Finding {
    let config = patient.config();
    match browser::find(&config.browser, &config.exec_policy.path) {
        Ok(file) => Finding::pass(format!("agents can use the browser {}", file.display())),
        Err(why) if config.browser.executable.is_some() && config.browser.enabled => {
            Finding::warn(format!("the browser tools are not offered: {why}"), "correct `[browser] executable`")
        }
        Err(why) => Finding::pass(format!("the browser tools are not offered: {why}")),
    }
}

/// There is room for what is to come.
pub(super) fn disk_space(patient: &Patient) -> Finding {
    let path = data_dir(patient);
    let shown = path.display();
    let found = match rustix::fs::statvfs(&path) {
        Ok(found) => found,
        Err(error) => {
            return Finding::warn(format!("cannot read the free space of {shown}: {error}"), "check with `df`");
        }
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let mut message = format!("{} MiB free at {shown}", free >> 20);
    if free < RESERVE_FROM_BYTES && !path.join(RESERVE).exists() {
        message
            .push_str(", too little for the reserve of the store: on a full disk nothing could be stored or deleted");
    }
    let fix = "free some space, or set data_dir to a directory on a larger disk";
    if found.f_files > 0 && found.f_favail.saturating_mul(100) < found.f_files {
        return Finding::warn(format!("{message}, and less than 1 % of its inodes are free"), fix);
    }
    match free {
        0..SPACE_LEAST => Finding::fail(message, fix),
        SPACE_LEAST..SPACE_LOW => Finding::warn(message, fix),
        _ => Finding::pass(message),
    }
}

/// What is synced is on a disk, and soon.
pub(super) fn fsync(patient: &Patient) -> Finding {
    let path = data_dir(patient);
    let shown = path.display();
    let took = match sync_time(&path) {
        Ok(took) => took,
        Err(error) => {
            let fix = "make the directory writable by the daemon's user; check the kernel log for disk errors";
            return Finding::fail(format!("cannot write and sync a file in {shown}: {error}"), fix);
        }
    };
    let message = format!("a small write syncs in {:.1} ms at {shown}", took.as_secs_f64() * 1e3);
    let in_memory = rustix::fs::statfs(&path).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS));
    if in_memory {
        let fix = "set data_dir to a directory on a disk";
        return Finding::warn(format!("{message}, but the file system is in memory: a reboot loses all data"), fix);
    }
    if took > SYNC_SLOW {
        return Finding::warn(message, "every write waits this long; use a local SSD instead of a network disk");
    }
    Finding::pass(message)
}

fn sync_time(directory: &Path) -> std::io::Result<Duration> {
    let path = directory.join(format!(".doctor-{}", std::process::id()));
    let mut file = File::create_new(&path)?;
    let mut times = Vec::with_capacity(SYNCS);
    let tried: std::io::Result<()> = (0..SYNCS).try_for_each(|_| {
        let begun = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        times.push(begun.elapsed());
        Ok(())
    });
    fs::remove_file(&path)?;
    tried?;
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// The clock shows a time that can be.
pub(super) fn clock(patient: &Patient) -> Finding {
    let fix = "set the clock and enable time synchronization (chrony, systemd-timesyncd)";
    let now = SystemTime::now();
    if now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() < TIME_LEAST {
        return Finding::fail("the clock shows a time before 2025", fix);
    }
    let world = patient.home.world_dir(patient.config().data_dir.as_deref());
    let ahead = newest(&world).and_then(|newest| newest.duration_since(now).ok());
    match ahead.filter(|ahead| *ahead > SKEW_MOST) {
        Some(ahead) => {
            let message =
                format!("the newest file of the store is {} s in the future; the clock was set back", ahead.as_secs());
            Finding::warn(message, fix)
        }
        None => Finding::pass(agentsvc_api::http::timestamp::now().format("%Y-%m-%dT%H:%M:%SZ").to_string()),
    }
}

fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?;
    entries.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok()).max()
}

/// As many files and connections may be open as the daemon has.
pub(super) fn open_files(_: &Patient) -> Finding {
    // The daemon raises its own bound to this one.
    let limit = getrlimit(Resource::Nofile).maximum;
    match limit {
        Some(limit) if limit < FILES_LEAST => Finding::warn(
            format!("at most {limit} files can be open, including connections"),
            format!("ulimit -n {FILES_LEAST}, or LimitNOFILE={FILES_LEAST} in the unit of systemd"),
        ),
        Some(limit) => Finding::pass(format!("at most {limit} files can be open")),
        None => Finding::pass("the number of open files is unlimited"),
    }
}

/// The kernel keeps agents to their place.
pub(super) fn sandbox(patient: &Patient) -> Finding {
    let policy = &patient.config().exec_policy;
    let Report { resolver, landlock, parts, .. } = Report::of(Resolver::probe(), policy);
    let paths = if resolver == Resolver::Openat2 { "openat2" } else { "openat, name by name" };
    if !policy.runs_commands() {
        return Finding::pass(format!("paths: {paths}; commands are disabled"));
    }
    let missing = |has: bool, part: &'static str| (!has).then_some(part);
    let missing: Vec<&str> = [
        missing(parts.is_some_and(|parts| parts.namespaces), "user namespaces"),
        missing(landlock.is_some(), "Landlock"),
        missing(parts.is_some_and(|parts| parts.seccomp), "seccomp filters"),
        missing(parts.is_some_and(|parts| parts.memory != Bound::None), "bounds of memory and processes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if missing.is_empty() {
        // This process is not in the cgroup of the daemon, and divides none.
        let processes = parts.map_or("none", |parts| parts.processes.as_str());
        return Finding::pass(format!(
            "paths by {paths}; commands in namespaces, under Landlock and seccomp filters; memory bounded by sampling, \
            which counts no buffers of sockets and pipes, processes by {processes}, or both by cgroups if the daemon has one \
            to divide (`GET /api/security`)"
        ));
    }
    Finding::warn(
        format!("paths by {paths}; commands of agents run without {}", missing.join(" and ")),
        "a kernel of 5.13 or later that allows them (CONFIG_SECURITY_LANDLOCK and `lsm=landlock,...`, \
        kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or [exec_policy] \
        require_sandbox = true, which refuses commands until then",
    )
}
