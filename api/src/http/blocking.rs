//! Work that goes on elsewhere: on a thread that may wait, or in a task of its own. Commands that it sends are from whoever asked
//! for it.

use std::any::Any;
use std::future::Future;

use tokio::task::{JoinError, JoinHandle};

use super::principal::{acting, acting_now, actor};

/// Starts `work` on a thread that may wait, and gives its result: `tokio::task::spawn_blocking`, but what tokio makes of
/// a task is compiled once for all works. It is done to its end even when nobody waits for it.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, JoinError>> + Send {
    let by = actor();
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(acting_now(by, work)));
    let task = tokio::task::spawn_blocking(work);
    async { task.await.map(|done| *done.downcast().expect("the work gives what it says")) }
}

/// Starts `work` in a task of its own: it goes on when whoever asked for it is gone.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tokio::spawn(acting(actor(), work))
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Actor;
    use agentsvc_components::kernel::id::KeyId;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn work_elsewhere_is_of_whoever_asked_for_it() {
        let key = Actor::Key { key: KeyId(Uuid::from_u128(1)), user: None };
        let asked = acting(key, async {
            let waited = spawn_blocking(|| (actor(), tokio::runtime::Handle::current().block_on(async { actor() })));
            (spawn(async { actor() }).await.unwrap(), waited.await.unwrap())
        });
        assert_eq!(asked.await, (key, (key, key)));
        assert_eq!(spawn(async { actor() }).await.unwrap(), Actor::Api);
        assert_eq!(spawn_blocking(actor).await.unwrap(), Actor::Api);
    }
}
