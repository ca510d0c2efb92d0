//! Lines of one kind that come too often: in a minute some of each are written, and then one line says how many more
//! there were.
//!
//! Most lines that warn are caused from outside, by a client, a chat, a server or a plugin, as often as it likes. So the
//! bound is here, where every line passes, and for whoever logs there is nothing to do but to name whom a line is about
//! in one of the fields of [`SUBJECTS`]. Lines of `debug` and `trace` are for those who ask for all of them.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// What the lines are counted in.
const PERIOD: Duration = Duration::from_secs(60);
/// Lines of one place in the code about one subject that are written in a period.
pub(super) const LINES_PER_SUBJECT: u32 = 20;
/// Lines of one place in the code that are written in a period. Beyond them each subject has its first one still.
pub(super) const LINES_PER_PLACE: u32 = 100;
/// Subjects that are counted on their own in a period. Lines about others are counted with those of their place.
const SUBJECTS_MAX: usize = 512;
/// Bytes of a subject or a message that are kept.
const TEXT_BYTES_MAX: usize = 200;
/// Fields that say whom a line is about; the first that it has counts.
const SUBJECTS: [&str; 8] = ["agent", "channel", "server", "plugin", "hook", "provider", "workflow", "node"];
/// The target of the lines that say how many more there were.
pub(super) const TARGET: &str = module_path!();

/// The bound on lines that repeat. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Repeats(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    period: Mutex<Period>,
    /// Told once in a period, when the first line is left out.
    wake: Sender<()>,
}

/// The lines of a period.
#[derive(Debug)]
struct Period {
    began: Instant,
    places: HashMap<Place, Lines>,
    subjects: HashMap<(Place, Box<str>), Lines>,
    /// Some were left out.
    is_full: bool,
}

/// A place in the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    callsite: Identifier,
    /// Where a line of the `log` crate comes from: all of its lines of one level have the same callsite.
    origin: Option<Origin>,
}

/// Where a line of the `log` crate comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Origin {
    target: Box<str>,
    line: Box<str>,
}

impl Place {
    fn of(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let text = |name| Some(text_of(event, &metadata.fields().field(name)?).into_boxed_str());
        let origin = text("log.target").map(|target| Origin { target, line: text("log.line").unwrap_or_default() });
        Self { callsite: metadata.callsite(), origin }
    }
}

/// Lines of one kind.
#[derive(Debug, Default)]
struct Lines {
    written: u32,
    left_out: Option<LeftOut>,
}

/// Lines that were not written.
#[derive(Debug)]
struct LeftOut {
    count: u64,
    /// Where the first one came from.
    metadata: &'static Metadata<'static>,
    /// Its target.
    target: Box<str>,
    /// The field of the subject, and what it holds.
    subject: Option<(&'static str, Box<str>)>,
    message: String,
}

impl Repeats {
    /// Starts the thread that says how many more there were.
    pub(crate) fn start() -> io::Result<Self> {
        let (repeats, woken) = Self::new();
        let own = repeats.clone();
        thread::Builder::new().name("log-repeats".to_owned()).spawn(move || own.tell(&woken))?;
        Ok(repeats)
    }

    pub(super) fn new() -> (Self, Receiver<()>) {
        let (wake, woken) = bounded(1);
        let period = Mutex::new(Period::new(Instant::now()));
        (Self(Arc::new(Inner { period, wake })), woken)
    }

    fn tell(&self, woken: &Receiver<()>) {
        while woken.recv().is_ok() {
            let end = self.0.period.lock().began + PERIOD;
            thread::sleep(end.saturating_duration_since(Instant::now()));
            self.end_period();
        }
    }

    /// Says what was left out so far, and counts anew.
    pub(crate) fn end_period(&self) {
        let Period { places, subjects, .. } =
            std::mem::replace(&mut *self.0.period.lock(), Period::new(Instant::now()));
        let left_out = subjects.into_values().chain(places.into_values()).filter_map(|lines| lines.left_out);
        left_out.for_each(|left_out| left_out.say());
    }

