//! The routes of terminals.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use hyper::header::{HeaderValue, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::host::{Opened, Size, TerminalPolicy, Terminals};
use super::message::{self, SIZE};
use super::output::{Format, Output};
use super::session::{Session, Start};
use super::{audit_kinds, error_codes};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::error_codes::ORIGIN as FOREIGN;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::server::Line;
use crate::http::{cookie, handshake, origin, principal, response_headers};

/// What a terminal costs the client's rate budget: it starts a process.
const COST: u32 = 10;
/// The subprotocol by which a page asks for frames.
const JSON: &str = "json";

pub(super) const ROUTES: &[Route] = &[
    Route::get("/api/terminal/health", "Get whether terminals can be opened", |call| Box::pin(health(call)))
        .replies(&[Reply::json::<Health>(200, "the state of terminals")]),
    Route::get("/api/terminal/ws", "Open a terminal over a WebSocket", |call| Box::pin(open(call)))
        .socket()
        .cost(COST)
        .query::<TerminalQuery>()
        .replies(&[
            Reply::empty(101, "the connection is upgraded to a WebSocket"),
            Reply::error(403, "terminals are off, or not for this origin or for clients on other machines"),
            Reply::error(426, "the request is not a WebSocket upgrade of version 13"),
            Reply::error(429, "the limit of terminals is reached"),
        ]),
];

/// Query parameters of the handshake.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TerminalQuery {
    /// Characters of a line, 1 to 1000. Default: 120.
    cols: Option<i64>,
    /// Lines, 1 to 500. Default: 40.
    rows: Option<i64>,
    /// `text` or `json`. Default: `text`, or `json` with the subprotocol `json`.
    format: Option<String>,
    /// API key, for clients that cannot set the header `authorization` or the subprotocols `bearer, <key>`.
    #[allow(dead_code, reason = "its shape is for the OpenAPI document")]
    token: Option<String>,
}

/// The state of terminals.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Whether terminals can be opened from here.
    ok: bool,
    /// Whether they are on.
    enabled: bool,
    /// Whether clients on other machines can open them.
    allow_remote: bool,
    /// Always false: a terminal is not kept when its client goes.
    tmux: bool,
    /// Terminals that can be open at once.
    max_windows: usize,
    /// Terminals that are open.
    sessions: usize,
    /// The operating system.
    os: &'static str,
}

/// The terminals that are open.
#[derive(Default)]
struct Sessions(AtomicUsize);

/// The place of one terminal.
struct Seat(Arc<Sessions>);

