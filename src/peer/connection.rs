//! A connection that has ended its handshake: frames go both ways, each with its HMAC.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::peer::limits::{PEER_FRAME_MS, PEER_HANDSHAKE_MS, PEER_IDLE_MS, PEER_PING_MS, PEER_REQUESTS_MAX};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, MissedTickBehavior, timeout};

use super::config::Dial;
use super::crypto::SessionKey;
use super::handshake::{BAD_REQUEST, Known, NO_HANDSHAKE, Refused};
use super::identity::message_id;
use super::inbound;
use super::message::{Hello, Kind, Message, Notification, RemoteAgent, Request, Response};
use super::network::{Network, count};
use super::table::Joined;
use super::wire::{FrameReader, WireError, opened, plain, sealed};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// It cannot be reached, or does not speak the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It refuses, or is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Wire(error.into())
    }
}

/// A connection whose other end is known.
pub(crate) struct Connection {
    reader: FrameReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    key: SessionKey,
    pub(crate) known: Known,
    /// Where a peer has connected from that has not proved yet that it knows the secret.
    unproven: Option<IpAddr>,
    /// The ids of requests and notifications that came or went: a frame that was recorded must not count again, nor one that
    /// is sent back to where it came from.
    ids: HashSet<Box<str>>,
}

/// Writes, unless the peer takes nothing for too long.
async fn write(writer: &mut OwnedWriteHalf, frame: &[u8]) -> Result<(), WireError> {
    timeout(Duration::from_millis(PEER_FRAME_MS), writer.write_all(frame)).await.map_err(|_| WireError::Slow)??;
    Ok(())
}

/// The first message of a peer that has connected: who it says it is, and the id of its request.
async fn first(
    reader: &mut FrameReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
) -> Result<(String, Hello), Failed> {
    let frame = reader.next().await?;
    let refused = match Message::read(&frame) {
        Ok(Message { id, kind: Kind::Request(Request::Handshake(hello)) }) => return Ok((id, hello)),
        Ok(_) => Refused::new(NO_HANDSHAKE, "the first message must be a handshake"),
        Err(_) => Refused::new(BAD_REQUEST, "the first message is not valid"),
    };
    refuse(writer, String::new(), &refused).await;
    Err(refused.into())
}

/// Tells a peer why it is refused; it need not listen.
async fn refuse(writer: &mut OwnedWriteHalf, id: String, refused: &Refused) {
    let message = Message::error(id, refused.code, refused.reason.clone());
    let _gone = write(writer, &plain(&message.to_json())).await;
}

/// Lets a peer in that has connected.
///
/// # Errors
/// Why it is refused; it has been told.
pub(crate) async fn accept(
    network: &Arc<Network>,
    stream: TcpStream,
    address: SocketAddr,
) -> Result<(Connection, Joined), Failed> {
    let _ignored = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let mut reader = FrameReader::new(reader);
    let (id, hello) = first(&mut reader, &mut writer).await?;
    match admitted(network, hello, address).await {
        Ok((known, ack, key, joined)) => {
            let ack = Message::new(id, Kind::Response(Response::HandshakeAck(ack)));
            write(&mut writer, &plain(&ack.to_json())).await?;
            reader.widen();
            let unproven = Some(address.ip());
            Ok((Connection { reader, writer, key, known, unproven, ids: HashSet::new() }, joined))
        }
        Err(refused) => {
            refuse(&mut writer, id, &refused).await;
            Err(refused.into())
        }
    }
}

async fn admitted(
    network: &Arc<Network>,
    hello: Hello,
    address: SocketAddr,
) -> Result<(Known, Hello, SessionKey, Joined), Refused> {
    let known = network.admit(hello, address).await?;
    let address = &*address.to_string();
    network.let_in(&known, address).await?;
    let agents = network.agents.list().await;
    let (ack, key) = network.us.welcome(&known, agents.to_vec())?;
    let joined = network.join(&known, address, None)?;
    Ok((known, ack, key, joined))
}

/// Connects to a peer, which is known by its id or by its address alone.
///
/// # Errors
/// Why not. Nothing but a handshake was sent.
pub(crate) async fn connect(network: &Arc<Network>, dial: &Dial, peer: Option<&str>) -> Result<Connection, Failed> {
    let connecting = connect_untimed(network, dial, peer);
    timeout(Duration::from_millis(PEER_HANDSHAKE_MS), connecting).await.map_err(|_| WireError::Slow)?
}

