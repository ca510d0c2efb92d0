//! Objects of a Git repository, each in a file of its own: blobs, trees and commits.
//!
//! An object is `<kind> <length>\0<content>`. Its id is the SHA-1 of that, its file the same compressed with zlib, in
//! `objects/<first two digits>/<the others>`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_systems::kernel::record::{hex, unhex};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

use crate::kernel::disk;
use crate::kernel::home::private_file;

/// Hex digits of an id.
pub(super) const ID_DIGITS: usize = 40;
/// Bytes of an object that is read: files are small, and a tree of all tracked files is smaller.
const OBJECT_BYTES_MAX: u64 = 4 << 20;
/// Directories in directories that are read; paths of workspaces are less deep.
const DEPTH_MAX: usize = 64;

/// The id of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId([u8; 20]);

impl ObjectId {
    /// The id of 40 hex digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        unhex(text.as_bytes())?.try_into().ok().map(Self)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&hex(&self.0))
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blob,
    Tree,
    Commit,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
            Self::Commit => "commit",
        }
    }
}

/// A file of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileEntry {
    pub(super) id: ObjectId,
    pub(super) is_executable: bool,
}

/// All files of a tree, by their paths.
pub(super) type Files = BTreeMap<String, FileEntry>;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) tree: ObjectId,
    pub(super) parent: Option<ObjectId>,
    /// Seconds since 1970.
    pub(super) at: i64,
    pub(super) message: String,
}

const AUTHOR: &str = "agentsvc <agentsvc@localhost>";

impl Commit {
    fn content(&self) -> String {
        let Self { tree, parent, at, message } = self;
        let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        format!("tree {tree}\n{parent}author {AUTHOR} {at} +0000\ncommitter {AUTHOR} {at} +0000\n\n{message}")
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let (head, message) = text.split_once("\n\n")?;
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let parent = match field("parent") {
            Some(parent) => Some(ObjectId::parse(parent)?),
            None => None,
        };
        let at = field("committer")?.rsplit(' ').nth(1)?.parse().ok()?;
        Some(Self { tree: ObjectId::parse(field("tree")?)?, parent, at, message: message.to_owned() })
    }
}

/// The objects of a repository. All calls block on the disk.
#[derive(Debug)]
pub(super) struct Objects {
    dir: PathBuf,
    /// Bytes of their files, about.
    bytes: AtomicU64,
}

