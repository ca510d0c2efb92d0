//! The uploads room over a directory of its own.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use agentsvc_api::http::files::{FileWriter, FilesError};
use agentsvc_api::upload::files::Upload;
use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use uuid::Uuid;

use super::*;

const ANN: AgentId = AgentId(Uuid::from_u128(1));
const BOB: AgentId = AgentId(Uuid::from_u128(2));

const fn alone(agent: AgentId) -> (AgentId, UploadShare) {
    (agent, UploadShare::alone(agent))
}

struct Harness {
    dir: tempfile::TempDir,
    uploads: Uploads,
}

fn harness() -> Harness {
    let dir = tempfile::tempdir().unwrap();
    let uploads = again(dir.path(), 0);
    Harness { dir, uploads }
}

/// The room as the next process finds it, before it went over it.
fn again(dir: &Path, retention_days: u32) -> Uploads {
    again_with(dir, Settings { retention_days, ..limits() })
}

const fn limits() -> Settings {
    let (max_agent_bytes, max_user_bytes, retention_days) = (2_500, 2_500, 0);
    Settings { max_bytes: 1_000, max_total_bytes: 2_500, max_agent_bytes, max_user_bytes, retention_days }
}

fn again_with(dir: &Path, settings: Settings) -> Uploads {
    Uploads::new(dir.join("uploads"), settings, RetentionClock::default())
}

