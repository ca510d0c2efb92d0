//! The skills of a home: read in the background, read again when they change, shared with everything that uses them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::skill::limits::{SKILLS_MAX, SKILLS_TEXT_BYTES_MAX};
use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

use super::catalog::{Catalog, Failed};
use super::config::SkillSettings;
use super::files::{Folder, Stamp, folders};
use super::needs::Machine;
use super::read::{ReadError, read_listed};
use super::skill::Skill;
use super::uses::{self, Uses};
use crate::kernel::home::Home;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::settings::Settings;

/// Folders of skills that one command may read one by one. More: the folder of all for an agent that has all, else the first ones.
const FOLDERS_MAX: usize = 64;

/// How long those who need the skills wait after a start until they are there.
const LOAD_WAIT: Duration = Duration::from_secs(5);

/// Told of each catalog that comes into force.
type Listener = Box<dyn Fn(&Arc<Catalog>) + Send + Sync>;

/// What a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Names of new skills, sorted.
    pub added: Vec<Box<str>>,
    /// Names of skills whose files changed, sorted.
    pub updated: Vec<Box<str>>,
    /// Names of skills that are gone, sorted.
    pub removed: Vec<Box<str>>,
    /// Skills that there are now.
    pub total: usize,
    /// Folders that are no skills.
    pub failed: Vec<Failed>,
}

/// A folder as it was last read.
struct Known {
    stamp: Stamp,
    /// Why it is no skill, otherwise.
    read: Result<Arc<Skill>, String>,
}

/// The skills of a home.
pub struct Library {
    folder: PathBuf,
    settings: Settings,
    catalog: ArcSwap<Catalog>,
    /// What is known of each folder. Held while it is read: one reload at a time.
    known: Mutex<HashMap<String, Known>>,
    is_loaded: Mutex<bool>,
    loaded: Condvar,
    /// By name. Held while a catalog comes into force.
    listeners: Mutex<BTreeMap<&'static str, Listener>>,
    is_watched: AtomicBool,
    /// What becomes of descriptions that look like prompt injections.
    injection: OnceLock<InjectionPolicy>,
    /// How often each is used.
    pub(super) uses: Arc<Uses>,
}

