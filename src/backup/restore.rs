//! Restores an archive: checks it whole, finds out what would change, builds what is new, and decides.
//!
//! ```text
//! prepare   unpack and check the archive, prove the world that comes of it, compare       nothing changes
//! build     the new store, of the archive's rows and those that stay                      nothing changes
//! decide    one rename                                                                     it is restored
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_api::backup::store::{BackupRestored, Changes, ComponentChanges};
use agentsvc_components::Timestamp;
use agentsvc_systems::kernel::record::hex;
use rustix::io::Errno;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::component::{CONFIG, Component, Part, Selection, components_of};
use super::error::{Error, io};
use super::files::{self, Places, children};
use super::merge::{Mix, Source, compare};
use super::place::{Base, Move, Plan, Rooms};
use super::progress::Progress;
use super::stage::{self, Stage, Target};
use crate::agent::files_taint::FilesTaint;
use crate::audit::vault::Vault as AuditVault;
use crate::kernel::archives::moment;
use crate::kernel::disk::{self, remove_dir};
use crate::kernel::home::create_private_dir;
use crate::kernel::settings::DataDir;
use crate::kernel::store::Store;
use crate::kernel::store::rows::RowTotals;
use crate::kernel::store::view::StoreView;
use crate::kernel::vault::Vault;

/// What a restore needs to know of its target.
pub struct Job<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// Where everything belongs.
    pub places: &'a Places,
    /// The secrets of the target.
    pub vault: &'a Vault,
    /// What is wanted of it.
    pub selection: &'a Selection,
    /// Do the keys of config.toml that clients may not write stay as they are? Else all of it comes from the archive.
    pub keeps_protected: bool,
    /// The time of day.
    pub now: Timestamp,
}

/// A restore that can be done.
pub struct Prepared {
    stage: Stage,
    selection: Selection,
    rooms: Rooms,
    places: Places,
    moves: Vec<Move>,
    archive: String,
    /// The configuration that was here when what stays of it was taken over.
    present: Option<String>,
    /// Changes by component; `other` belongs to none.
    pub changes: BTreeMap<String, ComponentChanges>,
    /// What is left out.
    pub warnings: Vec<String>,
}

/// Checks the archive and everything that can be known before anything changes. `live` is the world that is there.
///
/// # Errors
/// [`Error`]; nothing was changed.
pub fn prepare(job: &Job<'_>, live: Option<&StoreView>, progress: &Progress) -> Result<Prepared, Error> {
    let rooms = Rooms::new(&job.places.home, &job.places.data);
    let is_merged = job.keeps_protected && job.selection.takes(CONFIG);
    let present = is_merged.then(|| present_config(job.places)).transpose()?;
    let (places, selection, vault) = (job.places, job.selection, job.vault);
    let target = Target { places, rooms: &rooms, vault, selection, present: present.as_deref() };
    let prepared = (|| {
        let mut stage = stage::unpack(job.archive, &target, progress)?;
        if let Some(config) = &stage.config {
            check_config(config, job.places)?;
        }
        let mut warnings = std::mem::take(&mut stage.warnings);
        stage.manifest.warnings.iter().for_each(|warning| warnings.add(format!("in the backup: {warning}")));
        progress.begin("comparing", stage.manifest.bytes());
        if Part::ALL.into_iter().any(|part| job.selection.takes_part(part)) {
            let dropped = mix(&stage, live, job.selection, job.places)?.prove(job.now, progress)?;
            if dropped > 0 {
                warnings.add(format!("{dropped} schedules and cron jobs were skipped: their agents do not exist"));
            }
        }
        let changes = changes(&stage, live, job, &rooms, progress)?;
        let moves = moves(&stage, job.selection, job.places, &rooms)?;
        check_moves(&moves, job, &rooms)?;
        let archive = job.archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Prepared {
            stage,
            selection: job.selection.clone(),
            rooms: rooms.clone(),
            places: job.places.clone(),
            moves,
            archive,
            present: present.clone(),
            changes,
            warnings: warnings.into_list(),
        })
    })();
    if prepared.is_err() {
        // What is left is removed before the next one.
        let _ = rooms.clear();
    }
    prepared
}

