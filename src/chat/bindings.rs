//! The bindings of the web chat, in `bindings.json` among the stored files. While there is no file the defaults hold.

use std::io;
use std::path::PathBuf;

use agentsvc_api::chat::bindings::{Binding, Bindings, BindingsError, OnRecord, defaults};
use agentsvc_api::chat::error_codes;
use agentsvc_components::kernel::limit::BINDINGS_MAX;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::kernel::disk;

/// The bindings of a home.
#[derive(Debug)]
pub struct BindingsFile {
    path: PathBuf,
    /// Held while they change.
    changing: Mutex<()>,
}

/// The file's form.
#[derive(Serialize, Deserialize)]
struct Form {
    bindings: Vec<Binding>,
}

impl BindingsFile {
    /// Those of `data_dir`.
    pub fn new(data_dir: PathBuf) -> Self {
        Self { path: data_dir.join("bindings.json"), changing: Mutex::new(()) }
    }

    fn read(&self) -> io::Result<Vec<Binding>> {
        let found = disk::there(disk::read(&self.path))?;
        found.map_or_else(|| Ok(defaults()), |bytes| Ok(serde_json::from_slice::<Form>(&bytes)?.bindings))
    }

    fn write(&self, bindings: Vec<Binding>) -> io::Result<()> {
        disk::replace(&self.path, &serde_json::to_vec_pretty(&Form { bindings })?)
    }
}

/// Logs what the disk said, which is not for clients.
fn failed(error: io::Error) -> BindingsError {
    tracing::error!(%error, "bindings.json could not be read or written");
    BindingsError::Failed
}

impl Bindings for BindingsFile {
    fn list(&self) -> Result<Vec<Binding>, BindingsError> {
        self.read().map_err(failed)
    }

    fn add(&self, binding: Binding, on_record: OnRecord<'_>) -> Result<usize, BindingsError> {
        let _changing = self.changing.lock();
        let mut bindings = self.read().map_err(failed)?;
        if let Some(other) = bindings.iter().find(|other| other.clashes(&binding)) {
            let what = other.key.as_deref().unwrap_or("the event");
            let text = format!("{what} is already bound to {:?}; delete that binding first", other.command);
            return Err(BindingsError::Conflict(error_codes::BINDING_EXISTS, text));
        }
        if bindings.len() >= BINDINGS_MAX {
            let text = format!("the limit of {BINDINGS_MAX} bindings is reached; delete some first");
            return Err(BindingsError::Conflict(error_codes::BINDINGS_FULL, text));
        }
        on_record(&binding).map_err(BindingsError::World)?;
        bindings.push(binding);
        let index = bindings.len() - 1;
        self.write(bindings).map_err(failed)?;
        Ok(index)
    }

    fn remove(&self, index: usize, on_record: OnRecord<'_>) -> Result<Binding, BindingsError> {
        let _changing = self.changing.lock();
        let mut bindings = self.read().map_err(failed)?;
        if index >= bindings.len() {
            return Err(BindingsError::NotFound(index));
        }
        let removed = bindings.remove(index);
        on_record(&removed).map_err(BindingsError::World)?;
        self.write(bindings).map_err(failed)?;
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_api::chat::bindings::When;
    use agentsvc_components::Refusal;

    use super::*;

    const NOTED: OnRecord<'static> = &|_| Ok(());

    fn on(event: When, key: Option<&str>, command: &str) -> Binding {
        Binding { event, key: key.map(str::to_owned), command: command.to_owned(), description: String::new() }
    }

    #[test]
    fn defaults_hold_until_something_changes_and_what_is_removed_stays_away() {
        let dir = tempfile::tempdir().unwrap();
        let open = || BindingsFile::new(dir.path().to_owned());
        assert_eq!(open().list().unwrap(), defaults());
        let first = open().remove(0, NOTED).unwrap();
        assert_eq!(first, defaults()[0]);
        assert_eq!(open().list().unwrap(), defaults()[1..]);
        let again = open().add(first.clone(), NOTED).unwrap();
        assert_eq!((again, open().list().unwrap().pop()), (defaults().len() - 1, Some(first)));
        assert_eq!(open().remove(99, NOTED), Err(BindingsError::NotFound(99)));
    }

    #[test]
    fn a_change_is_on_record_before_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().to_owned());
        let refused = || Refusal::busy("the world is full", 1);
        let no = |_: &Binding| Err(refused());
        let before = file.list().unwrap();
        let binding = on(When::Done, None, "scroll_end");
        assert_eq!(file.add(binding.clone(), &no), Err(BindingsError::World(refused())));
        assert_eq!(file.remove(0, &no), Err(BindingsError::World(refused())));
        assert_eq!(file.list().unwrap(), before);
        let unseen = |noted: &Binding| {
            assert_eq!((noted, file.list().unwrap()), (&binding, before.clone()));
            Ok(())
        };
        file.add(binding.clone(), &unseen).unwrap();
    }

    #[test]
    fn clashes_and_too_many_are_refused_and_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().to_owned());
        let code = |result: Result<usize, BindingsError>| match result {
            Err(BindingsError::Conflict(code, _)) => code,
            other => panic!("{other:?}"),
        };
        file.add(on(When::Done, None, "scroll_end"), NOTED).unwrap();
        assert_eq!(code(file.add(on(When::Done, None, "scroll_end"), NOTED)), error_codes::BINDING_EXISTS);
        assert_eq!(code(file.add(on(When::Key, Some("Escape"), "search"), NOTED)), error_codes::BINDING_EXISTS);
        file.add(on(When::Error, None, "scroll_end"), NOTED).unwrap();
        while file.list().unwrap().len() < BINDINGS_MAX {
            let next = file.list().unwrap().len();
            file.add(on(When::Done, None, &format!("/new {next}")), NOTED).unwrap();
        }
        assert_eq!(code(file.add(on(When::Done, None, "/new"), NOTED)), error_codes::BINDINGS_FULL);
        assert_eq!(file.list().unwrap().len(), BINDINGS_MAX);
    }

    #[test]
    fn a_broken_file_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().to_owned());
        std::fs::write(&file.path, "{").unwrap();
        assert_eq!(file.list(), Err(BindingsError::Failed));
        assert_eq!(file.add(on(When::Done, None, "/new"), NOTED), Err(BindingsError::Failed));
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), "{");
    }
}