impl Library {
    /// The library of `home`. Nothing is read yet: [`reload`](Self::reload) does.
    pub fn open(home: &Home, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            uses: Uses::new(home.skills_dir().join(uses::FILE)),
            folder: home.skills_dir(),
            settings,
            catalog: ArcSwap::default(),
            known: Mutex::default(),
            is_loaded: Mutex::new(false),
            loaded: Condvar::new(),
            listeners: Mutex::default(),
            is_watched: AtomicBool::new(false),
            injection: OnceLock::new(),
        })
    }

    /// Where the folders of skills are: `{home}/skills`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `[skills]` as it is now.
    pub(super) fn settings(&self) -> Arc<SkillSettings> {
        self.settings.get()
    }

    /// Shows descriptions that look like prompt injections in this way. The first call counts: a change of `[security]
    /// prompt_injection` takes a start.
    pub(super) fn set_injection(&self, policy: InjectionPolicy) {
        let _first = self.injection.set(policy);
    }

    /// What becomes of descriptions that look like prompt injections.
    pub(super) fn injection(&self) -> InjectionPolicy {
        self.injection.get().copied().unwrap_or_default()
    }

    /// The skills as they are now; empty until they were first read.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The skills, once they were read after the start. Blocks, for a few seconds at most.
    pub fn loaded(&self) -> Arc<Catalog> {
        let mut is_loaded = self.is_loaded.lock();
        if !*is_loaded {
            self.loaded.wait_while_for(&mut is_loaded, |is_loaded| !*is_loaded, LOAD_WAIT);
        }
        drop(is_loaded);
        self.catalog()
    }

    /// Tells `listener` of each catalog that comes into force, and of the present one when the skills were read. It stands in place
    /// of the one that had its name before. It must not wait.
    pub fn on_change(&self, name: &'static str, listener: impl Fn(&Arc<Catalog>) + Send + Sync + 'static) {
        let mut listeners = self.listeners.lock();
        if *self.is_loaded.lock() {
            listener(&self.catalog());
        }
        listeners.insert(name, Box::new(listener));
    }

    /// Were the skills read since the start?
    pub fn is_loaded(&self) -> bool {
        *self.is_loaded.lock()
    }

    /// The folders that commands of an agent of this manifest may read: those of its skills.
    pub(super) fn folders(&self, manifest: &Manifest) -> Vec<PathBuf> {
        let has_all = manifest.skills.is_empty() && !manifest.skills_disabled && manifest.frozen_skills.is_none();
        let catalog = self.catalog();
        let usable = catalog.of(manifest).filter(|skill| skill.unmet.is_empty());
        let folders: Vec<PathBuf> = usable.map(|skill| skill.folder.clone()).take(FOLDERS_MAX + 1).collect();
        if folders.len() <= FOLDERS_MAX {
            return folders;
        }
        // Too many to show one by one. Where all are the agent's, all of them; there, it sees also what is being installed.
        if has_all { vec![self.folder.clone()] } else { folders[..FOLDERS_MAX].to_vec() }
    }

    /// Reads what is new or changed in the folder; folders with the same sizes and times are not read again. Blocks on the disk.
    pub fn reload(&self) -> Reloaded {
        let mut known = self.known.lock();
        let catalog = self.read(&mut known);
        let reloaded = difference(&self.catalog(), &catalog);
        self.put(catalog);
        reloaded
    }

    /// Holds the needs of all skills against the machine and the settings again. Reads no skill.
    pub fn check_needs(&self) {
        let _known = self.known.lock();
        let before = self.catalog();
        let skills: Vec<_> = before.iter().map(|skill| self.with_needs(Arc::clone(skill))).collect();
        if !self.is_loaded() || skills.iter().zip(before.iter()).all(|(now, was)| Arc::ptr_eq(now, was)) {
            return;
        }
        let skills = skills.into_iter().map(|skill| (skill.name.clone(), skill)).collect();
        self.put(Catalog { skills, failed: before.failed.clone() });
    }

    /// Checks the needs again whenever the settings change, on threads that may block. The first call counts.
    pub(super) fn watch(self: &Arc<Self>, handle: &Handle) {
        if self.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let (library, mut changes) = (Arc::clone(self), self.settings.changes());
        handle.spawn(async move {
            while changes.changed().await.is_ok() {
                let library = Arc::clone(&library);
                let _interrupted = tokio::task::spawn_blocking(move || library.check_needs()).await;
            }
        });
    }

    fn put(&self, catalog: Catalog) {
        let listeners = self.listeners.lock();
        let catalog = Arc::new(catalog);
        self.catalog.store(Arc::clone(&catalog));
        *self.is_loaded.lock() = true;
        self.loaded.notify_all();
        listeners.values().for_each(|listener| listener(&catalog));
    }

    fn read(&self, known: &mut HashMap<String, Known>) -> Catalog {
        let mut catalog = Catalog::default();
        // The folder may be reached by a link; what is in it is not.
        let base = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        let names = match folders(&base) {
            Ok(names) => names,
            Err(error) => {
                tracing::error!(%error, "the folder of skills could not be read");
                catalog.failed.push(Failed { folder: Box::default(), error: format!("it cannot be read: {error}") });
                return catalog;
            }
        };
        known.retain(|name, _| names.binary_search(name).is_ok());
        let mut bytes = 0;
        for (count, name) in names.into_iter().enumerate() {
            let read = match count < SKILLS_MAX {
                true => look(known, &base, &name),
                false => Err(format!("there are more than {SKILLS_MAX} skills")),
            };
            let taken = read.and_then(|skill| {
                bytes += skill.bytes();
                if bytes > SKILLS_TEXT_BYTES_MAX {
                    return Err(format!("the texts of all skills are larger than {SKILLS_TEXT_BYTES_MAX} bytes"));
                }
                match catalog.skills.get(&skill.name) {
                    Some(other) => {
                        let folder = other.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                        Err(format!("the skill in folder {folder:?} has the same name {:?}", skill.name))
                    }
                    None => Ok(skill),
                }
            });
            match taken {
                Ok(skill) => drop(catalog.skills.insert(skill.name.clone(), self.with_needs(skill))),
                Err(error) => {
                    tracing::warn!(folder = name, error, "a skill was not loaded");
                    catalog.failed.push(Failed { folder: name.into(), error });
                }
            }
        }
        catalog
    }

    /// The skill with what is unmet of its needs now.
    fn with_needs(&self, skill: Arc<Skill>) -> Arc<Skill> {
        let (policy, settings) = (self.settings.get::<ExecPolicy>(), self.settings.get::<SkillSettings>());
        let has_variable = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let machine = Machine {
            path: policy.path.clone(),
            has_variable: &has_variable,
            settings: &settings,
            os: std::env::consts::OS,
        };
        let unmet = machine.unmet(&skill);
        if unmet == skill.unmet { skill } else { Arc::new(Skill { unmet, ..(*skill).clone() }) }
    }
}

/// The skill in the folder `name`, read again only if the folder was changed.
fn look(known: &mut HashMap<String, Known>, base: &Path, name: &str) -> Result<Arc<Skill>, String> {
    let path = base.join(name);
    let failed = |error: ReadError| error.to_string();
    let folder = Folder::open(&path).map_err(failed)?;
    let listing = folder.list().map_err(failed)?;
    let stamp = listing.stamp();
    if let Some(known) = known.get(name).filter(|known| known.stamp == stamp) {
        return known.read.clone();
    }
    let read = read_listed(&path, &folder, &listing);
    // What the disk refused may be there the next time.
    let is_lasting = !matches!(read, Err(ReadError::Io(_)));
    let read = read.map(Arc::new).map_err(failed);
    if is_lasting {
        known.insert(name.to_owned(), Known { stamp, read: read.clone() });
    } else {
        known.remove(name);
    }
    read
}

