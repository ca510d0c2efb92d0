//! The room on the disks that programs write to. No file system says who took it, so a program is ended before there is none:
//! the one that took most of it lately, then the next one, and all of them when that does not help.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::unnamed::{unnamed_bytes, written_bytes};
use crate::kernel::free_space::SPARE_BYTES;

/// With less than this all programs end.
const LAST_BYTES: u64 = SPARE_BYTES / 2;
/// With less than this it is looked more often.
const NEAR_BYTES: u64 = SPARE_BYTES + (512 << 20);
/// Time between two looks, and where the end is near.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_SOON: Duration = Duration::from_millis(20);
/// Who took less is not ended for it.
const SOME_BYTES: u64 = 1 << 20;
/// What was written longer ago does not count: between this and twice this.
const LATELY: Duration = Duration::from_secs(5);
/// Time that a program which is ended has to give the room back, before the next is chosen.
const REST: Duration = Duration::from_millis(200);
/// How long a watch waits for its look: it has the disk to guard meanwhile.
const LOOK_WAIT: Duration = Duration::from_millis(200);

/// Looks at what a program has written that are under way at once: programs that started together are due together, and each
/// thread that looks keeps a stack and a heap until it has been idle for long.
static LOOKS: Semaphore = Semaphore::const_new(1);

static OF_ALL: Mutex<State> = Mutex::new(State { running: BTreeMap::new(), next: 0, rests: BTreeMap::new() });

struct State {
    running: BTreeMap<u64, Program>,
    /// The number of the next program.
    next: u64,
    /// Until when no other program is chosen, by file system. There are few of those.
    rests: BTreeMap<u64, Instant>,
}

#[derive(Clone, Copy)]
struct Program {
    supervisor: u32,
    /// The file system.
    device: u64,
    /// It must end.
    is_chosen: bool,
    /// What it had written at the last look that counts, and when that was; and at the one before.
    last: (u64, Instant),
    before: u64,
}

impl Program {
    /// Bytes that it took lately.
    fn took(&self) -> u64 {
        let written = written_bytes(self.supervisor).saturating_sub(self.before);
        written.saturating_add(unnamed_bytes(self.supervisor, self.device).unwrap_or(u64::MAX / 2))
    }
}

impl State {
    /// Chooses the program that took most on a file system, unless it has just done so. Gives those to compare.
    fn compared(&mut self, device: u64, now: Instant) -> Vec<(u64, Program)> {
        if self.rests.get(&device).is_some_and(|until| now < *until) {
            return Vec::new();
        }
        self.rests.insert(device, now + REST);
        let left = self.running.iter().filter(|(_, program)| program.device == device && !program.is_chosen);
        left.map(|(number, program)| (*number, *program)).collect()
    }
}

/// A program that runs, until this is dropped.
#[derive(Debug)]
pub(in super::super) struct Running(u64);

impl Running {
    /// It writes in the directory.
    pub(in super::super) fn new(directory: &Path, supervisor: Option<u32>) -> Self {
        let device = fs::metadata(directory).map_or(0, |found| found.dev());
        let mut state = OF_ALL.lock();
        let (number, now) = (state.next, Instant::now());
        state.next += 1;
        if let Some(supervisor) = supervisor {
            let program = Program { supervisor, device, is_chosen: false, last: (0, now), before: 0 };
            state.running.insert(number, program);
        }
        Self(number)
    }

    /// Must it end, now that so many bytes are free?
    pub(in super::super) async fn must_end(&self, free: u64) -> bool {
        if free < LAST_BYTES {
            return true;
        }
        let Some(program) = self.program() else { return false };
        if program.is_chosen {
            return true;
        }
        let number = self.0;
        if free < SPARE_BYTES {
            let compared = OF_ALL.lock().compared(program.device, Instant::now());
            if !compared.is_empty() {
                let _done = spawn_blocking(move || choose(compared, Program::took)).await;
            }
        } else if program.last.1.elapsed() >= LATELY {
            // Where many wait, this round goes on without a look.
            let Ok(_turn) = timeout(LOOK_WAIT, LOOKS.acquire()).await else { return program.is_chosen };
            let _done = spawn_blocking(move || {
                let written = written_bytes(program.supervisor);
                if let Some(program) = OF_ALL.lock().running.get_mut(&number) {
                    program.before = program.last.0;
                    program.last = (written, Instant::now());
                }
            })
            .await;
        }
        self.program().is_some_and(|program| program.is_chosen)
    }

    fn program(&self) -> Option<Program> {
        OF_ALL.lock().running.get(&self.0).copied()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        OF_ALL.lock().running.remove(&self.0);
    }
}

/// Chooses the program that took most.
fn choose(compared: Vec<(u64, Program)>, took: impl Fn(&Program) -> u64) {
    let sized = compared.into_iter().map(|(number, program)| (took(&program), program.supervisor, number));
    let Some((bytes, supervisor, number)) = sized.max().filter(|(bytes, ..)| *bytes >= SOME_BYTES) else { return };
    if let Some(program) = OF_ALL.lock().running.get_mut(&number) {
        program.is_chosen = true;
        tracing::warn!(supervisor, bytes, "the disk is almost full: the program that took most of it lately is ended");
    }
}

/// Time until the next look at a disk with so many bytes free.
pub(in super::super) fn rest(free: u64) -> Duration {
    if free < NEAR_BYTES { LOOK_SOON } else { LOOK_EVERY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_program_that_took_most_ends_first_and_all_when_that_does_not_help() {
        let (dir, other) = (tempfile::tempdir().unwrap(), Path::new("/proc"));
        let running = [3, 9, 5].map(|supervisor| Running::new(dir.path(), Some(u32::MAX - supervisor)));
        let elsewhere = Running::new(other, Some(u32::MAX - 20));
        let took = |program: &Program| u64::from(u32::MAX - program.supervisor) * SOME_BYTES / 4;
        let device = running[0].program().unwrap().device;
        let compared = |now| {
            let all = OF_ALL.lock().compared(device, now);
            all.into_iter().filter(|(number, _)| running.iter().any(|running| running.0 == *number)).collect::<Vec<_>>()
        };
        let chosen = || running.each_ref().map(|running| running.program().unwrap().is_chosen);
        let mut now = Instant::now() + Duration::from_secs(3_600);
        choose(compared(now), took);
        assert_eq!(chosen(), [false, true, false]);
        assert!(compared(now).is_empty(), "it has time to give the room back");
        for _ in 0..2 {
            now += REST;
            choose(compared(now), took);
            // The last one took too little.
            assert_eq!(chosen(), [false, true, true]);
        }
        assert!(running[1].must_end(u64::MAX).await && !running[0].must_end(SPARE_BYTES).await);
        assert!(running[0].must_end(LAST_BYTES - 1).await && elsewhere.program().is_some_and(|it| !it.is_chosen));
        let numbers = running.each_ref().map(|running| running.0);
        drop(running);
        assert!(numbers.iter().all(|number| !OF_ALL.lock().running.contains_key(number)));
    }
}
