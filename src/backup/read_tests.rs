//! Archives that are none of ours, or that want to do harm.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::write::{ArchiveWriter, Kind, pad, write_header};
use super::*;

/// A file of a test, and where it is.
struct File(#[allow(dead_code, reason = "keeps the directory")] TempDir, PathBuf);

fn file(bytes: &[u8]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar.zst");
    fs::write(&path, bytes).unwrap();
    File(dir, path)
}

/// One entry of a hand-made tar: its type, name, link and content.
struct Piece<'a>(u8, &'a str, &'a str, &'a [u8]);

fn plain<'a>(name: &'a str, content: &'a [u8]) -> Piece<'a> {
    Piece(b'0', name, "", content)
}

fn tar_of(pieces: &[Piece<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for Piece(kind, name, link, content) in pieces {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_entry_type(EntryType::new(*kind));
        // Past the checks of the library.
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..name.len()].copy_from_slice(name.as_bytes());
        gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(content);
        pad(&mut out, content.len() as u64).unwrap();
    }
    out.extend_from_slice(&[0; 1024]);
    out
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn line(name: &str, content: &[u8]) -> Value {
    json!({ "name": name, "size": content.len(), "sha256": hex(&Sha256::digest(content)) })
}

fn manifest(entries: &[Value]) -> Vec<u8> {
    let value = json!({ "kind": KIND, "format": FORMAT, "release": "1", "created_at": "", "entries": entries });
    value.to_string().into_bytes()
}

/// An archive with this manifest and these pieces behind it.
fn archive(entries: &[Value], pieces: Vec<Piece<'_>>) -> File {
    let manifest = manifest(entries);
    let mut all = vec![plain(MANIFEST, &manifest)];
    all.extend(pieces);
    file(&packed(&tar_of(&all)))
}

fn read_all(file: &File) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut found = Vec::new();
    read(
        &file.1,
        |_| Ok(()),
        |reading| {
            let mut content = Vec::new();
            reading.content.read_to_end(&mut content).map_err(io("read", &file.1))?;
            found.push((reading.line.name.clone(), content));
            Ok(())
        },
    )?;
    Ok(found)
}

#[track_caller]
fn refused(file: &File, code: &str, says: &str) {
    let error = read_all(file).unwrap_err();
    assert_eq!(error.code().as_deref(), Some(code), "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn what_was_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar.zst");
    let long = format!("workspaces/{}/ü.txt", ["directory"; 20].join("/"));
    let contents: Vec<(&str, Vec<u8>)> =
        vec![("config.toml", b"x = 1".to_vec()), ("data/empty", Vec::new()), (&long, vec![7; 100_000])];
    let mut writer = ArchiveWriter::begin(&path).unwrap();
    for (name, content) in &contents {
        let kind = if *name == "data/empty" { Kind::Program } else { Kind::File };
        writer
            .entry(name, content.len() as u64, kind, |out| out.write_all(content).map_err(io("write", &path)))
            .unwrap();
    }
    let made = Manifest { kind: KIND.to_owned(), format: FORMAT, ..Manifest::default() };
    let (made, size) = writer.finish(made).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
    assert_eq!(manifest_of(&path).unwrap(), made);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing stays beside it");
    let found = read_all(&File(dir, path.clone())).unwrap();
    let expected: Vec<(String, Vec<u8>)> =
        contents.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
    assert!(found == expected);
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    for other in ["workspaces/a/x", "workspaces/a/x/y"] {
        let path = dir.path().join("a.tar.zst");
        let mut writer = ArchiveWriter::begin(&path).unwrap();
        for name in ["workspaces/a/x", other] {
            writer.entry(name, 3, Kind::File, |out| out.write_all(b"abc").map_err(io("write", &path))).unwrap();
        }
        assert!(matches!(writer.finish(Manifest::default()), Err(Error::Unsafe { .. })), "{other}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing stays");
    }
}

#[test]
fn other_tools_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar.zst");
    let long = format!("workspaces/{}/x", ["directory"; 20].join("/"));
    let mut writer = ArchiveWriter::begin(&path).unwrap();
    writer.entry(&long, 3, Kind::File, |out| out.write_all(b"abc").map_err(io("write", &path))).unwrap();
    writer.finish(Manifest::default()).unwrap();
    let mut archive = Archive::new(zstd::Decoder::new(fs::File::open(&path).unwrap()).unwrap());
    let names: Vec<_> =
        archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, [MANIFEST.to_owned(), long]);
}

