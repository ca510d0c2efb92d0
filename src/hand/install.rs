//! Hands that are installed: from texts, a folder, or the registry.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_api::hand::error_codes::HAND_EXISTS;
use agentsvc_api::hand::hands::{HandError, HandOrigin, HandSource, PreparedHand, StoredHand};
use agentsvc_api::http::error::Error;
use agentsvc_api::http::files::FilesError;
use agentsvc_components::Refusal;
use agentsvc_systems::hand::definition::{check_id, parse};
use agentsvc_systems::hand::error_codes::HANDS_FULL;
use agentsvc_systems::hand::limits::{HAND_SKILL_BYTES_MAX, HANDS_MAX};

use super::files::{HandFiles, STAGING, failed};
use super::texts::{HAND_FILE, ORIGIN_FILE, Texts, skill_file};
use crate::kernel::home::{create_private_dir, private_file};
use crate::kernel::{disk, free_space};
use crate::skill_source::RegistryPlace;

/// Where the hands are in the registry.
const HANDS: &str = "hands";

impl HandFiles {
    /// Reads a source, from the registry if it names a hand there.
    pub(super) async fn prepare_source(self: Arc<Self>, source: HandSource) -> Result<PreparedHand, HandError> {
        let texts: Box<dyn FnOnce() -> Result<Texts, HandError> + Send> = match source {
            HandSource::Texts { toml, skill } => {
                let skills = skill.filter(|text| !text.trim().is_empty()).map(|text| (String::new(), text));
                let texts = Texts { toml, skills: skills.into_iter().collect(), ..Texts::default() };
                Box::new(move || Ok(texts))
            }
            HandSource::Place(place) if place.starts_with('/') => Box::new(move || read_path(&place)),
            HandSource::Place(name) => {
                check_id(&name).map_err(|_| {
                    let text = "source: must be an absolute path or the name of a hand of the registry";
                    Refusal::bad_field("source", text)
                })?;
                let hands = self.registry_hands().await?;
                Box::new(move || {
                    let texts = read_dir(&hands.join(&name), &name)?;
                    Ok(Texts { origin: HandOrigin::Registry, ..texts })
                })
            }
        };
        blocking(move || self.prepare_texts(texts()?)).await
    }

    /// The hands of the registry. What cannot be read is left out.
    pub(super) async fn of_registry(self: Arc<Self>) -> Result<Vec<StoredHand>, HandError> {
        let hands = self.registry_hands().await?;
        blocking(move || {
            let folders = disk::there(disk::entries(&hands)).map_err(failed)?.unwrap_or_default();
            let read = folders.iter().take(HANDS_MAX).filter_map(|folder| {
                let texts = Texts::read(folder).ok()?;
                let mut definition = parse(&texts.toml).ok()?;
                // A list shows neither agents nor settings, and there may be thousands.
                (definition.roles, definition.settings) = (Vec::new(), Vec::new());
                Some(StoredHand { definition, origin: HandOrigin::Registry, ..StoredHand::default() })
            });
            let mut found: Vec<StoredHand> = read.collect();
            found.sort_by(|one, other| one.definition.id.cmp(&other.definition.id));
            found.dedup_by(|one, other| one.definition.id == other.definition.id);
            Ok(found)
        })
        .await
    }

    async fn registry_hands(&self) -> Result<PathBuf, HandError> {
        let place = self.settings.get::<RegistryPlace>();
        let found = place.find().await.map_err(|error| HandError::Registry(Error::from(error)))?;
        Ok(found.join(HANDS))
    }

    fn prepare_texts(&self, texts: Texts) -> Result<PreparedHand, HandError> {
        let definition = parse(&texts.toml)?;
        if let Some((_, text)) = texts.skills.iter().find(|(_, text)| text.len() > HAND_SKILL_BYTES_MAX) {
            let text = format!("skill_content: {} bytes; the limit is {HAND_SKILL_BYTES_MAX}", text.len());
            return Err(Refusal::bad_field("skill_content", text).into());
        }
        let warnings = texts.scan()?;
        let Texts { toml, skills, origin, .. } = texts;
        // What a folder says of itself does not count, unless the operator puts it into the home.
        let origin = if origin == HandOrigin::Bundled { HandOrigin::Custom } else { origin };
        let mut files = vec![(HAND_FILE.to_owned(), toml), (ORIGIN_FILE.to_owned(), origin.as_str().to_owned())];
        files.extend(skills.iter().map(|(role, text)| (skill_file(role), text.clone())));
        let hand = StoredHand { definition, skills, origin };
        self.wait_until_read()?;
        self.check_place(&hand.definition.id)?;
        Ok(PreparedHand { hand, files, warnings })
    }

    /// Is there a place for a hand of this id?
    fn check_place(&self, id: &str) -> Result<(), HandError> {
        let (is_known, count) = self.with_known(|known| (known.by_id.contains_key(id), known.by_id.len()));
        if is_known || self.dir.join(id).try_exists().map_err(failed)? {
            let text = format!("hand {id:?} is already installed; delete it first");
            return Err(Refusal::conflict(text).with_code(HAND_EXISTS).into());
        }
        if count >= HANDS_MAX {
            let text = format!("the limit of {HANDS_MAX} hands is reached; delete some first");
            return Err(Refusal::full(text, HANDS_FULL).into());
        }
        Ok(())
    }

    /// Installs a hand that was prepared.
    pub(super) fn put(&self, PreparedHand { hand, files, .. }: PreparedHand) -> Result<StoredHand, HandError> {
        let _changing = self.changing.lock();
        let id = &hand.definition.id;
        self.check_place(id)?;
        self.write(id, &files).map_err(failed)?;
        let entry = self.read_folder(id).map_err(|why| failed(io::Error::other(why)))?;
        self.with_known(|known| known.by_id.insert(id.clone(), entry));
        Ok(hand)
    }

    /// Writes a new folder, as a whole.
    fn write(&self, id: &str, files: &[(String, String)]) -> io::Result<()> {
        let bytes = files.iter().map(|(_, text)| text.len() as u64).sum();
        create_private_dir(&self.dir).map_err(io::Error::other)?;
        free_space::check(&self.dir, bytes)?;
        let staged = self.dir.join(format!("{STAGING}{id}"));
        disk::remove_dir(&staged)?;
        create_private_dir(&staged).map_err(io::Error::other)?;
        for (name, text) in files {
            let mut file = private_file().write(true).create_new(true).open(staged.join(name))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        disk::sync_dir(&staged)?;
        fs::rename(&staged, self.dir.join(id))?;
        disk::sync_dir(&self.dir)
    }
}

/// The texts at an absolute path: a folder, or its HAND.toml.
fn read_path(place: &str) -> Result<Texts, HandError> {
    let path = Path::new(place);
    let dir = if path.ends_with(HAND_FILE) { path.parent().unwrap_or(path) } else { path };
    let texts = read_dir(dir, place)?;
    Ok(Texts { origin: HandOrigin::Custom, ..texts })
}

fn read_dir(dir: &Path, named: &str) -> Result<Texts, HandError> {
    if !dir.join(HAND_FILE).is_file() {
        return Err(FilesError::NotFound(format!("source: {named:?} has no {HAND_FILE}")).into());
    }
    Ok(Texts::read(dir)?)
}

/// Runs work that waits for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HandError> + Send + 'static,
) -> Result<T, HandError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(FilesError::Failed.into()))
}
