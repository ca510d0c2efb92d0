//! What the front is told at start. The daemon fills it from the configuration; this room reads no file.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use agentsvc_components::kernel::limit;

/// Everything the front is told at start.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// The bearer key; empty leaves the API open to local callers.
    pub api_key: String,
    /// Origins that may read answers across origins, such as `https://chat.example.org`; `*` for any.
    pub cors_origin: Vec<String>,
    /// Cost units per second and client; 0 for no limit. The burst is twice that.
    pub rate_limit_per_second: u32,
    /// Starts of this home so far that followed a crash.
    pub restart_count: u64,
    /// Version and build details.
    pub build: Build,
    /// Bounds of the server.
    pub limits: Limits,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4545)),
            api_key: String::new(),
            cors_origin: Vec::new(),
            rate_limit_per_second: 1_000,
            restart_count: 0,
            build: Build::default(),
            limits: Limits::default(),
        }
    }
}

/// What was built (spec 2, GET /api/version).
#[derive(Clone, Debug)]
pub struct Build {
    /// The version, such as `0.1.0`.
    pub version: &'static str,
    /// The day it was built, `YYYY-MM-DD`; `unknown` when the build did not say.
    pub build_date: &'static str,
    /// The commit; `unknown` when the build did not say.
    pub git_sha: &'static str,
    /// The compiler; `unknown` when the build did not say.
    pub rust_version: &'static str,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build_date: option_env!("AGENTSVC_BUILD_DATE").unwrap_or("unknown"),
            git_sha: option_env!("AGENTSVC_GIT_SHA").unwrap_or("unknown"),
            rust_version: option_env!("AGENTSVC_RUST_VERSION").unwrap_or("unknown"),
        }
    }
}

/// Bounds of the server; the defaults are those of [`limit`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections. More: 503 and closed.
    pub connections_max: usize,
    /// Bytes of large bodies and messages that are held at once. More: 503.
    pub bodies_bytes_max: usize,
    /// Bytes of large answers that wait for their clients; a quarter of it for one client. More: 503. Connections that have
    /// not shown the key have half of both.
    pub answers_bytes_max: usize,
    /// Bytes of a request's headers. More: 431.
    pub header_bytes_max: usize,
    /// Bytes of a request's path and query. More: 414.
    pub uri_bytes_max: usize,
    /// Time for a client to send its headers. Longer: closed.
    pub header_time_max: Duration,
    /// Time for a client to send its body. Longer: 408.
    pub body_time_max: Duration,
    /// Time a connection may stay open between requests.
    pub idle_time_max: Duration,
    /// Time a client may take nothing of an answer that is ready. Longer: its stream or connection is cut off.
    pub stall_time_max: Duration,
    /// The same while answers take more than half of the bytes that they may, those of its client or all together.
    pub stall_time_crowded_max: Duration,
    /// Time a request waits for a world that is loading. Longer: 503.
    pub loading_time_max: Duration,
    /// Time for requests in flight to end when the daemon stops. Longer: cut off.
    pub drain_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: limit::CONNECTIONS_MAX,
            bodies_bytes_max: limit::BODIES_BYTES_MAX,
            answers_bytes_max: limit::ANSWERS_BYTES_MAX,
            header_bytes_max: limit::HEADER_BYTES_MAX,
            uri_bytes_max: limit::URI_BYTES_MAX,
            header_time_max: Duration::from_secs(limit::HEADER_SECS_MAX),
            body_time_max: Duration::from_secs(limit::BODY_SECS_MAX),
            idle_time_max: Duration::from_secs(limit::IDLE_SECS_MAX),
            stall_time_max: Duration::from_secs(limit::STALL_SECS_MAX),
            stall_time_crowded_max: Duration::from_secs(limit::STALL_CROWDED_SECS_MAX),
            loading_time_max: Duration::from_millis(limit::LOADING_MS_MAX.into()),
            drain_time_max: Duration::from_secs(limit::DRAIN_SECS_MAX),
        }
    }
}
