//! The server: takes connections within a bound, speaks HTTP/1.1 and HTTP/2 (prior knowledge) on each, and stops
//! without cutting off what is being answered.

use crate::http::error_codes;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use h2::Reason;
use hyper::Version;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use crate::http::api::Api;
use crate::http::connection::{Activity, ConnectionTimeouts, CountedIo, Verdict};
use crate::http::dispatch::dispatch;
use crate::http::error::Error;
use crate::http::in_flight::{InFlight, Streams, Tracked};
use crate::http::peer::{Peer, Place};
use crate::http::{raw, relay};

/// Bytes hyper buffers for one request head. Above our own limit, so that ours answers first.
const HEAD_BUFFER_BYTES: usize = 64 << 10;

/// Streams one HTTP/2 connection may have open.
const H2_STREAMS_MAX: u32 = 256;

/// Pings go out on HTTP/2 connections with open streams that often.
const H2_PING_PERIOD: Duration = Duration::from_secs(20);

/// Clients that may be told 503 at the same time; further ones are closed without a word.
const FAREWELLS_MAX: usize = 64;

/// Time for one of them to take it.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);

/// Time between two sweeps of idle clients out of the rate limiter.
const SWEEP_PERIOD: Duration = Duration::from_secs(60);

/// The pause after a failed accept, doubled up to the maximum while it keeps failing.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

type Builder = auto::Builder<Streams>;

/// Serves `api` on `listeners` until its shutdown is triggered and what was being answered has ended, or
/// `drain_time_max` has passed.
pub async fn serve(api: Arc<Api>, listeners: Vec<TcpListener>) {
    let sweeper = tokio::spawn(sweep(Arc::clone(&api)));
    let leaving = Arc::clone(&api);
    tokio::spawn(async move {
        leaving.shutdown.wait().await;
        leaving.elsewhere.leave().await;
    });
    let keys = Arc::clone(&api.access.keys);
    let expiry = tokio::spawn(async move { keys.expire().await });
    let slots = Arc::new(Semaphore::new(api.settings.limits.connections_max));
    accept(&api, &listeners, &slots).await;
    // A closed listener refuses new clients at once instead of leaving them in the backlog.
    drop(listeners);
    sweeper.abort();
    expiry.abort();
    let all = u32::try_from(api.settings.limits.connections_max).unwrap_or(u32::MAX);
    // Connections end themselves at the deadline; the little more is for them to notice.
    let drain = api.settings.limits.drain_time_max + Duration::from_secs(1);
    if timeout(drain, slots.acquire_many(all)).await.is_err() {
        tracing::warn!("some connections did not close in time");
    }
}

/// Takes connections until the shutdown.
async fn accept(api: &Arc<Api>, listeners: &[TcpListener], slots: &Arc<Semaphore>) {
    let builder = builder(api);
    let farewells = Arc::new(Semaphore::new(FAREWELLS_MAX));
    // Whatever another node has passed on before it knew that this one stops is answered.
    let mut stop = pin!(api.elsewhere.left());
    let mut pause = ACCEPT_PAUSE_MIN;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return,
            accepted = next(listeners) => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_client(&error) => continue,
            Err(error) => {
                // Out of file descriptors, memory or watches: trying again at once would only spin.
                tracing::warn!(error = said(&error), "cannot accept connections");
                tokio::select! {
                    () = &mut stop => return,
                    () = sleep(pause) => {}
                }
                pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                continue;
            }
        };
        pause = ACCEPT_PAUSE_MIN;
        api.metrics.accepted.fetch_add(1, Ordering::Relaxed);
        match Arc::clone(slots).try_acquire_owned() {
            Ok(slot) => {
                let peer = api.peers.connect(peer.ip(), api.access.policy().is_open());
                drop(tokio::spawn(connection(Arc::clone(api), builder.clone(), stream, Arc::new(peer), slot)));
            }
            Err(_) => turn_away(api, &farewells, stream),
        }
    }
}

/// The next connection of any of the listeners.
async fn next(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    let ready = |listener: &TcpListener, cx: &mut Context<'_>| match listener.poll_accept(cx) {
        Poll::Ready(accepted) => Some(accepted),
        Poll::Pending => None,
    };
    poll_fn(|cx| listeners.iter().find_map(|listener| ready(listener, cx)).map_or(Poll::Pending, Poll::Ready)).await
}

/// The client gave up between connecting and being accepted; the listener is fine.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// What the error means. The system's own words for the one of epoll speak of a disk.
fn said(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::StorageFull {
        return "all epoll watches of this user are in use (fs.epoll.max_user_watches)".to_owned();
    }
    error.to_string()
}

fn builder(api: &Api) -> Builder {
    let mut builder = auto::Builder::new(Streams);
    // Slow heads are the connection's `ConnectionTimeouts`'s business: hyper's own timer costs an allocation per request.
    // The header `date` is one of `ResponseHeaders`: hyper's panics when the clock is beyond the year 9999.
    builder.http1().max_buf_size(HEAD_BUFFER_BYTES).header_read_timeout(None).auto_date_header(false);
    builder
        .http2()
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING_PERIOD)
        .keep_alive_timeout(H2_PING_PERIOD)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(api.settings.limits.header_bytes_max * 4).unwrap_or(u32::MAX));
    builder
}