impl Harness {
    fn put(&self, agent: AgentId, name: &str, content: &[u8]) -> Result<Upload, FilesError> {
        put(&self.uploads, alone(agent), name, content)
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.dir.path().join("uploads")) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn put(uploads: &Uploads, whose: (AgentId, UploadShare), name: &str, content: &[u8]) -> Result<Upload, FilesError> {
    let mut incoming = Box::new(uploads.begin(whose, name, "")?);
    content.chunks(100).try_for_each(|piece| incoming.write(piece))?;
    incoming.finish()
}

fn content(uploads: &Uploads, id: FileId) -> Vec<u8> {
    let (_, mut file) = uploads.open(id).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_was_kept_is_there_for_the_next_process() {
    let harness = harness();
    let kept = harness.put(ANN, "a.txt", b"hello").unwrap();
    assert_eq!((kept.size, kept.content_type.as_str(), kept.agent), (5, "text/plain", ANN));
    assert_eq!(kept.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    assert_eq!(kept.id.0.get_version_num(), 4);
    let next = again(harness.dir.path(), 0);
    assert_eq!(next.get(kept.id).unwrap(), kept);
    assert_eq!(content(&next, kept.id), b"hello");
    next.sweep(&HashSet::new()).unwrap();
    assert_eq!(next.total_bytes(), 5);
    assert!(matches!(next.get(FileId(Uuid::nil())), Err(FilesError::NotFound(_))));
    assert_eq!(harness.names().len(), 2);
}

#[test]
fn what_goes_into_a_prompt_is_compared_as_it_is_read_and_left_unread_when_it_is_too_large() {
    let harness = harness();
    let kept = harness.put(ANN, "a", b"hello").unwrap();
    let read = |bytes_max| harness.uploads.read(kept.id, bytes_max);
    assert_eq!((read(5), read(4)), (Ok(Some(b"hello".to_vec())), Ok(None)));
    for damaged in [&b"hellO"[..], b"hello!", b"hell"] {
        fs::write(harness.uploads.room.content(kept.id), damaged).unwrap();
        let before = harness.uploads.damaged();
        assert_eq!((read(4), harness.uploads.damaged()), (Ok(None), before), "it is not looked at");
        assert!(matches!(read(5), Err(FilesError::Damaged(_))), "{damaged:?}");
        assert_eq!(harness.uploads.damaged(), before + 1);
    }
}

#[test]
fn what_was_not_finished_leaves_nothing() {
    let harness = harness();
    let mut incoming = harness.uploads.begin(alone(ANN), "a", "").unwrap();
    incoming.write(b"half").unwrap();
    assert_eq!(harness.uploads.total_bytes(), 4);
    drop(incoming);
    assert_eq!((harness.names(), harness.uploads.total_bytes()), (Vec::new(), 0));
    assert_eq!(harness.put(ANN, "a", &[0; 1_001]).unwrap_err(), FilesError::TooLarge(1_000));
    assert_eq!((harness.names(), harness.uploads.total_bytes()), (Vec::new(), 0));
}

#[test]
fn all_together_are_bounded() {
    let harness = harness();
    let first = harness.put(ANN, "a", &[0; 1_000]).unwrap();
    harness.put(ANN, "b", &[0; 1_000]).unwrap();
    assert!(matches!(harness.put(ANN, "c", &[0; 501]), Err(FilesError::Full(_))));
    harness.put(ANN, "c", &[0; 500]).unwrap();
    harness.uploads.remove(first.id).unwrap();
    harness.uploads.remove(first.id).unwrap();
    assert_eq!(harness.uploads.total_bytes(), 1_500);
    harness.put(ANN, "d", &[0; 1_000]).unwrap();
}

#[test]
fn shares_are_counted_at_the_start_and_given_back_with_the_files() {
    let user = Some(agentsvc_components::kernel::id::UserId(Uuid::from_u128(9)));
    let limited = Settings { max_agent_bytes: 1_000, max_user_bytes: 1_500, ..limits() };
    let dir = tempfile::tempdir().unwrap();
    let start = |retention_days| {
        let uploads = again_with(dir.path(), Settings { retention_days, ..limited.clone() });
        uploads.sweep(&HashSet::new()).unwrap();
        uploads
    };
    // A child of Ann's, and Bob: both of one user.
    let (child, bob) =
        ((AgentId(Uuid::from_u128(3)), UploadShare { family: ANN, user }), (BOB, UploadShare { family: BOB, user }));
    let limit = |result| match result {
        Err(FilesError::Quota { limit, .. }) => Some(limit),
        result => result.map(|_: Upload| None).unwrap(),
    };
    let uploads = start(0);
    let first = put(&uploads, (ANN, UploadShare { family: ANN, user }), "a", &[0; 600]).unwrap();
    let second = put(&uploads, child, "b", &[0; 400]).unwrap();
    assert_eq!(limit(put(&uploads, child, "c", &[0; 1])), Some(1_000), "a family shares");
    assert_eq!(limit(put(&uploads, bob, "c", &[0; 501])), Some(1_500), "a user shares");
    assert_eq!(uploads.total_bytes(), 1_000, "what was refused takes nothing");
    // Of an earlier release.
    let record = uploads.room.record(put(&uploads, alone(BOB), "old", &[0; 700]).unwrap().id);
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("holder").unwrap();
    fs::write(record, old.to_string()).unwrap();

    let uploads = start(0);
    assert_eq!(limit(put(&uploads, child, "c", &[0; 1])), Some(1_000));
    assert_eq!(limit(put(&uploads, bob, "c", &[0; 301])), Some(1_000));
    uploads.recount().unwrap();
    assert_eq!(limit(put(&uploads, child, "c", &[0; 1])), Some(1_000));
    uploads.remove(second.id).unwrap();
    uploads.remove(second.id).unwrap();
    let second = put(&uploads, child, "c", &[0; 400]).unwrap();
    assert_eq!(limit(put(&uploads, child, "d", &[0; 1])), Some(1_000), "what was removed is given back once");
    // An agent goes with its uploads.
    uploads.sweep(&HashSet::from([child.0])).unwrap();
    assert!(uploads.get(second.id).is_err());
    put(&uploads, child, "d", &[0; 400]).unwrap();
    // What is past its retention goes.
    let record = uploads.room.record(first.id);
    let aged = fs::read_to_string(&record).unwrap().replace(&first.created_at.0.to_string(), "1000");
    fs::write(record, aged).unwrap();
    let uploads = start(1);
    assert_eq!(limit(put(&uploads, child, "e", &[0; 1])), Some(1_000));
    uploads.sweep(&HashSet::new()).unwrap();
    put(&uploads, child, "e", &[0; 600]).unwrap();
}

#[test]
fn leftovers_of_a_kill_go_and_whole_uploads_stay() {
    let harness = harness();
    let kept = harness.put(ANN, "a", b"kept").unwrap();
    let dir = harness.dir.path().join("uploads");
    let [part, bare, record] = [Uuid::from_u128(7), Uuid::from_u128(8), Uuid::from_u128(9)];
    fs::write(dir.join(format!(".{part}.part")), b"half").unwrap();
    fs::write(dir.join(format!(".{record}.json.part")), b"{").unwrap();
    // Renamed, then killed before its record was.
    fs::write(dir.join(bare.to_string()), b"no record").unwrap();
    fs::write(dir.join("notes of a person"), b"stay").unwrap();
    let next = again(harness.dir.path(), 0);
    // On its way in while the room is gone over.
    let mut fresh = Box::new(next.begin(alone(ANN), "b", "").unwrap());
    fresh.write(b"fresh").unwrap();
    let fresh = fresh.finish().unwrap();
    next.sweep(&HashSet::new()).unwrap();
    assert_eq!(next.total_bytes(), 9);
    let mut expected: Vec<String> =
        [kept.id, fresh.id].iter().flat_map(|id| [id.to_string(), format!("{id}.json")]).collect();
    expected.push("notes of a person".to_owned());
    expected.sort();
    assert_eq!(harness.names(), expected);
}

#[test]
fn recordings_of_a_killed_process_go_after_a_day() {
    let harness = harness();
    let clients = AgentId(Uuid::nil());
    let [old, new] = [(); 2].map(|()| harness.put(clients, TEMPORARY, b"sound").unwrap());
    let named = harness.put(clients, "song.wav", b"sound").unwrap();
    for id in [old.id, named.id] {
        let record = harness.uploads.room.record(id);
        let text = fs::read_to_string(&record).unwrap().replace(&old.created_at.0.to_string(), "1000");
        fs::write(&record, text.replace(&named.created_at.0.to_string(), "1000")).unwrap();
    }
    let next = again(harness.dir.path(), 0);
    next.sweep(&HashSet::new()).unwrap();
    assert!(next.get(old.id).is_err());
    assert_eq!(next.total_bytes(), 10);
    assert!(next.get(new.id).is_ok() && next.get(named.id).is_ok());
}

#[test]
fn uploads_go_with_their_agent_and_with_age() {
    let harness = harness();
    harness.uploads.sweep(&HashSet::new()).unwrap();
    let (anns, bobs) = (harness.put(ANN, "a", b"ann").unwrap(), harness.put(BOB, "b", b"bobs").unwrap());
    harness.uploads.sweep(&HashSet::from([ANN])).unwrap();
    assert!(harness.uploads.get(anns.id).is_err());
    assert_eq!((content(&harness.uploads, bobs.id), harness.uploads.total_bytes()), (b"bobs".to_vec(), 4));

    let record = harness.uploads.room.record(bobs.id);
    let aged = fs::read_to_string(&record).unwrap().replace(&bobs.created_at.0.to_string(), "1000");
    fs::write(record, aged).unwrap();
    let keeps = again(harness.dir.path(), 0);
    keeps.sweep(&HashSet::new()).unwrap();
    keeps.sweep(&HashSet::new()).unwrap();
    assert!(keeps.get(bobs.id).is_ok());
    let forgets = again(harness.dir.path(), 1);
    forgets.sweep(&HashSet::new()).unwrap();
    forgets.sweep(&HashSet::new()).unwrap();
    assert!(forgets.get(bobs.id).is_err());
    assert_eq!(forgets.total_bytes(), 0);
}

#[test]
fn names_are_made_plain() {
    for (name, plain) in [
        ("a.txt", "a.txt"),
        ("../../x", "x"),
        ("C:\\dir\\a b.txt", "a b.txt"),
        (" a\r\n\0b ", "ab"),
        ("日本.md", "日本.md"),
    ] {
        assert_eq!(plain_name(name).unwrap(), plain);
    }
    for wrong in ["", "..", "a/", "a/..", "\n", ".", &"x".repeat(256)] {
        assert!(plain_name(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn so_many_at_once() {
    let harness = harness();
    let open: Vec<_> =
        (0..limit::UPLOADS_OPEN_MAX).map(|_| harness.uploads.begin(alone(ANN), "a", "").unwrap()).collect();
    assert!(matches!(harness.uploads.begin(alone(ANN), "a", ""), Err(FilesError::Busy(_))));
    drop(open);
    assert!(harness.uploads.begin(alone(ANN), "a", "").is_ok());
}
