//! How calls to providers go: what is known of each since the daemon started.

use agentsvc_components::Timestamp;
use agentsvc_components::turn::outcome::FailureCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// What calls found out about providers.
pub trait ProviderCalls: Send + Sync + 'static {
    /// What is known of the provider called `name`; `None` if it was not asked yet.
    fn health(&self, name: &str) -> Option<CallHealth>;

    /// The key or the endpoint of a provider was changed, or a test succeeded: its last error is of the past.
    fn forget_error(&self, name: &str);
}

agentsvc_components::enum_words! {
    /// How calls to a provider go.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CallState [as_str] {
        /// The newest call succeeded.
        #[default]
        Ok = "ok",
        /// The newest call failed.
        Failing = "failing",
        /// The provider limits its calls; they wait.
        Limited = "limited",
        /// It failed again and again; calls are paused.
        Paused = "paused",
    }
}

/// How calls to a provider go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallHealth {
    /// In one word.
    pub state: CallState,
    /// When calls go on, if they are held back.
    pub resumes_at: Option<Timestamp>,
    /// Calls that wait for it.
    pub waiting: u32,
    /// When a call succeeded last.
    pub last_success_at: Option<Timestamp>,
    /// The newest error since.
    pub last_error: Option<CallFault>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFault {
    /// The class.
    pub code: FailureCode,
    /// One sentence for people; holds no secrets.
    pub message: Box<str>,
    /// When.
    pub at: Timestamp,
}

shape! {
    /// How calls to a provider have gone since the daemon started.
    pub(crate) struct ProviderHealth from health: CallHealth {
        /// `ok`; `failing`: the newest call failed; `limited`: the provider limits its calls, and they wait; `paused`: it failed
        /// again and again, and is not asked for a while.
        state: &'static str = health.state.as_str(),
        /// When calls go on; null if they are not held back.
        resumes_at: Option<Moment> = health.resumes_at.map(Moment),
        /// Calls that wait for it.
        waiting: u32 = health.waiting,
        last_success_at: Option<Moment> = health.last_success_at.map(Moment),
        /// The newest error; null if a call has succeeded, or the key or endpoint was changed, since.
        last_error: Option<ProviderFault> = health.last_error.map(ProviderFault::from),
    }
}

shape! {
    /// Why a call failed.
    pub(crate) struct ProviderFault from fault: CallFault {
        /// Error code, such as `provider_auth`.
        code: &'static str = fault.code.as_str(),
        error: Box<str> = fault.message,
        at: Moment = Moment(fault.at),
    }
}

/// A provider with how its calls go.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WithCalls<T> {
    #[serde(flatten)]
    pub(crate) of: T,
    /// How its calls have gone since the daemon started; null if it was not asked yet.
    pub(crate) calls: Option<ProviderHealth>,
}
