//! Why a command was refused. Domain failures are replies, not panics.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error_code::ErrorCode;
use super::money::Micros;

/// The class of a refusal; the API maps each to one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request itself is wrong (400).
    BadRequest,
    /// The thing acts for someone else (403).
    Forbidden,
    /// No such thing (404).
    NotFound,
    /// The state of the world forbids it now (409).
    Conflict,
    /// The caller has too much in flight or has run out of budget (429).
    TooMany,
    /// The daemon is loading, draining or full; trying again will help (503).
    Busy,
    /// The model, a tool or the store failed (500).
    Failed,
    /// The disk has no room for it (507).
    NoRoom,
}

/// A refusal that a person can act on. It changes nothing in the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The class.
    pub kind: RefusalKind,
    /// One sentence for people; becomes `error` in the response body.
    pub message: String,
    /// The request field at fault, where there is one.
    pub field: Option<String>,
    /// A stable word for programs, such as `turn_stopped`, where there is one.
    pub code: Option<ErrorCode>,
    /// Seconds after which a retry may succeed (`Retry-After`).
    pub retry_after_secs: Option<u32>,
    /// More fields of the response body, in order.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub details: Box<[(String, Detail)]>,
}

/// The value of a further field of the response body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// A text.
    Text(String),
    /// A count.
    Count(u64),
    /// An amount of money, in dollars in the body.
    Money(Micros),
}

impl Refusal {
    /// A refusal of `kind` with `message` and nothing more.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), field: None, code: None, retry_after_secs: None, details: Box::default() }
    }

    /// A refusal with `code`, of the kind that goes with its usual status.
    pub fn of(code: ErrorCode, message: impl Into<String>) -> Self {
        let kind = match code.status() {
            400 => RefusalKind::BadRequest,
            403 => RefusalKind::Forbidden,
            404 => RefusalKind::NotFound,
            409 => RefusalKind::Conflict,
            429 => RefusalKind::TooMany,
            503 => RefusalKind::Busy,
            507 => RefusalKind::NoRoom,
            _ => RefusalKind::Failed,
        };
        Self::new(kind, message).with_code(code)
    }

    /// The value of `field` is wrong.
    pub fn bad_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(RefusalKind::BadRequest, message) }
    }

    /// There is no such `what` (`agent`, `session`...) as `id`.
    pub fn not_found(what: &str, id: impl fmt::Display) -> Self {
        Self::new(RefusalKind::NotFound, format!("{what} not found: {id}"))
    }

    /// The state of the world forbids it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Conflict, message)
    }

    /// Full or not ready; try again after `retry_after_secs` seconds.
    pub fn busy(message: impl Into<String>, retry_after_secs: u32) -> Self {
        Self { retry_after_secs: Some(retry_after_secs), ..Self::new(RefusalKind::Busy, message) }
    }

    /// There is no room for more of it until some goes; try again in a minute.
    pub fn full(message: impl Into<String>, code: ErrorCode) -> Self {
        Self { retry_after_secs: Some(60), ..Self::new(RefusalKind::TooMany, message) }.with_code(code)
    }

    /// The same refusal with a further field of the response body.
    #[must_use]
    pub fn with(mut self, key: &str, value: Detail) -> Self {
        let mut details = std::mem::take(&mut self.details).into_vec();
        details.push((key.to_owned(), value));
        self.details = details.into();
        self
    }

    /// The same refusal with a stable code for programs.
    #[must_use]
    pub const fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = Some(code);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
