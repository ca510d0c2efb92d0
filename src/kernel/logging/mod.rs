//! Log lines: stderr for people or programs, JSON files under `{home}/logs`, and whoever follows `/api/logs/stream`.
//!
//! The thread that logs only formats the line and puts it into bounded queues; it never waits for a disk or a
//! terminal. Lines that find a queue full are counted, and the count is written when there is room again. Lines that
//! repeat are bounded before they are formatted ([`repeats`]), and the files are bounded in bytes ([`files`]).
//!
//! Every line passes the redactor on its way to any of them ([`line`]): secrets that this process knows go by their
//! value ([`known_secrets`]), others and personal data by their shape ([`Redact`]).

pub mod config;
mod files;
mod line;
mod outlet;
mod repeats;
mod secrets;

use std::borrow::Cow;
use std::io::IsTerminal;
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tracing::Level;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use zeroize::Zeroizing;

pub use self::files::newest_first;
pub use self::secrets::{KnownSecrets, known_secrets};

use self::config::{Format, LogLevel};
use self::files::{RollingFile, Terminal};
use self::line::{Clock, ToEach};
use self::outlet::Outlet;
use self::repeats::Repeats;
use crate::kernel::config::Word as _;

/// Crates that say too much: never more than this, unless everything is wanted.
const QUIET: &str = "hyper=info,hyper_util=info,h2=info,reqwest=info,rustls=info,fjall=warn,lsm_tree=warn";

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log file cannot be opened.
    #[error("cannot write log files to {}: {source}", path.display())]
    Files {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a log writer: {0}")]
    Thread(std::io::Error),
    /// The process already logs elsewhere.
    #[error("logging was already started")]
    Twice,
}

/// A listener to every line, such as the hub of `/api/logs/stream`.
pub trait Tap: Send + Sync + 'static {
    /// False when nobody listens to such a line; then it is not even copied.
    fn wanted(&self, line: &str) -> bool;
    /// Takes one line, a JSON object without a newline. Must not wait.
    fn publish(&self, line: Arc<str>);
}

/// Takes secrets and personal data out of a line.
pub type Redact = fn(&str) -> Cow<'_, str>;

/// What logging needs to know.
#[derive(Debug)]
pub struct Settings<'a> {
    /// The least severe level, unless `RUST_LOG` says otherwise.
    pub level: LogLevel,
    /// How lines look on stderr.
    pub format: Format,
    /// On stderr there are only warnings and errors: a person reads it, who finds the rest in the files.
    pub is_brief: bool,
    /// Where the files go.
    pub directory: &'a Path,
    /// Bytes that all files together may have.
    pub bytes_max: u64,
    /// Texts that must never stand in a line; more may become known later.
    pub secrets: Vec<Zeroizing<String>>,
    /// Takes out secrets and personal data by their shape.
    pub redact: Redact,
}

/// Running log writers. Dropping it writes out what waits; lines after that are lost.
#[derive(Debug)]
pub struct Logging {
    repeats: Repeats,
    outlets: Vec<Arc<Outlet>>,
    tap: Arc<OnceLock<Box<dyn Tap>>>,
    /// What was wrong with `RUST_LOG`, if anything.
    pub warning: Option<String>,
    /// Changes what is logged.
    pub dial: Dial,
}

impl std::fmt::Debug for dyn Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tap")
    }
}

impl Logging {
    /// Gives every line to `tap` from now on. The first one stays.
    pub fn tap(&self, tap: impl Tap) {
        // A second tap would be a fault of the wiring; the first keeps working.
        let _ = self.tap.set(Box::new(tap));
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        self.repeats.end_period();
        self.outlets.iter().for_each(|outlet| outlet.close());
    }
}

