//! Tools that look at the page, and the one that closes it.

use std::time::Duration;

use agentsvc_systems::browser::limits::BROWSER_SCRIPT_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, Maker, Nothing};
use crate::browser::actions::Failed;
use crate::tool::toolset::{Context, Ended, Need, Tool, input, raw_schema};

/// Pixels that one call scrolls, unless it says otherwise.
const SCROLL_DEFAULT: i64 = 600;
/// Pixels that one call scrolls at most.
const SCROLL_MAX: i64 = 1_000_000;
/// How long a call waits for an element, unless it says otherwise.
const WAIT_MS_DEFAULT: u64 = 5_000;
/// How long it waits at most.
const WAIT_MS_MAX: u64 = 60_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// Number of characters to skip, to continue after an earlier part.
    offset: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Up,
    Down,
    Left,
    Right,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Scroll {
    /// Where to. Default: down.
    direction: Option<Direction>,
    /// Pixels. Default: 600.
    amount: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// A CSS selector.
    selector: String,
    /// Milliseconds to wait at most, up to 60000. Default: 5000.
    timeout_ms: Option<u64>,
}

/// The tools.
pub(super) fn tools(maker: &Maker) -> [Tool; 5] {
    [
        maker
            .tool(
                "browser_read_page",
                "Returns the open page as text with headings and links, and its fields and buttons. Long pages are returned in \
                 parts; continue with `offset`.",
                None,
                read,
            )
            .safe(),
        maker.tool(
            "browser_screenshot",
            "Takes a PNG image of the visible part of the open page and keeps it as an upload.",
            None,
            screenshot,
        ),
        maker.tool("browser_scroll", "Scrolls the open page.", None, scroll),
        maker
            .tool("browser_wait", "Waits until the open page has an element that matches a CSS selector.", None, wait)
            .safe(),
        close(maker),
    ]
}

fn read(act: Act<Read>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move { act.page.shown(act.input.offset.unwrap_or(0), act.chars_max).await })
}

fn screenshot(act: Act<Nothing>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        let data = act.page.screenshot().await?;
        let (url, _) = act.page.place().await?;
        let said = |text: &str| Failed::Said(text.to_owned());
        let files = act.files.ok_or_else(|| said("There is no place for uploads."))?;
        let agent = act.context.run.agent;
        let kept = tokio::task::spawn_blocking(move || {
            let image = STANDARD.decode(data).map_err(|_| "The image cannot be read.".to_owned())?;
            let bytes = image.len();
            let kept = files.store(agent, "screenshot.png", "image/png", &image);
            kept.map(|kept| (kept, bytes)).map_err(|error| format!("The screenshot could not be kept: {error}."))
        });
        let kept = kept.await.map_err(|_| said("The screenshot could not be kept."))?;
        let (kept, bytes) = kept.map_err(Failed::Said)?;
        let text = format!("Screenshot of {url}: image/png, {bytes} bytes, kept as /api/uploads/{}", kept.id);
        Ok(Ended::Text(text))
    })
}

fn scroll(act: Act<Scroll>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        let amount = act.input.amount.unwrap_or(SCROLL_DEFAULT).clamp(-SCROLL_MAX, SCROLL_MAX);
        let (x, y) = match act.input.direction.unwrap_or(Direction::Down) {
            Direction::Up => (0, -amount),
            Direction::Down => (0, amount),
            Direction::Left => (-amount, 0),
            Direction::Right => (amount, 0),
        };
        act.page.scroll(x, y).await.map(Ended::Text)
    })
}

fn wait(act: Act<Wait>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        let Wait { selector, timeout_ms } = act.input;
        if selector.len() > BROWSER_SCRIPT_BYTES_MAX {
            return Err(Failed::Said("`selector` is too long.".to_owned()));
        }
        let ms = timeout_ms.unwrap_or(WAIT_MS_DEFAULT).min(WAIT_MS_MAX);
        if act.page.wait(&selector, Duration::from_millis(ms)).await? {
            return Ok(Ended::Text(format!("The page has an element {selector:?}.")));
        }
        Err(Failed::Said(format!("No element matched {selector:?} within {ms} ms.")))
    })
}

/// Closes the page. There may be none.
fn close(maker: &Maker) -> Tool {
    let manager = maker.manager.clone();
    let run = move |context: Context, text: String| -> BoxFuture<'static, Result<Ended, String>> {
        let manager = manager.clone();
        Box::pin(async move {
            let Nothing {} = input(&text)?;
            let was_open = manager.close(&(context.run.agent, context.run.session));
            Ok(Ended::Text(if was_open { "The page is closed." } else { "No page was open." }.to_owned()))
        })
    };
    let description = "Closes the open page with its cookies and storage.";
    let tool = Tool::brought("browser_close".to_owned(), description.to_owned(), raw_schema::<Nothing>(), run);
    tool.safe().needs(Need::Network).order(super::ORDER)
}