impl Objects {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, bytes: AtomicU64::new(0) }
    }

    /// Bytes of their files, about, once [`measure`](Self::measure) has been called.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds up the bytes of their files.
    pub(super) fn measure(&self) -> io::Result<()> {
        let mut bytes = 0;
        for number in 0..=u8::MAX {
            let dir = self.dir.join(format!("{number:02x}"));
            for entry in disk::there(fs::read_dir(dir))?.into_iter().flatten() {
                bytes += entry?.metadata()?.len();
            }
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn path(&self, id: ObjectId) -> PathBuf {
        let digits = id.to_string();
        self.dir.join(&digits[..2]).join(&digits[2..])
    }

    /// Writes an object unless it is there.
    pub(super) fn put(&self, kind: Kind, content: &[u8]) -> io::Result<ObjectId> {
        let head = format!("{} {}\0", kind.word(), content.len());
        let id = ObjectId(Sha1::new().chain_update(&head).chain_update(content).finalize().into());
        let path = self.path(id);
        // A machine that lost its power may leave an empty file.
        if fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
            return Ok(id);
        }
        if let Some(dir) = path.parent() {
            crate::kernel::home::create_private_dir(dir).map_err(io::Error::other)?;
        }
        let fresh = self.dir.join(".new");
        let file = private_file().write(true).create(true).truncate(true).open(&fresh)?;
        let mut packed = ZlibEncoder::new(file, Compression::fast());
        packed.write_all(head.as_bytes())?;
        packed.write_all(content)?;
        let written = packed.finish()?.metadata()?.len();
        fs::rename(fresh, path)?;
        self.bytes.fetch_add(written, Ordering::Relaxed);
        Ok(id)
    }

    /// Reads an object of this kind.
    ///
    /// # Errors
    /// `NotFound` when it is not there; `InvalidData` when it is damaged, another kind, or too large.
    pub(super) fn get(&self, kind: Kind, id: ObjectId) -> io::Result<Vec<u8>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("the object {id} is damaged"));
        let mut all = Vec::new();
        let unpacked = ZlibDecoder::new(disk::open(&self.path(id))?);
        unpacked.take(OBJECT_BYTES_MAX + 1).read_to_end(&mut all).map_err(|_| damaged())?;
        let is_whole = all.len() as u64 <= OBJECT_BYTES_MAX && ObjectId(Sha1::digest(&all).into()) == id;
        let end = all.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
        let content = all.split_off(end + 1);
        if !is_whole || all[..end] != *format!("{} {}", kind.word(), content.len()).as_bytes() {
            return Err(damaged());
        }
        Ok(content)
    }

    /// The commit of this id.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) fn commit(&self, id: ObjectId) -> io::Result<Commit> {
        let content = self.get(Kind::Commit, id)?;
        Commit::parse(&content).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a commit cannot be read"))
    }

    /// Writes a commit.
    pub(super) fn put_commit(&self, commit: &Commit) -> io::Result<ObjectId> {
        self.put(Kind::Commit, commit.content().as_bytes())
    }

    /// Ids that begin with these digits, in lower case and at least two of them.
    pub(super) fn beginning_with(&self, digits: &str) -> io::Result<Vec<ObjectId>> {
        let (dir, rest) = digits.split_at(2);
        let names = match fs::read_dir(self.dir.join(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        let id = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.starts_with(rest).then(|| ObjectId::parse(&format!("{dir}{name}"))).flatten()
        };
        Ok(names.filter_map(id).collect())
    }

    /// Writes the trees of these files; gives the uppermost.
    pub(super) fn put_tree(&self, files: &Files) -> io::Result<ObjectId> {
        let mut root = Directory::default();
        files.iter().for_each(|(path, file)| root.add(path, *file));
        self.put_directory(&root)
    }

    fn put_directory(&self, directory: &Directory<'_>) -> io::Result<ObjectId> {
        // Git sorts a directory as if a slash were behind its name.
        let mut rows: BTreeMap<Vec<u8>, (&str, &str, ObjectId)> = BTreeMap::new();
        for (name, file) in &directory.files {
            let mode = if file.is_executable { "100755" } else { "100644" };
            rows.insert(name.as_bytes().to_vec(), (mode, name, file.id));
        }
        for (name, below) in &directory.directories {
            rows.insert([name.as_bytes(), b"/"].concat(), ("40000", name, self.put_directory(below)?));
        }
        let mut content = Vec::new();
        for (mode, name, id) in rows.values() {
            content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            content.extend_from_slice(&id.0);
        }
        self.put(Kind::Tree, &content)
    }

    /// All files of a tree. `each` hears of every tree that is read.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) fn files(&self, tree: ObjectId, each: &mut dyn FnMut(ObjectId)) -> io::Result<Files> {
        let mut files = Files::new();
        let mut left = vec![(tree, String::new(), 0)];
        while let Some((id, above, depth)) = left.pop() {
            each(id);
            let content = self.get(Kind::Tree, id)?;
            let mut rest = content.as_slice();
            while !rest.is_empty() {
                let row = row(&mut rest).filter(|_| depth < DEPTH_MAX);
                let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("the tree {id} is damaged"));
                let (mode, name, id) = row.ok_or_else(damaged)?;
                let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
                match mode {
                    "40000" => left.push((id, path, depth + 1)),
                    mode => drop(files.insert(path, FileEntry { id, is_executable: mode == "100755" })),
                }
            }
        }
        Ok(files)
    }

    /// Deletes every object that is not to be kept.
    pub(super) fn keep(&self, wanted: &dyn Fn(ObjectId) -> bool) -> io::Result<usize> {
        let mut removed = 0;
        for number in 0..=u8::MAX {
            let digits = format!("{number:02x}");
            for id in self.beginning_with(&digits)?.into_iter().filter(|id| !wanted(*id)) {
                fs::remove_file(self.path(id))?;
                removed += 1;
            }
        }
        self.measure()?;
        Ok(removed)
    }
}

/// A row of a tree, taken off its front.
fn row<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, &'a str, ObjectId)> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (mode, name) = std::str::from_utf8(&rest[..end]).ok()?.split_once(' ')?;
    let id = rest.get(end + 1..end + 21)?.try_into().ok()?;
    *rest = &rest[end + 21..];
    Some((mode, name, ObjectId(id)))
}

/// Files by directory, to be written from the inside out.
#[derive(Default)]
struct Directory<'a> {
    files: BTreeMap<&'a str, FileEntry>,
    directories: BTreeMap<&'a str, Self>,
}

