//! The snapshots on the disk: `{data_dir}/snapshots/<id>.rows.zst` with `<id>.json` beside it, which says what it is.
//! A snapshot is there once its `.json` is: everything else is what a kill has left, and is swept at start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_api::snapshot::store::{Reason, Snapshot};
use agentsvc_components::Timestamp;
use uuid::Uuid;

use crate::kernel::archives::{self, moment};
use crate::kernel::disk::{self, remove_file};
use crate::kernel::home::create_private_dir;

/// The end of the name of a file of rows.
const ROWS: &str = "rows.zst";
/// The end of the name of what is not complete.
const UNFINISHED: &str = "new";

/// Which snapshots stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Automatic ones that stay, the newest.
    pub keep: usize,
    /// Days after which automatic ones go; 0 keeps them.
    pub max_age_days: u32,
    /// Manual ones that stay, the newest; 0 keeps all.
    pub keep_manual: usize,
}

impl Retention {
    /// Those of `snapshots`, which stand newest first, that go at `now`.
    pub fn outdated(self, snapshots: &[Snapshot], now: Timestamp) -> Vec<Snapshot> {
        let automatic = archives::Retention { keep: self.keep, max_age_days: self.max_age_days };
        let manual = archives::Retention { keep: self.keep_manual, max_age_days: 0 };
        let (mut of_automatic, mut of_manual) = (0.., 0..);
        let goes = |snapshot: &&Snapshot| {
            let (retention, newer) = match snapshot.reason {
                Reason::Manual => (manual, of_manual.next()),
                Reason::Auto => (automatic, of_automatic.next()),
            };
            // What cannot be read counts as new.
            let taken_at = moment(&snapshot.created_at).unwrap_or(Timestamp(i64::MAX));
            newer.is_some_and(|newer| retention.lets_go(newer, taken_at, now))
        };
        snapshots.iter().filter(goes).cloned().collect()
    }
}

/// The directory of snapshots. It is made with the first one.
#[derive(Clone, Debug)]
pub struct Archives {
    dir: PathBuf,
}

impl Archives {
    /// The snapshots in `dir`.
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Where the rows of a snapshot are.
    pub fn rows(&self, id: Uuid) -> PathBuf {
        self.dir.join(format!("{id}.{ROWS}"))
    }

    /// Where the rows of a snapshot are written, until they are all there. Makes the directory.
    pub fn draft(&self, id: Uuid) -> io::Result<PathBuf> {
        create_private_dir(&self.dir).map_err(io::Error::other)?;
        Ok(self.dir.join(format!("{id}.{ROWS}.{UNFINISHED}")))
    }

    fn card(&self, id: Uuid) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// All snapshots, the newest first. One whose card cannot be read is left out, with a line in the log.
    pub fn list(&self) -> io::Result<Vec<Snapshot>> {
        archives::list(&self.dir, usize::MAX, |path| {
            let is_card = path.extension().is_some_and(|extension| extension == "json");
            // It may be deleted in this moment.
            let read = is_card.then(|| disk::there(read_card(&path)))?;
            read.unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "the metadata of this snapshot cannot be read");
                None
            })
        })
    }

    /// A snapshot by its id.
    pub fn find(&self, id: Uuid) -> io::Result<Option<Snapshot>> {
        disk::there(read_card(&self.card(id)))
    }

    /// Puts a snapshot whose rows are complete, and synced, at its [`draft`](Self::draft) among the others.
    ///
    /// # Errors
    /// The disk failed; then it is not there.
    pub fn put(&self, snapshot: &Snapshot) -> io::Result<()> {
        let card = self.card(snapshot.id);
        let whole = || {
            fs::rename(self.draft(snapshot.id)?, self.rows(snapshot.id))?;
            let mut text = serde_json::to_vec_pretty(snapshot)?;
            text.push(b'\n');
            disk::replace(&card, &text)
        };
        let put = whole();
        if put.is_err() {
            // Its rows may be what has filled the disk. What cannot be removed is swept with the next start.
            for path in [card, self.rows(snapshot.id), self.draft(snapshot.id)?] {
                let _ = remove_file(&path);
            }
        }
        put
    }

    /// Deletes a snapshot. The card goes first: what a kill leaves then is no snapshot.
    pub fn delete(&self, id: Uuid) -> io::Result<()> {
        archives::delete(&self.dir, &[self.card(id), self.rows(id)])
    }

    /// Removes what kills have left: files that are not complete, and rows without a card. Gives how many.
    pub fn sweep(&self) -> io::Result<usize> {
        let mut swept = 0;
        for path in disk::entries(&self.dir)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_unfinished = name.ends_with(&format!(".{UNFINISHED}"));
            let rows_of = name.strip_suffix(&format!(".{ROWS}")).and_then(|id| Uuid::try_parse(id).ok());
            if is_unfinished || rows_of.is_some_and(|id| !self.card(id).exists()) {
                remove_file(&path)?;
                swept += 1;
            }
        }
        Ok(swept)
    }
}

