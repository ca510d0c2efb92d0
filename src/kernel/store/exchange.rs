//! One store directory takes the place of another, so that a kill at any point leaves one of them whole in it.
//!
//! Beside `world` stand, while it happens: `world.next`, the complete store that is to take its place; then, in its
//! place, the one that was there before. Where the file system can exchange two names in one step, that is all. Where
//! it cannot, `world.exchange` says that it was decided, `world` moves to `world.before` and `world.next` to `world`;
//! a start that finds the mark completes that. A step that fails has those before it taken back.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::kernel::disk::{entries, remove_dir, remove_file, sync_dir};

/// The engine's file that a directory has when it is a store.
const STORE_FILE: &str = "version";

fn beside(world: &Path, end: &str) -> PathBuf {
    let name = world.file_name().unwrap_or_default().to_string_lossy();
    world.with_file_name(format!("{name}.{end}"))
}

/// Where the store stands that is to take the place of `world`.
pub(crate) fn next(world: &Path) -> PathBuf {
    beside(world, "next")
}

/// A name that a start removes, whatever is there.
pub(crate) fn draft(world: &Path) -> PathBuf {
    beside(world, "next.new-old")
}

/// Where `world` stands between the two steps.
fn before(world: &Path) -> PathBuf {
    beside(world, "before")
}

/// The file that says that the exchange is decided.
fn mark(world: &Path) -> PathBuf {
    beside(world, "exchange")
}

/// Is there a store, complete or not?
pub(crate) fn is_store(path: &Path) -> bool {
    path.join(STORE_FILE).exists()
}

/// Two names of one file system change places in one step; `None` when the file system cannot do that. Makes nothing
/// durable.
pub(crate) fn in_one_step(one: &Path, other: &Path) -> io::Result<Option<()>> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(Some(())),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Exchanges `world` and `world.next`. Both are closed.
///
/// # Errors
/// The disk failed; then `world` is what it was, or the next start completes it.
pub(crate) fn exchange(world: &Path) -> io::Result<()> {
    if in_one_step(world, &next(world))?.is_some() {
        return sync_parent(world).inspect_err(|_| drop(in_one_step(world, &next(world))));
    }
    in_some_steps(world)
}

/// The same where the file system cannot do it in one.
fn in_some_steps(world: &Path) -> io::Result<()> {
    let done = decide(world).and_then(|()| step_aside(world)).and_then(|()| step_in(world));
    done.and_then(|()| unmark(world)).and_then(|()| settle(world)).inspect_err(|_| undo(world))
}

/// First of five steps: from here on the exchange is completed, by this process or by the next start.
fn decide(world: &Path) -> io::Result<()> {
    File::create(mark(world))?.sync_all()?;
    sync_parent(world)
}

/// The old one makes room.
fn step_aside(world: &Path) -> io::Result<()> {
    remove_dir(&before(world))?;
    fs::rename(world, before(world))?;
    sync_parent(world)
}

/// The new one takes its place.
fn step_in(world: &Path) -> io::Result<()> {
    fs::rename(next(world), world)?;
    sync_parent(world)
}

/// Nothing is left to be completed. Before the old one stands where the new one stood: a start that finds the mark takes
/// what stands there for the new one.
fn unmark(world: &Path) -> io::Result<()> {
    remove_file(&mark(world))?;
    sync_parent(world)
}

/// The old one stands where the new one stood.
fn settle(world: &Path) -> io::Result<()> {
    if is_store(&before(world)) {
        fs::rename(before(world), next(world))?;
    }
    sync_parent(world)
}

/// Takes the steps back that were done, because the next one failed.
fn undo(world: &Path) {
    let undone = || {
        let moved = !is_store(world) || !is_store(&next(world));
        if moved && is_store(&before(world)) {
            if is_store(world) {
                fs::rename(world, next(world))?;
            }
            fs::rename(before(world), world)?;
        }
        remove_file(&mark(world))?;
        sync_parent(world)
    };
    if let Err(error) = undone() {
        tracing::error!(world = %world.display(), %error, "the next start completes the interrupted restore");
    }
}

/// Gives the files of the store `world` second names in a new directory `aside`, so that they stay when `world` gives
/// way: whole or not at all.
///
/// # Errors
/// The disk failed; then there is no `aside`.
pub(crate) fn keep_aside(world: &Path, aside: &Path) -> io::Result<()> {
    let drafted = draft(world);
    remove_dir(&drafted)?;
    link_all(world, &drafted)?;
    fs::rename(&drafted, aside)?;
    sync_parent(world)
}

/// Links every file below `from`; copies it where the file system knows no links.
fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link_all(&path, &target)?;
        } else if fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    sync_dir(to)
}

/// Completes or takes back what a kill has left in the middle, and removes what is not the world's store. To be called
/// before anything looks into `world`.
pub(crate) fn recover(world: &Path) -> io::Result<()> {
    if mark(world).exists() {
        if is_store(&next(world)) && !is_store(&before(world)) && is_store(world) {
            step_aside(world)?;
        }
        if !is_store(world) && is_store(&next(world)) {
            // An empty directory in its place, which a start has made, gives way.
            step_in(world)?;
        }
        tracing::warn!(world = %world.display(), "completed an interrupted restore");
    }
    if !is_store(world) && is_store(&before(world)) {
        fs::rename(before(world), world)?;
        sync_parent(world)?;
    }
    remove_file(&mark(world))?;
    remove_dir(&before(world))?;
    remove_dir(&next(world))?;
    remove_drafts(world)
}

