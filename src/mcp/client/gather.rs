//! Work that many want at once and that is done for all of them together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Time between two times at which it is done: so long others that want the same are waited for.
const WAIT: Duration = Duration::from_millis(20);

/// See the head of the file.
#[derive(Debug, Default)]
pub(super) struct Gather {
    /// How often it was wanted.
    wanted: AtomicU64,
    /// For how many of them it was done.
    done: AtomicU64,
    /// One does it at a time; when it was last done.
    last: Mutex<Option<Instant>>,
}

impl Gather {
    /// Returns when `work` has been done after this was called: by this call, or by another one for both.
    pub(super) async fn done(&self, work: impl FnOnce()) {
        let number = self.wanted.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self.last.lock().await;
        if self.done.load(Ordering::Relaxed) >= number {
            return;
        }
        let rest = last.map_or(Duration::ZERO, |last| WAIT.saturating_sub(last.elapsed()));
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
        // Who comes from here on may have come too late for it.
        let wanted = self.wanted.load(Ordering::Relaxed);
        work();
        self.done.store(wanted, Ordering::Relaxed);
        *last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_many_want_at_once_is_done_for_all_of_them() {
        let (gather, seen) = (Arc::new(Gather::default()), Arc::new(parking_lot::Mutex::new((0, Vec::new()))));
        // Each notes its change, and must find it in what was done when it returns.
        let server = |number: u32| {
            let (gather, seen) = (Arc::clone(&gather), Arc::clone(&seen));
            async move {
                tokio::time::sleep(Duration::from_millis(u64::from(number) / 10)).await;
                let changes = Arc::clone(&seen);
                seen.lock().1.push((number, false));
                gather
                    .done(move || {
                        let (times, changes) = &mut *changes.lock();
                        *times += 1;
                        changes.iter_mut().for_each(|(_, is_done)| *is_done = true);
                    })
                    .await;
                assert!(seen.lock().1.contains(&(number, true)), "{number}");
            }
        };
        join_all((0..50).map(server)).await;
        assert_eq!(seen.lock().0, 2, "the first at once, and all others together");
        join_all([server(50)]).await;
        assert_eq!(seen.lock().0, 3);
    }
}
