//! One try of a delivery.

use std::time::Instant;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::webhook::WebhookId;
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::webhook::{TryReport, WebhookView};
use reqwest::StatusCode;
use serde_json::json;

use super::sender::{Failure, Sender};
use crate::kernel::egress::{Error, Posted};

/// Tries a delivery.
pub(super) async fn deliver(sender: &Sender, bridge: &Bridge, job: RunJob) -> TryEnd {
    let started = Instant::now();
    let webhook = match bridge.ask(Get::<WebhookView>(WebhookId(job.subject))).await {
        Ok(view) => view.webhook,
        Err(refusal) if refusal.kind == RefusalKind::NotFound => {
            return TryEnd::Failed("the webhook is gone".to_owned());
        }
        Err(refusal) => return TryEnd::Retry { after_ms: None, reason: refusal.to_string() },
    };
    let body = format!("{{\"id\":\"{}\",\"webhook_id\":\"{}\",{}", job.attempt.job, job.subject, job.input);
    let posted = sender.post(&webhook, job.attempt.job.0, body).await;
    end(&posted, u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX))
}

/// What becomes of the delivery (facts of the wire, 3.2): any 2xx is taken; no answer, 408, 429 and 5xx may pass; all else is
/// refused for good.
fn end(posted: &Result<Posted, Failure>, took_ms: u32) -> TryEnd {
    let (status, error) = match posted {
        Ok(posted) if posted.status.is_success() => (Some(posted.status), None),
        Ok(posted) => (Some(posted.status), Some(format!("the receiver answered {}", posted.status))),
        Err(failure) => (None, Some(failure.to_string())),
    };
    let report = TryReport { status: status.map(|status| status.as_u16()), took_ms: Some(took_ms), error };
    let report = json!(report).to_string();
    match posted {
        Ok(posted) if posted.status.is_success() => TryEnd::Done(report),
        Ok(Posted { status, retry_after }) if may_pass(*status) => {
            let after_ms = retry_after.map(|after| u32::try_from(after.as_millis()).unwrap_or(u32::MAX));
            TryEnd::Retry { after_ms, reason: report }
        }
        Err(Failure::Web(Error::Lookup { .. } | Error::Exchange { .. } | Error::Timeout(_))) => {
            TryEnd::Retry { after_ms: None, reason: report }
        }
        _ => TryEnd::Failed(report),
    }
}

fn may_pass(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) || status.is_server_error()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        let answered =
            |status: u16, retry_after| Ok(Posted { status: StatusCode::from_u16(status).unwrap(), retry_after });
        for status in [200, 201, 204, 299] {
            assert!(matches!(end(&answered(status, None), 1), TryEnd::Done(_)), "{status}");
        }
        for status in [408, 429, 500, 502, 503, 504, 599] {
            let after = Some(Duration::from_secs(3));
            assert!(
                matches!(end(&answered(status, after), 1), TryEnd::Retry { after_ms: Some(3_000), .. }),
                "{status}"
            );
        }
        for status in [301, 302, 307, 400, 401, 403, 404, 410, 413] {
            assert!(matches!(end(&answered(status, None), 1), TryEnd::Failed(_)), "{status}");
        }
        let unreachable = || Error::Exchange { host: "h".to_owned(), why: "refused".to_owned() };
        assert!(matches!(end(&Err(unreachable().into()), 1), TryEnd::Retry { after_ms: None, .. }));
        assert!(matches!(end(&Err(Error::Timeout(10).into()), 1), TryEnd::Retry { .. }));
        assert!(matches!(end(&Err(Error::LocalName("h".to_owned()).into()), 1), TryEnd::Failed(_)));
        assert!(matches!(end(&Err(Failure::Secret("no key".to_owned())), 1), TryEnd::Failed(_)));
        let TryEnd::Retry { reason, .. } = end(&answered(503, None), 7) else { panic!("not tried again") };
        let report: TryReport = serde_json::from_str(&reason).unwrap();
        assert_eq!((report.status, report.took_ms), (Some(503), Some(7)));
    }
}