    /// May this line be written? Counts it.
    fn admits(&self, event: &Event<'_>, now: Instant) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target() == TARGET {
            return true;
        }
        let named = SUBJECTS.iter().find_map(|name| Some((*name, metadata.fields().field(name)?)));
        let subject = named.map(|(name, field)| (name, text_of(event, &field).into_boxed_str()));
        // Made before the lock: what a line says of itself may log, or panic, too.
        let message = metadata.fields().field("message").map(|field| text_of(event, &field));
        let place = Place::of(event);
        let mut period = self.0.period.lock();
        // With some left out the thread ends it.
        if !period.is_full && now.saturating_duration_since(period.began) >= PERIOD {
            period.again(now);
        }
        let target = place.origin.as_ref().map_or_else(|| metadata.target().into(), |origin| origin.target.clone());
        let Some(lines) = period.take(place, subject.as_ref().map(|(_, text)| &**text)) else {
            return true;
        };
        let left_out = lines.left_out.get_or_insert_with(|| LeftOut {
            count: 0,
            metadata,
            target,
            subject,
            message: message.unwrap_or_default(),
        });
        left_out.count += 1;
        if !std::mem::replace(&mut period.is_full, true) {
            // A thread that was told already, or is gone, needs no telling.
            let _ = self.0.wake.try_send(());
        }
        false
    }
}

impl<S: Subscriber> Layer<S> for Repeats {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.admits(event, Instant::now())
    }
}

impl Period {
    fn new(began: Instant) -> Self {
        Self { began, places: HashMap::new(), subjects: HashMap::new(), is_full: false }
    }

    fn again(&mut self, now: Instant) {
        self.began = now;
        self.places.clear();
        self.subjects.clear();
    }

    /// Counts a line that may be written; `None`. Or those among which it counts as left out.
    fn take(&mut self, place: Place, subject: Option<&str>) -> Option<&mut Lines> {
        let of_place = self.places.entry(place.clone()).or_default();
        let key = subject.map(|subject| (place, Box::from(subject)));
        let key = key.filter(|key| self.subjects.len() < SUBJECTS_MAX || self.subjects.contains_key(key));
        let is_full = of_place.written >= LINES_PER_PLACE;
        let Some(key) = key else { return of_place.take(LINES_PER_PLACE) };
        let left_out = self.subjects.entry(key).or_default().take(if is_full { 1 } else { LINES_PER_SUBJECT });
        if left_out.is_none() {
            of_place.written = of_place.written.saturating_add(1);
        }
        left_out
    }
}

impl Lines {
    fn take(&mut self, most: u32) -> Option<&mut Self> {
        if self.written >= most {
            return Some(self);
        }
        self.written += 1;
        None
    }
}

impl LeftOut {
    fn say(&self) {
        let Self { count, metadata, target, subject, message } = self;
        let of = &**target;
        let agent = subject.as_ref().filter(|(name, _)| *name == SUBJECTS[0]).map(|(_, text)| &**text);
        let about = subject.as_ref().filter(|_| agent.is_none()).map(|(name, text)| format!("{name}={text}"));
        macro_rules! say {
            ($level:expr) => {
                tracing::event!(target: TARGET, $level, agent, about, of, left_out = count, "{message} … and {count} more")
            };
        }
        match *metadata.level() {
            Level::ERROR => say!(Level::ERROR),
            Level::WARN => say!(Level::WARN),
            _ => say!(Level::INFO),
        }
    }
}

/// The beginning of what a field of a line holds.
fn text_of(event: &Event<'_>, field: &Field) -> String {
    let mut text = Text { field, text: String::new() };
    event.record(&mut text);
    text.text
}

