//! Agent types: manifests in `{home}/agent-types/<name>.toml` (spec 2, Agent type), and those that come with the daemon.

mod embedded;

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_api::template::store::{TemplateFile, Templates, TemplatesError};
use agentsvc_components::kernel::limit::{AGENT_TYPES_MAX, MANIFEST_BYTES_MAX};
use agentsvc_systems::manifest;
use parking_lot::Mutex;

pub use embedded::EMBEDDED;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::disk;
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "template",
    uses: &["manifest"],
    open: |opening| {
        opening.provide::<dyn Templates>(Arc::new(AgentTypes::new(opening.home.agent_types_dir())));
        Ok(())
    },
    commands: &[Subcommand::of(
        59,
        "agent-type",
        "Create and change templates for new agents",
        &[Resource::at("/api/templates")
            .called("agent types")
            .columns(&[
                ("NAME", "/name"),
                ("DESCRIPTION", "/description"),
                ("PROVIDER", "/provider"),
                ("MODEL", "/model"),
            ])
            .showing(|found| found["source"] != "agent")],
    )
    .examples(&[
        Example::new("agent-type list", "List the templates"),
        Example::new("agent create coder --name my-coder", "Create an agent from one"),
    ])
    .under(Group::Agents)],
    ..Domain::EMPTY
};

/// What the name of an agent type's file ends with.
const ENDING: &str = ".toml";

/// The agent types of a home.
#[derive(Debug)]
pub struct AgentTypes {
    dir: PathBuf,
    /// Held while one changes, so that no change is lost between two others.
    changing: Mutex<()>,
}

impl AgentTypes {
    /// Those in `dir`, which need not be there.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, changing: Mutex::new(()) }
    }

    /// Writes those that come with the daemon and are not there. Gives how many were written.
    pub fn install(&self) -> io::Result<usize> {
        let _changing = self.changing.lock();
        let mut missing = Vec::new();
        for (name, text) in EMBEDDED {
            let file = self.file(name);
            if !file.try_exists()? {
                missing.push((file, text.as_bytes()));
            }
        }
        disk::replace_all(&self.dir, missing)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}{ENDING}"))
    }

    /// The names of all agent types, sorted.
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for path in disk::entries(&self.dir)? {
            let file = path.file_name().unwrap_or_default();
            let name = file.to_str().and_then(|file| file.strip_suffix(ENDING));
            // What no route could name is none of ours.
            names.extend(name.filter(|name| manifest::validate_name(name).is_ok()).map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// The text of a file; `Ok(None)` when there is none, and a sentence when it is no text that could be a manifest.
fn read(path: &Path) -> io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    match disk::open(path) {
        Ok(file) => match file.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) => return Ok(Some(Err(format!("the file cannot be read: {}", error.kind())))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::IsADirectory) => {
            return Ok(Some(Err(format!("the file cannot be read: {}", error.kind()))));
        }
        Err(error) if error.kind() == ErrorKind::Other => {
            return Ok(Some(Err(format!("the file cannot be read: {error}"))));
        }
        Err(error) => return Err(error),
    }
    if bytes.len() > MANIFEST_BYTES_MAX {
        return Ok(Some(Err(format!("the file is larger than {MANIFEST_BYTES_MAX} bytes"))));
    }
    Ok(Some(String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())))
}

/// Logs what the disk said, which is not for clients.
fn failed(error: io::Error) -> TemplatesError {
    tracing::error!(%error, "the agent types could not be read or written");
    TemplatesError::Failed
}

impl Templates for AgentTypes {
    fn list(&self) -> Result<Vec<TemplateFile>, TemplatesError> {
        let mut files = Vec::new();
        for name in self.names().map_err(failed)?.into_iter().take(AGENT_TYPES_MAX) {
            // One that is gone meanwhile is not listed.
            files.extend(self.read(&name)?);
        }
        Ok(files)
    }

    fn read(&self, name: &str) -> Result<Option<TemplateFile>, TemplatesError> {
        let text = read(&self.file(name)).map_err(failed)?;
        Ok(text.map(|text| TemplateFile { name: name.to_owned(), text }))
    }

