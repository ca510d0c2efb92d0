//! Tries of jobs: a domain says what carries out those of its kinds.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::performers::Performers;

/// Carries out a try.
pub(super) type Run = Arc<dyn Fn(RunJob) -> BoxFuture<'static, TryEnd> + Send + Sync>;

impl Performers {
    /// From now on `run` carries out the tries of a kind of jobs. One that takes longer than its kind allows is dropped.
    pub fn on_job<F>(&mut self, kind: &'static str, run: impl Fn(RunJob) -> F + Send + Sync + 'static)
    where
        F: Future<Output = TryEnd> + Send + 'static,
    {
        let run: Run = Arc::new(move |job: RunJob| run(job).boxed());
        self.jobs.push((kind, run));
    }
}

/// Begins a try. Never blocks. Exactly one outcome comes back, unless the runtime itself goes.
pub(super) fn begin(performers: &Performers, job: RunJob) {
    let calls = performers.calls();
    let panicked = TryEnd::Lost("it failed inside the daemon; the log says more".to_owned());
    let reply = calls.enter(job.attempt, |attempt| JobOutcome(attempt, panicked));
    let RunJob { kind, attempt, timeout_ms, .. } = job;
    let Some((_, run)) = performers.jobs.iter().find(|(of, _)| *of == kind) else {
        tracing::error!(kind, "no domain carries out jobs of this kind");
        let end = TryEnd::Failed("this release does not carry out jobs of this kind".to_owned());
        return reply.end(|attempt| JobOutcome(attempt, end));
    };
    let span =
        tracing::debug_span!("effect", effect = "job", what = kind, job = %attempt.job, attempt = attempt.number);
    let run = Arc::clone(run);
    // What the performer does before it waits for the first time belongs to the task, too: this is the store's thread.
    let trying = async move { run(job).await };
    let task = async move {
        let end = tokio::select! {
            biased;
            () = reply.ticket().aborted() => TryEnd::Failed("it was cancelled".to_owned()),
            end = tokio::time::timeout(Duration::from_millis(timeout_ms.into()), trying) => {
                end.unwrap_or_else(|_| TryEnd::Lost(format!("it took longer than {timeout_ms} ms")))
            }
        };
        reply.end(|attempt| JobOutcome(attempt, end));
    };
    drop(calls.handle.spawn(task.instrument(span)));
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Timestamp;
    use agentsvc_components::kernel::attempt::Attempt;
    use agentsvc_components::kernel::effect::Abort;
    use agentsvc_components::kernel::id::JobId;
    use tokio::runtime::Handle;
    use tokio::sync::mpsc;
    use uuid::Uuid;

    use super::*;
    use crate::kernel::effect::Calls;
    use crate::kernel::effect::in_flight::InFlight;
    use crate::kernel::effect::readers::Readers;

    fn job(kind: &'static str, number: u32) -> RunJob {
        RunJob {
            attempt: Attempt { job: JobId(Uuid::from_u128(1)), number },
            kind,
            subject: Uuid::nil(),
            owner: None,
            created_at: Timestamp(0),
            timeout_ms: 100,
            input: "input".into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_try_brings_one_outcome() {
        let (sender, mut outcomes) = mpsc::unbounded_channel();
        let mut performers = Performers::new(Arc::new(Calls {
            handle: Handle::current(),
            outcomes: Arc::new(move |outcome| drop(sender.send(outcome))),
            in_flight: InFlight::default(),
            readers: Readers::default(),
        }));
        performers.on_job("echo", |job| async move { TryEnd::Done(job.input.to_string()) });
        performers.on_job("slow", |_| std::future::pending());
        performers.on_job("broken", |job| async move {
            assert!(job.input.is_empty(), "as the test wants it");
            TryEnd::Done(String::new())
        });
        let mut end_of = async |effect: RunJob| {
            let attempt = effect.attempt;
            performers.perform(effect.into());
            let JobOutcome(of, end) = *outcomes.recv().await.unwrap().take().expect("a job's outcome");
            assert_eq!(of, attempt);
            end
        };
        assert_eq!(end_of(job("echo", 1)).await, TryEnd::Done("input".to_owned()));
        assert_eq!(end_of(job("slow", 2)).await, TryEnd::Lost("it took longer than 100 ms".to_owned()));
        assert!(matches!(end_of(job("broken", 3)).await, TryEnd::Lost(_)));
        assert!(matches!(end_of(job("unheard of", 4)).await, TryEnd::Failed(_)));
        performers.perform(job("slow", 5).into());
        performers.perform(Abort(job("slow", 5).attempt).into());
        let JobOutcome(_, end) = *outcomes.recv().await.unwrap().take().expect("a job's outcome");
        assert_eq!(end, TryEnd::Failed("it was cancelled".to_owned()));
    }
}