#[test]
fn an_archive_that_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar.zst");
    let mut writer = ArchiveWriter::begin(&path).unwrap();
    let too_long = writer.entry("data/x", 2, Kind::File, |out| out.write_all(b"abc").map_err(io("write", &path)));
    assert!(too_long.unwrap_err().to_string().contains("grew"));
    drop(writer);
    let mut writer = ArchiveWriter::begin(&path).unwrap();
    let too_short = writer.entry("data/x", 9, Kind::File, |out| out.write_all(b"abc").map_err(io("write", &path)));
    assert!(too_short.unwrap_err().to_string().contains("shrank"));
    drop(writer);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn zeros_do_not_make_a_bomb_of_our_own_archives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar.zst");
    let mut writer = ArchiveWriter::begin(&path).unwrap();
    let zeros = |mut out: &mut dyn Write| {
        io::copy(&mut io::repeat(0).take(200 << 20), &mut out).map(drop).map_err(io("write", &path))
    };
    writer.entry("data/zeros", 200 << 20, Kind::File, zeros).unwrap();
    let made = Manifest { kind: KIND.to_owned(), format: FORMAT, ..Manifest::default() };
    let (_, size) = writer.finish(made).unwrap();
    assert!(size > (150 << 20) / BACKUP_RATIO_MAX, "{size}");
    let mut bytes = 0;
    let each = |reading: Reading<'_>| {
        bytes += io::copy(reading.content, &mut io::sink()).map_err(io("read", &path))?;
        Ok(())
    };
    read(&path, |_| Ok(()), each).unwrap();
    assert_eq!(bytes, 200 << 20);
}

#[test]
fn foreign_files_are_named_so() {
    refused(&file(b""), "backup_foreign", "zstd");
    refused(&file(b"PK\x03\x04 a zip file"), "backup_foreign", "zstd");
    refused(&file(&packed(b"")), "backup_foreign", "manifest");
    refused(&file(&packed(&[b'x'; 4096])), "backup_foreign", "");
    refused(&file(&packed(&tar_of(&[]))), "backup_foreign", "manifest");
    refused(&file(&packed(&tar_of(&[plain("etc/passwd", b"root")]))), "backup_foreign", "manifest");
    refused(&file(&packed(&tar_of(&[plain("config.toml", b"")]))), "backup_foreign", "manifest");
    refused(&file(&packed(&tar_of(&[plain(MANIFEST, b"{}")]))), "backup_foreign", "cannot be read");
    refused(&file(&packed(&tar_of(&[plain(MANIFEST, b"not json")]))), "backup_foreign", "cannot be read");
    let other = br#"{"kind": "another tool", "format": 1}"#;
    refused(&file(&packed(&tar_of(&[plain(MANIFEST, other)]))), "backup_foreign", "another program");
}

#[test]
fn a_newer_format_is_named_with_its_number() {
    let newer = json!({ "kind": KIND, "format": 9, "what": "else" }).to_string();
    refused(&file(&packed(&tar_of(&[plain(MANIFEST, newer.as_bytes())]))), "backup_newer", "format 9");
}

#[test]
fn names_that_lead_elsewhere_are_refused_in_manifest_and_tar() {
    for name in ["../x", "/etc/passwd", "data/../../x", "data/world/version", "vault/vault.key", "data//x"] {
        refused(&archive(&[line(name, b"x")], vec![plain(name, b"x")]), "backup_unsafe", name);
        // Only the tar lies.
        refused(&archive(&[line("data/x", b"x")], vec![plain(name, b"x")]), "backup_unsafe", name);
    }
    let long = format!("data/{}", "a".repeat(3_000));
    let mut tar = Vec::new();
    let made = manifest(&[line("data/x", b"x")]);
    write_header(&mut tar, MANIFEST, made.len() as u64, false).unwrap();
    tar.extend_from_slice(&made);
    pad(&mut tar, made.len() as u64).unwrap();
    write_header(&mut tar, &long, 1, false).unwrap();
    refused(&file(&packed(&tar)), "backup_unsafe", "too long");
}

#[test]
fn only_plain_files_are_taken() {
    for (kind, says) in [
        (b'1', "link"),
        (b'2', "link"),
        (b'3', "device"),
        (b'4', "device"),
        (b'5', "directory"),
        (b'6', "device"),
        (b'x', "not a regular file"),
        (b'g', "not a regular file"),
        (b'K', "not a regular file"),
        (b'S', "not a regular file"),
    ] {
        let made = archive(&[line("data/x", b"")], vec![Piece(kind, "data/x", "/etc/passwd", b"")]);
        refused(&made, "backup_unsafe", says);
    }
}

