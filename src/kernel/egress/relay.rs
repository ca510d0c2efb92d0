//! One request of a browser, sent on its behalf under the rules of a fetch. Redirects are not followed: the browser follows
//! them, and asks for the next address anew.

use std::time::Duration;

use agentsvc_components::kernel::holder::Holder;
use reqwest::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Method, StatusCode};

use super::body::Unpack;
use super::fetch::send;
use super::memory::Memory;
use super::policy::Policy;
use super::target::Target;
use super::{Error, Web};

/// Bytes of a packed body that are unpacked at a time: what comes out of them is in memory before there is a place for it.
const PACKED_BYTES: usize = 1 << 10;

/// Headers that belong to one connection, or that the client sets itself.
const OF_CONNECTION: [HeaderName; 11] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// What is asked for.
pub(crate) struct Relay<'a> {
    /// The method.
    pub(crate) method: Method,
    /// The URL as the browser wrote it.
    pub(crate) url: &'a str,
    /// Who shares with the agent that has the browser.
    pub(crate) holder: Holder,
    /// `[capabilities] network` of the agent's manifest.
    pub(crate) network: &'a [Box<str>],
    /// Its headers; those of the connection are left out.
    pub(crate) headers: HeaderMap,
    /// Its body.
    pub(crate) body: Vec<u8>,
    /// For all of it.
    pub(crate) timeout: Duration,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Relayed {
    /// The status.
    pub(crate) status: StatusCode,
    /// The headers without those of the connection, and without the encoding of the body.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, unpacked.
    pub(crate) body: Vec<u8>,
    /// The memory that it takes until the browser has it.
    pub(crate) memory: Option<Memory>,
}

impl Web {
    /// Sends the request to an address that the rules allow. The body is bounded by `[web.fetch] max_bytes`, and is read
    /// as far as the family has memory for it and for its text.
    ///
    /// # Errors
    /// [`Error`]; [`Error::TooLarge`] for a longer body.
    pub(crate) async fn relay(&self, request: Relay<'_>) -> Result<Relayed, Error> {
        let timeout = request.timeout;
        let relayed = tokio::time::timeout(timeout, self.relay_once(request)).await;
        relayed.unwrap_or(Err(Error::Timeout(timeout.as_secs())))
    }

    async fn relay_once(&self, request: Relay<'_>) -> Result<Relayed, Error> {
        let settings = self.settings();
        let policy = Policy { allowed: &settings.allowed, network: request.network, trusted: None };
        let target = Target::parse(request.url)?;
        policy.permit(&target)?;
        // Never closed, so that an error cannot be.
        let _turn = self.inner.turns.place(request.holder).await;
        let pinned = policy.pin(&target, &self.inner.addresses_for(request.holder, &target).await?)?;
        let client = self.inner.client(&target, pinned.clone())?;
        let mut headers = request.headers;
        for name in &OF_CONNECTION {
            headers.remove(name);
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let mut asked = client.request(request.method, target.url.clone()).headers(headers);
        if !request.body.is_empty() {
            asked = asked.body(request.body);
        }
        let mut response = send(&target, &pinned, asked).await.map_err(|unsent| unsent.error)?;
        let encoding = response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?").to_owned());
        let at_once = if encoding.is_some() { PACKED_BYTES } else { usize::MAX };
        let mut memory = self.inner.relayed.of(request.holder);
        let mut unpack = Unpack::new(&encoding.unwrap_or_default(), settings.max_bytes)?;
        let too_large = || Error::TooLarge(settings.max_bytes as u64);
        while let Some(piece) = response.chunk().await.map_err(|error| Error::exchange(&target.host, error))? {
            for piece in piece.chunks(at_once) {
                if !unpack.push(piece)? {
                    return Err(too_large());
                }
                memory.hold(unpack.kept()).await;
            }
        }
        let (status, headers) = (response.status(), response.headers());
        let kept = |name: &HeaderName| !OF_CONNECTION.contains(name) && name != CONTENT_ENCODING;
        let kept = headers.iter().filter(|(name, _)| kept(name)).map(|(name, value)| (name.clone(), value.clone()));
        let headers = kept.collect();
        match unpack.finish()? {
            (_, true) => Err(too_large()),
            (body, false) => {
                memory.hold(body.len()).await;
                Ok(Relayed { status, headers, body, memory: Some(memory) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use uuid::Uuid;

    use agentsvc_components::AgentId;

    use super::*;
    use crate::kernel::egress::{AllowedHosts, WebSettings};

    /// Bytes of a large answer.
    const LARGE: usize = 4_900_000;

    /// A server whose large answers do not end: the rest of `/slow` never comes, nor the last byte of `/stalled`.
    async fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = vec![0; 4_096];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    let head = String::from_utf8_lossy(&head[..read]).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
                    let (length, sent) = match path.as_str() {
                        "/slow" => (LARGE, 10),
                        "/stalled" => (LARGE, LARGE - 1),
                        "/large" => (LARGE, LARGE),
                        _ => (2, 2),
                    };
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                    let _ = stream.write_all(head.as_bytes()).await;
                    let _ = stream.write_all(&vec![b'x'; sent]).await;
                    std::future::pending::<()>().await;
                });
            }
        });
        format!("http://{address}")
    }

    fn web() -> Web {
        let allowed = AllowedHosts::parse(&["127.0.0.1"]).unwrap();
        Web::new(WebSettings { allowed, ..WebSettings::default() })
    }

    async fn get(web: &Web, family: u128, url: String) -> Result<Relayed, Error> {
        let anywhere: [Box<str>; 1] = ["*".into()];
        let request = Relay {
            method: Method::GET,
            url: &url,
            holder: Holder::Family(AgentId(Uuid::from_u128(family))),
            network: &anywhere,
            headers: HeaderMap::new(),
            body: Vec::new(),
            timeout: Duration::from_secs(60),
        };
        web.relay(request).await
    }

    #[tokio::test]
    async fn slow_answers_of_one_family_keep_no_other_waiting() {
        let (base, web) = (server().await, web());
        let mut held = Vec::new();
        for (family, path) in [(1, "/slow"), (2, "/stalled"), (3, "/stalled")] {
            for _ in 0..12 {
                let (web, url) = (web.clone(), format!("{base}{path}"));
                held.push(tokio::spawn(async move { get(&web, family, url).await.map(drop) }));
            }
        }
        // They have all the memory that they get.
        while web.inner.turns.free() > agentsvc_components::kernel::limit::WEB_FETCHES_MAX - held.len() {
            tokio::task::yield_now().await;
        }
        for path in ["/small"; 50].into_iter().chain(["/large"]) {
            let got = tokio::time::timeout(Duration::from_secs(10), get(&web, 4, format!("{base}{path}"))).await;
            assert!(got.is_ok_and(|got| got.is_ok()), "{path}");
        }
        held.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn large_answers_of_one_family_all_come() {
        let (base, web) = (server().await, web());
        let all = (0..8).map(|_| get(&web, 1, format!("{base}/large")));
        let all = futures_util::future::join_all(all.map(|one| async { one.await.map(|got| got.body.len()) })).await;
        assert!(all.into_iter().all(|got| got.is_ok_and(|bytes| bytes == LARGE)));
    }
}
