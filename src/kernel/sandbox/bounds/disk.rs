//! The room on the disks that programs write to. No file system says who took it, so a program is ended before there is none:
//! the one that took most of it lately, then the next one, and all of them when that does not help.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::unnamed::{unnamed_bytes, written_bytes};
use crate::kernel::free_space::{self, SPARE_BYTES};

/// With less than this all programs end.
const LAST_BYTES: u64 = SPARE_BYTES / 2;
/// With less than this it is looked more often.
const NEAR_BYTES: u64 = SPARE_BYTES + (512 << 20);
/// With less than this it is noted what programs write.
const NOTED_BYTES: u64 = SPARE_BYTES + (8 << 30);
/// Time between two looks, and where the end is near.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_SOON: Duration = Duration::from_millis(20);
/// Who took less is not ended for it.
const SOME_BYTES: u64 = 1 << 20;
/// What was written longer ago does not count: between this and twice this.
const LATELY: Duration = Duration::from_secs(5);
/// Time that a program which is ended has to give the room back, before the next is chosen.
const REST: Duration = Duration::from_millis(200);
/// A disk that lost so many bytes since a program was measured last has that program measured again.
const LOST_BYTES: u64 = 16 << 20;

static OF_ALL: Mutex<State> = Mutex::new(State { running: BTreeMap::new(), next: 0, disks: BTreeMap::new() });

/// One of the programs looks for all: those that only wait wake nobody.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

struct State {
    running: BTreeMap<u64, Program>,
    /// The number of the next program.
    next: u64,
    /// Those that programs were on, by file system. There are few of those.
    disks: BTreeMap<u64, Disk>,
}

#[derive(Clone, Copy, Default)]
struct Disk {
    /// Until when no other program is chosen.
    rests: Option<Instant>,
    /// When it was noted last what programs had written.
    noted: Option<Instant>,
}

#[derive(Clone)]
struct Program {
    supervisor: Option<u32>,
    directory: Arc<Path>,
    /// The file system.
    device: u64,
    /// Told when one of the next two comes to hold.
    told: Arc<Notify>,
    /// It must end.
    must_end: bool,
    /// The disk lost much.
    has_lost: bool,
    /// Most bytes that were free since it was measured last, when it was looked.
    most_free: u64,
    /// What it had written when that was noted last, and the time before.
    last: u64,
    before: u64,
}

impl Program {
    /// Bytes that it took lately.
    fn took(&self) -> u64 {
        let Some(supervisor) = self.supervisor else { return 0 };
        let written = written_bytes(supervisor).saturating_sub(self.before);
        written.saturating_add(unnamed_bytes(supervisor, self.device).unwrap_or(u64::MAX / 2))
    }
}

impl State {
    /// The programs on a file system that need not end yet.
    fn left(&self, device: u64) -> Vec<(u64, Program)> {
        let left = self.running.iter().filter(|(_, program)| program.device == device && !program.must_end);
        left.map(|(number, program)| (*number, program.clone())).collect()
    }

    /// The programs to compare now that a disk has too little room: none while one that was chosen gives room back.
    fn compared(&mut self, device: u64, now: Instant) -> Vec<(u64, Program)> {
        let disk = self.disks.entry(device).or_default();
        if disk.rests.is_some_and(|until| now < until) {
            return Vec::new();
        }
        disk.rests = Some(now + REST);
        self.left(device)
    }

    /// The programs of which it is to be noted what they have written.
    fn noted(&mut self, device: u64, now: Instant) -> Vec<(u64, Program)> {
        let disk = self.disks.entry(device).or_default();
        if disk.noted.is_some_and(|noted| now < noted + LATELY) {
            return Vec::new();
        }
        disk.noted = Some(now);
        self.left(device)
    }

    /// So many bytes are free: tells the programs that this concerns.
    fn tell(&mut self, device: u64, free: u64) {
        for program in self.running.values_mut().filter(|program| program.device == device) {
            program.most_free = program.most_free.max(free);
            let (ends, loses) = (free < LAST_BYTES, program.most_free - free >= LOST_BYTES);
            let is_news = (ends && !program.must_end) || (loses && !program.has_lost);
            program.must_end |= ends;
            program.has_lost |= loses;
            if is_news {
                program.told.notify_waiters();
            }
        }
    }
}

/// A program that runs, until this is dropped.
#[derive(Debug)]
pub(in super::super) struct Running {
    number: u64,
    told: Arc<Notify>,
}

impl Running {
    /// It writes in the directory.
    pub(in super::super) fn new(directory: &Path, supervisor: Option<u32>) -> Self {
        let device = fs::metadata(there(directory)).map_or(0, |found| found.dev());
        let told = Arc::new(Notify::new());
        let program = Program {
            supervisor,
            directory: directory.into(),
            device,
            told: told.clone(),
            must_end: false,
            has_lost: false,
            most_free: 0,
            last: 0,
            before: 0,
        };
        let mut state = OF_ALL.lock();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, program);
        Self { number, told }
    }

    /// Waits until it must end, because its disk is full.
    pub(in super::super) async fn until_it_must_end(&self) {
        loop {
            tokio::select! {
                () = self.until(|program| program.must_end) => return,
                _turn = TURN.lock() => while !self.is(|program| program.must_end) {
                    let rest = look().await;
                    sleep(rest).await;
                },
            }
        }
    }

    /// Waits until its disk has lost much since this was measured last.
    pub(in super::super) async fn until_much_is_lost(&self) {
        self.until(|program| program.has_lost).await;
    }

    /// What it holds was measured.
    pub(in super::super) fn was_measured(&self) {
        if let Some(program) = OF_ALL.lock().running.get_mut(&self.number) {
            (program.has_lost, program.most_free) = (false, 0);
        }
    }

    async fn until(&self, holds: fn(&Program) -> bool) {
        loop {
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            if self.is(holds) {
                return;
            }
            told.await;
        }
    }

    fn is(&self, holds: fn(&Program) -> bool) -> bool {
        OF_ALL.lock().running.get(&self.number).is_some_and(holds)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        OF_ALL.lock().running.remove(&self.number);
    }
}

