//! Work that may wait, on a thread that may.

use std::any::Any;
use std::future::Future;

use tokio::task::JoinError;

/// Starts `work` on a thread that may wait, and gives its result: `tokio::task::spawn_blocking`, but what tokio makes of
/// a task is compiled once for all works. It is done to its end even when nobody waits for it.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, JoinError>> + Send {
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let task = tokio::task::spawn_blocking(work);
    async { task.await.map(|done| *done.downcast().expect("the work gives what it says")) }
}
