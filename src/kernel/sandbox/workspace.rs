//! Which directory is whose.
//!
//! ```text
//! {home}/workspaces/
//!   <directory>/              the private workspace of one agent, named after it
//!   .owners/<directory>       whose it is: the agent's id
//!   .agents/<agent id>        where it is: the directory's name
//!   .holders/<agent id>       whose share of all workspaces it takes: a family or a user
//! ```
//!
//! The directory follows the agent's name, for people; the id decides. A mark in `.owners` that is lost is written again
//! from those in `.agents`. When a name is used again after its agent was
//! removed, the old directory is moved aside (`<directory>.<old id>`), so that the new agent never sees another's
//! files. When an agent was renamed and its directory was not, it is moved the next time it is opened.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::Error;
use super::files::Workspace;
use super::marks::{self, Marks};
use super::owner::unknown_owner;
use super::quota::Quotas;
use crate::kernel::disk;
use crate::kernel::openat2::{self, Resolver};
use crate::kernel::settings::Settings;

/// Whose a directory is, by directory.
pub(super) const OWNERS: &str = ".owners";
/// Where an agent's directory is, by agent.
pub(super) const AGENTS: &str = ".agents";
/// Bytes of a directory's name; file systems take 255, and `.<old id>` must fit.
const DIRECTORY_BYTES_MAX: usize = 200;
/// Bytes that are kept of a name that would be longer.
const DIRECTORY_BYTES_KEPT: usize = 120;

/// The workspaces of all agents. Cheap to clone; every call blocks on the disk.
#[derive(Clone, Debug)]
pub struct Workspaces {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) root: PathBuf,
    pub(super) resolver: Resolver,
    /// What they may hold.
    pub(super) quotas: Quotas,
    /// Held while directories change their owner or their name.
    pub(super) claims: Mutex<()>,
    /// Directories whose owner was asked for and is not known, because the mark is damaged.
    pub(super) unknown: Mutex<BTreeSet<String>>,
}

impl Workspaces {
    /// The workspaces under `root`, `{home}/workspaces`, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self::with_resolver(root, Resolver::probe())
    }

    /// As [`new`](Self::new), with the limits that are in force.
    pub(crate) fn limited(root: PathBuf, settings: Settings) -> Self {
        Self::of(root, Resolver::probe(), settings)
    }

    /// As [`new`](Self::new), with paths resolved in a given way.
    pub fn with_resolver(root: PathBuf, resolver: Resolver) -> Self {
        Self::of(root, resolver, Settings::default())
    }

    fn of(root: PathBuf, resolver: Resolver, settings: Settings) -> Self {
        let quotas = Quotas::new(root.clone(), settings);
        Self { shared: Arc::new(Shared { root, resolver, quotas, claims: Mutex::new(()), unknown: Mutex::default() }) }
    }

    /// The workspace of the agent, made when there is none.
    ///
    /// # Errors
    /// [`Error::Io`] and the like when the system refuses.
    pub fn open(&self, agent: AgentId, name: &str) -> Result<Workspace, Error> {
        let directory = directory_of(agent, name);
        self.shared.open(agent, &directory, true).and_then(|found| found.ok_or(Error::NotFound(directory)))
    }

    /// As [`open`](Self::open); its files take the share of this holder from here on.
    pub(crate) fn open_for(&self, agent: AgentId, name: &str, holder: Holder) -> Result<Workspace, Error> {
        let workspace = self.open(agent, name)?;
        self.shared.hold(agent, workspace.path(), holder);
        Ok(workspace)
    }

    /// The workspace of the agent, if it has one.
    pub fn find(&self, agent: AgentId, name: &str) -> Result<Option<Workspace>, Error> {
        self.shared.open(agent, &directory_of(agent, name), false)
    }

    /// Where the workspace of the agent is, as far as that is noted; the agent may be gone.
    pub(crate) fn path_of(&self, agent: AgentId) -> Option<PathBuf> {
        let name = self.shared.noted(AGENTS, &agent.to_string())?;
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        is_name.then(|| self.shared.root.join(name))
    }

    /// The workspace in the directory `path`, and whose it is, if that is known; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Io`] and the like when the system refuses.
    pub(crate) fn at(&self, path: &Path) -> Result<Option<(Workspace, Option<AgentId>)>, Error> {
        let name = path.strip_prefix(&self.shared.root).ok().and_then(Path::to_str);
        let is_name = |name: &&str| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        let Some(name) = name.filter(is_name).filter(|name| self.shared.exists(name)) else { return Ok(None) };
        let opened = self.shared.directory(name).map_err(|error| Error::of("open the workspace", name, error))?;
        let owner = self.shared.noted(OWNERS, name).and_then(|owner| owner.parse().ok());
        Ok(Some((Workspace::new(opened, self.shared.root.join(name), &self.shared), owner)))
    }

    /// Moves the workspace of an agent that was called `from` and is now called `to`. Without a workspace: nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open); the workspace is then moved when it is opened next.
    pub fn renamed(&self, agent: AgentId, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (directory_of(agent, from), directory_of(agent, to));
        let failed = |error| Error::of("move", &to, error);
        let _claim = self.shared.claims.lock();
        if from != to && self.shared.is_home(agent, &from).map_err(failed)? {
            self.shared.take_over(agent, &from, &to).map_err(failed)?;
        }
        Ok(())
    }

    /// Workspaces that were asked for and that no agent gets, because their owner is not known: a sentence for each, and what
    /// repairs it.
    pub(crate) fn unknown_owners(&self) -> Vec<String> {
        self.shared.unknown.lock().iter().map(|directory| unknown_owner(directory)).collect()
    }
}

