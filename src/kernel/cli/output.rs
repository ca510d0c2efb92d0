//! What the commands print: text, tables and JSON on standard output, progress and complaints on standard error.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::markdown::Markdown;
use super::screen::{self, Style};
pub(crate) use super::table::{Shown, Table};
use crate::kernel::cli::Error;

/// How often the line of [`Waiting`] is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Prints `text` as it is and lets it be seen at once.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::io("cannot write the output"))
}

/// Prints `text` and a newline.
pub(crate) fn line(text: &str) -> Result<(), Error> {
    print(&format!("{text}\n"))
}

/// Prints what a route answered with as text: exactly as it came for programs, without control characters for terminals.
pub(crate) fn text(text: &str) -> Result<(), Error> {
    if io::stdout().is_terminal() { print(&clean(text)) } else { print(text) }
}

/// Reads the whole of standard input.
pub(crate) fn read_stdin() -> Result<String, Error> {
    io::read_to_string(io::stdin()).map_err(Error::io("cannot read standard input"))
}

/// Prints `value` as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Protocol(error.to_string()))?;
    line(&escaped(&text))
}

/// JSON in which characters that a terminal obeys are written as escapes. Strings alone can hold some.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_obeyed) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if is_obeyed(character) {
            // All of them are in the first plane.
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    out.into()
}

/// Control characters but for tabs and line feeds, and those that turn the direction of a text.
fn is_obeyed(character: char) -> bool {
    let is_control = character.is_control() && !matches!(character, '\n' | '\t');
    is_control || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An answer while it is printed: exactly as the model wrote it for programs, with its Markdown as styles for terminals.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Something was printed and the line has not ended.
    open: bool,
    style: Option<Markdown>,
}

impl Default for Answer {
    fn default() -> Self {
        let style = (io::stdout().is_terminal() && screen::shows_styles()).then(Markdown::default);
        Self { open: false, style }
    }
}

impl Answer {
    /// Prints a piece.
    pub(crate) fn add(&mut self, piece: &str) -> Result<(), Error> {
        match &mut self.style {
            Some(style) => {
                let shown = style.add(&clean(piece));
                self.show(&shown)
            }
            None => {
                self.goes_on_with(piece);
                text(piece)
            }
        }
    }

    fn show(&mut self, shown: &str) -> Result<(), Error> {
        self.goes_on_with(shown);
        print(shown)
    }

    fn goes_on_with(&mut self, shown: &str) {
        if !shown.is_empty() {
            self.open = !shown.ends_with('\n');
        }
    }

    /// Ends the last line if it has not ended.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        if let Some(style) = &mut self.style {
            let shown = style.end();
            self.show(&shown)?;
        }
        if std::mem::take(&mut self.open) { print("\n") } else { Ok(()) }
    }
}

/// Says something beside the output. Nothing can be done when standard error is gone.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", clean(text));
}

/// Says why the command failed.
pub(crate) fn complain(text: &str) {
    let error = screen::styled_for_stderr("error:", Style::Red);
    let _ = writeln!(io::stderr().lock(), "{error} {}", clean(text));
}

/// Asks for a yes on the terminal.
///
/// # Errors
/// Standard input is no terminal, so that nobody can be asked, or cannot be read.
pub(crate) fn confirmed(question: &str) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::Usage("standard input is not a terminal; use --yes to confirm".to_owned()));
    }
    let _ = write!(io::stderr().lock(), "{} [y/N] ", clean(question));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Error::io("cannot read standard input"))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// A line that says what is waited for, and since when; only where standard error is a terminal. Ends with its drop.