/// Serves one connection to its end.
async fn connection(api: Arc<Api>, builder: Builder, stream: TcpStream, peer: Arc<Peer>, slot: OwnedSemaphorePermit) {
    // Answers are written whole; waiting for more to send would only add latency.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let open = Arc::new(Open::begin(&api, slot));
    let activity = Arc::new(Activity::default());
    let io = CountedIo::new(TokioIo::new(stream), Arc::clone(&activity));
    let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        let peer = relay::client(&api, &peer, &request);
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(Line::new(&activity, &open, &peer));
        }
        let in_flight = InFlight::begin(&api, &activity, &peer, request.version());
        let api = Arc::clone(&api);
        async move {
            in_flight.enter();
            let (parts, body) = request.into_parts();
            if in_flight.is_too_many(&api.access.policy(), &parts) {
                return Err(h2::Error::from(Reason::REFUSED_STREAM));
            }
            let version = parts.version;
            let (mut response, place) = dispatch(&api, &peer, hyper::Request::from_parts(parts, body)).await;
            in_flight.keep(place);
            if peer.takes_no_refusal() {
                in_flight.finish_connection();
                if version < Version::HTTP_2 {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
            }
            Ok(response.map(|body| Tracked::new(body, in_flight)))
        }
    });
    let mut http = pin!(builder.serve_connection_with_upgrades(io, service));
    let mut watch = ConnectionTimeouts::new(api.settings.limits);
    let mut looks = interval_at(Instant::now() + watch.period(), watch.period());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = pin!(api.elsewhere.left());
    let mut deadline = None;
    loop {
        tokio::select! {
            biased;
            ended = http.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, peer = %peer.ip, "a connection ended early");
                }
                break;
            }
            now = looks.tick() => match watch.look(&activity, now, is_crowded(&api, &peer)) {
                Verdict::Stay => {}
                Verdict::Finish => http.as_mut().graceful_shutdown(),
                Verdict::Cut => break,
                Verdict::Unread => {
                    api.metrics.unread.connections.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            },
            () = activity.finish.notified() => http.as_mut().graceful_shutdown(),
            () = peer.closed() => {
                api.metrics.turned_away.fetch_add(1, Ordering::Relaxed);
                break;
            }
            () = &mut stop, if deadline.is_none() => {
                deadline = Some(Box::pin(sleep(api.settings.limits.drain_time_max)));
                http.as_mut().graceful_shutdown();
            }
            () = async { if let Some(deadline) = &mut deadline { deadline.await } }, if deadline.is_some() => break,
        }
    }
}

/// Counts the connection for whoever it is of now. Do answers that are not read take much, so that they have less time?
fn is_crowded(api: &Api, peer: &Peer) -> bool {
    peer.recount(api.access.policy().is_open());
    peer.is_crowded() || api.answers.is_crowded(peer.holder())
}

/// What a request that leaves HTTP takes along: while this lives the connection is counted, and the server waits for
/// its end.
#[derive(Clone)]
pub(crate) struct Line {
    /// What the connection does.
    pub(crate) activity: Arc<Activity>,
    _open: Arc<Open>,
    /// For whom the connection counts.
    _peer: Arc<Peer>,
    /// For whom the request counts.
    place: Option<Place>,
}

impl Line {
    fn new(activity: &Arc<Activity>, open: &Arc<Open>, peer: &Arc<Peer>) -> Self {
        Self { activity: Arc::clone(activity), _open: Arc::clone(open), _peer: Arc::clone(peer), place: None }
    }

    /// While this lives, the request counts there.
    pub(crate) fn keep(&mut self, place: Place) {
        self.place = Some(place);
    }
}

/// One open connection: its slot and its place in the metrics, given back however it ends.
pub(crate) struct Open {
    api: Arc<Api>,
    _slot: OwnedSemaphorePermit,
}

impl Open {
    fn begin(api: &Arc<Api>, slot: OwnedSemaphorePermit) -> Self {
        api.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Self { api: Arc::clone(api), _slot: slot }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.api.metrics.connections.fetch_sub(1, Ordering::Relaxed);
        if std::thread::panicking() {
            // A body that was being streamed panicked; routes themselves are caught earlier.
            self.api.health.note_panic();
        }
    }
}

/// Tells a client over the limit to come back, without holding anything up.
fn turn_away(api: &Api, farewells: &Arc<Semaphore>, mut stream: TcpStream) {
    api.metrics.turned_away.fetch_add(1, Ordering::Relaxed);
    let Ok(permit) = Arc::clone(farewells).try_acquire_owned() else { return };
    let farewell = raw::response(Error::unavailable("too many connections", 1).code(error_codes::CONNECTIONS));
    let tell = async move {
        stream.write_all(&farewell).await?;
        stream.shutdown().await?;
        // Unread input would turn the close into a reset that eats the answer.
        let mut piece = [0; 1_024];
        while stream.read(&mut piece).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    tokio::spawn(async move {
        // It took it or it did not; either way it goes.
        let _ = timeout(FAREWELL_TIME_MAX, tell).await;
        drop(permit);
    });
}

/// Sweeps idle clients out of the rate limiter now and then.
async fn sweep(api: Arc<Api>) {
    loop {
        sleep(SWEEP_PERIOD).await;
        api.access.policy().sweep();
        api.elsewhere.proven.sweep();
    }
}

#[cfg(test)]
mod tests;
