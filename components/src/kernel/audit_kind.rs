//! Kinds of audit log entries: a domain declares its own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What an entry is about: its `event_type`. What stands in `details` beside it is listed in `docs/audit.md`. A domain
/// declares its kinds with [`audit_kinds!`](crate::audit_kinds).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditKind(Cow<'static, str>);

impl AuditKind {
    /// For [`audit_kinds!`](crate::audit_kinds) only.
    #[doc(hidden)]
    #[must_use]
    pub const fn declared(word: &'static str) -> Self {
        Self(Cow::Borrowed(word))
    }

    /// `event_type` of the entry.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A kind of entries, for the reference.
#[derive(Clone, Debug)]
pub struct AuditAction {
    /// The kind.
    pub kind: AuditKind,
    /// When an entry of this kind is written.
    pub about: &'static str,
}

/// Declares kinds of audit log entries and the list `ALL` of them, which goes into the `DOMAIN`. The doc comment says when
/// such an entry is written.
///
/// ```
/// agentsvc_components::audit_kinds! {
///     /// A door was opened.
///     DOOR_OPENED = "door_opened";
/// }
/// assert_eq!((DOOR_OPENED.as_str(), ALL.len()), ("door_opened", 1));
/// ```
#[macro_export]
macro_rules! audit_kinds {
    ($($(#[doc = $about:literal])+ $name:ident = $word:literal;)+) => {
        $(
            $(#[doc = $about])+
            pub const $name: $crate::kernel::audit_kind::AuditKind = $crate::kernel::audit_kind::AuditKind::declared($word);
        )+

        /// Every kind declared here.
        pub const ALL: &[$crate::kernel::audit_kind::AuditAction] =
            &[$($crate::kernel::audit_kind::AuditAction { kind: $name, about: concat!($($about),+) }),+];
    };
}
