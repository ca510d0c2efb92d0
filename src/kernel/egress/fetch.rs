//! One fetch: its hops, each checked anew.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_components::kernel::holder::Holder;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::redirect::Policy as Redirects;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode, Url};
use rustls_platform_verifier::BuilderVerifierExt;

use super::body::{Unpack, looks_like_text};
use super::dns::Pinned;
use super::policy::Policy;
use super::site::Unsent;
use super::target::Target;
use super::{Error, Inner, Media, Web, WebSettings, body};

/// How long a host may take to accept a connection, TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// What is asked for.
pub(crate) struct Request<'a> {
    /// The URL as the model wrote it.
    pub(crate) url: &'a str,
    /// Who shares with the agent that asks: they have a share of the fetches under way.
    pub(crate) holder: Holder,
    /// `[capabilities] network` of the agent's manifest.
    pub(crate) network: &'a [Box<str>],
    /// A URL of the configuration, whose host may be private.
    pub(crate) trusted: Option<&'a str>,
    /// The `Accept` header.
    pub(crate) accept: &'static str,
    /// Another header, such as one with a key; sent to the first host only, so with no redirects.
    pub(crate) header: Option<(HeaderName, &'a str)>,
    /// JSON to post instead of a GET.
    pub(crate) json: Option<String>,
    /// Redirects that are followed.
    pub(crate) redirects_max: usize,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Where it came from in the end.
    pub(crate) url: Url,
    /// Its status; may be an error.
    pub(crate) status: StatusCode,
    /// The `Content-Type` as it was written; empty when there was none.
    pub(crate) content_type: String,
    /// The body as text.
    pub(crate) text: String,
    /// What the body is: [`Media::Html`] or [`Media::Text`].
    pub(crate) media: Media,
    /// True when the body was longer than `max_bytes`.
    pub(crate) cut: bool,
}

impl Web {
    /// Fetches, within the time limit of the settings.
    ///
    /// # Errors
    /// [`Error`]. A status that is an error is no error here.
    pub(crate) async fn fetch(&self, request: Request<'_>) -> Result<Fetched, Error> {
        let settings = self.settings();
        let timeout = settings.timeout;
        let fetched = tokio::time::timeout(timeout, self.inner.fetch(&settings, request)).await;
        fetched.unwrap_or(Err(Error::Timeout(timeout.as_secs())))
    }
}

impl Inner {
    async fn fetch(&self, settings: &WebSettings, request: Request<'_>) -> Result<Fetched, Error> {
        let trusted = request.trusted.map(Target::parse).transpose()?;
        let allowed = &settings.allowed;
        let policy = Policy { allowed, network: request.network, trusted: trusted.as_ref() };
        let mut target = Target::parse(request.url)?;
        policy.permit(&target)?;
        // Never closed, so that an error cannot be.
        let _turn = self.turns.place(request.holder).await;
        let mut hops = 0;
        loop {
            let hop = async {
                policy.permit(&target)?;
                self.hop(&policy, &target, &request).await
            };
            let response = hop.await.map_err(|cause| match hops {
                0 => cause,
                _ => Error::Hop { url: target.url.to_string(), cause: Box::new(cause) },
            })?;
            if !is_redirect(response.status()) {
                return self.read(settings.max_bytes, target, response).await;
            }
            let next = next_target(&target.url, response.headers().get(LOCATION))?;
            if request.redirects_max == 0 {
                return Err(Error::Redirected(next.url.to_string()));
            }
            hops += 1;
            if hops > request.redirects_max {
                return Err(Error::Redirects(request.redirects_max));
            }
            target = next;
        }
    }

    /// Looks the host up, connects to what was found and asks.
    async fn hop(&self, policy: &Policy<'_>, target: &Target, request: &Request<'_>) -> Result<Response, Error> {
        let pinned = policy.pin(target, &self.addresses_for(request.holder, target).await?)?;
        let client = self.client(target, Arc::clone(&pinned))?;
        let asked = match &request.json {
            Some(json) => client.post(target.url.clone()).header(CONTENT_TYPE, "application/json").body(json.clone()),
            None => client.get(target.url.clone()),
        };
        let mut asked = asked.header(ACCEPT, request.accept).header(ACCEPT_ENCODING, "gzip");
        if let Some((name, value)) = &request.header {
            asked = asked.header(name, *value);
        }
        send(target, &pinned, asked).await.map_err(|unsent| unsent.error)
    }

    /// The same for an agent. Those who share with it have a share of the names that are looked up at once, however long their name servers are
    /// silent.
    pub(super) async fn addresses_for(&self, holder: Holder, target: &Target) -> Result<Vec<IpAddr>, Error> {
        if target.address.is_some() {
            return self.addresses(target).await;
        }
        let place = self.names.place(holder).await;
        let asked = self.lookup.lookup(target.host.clone());
        // Ends with the lookup, not with the wait for it, or the place would be free while a thread is still taken.
        let looked_up = tokio::spawn(async move {
            let _place = place;
            asked.await
        });
        let found = looked_up.await.unwrap_or_else(|_| Err("interrupted".to_owned()));
        found.map_err(|why| not_found(target, &why))
    }

    /// The addresses of a host.
    pub(super) async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Error> {
        match target.address {
            Some(address) => Ok(vec![address]),
            None => self.lookup.lookup(target.host.clone()).await.map_err(|why| not_found(target, &why)),
        }
    }

