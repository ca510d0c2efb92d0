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

/// Declares limits and the list of them, which goes into the `DOMAIN`. The doc comment says what each bounds, in which
/// unit, and what happens when it is reached.
///
/// ```
/// agentsvc_components::limits! {
///     pub const ALL;
///     /// Doors there may be. More: 429.
///     pub const DOORS_MAX: usize = 100;
/// }
/// assert_eq!((DOORS_MAX, ALL[0].name, ALL[0].value), (100, "DOORS_MAX", 100));
/// ```
#[macro_export]
macro_rules! limits {
    ($shown:vis const $all:ident; $($(#[doc = $about:literal])+ pub const $name:ident: $kind:ty = $value:expr;)+) => {
        $(
            $(#[doc = $about])+
            pub const $name: $kind = $value;
        )+

        /// Every limit declared here.
        $shown const $all: &[$crate::kernel::limit::Limit] = &[
            $($crate::kernel::limit::Limit { name: stringify!($name), value: $name as u64, about: concat!($($about),+) }),+
        ];
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
