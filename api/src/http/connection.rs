//! One connection: what it is doing, and when it has to go.
//!
//! Timers per request would cost more than the requests. The connection counts what it reads, writes and answers
//! instead, and looks at the counts every few seconds.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::http::in_flight::InFlight;
use crate::http::raw;
use crate::http::settings::Limits;

/// What a connection has done so far. Written by the connection, read by its [`ConnectionTimeouts`].
#[derive(Default)]
pub(crate) struct Activity {
    /// Reads that gave bytes.
    reads: AtomicU64,
    /// `reads` when the last answer was done; more reads than that are the head of the next request.
    reads_settled: AtomicU64,
    /// Writes that took bytes.
    writes: AtomicU64,
    /// The client takes no more bytes for now.
    blocked: AtomicBool,
    /// Requests begun.
    begun: AtomicU64,
    /// Requests whose answer is not done.
    in_flight: AtomicU64,
    /// Answers on HTTP/2 streams of which the client has not taken all that is ready.
    pub(crate) unread: AtomicUsize,
    /// It speaks HTTP/2, where reads are not only requests.
    multiplexed: AtomicBool,
    /// It speaks HTTP no more.
    upgraded: AtomicBool,
    /// Told when the connection is to be closed after the answers that are under way.
    pub(crate) finish: Notify,
    /// Answers on HTTP/2 streams.
    pub(crate) answers: Mutex<Vec<Weak<InFlight>>>,
}

impl Activity {
    /// A request begins.
    pub(crate) fn begin(&self, multiplexed: bool) {
        if multiplexed {
            self.multiplexed.store(true, Ordering::Relaxed);
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// The answer to a request is done.
    pub(crate) fn end(&self) {
        self.reads_settled.store(self.reads.load(Ordering::Relaxed), Ordering::Relaxed);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Requests whose answer is not done.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Cuts off the streams whose clients have taken nothing for `time_max`. False when one cannot be cut off alone.
    fn cut_stalled(&self, now: Instant, time_max: Duration) -> bool {
        // The last reference to one may be dropped here, which takes the lock.
        let answers: Vec<_> = self.answers.lock().iter().filter_map(Weak::upgrade).collect();
        answers.iter().filter(|answer| answer.is_stalled(now, time_max)).all(|answer| answer.cut())
    }

    /// From here on the connection speaks another protocol.
    pub(crate) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }
}

/// Finds out that a client takes no more bytes.
#[derive(Default)]
pub(crate) struct Stall {
    taken: u64,
    since: Option<Instant>,
}

impl Stall {
    /// One look. True when the client has taken nothing for `time_max` although there was something to take.
    pub(crate) fn look(&mut self, activity: &Activity, now: Instant, time_max: Duration) -> bool {
        let blocked = activity.blocked.load(Ordering::Relaxed);
        self.progress(activity.writes.load(Ordering::Relaxed), blocked, now, time_max)
    }

    /// The same of something that the client has `taken` from so many times, and that `waits` for it.
    pub(crate) fn progress(&mut self, taken: u64, waits: bool, now: Instant, time_max: Duration) -> bool {
        let progressed = taken != std::mem::replace(&mut self.taken, taken);
        if !waits || progressed {
            self.since = None;
            return false;
        }
        now.saturating_duration_since(*self.since.get_or_insert(now)) >= time_max
    }
}

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may go on.
    Stay,
    /// It is idle: say goodbye, then close.
    Finish,
    /// It holds us up: close now.
    Cut,
    /// Its client takes nothing of what is ready: close now.
    Unread,
}

/// Decides when a connection has to go.
pub(crate) struct ConnectionTimeouts {
    limits: Limits,
    begun: u64,
    stall: Stall,
    quiet_since: Instant,
    head_since: Option<Instant>,
    finishing: bool,
}

impl ConnectionTimeouts {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            begun: 0,
            stall: Stall::default(),
            quiet_since: Instant::now(),
            head_since: None,
            finishing: false,
        }
    }

    /// Time between two looks.
    pub(crate) fn period(&self) -> Duration {
        let Limits { header_time_max, idle_time_max, stall_time_max, stall_time_crowded_max, .. } = self.limits;
        let shortest = header_time_max.min(idle_time_max).min(stall_time_max).min(stall_time_crowded_max);
        (shortest / 4).max(Duration::from_millis(10))
    }

    /// One look. While it `is_crowded` with answers that wait, each may wait for less time.
    pub(crate) fn look(&mut self, activity: &Activity, now: Instant, is_crowded: bool) -> Verdict {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let begun = load(&activity.begun);
        let Limits { stall_time_max, stall_time_crowded_max, .. } = self.limits;
        let time_max = if is_crowded { stall_time_crowded_max.min(stall_time_max) } else { stall_time_max };
        if self.stall.look(activity, now, time_max) || !activity.cut_stalled(now, time_max) {
            return Verdict::Unread;
        }
        if load(&activity.in_flight) > 0 || begun != std::mem::replace(&mut self.begun, begun) {
            self.quiet_since = now;
            self.head_since = None;
            self.finishing = false;
            return Verdict::Stay;
        }
        let multiplexed = activity.multiplexed.load(Ordering::Relaxed);
        if multiplexed || load(&activity.reads) == load(&activity.reads_settled) {
            self.head_since = None;
        } else if now - *self.head_since.get_or_insert(now) >= self.limits.header_time_max {
            return Verdict::Cut;
        }
        let patience = if begun == 0 { self.limits.header_time_max } else { self.limits.idle_time_max };
        if now - self.quiet_since < patience {
            return Verdict::Stay;
        }
        if std::mem::replace(&mut self.finishing, true) { Verdict::Cut } else { Verdict::Finish }
    }
}

