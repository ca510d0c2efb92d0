//! Connections to the node that answers: kept open while there is use for them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::http::reply::BrokenOff;

/// Connections that are kept without a request.
const IDLE_MAX: usize = 256;
/// How long one is kept: less than the other node does, so that it is not closed while a request is on its way.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// Time for the other node to take a connection. It is near.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(1);
/// Time for a kept connection to be ready for the next request.
const READY_TIME_MAX: Duration = Duration::from_millis(100);

/// A connection for one request at a time.
pub(crate) type Link = SendRequest<Outgoing>;

/// The connections that are kept.
#[derive(Default)]
pub(crate) struct Links(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    /// Where they lead to.
    site: Option<Arc<str>>,
    links: Vec<(Link, Instant)>,
}

impl Links {
    /// A connection to `site`: one that was kept, or a new one.
    ///
    /// # Errors
    /// Nobody takes one there.
    pub(crate) async fn get(&self, site: &Arc<str>) -> io::Result<Link> {
        while let Some(mut link) = self.kept(site) {
            if matches!(timeout(READY_TIME_MAX, link.ready()).await, Ok(Ok(()))) {
                return Ok(link);
            }
        }
        connect(site).await
    }

    /// Keeps a connection for the next request.
    pub(crate) fn keep(&self, site: &Arc<str>, link: Link) {
        let mut idle = self.0.lock();
        if idle.site.as_ref() != Some(site) {
            // It is the newest that was answered: the others lead to a node that answers no more, or soon will again.
            idle.site = Some(Arc::clone(site));
            idle.links.clear();
        }
        if idle.links.len() < IDLE_MAX && !link.is_closed() {
            idle.links.push((link, Instant::now()));
        }
    }

    fn kept(&self, site: &Arc<str>) -> Option<Link> {
        let mut idle = self.0.lock();
        if idle.site.as_ref() != Some(site) {
            idle.links.clear();
            return None;
        }
        // The one that was used last. Those below it are older still.
        let (link, since) = idle.links.pop()?;
        if since.elapsed() < IDLE_TIME_MAX {
            return Some(link);
        }
        idle.links.clear();
        None
    }
}

/// A new connection to `site`.
async fn connect(site: &str) -> io::Result<Link> {
    let authority = site.strip_prefix("http://").unwrap_or(site).trim_end_matches('/');
    let took_too_long = |_| io::Error::from(io::ErrorKind::TimedOut);
    let stream = timeout(CONNECT_TIME_MAX, TcpStream::connect(authority)).await.map_err(took_too_long)??;
    stream.set_nodelay(true)?;
    let (link, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to the node that answers ended early");
        }
    });
    Ok(link)
}

/// The body of a request that is passed on. Clones share it: what the other node does not read can be thrown away.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<Mutex<Rest>>);

enum Rest {
    Some(UnsyncBoxBody<Bytes, BrokenOff>),
    /// All of it was read.
    Ended,
    /// It is read no further.
    Taken,
}

impl Outgoing {
    pub(crate) fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        if body.is_end_stream() {
            return Self(Arc::new(Mutex::new(Rest::Ended)));
        }
        let body = body.map_err(|_| BrokenOff("the client sent no more".to_owned())).boxed_unsync();
        Self(Arc::new(Mutex::new(Rest::Some(body))))
    }

    /// Was all of it read?
    pub(crate) fn is_ended(&self) -> bool {
        matches!(*self.0.lock(), Rest::Ended)
    }

    /// Ends it here; gives what is left.
    pub(crate) fn take(&self) -> Option<UnsyncBoxBody<Bytes, BrokenOff>> {
        let mut rest = self.0.lock();
        match std::mem::replace(&mut *rest, Rest::Taken) {
            Rest::Some(body) => Some(body),
            Rest::Ended => {
                *rest = Rest::Ended;
                None
            }
            Rest::Taken => None,
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut rest = self.0.lock();
        let polled = match &mut *rest {
            Rest::Some(body) => Pin::new(body).poll_frame(cx),
            Rest::Ended => Poll::Ready(None),
            Rest::Taken => Poll::Ready(Some(Err(BrokenOff("it was answered".to_owned())))),
        };
        let is_ended = match &*rest {
            Rest::Some(body) => matches!(polled, Poll::Ready(None)) || body.is_end_stream(),
            _ => false,
        };
        if is_ended {
            *rest = Rest::Ended;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended()
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.0.lock() {
            Rest::Some(body) => body.size_hint(),
            Rest::Ended => SizeHint::with_exact(0),
            Rest::Taken => SizeHint::default(),
        }
    }
}
