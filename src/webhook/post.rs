//! One try of a delivery.

use std::time::Instant;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::webhook::WebhookId;
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::webhook::limits::DELIVERY_BACKOFF_MS_MAX;
use agentsvc_systems::webhook::{TryReport, WebhookView};
use serde_json::json;

use super::sender::{self, Failure, Sender};
use crate::kernel::egress::Posted;

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
        Ok(posted) => (Some(posted.status), Some(format!("the receiver responded with {}", posted.status))),
        Err(failure) => (None, Some(failure.to_string())),
    };
    let report = TryReport { status: status.map(|status| status.as_u16()), took_ms: Some(took_ms), error };
    let report = json!(report).to_string();
    match posted {
        Ok(posted) if posted.status.is_success() => TryEnd::Done(report),
        Ok(Posted { status, retry_after }) if sender::may_change(*status) => {
            // A receiver may not put it off for longer than the daemon would.
            let after_ms = retry_after.map(|after| after.as_millis().min(DELIVERY_BACKOFF_MS_MAX as u128) as u32);
            TryEnd::Retry { after_ms, reason: report }
        }
        Err(Failure::Web(error)) if sender::may_pass(error) => TryEnd::Retry { after_ms: None, reason: report },
        Err(failure @ Failure::Vault(_)) => TryEnd::Retry { after_ms: None, reason: failure.to_string() },
        _ => TryEnd::Failed(report),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::StatusCode;

    use super::*;
    use crate::kernel::egress::Error;
    use crate::kernel::vault;

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
        let days = end(&answered(503, Some(Duration::from_secs(1 << 40))), 1);
        assert!(matches!(days, TryEnd::Retry { after_ms: Some(3_600_000), .. }), "{days:?}");
        for status in [301, 302, 307, 400, 401, 403, 404, 410, 413] {
            assert!(matches!(end(&answered(status, None), 1), TryEnd::Failed(_)), "{status}");
        }
        let unreachable = || Error::Exchange { host: "h".to_owned(), why: "refused".to_owned() };
        assert!(matches!(end(&Err(unreachable().into()), 1), TryEnd::Retry { after_ms: None, .. }));
        assert!(matches!(end(&Err(Error::Timeout(10).into()), 1), TryEnd::Retry { .. }));
        assert!(matches!(end(&Err(Error::LocalName("h".to_owned()).into()), 1), TryEnd::Failed(_)));
        assert!(matches!(end(&Err(Error::Client("no files left".to_owned()).into()), 1), TryEnd::Retry { .. }));
        let locked = || vault::Error::Damaged { path: "vault".into() };
        assert!(matches!(end(&Err(Failure::Secret(locked())), 1), TryEnd::Failed(_)));
        assert!(matches!(end(&Err(Failure::Vault("no disk".to_owned())), 1), TryEnd::Retry { .. }));
        let TryEnd::Retry { reason, .. } = end(&answered(503, None), 7) else { panic!("not tried again") };
        let report: TryReport = serde_json::from_str(&reason).unwrap();
        assert_eq!((report.status, report.took_ms), (Some(503), Some(7)));
    }
}
