//! Where requests are answered: by this node, or by another one, to which they are passed on. A domain says so; without one,
//! everything is answered here.
//!
//! The node that answers has to know whose request it is. The one that passes it on says so in a header, with a code that only
//! those can make who have the secret that the nodes share; no other request is believed.
//!
//! A node that gives the world away in order first takes no more requests, then answers the changes that it has begun, and only
//! then gives it away. So what it has not begun is never of unknown outcome, and what it has begun only if it takes too long.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::{BoxFuture, ready};
use hmac::{Hmac, KeyInit, Mac};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::http::forwards::Forwards;
use crate::http::links::Links;
use crate::http::metrics::MetricsText;
use crate::http::proven::Proven;
use crate::http::response_headers::X_REQUEST_ID;
use crate::http::shutdown::Shutdown;

/// The client that a request was passed on for, and what proves it. Its presence alone says that it was passed on, so that no
/// request goes in circles.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("x-agentsvc-forwarded");

/// For whom the node that answered counts the request, said to the node that passed it on.
pub(crate) const HOLDER: HeaderName = HeaderName::from_static("x-agentsvc-holder");

/// Where requests are answered now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// On this node.
    Here,
    /// On the node at this address, such as `http://10.0.0.2:4545`.
    There(Arc<str>),
    /// Nowhere, for a moment.
    Nowhere,
}

/// Says where requests are answered.
pub trait Placement: Send + Sync {
    /// Where they are answered now. Asked for every request: must not wait.
    fn site(&self) -> Site;

    /// The secret that the nodes share.
    fn secret(&self) -> [u8; 32];

    /// Is what this node would answer to a read as new as it must be? Only asked where [`site`](Self::site) says that it answers.
    /// Must not wait.
    fn is_fresh(&self) -> bool {
        true
    }

    /// Does the node at this address, which takes no more requests, still answer those that it has begun? Must not wait.
    fn finishes(&self, _site: &str) -> bool {
        false
    }

    /// The daemon stops: from here on this node takes no request that another one passes on. Ends when the others know, or when
    /// there is no use in waiting for that.
    fn leave(&self) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

/// Where requests are answered, and the way there.
pub struct Elsewhere {
    placement: OnceLock<Arc<dyn Placement>>,
    /// Changes that were begun here and are not answered.
    begun: Arc<AtomicUsize>,
    /// The other nodes know that this one stops.
    left: Shutdown,
    /// Connections to the node that answers.
    pub(crate) links: Links,
    /// Requests that may be passed on at once.
    pub(crate) forwards: Arc<Forwards>,
    /// Keys that the node that answers has found right.
    pub(crate) proven: Proven,
    /// What became of those that were to be passed on.
    pub(crate) counts: Counts,
}

/// What became of requests that were to be passed on.
#[derive(Default)]
pub(crate) struct Counts {
    /// The other node answered.
    pub(crate) answered: AtomicU64,
    /// They were sent again, because they had not arrived or change nothing.
    pub(crate) repeated: AtomicU64,
    /// Nobody was there to answer; they were not sent.
    pub(crate) moving: AtomicU64,
    /// They were sent, and the answer did not come.
    pub(crate) unknown: AtomicU64,
    /// Their answers broke off.
    pub(crate) broken_off: AtomicU64,
}

impl Elsewhere {
    /// Everything here, until a domain says otherwise; then so many requests may be passed on at once.
    pub(crate) fn new(requests_max: usize) -> Self {
        let (placement, begun, left) = (OnceLock::new(), Arc::default(), Shutdown::new());
        let (links, proven, counts) = (Links::default(), Proven::default(), Counts::default());
        Self { placement, begun, left, links, forwards: Forwards::new(requests_max), proven, counts }
    }

    /// From now on `placement` says where requests are answered. Only the first one counts.
    pub fn set(&self, placement: Arc<dyn Placement>) {
        if self.placement.set(placement).is_err() {
            tracing::error!("it was said before who says where requests are answered");
        }
    }

