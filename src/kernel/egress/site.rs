//! A host that is asked many times, such as an MCP server: looked up and checked once, then the only place that its client
//! connects to. It follows no redirects and repeats no request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, Url};

use super::fetch::send;
use super::policy::Policy;
use super::target::Target;
use super::{Error, Web};

/// Idle connections that are kept.
const IDLE_MAX: usize = 8;
/// How long: less than servers keep theirs, so that a request rarely meets a connection that is being closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3);
/// How often the system looks whether the other side of a quiet connection is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// One scheme, host and port.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    target: Target,
    pinned: Arc<[SocketAddr]>,
    client: Client,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// What went wrong.
    pub(crate) error: Error,
    /// There was no connection, so that nothing was sent.
    pub(crate) is_unreachable: bool,
}

impl Web {
    /// The site of `url`. It must be public, or one of `[web.fetch] ssrf_allowed_hosts`, unless it is `trusted`.
    ///
    /// # Errors
    /// [`Error`]: the URL may not be used, or its host has no address.
    pub(crate) async fn site(&self, url: &str, trusted: bool) -> Result<Site, Error> {
        let target = Target::parse(url)?;
        let settings = self.settings();
        let anywhere: [Box<str>; 1] = ["*".into()];
        let trusted = trusted.then_some(&target);
        let policy = Policy { allowed: &settings.allowed, network: &anywhere, trusted };
        policy.permit(&target)?;
        let addresses = tokio::time::timeout(settings.timeout, self.inner.addresses(&target)).await;
        let addresses = addresses.unwrap_or_else(|_| Err(Error::Timeout(settings.timeout.as_secs())))?;
        let pinned = policy.pin(&target, &addresses)?;
        let builder = self.inner.client_builder(&target, Arc::clone(&pinned))?;
        let builder = builder.pool_max_idle_per_host(IDLE_MAX).pool_idle_timeout(IDLE_TIME_MAX);
        let builder = builder.tcp_keepalive(KEEP_ALIVE).retry(reqwest::retry::never());
        let client = builder.build().map_err(|error| Error::Client(error.to_string()))?;
        Ok(Site { target, pinned, client })
    }
}

impl Site {
    /// The URL that it was made for.
    pub(crate) fn url(&self) -> &Url {
        &self.target.url
    }

    /// A request to `url`, which must be of this site.
    ///
    /// # Errors
    /// [`Error::Url`]: it is of another one.
    pub(crate) fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Error> {
        let target = Target::of(url)?;
        if target.url.origin() == self.target.url.origin() {
            Ok(self.client.request(method, target.url))
        } else {
            Err(Error::Url("is of another host than the one that was checked".to_owned()))
        }
    }

    /// Sends a request of [`request`](Self::request), once. A status that is an error is no error here.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Unsent> {
        send(&self.target, &self.pinned, request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::egress::{AllowedHosts, WebSettings};

    #[tokio::test]
    async fn private_sites_are_those_of_the_configuration_or_of_the_list() {
        let web = Web::default();
        for url in ["http://127.0.0.1:1/mcp", "http://10.0.0.1/mcp", "http://localhost/mcp", "http://example.com:25/"] {
            assert!(web.site(url, false).await.is_err(), "{url}");
            assert!(web.site(url, true).await.is_ok() || !url.contains("://1"), "{url}");
        }
        assert!(web.site("file:///etc/passwd", true).await.is_err());
        let allowed = AllowedHosts::parse(&["10.0.0.1"]).unwrap();
        let web = Web::new(WebSettings { allowed, ..WebSettings::default() });
        assert!(web.site("http://10.0.0.1/mcp", false).await.is_ok());
    }

    #[tokio::test]
    async fn requests_stay_at_their_site() {
        let site = Web::default().site("http://127.0.0.1:1/mcp", true).await.unwrap();
        let request = |url: &str| site.request(Method::GET, Url::parse(url).unwrap()).map(drop);
        assert!(request("http://127.0.0.1:1/other").is_ok());
        for url in ["http://127.0.0.1:2/", "https://127.0.0.1:1/", "http://localhost:1/", "http://u@127.0.0.1:1/"] {
            assert!(request(url).is_err(), "{url}");
        }
        let unsent = site.send(site.request(Method::GET, site.url().clone()).unwrap()).await.unwrap_err();
        assert!(unsent.is_unreachable);
    }
}