/// Has the agent a workspace among those at `root`?
pub(crate) fn has_workspace(root: &Path, agent: AgentId) -> bool {
    root.join(AGENTS).join(agent.to_string()).exists()
}

impl Shared {
    /// The workspace, which is to be in `directory`; `None` when there is none and none is to be made.
    fn open(self: &Arc<Self>, agent: AgentId, directory: &str, make: bool) -> Result<Option<Workspace>, Error> {
        let refused = |error: io::Error| Error::of("open the workspace", directory, error);
        let _claim = self.claims.lock();
        if !self.is_home(agent, directory).map_err(refused)? {
            match self.elsewhere(agent, directory).map_err(refused)? {
                Some(from) => self.take_over(agent, &from, directory).map_err(refused)?,
                None if make => self.claim(agent, directory).map_err(refused)?,
                None => return Ok(None),
            }
        }
        let opened = self.directory(directory).map_err(refused)?;
        Ok(Some(Workspace::new(opened, self.root.join(directory), self)))
    }

    /// Makes `directory` a new workspace of `agent`. What is there without an owner was put there by a person, for it.
    fn claim(&self, agent: AgentId, directory: &str) -> io::Result<()> {
        self.move_aside(agent, directory)?;
        self.note(OWNERS, directory, &agent.to_string())?;
        self.note(AGENTS, &agent.to_string(), directory)?;
        make_private(&self.root.join(directory))?;
        disk::sync_dir(&self.root)
    }

    /// Moves the workspace of `agent` from one directory to another. Each step leaves a state from which
    /// [`open`](Self::open) finds the directory again.
    fn take_over(&self, agent: AgentId, from: &str, to: &str) -> io::Result<()> {
        self.move_aside(agent, to)?;
        self.note(OWNERS, to, &agent.to_string())?;
        fs::rename(self.root.join(from), self.root.join(to))?;
        self.quotas.moved(&self.root.join(from), &self.root.join(to));
        disk::sync_dir(&self.root)?;
        self.note(AGENTS, &agent.to_string(), to)?;
        self.forget(OWNERS, from)
    }

    /// Moves a directory that belongs to another agent out of the way.
    fn move_aside(&self, agent: AgentId, directory: &str) -> io::Result<()> {
        match self.owner(agent, directory, true)? {
            Some(other) if other != agent && self.exists(directory) => {
                let aside = format!("{directory}.{other}");
                tracing::info!(%directory, %aside, "moved the workspace of a deleted agent aside");
                self.take_over(other, directory, &aside)
            }
            _ => Ok(()),
        }
    }

    /// The directory of `agent`, when it is another than `directory`.
    fn elsewhere(&self, agent: AgentId, directory: &str) -> io::Result<Option<String>> {
        let Some(other) = self.noted(AGENTS, &agent.to_string()) else { return Ok(None) };
        let usable = other != directory && !other.is_empty() && !other.starts_with('.') && !other.contains('/');
        Ok(if usable && self.is_home(agent, &other)? { Some(other) } else { None })
    }

    /// Is `directory` there, and the workspace of `agent`?
    fn is_home(&self, agent: AgentId, directory: &str) -> io::Result<bool> {
        Ok(self.owner(agent, directory, false)? == Some(agent) && self.exists(directory))
    }

    pub(super) fn exists(&self, directory: &str) -> bool {
        // A symbolic link in its place is no workspace.
        fs::symlink_metadata(self.root.join(directory)).is_ok_and(|found| found.is_dir())
    }

    fn directory(&self, directory: &str) -> io::Result<OwnedFd> {
        let root = File::open(&self.root)?;
        Ok(openat2::directory(root.as_fd(), directory)?)
    }

