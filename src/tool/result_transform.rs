//! What changes results of tools before the model reads them: plugins.

use std::sync::Arc;

use agentsvc_components::turn::effect::ToolRun;
use futures_util::future::BoxFuture;

/// A result as it became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transformed {
    /// Its text.
    pub(crate) text: String,
    /// It is not what the tool gave.
    pub(crate) is_changed: bool,
}

type Wants = dyn Fn() -> bool + Send + Sync;
type Change = dyn Fn(Arc<ToolRun>, String, bool) -> BoxFuture<'static, Result<Transformed, String>> + Send + Sync;

/// Changes results of tools. Kept in the settings; the default changes none.
#[derive(Clone, Default)]
pub(crate) struct ResultTransform(Option<(Arc<Wants>, Arc<Change>)>);

impl ResultTransform {
    /// `wants` says whether any are changed, `change` changes one: the call, its result, and whether it failed.
    pub(crate) fn new(
        wants: impl Fn() -> bool + Send + Sync + 'static,
        change: impl Fn(Arc<ToolRun>, String, bool) -> BoxFuture<'static, Result<Transformed, String>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Some((Arc::new(wants), Arc::new(change))))
    }

    /// The result for the model.
    ///
    /// # Errors
    /// A sentence: the result must not be used.
    pub(super) async fn of(&self, run: &Arc<ToolRun>, text: String, is_error: bool) -> Result<Transformed, String> {
        match &self.0 {
            Some((wants, change)) if wants() => change(Arc::clone(run), text, is_error).await,
            _ => Ok(Transformed { text, is_changed: false }),
        }
    }
}
