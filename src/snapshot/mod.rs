//! The whole world outside its database: rows in a file.
//!
//! [`rows`] is the form: one sequential, checked stream of store rows, which snapshots, backups, rehearsals and
//! replays have in common. The rows come from a [`StoreView`](crate::kernel::store::view::StoreView), which one committed
//! batch stands behind while the world goes on, and go into [`Store::build`](crate::kernel::store::Store::build) or into
//! [`from_rows`](crate::kernel::store::load::from_rows).
//!
//! | part | what it does |
//! |------|--------------|
//! | [`rows`] | the form |
//! | [`write`] | a view of the store into a compressed file |
//! | [`read`] | such a file into records, or into a store |
//! | [`shelf`] | the snapshots of a home: which there are, which go |
//! | `stats` | counters for the metrics page |

pub(crate) mod cli;
pub mod shelf;
pub(crate) mod stats;
pub(crate) mod worlds;
