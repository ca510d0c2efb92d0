//! What a command uses where no cgroup counts it: the supervisor adds up what `/proc` says of every process of its PID
//! namespace, or below the supervisor where there is none, again and again while the command runs.
//!
//! A command can go beyond its bound between two looks, by what it can do in that time. Seen is what processes have
//! mapped: private, shared and swapped out. Not seen are buffers of the kernel (pipes, sockets), and shared memory that was
//! filled and then taken out of the address space in part, or is handed from process to process faster than they are
//! listed. Memory that needs no mapping (`memfd_create`, `shmget`) and larger buffers are
//! refused instead, by [`seccomp`](crate::kernel::sandbox::seccomp). For the rest, see [`available`](super::available).

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Exceeded;
use crate::kernel::sandbox::sandbox_spec::Limits;

/// What a process has in memory by `/proc/<number>/status`. Quickly read, but what several share counts for each.
const STATUS: (&str, &[&str]) = ("status", &["RssAnon", "RssShmem", "VmSwap"]);
/// The same by `/proc/<number>/smaps_rollup`, each shared page in parts. The kernel goes through all pages for it.
const ROLLUP: (&str, &[&str]) = ("smaps_rollup", &["Pss_Anon", "Pss_Shmem", "SwapPss"]);
/// The threads of this process.
const OWN: &str = "/proc/self/task";
/// The first process of a PID namespace.
const FIRST: &str = "1";
/// What the kernel may hold for a descriptor, such as the buffer of a socket.
const DESCRIPTOR_BYTES: u64 = 208 << 10;
/// Processes of a command that are looked at to compare it with others.
const COMPARED_MAX: usize = 4_096;
/// How much longer than it took there is no other look.
const REST_TIMES: u32 = 5;

/// Looks at the processes below this one.
#[derive(Debug)]
pub(in crate::kernel::sandbox) struct Sampler {
    limits: Limits,
    next: Instant,
}

impl Sampler {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, next: Instant::now() }
    }

    /// What there is too much of. To be called often: a look that took long is not followed by another at once.
    pub(super) fn exceeded(&mut self) -> Option<Exceeded> {
        let begun = Instant::now();
        if begun < self.next {
            return None;
        }
        // A program that is just being started shares its memory with who starts it, and both count (`vfork`): the
        // second look finds them apart.
        let found = look(self.limits).and_then(|_| look(self.limits));
        self.next = Instant::now() + begun.elapsed().min(Duration::from_secs(1)) * REST_TIMES;
        found
    }
}

fn look(limits: Limits) -> Option<Exceeded> {
    let Limits { memory_bytes, processes, .. } = limits;
    // In the mounts of the command, this process is not among those that are listed.
    let all = if Path::new(OWN).exists() { None } else { Some(listed()) };
    let is_listed = all.is_some();
    let (mut seen, mut threads, mut pending) = (HashSet::new(), 0, all.unwrap_or_else(|| children("self").1));
    while let Some(process) = pending.pop() {
        let (count, children) = children(&process);
        threads += count;
        pending.extend(children.into_iter().filter(|child| !is_listed && !seen.contains(child)));
        // It is killed for that: there is no need to know how many more there are.
        if threads + pending.len() as u64 > processes {
            return Some(Exceeded::Processes(processes));
        }
        seen.insert(process);
    }
    let quick = |process: &String| bytes(process, STATUS).unwrap_or_default();
    let exact = |process: &String| bytes(process, ROLLUP).unwrap_or_else(|| quick(process));
    let is_too_much = |count: &dyn Fn(&String) -> u64| seen.iter().map(count).sum::<u64>() > memory_bytes;
    (is_too_much(&quick) && is_too_much(&exact)).then_some(Exceeded::Memory(memory_bytes))
}

/// How much a supervisor and the processes below it may hold, to compare commands: what they have mapped, and a buffer for
/// each descriptor. Goes through `/proc`.
pub(super) fn size_below(supervisor: u32) -> u64 {
    let (mut size, mut seen, mut pending) = (0, HashSet::new(), vec![supervisor.to_string()]);
    while let Some(process) = pending.pop() {
        let open = fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count) as u64;
        size += bytes(&process, STATUS).unwrap_or_default() + open * DESCRIPTOR_BYTES;
        pending.extend(children(&process).1.into_iter().filter(|child| !seen.contains(child)));
        seen.insert(process);
        if seen.len() >= COMPARED_MAX {
            break;
        }
    }
    size
}

/// A supervisor and the processes below it; `None` when they are more than `most`.
pub(super) fn below(supervisor: u32, most: usize) -> Option<Vec<String>> {
    let (mut found, mut seen, mut pending) = (Vec::new(), HashSet::new(), vec![supervisor.to_string()]);
    while let Some(process) = pending.pop() {
        if seen.insert(process.clone()) {
            pending.extend(children(&process).1);
            found.push(process);
        }
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}

/// All processes of the PID namespace but its first, which is not the command's.
fn listed() -> Vec<String> {
    let names =
        fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name != FIRST && name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// How many threads a process has, and its children, which the kernel lists for each of them.
fn children(process: &str) -> (u64, Vec<String>) {
    let (mut threads, mut children) = (0, Vec::new());
    for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        threads += 1;
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(list.split_whitespace().map(str::to_owned));
    }
    (threads, children)
}

/// What these lines of a process's file add up to; `None` when it cannot be read.
fn bytes(process: &str, (file, names): (&str, &[&str])) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
    let kib = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        value.trim().strip_suffix(" kB").filter(|_| names.contains(&name))?.parse::<u64>().ok()
    });
    Some(kib.sum::<u64>() << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { cpu_secs: 1, memory_bytes: u64::MAX, processes: u64::MAX, open_files: 1, file_bytes: 1 };

    #[test]
    fn what_processes_hold_is_read() {
        let mine = vec![7_u8; 8 << 20];
        for file in [STATUS, ROLLUP] {
            let counted = bytes("self", file).unwrap();
            assert!(counted >= mine.len() as u64, "{} of {counted}", file.0);
        }
        assert_eq!(bytes("0", STATUS), None);
    }

    #[test]
    fn everything_below_counts() {
        assert_eq!(look(LIMITS), None);
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 100 & wait"]).spawn().unwrap();
        let below = || children(&child.id().to_string()).1;
        while below().is_empty() {
            std::thread::yield_now();
        }
        let grandchild = below();
        let few = Limits { processes: 1, ..LIMITS };
        assert_eq!(look(few), Some(Exceeded::Processes(1)));
        let little = Limits { memory_bytes: 1, ..LIMITS };
        assert_eq!(look(little), Some(Exceeded::Memory(1)));
        let own = |child: &str| bytes(child, STATUS).unwrap_or_default() + 3 * DESCRIPTOR_BYTES;
        assert!(size_below(child.id()) >= own(&child.id().to_string()) + own(&grandchild[0]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(size_below(child.id()), 0, "it has ended");
        let pid = grandchild[0].parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}
