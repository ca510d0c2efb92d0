//! Files that several daemons have together: what one of them keeps, the others find. A daemon that is alone shares nothing, and pays
//! one look at an empty cell.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

/// Why a shared file could not be had or kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Those who keep them do not answer; again later.
    #[error("the shared files cannot be reached: {0}")]
    Unavailable(String),
    /// The content could not be read or written on this side.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is shared, and this is said about it.
    There(String),
    /// It was shared and has been removed.
    Removed,
    /// It was never shared.
    Never,
}

/// Keeps files for several daemons. Every call may wait for a network.
pub trait SharedFiles: Send + Sync + 'static {
    /// Is it for this daemon to change what is shared?
    fn is_leading(&self) -> bool;

    /// Shares `content` as `name`, in place of what is there, with a few words `about` it. Durable when it returns.
    ///
    /// # Errors
    /// [`Error`]; the others see nothing of it, or, when only the answer was lost, all of it.
    fn put(&self, name: &str, about: &str, content: &mut (dyn Read + Send)) -> Result<(), Error>;

    /// What is known of `name`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    fn known(&self, name: &str) -> Result<Known, Error>;

    /// Writes the content of `name` into `to`.
    ///
    /// # Errors
    /// [`Error`], also when it is not there; then `to` may have a part of it.
    fn get(&self, name: &str, to: &mut (dyn Write + Send)) -> Result<(), Error>;

    /// Removes `name`; one that is not there is no error.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// The names that begin with `folder`, and what is said about each.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    fn list(&self, folder: &str) -> Result<Vec<(String, String)>, Error>;

    /// Lets go of what puts that failed left behind. For the daemon that leads, now and then.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    fn tidy(&self) -> Result<(), Error>;
}

/// With whom this daemon shares files. Cheap to clone; copies are the same.
#[derive(Clone, Default)]
pub struct Sharing(Arc<OnceLock<Arc<dyn SharedFiles>>>);

impl Sharing {
    /// From now on files are shared with `files`. Only the first call counts.
    pub fn set(&self, files: Arc<dyn SharedFiles>) {
        let _only_once = self.0.set(files);
    }

    /// Those who share; `None` for a daemon that is alone.
    #[must_use]
    pub fn get(&self) -> Option<&dyn SharedFiles> {
        self.0.get().map(|files| &**files)
    }

    /// Is it for this daemon to change what is shared? One that is alone changes what it has.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.get().is_none_or(SharedFiles::is_leading)
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Sharing(others)" } else { "Sharing(nobody)" })
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Shared files in memory.

    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use parking_lot::Mutex;

    use super::*;

    /// What is said about a file, and its content; `None` for one that was removed.
    type Kept = Option<(String, Vec<u8>)>;

    /// What daemons of a test share.
    #[derive(Default)]
    pub(crate) struct Shelf {
        pub(crate) files: Mutex<BTreeMap<String, Kept>>,
        pub(crate) is_down: AtomicBool,
    }

    /// The way of one daemon to it.
    pub(crate) struct OnShelf {
        pub(crate) shelf: Arc<Shelf>,
        pub(crate) leads: bool,
    }

    impl Shelf {
        /// A way to it for a daemon that leads or does not.
        pub(crate) fn of(self: &Arc<Self>, leads: bool) -> Arc<OnShelf> {
            Arc::new(OnShelf { shelf: Arc::clone(self), leads })
        }

        /// The names of what is there.
        pub(crate) fn names(&self) -> Vec<String> {
            self.files.lock().iter().filter(|(_, kept)| kept.is_some()).map(|(name, _)| name.clone()).collect()
        }

        pub(crate) fn set_down(&self, is_down: bool) {
            self.is_down.store(is_down, Ordering::Relaxed);
        }

        fn check(&self) -> Result<(), Error> {
            if self.is_down.load(Ordering::Relaxed) { Err(Error::Unavailable("down".to_owned())) } else { Ok(()) }
        }
    }

    impl SharedFiles for OnShelf {
        fn is_leading(&self) -> bool {
            self.leads
        }

        fn put(&self, name: &str, about: &str, content: &mut (dyn Read + Send)) -> Result<(), Error> {
            self.shelf.check()?;
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            self.shelf.files.lock().insert(name.to_owned(), Some((about.to_owned(), bytes)));
            Ok(())
        }

        fn known(&self, name: &str) -> Result<Known, Error> {
            self.shelf.check()?;
            Ok(match self.shelf.files.lock().get(name) {
                Some(Some((about, _))) => Known::There(about.clone()),
                Some(None) => Known::Removed,
                None => Known::Never,
            })
        }

        fn get(&self, name: &str, to: &mut (dyn Write + Send)) -> Result<(), Error> {
            self.shelf.check()?;
            let kept = self.shelf.files.lock().get(name).cloned().flatten();
            let (_, bytes) = kept.ok_or_else(|| Error::Unavailable("not there".to_owned()))?;
            Ok(to.write_all(&bytes)?)
        }

        fn remove(&self, name: &str) -> Result<(), Error> {
            self.shelf.check()?;
            if let Some(kept) = self.shelf.files.lock().get_mut(name) {
                *kept = None;
            }
            Ok(())
        }

        fn list(&self, folder: &str) -> Result<Vec<(String, String)>, Error> {
            self.shelf.check()?;
            let files = self.shelf.files.lock();
            let there = files.iter().filter(|(name, _)| name.starts_with(folder));
            Ok(there.filter_map(|(name, kept)| Some((name.clone(), kept.as_ref()?.0.clone()))).collect())
        }

        fn tidy(&self) -> Result<(), Error> {
            self.shelf.check()
        }
    }
}
