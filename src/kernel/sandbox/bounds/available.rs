//! The memory that the machine has left (`MemAvailable`), where no cgroup counts that of commands. Buffers of the kernel are
//! no process's: commands can fill them until the kernel ends processes, and it may choose the daemon. So the daemon ends
//! commands before that, the largest first.

use std::collections::BTreeMap;
use std::fs;
use std::future::pending;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::cgroup;
use super::sampling::size_below;

/// Bytes that must be left, or [`LEFT_PART`] of the machine's where that is more.
const LEFT_BYTES: u64 = 512 << 20;
/// This part of the machine's memory must be left.
const LEFT_PART: u64 = 20;
/// No more than this part of it must be left: small machines, too, run commands.
const LEFT_PART_MOST: u64 = 8;
/// Time between two looks, which all commands share.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that a command which is ended has to give its memory back, before the next is chosen.
const REST: Duration = Duration::from_millis(500);

static OF_THIS_MACHINE: Available = Available::new(read, size_below);

/// Waits until the command or program of this supervisor must end because the machine has almost no memory left. Never,
/// where a cgroup of its own bounds it.
pub(in super::super) async fn until_used_up(supervisor: Option<u32>) {
    match supervisor {
        Some(supervisor) if cgroup::place().is_none() => OF_THIS_MACHINE.until_chosen(supervisor).await,
        _ => pending().await,
    }
}

/// The memory of the machine in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    total: u64,
    available: u64,
}

impl Memory {
    /// By the text of `/proc/meminfo`.
    fn of(text: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
        };
        Some(Self { total: bytes("MemTotal")?, available: bytes("MemAvailable")? })
    }

    /// Bytes that must be left.
    const fn least(self) -> u64 {
        let (part, most) = (self.total / LEFT_PART, self.total / LEFT_PART_MOST);
        let least = if part > LEFT_BYTES { part } else { LEFT_BYTES };
        if least < most { least } else { most }
    }
}

