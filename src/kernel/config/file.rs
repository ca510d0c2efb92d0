//! The file itself: read, and replaced whole by one writer at a time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::kernel::disk;
use crate::kernel::home::{Home, private_file};

/// Bytes that the file may have to be edited over the API or the command line; no configuration comes near.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why the file could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It has more than [`FILE_BYTES_MAX`] bytes.
    #[error("{} is larger than {FILE_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

/// `{home}/config.toml` for those who change it. Every call blocks on the disk.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    lock: PathBuf,
}

impl ConfigFile {
    /// The file of `home`; it need not exist.
    pub fn new(home: &Home) -> Self {
        Self { path: home.config_file(), lock: home.root().join("config.lock") }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text; empty when there is none.
    ///
    /// # Errors
    /// [`Error`]: it cannot be read, is too large or is not UTF-8.
    pub fn text(&self) -> Result<String, Error> {
        match fs::metadata(&self.path) {
            Ok(found) if found.len() > FILE_BYTES_MAX => Err(Error::TooLarge(self.path.clone())),
            Ok(_) => disk::read_text(&self.path).map_err(io("read", &self.path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(io("read", &self.path)(error)),
        }
    }

    /// Lets `change` make a new text of the one on the disk, and puts it in its place. Writers wait for each other,
    /// those of other processes too, so that none works on a text that is no longer there. A kill at any point leaves
    /// the old file or the new one. A text that is the same is not written.
    ///
    /// # Errors
    /// What `change` refuses, or [`Error`] in its form; then the file is as it was.
    pub fn change<T, E: From<Error>>(&self, change: impl FnOnce(&str) -> Result<(String, T), E>) -> Result<T, E> {
        let lock = private_file().write(true).create(true).truncate(false).open(&self.lock);
        let lock = lock.map_err(io("open", &self.lock))?;
        // Given back when it is closed.
        lock.lock().map_err(io("lock", &self.lock))?;
        let before = self.text()?;
        let (after, given) = change(&before)?;
        if after != before || !self.path.exists() {
            self.replace(&after)?;
        }
        Ok(given)
    }

    /// Puts the text `before` in the place of `after`, unless there is another one by now.
    ///
    /// # Errors
    /// [`Error`]; then the file is as it was.
    pub fn put_back(&self, before: String, after: &str) -> Result<(), Error> {
        self.change(|now| Ok((if now == after { before } else { now.to_owned() }, ())))
    }

    fn replace(&self, text: &str) -> Result<(), Error> {
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(Error::TooLarge(self.path.clone()));
        }
        // A link stays one: what it leads to is replaced.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let fresh = path.with_extension("toml.new");
        let _left_behind = fs::remove_file(&fresh);
        let written = (|| {
            let mut file = private_file().write(true).create_new(true).open(&fresh)?;
            if let Ok(found) = fs::metadata(&path) {
                file.set_permissions(found.permissions())?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&fresh, &path)?;
            path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
        })();
        written.inspect_err(|_| drop(fs::remove_file(&fresh))).map_err(io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::{ConfigFile, Error};
    use crate::kernel::home::Home;

    fn put(file: &ConfigFile, text: &str) -> Result<(), Error> {
        file.change(|_| Ok((text.to_owned(), ())))
    }

    #[test]
    fn it_is_made_for_its_owner_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConfigFile::new(&Home::new(dir.path()));
        let mode = || fs::metadata(file.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(file.text().unwrap(), "");
        put(&file, "a = 1\n").unwrap();
        assert_eq!((file.text().unwrap().as_str(), mode()), ("a = 1\n", 0o600));
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        put(&file, "a = 2\n").unwrap();
        assert_eq!((file.text().unwrap().as_str(), mode()), ("a = 2\n", 0o640));
        let others: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(others.len(), 2, "nothing is left behind but the lock: {others:?}");
    }

    #[test]
    fn a_refusal_leaves_it_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConfigFile::new(&Home::new(dir.path()));
        put(&file, "a = 1\n").unwrap();
        let refused: Result<(), Error> = file.change(|_| Err(Error::TooLarge("x".into())));
        assert!(refused.is_err());
        assert!(put(&file, &"#".repeat(2 << 20)).is_err());
        assert_eq!(file.text().unwrap(), "a = 1\n");
    }

    #[test]
    fn what_was_changed_is_put_back_unless_it_was_changed_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConfigFile::new(&Home::new(dir.path()));
        put(&file, "a = 2\n").unwrap();
        file.put_back("a = 1\n".to_owned(), "a = 2\n").unwrap();
        assert_eq!(file.text().unwrap(), "a = 1\n");
        put(&file, "a = 3\n").unwrap();
        file.put_back("a = 1\n".to_owned(), "a = 2\n").unwrap();
        assert_eq!(file.text().unwrap(), "a = 3\n");
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConfigFile::new(&Home::new(dir.path()));
        let real = dir.path().join("real.toml");
        fs::write(&real, "a = 1\n").unwrap();
        std::os::unix::fs::symlink(&real, file.path()).unwrap();
        put(&file, "a = 2\n").unwrap();
        assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(real).unwrap(), "a = 2\n");
    }

    #[test]
    fn writers_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConfigFile::new(&Home::new(dir.path()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let one_more = |text: &str| Ok::<_, Error>((format!("{text}#\n"), ()));
                        file.change(one_more).unwrap();
                    }
                });
            }
        });
        assert_eq!(file.text().unwrap().lines().count(), 100);
    }
}