/// The text of config.toml; empty when there is none.
fn present_config(places: &Places) -> Result<String, Error> {
    let path = places.home.config_file();
    Ok(disk::there(disk::read_text(&path)).map_err(io("read", &path))?.unwrap_or_default())
}

/// The stored files must be where this daemon looks for them.
fn check_config(DataDir(configured): &DataDir, places: &Places) -> Result<(), Error> {
    let there = places.home.data_dir(configured.as_deref());
    if there == places.data {
        return Ok(());
    }
    let (there, here) = (there.display(), places.data.display());
    Err(Error::Unfit(format!(
        "the configuration of the backup sets data_dir to {there}, but it is {here} here; use `keep_config`"
    )))
}

fn mix(stage: &Stage, live: Option<&StoreView>, selection: &Selection, places: &Places) -> Result<Mix, Error> {
    let vault = places.home.vault_dir();
    // A key is not made only to see that it has signed nothing.
    let signer = vault.join("audit.key").exists().then(|| AuditVault::open(&vault).ok()).flatten();
    Mix::new(stage, live, |part| selection.takes_part(part), signer)
}

impl Prepared {
    /// What the archive is.
    pub fn manifest(&self) -> &super::manifest::Manifest {
        &self.stage.manifest
    }

    /// Where the new store is built.
    pub fn next_world(&self) -> PathBuf {
        self.rooms.next_world()
    }

    /// Must the world stop? Files alone are exchanged beside it.
    pub fn changes_world(&self) -> bool {
        Part::ALL.into_iter().any(|part| self.selection.takes_part(part))
    }

    /// Does a configuration come with it?
    pub fn has_config(&self) -> bool {
        self.stage.config.is_some()
    }

    /// Do all rows come from the archive? Then the new store can be built while the world goes on; its audit trail and
    /// the store's own rows are to be carried over afterwards.
    pub fn replaces_world(&self) -> bool {
        Part::ALL.into_iter().all(|part| part == Part::AuditLog || self.selection.takes_part(part))
    }

    /// Builds the new store. `live` is the last state of the world that is there: nothing may be written behind it, unless
    /// all rows [come from the archive](Self::replaces_world).
    ///
    /// # Errors
    /// [`Error`]; there is no new store then.
    pub fn build(&self, live: Option<&StoreView>, progress: &Progress) -> Result<RowTotals, Error> {
        let next = self.rooms.next_world();
        remove_dir(&next).map_err(io("remove", &next))?;
        let mix = mix(&self.stage, live, &self.selection, &self.places)?;
        progress.begin("building", self.stage.manifest.bytes());
        let totals = Store::build(&next, mix.rows(progress)?)?;
        // In an archive of an older release no id has a slot.
        let manifest = &self.stage.manifest;
        let born = manifest.born.or_else(|| moment(&manifest.created_at).map(|created| created.plus_ms(1)));
        if let Some(born) = born {
            Store::open(next)?.set_born(born)?;
        }
        Ok(totals)
    }

    /// Where the files of agents stay and their rows do not, the new store learns what is known of them. `old` is the last
    /// state of the world that is there.
    ///
    /// # Errors
    /// [`Error`]; the new store is of no use then.
    pub fn keep_taint(&self, old: &StoreView) -> Result<(), Error> {
        if self.moves.iter().any(|step| step.base == Base::Home && step.path == "workspaces") {
            return Ok(());
        }
        Ok(files_taint(&self.places, old.clone()).raise_in(&self.rooms.next_world())?)
    }

    /// From here on it is restored, whatever happens. The new store, if there is one, is built.
    ///
    /// # Errors
    /// [`Error`]; nothing was changed.
    pub fn decide(&self) -> Result<Decided, Error> {
        if self.present.is_some() && self.present != Some(present_config(&self.places)?) {
            return Err(Error::Unfit("config.toml was changed during the restore; try again".to_owned()));
        }
        let world = if self.changes_world() { Some(self.rooms.next_inode()?) } else { None };
        let plan = Plan {
            archive: self.archive.clone(),
            details: self.details(),
            data: self.places.data.clone(),
            world,
            moves: self.rooms.replacing(&self.moves)?,
        };
        self.rooms.decide(&plan)?;
        Ok(Decided { rooms: self.rooms.clone(), plan })
    }