    /// Does anyone say where requests are answered?
    pub(crate) fn is_set(&self) -> bool {
        self.placement.get().is_some()
    }

    /// Where requests are answered now.
    #[must_use]
    pub fn site(&self) -> Site {
        self.placement.get().map_or(Site::Here, |placement| placement.site())
    }

    /// Is what this node answers to a read as new as it must be?
    pub(crate) fn is_fresh(&self) -> bool {
        self.placement.get().is_none_or(|placement| placement.is_fresh())
    }

    /// Does the node at `site` answer what was sent to it, although it may take no more?
    pub(crate) fn answers(&self, site: &Arc<str>) -> bool {
        matches!(self.site(), Site::There(now) if now == *site)
            || self.placement.get().is_some_and(|placement| placement.finishes(site))
    }

    /// Counts a request until its answer is there, if a world that is given away waits for that. To be called before it is asked
    /// where the request is answered.
    pub(crate) fn begin(&self, is_awaited: bool) -> Option<Begun> {
        (is_awaited && self.is_set()).then(|| {
            self.begun.fetch_add(1, Ordering::AcqRel);
            Begun(Arc::clone(&self.begun))
        })
    }

    /// Changes that this node has begun and not answered yet. When it takes no more, they only become fewer.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    /// Tells the other nodes that this one stops, and those who wait for [`left`](Self::left) that they know.
    pub(crate) async fn leave(&self) {
        if let Some(placement) = self.placement.get() {
            placement.leave().await;
        }
        self.left.trigger();
    }

    /// Ends when the other nodes know that this one stops: connections stay open until then, for what is on its way to be answered.
    pub(crate) fn left(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.left.wait()
    }

    /// Triggered then.
    pub(crate) const fn leaving(&self) -> &Shutdown {
        &self.left
    }

