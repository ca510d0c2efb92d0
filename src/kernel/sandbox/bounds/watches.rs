//! The epoll watches of this user (`fs.epoll.max_user_watches`). The kernel counts those of the daemon and of all commands
//! together, and tells no one how many a process has: a command that takes them all keeps the daemon from new connections.

use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};
use tokio::time::{Instant, sleep};

/// So many that watch so many are tried: these watches must be left.
const SIDE: usize = 16;
/// Time between two tries. One takes about 0.3 ms.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks at what was tried last.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The watches of this process's user.
pub(in super::super) static OF_THIS_USER: Watches = Watches::new(take_some);

/// Whether there are watches left, tried for all commands together.
pub(in super::super) struct Watches {
    take_some: fn() -> Result<()>,
    /// When it was tried last, and whether too few were left.
    last: Mutex<Option<(Instant, bool)>>,
    /// One of the commands looks for all: those that only wait wake nobody.
    turn: tokio::sync::Mutex<()>,
}

impl Watches {
    const fn new(take_some: fn() -> Result<()>) -> Self {
        Self { take_some, last: Mutex::new(None), turn: tokio::sync::Mutex::const_new(()) }
    }

    /// Waits until too few are left.
    pub(in super::super) async fn until_used_up(&self) {
        let _turn = self.turn.lock().await;
        while !self.are_used_up() {
            sleep(LOOK_EVERY).await;
        }
    }

    fn are_used_up(&self) -> bool {
        let mut last = self.last.lock();
        match *last {
            Some((tried, used_up)) if tried.elapsed() < TRY_EVERY => used_up,
            _ => {
                // Other errors say nothing of them.
                let used_up = (self.take_some)() == Err(Errno::NOSPC);
                *last = Some((Instant::now(), used_up));
                used_up
            }
        }
    }
}

/// Takes as many as must be left, and gives them back.
fn take_some() -> Result<()> {
    let watched = (0..SIDE).map(|_| eventfd(0, EventfdFlags::CLOEXEC)).collect::<Result<Vec<OwnedFd>>>()?;
    let watchers = (0..SIDE).map(|_| epoll::create(CreateFlags::CLOEXEC)).collect::<Result<Vec<OwnedFd>>>()?;
    for watcher in &watchers {
        for watched in &watched {
            epoll::add(watcher, watched, EventData::new_u64(0), EventFlags::empty())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn this_machine_has_some() {
        assert_eq!(take_some(), Ok(()));
        assert!(!OF_THIS_USER.are_used_up());
    }

    #[tokio::test(start_paused = true)]
    async fn all_commands_learn_of_one_try_and_other_errors_end_none() {
        static TRIES: AtomicUsize = AtomicUsize::new(0);
        static WATCHES: Watches = Watches::new(|| match TRIES.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(Errno::MFILE),
            _ => Err(Errno::NOSPC),
        });
        let begun = Instant::now();
        tokio::join!(WATCHES.until_used_up(), WATCHES.until_used_up(), WATCHES.until_used_up());
        assert!((2 * TRY_EVERY..3 * TRY_EVERY).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        assert_eq!(TRIES.load(Ordering::Relaxed), 3);
    }
}
