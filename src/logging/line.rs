//! From a formatted line to everyone who gets it.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::Tap;
use super::outlet::Outlet;
use crate::swap::Swap;

/// Writes the time as RFC 3339 UTC with `Z` and milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        write!(to, "{}", chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S%.3fZ"))
    }
}

/// Gives each line to some outlets and, if there is one that listens, to the tap.
#[derive(Clone)]
pub(crate) struct ToEach {
    outlets: Vec<Arc<Outlet>>,
    secrets: Arc<Swap<Vec<String>>>,
    tap: Option<Arc<OnceLock<Box<dyn Tap>>>>,
}

impl ToEach {
    /// To `outlets` and `tap`, with every one of `secrets` replaced.
    pub(crate) fn new(
        outlets: Vec<Arc<Outlet>>,
        secrets: Arc<Swap<Vec<String>>>,
        tap: Option<Arc<OnceLock<Box<dyn Tap>>>>,
    ) -> Self {
        Self { outlets, secrets, tap }
    }

    fn give(&self, line: &str) {
        let line = line.trim_end_matches('\n');
        let secrets = self.secrets.get();
        let line: Arc<str> = match secrets.iter().any(|secret| line.contains(secret.as_str())) {
            false => line.into(),
            true => secrets.iter().fold(line.to_owned(), |line, secret| line.replace(secret.as_str(), "***")).into(),
        };
        for outlet in &self.outlets {
            outlet.offer(line.clone());
        }
        if let Some(tap) = self.tap.as_ref().and_then(|tap| tap.get()).filter(|tap| tap.wanted(&line)) {
            tap.publish(line);
        }
    }
}

impl<'a> MakeWriter<'a> for ToEach {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl io::Write for &ToEach {
    /// The formatter hands over each line whole, in one call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.give(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, OnceLock};

    use super::ToEach;
    use crate::logging::Tap;
    use crate::swap::Swap;

    struct Heard {
        wanted: Arc<AtomicBool>,
        lines: Arc<Mutex<Vec<String>>>,
    }

    impl Tap for Heard {
        fn wanted(&self, _line: &str) -> bool {
            self.wanted.load(Ordering::Relaxed)
        }

        fn publish(&self, line: Arc<str>) {
            self.lines.lock().unwrap().push(line.to_string());
        }
    }

    #[test]
    fn the_tap_gets_whole_lines_without_secrets_while_it_wants_them() {
        let (wanted, lines) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let tap: Arc<OnceLock<Box<dyn Tap>>> = Arc::default();
        let secrets = Arc::new(Swap::new(vec!["hunter2".to_owned()]));
        let to = ToEach::new(Vec::new(), Arc::clone(&secrets), Some(tap.clone()));
        (&to).write_all(b"{\"lost\":1}\n").unwrap();
        let _ = tap.set(Box::new(Heard { wanted: wanted.clone(), lines: Arc::clone(&lines) }));
        (&to).write_all(b"{\"message\":\"key hunter2 refused\"}\n").unwrap();
        wanted.store(false, Ordering::Relaxed);
        (&to).write_all(b"{\"lost\":2}\n").unwrap();
        assert_eq!(*lines.lock().unwrap(), ["{\"message\":\"key *** refused\"}"]);
        wanted.store(true, Ordering::Relaxed);
        secrets.set(vec!["hunter3".to_owned()]);
        (&to).write_all(b"hunter3\n").unwrap();
        assert_eq!(lines.lock().unwrap()[1], "***", "secrets of a later configuration are hidden too");
    }
}