impl<'a> Directory<'a> {
    /// Adds a file. A name that is a file and a directory is a directory: the file was there before it.
    fn add(&mut self, path: &'a str, file: FileEntry) {
        match path.split_once('/') {
            Some((name, rest)) => {
                self.files.remove(name);
                self.directories.entry(name).or_default().add(rest, file);
            }
            None if !self.directories.contains_key(path) => drop(self.files.insert(path, file)),
            None => {}
        }
    }
}

/// The objects of a repository whose `.git` is this directory.
pub(super) fn of(git: &Path) -> Objects {
    Objects::new(git.join("objects"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects() -> (tempfile::TempDir, Objects) {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::new(dir.path().to_owned());
        (dir, objects)
    }

    #[test]
    fn ids_are_those_of_git() {
        let (_dir, objects) = objects();
        let blob = objects.put(Kind::Blob, b"hello\n").unwrap();
        assert_eq!(blob.to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(objects.put_tree(&Files::new()).unwrap().to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(objects.get(Kind::Blob, blob).unwrap(), b"hello\n");
        assert_eq!(objects.get(Kind::Tree, blob).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(objects.beginning_with("ce01").unwrap(), [blob]);
        assert!(objects.beginning_with("ce02").unwrap().is_empty() && objects.beginning_with("ff").unwrap().is_empty());
    }

    #[test]
    fn trees_and_commits_are_read_as_written() {
        let (_dir, objects) = objects();
        let id = objects.put(Kind::Blob, b"x").unwrap();
        let paths = ["a", "a.b", "a-b/c", "d/e/f", "d/e.f", "ä"];
        let files: Files = paths.map(|path| (path.to_owned(), FileEntry { id, is_executable: path == "a.b" })).into();
        let tree = objects.put_tree(&files).unwrap();
        let mut trees = 0;
        assert_eq!(objects.files(tree, &mut |_| trees += 1).unwrap(), files);
        assert_eq!(trees, 4);
        let first = Commit { tree, parent: None, at: 1_700_000_000, message: "one\n\nagent: x\n".to_owned() };
        let parent = objects.put_commit(&first).unwrap();
        let second = Commit { parent: Some(parent), message: "two\n".to_owned(), ..first.clone() };
        let id = objects.put_commit(&second).unwrap();
        assert_eq!(objects.commit(id).unwrap(), second);
        assert_eq!(objects.commit(parent).unwrap(), first);
        assert_eq!(objects.keep(&|other| other == id).unwrap(), 6);
    }

    #[test]
    fn a_name_that_was_a_file_and_is_a_directory_is_one_row() {
        let (_dir, objects) = objects();
        let id = objects.put(Kind::Blob, b"x").unwrap();
        let entry = FileEntry { id, is_executable: false };
        let files: Files = ["a", "a/b"].map(|path| (path.to_owned(), entry)).into();
        let tree = objects.put_tree(&files).unwrap();
        let found = objects.files(tree, &mut |_| {}).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a/b"]);
    }

    #[test]
    fn a_file_that_is_no_object_is_not_waited_for_nor_read_whole() {
        let (dir, objects) = objects();
        let id = objects.put(Kind::Blob, b"x").unwrap();
        let path = objects.path(id);
        fs::File::create(&path).unwrap().set_len(20 << 30).unwrap();
        assert!(objects.get(Kind::Blob, id).unwrap_err().to_string().contains("is damaged"));
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(objects.get(Kind::Blob, id).unwrap_err().to_string(), "not a regular file");
        let git = dir.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::File::create(git.join("refs/heads/main")).unwrap().set_len(20 << 30).unwrap();
        let error = super::super::repository::Repository::find(dir.path()).unwrap_err().to_string();
        assert_eq!(error, "refs/heads/main: larger than 65536 bytes");
    }

    #[test]
    fn damage_is_found() {
        let (dir, objects) = objects();
        let id = objects.put(Kind::Blob, b"some content").unwrap();
        let digits = id.to_string();
        let path = dir.path().join(&digits[..2]).join(&digits[2..]);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x10;
            fs::write(&path, other).unwrap();
            // A bit of the header of zlib may say nothing.
            if let Ok(content) = objects.get(Kind::Blob, id) {
                assert_eq!(content, b"some content");
            }
        }
        fs::write(&path, &whole[..5]).unwrap();
        assert!(objects.get(Kind::Blob, id).is_err());
    }
}