    /// A client for one hop: it knows only the checked addresses.
    pub(super) fn client(&self, target: &Target, pinned: Arc<[SocketAddr]>) -> Result<Client, Error> {
        let builder = self.client_builder(target, pinned)?.pool_max_idle_per_host(0);
        builder.build().map_err(|error| Error::Client(error.to_string()))
    }

    /// As [`client`](Self::client), for one that says itself which connections are kept.
    pub(super) fn client_builder(&self, target: &Target, pinned: Arc<[SocketAddr]>) -> Result<ClientBuilder, Error> {
        let tls = if target.url.scheme() == "https" {
            self.tls.get_or_init(platform_tls).clone().map_err(Error::Client)?
        } else {
            no_tls().map_err(Error::Client)?
        };
        let builder = Client::builder()
            .user_agent(concat!("agentsvc/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .dns_resolver(Pinned(pinned))
            .no_proxy()
            .redirect(Redirects::none())
            .referer(false)
            .connect_timeout(CONNECT_TIME_MAX);
        Ok(builder)
    }

    /// Reads the body as text.
    async fn read(&self, max_bytes: usize, target: Target, mut response: Response) -> Result<Fetched, Error> {
        let header = |headers: &HeaderMap, name| {
            let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            value.unwrap_or_default()
        };
        let (status, content_type) = (response.status(), header(response.headers(), CONTENT_TYPE));
        if Media::of(&content_type) == Media::Binary && status.is_success() {
            return Err(Error::Binary(content_type));
        }
        let mut unpack = Unpack::new(&header(response.headers(), CONTENT_ENCODING), max_bytes)?;
        while let Some(piece) = response.chunk().await.map_err(|error| Error::exchange(&target.host, error))? {
            if !unpack.push(&piece)? {
                break;
            }
        }
        drop(response);
        let (bytes, cut) = unpack.finish()?;
        // Megabytes to decode: not on the runtime's threads.
        let decoded = tokio::task::spawn_blocking(move || {
            let is_text = looks_like_text(&bytes, &content_type);
            is_text.then(|| (body::text(&bytes, &content_type, cut), content_type))
        });
        let decoded = decoded.await.map_err(|error| Error::Client(error.to_string()))?;
        let Some((text, content_type)) = decoded else {
            return Err(Error::Binary("of binary bytes".to_owned()));
        };
        let media = match Media::of(&content_type) {
            Media::Unknown | Media::Binary => Media::sniff(&text),
            known => known,
        };
        Ok(Fetched { url: target.url, status, content_type, text, media, cut })
    }
}

/// The name of a host has no address.
fn not_found(target: &Target, why: &str) -> Error {
    Error::Lookup { host: target.host.clone(), why: why.trim_end_matches('.').to_owned() }
}

/// Asks, and makes sure who answered.
pub(super) async fn send(target: &Target, pinned: &[SocketAddr], asked: RequestBuilder) -> Result<Response, Unsent> {
    let response = asked.send().await.map_err(|error| {
        let is_unreachable = error.is_connect();
        Unsent { error: Error::exchange(&target.host, error), is_unreachable }
    })?;
    // Cannot be; if it ever is, nothing of the answer is used.
    match response.remote_addr() {
        Some(peer) if pinned.iter().any(|address| address.ip() == peer.ip()) => Ok(response),
        peer => {
            let error = Error::Client(format!("connected to the unexpected address {peer:?}"));
            Err(Unsent { error, is_unreachable: false })
        }
    }
}

pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where a redirect leads. Whether it may be followed is for the next hop to decide, but for leaving https.
pub(super) fn next_target(from: &Url, location: Option<&HeaderValue>) -> Result<Target, Error> {
    let location = location.and_then(|value| value.to_str().ok());
    let next = location.and_then(|location| from.join(location).ok()).ok_or(Error::Location)?;
    let url = next.to_string();
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(Error::Downgrade(url));
    }
    Target::of(next).map_err(|cause| Error::Hop { url, cause: Box::new(cause) })
}

fn ring() -> Arc<rustls::crypto::CryptoProvider> {
    static RING: OnceLock<Arc<rustls::crypto::CryptoProvider>> = OnceLock::new();
    Arc::clone(RING.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

/// TLS that trusts what the machine trusts.
fn platform_tls() -> Result<rustls::ClientConfig, String> {
    let config = rustls::ClientConfig::builder_with_provider(ring())
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier);
    let mut config = config.map_err(|error| error.to_string())?.with_no_client_auth();
    config.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    Ok(config)
}

/// For plain HTTP: TLS that trusts nothing, and costs nothing.
fn no_tls() -> Result<rustls::ClientConfig, String> {
    let config = rustls::ClientConfig::builder_with_provider(ring()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use reqwest::Url;
    use reqwest::header::HeaderValue;

    use super::{next_target, platform_tls};

    #[test]
    fn redirects_lead_on_but_never_out_of_encryption() {
        let next = |location: &str| {
            let from = Url::parse("https://x.example/a/b?c").unwrap();
            let location = HeaderValue::from_str(location).unwrap();
            next_target(&from, Some(&location)).map(|target| target.url.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(next("../d#e").unwrap(), "https://x.example/d");
        assert_eq!(next("//y.example/").unwrap(), "https://y.example/");
        assert!(next("http://x.example/").unwrap_err().contains("not encrypted"));
        assert!(next("javascript:x").unwrap_err().contains("only http and https"));
        assert!(next("http://[").is_err());
    }

    #[test]
    fn the_machine_s_certificates_make_a_client() {
        // A machine without any certificate says so; it must not panic.
        let _ = platform_tls();
    }
}
