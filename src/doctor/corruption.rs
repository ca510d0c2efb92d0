//! Random damage of single files of a store: a repair loses at most what that file alone held, says so, and gives no wrong
//! data; an intact store is not changed; a start gives no wrong data either.
//!
//! `AGENTSVC_CORRUPTIONS` is how many, `AGENTSVC_CORRUPTION_SEED` the seed of the first; each has the next one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_components::kernel::record::Space;
use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::mend::mend;
use crate::kernel::disk::{entries, remove_dir};
use crate::kernel::store::raw::sample::{Key, Layout, Rows, Sample};
use crate::kernel::store::repair::{Repaired, repair};
use crate::kernel::store::{Error, Store};

/// The home that the samples are made of.
const HOME: &str = "tests/fixtures/0.1.0-whole-home/home.tar.gz";
/// What the kinds of rows that a repair makes up begin with: agents, manifests, sessions, sweeps.
const MADE_UP: &[u8] = b"amsw";

/// A small deterministic generator (SplitMix64).
struct Rng(u64);

impl Rng {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.roll() as u8).collect()
    }
}

/// What is done to a file.
#[derive(Debug)]
enum Harm {
    Bit { at: usize, bit: u8 },
    Bytes { at: usize, bytes: Vec<u8> },
    Cut { length: usize },
    Zeros { at: usize, length: usize },
    Longer { bytes: Vec<u8> },
    Deleted,
}

impl Harm {
    fn random(rng: &mut Rng, length: usize) -> Self {
        let at = rng.below(length);
        let block = (1 + rng.below(4_096)).min(length - at);
        match rng.below(6) {
            0 if length > 0 => Self::Bit { at, bit: rng.below(8) as u8 },
            1 if length > 0 => {
                let bytes = (1 + rng.below(8)).min(block);
                Self::Bytes { at, bytes: rng.bytes(bytes) }
            }
            2 if length > 0 => Self::Cut { length: at },
            3 if length > 0 => Self::Zeros { at, length: block },
            4 => Self::Deleted,
            5 if length > 0 && rng.below(2) == 0 => Self::Bytes { at, bytes: rng.bytes(block) },
            _ => {
                let bytes = 1 + rng.below(5_000);
                Self::Longer { bytes: rng.bytes(bytes) }
            }
        }
    }

    fn apply(&self, path: &Path) {
        let file = || File::options().read(true).write(true).open(path).unwrap();
        match self {
            Self::Bit { at, bit } => {
                let mut byte = [0];
                file().read_exact_at(&mut byte, *at as u64).unwrap();
                file().write_all_at(&[byte[0] ^ (1 << bit)], *at as u64).unwrap();
            }
            Self::Bytes { at, bytes } => file().write_all_at(bytes, *at as u64).unwrap(),
            Self::Cut { length } => file().set_len(*length as u64).unwrap(),
            Self::Zeros { at, length } => file().write_all_at(&vec![0; *length], *at as u64).unwrap(),
            Self::Longer { bytes } => File::options().append(true).open(path).unwrap().write_all(bytes).unwrap(),
            Self::Deleted => fs::remove_file(path).unwrap(),
        }
    }
}

/// What became of the damaged stores.
#[derive(Debug, Default)]
struct Tally {
    /// Nothing was changed, and every row is there.
    harmless: u64,
    /// Repaired with every row.
    whole: u64,
    /// Repaired, and what is lost was named.
    with_loss: u64,
    /// Taken for a store that was killed earlier: the end of the newest journal is gone.
    earlier: u64,
    /// Nothing can be read; the damaged file was the only one with rows.
    refused: u64,
    /// Starts that were refused.
    refused_starts: u64,
}

/// Prints what failed.
struct Blame<'a> {
    seed: u64,
    what: &'a str,
}

impl Drop for Blame<'_> {
    #[allow(clippy::print_stderr, reason = "whoever repeats a run needs its seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("AGENTSVC_CORRUPTIONS=1 AGENTSVC_CORRUPTION_SEED={}: {}", self.seed, self.what);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for path in entries(from).unwrap() {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { _ = fs::copy(&path, &target).unwrap() }
    }
}

/// Every file below a directory, with what is in it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in entries(directory).unwrap() {
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// The rows that a store gives.
fn rows(path: &Path) -> Result<Rows, Error> {
    let store = opened(path)?;
    let rows =
        store.view().all().map(|row| row.map(|row| ((1 + u64::from(row.space == Space::Content), row.key), row.value)));
    rows.collect()
}

/// A child that another test starts just now holds the lock until it runs its program.
fn opened(path: &Path) -> Result<Store, Error> {
    for _ in 0..1_000 {
        match Store::open(path) {
            Err(Error::InUse { .. }) => std::thread::park_timeout(std::time::Duration::from_millis(1)),
            opened => return opened,
        }
    }
    Store::open(path)
}

/// The rows that are not as they should be: missing, at another version, or back.
fn differing(found: &Rows, expected: &Rows) -> Vec<Key> {
    let missing = expected.iter().filter(|(key, value)| found.get(key) != Some(value));
    let added = found.keys().filter(|key| !expected.contains_key(key));
    missing.map(|(key, _)| key).chain(added).cloned().collect()
}

struct Trial<'a> {
    sample: &'a Sample,
    newest: &'a Rows,
    file: PathBuf,
    /// Its file is the journal that is written last.
    is_newest_journal: bool,
}

