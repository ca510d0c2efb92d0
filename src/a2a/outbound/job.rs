//! Tries of the jobs: a message is sent once; its task is asked for until it has ended.

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::a2a::outbound::{A2aDialect, A2aSentId, A2aSentState};
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::{Refusal, RefusalKind};
use agentsvc_systems::a2a::limits::A2A_ASK_BACKOFF_MS_MAX;
use agentsvc_systems::a2a::outbound::{A2aAgentView, A2aSentView, SentReport};
use agentsvc_systems::kernel::entities::Get;
use reqwest::StatusCode;

use super::answer::{self, Content};
use super::client::{Answer, Client, Request, Trouble};
use super::wire::{self, Written};

/// What sends messages and asks for tasks.
pub(in crate::a2a) struct Sender {
    pub(in crate::a2a) client: Client,
    pub(in crate::a2a) bridge: Bridge,
}

/// What a try to send in one dialect came to.
enum Tried {
    /// This.
    End(TryEnd),
    /// The external agent does not read the dialect, and did nothing; it may read this one.
    Next(A2aDialect),
}

impl Sender {
    async fn of(&self, job: &RunJob) -> Result<(A2aSentView, A2aAgentView), TryEnd> {
        let id: A2aSentId = job.input.parse().map_err(|_| TryEnd::Failed("the job names no task".to_owned()))?;
        let gone = |refusal: Refusal| match refusal.kind {
            RefusalKind::NotFound => TryEnd::Failed(refusal.message),
            // A busy world names the task later.
            _ => retry(None, SentReport { error: Some(refusal.message), ..none() }),
        };
        let view = self.bridge.ask(Get::<A2aSentView>(id)).await.map_err(gone)?;
        let agent = self.bridge.ask(Get::<A2aAgentView>(view.task.to)).await.map_err(gone)?;
        Ok((view, agent))
    }

    async fn exchange(&self, agent: &A2aAgentView, written: Written) -> Result<Answer, Trouble> {
        let Written { method, url, headers, body } = written;
        let body = body.map(|body| body.to_string());
        let request = Request { method, url: &url, of: &agent.agent.url, headers, body };
        self.client.ask(request, agent.agent.secret.as_ref()).await
    }

    /// Sends a message.
    pub(in crate::a2a) async fn send(&self, job: RunJob) -> TryEnd {
        let (view, agent) = match self.of(&job).await {
            Ok(found) => found,
            Err(end) => return end,
        };
        let mut dialect = agent.agent.card.dialect;
        loop {
            match self.send_in(dialect, &view, &agent).await {
                Tried::End(end) => return end,
                Tried::Next(next) => dialect = next,
            }
        }
    }

    async fn send_in(&self, dialect: A2aDialect, view: &A2aSentView, agent: &A2aAgentView) -> Tried {
        let answer = match self.exchange(agent, wire::send(&agent.agent.card, dialect, view)).await {
            Ok(answer) => answer,
            Err(Trouble::Refused(why)) => return Tried::End(failed(why)),
            Err(Trouble::Unsent(why)) => return Tried::End(retry(None, SentReport { error: Some(why), ..none() })),
            Err(Trouble::Unanswered(why)) => return Tried::End(unanswered(view, dialect, &why)),
        };
        let content = answer::read(dialect, &answer.body);
        let is_undeclared = agent.agent.card.protocol.is_empty();
        match (content, answer.status) {
            (Content::Task(report), status) if status.is_success() => {
                let remote = report.remote.clone().or_else(|| wire::chosen_id(view, dialect));
                let dialect = (dialect != agent.agent.card.dialect).then_some(dialect);
                Tried::End(TryEnd::Done(json(&SentReport { remote, dialect, ..report })))
            }
            // It did nothing with what it does not know.
            (Content::NoMethod, _) if dialect == A2aDialect::V0 => Tried::Next(A2aDialect::Tasks),
            (Content::NoMethod, _) => Tried::End(failed("it does not know the methods of the protocol".to_owned())),
            (Content::NoTask, _) => {
                Tried::End(failed("it does not know the task that the message continues".to_owned()))
            }
            // What an overloaded or failing server says of itself is no answer to the message.
            (Content::Error(why), status) if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                Tried::End(failed(why))
            }
            (_, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
                if is_undeclared && dialect == A2aDialect::V0 =>
            {
                Tried::Next(A2aDialect::Rest)
            }
            (_, StatusCode::TOO_MANY_REQUESTS) => {
                let after =
                    answer.retry_after.map(|after| after.as_millis().min(A2A_ASK_BACKOFF_MS_MAX as u128) as u32);
                let error = Some("it accepts no more messages for now (status 429)".to_owned());
                Tried::End(retry(after, SentReport { error, ..none() }))
            }
            (_, status) if status.is_server_error() => {
                Tried::End(unanswered(view, dialect, &format!("it returned status {}", status.as_u16())))
            }
            (_, status) if !status.is_success() => Tried::End(failed(refusal(status))),
            (Content::Task(_), _) => Tried::End(failed(refusal(answer.status))),
            (Content::Unreadable(why), _) => Tried::End(unanswered(view, dialect, why)),
            (Content::Error(why), _) => Tried::End(failed(why)),
        }
    }