/// Looks at the disks of all programs. Gives the time until the next look.
async fn look() -> Duration {
    let directories: BTreeMap<u64, Arc<Path>> =
        OF_ALL.lock().running.values().map(|program| (program.device, program.directory.clone())).collect();
    let mut rest = LOOK_EVERY;
    for (device, directory) in directories {
        let free = free_space::room(there(&directory)).unwrap_or(u64::MAX);
        if free < NEAR_BYTES {
            rest = LOOK_SOON;
        }
        OF_ALL.lock().tell(device, free);
        if (LAST_BYTES..SPARE_BYTES).contains(&free) {
            let compared = OF_ALL.lock().compared(device, Instant::now());
            if !compared.is_empty() {
                let _done = spawn_blocking(move || choose(compared, Program::took)).await;
            }
        } else if free < NOTED_BYTES {
            let noted = OF_ALL.lock().noted(device, Instant::now());
            if !noted.is_empty() {
                let _done = spawn_blocking(move || note(noted)).await;
            }
        }
    }
    rest
}

/// Notes what the programs have written.
fn note(programs: Vec<(u64, Program)>) {
    for (number, program) in programs {
        let written = program.supervisor.map_or(0, written_bytes);
        if let Some(program) = OF_ALL.lock().running.get_mut(&number) {
            (program.before, program.last) = (program.last, written);
        }
    }
}

/// Chooses the program that took most.
fn choose(compared: Vec<(u64, Program)>, took: impl Fn(&Program) -> u64) {
    let sized = compared.into_iter().map(|(number, program)| (took(&program), program.supervisor, number));
    let Some((bytes, supervisor, number)) = sized.max().filter(|(bytes, ..)| *bytes >= SOME_BYTES) else { return };
    if let Some(program) = OF_ALL.lock().running.get_mut(&number) {
        program.must_end = true;
        program.told.notify_waiters();
        tracing::warn!(supervisor, bytes, "the disk is almost full: the program that took most of it lately is ended");
    }
}

/// The directory, or the nearest one above it while it is not there: a program may remove its own.
pub(in super::super) fn there(directory: &Path) -> &Path {
    directory.ancestors().find(|directory| directory.is_dir()).unwrap_or(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_program_that_took_most_ends_first_and_all_when_that_does_not_help() {
        let (dir, other) = (tempfile::tempdir().unwrap(), Path::new("/proc"));
        let running = [3, 9, 5].map(|supervisor| Running::new(dir.path(), Some(u32::MAX - supervisor)));
        let elsewhere = Running::new(other, Some(u32::MAX - 20));
        let took = |program: &Program| u64::from(u32::MAX - program.supervisor.unwrap()) * SOME_BYTES / 4;
        // A file system of their own: other tests have programs, too.
        let device = u64::MAX;
        for program in &running {
            OF_ALL.lock().running.get_mut(&program.number).unwrap().device = device;
        }
        let compared = |now| OF_ALL.lock().compared(device, now);
        let chosen = || running.each_ref().map(|running| running.is(|program| program.must_end));
        let mut now = Instant::now();
        choose(compared(now), took);
        assert_eq!(chosen(), [false, true, false]);
        assert!(compared(now).is_empty(), "it has time to give the room back");
        for _ in 0..2 {
            now += REST;
            choose(compared(now), took);
            // The last one took too little.
            assert_eq!(chosen(), [false, true, true]);
        }
        running[1].until_it_must_end().await;
        OF_ALL.lock().tell(device, LAST_BYTES);
        assert_eq!(chosen(), [false, true, true]);
        OF_ALL.lock().tell(device, LAST_BYTES - 1);
        running[0].until_it_must_end().await;
        assert!(!elsewhere.is(|program| program.must_end));
        let numbers = running.each_ref().map(|running| running.number);
        drop(running);
        assert!(numbers.iter().all(|number| !OF_ALL.lock().running.contains_key(number)));
    }

    #[tokio::test]
    async fn a_program_is_told_once_its_disk_lost_much_since_it_was_measured() {
        let dir = tempfile::tempdir().unwrap();
        let running = Running::new(dir.path(), None);
        let device = u64::MAX - 1;
        OF_ALL.lock().running.get_mut(&running.number).unwrap().device = device;
        let has_lost = |free| {
            OF_ALL.lock().tell(device, free);
            running.is(|program| program.has_lost)
        };
        let free = NEAR_BYTES;
        assert!(!has_lost(free) && !has_lost(free - LOST_BYTES + 1));
        // Room that came meanwhile counts.
        assert!(!has_lost(free + 2) && has_lost(free + 2 - LOST_BYTES));
        running.until_much_is_lost().await;
        running.was_measured();
        assert!(!has_lost(free - LOST_BYTES) && has_lost(free - 2 * LOST_BYTES));
    }

    #[test]
    fn what_was_written_before_the_last_notes_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let running = Running::new(dir.path(), None);
        let device = u64::MAX - 2;
        OF_ALL.lock().running.get_mut(&running.number).unwrap().device = device;
        let now = Instant::now();
        let due = |now| OF_ALL.lock().noted(device, now).len();
        assert_eq!((due(now), due(now + LATELY / 2), due(now + LATELY)), (1, 0, 1));
    }
}