impl Trial<'_> {
    /// A repair of the damaged store at `path`.
    fn repair(&self, path: &Path, tally: &mut Tally) {
        let before = contents(path);
        let told = match repair(path, mend) {
            Ok(told) => told,
            Err(error) => {
                let text = error.to_string();
                assert!(!text.contains("--repair"), "{text}");
                assert!(self.sample.is_all_in(&self.file), "{text}");
                assert!(before == contents(path), "it is as it was");
                tally.refused += 1;
                return;
            }
        };
        let Repaired { lost, aside, .. } = &told;
        if aside.is_none() {
            assert!(before == contents(path) && entries(path.parent().unwrap()).unwrap().len() == 1, "it is as it was");
        }
        let found = rows(path).unwrap();
        let differing = differing(&found, self.newest);
        for key in &differing {
            self.check_difference(key, &found, &told);
        }
        let only_sweeps = differing.iter().all(|(_, key)| key.first() == Some(&b'w'));
        match (aside, lost.is_empty()) {
            (None, _) if differing.is_empty() => tally.harmless += 1,
            (_, true) if only_sweeps => tally.whole += 1,
            (_, true) => {
                assert!(self.is_newest_journal && self.sample.is_earlier(&found), "silent: {differing:?}");
                tally.earlier += 1;
            }
            (_, false) => tally.with_loss += 1,
        }
    }

    fn check_difference(&self, key: &Key, found: &Rows, told: &Repaired) {
        let is_world = key.0 == 1;
        let is_made_up = is_world && key.1.first().is_some_and(|kind| MADE_UP.contains(kind));
        if let Some(value) = found.get(key)
            && !self.sample.was_written(key, value)
        {
            assert!(is_made_up && told.aside.is_some(), "wrong data: {key:?} {told:?}");
        }
        // Records go with those that they refer to.
        let is_in_file = self.sample.is_only_in(&self.file, key);
        assert!(is_in_file || (is_world && (is_made_up || !told.lost.is_empty())), "{key:?} {told:?}");
    }

    /// A start on the damaged store at `path`.
    fn start(&self, path: &Path, tally: &mut Tally) {
        match rows(path) {
            Ok(found) if found == *self.newest => {}
            Ok(found) => {
                assert!(self.is_newest_journal && self.sample.is_earlier(&found), "a start gives wrong data");
            }
            Err(_) => tally.refused_starts += 1,
        }
    }
}

/// The samples, and what was written into them.
struct Samples {
    scratch: TempDir,
    all: Vec<(&'static str, Sample, Rows)>,
}

impl Samples {
    /// One with all rows in the journal, one with most of them in data tables, one with many tables and journals.
    fn new() -> Self {
        let layouts = [
            ("young", Layout { world: usize::MAX / 4, content: usize::MAX / 4, journals: 1 }),
            ("old", Layout { world: 50, content: 70, journals: 1 }),
            ("large", Layout { world: 30, content: 8, journals: 3 }),
        ];
        // Where a sync costs nothing.
        let memory = Path::new("/dev/shm");
        let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let home = scratch.path().join("home");
        let archive = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(HOME)).unwrap();
        tar::Archive::new(GzDecoder::new(archive)).unpack(&home).unwrap();
        let sample = |(name, layout): &(&'static str, Layout)| {
            let sample = Sample::new(scratch.path().join(name), &home.join("data/world"), layout);
            let newest = sample.newest();
            (*name, sample, newest)
        };
        let all = layouts.iter().map(sample).collect();
        Self { scratch, all }
    }

    /// Damages a file of a sample, and repairs and starts the damaged store.
    fn damage(&self, seed: u64, tallies: &mut [Tally]) {
        let mut rng = Rng(seed);
        let which = rng.below(self.all.len());
        let (name, sample, newest) = &self.all[which];
        let files = sample.files();
        let journals = || files.iter().filter(|file| file.extension().is_some_and(|end| end == "jnl"));
        let with_rows: Vec<_> =
            journals().chain(files.iter().filter(|file| file.starts_with("keyspaces/2/tables"))).collect();
        // Most files are small.
        let file = match rng.below(2) {
            0 => with_rows[rng.below(with_rows.len())].clone(),
            _ => files[rng.below(files.len())].clone(),
        };
        let harm = Harm::random(&mut rng, fs::metadata(sample.path.join(&file)).unwrap().len() as usize);
        let what = format!("{name} {} {harm:?}", file.display());
        let _blame = Blame { seed, what: &what };
        let number = |file: &Path| file.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        let is_newest_journal = journals().max_by_key(|file| number(file)) == Some(&file);
        let trial = Trial { sample, newest, file, is_newest_journal };
        for step in [Trial::repair, Trial::start] {
            let place = self.scratch.path().join(format!("trial-{seed}"));
            fs::create_dir(&place).unwrap();
            let world = place.join("world");
            copy(&sample.path, &world);
            harm.apply(&world.join(&trial.file));
            step(&trial, &world, &mut tallies[which]);
            remove_dir(&place).unwrap();
        }
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the numbers of the sample")]
fn damage_of_one_file_loses_at_most_what_it_held() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let count = number("AGENTSVC_CORRUPTIONS").unwrap_or(500);
    let first = number("AGENTSVC_CORRUPTION_SEED").unwrap_or(1);
    let (samples, next) = (Samples::new(), AtomicU64::new(0));
    let work = || {
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                index if index < count => samples.damage(first + index, &mut tallies),
                _ => return tallies,
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let tallies: Vec<[Tally; 3]> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (index, (name, ..)) in samples.all.iter().enumerate() {
        let sum = |field: fn(&Tally) -> u64| tallies.iter().map(|tallies| field(&tallies[index])).sum::<u64>();
        println!(
            "{name}: {} harmless, {} repaired whole, {} repaired with named loss, {} earlier states, {} refused; \
             {} starts refused",
            sum(|tally| tally.harmless),
            sum(|tally| tally.whole),
            sum(|tally| tally.with_loss),
            sum(|tally| tally.earlier),
            sum(|tally| tally.refused),
            sum(|tally| tally.refused_starts),
        );
    }
}
