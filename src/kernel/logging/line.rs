//! From a formatted line to everyone who gets it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::outlet::Outlet;
use super::{KnownSecrets, Redact, Tap};

/// Writes the time as RFC 3339 UTC with `Z` and milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        write!(to, "{}", agentsvc_api::http::timestamp::now().format("%Y-%m-%dT%H:%M:%S%.3fZ"))
    }
}

/// Gives each line to some outlets and, if there is one that listens, to the tap.
#[derive(Clone)]
pub(crate) struct ToEach {
    outlets: Vec<Arc<Outlet>>,
    secrets: Arc<KnownSecrets>,
    redact: Redact,
    tap: Option<Arc<OnceLock<Box<dyn Tap>>>>,
}

impl ToEach {
    /// To `outlets` and `tap`, without the `secrets` and what `redact` finds.
    pub(crate) fn new(
        outlets: Vec<Arc<Outlet>>,
        secrets: Arc<KnownSecrets>,
        redact: Redact,
        tap: Option<Arc<OnceLock<Box<dyn Tap>>>>,
    ) -> Self {
        Self { outlets, secrets, redact, tap }
    }

    fn give(&self, line: &str) {
        let line = line.trim_end_matches('\n');
        // First by value, then by shape. Most lines hold neither and are copied once, for the queues.
        let masked = self.secrets.mask(line);
        let line: Arc<str> = match (self.redact)(&masked) {
            Cow::Borrowed(clean) => clean.into(),
            Cow::Owned(clean) => clean.into(),
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
    use agentsvc_systems::redact::redact;

    use crate::kernel::logging::{KnownSecrets, Tap};

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
        let secrets = Arc::new(KnownSecrets::default());
        secrets.add("hunter2");
        let to = ToEach::new(Vec::new(), secrets, redact, Some(tap.clone()));
        (&to).write_all(b"{\"lost\":1}\n").unwrap();
        let _ = tap.set(Box::new(Heard { wanted: wanted.clone(), lines: Arc::clone(&lines) }));
        (&to).write_all(b"{\"message\":\"key hunter2 refused\"}\n").unwrap();
        (&to).write_all(b"{\"message\":\"a\",\"error\":\"Bearer sk-proj-abcdefghijklmnopqrstuvwx\"}\n").unwrap();
        wanted.store(false, Ordering::Relaxed);
        (&to).write_all(b"{\"lost\":2}\n").unwrap();
        let lines = lines.lock().unwrap();
        assert_eq!(lines[0], "{\"message\":\"key *** refused\"}");
        assert!(lines.len() == 2 && lines[1].contains("[redacted:") && !lines[1].contains("abcdef"), "{lines:?}");
    }

    /// What stands in every line must not look like a secret, or nobody could find anything.
    #[test]
    fn ids_times_and_places_stay_as_they_are() {
        let to = |line: &str| redact(line).into_owned();
        for n in 0..2_000_u128 {
            let id = uuid::Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + n * 0x0123_4567_89ab_cdef_1357);
            let line = format!(
                "{{\"timestamp\":\"2026-11-{:02}T23:{:02}:15.{:03}Z\",\"level\":\"WARN\",\"message\":\"turn ended\",\
                 \"agent\":\"{id}\",\"turn\":\"{id}\",\"input_tokens\":{},\"place\":\"src/daemon/mod.rs:{n}:5\",\
                 \"url\":\"http://127.0.0.1:4545\",\"target\":\"agentsvc::daemon\"}}",
                n % 28 + 1,
                n % 60,
                n % 1_000,
                n * 7_919
            );
            assert_eq!(to(&line), line);
        }
    }
}
