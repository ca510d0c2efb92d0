//! One try of a push notification: the task is posted to its target.

use std::time::Duration;

use agentsvc_api::a2a::render::Dialect;
use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::RefusalKind;
use agentsvc_components::a2a::{A2aTaskId, PushTarget};
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_systems::a2a::A2aTaskView;
use agentsvc_systems::a2a::limits::{A2A_PUSH_BACKOFF_MS_MAX, A2A_PUSH_TIMEOUT_MS};
use agentsvc_systems::kernel::entities::Get;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::host::SEALED_AS;
use crate::kernel::egress::{Error, Post, Posted, Web};
use crate::kernel::vault::{self, Vault};

const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");

/// What posts notifications.
pub(super) struct Notifier {
    pub(super) web: Web,
    pub(super) vault: Vault,
}

impl Notifier {
    /// Tries a notification. It says how the task is now.
    pub(super) async fn notify(&self, bridge: &Bridge, job: RunJob) -> TryEnd {
        let view = match bridge.ask(Get::<A2aTaskView>(A2aTaskId(job.subject))).await {
            Ok(view) => view,
            Err(refusal) if refusal.kind == RefusalKind::NotFound => {
                return TryEnd::Failed("the task is gone".to_owned());
            }
            Err(refusal) => return TryEnd::Retry { after_ms: None, reason: refusal.to_string() },
        };
        let Some(target) = view.task.push.iter().find(|target| *target.id == *job.input) else {
            return TryEnd::Failed("the configuration was deleted".to_owned());
        };
        let headers = match self.headers(target).await {
            Ok(headers) => headers,
            Err(end) => return end,
        };
        let dialect = if target.is_v1 { Dialect::V1 } else { Dialect::V0 };
        let body = dialect.task_event(&view).to_string();
        let timeout = Duration::from_millis(A2A_PUSH_TIMEOUT_MS.into());
        end(&self.web.post(Post { url: &target.url, headers, body, timeout }).await)
    }

    async fn headers(&self, target: &PushTarget) -> Result<HeaderMap, TryEnd> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, sealed) in [(TOKEN, &target.token), (AUTHORIZATION, &target.authorization)] {
            let Some(sealed) = sealed.clone() else { continue };
            let vault = self.vault.clone();
            let secret = tokio::task::spawn_blocking(move || vault.unseal(SEALED_AS, &sealed)).await;
            let secret = secret.map_err(|error| retry(&error))?.map_err(|error| match error {
                vault::Error::DoesNotOpen { .. } | vault::Error::Damaged { .. } => {
                    TryEnd::Failed("the secret cannot be decrypted".to_owned())
                }
                error => retry(&error),
            })?;
            let mut value = HeaderValue::from_bytes(&secret)
                .map_err(|_| TryEnd::Failed("the secret cannot be sent in a header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn retry(error: &impl std::fmt::Display) -> TryEnd {
    TryEnd::Retry { after_ms: None, reason: error.to_string() }
}

/// What becomes of the notification: any 2xx is taken; no answer, 408, 429 and 5xx may pass; all else is refused for good.
fn end(posted: &Result<Posted, Error>) -> TryEnd {
    match posted {
        Ok(posted) if posted.status.is_success() => TryEnd::Done(posted.status.as_u16().to_string()),
        Ok(Posted { status, retry_after }) => {
            let reason = format!("the receiver responded with {status}");
            let may_pass = matches!(*status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
            if !may_pass && !status.is_server_error() {
                return TryEnd::Failed(reason);
            }
            // A receiver may not put it off for longer than the daemon would.
            let after_ms = retry_after.map(|after| after.as_millis().min(A2A_PUSH_BACKOFF_MS_MAX as u128) as u32);
            TryEnd::Retry { after_ms, reason }
        }
        Err(error @ (Error::Lookup { .. } | Error::Exchange { .. } | Error::Timeout(_) | Error::Client(_))) => {
            retry(error)
        }
        Err(error) => TryEnd::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        let answered =
            |status: u16, retry_after| end(&Ok(Posted { status: StatusCode::from_u16(status).unwrap(), retry_after }));
        for status in [200, 202, 204] {
            assert!(matches!(answered(status, None), TryEnd::Done(_)), "{status}");
        }
        for status in [408, 429, 500, 503] {
            let days = Some(Duration::from_secs(1 << 40));
            let end = answered(status, days);
            assert!(matches!(end, TryEnd::Retry { after_ms: Some(1_800_000), .. }), "{status}: {end:?}");
        }
        for status in [301, 400, 401, 404, 410] {
            assert!(matches!(answered(status, None), TryEnd::Failed(_)), "{status}");
        }
        assert!(matches!(end(&Err(Error::Timeout(10))), TryEnd::Retry { .. }));
        assert!(matches!(end(&Err(Error::LocalName("h".to_owned()))), TryEnd::Failed(_)));
    }
}