/// Starts the writers, removes log files that are older than a week or too much, and becomes the process's logger.
///
/// # Errors
/// [`Error`] when the files or threads cannot be had, or the process already logs.
pub fn start(settings: Settings<'_>) -> Result<Logging, Error> {
    let Settings { level, format, is_brief, directory, bytes_max, secrets, redact } = settings;
    let failed = |source| Error::Files { path: directory.to_owned(), source };
    let today = agentsvc_api::http::timestamp::now().date_naive();
    let file = RollingFile::start(directory, today, bytes_max).map_err(failed)?;
    let file = Arc::new(Outlet::start("log-file", file).map_err(Error::Thread)?);
    let stderr = Arc::new(Outlet::start("log-stderr", Terminal).map_err(Error::Thread)?);
    let repeats = Repeats::start().map_err(Error::Thread)?;

    secrets.iter().for_each(|secret| known_secrets().add(secret));
    let secrets = known_secrets();
    let tap = Arc::new(OnceLock::new());
    let json =
        |to: ToEach| tracing_subscriber::fmt::layer().json().flatten_event(true).with_timer(Clock).with_writer(to);
    // Lines for programs are the same everywhere, so they are formatted once.
    let (json, human) = match format {
        Format::Json => {
            (json(ToEach::new(vec![file.clone(), stderr.clone()], secrets.clone(), redact, Some(tap.clone()))), None)
        }
        Format::Human => {
            let colours =
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
            let to = ToEach::new(vec![stderr.clone()], secrets.clone(), redact, None);
            // Not a filter of this layer: with one, a line that `repeats` holds back would confuse the next.
            let to = to.with_max_level(if is_brief { Level::WARN } else { Level::TRACE });
            let human = tracing_subscriber::fmt::layer().with_timer(Clock).with_ansi(colours).with_writer(to);
            (json(ToEach::new(vec![file.clone()], secrets.clone(), redact, Some(tap.clone()))), Some(human))
        }
    };
    let (filter, warning) = filter(level, variable().as_deref());
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::registry().with(filter).with(human).with(json).with(repeats.clone());
    lines.try_init().map_err(|_| Error::Twice)?;
    log_panics();
    let dial = Dial { filter: handle };
    Ok(Logging { repeats, outlets: vec![file, stderr], tap, warning, dial })
}

/// Writers that write nothing, for tests of what needs some: the process's logger and its panics stay as they are.
#[cfg(test)]
pub(crate) fn nowhere() -> Logging {
    let (_, filter) = reload::Layer::new(EnvFilter::new("off"));
    let (repeats, _) = Repeats::new();
    Logging { repeats, outlets: vec![], tap: Arc::default(), warning: None, dial: Dial { filter } }
}

/// Changes what is logged while the writers run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Dial {
    filter: reload::Handle<EnvFilter, Registry>,
}

impl Dial {
    /// Logs at `level` from now on, unless `RUST_LOG` says otherwise.
    pub fn set_level(&self, level: LogLevel) {
        // Fails only when the process's logger is gone, and then nothing is logged anyway.
        let _ = self.filter.reload(filter(level, variable().as_deref()).0);
    }
}

/// True when a person watches stderr who has not asked for the log.
pub fn is_watched() -> bool {
    std::io::stderr().is_terminal() && variable().is_none()
}

fn variable() -> Option<String> {
    std::env::var("RUST_LOG").ok()
}

/// What is left out is counted in lines that a filter for some parts of the program lets through, too.
fn with_repeats(filter: EnvFilter) -> EnvFilter {
    match format!("{}=info", repeats::TARGET).parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}

/// `RUST_LOG` when it is there and valid, else the configured level.
fn filter(level: LogLevel, variable: Option<&str>) -> (EnvFilter, Option<String>) {
    let configured = || match level {
        LogLevel::Off | LogLevel::Error | LogLevel::Warn | LogLevel::Trace => EnvFilter::new(level.word()),
        LogLevel::Info | LogLevel::Debug => EnvFilter::new(format!("{},{QUIET}", level.word())),
    };
    match variable.filter(|text| !text.trim().is_empty()).map(EnvFilter::try_new) {
        None => (configured(), None),
        Some(Ok(filter)) => (with_repeats(filter), None),
        Some(Err(error)) => (configured(), Some(format!("RUST_LOG is ignored: {error}"))),
    }
}

