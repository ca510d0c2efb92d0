//! Archives that anybody may have made: backups are unpacked and proved, or refused, and nothing is written where it does
//! not belong; rows files and snapshots are read or refused.

use std::fs;
use std::path::Path;

use agentsvc::backup::Places;
use agentsvc::backup::component::{Part, Selection};
use agentsvc::backup::manifest::{Entry, FORMAT, KIND, MANIFEST, Manifest};
use agentsvc::backup::progress::Progress;
use agentsvc::backup::restore::{Job, prepare};
use agentsvc::config::data_dir_of;
use agentsvc::kernel::home::Home;
use agentsvc::kernel::settings::{DataDir, ReadConfig};
use agentsvc::kernel::store::rows::read::records;
use agentsvc::kernel::store::rows::{RowReader, RowWriter};
use agentsvc::kernel::vault::{KeySource, Vault};
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::kernel::record::hex;
use sha2::{Digest, Sha256};

use super::feed::Feed;
use super::scratch;

/// Names of entries that mean something.
const NAMES: &[&str] = &[
    Part::Agents.entry(),
    Part::Workflows.entry(),
    Part::CronJobs.entry(),
    Part::Data.entry(),
    Part::AuditLog.entry(),
    "config.toml",
    "agent-types/a.toml",
    "workspaces/a/b",
    "vault/a.sealed",
    "vault/totp.sealed",
    "data/hand_state.json",
    "data/custom_models.json",
    "../escape",
    "/escape",
    "workspaces/../../escape",
    "data/world/x",
];

/// `input` is a byte and, by that, an archive as it is, one that is only to be compressed, entries of an archive whose
/// manifest tells them rightly, a snapshot that is to be compressed, or the rows of one.
pub fn run(input: &[u8]) {
    let mut feed = Feed(input);
    let way = feed.byte() % 5;
    match way {
        0 => restore(feed.0, true),
        1 => restore(&packed(feed.0), true),
        2 => {
            let keeps_config = feed.byte() % 2 == 1;
            restore(&packed(&archive(&mut feed)), keeps_config);
        }
        3 => snapshot(feed.0),
        _ => snapshot(&rows(&mut feed)),
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("it is compressed")
}

/// A rows file: each row is a byte for its space, and key and value behind their lengths. Those that do not fit the order
/// are left out.
fn rows(feed: &mut Feed<'_>) -> Vec<u8> {
    let mut writer = RowWriter::new(Vec::new()).expect("it is in memory");
    while !feed.is_empty() {
        let space = if feed.byte().is_multiple_of(2) { Space::World } else { Space::Content };
        let (key, value) = (feed.piece(), feed.piece());
        let _ = writer.push(space, key, value);
    }
    writer.finish().expect("it is in memory").0
}

/// The entries of an archive, behind a manifest that tells them as they are, or nearly.
fn archive(feed: &mut Feed<'_>) -> Vec<u8> {
    let mut manifest = Manifest {
        kind: KIND.to_owned(),
        format: FORMAT,
        created_at: "2026-01-01T00:00:00Z".into(),
        ..Manifest::default()
    };
    let mut entries = Vec::new();
    while !feed.is_empty() {
        let flags = feed.byte();
        let name = match feed.byte() {
            at if flags & 1 == 0 => NAMES[usize::from(at) % NAMES.len()].to_owned(),
            length => String::from_utf8_lossy(feed.take(usize::from(length))).into_owned(),
        };
        let mut content = feed.piece().to_vec();
        let mut count = None;
        if Part::of_entry(&name).is_some() && flags & 2 == 0 {
            content = rows(&mut Feed(&content));
            count = RowReader::new(&content[..]).ok().and_then(|mut reader| {
                reader.by_ref().for_each(drop);
                reader.totals().map(|totals| totals.world + totals.content)
            });
        }
        let (size, sha256) = (content.len() as u64, hex(&Sha256::digest(&content)));
        let told = Entry { name: name.clone(), size: size + u64::from(flags & 128 != 0), sha256, rows: count };
        if flags & 4 == 0 {
            manifest.entries.push(told);
        }
        entries.push((flags, name, content));
    }
    manifest.sum_up();
    let mut tar = tar::Builder::new(Vec::new());
    let told = serde_json::to_vec(&manifest).expect("it is JSON");
    append(&mut tar, MANIFEST, 0, &told);
    entries.iter().for_each(|(flags, name, content)| append(&mut tar, name, *flags, content));
    tar.into_inner().expect("it is in memory")
}

fn append(tar: &mut tar::Builder<Vec<u8>>, name: &str, flags: u8, content: &[u8]) {
    let kinds =
        [tar::EntryType::Regular, tar::EntryType::Symlink, tar::EntryType::Directory, tar::EntryType::GNULongName];
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kinds[usize::from(flags >> 3 & 3)]);
    header.set_size(content.len() as u64);
    header.set_mode(if flags & 32 == 0 { 0o600 } else { 0o4777 });
    // The library's own way refuses what this is about.
    let field = &mut header.as_old_mut().name;
    let length = name.len().min(field.len());
    field[..length].copy_from_slice(&name.as_bytes()[..length]);
    header.set_cksum();
    tar.append(&header, content).expect("it is in memory");
}

fn restore(archive: &[u8], keep_config: bool) {
    let room = scratch::room().join("archive");
    let _ = fs::remove_dir_all(&room);
    let root = room.join("around/home");
    fs::create_dir_all(&root).expect("a directory");
    let path = room.join("a.tar.zst");
    fs::write(&path, archive).expect("it can be written");
    let home = Home::new(&root);
    let data = home.data_dir(None);
    let vault = Vault::new(home.vault_dir(), KeySource::File);
    let backups = home.backups_dir(None);
    let data_dir = |text: &str| data_dir_of(text).map(DataDir).map_err(|error| error.to_string());
    let read = ReadConfig { data_dir, ..ReadConfig::default() };
    let places = Places { home, data, backups, workspaces: true, data_dir: None, read };
    let selection = Selection { components: None, keep_config };
    let job = Job {
        archive: &path,
        places: &places,
        vault: &vault,
        selection: &selection,
        keeps_protected: false,
        now: Timestamp(1_700_000_000_000),
    };
    let _ = prepare(&job, None, &Progress::default());
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).expect("it is there").map(|entry| entry.expect("an entry").file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&room.join("around")), ["home"], "something lies beside the home");
    let outside = names(&room).into_iter().filter(|name| name != "around" && name != "a.tar.zst");
    assert_eq!(outside.collect::<Vec<_>>(), Vec::<String>::new(), "something lies outside");
    let _ = fs::remove_dir_all(&room);
}

fn snapshot(rows: &[u8]) {
    if let Ok(reader) = RowReader::new(rows) {
        // An error ends it.
        reader.for_each(drop);
    }
    let path = scratch::room().join("rows.zst");
    for file in [rows, &packed(rows)] {
        fs::write(&path, file).expect("it can be written");
        let _ = records(&path);
    }
}
