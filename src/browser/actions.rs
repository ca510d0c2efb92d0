//! What tools do to a page, and what they show of it.

use std::time::{Duration, Instant};

use agentsvc_systems::browser::limits::{BROWSER_FIELDS_MAX, BROWSER_SOURCE_BYTES_MAX};
use reqwest::Url;
use serde_json::{Value, json};

use super::cdp::CallError;
use super::chromium::COMMAND_TIME_MAX;
use super::page::Page;
use crate::tool::toolset::Ended;
use crate::web::html;

/// Finds an element by its selector or text, brings it into view and says where it is.
const FIND: &str = include_str!("find.js");
/// Puts the cursor into a field and selects what is in it.
const FOCUS: &str = include_str!("focus.js");
/// Lists the fields and buttons of a page.
const FIELDS: &str = include_str!("fields.js");
/// The world in which pages are looked at: it has their elements, and objects of its own.
const WORLD: &str = "agentsvc";
/// Time between two looks for an element that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Tries to read a page that goes on to another meanwhile.
const READS_MAX: usize = 3;

/// Why an action failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Of the page or its browser, which may be gone.
    Call(CallError),
    /// A sentence for the model.
    Said(String),
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

fn said<T>(text: impl Into<String>) -> Result<T, Failed> {
    Err(Failed::Said(text.into()))
}

impl Page {
    /// The value of a model's expression among the page's own scripts.
    pub(super) async fn evaluate(&self, expression: &str) -> Result<Value, Failed> {
        self.evaluate_in(None, expression).await
    }

    /// The value of an expression in a world apart: scripts of the page neither see it nor change what it calls.
    pub(super) async fn look(&self, expression: &str) -> Result<Value, Failed> {
        let asked = json!({ "frameId": self.target, "worldName": WORLD });
        let made = self.call("Page.createIsolatedWorld", asked).await?;
        let Some(world) = made["executionContextId"].as_i64() else {
            return said("The browser has no world apart from the page's.");
        };
        self.evaluate_in(Some(world), expression).await
    }

