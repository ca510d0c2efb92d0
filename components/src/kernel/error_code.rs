//! Error codes: stable words for programs, each with its meaning. A domain declares its codes with
//! [`error_codes!`](crate::error_codes), and nothing else makes one: an error has a documented code or none.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// The `code` of an error.
#[derive(Clone, Copy)]
pub struct ErrorCode(&'static Meaning);

/// What the reference says about an error code.
#[derive(Debug)]
pub struct Meaning {
    /// The word on the wire.
    pub name: &'static str,
    /// The HTTP statuses it comes with, the usual one first; empty when it is found in events and tool results only.
    pub statuses: &'static [u16],
    /// What happened.
    pub what: &'static str,
    /// What the caller can do.
    pub remedy: &'static str,
}

impl ErrorCode {
    /// For [`error_codes!`](crate::error_codes) only.
    #[doc(hidden)]
    #[must_use]
    pub const fn declared(meaning: &'static Meaning) -> Self {
        Self(meaning)
    }

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0.name
    }

    /// What it means.
    #[must_use]
    pub const fn meaning(self) -> &'static Meaning {
        self.0
    }

    /// The usual HTTP status; 500 for codes of events.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self.0.statuses {
            [status, ..] => *status,
            [] => 500,
        }
    }
}

impl Deref for ErrorCode {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.name
    }
}

impl PartialEq for ErrorCode {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ErrorCode {}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.name, f)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

/// Declares error codes and the list `ALL` of them, which goes into the `DOMAIN`. The doc comment says what happened,
/// the last text what the caller can do.
///
/// ```
/// agentsvc_components::error_codes! {
///     /// A task with this title exists.
///     TASK_EXISTS = "task_exists", [409], "Choose another title.";
/// }
/// assert_eq!((TASK_EXISTS.as_str(), TASK_EXISTS.status(), ALL.len()), ("task_exists", 409, 1));
/// ```
#[macro_export]
macro_rules! error_codes {
    ($($(#[doc = $what:literal])+ $name:ident = $code:literal, [$($status:literal),*], $remedy:literal;)+) => {
        $(
            $(#[doc = $what])+
            pub const $name: $crate::kernel::error_code::ErrorCode =
                $crate::kernel::error_code::ErrorCode::declared(&$crate::kernel::error_code::Meaning {
                    name: $code,
                    statuses: &[$($status),*],
                    what: concat!($($what),+),
                    remedy: $remedy,
                });
        )+

        /// Every code declared here.
        pub const ALL: &[$crate::kernel::error_code::ErrorCode] = &[$($name),+];
    };
}

pub(crate) use error_codes;