impl Seat {
    fn take(sessions: &Arc<Sessions>, most: usize) -> Option<Self> {
        let more = |count| (count < most).then_some(count + 1);
        sessions.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(Arc::clone(sessions)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn health(call: Call) -> Result<Response, Error> {
    let policy = call.api.service::<dyn Terminals>()?.policy();
    reply::ok(&Health {
        ok: check(&call, &policy).is_ok(),
        enabled: policy.is_enabled,
        allow_remote: policy.allow_remote,
        tmux: false,
        max_windows: policy.sessions_max,
        sessions: call.api.state::<Sessions>().0.load(Ordering::Relaxed),
        os: std::env::consts::OS,
    })
}

/// May this client open a terminal?
///
/// # Errors
/// 403.
fn check(call: &Call, policy: &TerminalPolicy) -> Result<(), Error> {
    if !policy.is_enabled {
        let text = "terminals are off; set `[terminal] enabled = true` in config.toml";
        return Err(Error::of(error_codes::TERMINAL_OFF, text));
    }
    if !policy.allow_remote && !call.peer.to_canonical().is_loopback() {
        let text = "terminals are for clients on this machine; `[terminal] allow_remote` lets others open them, too";
        return Err(Error::of(error_codes::TERMINAL_REMOTE, text));
    }
    // What other pages may open, such as chats, is not enough.
    let Some(from) = call.headers().get(ORIGIN) else { return Ok(()) };
    let from = from.to_str().unwrap_or_default();
    let is_listed = policy.allowed_origins.iter().any(|listed| listed.eq_ignore_ascii_case(from));
    if is_listed || cookie::is_own_page(&call.parts, false) || is_loopback_page(call, from) {
        return Ok(());
    }
    let text = "this origin is not allowed to open terminals; add it to [terminal] allowed_origins";
    Err(Error::of(FOREIGN, text))
}

/// Is it the page of this daemon under another name of this machine?
fn is_loopback_page(call: &Call, from: &str) -> bool {
    let host = from.split_once("://").map_or(from, |(_, host)| host);
    let is_here = |host: &str| origin::is_loopback_name(origin::without_port(host));
    let port = |host: &str| host.rsplit_once(':').map(|(_, port)| port.to_owned());
    let asked = cookie::host(&call.parts);
    is_here(host) && is_here(asked) && port(host) == port(asked)
}

fn format(call: &Call, asked: Option<&str>) -> Result<Format, Error> {
    match asked {
        Some("json") => Ok(Format::Json),
        Some("text") => Ok(Format::Text),
        Some(_) => Err(Error::bad_field("format", "format must be text or json")),
        None if handshake::offers(call.headers(), JSON) => Ok(Format::Json),
        None => Ok(Format::Text),
    }
}

async fn open(mut call: Call) -> Result<Response, Error> {
    let host = call.api.service::<dyn Terminals>()?;
    let policy = host.policy();
    check(&call, &policy)?;
    let query: TerminalQuery = call.query()?;
    let (columns, rows) = (query.cols.unwrap_or(SIZE.columns.into()), query.rows.unwrap_or(SIZE.rows.into()));
    let size = message::size(columns, rows).map_err(|(field, why)| Error::bad_field(field, why))?;
    let format = format(&call, query.format.as_deref())?;
    let mut answer = handshake::answer(&call.parts)?;
    if !answer.headers().contains_key(SEC_WEBSOCKET_PROTOCOL) && handshake::offers(call.headers(), JSON) {
        answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(JSON));
    }
    let extensions = &mut call.parts.extensions;
    let (Some(upgrade), Some(line)) = (extensions.remove::<OnUpgrade>(), extensions.remove::<Line>()) else {
        return Err(handshake::upgrade_required("this connection cannot be upgraded to a WebSocket"));
    };
    let full = || {
        let text = format!("{} terminals are open, which is the limit ([terminal] max_sessions)", policy.sessions_max);
        Error::of(error_codes::TERMINALS_FULL, text).retry_after(60)
    };
    let seat = Seat::take(&call.api.state::<Sessions>(), policy.sessions_max).ok_or_else(full)?;
    let id = response_headers::new_id();
    let opened = host.open(size).await.map_err(|why| Error::of(error_codes::TERMINAL_FAILED, why))?;
    let started = started(id, &opened, call.peer, size);
    note(&call, audit_kinds::TERMINAL_STARTED, started).await?;
    let actor = call.principal.actor();
    let held = async move {
        let began = Instant::now();
        let ended = match upgrade.await {
            Ok(io) => {
                line.activity.upgrade();
                let Opened { terminal, shell, pid, is_root } = opened;
                let output = Output::new(format);
                let greeting = output.started(&shell, pid, is_root);
                let (activity, key_changed) = (Arc::clone(&line.activity), call.key_changed.clone());
                let idle_time_max = policy.idle_time_max;
                let start = Start { terminal, output, activity, key_changed, idle_time_max, greeting };
                let ended = Session::hold(&call.api, start, TokioIo::new(io)).await;
                json!({ "terminal": id, "reason": ended.reason, "code": ended.code, "secs": began.elapsed().as_secs() })
            }
            Err(error) => {
                tracing::debug!(%error, "a WebSocket upgrade failed");
                json!({ "terminal": id, "reason": "client_gone", "code": null, "secs": 0 })
            }
        };
        if let Err(error) = note(&call, audit_kinds::TERMINAL_ENDED, ended).await {
            tracing::warn!(error = error.message(), terminal = %id, "the end of a terminal is not on the audit log");
        }
        // The connection counts as open until here, and the terminal.
        drop((line, seat));
    };
    tokio::spawn(principal::acting(actor, held));
    Ok(answer)
}

/// What the audit log has of the start of a terminal.
fn started(id: Uuid, opened: &Opened, peer: IpAddr, size: Size) -> Value {
    json!({ "terminal": id, "shell": opened.shell, "peer": peer.to_string(), "cols": size.columns, "rows": size.rows })
}

async fn note(call: &Call, kind: AuditKind, details: Value) -> Result<(), Error> {
    call.ask(NoteAction { kind, agent: None, details }).await.map(drop)
}
