//! The connection to the servers, and what is known of the stream.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::cluster::{ServerRow, StreamRow};
use async_nats::connection::State;
use async_nats::jetstream::stream::{Info, RawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::cluster::config::ClusterConfig;
use crate::cluster::seals::Seals;
use crate::kernel::store::Error;
use crate::kernel::store::journal::chain::Chain;
use crate::kernel::store::journal::entry::Position;

/// How long one request may take.
pub(super) const REQUEST_WAIT: Duration = Duration::from_secs(2);
/// A server that answers no ping for two of these is given up for another.
const PING_PERIOD: Duration = Duration::from_millis(500);
/// The pause before another server is tried.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// The pause before it is asked again whether the servers answer: a question on its way to a server that is gone is answered by nobody.
const ASK_PERIOD: Duration = Duration::from_millis(250);

/// The servers, the stream and the object store of one cluster.
pub(crate) struct Wire {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) stream: Stream<()>,
    pub(super) handle: Handle,
    /// The name of the cluster.
    pub(super) cluster: String,
    /// Servers that keep each entry.
    pub(super) copies: usize,
    /// Servers may take clients without credentials.
    pub(super) allows_open: bool,
    /// What shows that something comes from a node of the cluster.
    pub(crate) seals: Seals,
}

/// Why the journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// It must not be used like this, and that does not change by itself.
    Refused(String),
    /// It does not answer.
    Unavailable(String),
}

impl Wire {
    /// Begins to connect; whether a server answers shows later.
    ///
    /// # Errors
    /// The file with the credentials cannot be used.
    pub(crate) async fn connect(config: &ClusterConfig, seals: Seals, handle: Handle) -> Result<Arc<Self>, String> {
        let node = config.node.as_deref().unwrap_or_default();
        let options = ConnectOptions::new()
            .name(format!("agentsvc {node}"))
            .retry_on_initial_connect()
            .ignore_discovered_servers()
            .ping_interval(PING_PERIOD)
            .connection_timeout(REQUEST_WAIT)
            .request_timeout(Some(REQUEST_WAIT))
            .reconnect_delay_callback(|_| RECONNECT_PAUSE);
        let options = match &config.credentials {
            Some(path) => {
                let (user, password) = credentials(path)?;
                options.user_and_password(user, password)
            }
            None => options,
        };
        let servers: Vec<String> = config.servers.iter().map(|server| server.to_string()).collect();
        let client = options.connect(servers).await.map_err(|error| format!("cannot connect to NATS: {error}"))?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_WAIT);
        let stream = context.get_stream_no_info(format!("{}-0", config.name)).await;
        let stream = stream.map_err(|error| format!("the name of the cluster is no name of a stream: {error}"))?;
        let (cluster, copies) = (config.name.to_string(), config.copies());
        let allows_open = config.allow_open_server;
        Ok(Arc::new(Self { client, context, stream, handle, cluster, copies, allows_open, seals }))
    }

    /// The name of the stream.
    pub(super) fn stream_name(&self) -> String {
        format!("{}-0", self.cluster)
    }

    /// What entries are published under.
    pub(super) fn subject(&self) -> String {
        format!("{}.journal.0", self.cluster)
    }

    /// What nodes tell one another under.
    pub(crate) fn beats(&self) -> String {
        format!("{}.beat", self.cluster)
    }

    /// What asks a node to take nothing over.
    pub(crate) fn drains(&self) -> String {
        format!("{}.drain", self.cluster)
    }

    /// What nodes say that they found when their rows are compared.
    pub(crate) fn checks(&self) -> String {
        format!("{}.check", self.cluster)
    }

    /// The way to the servers for messages that are not kept.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Is there a server at the other end?
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits for `work`. Only from threads that may wait.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }

    /// Carries out `work` beside everything else.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }

    /// What the leader of the stream says of it.
    pub(super) async fn info(&self) -> Result<Info, Error> {
        let info = self.stream.get_info().await;
        info.map_err(|error| Error::Journal(format!("the stream {} does not answer: {error}", self.stream_name())))
    }

    /// The message with this sequence, as the leader of the stream has it; `None` when it has none.
    pub(crate) async fn message(&self, sequence: u64) -> Result<Option<Bytes>, Error> {
        match self.stream.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(message.payload)),
            Err(error) => match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(why) if why.error_code() == ErrorCode::NO_MESSAGE_FOUND => Ok(None),
                _ => Err(Error::Journal(format!("entry {sequence} cannot be read: {error}"))),
            },
        }
    }

    /// The first sequence that the stream still has, and the last one; an empty stream has a last one that is less.
    pub(crate) async fn bounds(&self) -> Result<(u64, u64), Error> {
        let state = self.info().await?.state;
        Ok((state.first_sequence.max(1), state.last_sequence))
    }

    /// Do those servers answer within this time that a takeover needs: the leaders of the journal, of the copies and of the files? What is
    /// not there is made.
    ///
    /// # Errors
    /// They do not: the newest answer, if there was one.
    pub(crate) async fn can_open_within(&self, limit: Duration) -> Result<(), Error> {
        let ask = || async {
            let files = async { self.files().await.map_err(|error| Error::Journal(error.to_string())) };
            tokio::try_join!(self.bounds(), self.bucket(), files).map(drop)
        };
        let newest = Mutex::new(None);
        match timeout(limit, asked_again(ask, &newest)).await {
            Ok(()) => Ok(()),
            Err(_) => {
                Err(newest.into_inner().unwrap_or_else(|| Error::Journal("the servers do not answer".to_owned())))
            }
        }
    }

    /// Does the journal go on from a store whose newest entry is at `position`?
    ///
    /// # Errors
    /// [`Error::Trimmed`], [`Error::Lost`] and [`Error::Diverged`] when it does not; the servers do not answer.
    pub(crate) async fn goes_on_from(&self, position: &Position) -> Result<(), Error> {
        let mut chain = Chain::behind(position, self.bounds().await?, &self.seals.journal)?;
        if chain.next() > position.index {
            return Ok(());
        }
        let held = self.message(position.index).await?.ok_or(Error::Lost { index: position.index })?;
        chain.take(position.index, &held).map(drop)
    }

    /// The stream and its servers, for people.
    pub(crate) async fn shown(&self) -> Result<(StreamRow, Vec<ServerRow>), Error> {
        let Info { config, state, cluster, .. } = self.info().await?;
        let leader = cluster.as_ref().and_then(|cluster| cluster.leader.clone());
        let followers = cluster.into_iter().flat_map(|cluster| cluster.replicas);
        let mut servers: Vec<ServerRow> = followers
            .map(|it| ServerRow {
                name: it.name,
                is_current: it.current,
                is_offline: it.offline,
                lag: it.lag.unwrap_or_default(),
            })
            .collect();
        servers.extend(leader.iter().map(|name| ServerRow {
            name: name.clone(),
            is_current: true,
            is_offline: false,
            lag: 0,
        }));
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        let (first, last) = (state.first_sequence, state.last_sequence);
        let replicas = u32::try_from(config.num_replicas).unwrap_or(u32::MAX);
        Ok((StreamRow { name: config.name, first, last, bytes: state.bytes, replicas, leader }, servers))
    }
}