/// The socket, counted. It also turns hyper's own bare answers to what is no HTTP into ours.
pub(crate) struct CountedIo {
    io: TokioIo<TcpStream>,
    activity: Arc<Activity>,
    /// What is written instead of a bare answer, and how many of its bytes are out.
    instead: Option<(Vec<u8>, usize)>,
}

impl CountedIo {
    pub(crate) const fn new(stream: TokioIo<TcpStream>, activity: Arc<Activity>) -> Self {
        Self { io: stream, activity, instead: None }
    }

    fn count(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(n)) if *n > 0 => {
                self.activity.writes.fetch_add(1, Ordering::Relaxed);
                self.activity.blocked.store(false, Ordering::Relaxed);
            }
            Poll::Pending => self.activity.blocked.store(true, Ordering::Relaxed),
            Poll::Ready(_) => {}
        }
    }

    /// Writes ours instead of the bare answer in `theirs`, if it is one; `None` if it is not.
    fn write_instead(&mut self, cx: &mut Context<'_>, theirs: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.instead.is_none() {
            let answers = self.activity.in_flight.load(Ordering::Relaxed) > 0;
            if answers || self.activity.upgraded.load(Ordering::Relaxed) {
                return None;
            }
            self.instead = Some((raw::response(raw::bare_error(theirs)?), 0));
        }
        while let Some((ours, done)) = &mut self.instead {
            if *done == ours.len() {
                // What the client still sends would turn the close into a reset that eats the answer.
                self.throw_away_input(cx);
                self.instead = None;
                return Some(Poll::Ready(Ok(theirs.len())));
            }
            match Pin::new(&mut self.io).poll_write(cx, &ours[*done..]) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into()))),
                Poll::Ready(Ok(n)) => *done += n,
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            }
        }
        None
    }

    /// Says that no more will be written, and reads what has arrived so far.
    fn throw_away_input(&mut self, cx: &mut Context<'_>) {
        const PIECES_MAX: usize = 64;
        let _ = Pin::new(&mut self.io).poll_shutdown(cx);
        for _ in 0..PIECES_MAX {
            let mut piece = [0; 16 << 10];
            let mut buffer = hyper::rt::ReadBuf::new(&mut piece);
            match Pin::new(&mut self.io).poll_read(cx, buffer.unfilled()) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                _ => return,
            }
        }
    }
}

impl Read for CountedIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) {
            self.activity.reads.fetch_add(1, Ordering::Relaxed);
        }
        read
    }
}

