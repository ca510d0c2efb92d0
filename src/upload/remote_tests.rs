//! Uploads of several nodes, each with a directory of its own, over files that are shared in memory.

use std::path::Path;

use agentsvc_api::http::files::FileWriter;
use agentsvc_api::upload::files::{TEMPORARY, Upload};
use uuid::Uuid;

use super::*;
use crate::kernel::retention::RetentionClock;
use crate::kernel::shared_files::testing::Shelf;
use crate::upload::config::Uploads as Settings;

const ANN: AgentId = AgentId(Uuid::from_u128(1));
const BOB: AgentId = AgentId(Uuid::from_u128(2));

struct Node {
    dir: tempfile::TempDir,
    uploads: Uploads,
}

fn uploads(dir: &Path, retention_days: u32) -> Uploads {
    let (max_bytes, max_total_bytes, max_agent_bytes) = (1_000_000, 1_500_000, 1_500_000);
    let settings =
        Settings { max_bytes, max_total_bytes, max_agent_bytes, max_user_bytes: max_agent_bytes, retention_days };
    let uploads = Uploads::new(dir.join("uploads"), settings, RetentionClock::default());
    uploads.sweep(&HashSet::new()).unwrap();
    uploads
}

/// A node that leads or does not, and has nothing yet.
fn node(shelf: &Arc<Shelf>, leads: bool) -> Node {
    with_retention(shelf, leads, 0)
}

fn with_retention(shelf: &Arc<Shelf>, leads: bool, days: u32) -> Node {
    let dir = tempfile::tempdir().unwrap();
    let uploads = uploads(dir.path(), days);
    uploads.share(shelf.of(leads));
    Node { dir, uploads }
}

impl Node {
    fn put(&self, agent: AgentId, name: &str, content: &[u8]) -> Result<Upload, FilesError> {
        put(&self.uploads, agent, name, content)
    }