/// Removes stores that were never complete.
fn remove_drafts(world: &Path) -> io::Result<()> {
    let Some(parent) = world.parent() else { return Ok(()) };
    let start = format!("{}.new-", next(world).file_name().unwrap_or_default().to_string_lossy());
    for path in entries(parent)? {
        if path.file_name().unwrap_or_default().to_string_lossy().starts_with(&start) {
            remove_dir(&path)?;
        }
    }
    Ok(())
}

/// Makes the names beside `world` durable.
fn sync_parent(world: &Path) -> io::Result<()> {
    sync_dir(world.parent().unwrap_or(Path::new(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home {
        dir: tempfile::TempDir,
        world: PathBuf,
    }

    impl Home {
        /// A world `old`, and `new` that is to take its place.
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let world = dir.path().join("world");
            for (path, name) in [(&world, "old"), (&next(&world), "new")] {
                fs::create_dir(path).unwrap();
                fs::write(path.join(STORE_FILE), name).unwrap();
            }
            Self { dir, world }
        }

        /// What is in the world's place, and how many names there are.
        fn state(&self) -> (String, usize) {
            let names = fs::read_dir(self.dir.path()).unwrap().count();
            (fs::read_to_string(self.world.join(STORE_FILE)).unwrap(), names)
        }
    }

    #[test]
    fn they_change_places_and_back() {
        let home = Home::new();
        exchange(&home.world).unwrap();
        assert_eq!(home.state(), ("new".to_owned(), 2));
        exchange(&home.world).unwrap();
        assert_eq!(home.state(), ("old".to_owned(), 2));
    }

    #[test]
    fn they_change_places_in_two_steps_too() {
        let home = Home::new();
        in_some_steps(&home.world).unwrap();
        assert_eq!(home.state(), ("new".to_owned(), 2));
        assert_eq!(fs::read_to_string(next(&home.world).join(STORE_FILE)).unwrap(), "old");
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_world_in_its_place() {
        let home = Home::new();
        // There is nothing to step in: the old one has stepped aside by then.
        remove_dir(&next(&home.world)).unwrap();
        in_some_steps(&home.world).unwrap_err();
        assert_eq!(home.state(), ("old".to_owned(), 1));
        let steps = [decide, step_aside, step_in, unmark];
        for failed_after in 1..=steps.len() {
            let home = Home::new();
            steps[..failed_after].iter().for_each(|step| step(&home.world).unwrap());
            undo(&home.world);
            assert_eq!(home.state(), ("old".to_owned(), 2), "after step {failed_after}");
            assert_eq!(fs::read_to_string(next(&home.world).join(STORE_FILE)).unwrap(), "new");
        }
    }

    #[test]
    fn a_kill_before_the_exchange_leaves_the_old_world() {
        let home = Home::new();
        fs::create_dir(home.dir.path().join("world.next.new-7")).unwrap();
        recover(&home.world).unwrap();
        assert_eq!(home.state(), ("old".to_owned(), 1));
        recover(&home.world).unwrap();
        assert_eq!(home.state(), ("old".to_owned(), 1), "a start with nothing to do does nothing");
    }

    #[test]
    fn a_kill_after_the_exchange_leaves_the_new_world() {
        let home = Home::new();
        exchange(&home.world).unwrap();
        recover(&home.world).unwrap();
        assert_eq!(home.state(), ("new".to_owned(), 1));
    }

    #[test]
    fn a_kill_between_any_two_steps_leaves_the_new_world() {
        let steps = [decide, step_aside, step_in, unmark, settle];
        for killed_after in 1..=steps.len() {
            let home = Home::new();
            steps[..killed_after].iter().for_each(|step| step(&home.world).unwrap());
            // A start makes what is missing of the home before it looks at the world.
            fs::create_dir_all(&home.world).unwrap();
            recover(&home.world).unwrap();
            assert_eq!(home.state(), ("new".to_owned(), 1), "after step {killed_after}");
        }
    }

    #[test]
    fn a_kill_while_the_leftovers_of_another_one_are_there_is_no_obstacle() {
        let home = Home::new();
        fs::create_dir(before(&home.world)).unwrap();
        fs::write(before(&home.world).join("0.jnl"), "half removed").unwrap();
        decide(&home.world).unwrap();
        recover(&home.world).unwrap();
        assert_eq!(home.state(), ("new".to_owned(), 1));
    }

    #[test]
    fn what_is_kept_aside_stays_when_its_place_is_taken() {
        let home = Home::new();
        fs::create_dir(home.world.join("tables")).unwrap();
        fs::write(home.world.join("tables").join("1"), "rows").unwrap();
        let aside = home.dir.path().join("world.damaged-1");
        // What a kill left of another try is no obstacle.
        fs::create_dir(draft(&home.world)).unwrap();
        fs::write(draft(&home.world).join("half"), "").unwrap();
        keep_aside(&home.world, &aside).unwrap();
        assert_eq!(home.state(), ("old".to_owned(), 3));
        exchange(&home.world).unwrap();
        recover(&home.world).unwrap();
        assert_eq!(home.state(), ("new".to_owned(), 2));
        assert_eq!(fs::read_to_string(aside.join(STORE_FILE)).unwrap(), "old");
        assert_eq!(fs::read_to_string(aside.join("tables").join("1")).unwrap(), "rows");
        assert!(!aside.join("half").exists());
    }

    #[test]
    fn a_first_start_finds_nothing_to_do() {
        let dir = tempfile::tempdir().unwrap();
        recover(&dir.path().join("data").join("world")).unwrap();
        recover(&dir.path().join("world")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