struct Text<'f> {
    field: &'f Field,
    text: String,
}

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field == self.field {
            // It ends when there is enough.
            let _ = write!(self, "{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field == self.field {
            let _ = self.write_str(value);
        }
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = piece.floor_char_boundary(TEXT_BYTES_MAX.saturating_sub(self.text.len()));
        self.text.push_str(&piece[..end]);
        if end < piece.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex as Lock;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Keeps the lines that are written as `LEVEL message agent`.
    #[derive(Clone, Default)]
    struct Written(Arc<Lock<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Written {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let of = |name| event.metadata().fields().field(name).map(|field| text_of(event, &field));
            let (message, agent) = (of("message").unwrap_or_default(), of("agent").unwrap_or_default());
            let about = of("about").unwrap_or_default();
            self.0.lock().push(format!("{} {message} {agent}{about}", event.metadata().level()));
        }
    }

    /// What is written of what `log` logs, and of what is left out of it.
    fn written(log: impl FnOnce(&Repeats)) -> Vec<String> {
        let (written, (repeats, _woken)) = (Written::default(), Repeats::new());
        let subscriber = tracing_subscriber::registry().with(written.clone()).with(repeats.clone());
        tracing::subscriber::with_default(subscriber, || {
            log(&repeats);
            repeats.end_period();
        });
        let lines = written.0.lock();
        lines.clone()
    }

    fn fail(agent: &str) {
        tracing::warn!(%agent, "a turn failed");
    }

    #[test]
    fn an_agent_has_some_lines_and_one_that_counts_the_others() {
        let lines = written(|_| {
            for _ in 0..432 {
                fail("a");
            }
            fail("b");
            (0..30).for_each(|_| tracing::error!(plugin = "p", "a hook failed"));
        });
        let count = |line: &str| lines.iter().filter(|other| *other == line).count();
        assert_eq!((count("WARN a turn failed a"), count("WARN a turn failed b")), (LINES_PER_SUBJECT as usize, 1));
        assert_eq!(count("WARN a turn failed … and 412 more a"), 1, "{lines:?}");
        assert_eq!((count("ERROR a hook failed "), count("ERROR a hook failed … and 10 more plugin=p")), (20, 1));
        assert_eq!(lines.len(), 20 + 1 + 20 + 2);
    }

    #[test]
    fn many_agents_have_a_line_each_and_no_more_memory_than_there_is_for_them() {
        let agents = SUBJECTS_MAX * 3;
        let lines = written(|repeats| {
            for _ in 0..3 {
                (0..agents).for_each(|n| fail(&n.to_string()));
            }
            assert_eq!(repeats.0.period.lock().subjects.len(), SUBJECTS_MAX);
        });
        // Whoever came too late to be counted alone is counted with the rest.
        let (told, plain): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains(" more "));
        assert_eq!((plain.len(), told.len()), (SUBJECTS_MAX, SUBJECTS_MAX + 1));
        let left_out = |line: &&&String| line.split(' ').rev().nth(2).unwrap().parse::<usize>().unwrap();
        assert_eq!(plain.len() + told.iter().map(|line| left_out(&line)).sum::<usize>(), 3 * agents);
    }

    #[test]
    fn lines_about_nobody_are_counted_by_place_and_debug_is_not_counted() {
        let lines = written(|_| {
            (0..300).for_each(|n| tracing::info!(n, "started {n}"));
            (0..300).for_each(|_| tracing::debug!("a detail"));
            tracing::info!("another place");
        });
        assert_eq!(lines.len(), LINES_PER_PLACE as usize + 300 + 1 + 1);
        assert_eq!(lines.last().unwrap(), "INFO started 100 … and 200 more ");
    }

    /// The `log` crate's lines come through one callsite for each level.
    fn logged(target: &str, line: u32) {
        tracing::event!(target: "log", Level::WARN, log.target = target, log.line = line, "a record");
    }

    #[test]
    fn lines_of_the_log_crate_are_told_apart_by_where_they_come_from() {
        let lines = written(|_| {
            for _ in 0..LINES_PER_PLACE + 7 {
                logged("noisy", 1);
            }
            logged("noisy", 2);
            logged("quiet", 1);
        });
        let plain = lines.iter().filter(|line| *line == "WARN a record ").count();
        assert_eq!(plain, LINES_PER_PLACE as usize + 2, "{lines:?}");
        assert_eq!(lines.last().unwrap(), "WARN a record … and 7 more ");
    }

    #[test]
    fn a_period_that_is_over_counts_anew() {
        let lines = written(|repeats| {
            let log = || (0..LINES_PER_SUBJECT).for_each(|_| fail("a"));
            log();
            repeats.0.period.lock().began -= PERIOD;
            log();
            fail("a");
            // The thread ends a period of which some were left out, so that all of them are told.
            repeats.0.period.lock().began -= PERIOD;
            fail("a");
            repeats.end_period();
            log();
        });
        assert_eq!(lines.iter().filter(|line| line.ends_with("failed a")).count(), 3 * LINES_PER_SUBJECT as usize);
        assert_eq!(lines.iter().filter(|line| line.contains("and 2 more")).count(), 1, "{lines:?}");
    }

    #[test]
    fn what_is_kept_of_a_text_is_bounded() {
        let lines = written(|_| {
            for _ in 0..=LINES_PER_SUBJECT {
                tracing::warn!(server = "ü".repeat(1_000), "{}", "é".repeat(1_000));
            }
        });
        let told = lines.last().unwrap();
        assert_eq!(lines.len(), LINES_PER_SUBJECT as usize + 1);
        assert!(told.contains("server=üüü") && told.len() <= 3 * TEXT_BYTES_MAX, "{told}");
    }
}
