//! One try to hand a notification to the push service.

use std::time::Duration;

use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::pairing::Notification;
use agentsvc_systems::pairing::limits::NOTIFICATION_TIMEOUT_MS;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use super::config::{Pairing, Push};
use crate::kernel::egress::{Post, Web};
use crate::webhook::sender::{Failure, ended};

/// The priority of messages at gotify: with a sound.
const PRIORITY: u32 = 5;
const TITLE: HeaderName = HeaderName::from_static("title");
const GOTIFY_KEY: HeaderName = HeaderName::from_static("x-gotify-key");

/// Tries a notification.
pub(super) async fn deliver(web: &Web, pairing: &Pairing, job: RunJob) -> TryEnd {
    let Ok(notification) = serde_json::from_str::<Notification>(&job.input) else {
        return TryEnd::Failed("the stored notification cannot be read".to_owned());
    };
    let push = match pairing.push(|name| std::env::var(name).ok()) {
        Ok(push) => push,
        Err(why) => return TryEnd::Failed(why),
    };
    let Some((url, headers, body)) = request(push, notification) else {
        return TryEnd::Failed("the token of the push service cannot be sent in a header".to_owned());
    };
    let timeout = Duration::from_millis(NOTIFICATION_TIMEOUT_MS.into());
    let posted = web.post(Post { url: &url, headers, body, timeout }).await;
    ended(&posted.map_err(Failure::from))
}

/// The request; `None` where the token has characters that no header has.
fn request(push: Push, notification: Notification) -> Option<(String, HeaderMap, String)> {
    let Notification { title, message } = notification;
    let mut headers = HeaderMap::new();
    match push {
        Push::Ntfy { url, token } => {
            headers.insert(TITLE, HeaderValue::from_bytes(title.as_bytes()).ok()?);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            if let Some(token) = token {
                headers.insert(AUTHORIZATION, secret(&format!("Bearer {token}"))?);
            }
            Some((url, headers, message.into()))
        }
        Push::Gotify { url, token } => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(GOTIFY_KEY, secret(&token)?);
            let body = json!({ "title": title, "message": message, "priority": PRIORITY });
            Some((url, headers, body.to_string()))
        }
    }
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_gets_what_it_reads() {
        let notification = || Notification { title: "Größe".into(), message: "line\nline".into() };
        let ntfy = Push::Ntfy { url: "https://n/t".to_owned(), token: Some("s".to_owned()) };
        let (url, headers, body) = request(ntfy, notification()).unwrap();
        assert_eq!((url.as_str(), body.as_str()), ("https://n/t", "line\nline"));
        assert_eq!(headers[TITLE].as_bytes(), "Größe".as_bytes());
        assert!(headers[AUTHORIZATION].is_sensitive() && headers[AUTHORIZATION] == "Bearer s");
        let gotify = |token: &str| Push::Gotify { url: "https://g/message".to_owned(), token: token.to_owned() };
        let (_, headers, body) = request(gotify("s"), notification()).unwrap();
        assert_eq!(headers[GOTIFY_KEY], "s");
        assert_eq!(body, r#"{"message":"line\nline","priority":5,"title":"Größe"}"#);
        assert!(request(gotify("a\nb"), notification()).is_none());
    }
}
