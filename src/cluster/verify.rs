//! Compares the stores of all nodes: an entry of the journal says where, and each node hashes its rows as they are behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::cluster::{ClusterError, NodeCheck, Verified, VerifiedNode};
use agentsvc_api::http::timestamp::timestamp_now;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::hex;
use crossbeam_channel::{Receiver, Sender};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::members::Members;
use super::nats::{NatsJournal, Wire};
use super::words::Heard;
use crate::kernel::exchange::Exchange;
use crate::kernel::store::Error;
use crate::kernel::store::journal::entry::Position;
use crate::kernel::store::journal::{Journal, MARK_KEY, Marked};
use crate::kernel::store::rows::RowWriter;

/// How long nodes have for their rows.
const WAIT: Duration = Duration::from_secs(120);

/// What a node found of its own rows.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    node: String,
    /// Which comparison it belongs to.
    mark: String,
    /// The entry behind which the rows are.
    index: u64,
    /// SHA-256 of them, in hexadecimal digits.
    hash: String,
}

/// Hashes the rows of this node wherever an entry says so, and tells all. Gives where they are to be handed.
///
/// # Errors
/// The system gives no thread.
pub(super) fn start(wire: &Arc<Wire>, members: &Arc<Members>) -> std::io::Result<Sender<Marked>> {
    let (sender, marked) = crossbeam_channel::unbounded();
    let (wire, members) = (Arc::clone(wire), Arc::clone(members));
    let run = move || hash_all(&wire, &members, &marked);
    std::thread::Builder::new().name("cluster-check".to_owned()).spawn(run)?;
    Ok(sender)
}

fn hash_all(wire: &Wire, members: &Members, marked: &Receiver<Marked>) {
    for Marked { view, mark } in marked {
        let hashed = view.origin(String::new()).and_then(|origin| {
            let failed = |source| Error::Io { path: "rows".into(), source };
            let mut writer = RowWriter::new(std::io::sink()).map_err(failed)?;
            for row in view.all() {
                let row = row?;
                writer.push(row.space, &row.key, &row.value).map_err(failed)?;
            }
            let (_, totals) = writer.finish().map_err(failed)?;
            Ok((origin.position.index, hex(&totals.sha256)))
        });
        drop(view);
        let said = hashed.map_err(|error| error.to_string()).and_then(|(index, hash)| {
            let mark = String::from_utf8_lossy(&mark).into_owned();
            let found = Found { node: members.node().to_owned(), mark, index, hash };
            let found = serde_json::to_vec(&found).map_err(|error| error.to_string())?;
            let found = wire.seals.words.say(&wire.checks(), &found);
            let said = wire.wait(wire.client().publish(wire.checks(), found.into()));
            said.map_err(|error| error.to_string())
        });
        if let Err(error) = said {
            tracing::warn!(error, "the rows of this node could not be compared with those of the others");
        }
    }
}

/// Compares the rows of all nodes that are alive, and follows the chain of the journal. Asked of the owner.
///
/// # Errors
/// [`ClusterError`] when it cannot be done.
pub(super) async fn verify(
    wire: Arc<Wire>,
    members: Arc<Members>,
    exchange: Arc<Exchange>,
) -> Result<Verified, ClusterError> {
    let failed = |error: &dyn std::fmt::Display| ClusterError::Journal(error.to_string());
    let mut answers = wire.client().subscribe(wire.checks()).await.map_err(|error| failed(&error))?;
    wire.client().flush().await.map_err(|error| failed(&error))?;
    let mark = format!("{}-{}", members.node(), timestamp_now().0);
    let op = Op { space: Space::World, key: MARK_KEY.to_vec(), value: Some(mark.clone().into_bytes()) };
    let commits = tokio::task::spawn_blocking(move || exchange.commits()).await.ok().flatten();
    commits.ok_or(ClusterError::NotOwner)?.send(Commit { ops: vec![op], ..Commit::default() });

    let mut missing: BTreeSet<String> = members.alive().into_iter().collect();
    let (mut found, mut before) = (BTreeMap::new(), Heard::default());
    let until = Instant::now() + WAIT;
    while !missing.is_empty()
        && let Ok(Some(message)) = timeout_at(until, answers.next()).await
    {
        if let Some(said) = wire.seals.words.hear(&wire.checks(), &message.payload, &mut before)
            && let Ok(answer) = serde_json::from_slice::<Found>(said)
            && answer.mark == mark
        {
            missing.remove(&answer.node);
            found.insert(answer.node.clone(), answer);
        }
    }
    let Some(own) = found.get(members.node()) else {
        return Err(ClusterError::NotReady("the rows of this node were not hashed in time".to_owned()));
    };
    let nodes = found.values().map(|it| (it.node.clone(), Some(it.index == own.index && it.hash == own.hash)));
    let nodes: Vec<VerifiedNode> = nodes
        .chain(missing.iter().map(|node| (node.clone(), None)))
        .map(|(name, is_same)| VerifiedNode { name, is_same })
        .collect();
    let at = timestamp_now();
    for node in &nodes {
        if let Some(is_same) = node.is_same {
            members.set_checked(&node.name, NodeCheck { at, index: own.index, is_same });
        }
    }
    let differ: Vec<_> = nodes.iter().filter(|it| it.is_same == Some(false)).map(|it| it.name.as_str()).collect();
    let differ = (!differ.is_empty()).then(|| {
        let names = differ.join(", ");
        format!(
            "the rows of {names} are not those of the owner: stop it, move its `data/world` away and start it again"
        )
    });
    members.set_problem("rows", differ.clone());
    let chain = tokio::task::spawn_blocking(move || follow(&wire, &members)).await;
    let (entries, broken) = match chain {
        Ok(Ok(entries)) => (entries, None),
        Ok(Err(error)) => (0, Some(error.to_string())),
        Err(error) => (0, Some(error.to_string())),
    };
    let problems = differ.into_iter().chain(broken).collect();
    Ok(Verified { index: own.index, hash: own.hash.clone(), entries, nodes, problems })
}

/// Follows the chain from the oldest entry from which it can be followed, and gives the number of valid entries.
fn follow(wire: &Arc<Wire>, members: &Members) -> Result<u64, Error> {
    let (first, _) = wire.wait(wire.bounds())?;
    let start = if first == 1 {
        Position::default()
    } else {
        let copies = wire.wait(wire.copies())?;
        let fit = copies.into_iter().map(|origin| origin.position).find(|position| position.index + 1 >= first);
        fit.ok_or(Error::Trimmed { first })?
    };
    let journal = NatsJournal::new(wire, &members.standing, &start, None);
    let entries = journal.read(&start)?;
    entries.map(|entry| entry.map(drop)).try_fold(0, |count, entry| entry.map(|()| count + 1))
}