impl Write for CountedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.write_instead(cx, buf) {
            Some(written) => written,
            None => Pin::new(&mut self.io).poll_write(cx, buf),
        };
        self.count(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&b""[..], |buf| buf);
        let written = match self.write_instead(cx, first) {
            Some(written) => written,
            None => Pin::new(&mut self.io).poll_write_vectored(cx, bufs),
        };
        self.count(&written);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections_max: 1,
        bodies_bytes_max: 1,
        answers_bytes_max: 1,
        header_bytes_max: 1,
        uri_bytes_max: 1,
        header_time_max: Duration::from_secs(10),
        body_time_max: Duration::from_secs(30),
        idle_time_max: Duration::from_secs(90),
        stall_time_max: Duration::from_secs(60),
        stall_time_crowded_max: Duration::from_secs(10),
        loading_time_max: Duration::from_secs(5),
        drain_time_max: Duration::from_secs(10),
    };

    struct Case {
        activity: Activity,
        watch: ConnectionTimeouts,
        now: Instant,
        is_crowded: bool,
    }

    impl Case {
        fn new() -> Self {
            let (activity, watch) = (Activity::default(), ConnectionTimeouts::new(LIMITS));
            Self { activity, watch, now: Instant::now(), is_crowded: false }
        }

        fn after(&mut self, secs: u64) -> Verdict {
            self.now += Duration::from_secs(secs);
            self.watch.look(&self.activity, self.now, self.is_crowded)
        }

        fn set(&self, counter: fn(&Activity) -> &AtomicU64, value: u64) {
            counter(&self.activity).store(value, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_goes() {
        let mut case = Case::new();
        assert_eq!(case.after(9), Verdict::Stay);
        assert_eq!(case.after(2), Verdict::Finish);
        assert_eq!(case.after(2), Verdict::Cut);
    }

    #[tokio::test]
    async fn a_kept_connection_may_be_idle_for_longer() {
        let mut case = Case::new();
        case.set(|a| &a.begun, 1);
        assert_eq!(case.after(1), Verdict::Stay);
        assert_eq!(case.after(80), Verdict::Stay);
        assert_eq!(case.after(20), Verdict::Finish);
    }

    #[tokio::test]
    async fn a_head_that_does_not_end_is_cut() {
        let mut case = Case::new();
        case.set(|a| &a.begun, 1);
        case.set(|a| &a.reads, 1);
        case.set(|a| &a.reads_settled, 1);
        assert_eq!(case.after(20), Verdict::Stay);
        for n in 2..6 {
            case.set(|a| &a.reads, n);
            assert_eq!(case.after(2), Verdict::Stay);
        }
        assert_eq!(case.after(4), Verdict::Cut);
    }

    #[tokio::test]
    async fn a_request_in_flight_may_take_its_time_unless_the_client_stops_reading() {
        let mut case = Case::new();
        case.set(|a| &a.begun, 1);
        case.set(|a| &a.in_flight, 1);
        assert_eq!(case.after(1_000), Verdict::Stay);
        case.activity.blocked.store(true, Ordering::Relaxed);
        assert_eq!(case.after(1_000), Verdict::Stay);
        assert_eq!(case.after(59), Verdict::Stay);
        case.set(|a| &a.writes, 1);
        assert_eq!(case.after(59), Verdict::Stay);
        assert_eq!(case.after(1), Verdict::Stay);
        assert_eq!(case.after(60), Verdict::Unread);
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_has_less_time_while_it_is_crowded() {
        let mut case = Case::new();
        case.set(|a| &a.begun, 1);
        case.set(|a| &a.in_flight, 1);
        case.activity.blocked.store(true, Ordering::Relaxed);
        case.is_crowded = true;
        assert_eq!(case.after(1), Verdict::Stay);
        assert_eq!(case.after(9), Verdict::Stay);
        case.set(|a| &a.writes, 1);
        assert_eq!(case.after(9), Verdict::Stay, "it takes something now and then");
        case.is_crowded = false;
        assert_eq!((case.after(1), case.after(20)), (Verdict::Stay, Verdict::Stay));
        case.is_crowded = true;
        assert_eq!(case.after(1), Verdict::Unread, "what it took nothing of before counts");
    }
}