    fn names(&self) -> Vec<String> {
        let paths = disk::entries(&self.dir.path().join("uploads")).unwrap();
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn content(&self, id: FileId) -> Result<Option<Vec<u8>>, FilesError> {
        self.uploads.read(id, u64::MAX)
    }

    /// The upload as if it had come long ago, for all nodes.
    fn age(&self, shelf: &Shelf, upload: &Upload) {
        let old = |text: &str| text.replace(&upload.created_at.0.to_string(), "1000");
        let path = self.uploads.room.record(upload.id);
        std::fs::write(&path, old(&std::fs::read_to_string(&path).unwrap())).unwrap();
        let mut files = shelf.files.lock();
        let (about, _) = files.get_mut(&name(upload.id)).unwrap().as_mut().unwrap();
        *about = old(about);
    }
}

fn put(uploads: &Uploads, agent: AgentId, name: &str, content: &[u8]) -> Result<Upload, FilesError> {
    let mut incoming = Box::new(uploads.begin((agent, UploadShare::alone(agent)), name, "")?);
    content.chunks(1_000).try_for_each(|piece| incoming.write(piece))?;
    incoming.finish()
}

fn long() -> Vec<u8> {
    (0..300_000_u32).map(|n| (n % 251) as u8).collect()
}

#[test]
fn what_was_acknowledged_is_fetched_when_it_is_first_read() {
    let shelf = Arc::new(Shelf::default());
    let (one, other) = (node(&shelf, true), node(&shelf, false));
    let kept = one.put(ANN, "ä.bin", &long()).unwrap();
    assert_eq!(shelf.names(), [name(kept.id)]);
    assert_eq!(other.uploads.get(kept.id), Ok(kept.clone()));
    assert!(other.names().is_empty(), "what is known of it is no reason to fetch it");
    assert_eq!(other.content(kept.id), Ok(Some(long())));
    assert_eq!(other.names(), [kept.id.to_string(), format!("{}.json", kept.id)]);
    assert_eq!(other.uploads.total_bytes(), kept.size);
    // It is the node's own from then on.
    shelf.set_down(true);
    assert_eq!((other.uploads.get(kept.id), other.content(kept.id)), (Ok(kept), Ok(Some(long()))));
}

#[test]
fn what_is_not_here_and_cannot_be_asked_for_is_not_said_to_be_gone() {
    let shelf = Arc::new(Shelf::default());
    let (one, other) = (node(&shelf, true), node(&shelf, true));
    let kept = one.put(ANN, "a", b"hello").unwrap();
    shelf.set_down(true);
    assert!(matches!(other.uploads.get(kept.id), Err(FilesError::Unavailable(_))));
    assert!(matches!(other.content(kept.id), Err(FilesError::Unavailable(_))));
    shelf.set_down(false);
    assert_eq!(other.content(kept.id), Ok(Some(b"hello".to_vec())));
    assert!(matches!(other.uploads.get(FileId(Uuid::nil())), Err(FilesError::NotFound(_))));
}

#[test]
fn what_cannot_be_shared_is_not_acknowledged_and_leaves_nothing() {
    let shelf = Arc::new(Shelf::default());
    let node = node(&shelf, true);
    shelf.set_down(true);
    assert!(matches!(node.put(ANN, "a", b"hello"), Err(FilesError::Unavailable(_))));
    assert_eq!(node.uploads.total_bytes(), 0);
    let names = node.names();
    assert_eq!(names.len(), 1, "{names:?}");
    let id: FileId = names[0].strip_suffix(".gone").unwrap().parse().unwrap();
    // It arrived all the same, and only the answer was lost.
    let text = r#"{"agent":"00000000-0000-0000-0000-000000000001","filename":"a","content_type":"","size":5,"sha256":"","created_at":0}"#;
    shelf.files.lock().insert(name(id), Some((text.to_owned(), b"hello".to_vec())));
    assert!(node.uploads.owes() && node.uploads.agree(&HashSet::new()).is_err() && node.uploads.owes());
    shelf.set_down(false);
    assert!(matches!(node.uploads.get(id), Err(FilesError::NotFound(_))));
    node.uploads.agree(&HashSet::new()).unwrap();
    assert!(shelf.names().is_empty() && node.names().is_empty() && !node.uploads.owes());
    assert_eq!(node.uploads.total_bytes(), 0);
}

#[test]
fn content_that_is_not_what_its_record_says_is_refused() {
    let shelf = Arc::new(Shelf::default());
    let (one, other) = (node(&shelf, true), node(&shelf, false));
    let kept = one.put(ANN, "a", b"hello").unwrap();
    let replace = |content: &[u8]| {
        shelf.files.lock().get_mut(&name(kept.id)).unwrap().as_mut().unwrap().1 = content.to_vec();
    };
    for damaged in [&b"hellO"[..], b"hell", b"hello!", b""] {
        replace(damaged);
        assert!(other.content(kept.id).is_err(), "{damaged:?}");
        assert!(other.names().is_empty(), "{damaged:?} {:?}", other.names());
        assert_eq!(other.uploads.total_bytes(), 0);
    }
    replace(b"hello");
    assert_eq!(other.content(kept.id), Ok(Some(b"hello".to_vec())));
}

#[test]
fn what_is_removed_goes_from_all_nodes() {
    let shelf = Arc::new(Shelf::default());
    let (one, other) = (node(&shelf, true), node(&shelf, false));
    let [first, second] = ["a", "b"].map(|name| one.put(ANN, name, b"hello").unwrap());
    for kept in [&first, &second] {
        other.content(kept.id).unwrap();
    }
    one.uploads.remove(first.id).unwrap();
    assert_eq!(shelf.names(), [name(second.id)]);
    // The others cannot be told now; it is gone here, and does not come back.
    shelf.set_down(true);
    one.uploads.remove(second.id).unwrap();
    assert!(matches!(one.uploads.get(second.id), Err(FilesError::NotFound(_))));
    shelf.set_down(false);
    assert!(matches!(one.uploads.get(second.id), Err(FilesError::NotFound(_))));
    // The next process of the node knows of it, too.
    let next = uploads(one.dir.path(), 0);
    next.share(shelf.of(true));
    next.agree(&HashSet::new()).unwrap();
    assert!(shelf.names().is_empty() && one.names().is_empty());
    other.uploads.agree(&HashSet::new()).unwrap();
    assert!(other.names().is_empty(), "{:?}", other.names());
    assert_eq!(other.uploads.total_bytes(), 0);
}

#[test]
fn a_node_that_leads_counts_and_removes_what_only_others_have() {
    let shelf = Arc::new(Shelf::default());
    let first = node(&shelf, true);
    let [old, recording, young] = [(ANN, "old"), (AgentId(Uuid::nil()), TEMPORARY), (ANN, "young")]
        .map(|(agent, name)| first.put(agent, name, &long()).unwrap());
    let of_bob = first.put(BOB, "b", &long()).unwrap();
    first.age(&shelf, &old);
    first.age(&shelf, &recording);
    let standby = with_retention(&shelf, false, 1);
    standby.uploads.agree(&HashSet::from([BOB])).unwrap();
    assert_eq!((shelf.names().len(), standby.uploads.total_bytes()), (4, 1_200_000), "it is not for a standby");
    let next = with_retention(&shelf, true, 1);
    next.uploads.agree(&HashSet::from([BOB])).unwrap();
    assert_eq!(shelf.names(), [name(young.id)]);
    assert_eq!(next.uploads.total_bytes(), 300_000);
    assert!(next.names().is_empty(), "nothing was fetched for it");
    // What is fetched is counted once, and what others have takes room.
    next.content(young.id).unwrap();
    next.uploads.agree(&HashSet::new()).unwrap();
    assert_eq!(next.uploads.total_bytes(), 300_000);
    next.uploads.remove(young.id).unwrap();
    assert_eq!(next.uploads.total_bytes(), 0);
    first.uploads.agree(&HashSet::new()).unwrap();
    assert!(first.names().is_empty() && first.uploads.get(of_bob.id).is_err());
}

#[test]
fn what_a_daemon_had_while_it_was_alone_is_shared_when_it_leads() {
    let shelf = Arc::new(Shelf::default());
    let dir = tempfile::tempdir().unwrap();
    let alone = uploads(dir.path(), 0);
    let kept = put(&alone, ANN, "a", &long()).unwrap();
    let standby = uploads(dir.path(), 0);
    standby.share(shelf.of(false));
    standby.agree(&HashSet::new()).unwrap();
    assert!(shelf.names().is_empty() && standby.get(kept.id).is_ok(), "a standby neither gives it nor loses it");
    let leads = uploads(dir.path(), 0);
    leads.share(shelf.of(true));
    leads.agree(&HashSet::new()).unwrap();
    assert_eq!(node(&shelf, false).content(kept.id), Ok(Some(long())));
}

#[test]
fn all_that_others_have_is_gathered_save_what_is_damaged() {
    let shelf = Arc::new(Shelf::default());
    let (one, other) = (node(&shelf, true), node(&shelf, true));
    let [first, second] = ["a", "b"].map(|name| one.put(ANN, name, b"hello").unwrap());
    let damaged = one.put(ANN, "c", b"hello").unwrap();
    shelf.files.lock().get_mut(&name(damaged.id)).unwrap().as_mut().unwrap().1 = b"hellO".to_vec();
    shelf.set_down(true);
    assert!(matches!(other.uploads.gather(), Err(FilesError::Unavailable(_))));
    shelf.set_down(false);
    other.uploads.gather().unwrap();
    assert_eq!(other.names().len(), 4, "{:?}", other.names());
    shelf.set_down(true);
    assert!([first.id, second.id].iter().all(|id| other.content(*id) == Ok(Some(b"hello".to_vec()))));
    let alone = tempfile::tempdir().unwrap();
    uploads(alone.path(), 0).gather().unwrap();
}