fn read_card(path: &Path) -> io::Result<Snapshot> {
    serde_json::from_slice(&disk::read(path)?).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use agentsvc_api::snapshot::store::SnapshotCounts;

    use super::*;
    use crate::kernel::archives::DAY_MS;

    const NOW: Timestamp = Timestamp(100 * DAY_MS);

    fn snapshot(number: u128, reason: Reason, age_days: i64) -> Snapshot {
        Snapshot {
            id: Uuid::from_u128(number),
            created_at: NOW.plus_ms(-age_days * DAY_MS - 1).to_string(),
            step: None,
            size_bytes: 1,
            reason,
            before: None,
            label: None,
            lost: None,
            counts: SnapshotCounts::default(),
            sha256: String::new(),
        }
    }

    fn put(archives: &Archives, snapshot: &Snapshot) {
        fs::write(archives.draft(snapshot.id).unwrap(), "rows").unwrap();
        archives.put(snapshot).unwrap();
    }

    #[test]
    fn what_was_put_is_listed_newest_first_until_it_is_deleted() {
        let home = tempfile::tempdir().unwrap();
        let archives = Archives::new(home.path().join("snapshots"));
        assert_eq!((archives.list().unwrap(), archives.sweep().unwrap()), (vec![], 0));
        let (first, second) = (snapshot(1, Reason::Manual, 1), snapshot(2, Reason::Auto, 0));
        put(&archives, &first);
        put(&archives, &second);
        assert_eq!(archives.list().unwrap(), [second.clone(), first.clone()]);
        assert_eq!(archives.find(first.id).unwrap(), Some(first.clone()));
        archives.delete(first.id).unwrap();
        assert_eq!(archives.find(first.id).unwrap(), None);
        assert_eq!(archives.list().unwrap(), [second]);
        assert!(!archives.rows(first.id).exists());
    }

    #[test]
    fn one_that_cannot_be_put_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let archives = Archives::new(home.path().to_owned());
        let snapshot = snapshot(1, Reason::Auto, 0);
        fs::write(archives.draft(snapshot.id).unwrap(), "rows").unwrap();
        // Where the card would be written is something else.
        let in_the_way = archives.card(snapshot.id).with_extension("json.new");
        fs::create_dir(&in_the_way).unwrap();
        archives.put(&snapshot).unwrap_err();
        fs::remove_dir(in_the_way).unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_kill_leaves_is_no_snapshot_and_is_swept() {
        let home = tempfile::tempdir().unwrap();
        let archives = Archives::new(home.path().to_owned());
        let whole = snapshot(1, Reason::Manual, 0);
        put(&archives, &whole);
        // Killed while the rows were written, before the card was there, and after the card was deleted.
        fs::write(archives.draft(Uuid::from_u128(2)).unwrap(), "ro").unwrap();
        fs::write(archives.rows(Uuid::from_u128(3)), "rows").unwrap();
        fs::write(home.path().join("00000000-0000-0000-0000-000000000004.json.new"), "{").unwrap();
        fs::write(home.path().join("notes.txt"), "mine").unwrap();
        assert_eq!(archives.list().unwrap(), std::slice::from_ref(&whole));
        assert_eq!(archives.sweep().unwrap(), 3);
        assert_eq!(archives.list().unwrap(), [whole]);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 3, "rows, card and what is not ours");
    }

    #[test]
    fn age_and_number_let_automatic_ones_go_and_manual_ones_only_when_asked_for() {
        let all = [
            snapshot(9, Reason::Auto, 0),
            snapshot(8, Reason::Manual, 1),
            snapshot(7, Reason::Auto, 2),
            snapshot(6, Reason::Auto, 40),
            snapshot(5, Reason::Manual, 50),
            snapshot(4, Reason::Auto, 60),
        ];
        let gone = |keep, max_age_days, keep_manual| {
            let outdated = Retention { keep, max_age_days, keep_manual }.outdated(&all, NOW);
            outdated.iter().map(|snapshot| snapshot.id.as_u128()).collect::<Vec<_>>()
        };
        assert_eq!(gone(10, 0, 0), [0_u128; 0]);
        assert_eq!(gone(2, 0, 0), [6, 4]);
        assert_eq!(gone(10, 30, 0), [6, 4]);
        assert_eq!(gone(1, 30, 1), [7, 6, 5, 4]);
    }
}