    async fn evaluate_in(&self, world: Option<i64>, expression: &str) -> Result<Value, Failed> {
        let mut asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true });
        if let Some(world) = world {
            asked["contextId"] = world.into();
        }
        let answer = self.call("Runtime.evaluate", asked).await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let text =
                thrown["exception"]["description"].as_str().or(thrown["text"].as_str()).unwrap_or("an exception");
            return said(format!("The script failed: {}", text.chars().take(1_000).collect::<String>()));
        }
        Ok(answer["result"].get("value").cloned().unwrap_or(Value::Null))
    }

    /// Calls a function on a text.
    async fn apply(&self, function: &str, text: &str) -> Result<Value, Failed> {
        self.look(&format!("({function})({})", Value::from(text))).await
    }

    /// Goes to an address, and waits until the page has loaded.
    pub(super) async fn navigate(&self, url: &str) -> Result<(), Failed> {
        self.take_notes();
        let begun = self.begun();
        let went = self.call("Page.navigate", json!({ "url": url })).await;
        let answer = match went {
            Err(CallError::Timeout(secs)) => {
                // Also one whose page does not respond is asked by the browser, not the page.
                let _stopped =
                    self.connection.call(&self.session, "Page.stopLoading", &json!({}), COMMAND_TIME_MAX).await;
                return said(format!("The page did not load within {secs} seconds."));
            }
            answer => answer?,
        };
        if let Some(error) = answer["errorText"].as_str().filter(|text| !text.is_empty()) {
            let why = self.take_notes().pop().unwrap_or_else(|| error.to_owned());
            return said(format!("The page could not be opened. {why}"));
        }
        if answer["isDownload"] == true {
            return said("The address is a download, which is not allowed. Use web_fetch to read a document.");
        }
        self.loaded(begun).await;
        Ok(())
    }

    /// Waits until it has loaded what an action led to, also in a window that it wanted to open.
    async fn loaded(&self, begun: u64) {
        let mut is_loaded = self.settle(begun).await;
        let window = self.take_window().filter(|url| url.starts_with("http:") || url.starts_with("https:"));
        if let Some(url) = window {
            let begun = self.begun();
            self.note("The page opened a window; its address was opened in this page instead.");
            // What becomes of it is what the result shows.
            let _went = self.call("Page.navigate", json!({ "url": url })).await;
            is_loaded = self.settle(begun).await;
        }
        if !is_loaded {
            self.note("The page is still loading.");
        }
    }

    /// Finds an element: where it is, what it is, and whether it is drawn.
    async fn find(&self, selector: &str) -> Result<Value, Failed> {
        let found = self.apply(FIND, selector).await?;
        if found.is_null() {
            return said(format!(
                "No element matches {selector:?}, neither as a CSS selector nor as the text of a link, button or label. Read \
                 the page for its elements."
            ));
        }
        Ok(found)
    }

    /// Clicks an element.
    pub(super) async fn click(&self, selector: &str) -> Result<(), Failed> {
        let begun = self.begun();
        let found = self.find(selector).await?;
        if found["drawn"] == true {
            let (x, y) = (&found["x"], &found["y"]);
            for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
                let count = u8::from(kind != "mouseMoved");
                let button = if kind == "mouseMoved" { "none" } else { "left" };
                let event =
                    json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": count });
                self.call("Input.dispatchMouseEvent", event).await?;
            }
        } else {
            self.look("window.__agentsvc_found && window.__agentsvc_found.click()").await?;
        }
        self.loaded(begun).await;
        Ok(())
    }

    /// Types a text into a field, in place of what is in it. A newline at its end presses Enter.
    pub(super) async fn enter(&self, selector: &str, text: &str) -> Result<(), Failed> {
        let begun = self.begun();
        self.find(selector).await?;
        let text_only = text.strip_suffix('\n').unwrap_or(text);
        let focused = self.apply(FOCUS, text_only).await?;
        match focused.as_str() {
            Some("typed") => {}
            Some("set") => return Ok(()),
            _ => return said(format!("{selector:?} is no field that takes text.")),
        }
        self.call("Input.insertText", json!({ "text": text_only })).await?;
        if text.ends_with('\n') {
            for kind in ["keyDown", "keyUp"] {
                let key = json!({ "type": kind, "key": "Enter", "code": "Enter", "text": "\r",
                    "windowsVirtualKeyCode": 13, "nativeVirtualKeyCode": 13 });
                self.call("Input.dispatchKeyEvent", key).await?;
            }
            self.loaded(begun).await;
        }
        Ok(())
    }

    /// Scrolls by so many pixels.
    pub(super) async fn scroll(&self, x: i64, y: i64) -> Result<String, Failed> {
        let script = format!(
            "window.scrollBy({x}, {y}); `Scrolled to ${{Math.round(scrollX)}}, ${{Math.round(scrollY)}} of a page of \
             ${{document.documentElement.scrollWidth}} x ${{document.documentElement.scrollHeight}} pixels.`"
        );
        Ok(self.look(&script).await?.as_str().unwrap_or("Scrolled.").to_owned())
    }

    /// Waits for an element. False when it does not come.
    pub(super) async fn wait(&self, selector: &str, within: Duration) -> Result<bool, Failed> {
        let look = format!("!!document.querySelector({})", Value::from(selector));
        let until = Instant::now() + within;
        loop {
            match self.look(&look).await {
                Ok(found) if found == true => return Ok(true),
                // The page may be on its way to another.
                Ok(_) | Err(Failed::Call(CallError::Refused(_))) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Goes back to the page before.
    pub(super) async fn back(&self) -> Result<(), Failed> {
        let history = self.call("Page.getNavigationHistory", json!({})).await?;
        let entry = history["currentIndex"].as_u64().and_then(|index| index.checked_sub(1));
        let entry = entry.and_then(|index| history["entries"].get(usize::try_from(index).ok()?));
        let Some(entry) = entry.filter(|entry| entry["url"] != "about:blank") else {
            return said("There is no page to go back to.");
        };
        let begun = self.begun();
        self.call("Page.navigateToHistoryEntry", json!({ "entryId": entry["id"] })).await?;
        self.loaded(begun).await;
        Ok(())
    }

    /// A picture of what is visible, PNG in base64.
    pub(super) async fn screenshot(&self) -> Result<String, Failed> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" })).await?;
        match shot["data"].as_str() {
            Some(data) => Ok(data.to_owned()),
            None => said("The browser made no screenshot."),
        }
    }

    /// Its address and title, which the browser knows also when the page does not respond.
    pub(super) async fn place(&self) -> Result<(String, String), CallError> {
        let asked = json!({ "targetId": self.target });
        let info = self.connection.call("", "Target.getTargetInfo", &asked, COMMAND_TIME_MAX).await?;
        let text = |key: &str| info["targetInfo"][key].as_str().unwrap_or_default().to_owned();
        Ok((text("url"), text("title")))
    }

    /// What the result of an action shows: where the page is, what happened, its text, and its fields.
    pub(super) async fn shown(&self, offset: usize, chars_max: usize) -> Result<Ended, Failed> {
        let (url, title) = self.place().await?;
        let mut head = format!("URL: {url}\nTitle: {title}\n");
        let (text, fields) = self.content(&url).await?;
        for note in self.take_notes() {
            head += &format!("{note}\n");
        }
        let chars = text.chars().count();
        if offset > 0 && offset >= chars {
            return said(format!("The page has only {chars} characters; offset {offset} is beyond its end."));
        }
        let part: String = text.chars().skip(offset).take(chars_max).collect();
        let end = offset + part.chars().count();
        if offset > 0 || end < chars {
            head += &format!("Characters {offset} to {end} of {chars}");
            let more = format!("; continue with browser_read_page and offset {end}\n");
            head += if end < chars { &more } else { "\n" };
        }
        let shown = if part.is_empty() { "(no text)" } else { &part };
        let fields = if fields.is_empty() {
            fields
        } else {
            format!("\n\nFields and buttons (selector: what it is):\n{fields}")
        };
        Ok(Ended::web(format!("{head}\n{shown}{fields}"), &part))
    }

    async fn content(&self, url: &str) -> Result<(String, String), Failed> {
        let source = format!(
            "[(document.documentElement ? document.documentElement.outerHTML : '').slice(0, {BROWSER_SOURCE_BYTES_MAX}), \
             ({FIELDS})({BROWSER_FIELDS_MAX})]"
        );
        let mut tries = 1;
        let read = loop {
            match self.look(&source).await {
                Err(Failed::Call(CallError::Refused(_))) if tries < READS_MAX => {
                    tries += 1;
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                read => break read?,
            }
        };
        let (html, fields) = (read[0].as_str().unwrap_or_default().to_owned(), read[1].as_str().unwrap_or_default());
        let base = Url::parse(url).ok();
        // Megabytes to read: not on the runtime's threads.
        let text = tokio::task::spawn_blocking(move || html::read(&html, base.as_ref()).text).await;
        match text {
            Ok(text) => Ok((text, fields.to_owned())),
            Err(_) => said("The page could not be read."),
        }
    }
}
