//! External agents: discovered by the operator, called by the operator and by agents (spec 3, A2A, external agents).
//!
//! | module | what it does |
//! |---|---|
//! | `host` | what the daemon provides: cards are fetched, headers sealed |
//! | `shape` | the bodies |
//! | `routes` | the routes |

pub mod host;
pub(crate) mod routes;
pub(crate) mod shape;
