//! What comes back from models and tools.

use serde::{Deserialize, Serialize};

use crate::kernel::attempt::Attempt;
use crate::kernel::error_code::ErrorCode;
use crate::kernel::outcome::Outcome;
use crate::kernel::taint::UntrustedContent;
use crate::session::message::{Block, ToolCall, Usage};
use crate::turn::error_codes;
use crate::usage::{CallUse, TokensMax};

/// A model call ended. Dropped when its attempt is stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelOutcome(pub Attempt, pub ModelEnd);

impl Outcome for ModelOutcome {
    const NAME: &'static str = "Model";
}

/// A tool call ended. Dropped when its attempt is stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome(pub Attempt, pub ToolEnd);

impl Outcome for ToolOutcome {
    const NAME: &'static str = "Tool";
}

/// How a model call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelEnd {
    /// The model answered: text, tool calls or both.
    Answered(ModelAnswer),
    /// No answer; retries are used up.
    Failed(ModelFailure),
    /// The world asked to give up; what was written so far.
    Aborted(ModelAnswer),
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Text and tool calls, in order.
    pub blocks: Vec<Block>,
    /// Tokens, as the provider counts them (estimated where it does not).
    pub usage: Usage,
    /// The most that they can be; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<TokensMax>,
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// Why the model stopped.
    pub stop: StopReason,
    /// Earlier messages had to be left out of the prompt: the session is to be compacted.
    pub pressed: bool,
    /// What was asked before without success: other models, and tries that broke off.
    pub before: Vec<CallUse>,
}

/// Why a model stopped writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    #[default]
    End,
    /// It wants tools to run.
    ToolUse,
    /// It reached its token limit.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// The class.
    pub code: FailureCode,
    /// One sentence for people; holds no secrets.
    pub message: String,
    /// What was asked, each model and each try that broke off; empty when nothing was.
    #[serde(default)]
    pub spent: Vec<CallUse>,
}

/// The classes of model failure; `as_str` is the `code` of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// No key, or the provider refused it.
    ProviderAuth,
    /// 429 after every retry.
    ProviderRateLimited,
    /// No connection after every retry.
    ProviderUnreachable,
    /// No answer in time.
    ProviderTimeout,
    /// The provider failed (5xx) after every retry, or broke off mid-answer.
    ProviderError,
    /// The provider's answer could not be read.
    ProviderProtocol,
    /// The provider refused the request (4xx).
    ProviderRefused,
    /// The provider or model is not known here.
    UnknownProvider,
    /// The daemon's own store or performer failed.
    Internal,
    /// The tools leave no room for a prompt; nothing was sent.
    PromptTooLarge,
    /// A plugin failed that wants its turns to fail with it; nothing was sent.
    PluginFailed,
}

impl FailureCode {
    /// The `code` of the API.
    #[must_use]
    pub const fn error_code(self) -> ErrorCode {
        match self {
            Self::ProviderAuth => error_codes::PROVIDER_AUTH,
            Self::ProviderRateLimited => error_codes::PROVIDER_RATE_LIMITED,
            Self::ProviderUnreachable => error_codes::PROVIDER_UNREACHABLE,
            Self::ProviderTimeout => error_codes::PROVIDER_TIMEOUT,
            Self::ProviderError => error_codes::PROVIDER_ERROR,
            Self::ProviderProtocol => error_codes::PROVIDER_PROTOCOL,
            Self::ProviderRefused => error_codes::PROVIDER_REFUSED,
            Self::UnknownProvider => error_codes::UNKNOWN_PROVIDER,
            Self::Internal => error_codes::INTERNAL,
            Self::PromptTooLarge => error_codes::PROMPT_TOO_LARGE,
            Self::PluginFailed => error_codes::PLUGIN_FAILED,
        }
    }

    /// The word of the code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.error_code().as_str()
    }
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnd {
    /// The log row its result goes to.
    pub index: u32,
    /// The call.
    pub call: ToolCall,
    /// Text or JSON text for the model.
    pub content: String,
    /// The whole result, when `content` is an excerpt of it; stored beside the row.
    pub whole: Option<String>,
    /// A note to the owner that the call left.
    pub notice: Option<String>,
    /// Untrusted content that came with it.
    pub brought: Option<Box<UntrustedContent>>,
    /// How it ended.
    pub status: ToolStatus,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ToolStatus {
    /// With a result.
    Ok,
    /// It failed and `content` says why.
    Error,
    /// It did not run: there is no such tool, or the agent may not call it; `content` says why.
    Refused,
    /// The daemon died while it ran, and it must not run twice: nobody knows whether it took effect.
    Unknown,
}
