//! Tools that change what the page is.

use agentsvc_systems::browser::limits::{BROWSER_SCRIPT_BYTES_MAX, BROWSER_TYPE_BYTES_MAX};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, Maker, Nothing};
use crate::browser::actions::Failed;
use crate::kernel::egress::granted;
use crate::tool::toolset::{Context, Ended, Tool};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Navigate {
    /// The whole URL, with http:// or https://.
    url: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Click {
    /// A CSS selector, or the visible text of a link, button or label.
    selector: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Type {
    /// A CSS selector of the field, or the text of its label.
    selector: String,
    /// The text, which replaces what is in the field. A newline at its end presses Enter.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunJs {
    /// A JavaScript expression. A promise is awaited.
    expression: String,
}

/// The tools.
pub(super) fn tools(maker: &Maker) -> [Tool; 5] {
    [
        maker.tool(
            "browser_navigate",
            "Opens a URL in a browser page that stays open for this session, runs its scripts, and returns the title and text of the \
             page, and its fields and buttons. For pages that need scripts, forms or a login; web_fetch is faster for others.",
            Some(is_granted),
            navigate,
        ),
        maker.tool(
            "browser_click",
            "Clicks an element of the open page, by CSS selector or visible text, and returns the page as it is then.",
            None,
            click,
        ),
        maker.tool(
            "browser_type",
            "Types text into a field of the open page, or chooses an option of a list.",
            None,
            enter,
        ),
        maker.tool(
            "browser_run_js",
            "Runs a JavaScript expression in the open page and returns its value as JSON.",
            None,
            run_js,
        ),
        maker.tool("browser_back", "Goes back to the page before and returns it.", None, back),
    ]
}

fn bounded(what: &str, text: &str, max: usize) -> Result<(), Failed> {
    if text.len() > max {
        return Err(Failed::Said(format!("`{what}` has {} bytes; the limit is {max}.", text.len())));
    }
    Ok(())
}

/// Does the manifest grant the host?
fn is_granted(input: &Navigate, context: &Context) -> Result<(), String> {
    granted(&context.run.manifest.manifest.capabilities.network, &input.url).map_err(|error| error.to_string())
}

fn navigate(act: Act<Navigate>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        act.page.navigate(act.input.url.trim()).await?;
        act.page.shown(0, act.chars_max).await
    })
}

fn click(act: Act<Click>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        bounded("selector", &act.input.selector, BROWSER_SCRIPT_BYTES_MAX)?;
        act.page.click(&act.input.selector).await?;
        act.page.shown(0, act.chars_max).await
    })
}

fn enter(act: Act<Type>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        bounded("selector", &act.input.selector, BROWSER_SCRIPT_BYTES_MAX)?;
        bounded("text", &act.input.text, BROWSER_TYPE_BYTES_MAX)?;
        act.page.enter(&act.input.selector, &act.input.text).await?;
        if act.input.text.ends_with('\n') {
            return act.page.shown(0, act.chars_max).await;
        }
        let notes = act.page.take_notes().join("\n");
        let chars = act.input.text.chars().count();
        Ok(Ended::Text(format!("Typed {chars} characters into {:?}.\n{notes}", act.input.selector)))
    })
}

fn run_js(act: Act<RunJs>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        bounded("expression", &act.input.expression, BROWSER_SCRIPT_BYTES_MAX)?;
        let value = act.page.evaluate(&act.input.expression).await?.to_string();
        let chars = value.chars().count();
        let mut text: String = value.chars().take(act.chars_max).collect();
        if chars > act.chars_max {
            text += &format!("\n[The value has {chars} characters; its end is missing.]");
        }
        for note in act.page.take_notes() {
            text += &format!("\n{note}");
        }
        Ok(Ended::Text(text))
    })
}

fn back(act: Act<Nothing>) -> BoxFuture<'static, Result<Ended, Failed>> {
    Box::pin(async move {
        act.page.back().await?;
        act.page.shown(0, act.chars_max).await
    })
}