    /// What goes on the audit trail.
    pub fn details(&self) -> serde_json::Value {
        let manifest = &self.stage.manifest;
        let components: Vec<&str> =
            Component::ALL.into_iter().filter(|one| self.selection.has(*one)).map(Component::as_str).collect();
        json!({
            "filename": self.archive,
            "created_at": manifest.created_at,
            "step": manifest.step,
            "components": components,
            "keep_config": self.selection.keep_config,
            "config_kept": self.stage.config_kept,
            "archive_audit": manifest.audit,
        })
    }

    /// What a client is told of it.
    pub fn answer(&self, dry_run: bool) -> BackupRestored {
        let manifest = self.manifest();
        BackupRestored {
            status: if dry_run { "dry_run" } else { "restored" },
            filename: self.archive.clone(),
            created_at: manifest.created_at.clone(),
            step: manifest.step,
            components: self.changes.clone(),
            config_kept: self.stage.config_kept.clone(),
            restart_required: Vec::new(),
            pause_ms: 0,
            warnings: self.warnings.clone(),
        }
    }

    /// Nothing is to be done.
    pub fn discard(&self) {
        if let Err(error) = self.rooms.clear() {
            tracing::warn!(%error, "staged files of a backup are kept until the next start");
        }
        let _ = remove_dir(&self.rooms.next_world());
    }
}

/// A restore that is decided.
pub struct Decided {
    rooms: Rooms,
    plan: Plan,
}

impl Decided {
    /// Puts the new store into its place, where nobody else does.
    ///
    /// # Errors
    /// [`Error`]; the next start tries again.
    pub fn exchange_world(&self) -> Result<(), Error> {
        self.rooms.exchange_world(&self.plan)
    }

    /// Puts the files into their places.
    ///
    /// # Errors
    /// [`Error`]; the next start tries again, unless it is taken back.
    pub fn exchange_files(&self) -> Result<(), Error> {
        self.rooms.carry_out(&self.plan)
    }

    /// The files are as they were, and it was never decided. The store is taken back by whoever exchanged it; when it was
    /// not, the next start completes the restore instead.
    pub fn take_back(&self) -> Result<(), Error> {
        if self.rooms.is_world_new(&self.plan)? {
            return Ok(());
        }
        self.rooms.take_back(&self.plan)?;
        self.rooms.give_up()?;
        // The next start would remove it, too: it is as large as a world.
        let _ = remove_dir(&self.rooms.next_world());
        Ok(())
    }

    /// All is done: what it was goes on record with the next start, or before.
    ///
    /// # Errors
    /// [`Error`]; the next start tries again.
    pub fn finish(&self) -> Result<(), Error> {
        self.rooms.finish()
    }
}

/// What is to be exchanged: directories of the home as a whole, entries of the data directory and secrets one by one.
fn moves(stage: &Stage, selection: &Selection, places: &Places, rooms: &Rooms) -> Result<Vec<Move>, Error> {
    let mut moves = Vec::new();
    let put = |base, path: &str| Move { base, path: path.to_owned(), remove: false, replaces: None };
    if stage.files.contains(CONFIG) {
        moves.push(put(Base::Home, CONFIG));
    }
    moves.extend(stage.files.iter().filter(|name| name.starts_with("vault/")).map(|name| put(Base::Home, name)));
    for tree in stage.manifest.covers.iter().filter(|tree| is_tree(tree)) {
        if !selection.takes(&format!("{tree}/")) {
            continue;
        }
        let staged = rooms.new_path(Base::Home, tree);
        if staged.exists() || places.home.root().join(tree).exists() {
            // One without files becomes one without files.
            create_private_dir(&staged).map_err(|error| io("create", &staged)(io::Error::other(error)))?;
            moves.push(put(Base::Home, tree));
        }
    }
    let listed = |dir: &Path| children(dir).map_err(io("list", dir));
    let staged: BTreeSet<String> = listed(&rooms.new_path(Base::Data, ""))?.into_iter().map(|(name, _)| name).collect();
    let here: BTreeSet<String> = places.stored()?.into_iter().map(|(name, _)| name).collect();
    if let Some(name) = staged.iter().find(|name| places.is_own(&places.data.join(name))) {
        return Err(Error::Unsafe { name: format!("data/{name}"), reason: "belongs to this home" });
    }
    moves.extend(staged.iter().map(|name| put(Base::Data, name)));
    let gone = here.difference(&staged).filter(|name| selection.takes(&format!("data/{name}")));
    moves.extend(gone.map(|name| Move { remove: true, ..put(Base::Data, name) }));
    Ok(moves)
}

