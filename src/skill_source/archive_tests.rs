//! Archives that are good, and those that are made to do harm.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::super::folders::Folders;
use super::*;

fn zip(files: &[(&str, &[u8], u32)]) -> File {
    let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
    for (name, content, mode) in files {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap()
}

fn gz(tar: &[u8]) -> File {
    let mut encoder = GzEncoder::new(tempfile::tempfile().unwrap(), Compression::best());
    encoder.write_all(tar).unwrap();
    encoder.finish().unwrap()
}

/// An entry with this name, whatever it is.
fn entry(tar: &mut tar::Builder<Vec<u8>>, name: &str, kind: EntryType, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    header.set_cksum();
    tar.append(&header, content).unwrap();
}

fn unpacked(mut file: File) -> Result<(Vec<String>, Vec<LeftOut>), FolderError> {
    let dir = tempfile::tempdir().unwrap();
    let mut staging = Folders::new(dir.path().join("skills")).stage().unwrap();
    let format = format_of(&mut file).unwrap().expect("an archive");
    let left_out = unpack(file, format, &mut staging)?;
    let outside = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(outside, 1, "nothing is written beside the folder");
    Ok((staging.files().unwrap().into_iter().map(|file| file.path).collect(), left_out))
}

#[test]
fn good_archives_are_unpacked() {
    let (files, left_out) = unpacked(zip(&[("a/SKILL.md", b"text", 0o644), ("a/run.sh", b"echo", 0o755)])).unwrap();
    assert_eq!((files, left_out), (vec!["a/SKILL.md".to_owned(), "a/run.sh".to_owned()], Vec::new()));
    let mut tar = tar::Builder::new(Vec::new());
    let long = format!("repo-main/{}/SKILL.md", "n".repeat(120));
    entry(
        &mut tar,
        "pax_global_header",
        EntryType::XGlobalHeader,
        b"52 comment=0123456789012345678901234567890123456789\n",
    );
    entry(&mut tar, "repo-main/", EntryType::Directory, b"");
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    tar.append_data(&mut header, &long, &b"text"[..]).unwrap();
    entry(&mut tar, "repo-main/link", EntryType::Symlink, b"");
    entry(&mut tar, "repo-main/evil.pth", EntryType::Regular, b"import os");
    entry(&mut tar, "repo-main/README.md", EntryType::Regular, b"x");
    entry(&mut tar, "repo-main/readme.md", EntryType::Regular, b"y");
    let (files, left_out) = unpacked(gz(&tar.into_inner().unwrap())).unwrap();
    assert_eq!(files, ["repo-main/README.md".to_owned(), long]);
    let left_out: Vec<_> = left_out.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(left_out, ["repo-main/link", "repo-main/evil.pth", "repo-main/readme.md"]);
}

#[test]
fn long_names_of_pax_are_read() {
    let long = format!("r/{}.md", "p".repeat(150));
    let line = format!(" path={long}\n");
    let length = line.len() + 3;
    let mut tar = tar::Builder::new(Vec::new());
    entry(&mut tar, "x", EntryType::XHeader, format!("{length}{line}").as_bytes());
    entry(&mut tar, "short", EntryType::Regular, b"x");
    assert_eq!(unpacked(gz(&tar.into_inner().unwrap())).unwrap().0, [long]);
}

#[test]
fn paths_out_of_the_folder_refuse_the_archive() {
    for name in ["../evil.md", "/etc/evil", "a/../../evil", "a\\..\\evil"] {
        let error = unpacked(zip(&[("SKILL.md", b"x", 0o644), (name, b"x", 0o644)])).unwrap_err();
        assert!(matches!(&error, FolderError::Refused(text) if text.contains("leads out")), "{name}: {error}");
        let mut tar = tar::Builder::new(Vec::new());
        entry(&mut tar, name, EntryType::Regular, b"x");
        let error = unpacked(gz(&tar.into_inner().unwrap())).unwrap_err();
        assert!(matches!(&error, FolderError::Refused(text) if text.contains("leads out")), "{name}: {error}");
    }
}

#[test]
fn links_and_devices_are_left_out() {
    let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
    writer.add_symlink("link.md", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let (files, left_out) = unpacked(writer.finish().unwrap()).unwrap();
    assert!(files.is_empty() && left_out[0].why.contains("is a link"), "{left_out:?}");
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char, EntryType::Block] {
        let mut tar = tar::Builder::new(Vec::new());
        entry(&mut tar, "x", kind, b"");
        let (files, left_out) = unpacked(gz(&tar.into_inner().unwrap())).unwrap();
        assert!(files.is_empty() && left_out.len() == 1, "{kind:?}");
    }
}

#[test]
fn bombs_are_stopped() {
    let zeros = vec![0; 40 << 20];
    let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
    writer.start_file("bomb", SimpleFileOptions::default()).unwrap();
    writer.write_all(&zeros).unwrap();
    assert!(matches!(unpacked(writer.finish().unwrap()).unwrap_err(), FolderError::TooLarge(_)));
    let mut tar = tar::Builder::new(Vec::new());
    entry(&mut tar, "bomb", EntryType::Regular, &zeros);
    assert!(unpacked(gz(&tar.into_inner().unwrap())).is_err());
    // Memory for a name, as much as it says.
    for kind in [EntryType::GNULongName, EntryType::XHeader] {
        let mut tar = tar::Builder::new(Vec::new());
        entry(&mut tar, "x", kind, &vec![b'a'; 1 << 20]);
        assert!(matches!(unpacked(gz(&tar.into_inner().unwrap())).unwrap_err(), FolderError::TooLarge(_)), "{kind:?}");
    }
    let mut many = tar::Builder::new(Vec::new());
    for index in 0..=FILES_MAX {
        entry(&mut many, &format!("f{index}"), EntryType::Regular, b"");
    }
    let error = unpacked(gz(&many.into_inner().unwrap())).unwrap_err();
    assert!(matches!(error, FolderError::TooLarge(_)), "{error}");
}

#[test]
fn damage_is_said() {
    let mut whole = zip(&[("SKILL.md", &b"some text that is there".repeat(50), 0o644)]);
    let length = whole.seek(SeekFrom::End(0)).unwrap();
    whole.set_len(length / 2).unwrap();
    assert!(matches!(unpacked(whole).unwrap_err(), FolderError::Unreadable(_)));
    let mut tar = tar::Builder::new(Vec::new());
    entry(&mut tar, "a", EntryType::Regular, &b"content".repeat(500));
    let bytes = tar.into_inner().unwrap();
    assert!(matches!(unpacked(gz(&bytes[..1_000])).unwrap_err(), FolderError::Unreadable(_)));
    let mut zip64 = zip(&[("SKILL.md", b"x", 0o644)]);
    zip64.seek(SeekFrom::End(0)).unwrap();
    zip64.write_all(b"PK\x06\x07").unwrap();
    assert!(matches!(unpacked(zip64).unwrap_err(), FolderError::TooLarge(_)));
    let mut other = tempfile::tempfile().unwrap();
    other.write_all(b"<html>").unwrap();
    assert_eq!(format_of(&mut other).unwrap(), None);
}
