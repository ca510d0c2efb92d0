//! Asking models: the drivers, and the way of a call through them.
//!
//! To add a driver: one file with an `impl Driver`, one variant of [`provider::DriverKind`], one line in [`Drivers`].

pub mod builtin;
pub(crate) mod call;
mod catalog;
pub mod draft;
pub mod error;
pub mod http;
pub mod images;
pub mod openai;
pub mod provider;
pub mod retry;

use agentsvc_components::effect::Attempt;
use agentsvc_systems::prompt::Prompt;
use futures_util::future::BoxFuture;

use super::tools::ToolSpec;
use builtin::Builtin;
use draft::Draft;
use error::CallError;
use http::Timeouts;
use images::Images;
use openai::OpenAi;
use provider::{DriverKind, Target};
use retry::RetryPolicy;

/// Timeouts and retries of model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// How long one try may take.
    pub timeouts: Timeouts,
    /// How often and when a call is tried again.
    pub retry: RetryPolicy,
}

/// One try of a call, in neutral form.
#[derive(Debug)]
pub struct Request<'a> {
    /// Which call of which turn.
    pub attempt: Attempt,
    /// Where it goes.
    pub target: &'a Target,
    /// Sampling temperature, where the manifest sets one.
    pub temperature: Option<f32>,
    /// Bound of the answer in tokens, where the manifest sets one.
    pub max_tokens: Option<u32>,
    /// What is asked.
    pub prompt: &'a Prompt,
    /// The images of the prompt.
    pub images: &'a Images,
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    /// Someone reads the answer as it is written.
    pub streaming: bool,
}

/// Speaks one wire protocol.
pub trait Driver: Send + Sync {
    /// Makes one try and writes the answer into `draft` as it comes; `Ok` when it is whole.
    ///
    /// The future may be dropped at any point: the draft then holds what was written so far. Retries are not the
    /// driver's business; it says in the error whether one is worth it.
    fn call<'a>(&'a self, request: &'a Request<'a>, draft: &'a mut Draft) -> BoxFuture<'a, Result<(), CallError>>;
}

/// Every driver there is.
#[derive(Debug)]
pub struct Drivers {
    builtin: Builtin,
    openai: OpenAi,
}

impl Drivers {
    /// The drivers, with nothing opened yet.
    #[must_use]
    pub const fn new(settings: &ModelSettings) -> Self {
        Self { builtin: Builtin, openai: OpenAi::new(settings.timeouts) }
    }

    /// The driver of a kind.
    #[must_use]
    pub fn get(&self, kind: DriverKind) -> &dyn Driver {
        match kind {
            DriverKind::Builtin => &self.builtin,
            DriverKind::OpenAi => &self.openai,
        }
    }
}