    pub(super) fn noted(&self, folder: &str, name: &str) -> Option<String> {
        marks::read(&self.root, folder, name).ok()?
    }

    /// Writes a mark, whole and durable or not at all.
    pub(super) fn note(&self, folder: &str, name: &str, text: &str) -> io::Result<()> {
        make_private(&self.root.join(folder))?;
        let marks = Marks::open(&self.root, folder)?.ok_or(io::ErrorKind::NotFound)?;
        marks.write(name, text)
    }

    fn forget(&self, folder: &str, name: &str) -> io::Result<()> {
        Marks::open(&self.root, folder)?.map_or(Ok(()), |marks| marks.remove(name))
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    crate::kernel::home::create_private_dir(path).map_err(io::Error::other)
}

/// What does not stand in the name of a directory as it is.
const HARMFUL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// The name of an agent's directory: its own name where that is a harmless file name, otherwise with what is not
/// percent-encoded; cut and made unique by the id when that is too long.
fn directory_of(agent: AgentId, name: &str) -> String {
    let mut directory = utf8_percent_encode(name, HARMFUL).to_string();
    if directory.starts_with('.') {
        directory.replace_range(..1, "%2E");
    }
    if directory.len() > DIRECTORY_BYTES_MAX {
        directory.truncate(DIRECTORY_BYTES_KEPT);
        directory.push_str("%-");
        directory.push_str(&agent.to_string());
    }
    if directory.is_empty() { format!("%-{agent}") } else { directory }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use agentsvc_components::AgentId;
    use uuid::Uuid;

    use super::{Workspaces, directory_of};
    use crate::kernel::sandbox::error::Error;
    use crate::kernel::sandbox::files::Write;
    use crate::kernel::sandbox::owner::damaged_marks;

    const ANN: AgentId = AgentId(Uuid::from_u128(1));
    const BOB: AgentId = AgentId(Uuid::from_u128(2));

    struct Harness {
        dir: tempfile::TempDir,
        all: Workspaces,
    }

    fn harness() -> Harness {
        let dir = tempfile::tempdir().unwrap();
        let all = Workspaces::new(dir.path().join("workspaces"));
        Harness { dir, all }
    }

    impl Harness {
        fn put(&self, agent: AgentId, name: &str, text: &str) {
            let workspace = self.all.open(agent, name).unwrap();
            workspace.write("f", text.as_bytes(), Write::Overwrite).unwrap();
        }

        fn seen(&self, agent: AgentId, name: &str) -> Option<String> {
            let found = self.all.open(agent, name).unwrap().read("f", 0, 100).ok()?;
            Some(String::from_utf8(found.bytes).unwrap())
        }
    }

    #[test]
    fn directories_are_named_after_agents() {
        for (name, directory) in [
            ("coder-1_x.y", "coder-1_x.y"),
            ("..", "%2E."),
            (".owners", "%2Eowners"),
            ("a/b", "a%2Fb"),
            ("ä b%", "%C3%A4%20b%25"),
        ] {
            assert_eq!(directory_of(ANN, name), directory);
        }
        let long = "日".repeat(42);
        assert!(directory_of(ANN, &long).len() < 200);
        assert_ne!(directory_of(ANN, &long), directory_of(BOB, &long));
        assert!(!directory_of(ANN, "").is_empty());
    }

    #[test]
    fn a_name_used_again_sees_nothing_of_the_old() {
        let harness = harness();
        harness.put(ANN, "x", "ann");
        assert_eq!(harness.seen(ANN, "x").as_deref(), Some("ann"));
        assert_eq!(harness.seen(BOB, "x"), None);
        harness.put(BOB, "x", "bob");
        let aside = harness.dir.path().join(format!("workspaces/x.{ANN}/f"));
        assert_eq!(fs::read_to_string(aside).unwrap(), "ann");
        assert!(harness.all.find(AgentId(Uuid::from_u128(9)), "x").unwrap().is_none());
        assert_eq!(harness.seen(BOB, "x").as_deref(), Some("bob"));
    }

    #[test]
    fn a_workspace_follows_its_agent() {
        let harness = harness();
        harness.put(ANN, "a", "ann");
        harness.all.renamed(ANN, "a", "b").unwrap();
        assert!(!harness.dir.path().join("workspaces/a").exists());
        assert_eq!(harness.seen(ANN, "b").as_deref(), Some("ann"));
        // Renamed without being told: found by the id.
        assert_eq!(harness.seen(ANN, "c").as_deref(), Some("ann"));
        harness.all.renamed(BOB, "c", "d").unwrap();
        assert_eq!(harness.seen(ANN, "c").as_deref(), Some("ann"));
    }

    #[test]
    fn two_agents_may_swap_their_names() {
        let harness = harness();
        harness.put(ANN, "a", "ann");
        harness.put(BOB, "b", "bob");
        assert_eq!(harness.seen(ANN, "b").as_deref(), Some("ann"));
        assert_eq!(harness.seen(BOB, "a").as_deref(), Some("bob"));
        assert_eq!(harness.seen(ANN, "b").as_deref(), Some("ann"));
    }

    #[test]
    fn a_rename_that_was_cut_off_is_finished() {
        let harness = harness();
        harness.put(ANN, "a", "ann");
        let owners = harness.dir.path().join("workspaces/.owners");
        fs::write(owners.join("b"), ANN.to_string()).unwrap();
        assert_eq!(harness.seen(ANN, "b").as_deref(), Some("ann"));
        assert!(!owners.join("a").exists());
    }

    #[test]
    fn a_mark_that_is_lost_or_damaged_is_written_again() {
        let harness = harness();
        harness.put(ANN, "a", "ann");
        harness.put(BOB, "b", "bob");
        let mark = |name: &str| harness.dir.path().join("workspaces/.owners").join(name);
        fs::remove_file(mark("a")).unwrap();
        assert!(harness.all.find(ANN, "a").unwrap().is_some());
        assert_eq!(fs::read_to_string(mark("a")).unwrap().trim(), ANN.to_string());
        fs::write(mark("a"), b"\0\0").unwrap();
        harness.all.renamed(ANN, "a", "c").unwrap();
        assert_eq!(harness.seen(ANN, "c").as_deref(), Some("ann"));
        // Also for another agent that comes first.
        for text in ["", "x"] {
            fs::write(mark("b"), text).unwrap();
            let late = AgentId(Uuid::from_u128(3));
            assert_eq!(harness.seen(late, "b"), None);
            assert_eq!(harness.seen(BOB, "b").as_deref(), Some("bob"));
        }
        assert!(harness.all.unknown_owners().is_empty());
    }

    #[test]
    fn a_workspace_whose_owner_is_not_known_is_told() {
        let harness = harness();
        harness.put(ANN, "a", "ann");
        let root = harness.dir.path().join("workspaces");
        fs::write(root.join(".owners/a"), "x").unwrap();
        fs::remove_file(root.join(format!(".agents/{ANN}"))).unwrap();
        assert!(matches!(harness.all.find(ANN, "a"), Err(Error::Unowned(_))));
        assert!(matches!(harness.all.open(BOB, "a"), Err(Error::Unowned(_))));
        assert_eq!(fs::read_to_string(root.join("a/f")).unwrap(), "ann");
        let warnings = harness.all.unknown_owners();
        assert!(warnings.len() == 1 && warnings[0].contains("workspaces/.owners/a is damaged"), "{warnings:?}");
        assert_eq!(damaged_marks(&root).unwrap(), ["a"]);
        fs::remove_file(root.join(".owners/a")).unwrap();
        assert_eq!(harness.seen(ANN, "a").as_deref(), Some("ann"));
        assert!(harness.all.unknown_owners().is_empty() && damaged_marks(&root).unwrap().is_empty());
    }

    /// As a command could do it that reaches the folder: the mark leads to a text of its own.
    #[test]
    fn a_mark_that_was_exchanged_for_a_link_gives_no_workspace_away() {
        let harness = harness();
        harness.put(ANN, "a", "ann");
        let (root, claim) = (harness.dir.path().join("workspaces"), harness.dir.path().join("claim"));
        fs::write(&claim, BOB.to_string()).unwrap();
        fs::remove_file(root.join(".owners/a")).unwrap();
        symlink(&claim, root.join(".owners/a")).unwrap();
        assert_eq!(harness.seen(BOB, "a"), None);
        assert_eq!(harness.seen(ANN, "a").as_deref(), Some("ann"));
        assert_eq!(fs::read_to_string(&claim).unwrap(), BOB.to_string());
    }

    #[test]
    fn what_was_put_there_for_the_agent_is_its_own() {
        let harness = harness();
        let seeded = harness.dir.path().join("workspaces/a");
        fs::create_dir_all(&seeded).unwrap();
        fs::write(seeded.join("f"), "seed").unwrap();
        assert!(harness.all.find(ANN, "a").unwrap().is_none());
        assert_eq!(harness.seen(ANN, "a").as_deref(), Some("seed"));
    }

    #[test]
    fn a_link_in_place_of_a_workspace_is_not_followed() {
        let harness = harness();
        fs::create_dir_all(harness.dir.path().join("workspaces")).unwrap();
        symlink("/tmp", harness.dir.path().join("workspaces/a")).unwrap();
        assert!(harness.all.open(ANN, "a").is_err());
    }
}