    /// Says of a request that it is passed on for the client at `ip`, under this id.
    pub(crate) fn vouch(&self, parts: &Parts, ip: IpAddr, id: Uuid, headers: &mut HeaderMap) {
        let Some(placement) = self.placement.get() else { return };
        let id = id.hyphenated().to_string();
        let said = format!("{ip} {}", code(&placement.secret(), parts, ip, id.as_bytes()));
        // Addresses, digits and ids are always valid values. They take the place of what the client sent under these names.
        for (name, value) in [(X_REQUEST_ID, id), (FORWARDED, said)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }

    /// Writes what became of requests that were to be passed on.
    pub(crate) fn gather(&self, out: &mut MetricsText) {
        if !self.is_set() {
            return;
        }
        let name = "agentsvc_http_forwarded_total";
        out.family(name, "Requests for the node that owns the world, by what became of them.", "counter");
        let Counts { answered, repeated, moving, unknown, broken_off } = &self.counts;
        for (outcome, count) in [
            ("answered", answered),
            ("repeated", repeated),
            ("moving", moving),
            ("outcome_unknown", unknown),
            ("broken_off", broken_off),
        ] {
            out.sample(name, &format!("outcome=\"{outcome}\""), count.load(Ordering::Relaxed));
        }
    }

    /// The client that a request was passed on for; `None` if it came from the client itself, or from one who has not the secret.
    pub(crate) fn client(&self, parts: &hyper::Request<impl Sized>) -> Option<IpAddr> {
        let placement = self.placement.get()?;
        let (ip, given) = parts.headers().get(FORWARDED)?.to_str().ok()?.split_once(' ')?;
        let ip = ip.parse().ok()?;
        let id = parts.headers().get(X_REQUEST_ID)?.as_bytes();
        let right = code_of(&placement.secret(), (parts.method().as_str(), path(parts.uri())), ip, id);
        bool::from(right.as_bytes().ct_eq(given.as_bytes())).then_some(ip)
    }
}

/// A change that was begun here, until it is dropped.
pub(crate) struct Begun(Arc<AtomicUsize>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn code(secret: &[u8; 32], parts: &Parts, ip: IpAddr, id: &[u8]) -> String {
    code_of(secret, (parts.method.as_str(), path(&parts.uri)), ip, id)
}

fn path(uri: &hyper::Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

/// What proves that a request is of the client at `ip`: it is good for this request alone.
fn code_of(secret: &[u8; 32], (method, path): (&str, &str), ip: IpAddr, id: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    for part in [b"agentsvc forwarded 1", method.as_bytes(), path.as_bytes(), ip.to_string().as_bytes(), id] {
        mac.update(part);
        // None of them has a line break.
        mac.update(b"\n");
    }
    agentsvc_systems::kernel::record::hex(&mac.finalize().into_bytes())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::SocketAddr;

    use hyper::Request;
    use parking_lot::Mutex;

    use super::*;

    /// Says what it was told last.
    pub(crate) struct Told {
        pub(crate) site: Mutex<Site>,
        pub(crate) secret: [u8; 32],
        /// The node that takes no more and answers what it has begun.
        pub(crate) finishes: Mutex<Option<SocketAddr>>,
        /// What a stop waits for, once there is one.
        pub(crate) knows: Shutdown,
    }

    impl Told {
        pub(crate) fn new(site: Site, secret: [u8; 32]) -> Self {
            let knows = Shutdown::new();
            Self { site: Mutex::new(site), secret, finishes: Mutex::default(), knows }
        }
    }

    impl Placement for Told {
        fn site(&self) -> Site {
            self.site.lock().clone()
        }

        fn secret(&self) -> [u8; 32] {
            self.secret
        }

        fn finishes(&self, site: &str) -> bool {
            self.finishes.lock().is_some_and(|address| site == format!("http://{address}"))
        }

        fn leave(&self) -> BoxFuture<'static, ()> {
            *self.site.lock() = Site::Nowhere;
            Box::pin(self.knows.wait())
        }
    }

    fn with(secret: u8) -> Elsewhere {
        let elsewhere = Elsewhere::new(1);
        elsewhere.set(Arc::new(Told::new(Site::Here, [secret; 32])));
        elsewhere
    }

    fn passed_on(by: &Elsewhere, path: &str) -> Request<()> {
        let (mut parts, ()) = Request::get(path).body(()).unwrap().into_parts();
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_static("the client's own"));
        by.vouch(&parts, "192.0.2.7".parse().unwrap(), Uuid::from_u128(7), &mut headers);
        parts.headers = headers;
        Request::from_parts(parts, ())
    }

    #[test]
    fn only_who_has_the_secret_says_whose_request_it_is() {
        let (ours, other) = (with(1), with(2));
        let request = passed_on(&ours, "/api/agents?limit=1");
        assert_eq!(ours.client(&request), Some("192.0.2.7".parse().unwrap()));
        assert_eq!(other.client(&request), None);
        assert_eq!(Elsewhere::new(1).client(&request), None, "a single daemon believes nobody");
        assert_eq!(ours.client(&Request::get("/api/agents").body(()).unwrap()), None);
    }

    #[test]
    fn what_proves_it_is_good_for_one_request() {
        let ours = with(1);
        let changes: [fn(&mut Request<()>); 5] = [
            |request| *request.uri_mut() = "/api/agents".parse().unwrap(),
            |request| *request.method_mut() = hyper::Method::DELETE,
            |request| _ = request.headers_mut().insert(X_REQUEST_ID, HeaderValue::from_static("another")),
            |request| _ = request.headers_mut().remove(X_REQUEST_ID),
            |request| {
                let said = request.headers()[FORWARDED].to_str().unwrap().replace("192.0.2.7", "192.0.2.8");
                request.headers_mut().insert(FORWARDED, said.parse().unwrap());
            },
        ];
        for change in changes {
            let mut request = passed_on(&ours, "/api/agents?limit=1");
            change(&mut request);
            assert_eq!(ours.client(&request), None, "{request:?}");
        }
    }
}
