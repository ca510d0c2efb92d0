//! Where output goes: how wide it is, whether it shows styles, and what moments are measured from.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use chrono::{DateTime, Utc};
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::context::runtime;
use super::{Error, output};

/// The narrowest screen that tables are fitted to, in characters.
const WIDTH_MIN: usize = 20;
/// The variables that name the program which shows long output, in the order of their rank.
const PAGERS: [&str; 2] = ["AGENTSVC_PAGER", "PAGER"];
/// What shows long output where no variable says so.
const PAGER: &str = "less";
/// What `less` is told where `LESS` says nothing: leave what fits on the screen, show styles, keep the screen at its end.
const LESS: &str = "FRX";

/// A style of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
        }
    }
}

/// What standard output can show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Screen {
    /// Characters of a line; `None`: lines are never cut.
    pub(crate) width: Option<usize>,
    /// It shows styles.
    pub(crate) is_styled: bool,
    /// What moments are measured from; `None`: they are shown as they are.
    pub(crate) now: Option<DateTime<Utc>>,
}

impl Screen {
    /// That of this process. A pipe, a file and a test are no terminal: programs read everything as it is.
    pub(crate) fn of_stdout() -> Self {
        if cfg!(test) || !io::stdout().is_terminal() {
            return Self::default();
        }
        Self { width: width(), is_styled: shows_styles(), now: Some(Utc::now()) }
    }

    /// `text` in a style, where styles are shown.
    pub(crate) fn styled<'t>(&self, text: &'t str, style: Style) -> Cow<'t, str> {
        if self.is_styled { styled(text, style).into() } else { text.into() }
    }
}

/// `text` in a style.
fn styled(text: &str, style: Style) -> String {
    format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())
}

/// `text` in a style where standard error shows styles.
pub(super) fn styled_for_stderr(text: &str, style: Style) -> Cow<'_, str> {
    if io::stderr().is_terminal() && shows_styles() { styled(text, style).into() } else { text.into() }
}

/// Do terminals of this user show styles? See <https://no-color.org>.
pub(super) fn shows_styles() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Characters of a line: what `COLUMNS` says, else what the terminal says of itself.
fn width() -> Option<usize> {
    let given = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = given.or_else(|| size().map(|(columns, _)| columns))?;
    (width > 0).then_some(width.max(WIDTH_MIN))
}

/// The columns and rows of the terminal.
fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

/// Prints `text`: by a pager if it is longer than the terminal, else as it is.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn show(text: &str) -> Result<(), Error> {
    let is_long = || size().is_some_and(|(_, rows)| rows > 0 && text.lines().count() >= rows);
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() || !is_long() {
        return output::print(text);
    }
    let named = PAGERS.iter().find_map(|name| env::var(name).ok());
    match pager(named.as_deref()) {
        Some(words) if paged(&words, text) => Ok(()),
        _ => output::print(text),
    }
}

/// The words of the pager's command; `None`: there is to be none.
fn pager(named: Option<&str>) -> Option<Vec<&str>> {
    let words: Vec<&str> = named.unwrap_or(PAGER).split_whitespace().collect();
    words.first().is_some_and(|program| *program != "cat").then_some(words)
}

/// Gives `text` to a pager and waits until it is closed; false if it cannot be started.
fn paged(words: &[&str], text: &str) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    // While an answer is waited for, there is a runtime already.
    let own = if Handle::try_current().is_err() { Some(runtime()) } else { None };
    let Ok(own) = own.transpose() else { return false };
    let _within = own.as_ref().map(Runtime::enter);
    // Ctrl-C is for the pager. Without this it would end this process and leave the pager on the terminal.
    let _ignored = signal(SignalKind::interrupt());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let Ok(mut pager) = command.spawn() else { return false };
    if let Some(mut pipe) = pager.stdin.take() {
        // The pipe breaks where the pager is closed before its end.
        let _seen = pipe.write_all(text.as_bytes());
    }
    pager.wait().is_ok_and(|ended| ended.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_for_screens_that_show_them() {
        let screen = Screen { is_styled: true, ..Screen::default() };
        assert_eq!(screen.styled("x", Style::Bold), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(Screen::default().styled("x", Style::Bold), "x");
    }

    #[test]
    fn a_pager_is_named_or_usual_and_cat_is_none() {
        assert_eq!(pager(None), Some(vec!["less"]));
        assert_eq!(pager(Some("more -d")), Some(vec!["more", "-d"]));
        assert_eq!((pager(Some("cat")), pager(Some(""))), (None, None));
    }
}