pub(crate) struct Waiting {
    text: Arc<Mutex<Cow<'static, str>>>,
    /// Ends the thread that draws, and the thread.
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Waiting {
    /// Starts to spin beside `text`.
    pub(crate) fn on(text: impl Into<Cow<'static, str>>) -> Self {
        let text = Arc::new(Mutex::new(text.into()));
        let drawing = io::stderr().is_terminal().then(|| {
            let (text, (end, ended)) = (Arc::clone(&text), mpsc::channel());
            (end, thread::spawn(move || draw(&text, &ended)))
        });
        Self { text, drawing }
    }

    /// Says something else beside it.
    pub(crate) fn say(&self, text: impl Into<Cow<'static, str>>) {
        *self.text.lock() = text.into();
    }

    /// Says how many bytes of how many are done.
    pub(crate) fn say_bytes(&self, phase: &str, done: u64, total: u64) {
        self.say(format!("{phase} {} of {}", bytes(done), bytes(total.max(done))));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.drawing.take() {
            drop(end);
            // What only draws is no reason to fail.
            let _ = thread.join();
        }
    }
}

/// Draws the line again and again until the other end of `ended` is dropped, and removes it.
fn draw(text: &Mutex<Cow<'static, str>>, ended: &Receiver<()>) {
    let start = Instant::now();
    // Nothing can be done when standard error is gone.
    let write = |line: &str| drop(io::stderr().lock().write_all(line.as_bytes()));
    for frame in ['|', '/', '-', '\\'].into_iter().cycle() {
        let (text, since) = (text.lock().clone(), duration(start.elapsed().as_secs()));
        // Without wrapping: a line that is too long would leave its begin behind.
        write(&format!("\r\x1b[2K\x1b[?7l{frame} {} {since}\x1b[?7h", clean(&text)));
        if ended.recv_timeout(FRAME) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    write("\r\x1b[2K");
}

/// Bytes for people: `1.50 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let thousands = count.max(1).ilog2() / 10;
    match thousands.checked_sub(1).and_then(|at| UNITS.get(at as usize)) {
        Some(unit) => format!("{:.2} {unit}", count as f64 / (1_u64 << (10 * thousands)) as f64),
        None => format!("{count} B"),
    }
}

/// `text` without what could drive a terminal: escape sequences lose their start, newlines and tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "").into() } else { text.into() }
}

/// What stands in the list under `key` of an answer.
pub(crate) fn items<'a>(answer: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    answer[key].as_array().into_iter().flatten()
}

/// The text at `pointer` (`/model/provider`) of an answer: strings as they are, lists joined, the rest as JSON.
pub(crate) fn field(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| field(item, "")).collect::<Vec<_>>().join(", "),
        Some(other) => other.to_string(),
    }
}

/// A moment as its distance from now: `3 min ago`, `in 2 h`. Other texts stay.
pub(crate) fn moment(text: String, now: Option<DateTime<Utc>>) -> String {
    let (Some(now), Ok(at)) = (now, DateTime::parse_from_rfc3339(&text)) else { return text };
    let since = now.signed_duration_since(at).num_seconds();
    let distance = duration(since.unsigned_abs());
    // The larger of the two units says enough.
    let distance = distance.split(' ').take(2).collect::<Vec<_>>().join(" ");
    if since >= 0 { format!("{distance} ago") } else { format!("in {distance}") }
}

/// A duration for people: its two largest units.
pub(crate) fn duration(secs: u64) -> String {
    let (days, hours, minutes) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{secs} s"),
        (0, 0, _) => format!("{minutes} min {} s", secs % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{bytes, clean, duration, escaped, field, moment};

    #[test]
    fn nothing_drives_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\r\n\tc\u{9b}"), "a[31mb\n\tc");
        assert_eq!(clean("plain"), "plain");
        assert_eq!(clean("ten\u{202e}01\u{2066}"), "ten01");
    }

    #[test]
    fn json_drives_no_terminal_and_says_the_same() {
        let text = json!({ "a": "\u{9b}31m\u{202e}ä\u{7f}\u{1b}\n" }).to_string();
        let shown = escaped(&text);
        assert!(shown.chars().all(|character| !character.is_control() && character != '\u{202e}'), "{shown}");
        assert_eq!(shown.parse::<serde_json::Value>().unwrap(), text.parse::<serde_json::Value>().unwrap());
        assert_eq!(escaped("{\n  \"a\": 1\n}"), "{\n  \"a\": 1\n}");
    }

    #[test]
    fn fields_become_text() {
        let value = json!({"a": {"b": "x"}, "list": ["p", 1], "n": 3, "none": null});
        assert_eq!(field(&value, "/a/b"), "x");
        assert_eq!(field(&value, "/list"), "p, 1");
        assert_eq!(
            (field(&value, "/n"), field(&value, "/none"), field(&value, "/z")),
            ("3".into(), String::new(), String::new())
        );
    }

    #[test]
    fn moments_are_distances() {
        let now = "2026-11-27T00:00:00Z".parse().ok();
        let told = |text: &str, now| moment(text.to_owned(), now);
        assert_eq!(told("2026-11-27T02:10:00.000Z", now), "in 2 h");
        assert_eq!(told("2026-11-26T23:56:00Z", now), "4 min ago");
        assert_eq!((told("x", now), told("2026-11-27T02:00:00Z", None)), ("x".into(), "2026-11-27T02:00:00Z".into()));
    }

    #[test]
    fn bytes_for_people() {
        for (count, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.00 KiB"),
            (1_572_864, "1.50 MiB"),
            (1 << 40, "1.00 TiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn durations_for_people() {
        assert_eq!(duration(5), "5 s");
        assert_eq!(duration(65), "1 min 5 s");
        assert_eq!(duration(3_700), "1 h 1 min");
        assert_eq!(duration(90_000), "1 d 1 h");
    }
}