fn difference(before: &Catalog, now: &Catalog) -> Reloaded {
    let of = |list: &BTreeMap<Box<str>, Arc<Skill>>, is_wanted: &dyn Fn(&Skill) -> bool| -> Vec<Box<str>> {
        list.values().filter(|skill| is_wanted(skill)).map(|skill| skill.name.clone()).collect()
    };
    Reloaded {
        added: of(&now.skills, &|skill| before.get(&skill.name).is_none()),
        updated: of(&now.skills, &|skill| {
            before.get(&skill.name).is_some_and(|old| old.content_hash != skill.content_hash)
        }),
        removed: of(&before.skills, &|skill| now.get(&skill.name).is_none()),
        total: now.len(),
        failed: now.failed.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn write(home: &Path, folder: &str, text: &str) {
        let dir = home.join("skills").join(folder);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), text).unwrap();
    }

    #[test]
    fn a_reload_tells_what_changed_and_reads_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::open(&Home::new(dir.path()), Settings::default());
        assert_eq!(library.reload(), Reloaded::default());
        write(dir.path(), "a", "---\nname: a\ndescription: A\n---\nx");
        write(dir.path(), "b", "---\nname: b\ndescription: B\n---\nx");
        write(dir.path(), "broken", "---\nname: [\n---\n");
        write(dir.path(), ".staging-1", "---\nname: s\ndescription: S\n---\n");
        let first = library.reload();
        assert_eq!((first.added.len(), first.total, first.failed.len()), (2, 2, 1));
        assert_eq!(&*first.failed[0].folder, "broken");
        let (a, b) = (library.catalog().get("a").cloned().unwrap(), library.catalog().get("b").cloned().unwrap());
        write(dir.path(), "a", "---\nname: a\ndescription: A2\n---\nlonger");
        fs::remove_dir_all(dir.path().join("skills/broken")).unwrap();
        let second = library.reload();
        assert_eq!((second.updated.len(), second.added.len(), second.failed.len()), (1, 0, 0));
        let now = library.catalog();
        assert!(Arc::ptr_eq(now.get("b").unwrap(), &b) && now.get("a").unwrap().description != a.description);
        fs::remove_dir_all(dir.path().join("skills/b")).unwrap();
        assert_eq!(library.reload().removed, ["b".into()]);
    }

    #[test]
    fn commands_see_the_folders_of_usable_skills_only() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a", "---\nname: a\ndescription: A\n---\n");
        let unmet = "metadata: {openclaw: {requires: {bins: [agentsvc-no-such-program]}}}\n";
        write(dir.path(), "unmet", &format!("---\nname: unmet\ndescription: U\n{unmet}---\n"));
        write(dir.path(), ".staging-1", "---\nname: s\ndescription: S\n---\n");
        let library = Library::open(&Home::new(dir.path()), Settings::default());
        library.reload();
        let names = |library: &Library| {
            let folders = library.folders(&Manifest::default());
            folders.iter().map(|it| it.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&library), ["a"]);
        (0..FOLDERS_MAX).for_each(|n| {
            write(dir.path(), &format!("n{n}"), &format!("---\nname: n{n}\ndescription: Counted\n---\n"));
        });
        library.reload();
        assert_eq!(names(&library), ["skills"]);
    }

    #[test]
    fn of_two_folders_with_one_name_the_first_counts() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "one", "---\nname: same\ndescription: first\n---\n");
        write(dir.path(), "two", "---\nname: same\ndescription: second\n---\n");
        let library = Library::open(&Home::new(dir.path()), Settings::default());
        let failed = library.reload().failed;
        assert_eq!(&*library.catalog().get("same").unwrap().description, "first");
        assert!(failed[0].error.contains("folder \"one\" has the same name"), "{failed:?}");
    }

    #[test]
    fn a_load_writes_nothing_and_tells_listeners() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a", "---\nname: a\ndescription: A\n---\n");
        let library = Library::open(&Home::new(dir.path()), Settings::default());
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        library.on_change("test", move |catalog| {
            count.fetch_add(1 + catalog.len(), Ordering::Relaxed);
        });
        library.reload();
        assert_eq!(told.load(Ordering::Relaxed), 2, "once, with one skill");
        let names: Vec<_> =
            fs::read_dir(dir.path().join("skills/a")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["SKILL.md"]);
        assert_eq!(library.loaded().len(), 1);
    }
}
