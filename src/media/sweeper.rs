//! Results that are past `[media] retention_days` go: their files, then their tasks, as when a client deletes them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_api::media::host::remove_files;
use agentsvc_api::upload::files::Files;
use agentsvc_components::media::{MediaTask, MediaTaskId};
use agentsvc_components::{Refusal, Timestamp};
use agentsvc_systems::kernel::entities::List;
use agentsvc_systems::media::{MediaFilter, MediaTaskView, RemoveMedia};

use super::config::Media;
use crate::kernel::retention::RetentionClock;
use crate::kernel::settings::Settings;

/// How often it is looked for what is past its retention.
const PERIOD: Duration = Duration::from_secs(60 * 60);
/// Tasks that are read at once.
const PAGE: usize = 100;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Looks now, every hour and with each change of the settings, on a thread of its own, as long as the API is there.
pub(super) fn start(api: Weak<Api>, settings: Settings) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = async move {
        let mut changes = settings.changes();
        while let Some(now) = api.upgrade() {
            let shutdown = now.shutdown.clone();
            if let Some(oldest) = oldest(settings.get::<Media>().retention_days, &settings.get::<RetentionClock>())
                && let Err(refusal) = sweep(&now, oldest).await
            {
                // While a world is loaded or exchanged there is none to ask; the next look finds it.
                tracing::debug!(why = %refusal.message, "results of media could not be swept");
            }
            drop(now);
            tokio::select! {
                () = shutdown.wait() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    };
    std::thread::Builder::new().name("media-sweeper".to_owned()).spawn(move || runtime.block_on(work)).map(drop)
}

/// What ended before this is past its retention; `None` where nothing ever is.
fn oldest(days: u32, clock: &RetentionClock) -> Option<Timestamp> {
    (days > 0).then(|| clock.now().plus_ms(-i64::from(days) * DAY_MS))
}

/// Is the task past its retention?
fn is_due(task: &MediaTask, oldest: Timestamp) -> bool {
    task.ended_at.is_some_and(|ended| ended < oldest)
}

async fn sweep(api: &Arc<Api>, oldest: Timestamp) -> Result<(), Refusal> {
    let Some(files) = api.services.get::<dyn Files>() else { return Ok(()) };
    let mut after: Option<MediaTaskId> = None;
    loop {
        let page = api.bridge.ask(List::<MediaTaskView> { filter: MediaFilter::default(), after, limit: PAGE }).await?;
        for view in page.items.into_iter().filter(|view| is_due(&view.task, oldest)) {
            // This thread is there to wait for the disk.
            match remove_files(&*files, &view.task) {
                // One that a client has deleted meanwhile, or that there is no room to delete now, keeps no other.
                Ok(()) => {
                    if let Err(refusal) = api.bridge.ask(RemoveMedia(view.id)).await {
                        tracing::debug!(task = %view.id, %refusal, "a media task was not removed");
                    }
                }
                Err(error) => tracing::warn!(task = %view.id, %error, "files of a media task could not be removed"),
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::world_loop::Clock;

    #[test]
    fn only_what_ended_before_the_retention_is_due() {
        let now = Timestamp(100 * DAY_MS);
        let clock = RetentionClock::trusting(Clock { wall: Arc::new(move || now), ..Clock::system() });
        assert_eq!(oldest(0, &clock), None, "results are kept");
        let oldest = oldest(7, &clock).unwrap();
        let task = |ended_at| MediaTask { ended_at, ..MediaTask::default() };
        assert!(is_due(&task(Some(Timestamp(93 * DAY_MS - 1))), oldest));
        assert!(!is_due(&task(Some(Timestamp(93 * DAY_MS))), oldest));
        assert!(!is_due(&task(None), oldest), "an open task stays");
    }
}
