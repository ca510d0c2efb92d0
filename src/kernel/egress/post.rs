//! One post to an address that an operator has set over the API: the rules of a fetch, no redirects, and of the answer only
//! its status.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::fetch::send;
use super::policy::Policy;
use super::target::Target;
use super::{Error, Web, retry_after};

/// What is posted.
pub(crate) struct Post<'a> {
    /// Where to.
    pub(crate) url: &'a str,
    /// The headers of the request.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: String,
    /// For all of it, the lookup included.
    pub(crate) timeout: Duration,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    /// The status; may be an error, or a redirect that was not followed.
    pub(crate) status: StatusCode,
    /// When to ask again, if the answer says so.
    pub(crate) retry_after: Option<Duration>,
}

impl Web {
    /// Posts. The host must be public, or one of `[web.fetch] ssrf_allowed_hosts`.
    ///
    /// # Errors
    /// [`Error`]. A status that is an error is no error here.
    pub(crate) async fn post(&self, post: Post<'_>) -> Result<Posted, Error> {
        let timeout = post.timeout;
        let posted = tokio::time::timeout(timeout, self.post_once(post)).await;
        posted.unwrap_or(Err(Error::Timeout(timeout.as_secs())))
    }

    async fn post_once(&self, post: Post<'_>) -> Result<Posted, Error> {
        let Post { url, headers, body, .. } = post;
        let target = Target::parse(url)?;
        let settings = self.settings();
        let anywhere: [Box<str>; 1] = ["*".into()];
        let policy = Policy { allowed: &settings.allowed, network: &anywhere, trusted: None };
        policy.permit(&target)?;
        let pinned = policy.pin(&target, &self.inner.addresses(&target).await?)?;
        let client = self.inner.client(&target, pinned.clone())?;
        let asked = client.post(target.url.clone()).headers(headers).body(body);
        let response = send(&target, &pinned, asked).await.map_err(|unsent| unsent.error)?;
        let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = header.and_then(|value| retry_after(value, SystemTime::now()));
        Ok(Posted { status: response.status(), retry_after })
    }
}