async fn connect_untimed(network: &Arc<Network>, dial: &Dial, peer: Option<&str>) -> Result<Connection, Failed> {
    let stream = TcpStream::connect((&*dial.host, dial.port)).await?;
    let _ignored = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let mut reader = FrameReader::new(reader);
    let agents = network.agents.list().await;
    let begun = network.us.begin(peer, agents.to_vec())?;
    let id = message_id();
    let hello = Message::new(&*id, Kind::Request(Request::Handshake(begun.hello.clone())));
    write(&mut writer, &plain(&hello.to_json())).await?;
    let answer = Message::read(&reader.next().await?).map_err(WireError::from)?;
    let (known, key) = match answer.kind {
        Kind::Response(Response::HandshakeAck(ack)) if answer.id == id => begun.finish(&network.us, ack)?,
        Kind::Response(Response::Error { code, message }) => {
            return Err(Refused::new(code, format!("the peer refused: {}", super::message::line(&message))).into());
        }
        _ => return Err(Refused::new(BAD_REQUEST, "the peer did not answer the handshake").into()),
    };
    network.let_in(&known, &format!("{}:{}", dial.host, dial.port)).await?;
    reader.widen();
    Ok(Connection { reader, writer, key, known, unproven: None, ids: HashSet::new() })
}

impl Connection {
    /// Sends a message.
    ///
    /// # Errors
    /// The connection has ended; the message may have been sent.
    pub(crate) async fn send(&mut self, message: &Message) -> Result<(), WireError> {
        if !self.is_first(message) || self.ids.len() > PEER_REQUESTS_MAX {
            return Err(WireError::Closed);
        }
        let frame = sealed(&message.to_json(), &self.key);
        write(&mut self.writer, &frame).await
    }

    /// The next message. Nothing is lost when it is not waited for to the end.
    ///
    /// # Errors
    /// The connection has ended, or must: a frame was altered, or a request was repeated.
    pub(crate) async fn next(&mut self, network: &Network) -> Result<Message, WireError> {
        loop {
            let frame = self.reader.next().await?;
            let message = opened(&frame, &self.key).and_then(|text| Ok(Message::read(text)?));
            drop(frame);
            self.reader.release();
            let message = message.inspect_err(|_| count(&network.counts.altered))?;
            if let Some(from) = self.unproven.take() {
                network.proved(from);
            }
            let is_first = self.is_first(&message);
            if is_first && self.ids.len() <= PEER_REQUESTS_MAX {
                return Ok(message);
            }
            count(&network.counts.altered);
            // Other nodes may use one id for all their notifications.
            if !matches!(message.kind, Kind::Notification(_)) || self.ids.len() > PEER_REQUESTS_MAX {
                return Err(WireError::Altered);
            }
        }
    }

    /// Remembers a request or notification; has there been none of its id? A response has the id of its request.
    fn is_first(&mut self, message: &Message) -> bool {
        match message.kind {
            Kind::Request(_) | Kind::Notification(_) => self.ids.insert(message.id.as_str().into()),
            Kind::Response(_) | Kind::Unknown => true,
        }
    }

    /// Answers what the peer asks for, and tells it what changes, until one side ends it. The one that dialled pings.
    pub(crate) async fn serve(mut self, network: &Arc<Network>, joined: &Joined, pings: bool) -> Result<(), WireError> {
        let mut told = network.agents.list().await;
        let mut beat = tokio::time::interval(Duration::from_millis(PEER_PING_MS));
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.reset();
        let idle = Duration::from_millis(PEER_IDLE_MS);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                message = self.next(network) => {
                    let message = message?;
                    network.table.proved(joined, super::network::now());
                    let answer = tokio::select! {
                        answer = inbound::handle(network, &self.known.node_id, message) => answer,
                        // A peer that was forgotten gets no answer. The turn goes on.
                        () = joined.end.wait() => return Ok(()),
                    };
                    if let Some(answer) = answer {
                        self.send(&answer).await?;
                    }
                    // An answer may take minutes, in which the peer is not listened to.
                    heard = Instant::now();
                }
                _ = beat.tick() => {
                    if heard.elapsed() >= idle {
                        return Err(WireError::Slow);
                    }
                    if pings {
                        self.send(&Message::new(message_id(), Kind::Request(Request::Ping))).await?;
                    }
                    told = self.tell_changes(network, &told).await?;
                }
                () = joined.end.wait() => return Ok(()),
                () = network.shutdown.wait() => {
                    let bye = Kind::Notification(Notification::ShuttingDown);
                    return self.send(&Message::new(message_id(), bye)).await;
                }
            }
        }
    }

    /// Tells which agents have come and gone since it was told of `before`.
    async fn tell_changes(
        &mut self,
        network: &Network,
        before: &Arc<[RemoteAgent]>,
    ) -> Result<Arc<[RemoteAgent]>, WireError> {
        let now = network.agents.list().await;
        if Arc::ptr_eq(&now, before) {
            return Ok(now);
        }
        let gone = before.iter().filter(|old| now.iter().all(|agent| agent.id != old.id));
        let gone = gone.map(|old| Notification::AgentTerminated { agent_id: old.id.clone() });
        let come = now.iter().filter(|agent| !before.contains(agent));
        let come = come.map(|agent| Notification::AgentSpawned { agent: agent.clone() });
        for event in gone.chain(come) {
            self.send(&Message::new(message_id(), Kind::Notification(event))).await?;
        }
        Ok(now)
    }
}