    /// Asks for a task.
    pub(in crate::a2a) async fn ask(&self, job: RunJob) -> TryEnd {
        let (view, agent) = match self.of(&job).await {
            Ok(found) => found,
            Err(end) => return end,
        };
        let Some(remote) = view.task.remote.clone() else {
            return TryEnd::Failed("the external agent named no task".to_owned());
        };
        let error = |why: String| retry(None, SentReport { error: Some(why), ..none() });
        let answer = match self.exchange(&agent, wire::ask(&agent.agent.card, &view, &remote)).await {
            Ok(answer) => answer,
            Err(Trouble::Refused(why)) => return TryEnd::Failed(why),
            Err(trouble) => return error(trouble.why()),
        };
        match (answer::read(agent.agent.card.dialect, &answer.body), answer.status) {
            (Content::NoTask, _) => TryEnd::Failed("the external agent does not know the task".to_owned()),
            (Content::Task(report), status) if status.is_success() => match report.state {
                Some(state) if !state.is_open() => TryEnd::Done(json(&report)),
                _ => retry(None, SentReport { result: None, ..report }),
            },
            (_, StatusCode::NOT_FOUND) => TryEnd::Failed("the external agent does not know the task".to_owned()),
            (Content::Error(why), _) => error(why),
            (Content::NoMethod, _) => TryEnd::Failed("the external agent does not tell of its tasks".to_owned()),
            (Content::Unreadable(why), status) if status.is_success() => error(why.to_owned()),
            (_, status) => error(refusal(status)),
        }
    }
}

fn none() -> SentReport {
    SentReport::default()
}

fn json(report: &SentReport) -> String {
    // A report is texts and words alone.
    serde_json::to_string(report).unwrap_or_default()
}

fn retry(after_ms: Option<u32>, report: SentReport) -> TryEnd {
    TryEnd::Retry { after_ms, reason: json(&report) }
}

fn failed(why: String) -> TryEnd {
    TryEnd::Failed(json(&SentReport { state: Some(A2aSentState::Failed), error: Some(why), ..none() }))
}

/// The message may have been received. Where this side chose the id of the task, it is asked for; else its end is unknown.
fn unanswered(view: &A2aSentView, dialect: A2aDialect, why: &str) -> TryEnd {
    if let Some(remote) = wire::chosen_id(view, dialect) {
        let dialect = Some(dialect);
        let report = SentReport { state: Some(A2aSentState::Submitted), remote: Some(remote), dialect, ..none() };
        return TryEnd::Done(json(&report));
    }
    let error = Some(format!("{why}; the message may have been received, and is not sent again"));
    TryEnd::Failed(json(&SentReport { state: Some(A2aSentState::Unknown), error, ..none() }))
}

fn refusal(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("it does not accept the request without another key (status {})", status.as_u16())
        }
        _ if status.is_redirection() => {
            format!("it returned a redirect, which is not followed (status {})", status.as_u16())
        }
        _ => format!("it returned status {}", status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_api::http::bridge::bridge;
    use agentsvc_components::Timestamp;
    use agentsvc_components::kernel::attempt::Attempt;
    use agentsvc_components::kernel::id::JobId;

    use super::*;
    use crate::kernel::egress::Web;
    use crate::kernel::settings::Settings;

    #[tokio::test]
    async fn a_world_that_is_busy_ends_no_task() {
        let client = Client::keyless(Web::default(), Settings::default());
        // A world that takes no commands.
        let (bridge, _intake) = bridge();
        let sender = Sender { client, bridge };
        let subject = uuid::Uuid::nil();
        let job = || RunJob {
            attempt: Attempt { job: JobId(subject), number: 1 },
            kind: "",
            subject,
            owner: None,
            created_at: Timestamp(0),
            timeout_ms: 1_000,
            input: subject.to_string().into(),
        };
        for end in [sender.send(job()).await, sender.ask(job()).await] {
            assert!(matches!(end, TryEnd::Retry { .. }), "{end:?}");
        }
    }
}
