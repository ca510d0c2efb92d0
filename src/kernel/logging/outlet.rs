//! A bounded queue of lines and the thread that writes them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

/// Lines that may wait for one outlet. Full: the line is dropped and counted. Kept by looking at the length, because a
/// bounded queue has the memory for all of them from the beginning.
const LINES_MAX: usize = 8_192;
/// How long the end waits for what is queued: a terminal that reads nothing must not hold the process.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Where lines end up.
pub(crate) trait Sink: Send + 'static {
    /// Writes one line; `line` has no newline.
    fn line(&mut self, line: &str) -> io::Result<()>;
    /// Makes what was written visible to readers.
    fn flush(&mut self) -> io::Result<()>;
}

enum Item {
    Line(Arc<str>),
    /// Write what came before, answer, and end.
    Close(Sender<()>),
}

/// The queue of one sink.
#[derive(Debug)]
pub(crate) struct Outlet {
    queue: Sender<Item>,
    dropped: Arc<AtomicU64>,
}

impl Outlet {
    /// Starts a thread called `name` that writes to `sink`.
    pub(crate) fn start(name: &str, sink: impl Sink) -> io::Result<Self> {
        let (queue, lines) = unbounded();
        let dropped = Arc::new(AtomicU64::new(0));
        let count = dropped.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || drain(lines, sink, &count))?;
        Ok(Self { queue, dropped })
    }

    /// Queues `line` if there is room; never waits.
    pub(crate) fn offer(&self, line: Arc<str>) {
        if self.queue.len() >= LINES_MAX || self.queue.send(Item::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped or could not be written.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes out what is queued, for a bounded time, and ends the thread.
    pub(crate) fn close(&self) {
        let (done, end) = bounded(1);
        // Either fails only when the thread is stuck or gone; then there is nothing more to wait for.
        if self.queue.send(Item::Close(done)).is_ok() {
            let _ = end.recv_timeout(CLOSE_WAIT);
        }
    }
}

fn drain(lines: Receiver<Item>, mut sink: impl Sink, dropped: &AtomicU64) {
    let mut told = 0;
    while let Ok(first) = lines.recv() {
        let mut next = Some(first);
        let mut waits_for_end = None;
        while let Some(item) = next {
            match item {
                Item::Line(line) => count_failure(sink.line(&line), dropped),
                Item::Close(done) => {
                    waits_for_end = Some(done);
                    break;
                }
            }
            next = lines.try_recv().ok();
        }
        // The queue is empty or at its end: time to say what did not fit, and to let readers see the lines.
        let now = dropped.load(Ordering::Relaxed);
        if now > told && sink.line(&own_line(&format!("{} log lines were dropped", now - told))).is_ok() {
            told = now;
        }
        count_failure(sink.flush(), dropped);
        if let Some(done) = waits_for_end {
            // From here on a line is counted as dropped.
            drop(lines);
            // Nobody may wait any more.
            let _ = done.send(());
            return;
        }
    }
}

/// A disk that is full loses lines; the daemon goes on.
fn count_failure(result: io::Result<()>, dropped: &AtomicU64) {
    if result.is_err() {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// A line of a writer of the log about itself; `message` is plain text.
pub(super) fn own_line(message: &str) -> String {
    let now = agentsvc_api::http::timestamp::now().format("%Y-%m-%dT%H:%M:%S%.3fZ");
    format!(r#"{{"timestamp":"{now}","level":"WARN","message":"{message}","target":"agentsvc::kernel::logging"}}"#)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use crossbeam_channel::{Receiver, bounded};

    use super::{LINES_MAX, Outlet, Sink};

    /// Keeps lines; the first one waits until the gate opens.
    struct Gated {
        gate: Receiver<()>,
        lines: Arc<Mutex<Vec<String>>>,
    }

    impl Sink for Gated {
        fn line(&mut self, line: &str) -> io::Result<()> {
            let _ = self.gate.recv();
            self.lines.lock().unwrap().push(line.to_owned());
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_said() {
        let (open, gate) = bounded(0);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let outlet = Outlet::start("test", Gated { gate, lines: lines.clone() }).unwrap();
        outlet.offer("first".into());
        // The thread has taken the first line once it waits at the gate, so nothing else can be taken.
        while !outlet.queue.is_empty() {
            std::thread::yield_now();
        }
        for _ in 0..LINES_MAX + 3 {
            outlet.offer("more".into());
        }
        assert_eq!(outlet.dropped(), 3);
        drop(open);
        outlet.close();
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 1 + LINES_MAX + 1);
        assert!(lines[1 + LINES_MAX].contains("3 log lines were dropped"));
        drop(lines);
        outlet.offer("after the end".into());
        assert_eq!(outlet.dropped(), 4);
    }

    #[test]
    fn a_line_of_a_writer_is_json() {
        let line: serde_json::Value = serde_json::from_str(&super::own_line("7 log lines were dropped")).unwrap();
        assert_eq!(line["message"], "7 log lines were dropped");
    }
}