fn read() -> Option<Memory> {
    Memory::of(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Looks at the memory for all commands together, and chooses which one ends.
struct Available {
    read: fn() -> Option<Memory>,
    /// How much the processes below a supervisor hold.
    size: fn(u32) -> u64,
    state: Mutex<State>,
    /// One of the commands looks for all: those that only wait wake nobody.
    turn: tokio::sync::Mutex<()>,
    /// A command was chosen.
    told: Notify,
}

#[derive(Debug)]
struct State {
    running: BTreeMap<u64, Running>,
    /// The number of the next command.
    next: u64,
    /// When it is looked again.
    look: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    supervisor: u32,
    /// It must end.
    is_chosen: bool,
}

impl Available {
    const fn new(read: fn() -> Option<Memory>, size: fn(u32) -> u64) -> Self {
        let state = Mutex::new(State { running: BTreeMap::new(), next: 0, look: None });
        Self { read, size, state, turn: tokio::sync::Mutex::const_new(()), told: Notify::const_new() }
    }

    async fn until_chosen(&'static self, supervisor: u32) {
        let entry = Entry::new(self, supervisor);
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            // What is told from here on is heard.
            told.as_mut().enable();
            if entry.is_chosen() {
                return;
            }
            tokio::select! {
                () = told => {}
                _turn = self.turn.lock() => return self.look_until_chosen(&entry).await,
            }
        }
    }

    /// Looks for all, until the command of the entry is chosen.
    async fn look_until_chosen(&'static self, entry: &Entry) {
        while !entry.is_chosen() {
            match self.too_little() {
                // The processes of all commands are gone through.
                Some(memory) => {
                    let _chosen = spawn_blocking(move || self.choose(memory)).await;
                }
                None => sleep(LOOK_EVERY).await,
            }
        }
    }

    /// What the machine has, where that is too little and it is time to choose a command.
    fn too_little(&self) -> Option<Memory> {
        let (mut state, now) = (self.state.lock(), Instant::now());
        if state.look.is_some_and(|look| now < look) {
            return None;
        }
        let low = (self.read)().filter(|memory| memory.available < memory.least());
        state.look = Some(now + if low.is_some() { REST } else { LOOK_EVERY });
        low
    }

    /// Chooses the largest command, if one runs that is not chosen yet.
    fn choose(&self, memory: Memory) {
        let running: Vec<(u64, u32)> = {
            let state = self.state.lock();
            let left = state.running.iter().filter(|(_, running)| !running.is_chosen);
            left.map(|(number, running)| (*number, running.supervisor)).collect()
        };
        let sized = running.into_iter().map(|(number, supervisor)| ((self.size)(supervisor), supervisor, number));
        let Some((size, supervisor, number)) = sized.max() else { return };
        if let Some(running) = self.state.lock().running.get_mut(&number) {
            running.is_chosen = true;
            // Here, not where it was looked: the command that looked may have ended meanwhile.
            self.told.notify_waiters();
            let (available, least) = (memory.available, memory.least());
            tracing::warn!(
                available,
                least,
                supervisor,
                size,
                "the machine has almost no memory left: the largest command is ended"
            );
        }
    }
}

/// A command that runs, until this is dropped.
struct Entry(&'static Available, u64);

impl Entry {
    fn new(of: &'static Available, supervisor: u32) -> Self {
        let mut state = of.state.lock();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, Running { supervisor, is_chosen: false });
        Self(of, number)
    }

    fn is_chosen(&self) -> bool {
        self.0.state.lock().running.get(&self.1).is_some_and(|running| running.is_chosen)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.state.lock().running.remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn this_machine_says_what_it_has() {
        let memory = read().unwrap();
        assert!(memory.available > 0 && memory.available < memory.total, "{memory:?}");
        assert_eq!(Memory::of("MemTotal: 8 kB\nMemFree: 4 kB\n"), None, "before Linux 3.14");
        let text = "MemTotal:       8 kB\nMemFree:        1 kB\nMemAvailable:   2 kB\n";
        assert_eq!(Memory::of(text), Some(Memory { total: 8 << 10, available: 2 << 10 }));
    }

    #[test]
    fn a_part_of_the_memory_must_be_left() {
        let least = |total| Memory { total, available: 0 }.least();
        assert_eq!(least(100 * GIB), 5 * GIB);
        assert_eq!(least(8 * GIB), GIB / 2);
        assert_eq!(least(GIB), GIB / 8);
    }

    #[tokio::test]
    async fn a_command_hears_that_it_is_chosen_though_the_one_that_looked_is_gone() {
        static MACHINE: Available = Available::new(|| None, u64::from);
        let (looks, chosen) = (MACHINE.until_chosen(1), MACHINE.until_chosen(2));
        tokio::pin!(looks, chosen);
        assert!((&mut looks).now_or_never().is_none() && (&mut chosen).now_or_never().is_none());
        MACHINE.choose(Memory { total: GIB, available: 0 });
        assert!((&mut chosen).now_or_never().is_some());
        assert!((&mut looks).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_command_ends_and_the_next_one_if_that_is_not_enough() {
        static LEFT: AtomicU64 = AtomicU64::new(2 * GIB);
        static MACHINE: Available = Available::new(
            || Some(Memory { total: 16 * GIB, available: LEFT.load(Ordering::Relaxed) }),
            |supervisor| u64::from(supervisor % 10),
        );
        let (small, large, middle) = (MACHINE.until_chosen(11), MACHINE.until_chosen(9), MACHINE.until_chosen(15));
        tokio::pin!(small, large, middle);
        // Enough is left.
        for command in [&mut small, &mut large, &mut middle] {
            assert!(timeout(REST * 3, command).await.is_err());
        }
        LEFT.store(GIB / 2, Ordering::Relaxed);
        let begun = Instant::now();
        tokio::select! {
            () = &mut large => {}
            () = &mut small => panic!("the smallest ended"),
            () = &mut middle => panic!("not the largest ended"),
        }
        assert!(begun.elapsed() <= LOOK_EVERY * 2, "{:?}", begun.elapsed());
        tokio::select! {
            () = &mut middle => {}
            () = &mut small => panic!("not the largest ended"),
        }
        assert!(begun.elapsed() >= REST, "{:?}", begun.elapsed());
        LEFT.store(2 * GIB, Ordering::Relaxed);
        assert!(timeout(REST * 3, &mut small).await.is_err(), "enough is left again");
        assert_eq!(MACHINE.state.lock().running.len(), 1, "those that have ended are forgotten");
    }
}