/// Asks again and again, and ends with the first answer that is none of failure, to whichever question. The `newest` failure is kept.
async fn asked_again<F: Future<Output = Result<(), Error>>>(ask: impl Fn() -> F, newest: &Mutex<Option<Error>>) {
    let (mut asked, mut ticks) = (FuturesUnordered::new(), tokio::time::interval(ASK_PERIOD));
    loop {
        tokio::select! {
            _ = ticks.tick() => asked.push(ask()),
            Some(answer) = asked.next() => match answer {
                Ok(()) => return,
                Err(error) => *newest.lock() = Some(error),
            },
        }
    }
}

/// User and password in the file at `path`.
fn credentials(path: &Path) -> Result<(String, String), String> {
    let failed = |reason: String| format!("cluster.credentials: {}: {reason}", path.display());
    let text = std::fs::read_to_string(path).map(Zeroizing::new).map_err(|error| failed(error.to_string()))?;
    let (user, password) =
        text.trim_end().split_once(':').ok_or_else(|| failed("must hold `user:password`".to_owned()))?;
    Ok((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::Either;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_lost_delays_no_answer() {
        let (asked, began, newest) = (AtomicU32::new(0), Instant::now(), Mutex::new(None));
        let ask = || match asked.fetch_add(1, Ordering::Relaxed) {
            // On its way to a server that is gone.
            0 => Either::Left(pending()),
            1 => Either::Right(ready(Err(Error::Journal("there is no leader".to_owned())))),
            _ => Either::Right(ready(Ok(()))),
        };
        asked_again(ask, &newest).await;
        assert!(newest.into_inner().unwrap().to_string().contains("there is no leader"));
        assert_eq!((asked.into_inner(), began.elapsed()), (3, 2 * ASK_PERIOD));
    }
}
