//! A node in which something has panicked ends, so that another one takes the world over: it would be heard, and neither follow nor
//! take over nor give the world up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_util::FutureExt;

use crate::kernel::world_loop::panic_text;

/// How long the daemon may take to stop in order once the thread of the node has panicked. Then the process ends at once: nobody
/// knows in what state that thread left the world.
const STOP: Duration = Duration::from_secs(30);

/// What the thread of a node does. Its panic is an error as well; then `also` is done.
///
/// # Errors
/// That of `live`, or its panic.
pub(super) fn caught(live: impl FnOnce() -> Result<(), String>, also: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(live)).unwrap_or_else(|panic| {
        also();
        Err(format!("the thread of the cluster panicked: {}", panic_text(&*panic)))
    })
}

/// `work`, which ends with the daemon. If it panics, `tell` is told.
pub(super) async fn watched(what: &'static str, tell: impl FnOnce(String), work: impl Future<Output = ()>) {
    if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
        tell(format!("{what} panicked: {}", panic_text(&*panic)));
    }
}

/// Ends the process when it does not stop in time.
pub(super) fn end_in_time() {
    let end = || {
        std::thread::sleep(STOP);
        tracing::error!("the daemon did not stop in time: exiting immediately");
        std::process::exit(1);
    };
    if let Err(error) = std::thread::Builder::new().name("cluster-end".to_owned()).spawn(end) {
        tracing::error!(%error, "nothing ends the daemon if it does not stop in order");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_thread_is_why_the_node_ends() {
        let mut is_watched = false;
        let panicked = caught(|| panic!("entry {} is none", 7), || is_watched = true);
        assert_eq!(panicked, Err("the thread of the cluster panicked: entry 7 is none".to_owned()));
        assert!(is_watched, "it may not stop in order");
        let caught = |ended| caught(|| ended, || panic!("nothing panicked"));
        assert_eq!(caught(Err("no room".to_owned())), Err("no room".to_owned()));
        assert_eq!(caught(Ok(())), Ok(()));
    }

    #[tokio::test]
    async fn a_panic_of_what_a_node_needs_is_told_to_its_thread() {
        let mut told = None;
        watched("hearing", |text| told = Some(text), async {}).await;
        assert_eq!(told, None);
        watched("hearing", |text| told = Some(text), async { panic!("no ears") }).await;
        assert_eq!(told.as_deref(), Some("hearing panicked: no ears"));
    }
}
