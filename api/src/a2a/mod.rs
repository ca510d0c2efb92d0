//! A2A: the agents of this daemon as others reach them by the Agent2Agent protocol, and those of others as agents here reach
//! them (spec 3, A2A).
//!
//! | module | what it does |
//! |---|---|
//! | `host` | what the daemon provides: settings, random ids, sealed secrets, addresses that may be reached |
//! | `gate` | who may send how much: rates, and requests that wait |
//! | `offer` | which agents are offered |
//! | `card` | the agent card and the list of agents |
//! | `message` | a message in any of the dialects becomes a command |
//! | `render` | a task in any of the dialects |
//! | `rpc` | JSON-RPC |
//! | `stream` | a task as server-sent events |
//! | `push` | push notification configurations |
//! | `rest` | the routes that are no JSON-RPC |
//! | `outbound` | agents of others |

pub(crate) mod card;
pub mod error_codes;
pub(crate) mod gate;
pub mod host;
pub(crate) mod message;
pub(crate) mod offer;
pub mod outbound;
pub(crate) mod push;
pub mod render;
pub(crate) mod rest;
pub(crate) mod rpc;
pub(crate) mod stream;

use agentsvc_systems::a2a::limits;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("a2a")
    .admin_changes()
    .uses(&["agent", "injection", "mcp", "turn"])
    .error_codes(error_codes::ALL)
    .metrics(gate::gather)
    .routes(&[card::ROUTES, rest::ROUTES, rpc::ROUTES, outbound::routes::ROUTES]);