/// Neither the archive nor the other backups may lie in what is to be exchanged: they would go with it.
fn check_moves(moves: &[Move], job: &Job<'_>, rooms: &Rooms) -> Result<(), Error> {
    for step in moves {
        let place = rooms.place(step.base, &step.path);
        if job.places.backups.starts_with(&place) || job.archive.starts_with(&place) {
            let text =
                format!("{} is replaced by the restore and contains the backup; move the backup elsewhere", step.path);
            return Err(Error::Unfit(text));
        }
    }
    Ok(())
}

/// What the newest world knows of the files in the workspaces.
pub(super) fn files_taint(places: &Places, known: StoreView) -> FilesTaint {
    FilesTaint { known, workspaces: places.home.workspaces_dir() }
}

fn is_tree(name: &str) -> bool {
    super::component::TREES.iter().any(|(tree, _)| *tree == name)
}

/// What changes, by component.
fn changes(
    stage: &Stage,
    live: Option<&StoreView>,
    job: &Job<'_>,
    rooms: &Rooms,
    progress: &Progress,
) -> Result<BTreeMap<String, ComponentChanges>, Error> {
    let mut changes: BTreeMap<String, ComponentChanges> = BTreeMap::new();
    let mut add = |entry: &str, rows: Changes, files: Changes| {
        let of = components_of(entry);
        let names = if of.is_empty() { vec!["other"] } else { of.iter().map(|one| one.as_str()).collect() };
        for name in names {
            let change = changes.entry(name.to_owned()).or_default();
            change.rows += rows;
            change.files += files;
        }
    };
    for part in Part::ALL.into_iter().filter(|part| job.selection.takes_part(*part)) {
        let before = live.map_or(Source::Nowhere, |view| Source::Live(view.clone()));
        let after = stage.rows.get(&part).cloned().map_or(Source::Nowhere, Source::Archive);
        add(part.entry(), compare(part, &before, &after, progress)?, Changes::default());
    }
    for entry in stage.manifest.entries.iter().filter(|entry| stage.files.contains(&entry.name)) {
        let mut change = Changes::default();
        match hash_of(&entry.name, entry.size, job.places)? {
            None => change.added = 1,
            Some(hash) if hash == entry.sha256 => change.unchanged = 1,
            Some(_) => change.replaced = 1,
        }
        add(&entry.name, Changes::default(), change);
    }
    let everything = Places { workspaces: true, ..job.places.clone() };
    files::visit(&everything, &mut |found| {
        let root = found.entry.split('/').next().unwrap_or_default();
        let is_covered = root == "data" || stage.manifest.covers.iter().any(|tree| tree == root);
        let goes = is_covered && job.selection.takes(found.entry) && !rooms.staged(found.entry).exists();
        if goes {
            add(found.entry, Changes::default(), Changes { removed: 1, ..Changes::default() });
        }
        Ok(None)
    })?;
    Ok(changes)
}

/// The checksum of what stands where an entry belongs, if it has `size` bytes; of what has others or cannot be read,
/// nothing that is one. `None` when nothing stands there.
fn hash_of(entry: &str, size: u64, places: &Places) -> Result<Option<String>, Error> {
    let path = &places.target(entry);
    let mut file = match places.open(entry) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::NXIO) => return Ok(Some(String::new())),
        Err(error) => return Err(io("read", path)(error.into())),
    };
    let metadata = file.metadata().map_err(io("look at", path))?;
    if !metadata.is_file() || metadata.len() != size {
        return Ok(Some(String::new()));
    }
    let mut hash = Hash(Sha256::new());
    io::copy(&mut file, &mut hash).map_err(io("read", path))?;
    Ok(Some(hex(&hash.0.finalize())))
}

struct Hash(Sha256);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