#[test]
fn an_entry_is_there_once() {
    let twice = [line("data/x", b"x"), line("data/x", b"x")];
    refused(&archive(&twice, vec![plain("data/x", b"x"), plain("data/x", b"x")]), "backup_unsafe", "duplicate");
    refused(&archive(&[line(MANIFEST, b"x")], vec![plain(MANIFEST, b"x")]), "backup_unsafe", "duplicate");
    refused(
        &archive(&[line("data/x", b"x")], vec![plain("data/x", b"x"), plain("data/x", b"x")]),
        "backup_damaged",
        "x",
    );
    let inside = [line("data/x", b"x"), line("data/x/y", b"y")];
    refused(
        &archive(&inside, vec![plain("data/x", b"x"), plain("data/x/y", b"y")]),
        "backup_unsafe",
        "has a file as its parent",
    );
}

#[test]
fn what_does_not_agree_with_the_manifest_is_damage() {
    let x = || vec![plain("data/x", b"x")];
    refused(&archive(&[line("data/x", b"y")], x()), "backup_damaged", "checksum");
    refused(&archive(&[line("data/x", b"xx")], x()), "backup_damaged", "bytes");
    refused(&archive(&[line("data/y", b"x")], x()), "backup_damaged", "should be");
    refused(&archive(&[], x()), "backup_damaged", "not in its manifest");
    refused(&archive(&[line("data/x", b"x"), line("data/y", b"y")], x()), "backup_damaged", "truncated");
}

#[test]
fn what_follows_the_end_is_refused() {
    let made = manifest(&[]);
    let mut tar = tar_of(&[plain(MANIFEST, &made)]);
    tar.extend_from_slice(&[0; 2048]);
    assert!(read_all(&file(&packed(&tar))).is_ok(), "empty blocks are usual");
    tar.extend_from_slice(b"more");
    refused(&file(&packed(&tar)), "backup_damaged", "after the end");
    let mut behind = packed(&tar_of(&[plain(MANIFEST, &made)]));
    behind.extend_from_slice(b"not zstd");
    assert_eq!(read_all(&file(&behind)).unwrap_err().code().as_deref(), Some("backup_damaged"));
}

#[test]
fn bombs_are_refused_before_they_are_unpacked() {
    // It says what it is, and grows too much.
    let zeros = vec![0; 64 << 20];
    refused(&archive(&[line("data/x", &zeros)], vec![plain("data/x", &zeros)]), "backup_too_large", "times");
    // It says that it is larger than backups are.
    let huge = json!({ "name": "data/x", "size": u64::MAX, "sha256": "" });
    refused(&archive(&[huge], vec![]), "backup_too_large", "bytes");
    // The tar holds more than the manifest says, with names in between.
    let noise: Vec<u8> = (0..8_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    refused(&archive(&[line("data/x", b"x")], vec![plain("data/x", &noise)]), "backup_damaged", "bytes");
    let long = archive(&[line("data/x", b"x")], vec![Piece(b'L', "././@LongLink", "", &noise)]);
    refused(&long, "backup_unsafe", "too long");
    // A manifest as large as a bomb.
    let mut spaces = manifest(&[]);
    spaces.resize(BACKUP_MANIFEST_BYTES_MAX as usize + 1, b' ');
    refused(&file(&packed(&tar_of(&[plain(MANIFEST, &spaces)]))), "backup_too_large", "");
}

#[test]
fn a_window_beyond_the_bound_is_refused() {
    let made = manifest(&[]);
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    let noise: Vec<u8> = (0..1_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    encoder.write_all(&tar_of(&[plain(MANIFEST, &made), plain("data/x", &noise)])).unwrap();
    assert!(read_all(&file(&encoder.finish().unwrap())).is_err());
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let made = manifest(&[line("data/x", b"some content"), line("data/y", b"more of it")]);
    let whole = tar_of(&[plain(MANIFEST, &made), plain("data/x", b"some content"), plain("data/y", b"more of it")]);
    let whole = packed(&whole);
    assert!(read_all(&file(&whole)).is_ok());
    for length in 0..whole.len() {
        assert!(read_all(&file(&whole[..length])).is_err(), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_changed_archive_never_gives_other_content(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let content = b"some content that compresses a little: content content content";
        let made = manifest(&[line("data/x", content)]);
        let mut bytes = packed(&tar_of(&[plain(MANIFEST, &made), plain("data/x", content)]));
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(found) = read_all(&file(&bytes)) {
            prop_assert_eq!(found, vec![("data/x".to_owned(), content.to_vec())]);
        }
    }

    #[test]
    fn a_changed_tar_never_panics_or_escapes(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let made = manifest(&[line("data/x", b"x")]);
        let mut tar = tar_of(&[plain(MANIFEST, &made), plain("data/x", b"x")]);
        let at = at.index(tar.len());
        tar[at] = byte;
        if let Ok(found) = read_all(&file(&packed(&tar))) {
            prop_assert!(found.iter().all(|(name, _)| name == "data/x"));
        }
    }
}