    fn create(&self, name: &str, text: &str) -> Result<bool, TemplatesError> {
        let _changing = self.changing.lock();
        if self.file(name).try_exists().map_err(failed)? {
            return Ok(false);
        }
        if self.names().map_err(failed)?.len() >= AGENT_TYPES_MAX {
            return Err(TemplatesError::Full(AGENT_TYPES_MAX));
        }
        crate::kernel::home::create_private_dir(&self.dir).map_err(|error| failed(io::Error::other(error)))?;
        disk::replace(&self.file(name), text.as_bytes()).map_err(failed)?;
        Ok(true)
    }

    fn change(
        &self,
        name: &str,
        change: &mut dyn FnMut(Result<String, String>) -> Option<String>,
    ) -> Result<bool, TemplatesError> {
        let _changing = self.changing.lock();
        let Some(text) = read(&self.file(name)).map_err(failed)? else { return Ok(false) };
        if let Some(changed) = change(text.clone())
            && text.as_ref() != Ok(&changed)
        {
            disk::replace(&self.file(name), changed.as_bytes()).map_err(failed)?;
        }
        Ok(true)
    }

    fn remove(&self, name: &str) -> Result<bool, TemplatesError> {
        let _changing = self.changing.lock();
        match fs::remove_file(self.file(name)) {
            Ok(()) => disk::sync_dir(&self.dir).map(|()| true).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types() -> (tempfile::TempDir, AgentTypes) {
        let dir = tempfile::tempdir().unwrap();
        let types = AgentTypes::new(dir.path().join("agent-types"));
        (dir, types)
    }

    fn names(types: &AgentTypes) -> Vec<String> {
        types.list().unwrap().into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn they_are_made_once_changed_and_deleted() {
        let (_dir, types) = types();
        assert!(names(&types).is_empty() && types.read("a").unwrap().is_none());
        assert!(types.create("b", "name = \"b\"").unwrap() && types.create("a", "name = \"a\"").unwrap());
        assert!(!types.create("a", "other").unwrap());
        assert_eq!(names(&types), ["a", "b"]);
        assert!(types.change("a", &mut |text| Some(format!("{}\n", text.unwrap()))).unwrap());
        assert!(types.change("a", &mut |_| None).unwrap());
        assert!(!types.change("c", &mut |_| Some(String::new())).unwrap());
        assert_eq!(types.read("a").unwrap().unwrap().text.unwrap(), "name = \"a\"\n");
        assert!(types.remove("a").unwrap() && !types.remove("a").unwrap());
        assert_eq!(names(&types), ["b"]);
        assert!(!types.dir.join("coder.toml.new").exists());
    }

    #[test]
    fn what_cannot_be_read_does_not_stop_the_others() {
        let (_dir, types) = types();
        types.create("good", "name = \"good\"").unwrap();
        fs::write(types.file("binary"), b"\xff\xfe").unwrap();
        fs::write(types.file("long"), "#".repeat(MANIFEST_BYTES_MAX + 1)).unwrap();
        fs::create_dir(types.file("folder")).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, types.file("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        fs::write(types.dir.join("notes.txt"), "x").unwrap();
        fs::write(types.dir.join(".toml"), "x").unwrap();
        let list = types.list().unwrap();
        let broken: Vec<_> = list.iter().filter(|file| file.text.is_err()).map(|file| &*file.name).collect();
        assert_eq!((broken, list.len()), (vec!["binary", "folder", "long", "pipe"], 5));
    }

    #[test]
    fn an_installed_type_is_never_overwritten() {
        let (_dir, types) = types();
        fs::create_dir_all(&types.dir).unwrap();
        fs::write(types.file("coder"), "# mine\n").unwrap();
        assert_eq!(types.install().unwrap(), EMBEDDED.len() - 1);
        assert_eq!(types.install().unwrap(), 0);
        assert_eq!(fs::read_to_string(types.file("coder")).unwrap(), "# mine\n");
        assert_eq!(names(&types).len(), EMBEDDED.len());
    }
}
