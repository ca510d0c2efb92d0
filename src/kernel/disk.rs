//! Names on the disk: looked for, removed if they are there, replaced whole and made durable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::home::private_file;
use super::removal;

/// What was found; `None` where there is nothing.
pub(crate) fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Opens a regular file to read it. Anything else is refused at once: a FIFO or a device may never give an answer.
///
/// # Errors
/// The system's; [`ErrorKind::IsADirectory`] for a directory, [`ErrorKind::Other`] for what is neither.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let special = || io::Error::other("not a regular file");
    let opened = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path);
    // That is how a socket is refused, and a device that is not there.
    let no_device = rustix::io::Errno::NXIO.raw_os_error();
    let file = opened.map_err(|error| if error.raw_os_error() == Some(no_device) { special() } else { error })?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (_, true) => Err(ErrorKind::IsADirectory.into()),
        _ => Err(special()),
    }
}

/// Opens do not wait for the other end of a FIFO.
pub(super) const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// The content of a regular file.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata().map_or(0, |found| found.len());
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bytes of files that hold a few words or numbers.
pub(crate) const SMALL_BYTES: u64 = 64 << 10;

/// The content of a regular file of at most `max` bytes.
///
/// # Errors
/// As [`open`]; [`ErrorKind::FileTooLarge`] for a larger file, which is not read.
pub(crate) fn read_small(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("larger than {max} bytes"));
    let file = open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(length).ok().filter(|_| length <= max).ok_or_else(too_large)?);
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
}

/// The text of a regular file of at most [`SMALL_BYTES`].
///
/// # Errors
/// As [`read_small`]; [`ErrorKind::InvalidData`] when it is not UTF-8.
pub(crate) fn read_small_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_small(path, SMALL_BYTES)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// The text of a regular file.
///
/// # Errors
/// As [`open`]; [`ErrorKind::InvalidData`] when it is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// The paths in a directory, sorted; none when there is no directory.
pub(crate) fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = there(fs::read_dir(dir))?.into_iter().flatten();
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    there(fs::remove_file(path)).map(drop)
}

/// Removes a directory with all that is in it, if it is there.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    there(removal::remove(path)).map(drop)
}

/// Where the new text of a file is until it is in its place.
pub(crate) fn fresh(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}

/// Puts a file that only its owner can read at `path`: a kill leaves the old one or the new one. Durable when it returns; a
/// failure leaves nothing beside it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, bytes)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// [`replace`] for several files of one directory, whose names are made durable together. Of a failure in the middle the
/// files before it remain.
pub(crate) fn replace_all<'a>(dir: &Path, files: impl IntoIterator<Item = (PathBuf, &'a [u8])>) -> io::Result<usize> {
    let mut placed = 0;
    for (path, bytes) in files {
        place(&path, bytes)?;
        placed += 1;
    }
    if placed > 0 {
        sync_dir(dir)?;
    }
    Ok(placed)
}

/// Puts a file in its place whole; its name is durable once its directory is. What is in the way of the new file is removed, not
/// written through: it could be a link.
fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = fresh(path);
    remove_file(&fresh)?;
    let put = || {
        let mut file = private_file().write(true).create_new(true).open(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(&fresh)))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_needs_no_removing() {
        let dir = tempfile::tempdir().unwrap();
        let (file, tree) = (dir.path().join("file"), dir.path().join("tree"));
        fs::write(&file, "x").unwrap();
        fs::create_dir_all(tree.join("below")).unwrap();
        remove_file(&tree).unwrap_err();
        for _ in 0..2 {
            remove_file(&file).unwrap();
            remove_dir(&tree).unwrap();
            sync_dir(dir.path()).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        sync_dir(&tree).unwrap_err();
        assert!(entries(&tree).unwrap().is_empty());
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        for name in ["file", "link"] {
            assert_eq!(
                (read(&path(name)).unwrap(), read_text(&path(name)).unwrap()),
                (b"text".to_vec(), "text".into())
            );
        }
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for name in [path("fifo"), path("socket"), "/dev/zero".into()] {
            assert_eq!(read(&name).unwrap_err().to_string(), "not a regular file", "{}", name.display());
        }
        assert_eq!(open(dir.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(open(&path("none")).unwrap_err().kind(), ErrorKind::NotFound);
        // Nor does a write wait for a reader, or write where a link leads.
        fs::rename(path("fifo"), fresh(&path("file"))).unwrap();
        replace(&path("file"), b"new").unwrap();
        fs::write(path("other"), "kept").unwrap();
        std::os::unix::fs::symlink(path("other"), fresh(&path("file"))).unwrap();
        replace(&path("file"), b"newer").unwrap();
        assert_eq!(
            (fs::read(path("file")).unwrap(), fs::read(path("other")).unwrap()),
            (b"newer".to_vec(), b"kept".to_vec())
        );
    }

    #[test]
    fn a_small_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_small(&path, 5).unwrap(), b"12345");
        assert_eq!(read_small(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_small_text(&path).unwrap(), "12345");
        File::create(&path).unwrap().set_len(20 << 30).unwrap();
        assert_eq!(read_small_text(&path).unwrap_err().to_string(), "larger than 65536 bytes");
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_small_text(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap(), entries(dir.path()).unwrap()), (b"two".to_vec(), vec![path.clone()]));
        // What cannot be put in its place is not left beside it.
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        replace(&taken, b"three").unwrap_err();
        assert_eq!(entries(dir.path()).unwrap(), [path, taken]);
    }
}
