//! Every limit, with what happens when it is reached.

/// A limit, for the reference.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The name of its constant.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// What it bounds, in which unit, and what happens when it is reached.
    pub about: &'static str,
}

/// Declares limits and the list `ALL` of them.
macro_rules! limits {
    ($($(#[doc = $about:literal])+ pub const $name:ident: $kind:ty = $value:expr;)+) => {
        $(
            $(#[doc = $about])+
            pub const $name: $kind = $value;
        )+

        pub(super) const ALL: &[Limit] =
            &[$(Limit { name: stringify!($name), value: $name as u64, about: concat!($($about),+) }),+];
    };
}

mod automation;
mod http;
mod records;
mod turns;
mod whole;

pub use automation::*;
pub use http::*;
pub use records::*;
pub use turns::*;
pub use whole::*;

/// Every limit, in groups with a title.
pub const GROUPS: &[(&str, &[Limit])] = &[
    ("World, sessions, turns, tools", turns::ALL),
    ("Approvals and automation", automation::ALL),
    ("Requests, streams, files", http::ALL),
    ("Models, memory, usage, audit log", records::ALL),
    ("Backups, snapshots, rehearsals, queries", whole::ALL),
];
