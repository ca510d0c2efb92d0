//! The tools `browser_*`.

mod act;
mod look;

use std::sync::Arc;
use std::time::Instant;

use agentsvc_api::upload::files::Files;
use agentsvc_components::kernel::taint::Taint;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::actions::Failed;
use super::config::Browser;
use super::manager::BrowserManager;
use super::page::Page;
use crate::tool::toolset::{Context, Ended, Entry, Need, Tool, input, raw_schema};

/// Their place among all tools.
const ORDER: u8 = 12;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A call on a page.
struct Act<I> {
    input: I,
    page: Arc<Page>,
    context: Context,
    /// Characters of page text in the result.
    chars_max: usize,
    files: Option<Arc<dyn Files>>,
}

/// What a tool does to the page of its session.
type Does<I> = fn(Act<I>) -> BoxFuture<'static, Result<Ended, Failed>>;

/// Says why not, before anything is started for the call.
type Allows<I> = fn(&I, &Context) -> Result<(), String>;

/// What all of them share.
#[derive(Clone)]
struct Maker {
    manager: Arc<BrowserManager>,
    files: Option<Arc<dyn Files>>,
}

/// All of them.
pub(super) fn all(manager: &Arc<BrowserManager>, files: Option<&Arc<dyn Files>>) -> Vec<Arc<Entry>> {
    let maker = Maker { manager: Arc::clone(manager), files: files.cloned() };
    act::tools(&maker).into_iter().chain(look::tools(&maker)).map(Entry::new).collect()
}

impl Maker {
    /// A tool that acts on the page of its session. With `opens` one is opened where there is none, if that allows the call.
    fn tool<I>(&self, name: &str, description: &str, opens: Option<Allows<I>>, does: Does<I>) -> Tool
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let maker = self.clone();
        let run = move |context: Context, text: String| -> BoxFuture<'static, Result<Ended, String>> {
            let maker = maker.clone();
            Box::pin(async move {
                let input: I = input(&text)?;
                maker.run(context, input, opens, does).await
            })
        };
        Tool::brought(name.to_owned(), description.to_owned(), raw_schema::<I>(), run).needs(Need::Network).order(ORDER)
    }

    async fn run<I>(
        &self,
        context: Context,
        input: I,
        opens: Option<Allows<I>>,
        does: Does<I>,
    ) -> Result<Ended, String> {
        if let Some(allows) = opens {
            allows(&input, &context)?;
        }
        let page = self.manager.page(&context, opens.is_some()).await?;
        let _use = page.begin_use(Instant::now());
        let _turn = page.turn().await;
        let key = (context.run.agent, context.run.session);
        let chars_max = self.manager.settings.get::<Browser>().max_chars;
        let act = Act { input, page: Arc::clone(&page), context, chars_max, files: self.files.clone() };
        let done = tokio::select! {
            biased;
            () = page.ended() => None,
            done = does(act) => Some(done),
        };
        page.touch();
        let Some(done) = done else { return Ok(self.manager.taken(&key, &page)) };
        let text = match done {
            Ok(ended) => return Ok(ended),
            Err(Failed::Call(error)) => self.manager.failed(&key, &page, error),
            Err(Failed::Said(text)) => text,
        };
        // It may say what the page says.
        Ok(Ended::Failure { text, taint: Taint::WEB })
    }
}
