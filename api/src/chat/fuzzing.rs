//! Ways in for fuzz targets (`fuzz/`), behind the network: a request as a value, a WebSocket over any pipe. Nobody else
//! uses them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use agentsvc_systems::agent::AgentSummary;
use bytes::Bytes;
use hyper::Request;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::chat::socket::{Conversation, Partner};
use crate::http::api::Api;
use crate::http::dispatch::dispatch;
use crate::http::reply::Response;
use crate::http::shutdown::Shutdown;

/// Where the requests come from.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The answer to one request of a client on this machine, as the server would give it.
pub async fn answer<B>(api: &Arc<Api>, request: Request<B>) -> Response
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
{
    let client = api.peers.connect(PEER, true);
    dispatch(api, &client, request).await.0
}

/// Talks with `agent` over `io`, which is past the handshake of a WebSocket, until one side ends it.
pub async fn converse<S: AsyncRead + AsyncWrite + Unpin>(api: &Arc<Api>, agent: AgentSummary, io: S) {
    let partner = Partner {
        agent,
        is_limited: false,
        may_write: true,
        peer: PEER,
        activity: Arc::default(),
        trace: None,
        key_changed: Shutdown::new(),
        permits: Arc::clone(&api.permits),
    };
    Conversation::hold(Arc::clone(api), partner, io).await;
}