/// Logs every panic, with its place, instead of printing it past the log.
fn log_panics() {
    panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    tracing::error!(place, thread, "panic: {text}");
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, OnceLock};

    use agentsvc_systems::redact::redact;
    use tracing_subscriber::layer::SubscriberExt;

    use super::line::{Clock, ToEach};
    use super::outlet::{Outlet, Sink};
    use super::{KnownSecrets, filter, log_panic};
    use crate::kernel::logging::config::LogLevel;

    /// Keeps lines.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Sink for Kept {
        fn line(&mut self, line: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(line.to_owned());
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs what `log` logs, once as JSON and once for people, and gives all lines.
    fn logged(log: impl FnOnce()) -> String {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let outlet = Arc::new(Outlet::start("test", Kept(Arc::clone(&lines))).unwrap());
        let secrets = Arc::new(KnownSecrets::default());
        secrets.add("hunter2\"and\\more");
        let to =
            || ToEach::new(vec![Arc::clone(&outlet)], Arc::clone(&secrets), redact, Some(Arc::new(OnceLock::new())));
        let json = tracing_subscriber::fmt::layer().json().flatten_event(true).with_timer(Clock).with_writer(to());
        let human = tracing_subscriber::fmt::layer().with_timer(Clock).with_ansi(false).with_writer(to());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(json).with(human), log);
        outlet.close();
        let lines = lines.lock().unwrap();
        lines.join("\n")
    }

    #[test]
    fn a_secret_is_in_no_message_field_error_or_panic() {
        let known = "hunter2\"and\\more";
        let error = io::Error::other(format!("cannot log in with {known} or sk-proj-abcdefghijklmnopqrstuvwx"));
        let error: Box<dyn std::error::Error> = Box::new(io::Error::other(error));
        let lines = logged(|| {
            tracing::info!("a message with {known}");
            tracing::info!(key = known, token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "a field");
            tracing::warn!(%error, ?error, "an error");
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(log_panic));
            let panicked = std::panic::catch_unwind(|| panic!("a panic with {known}"));
            std::panic::set_hook(before);
            assert!(panicked.is_err());
        });
        assert_eq!(lines.lines().count(), 8, "{lines}");
        for part in ["a message with ***", "a field", "an error", "panic: a panic with ***", "[redacted:"] {
            assert!(lines.contains(part), "{part}: {lines}");
        }
        for secret in ["hunter2", "and\\", "abcdefgh"] {
            assert!(!lines.contains(secret), "{secret}: {lines}");
        }
    }

    #[test]
    fn the_variable_overrides_the_level() {
        assert_eq!(filter(LogLevel::Warn, None).0.to_string(), "warn");
        assert_eq!(filter(LogLevel::Warn, Some("")).0.to_string(), "warn");
        // What is left out is counted, whatever the variable is about.
        let counted = |rest: &str| format!("{}=info,{rest}", super::repeats::TARGET);
        assert_eq!(filter(LogLevel::Warn, Some("debug")).0.to_string(), counted("debug"));
        let (of_one, _) = filter(LogLevel::Warn, Some("agentsvc_systems=info"));
        assert!(of_one.to_string().contains(super::repeats::TARGET), "{of_one}");
        assert!(filter(LogLevel::Info, None).0.to_string().contains("fjall=warn"));
    }

    #[test]
    fn a_broken_variable_is_said_and_ignored() {
        let (filter, warning) = filter(LogLevel::Error, Some("agentsvc=loud=er"));
        assert_eq!(filter.to_string(), "error");
        assert!(warning.unwrap().starts_with("RUST_LOG is ignored"));
    }
}
