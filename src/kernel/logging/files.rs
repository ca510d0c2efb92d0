//! Where lines are written: files by UTC day and size, within a bound for all of them, and the terminal.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{Days, NaiveDate};

use super::outlet::{Sink, own_line};
use crate::kernel::home::private_file;

/// Files of this many days before today are kept (spec 2, Limits).
const DAYS_KEPT: u64 = 7;
/// A file has at most this part of the bytes of all: so much goes at once when there is no more room.
const PARTS: u64 = 8;

/// The log files in a directory: `daemon-YYYY-MM-DD.log`, and when that is full `daemon-YYYY-MM-DD.1.log` and so on. Goes
/// over to the next at midnight UTC and when a file is full; then the oldest are deleted, so that all together never have
/// more bytes than they may.
#[derive(Debug)]
pub(crate) struct RollingFile {
    directory: PathBuf,
    bytes_max: u64,
    day: NaiveDate,
    number: u32,
    /// Bytes of the file, those that are not yet flushed included.
    bytes: u64,
    file: BufWriter<File>,
    /// What was deleted and not yet told.
    deleted: Deleted,
}

/// Files that were deleted because there was no room for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Deleted {
    files: u64,
    bytes: u64,
}

impl RollingFile {
    /// Deletes what is too old or too much in `directory`, and goes on at the end of the newest file of `today`.
    pub(crate) fn start(directory: &Path, today: NaiveDate, bytes_max: u64) -> io::Result<Self> {
        let deleted = prune(directory, today, bytes_max - bytes_max / PARTS)?;
        Self::open(directory, today, bytes_max, 0).map(|file| Self { deleted, ..file })
    }

    /// Opens a file of `today` that has room, of those with at least the number `least`.
    fn open(directory: &Path, today: NaiveDate, bytes_max: u64, least: u32) -> io::Result<Self> {
        let last = parts(directory)?.into_iter().find(|part| part.day == today && part.number >= least);
        let number = match last {
            Some(part) if fs::metadata(&part.path)?.len() < bytes_max / PARTS => part.number,
            Some(part) => part.number.saturating_add(1),
            None => least,
        };
        let file = private_file().append(true).create(true).open(directory.join(name_of(today, number)))?;
        let (directory, bytes) = (directory.to_owned(), file.metadata()?.len());
        let file = BufWriter::new(file);
        Ok(Self { directory, bytes_max, day: today, number, bytes, file, deleted: Deleted::default() })
    }

    fn line_of(&mut self, line: &str, today: NaiveDate) -> io::Result<()> {
        let Deleted { files, bytes } = self.deleted;
        if files > 0 {
            let said =
                format!("log.max_bytes is reached: {files} of the oldest log files, {bytes} bytes, were deleted");
            self.put(&own_line(&said), today)?;
            self.deleted.files -= files;
            self.deleted.bytes -= bytes;
        }
        self.put(line, today)
    }

    fn put(&mut self, line: &str, today: NaiveDate) -> io::Result<()> {
        let (bytes, most) = (line.len() as u64 + 1, self.bytes_max / PARTS);
        if bytes > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // A clock that is set back changes nothing.
        if today > self.day {
            self.roll(today, 0)?;
        }
        if self.bytes + bytes > most {
            self.roll(self.day, self.number.saturating_add(1))?;
        }
        self.bytes += bytes;
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")
    }

    /// Goes over to the next file. Makes room first, also on a disk that takes no more.
    fn roll(&mut self, day: NaiveDate, least: u32) -> io::Result<()> {
        let flushed = self.file.flush();
        // A folder that cannot be read must not end the log.
        let more = prune(&self.directory, day, self.bytes_max - self.bytes_max / PARTS).unwrap_or_default();
        self.deleted.files += more.files;
        self.deleted.bytes += more.bytes;
        flushed?;
        let next = Self::open(&self.directory, day, self.bytes_max, least)?;
        *self = Self { deleted: self.deleted, ..next };
        Ok(())
    }
}

impl Sink for RollingFile {
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.line_of(line, agentsvc_api::http::timestamp::now().date_naive())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Standard error.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Sink for Terminal {
    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        stderr.write_all(line.as_bytes())?;
        stderr.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// One log file.
struct Part {
    day: NaiveDate,
    number: u32,
    path: PathBuf,
}

impl Part {
    /// The file at `path`; `None` when its name is not that of a log file.
    fn of(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let middle = name.strip_prefix("daemon-")?.strip_suffix(".log")?;
        let (day, number) = match middle.split_once('.') {
            Some((day, number)) => (day, number.parse().ok()?),
            None => (middle, 0),
        };
        Some(Self { day: day.parse().ok()?, number, path })
    }
}

fn name_of(day: NaiveDate, number: u32) -> String {
    match number {
        0 => format!("daemon-{day}.log"),
        number => format!("daemon-{day}.{number}.log"),
    }
}

/// The log files in `directory`, the newest first. Other files are left out.
fn parts(directory: &Path) -> io::Result<Vec<Part>> {
    let files = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut parts: Vec<_> = files.filter_map(Part::of).collect();
    parts.sort_unstable_by_key(|part| std::cmp::Reverse((part.day, part.number)));
    Ok(parts)
}

/// The log files in `directory`, the newest first.
///
/// # Errors
/// What the system said when the directory cannot be read.
pub fn newest_first(directory: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(parts(directory)?.into_iter().map(|part| part.path).collect())
}

/// Deletes log files of more than a week before `today`, and the oldest as long as all have more than `bytes_max`. Other
/// files are left alone.
fn prune(directory: &Path, today: NaiveDate, bytes_max: u64) -> io::Result<Deleted> {
    let oldest = today.checked_sub_days(Days::new(DAYS_KEPT)).unwrap_or(NaiveDate::MIN);
    let (mut left, mut deleted) = (Some(bytes_max), Deleted::default());
    for part in parts(directory)? {
        let Ok(bytes) = fs::metadata(&part.path).map(|found| found.len()) else { continue };
        left = left.and_then(|left| left.checked_sub(bytes));
        let is_too_much = left.is_none();
        if !is_too_much && part.day >= oldest {
            continue;
        }
        match fs::remove_file(&part.path) {
            // One that cannot be deleted must not keep the others, and the next file, away.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ if part.day >= oldest => {
                deleted.files += 1;
                deleted.bytes += bytes;
            }
            _ => {}
        }
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use chrono::NaiveDate;

    use super::{Deleted, Part, RollingFile, newest_first, prune};
    use crate::kernel::logging::outlet::Sink;

    const MANY: u64 = 1 << 20;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, day).unwrap()
    }

    /// Names and sizes of the log files, the newest first.
    fn sizes(dir: &Path) -> Vec<(String, u64)> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let files = newest_first(dir).unwrap();
        files.iter().map(|path| (name(path), fs::metadata(path).unwrap().len())).collect()
    }

    #[test]
    fn a_new_day_is_a_new_file_and_a_restart_appends() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = RollingFile::start(dir.path(), day(1), MANY).unwrap();
        file.line_of("a", day(1)).unwrap();
        file.line_of("b", day(2)).unwrap();
        file.line_of("and the clock is set back", day(1)).unwrap();
        file.flush().unwrap();
        drop(file);
        let mut file = RollingFile::start(dir.path(), day(2), MANY).unwrap();
        file.line_of("c", day(2)).unwrap();
        file.flush().unwrap();
        let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("daemon-2026-03-01.log"), "a\n");
        assert_eq!(read("daemon-2026-03-02.log"), "b\nand the clock is set back\nc\n");
        assert_eq!(newest_first(dir.path()).unwrap()[0], dir.path().join("daemon-2026-03-02.log"));
    }

    #[test]
    fn all_files_together_have_no_more_bytes_than_they_may_and_what_goes_is_told() {
        const MOST: u64 = 8 * 1_000;
        let dir = tempfile::tempdir().unwrap();
        let mut file = RollingFile::start(dir.path(), day(1), MOST).unwrap();
        let line = |n: usize| format!("line {n:04} {}", "x".repeat(39));
        for n in 0..1_000 {
            file.line_of(&line(n), day(1 + n as u32 / 400)).unwrap();
            file.flush().unwrap();
            let sizes = sizes(dir.path());
            assert!(sizes.iter().map(|(_, bytes)| bytes).sum::<u64>() <= MOST, "{n}: {sizes:?}");
            assert!(sizes.iter().all(|(_, bytes)| *bytes <= MOST / 8), "{n}: {sizes:?}");
        }
        let files = newest_first(dir.path()).unwrap();
        let text: String = files.iter().rev().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert!(text.contains(&line(999)) && !text.contains(&line(0)), "{text}");
        assert!(text.contains("log.max_bytes is reached: 1 of the oldest log files, "), "{text}");
        // What is left has no gap.
        let kept: Vec<_> = text.lines().filter(|it| it.starts_with("line ")).collect();
        assert!(kept.len() > 10, "{text}");
        let first = 1_000 - kept.len();
        assert!(kept.iter().enumerate().all(|(at, it)| *it == line(first + at)), "{text}");
        // A restart goes on within the same bound; a smaller one is in force at once.
        drop(file);
        let mut file = RollingFile::start(dir.path(), day(3), MOST / 2).unwrap();
        file.line_of("z", day(3)).unwrap();
        file.flush().unwrap();
        let left = sizes(dir.path());
        assert!(left.iter().map(|(_, bytes)| bytes).sum::<u64>() <= MOST / 2, "{left:?}");
        assert!(file.line_of(&"y".repeat(MOST as usize), day(3)).is_err(), "it would not fit");
    }

    #[test]
    fn a_file_of_an_earlier_release_that_is_too_large_goes() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("daemon-2026-03-09.log"), "x".repeat(2_000)).unwrap();
        let mut file = RollingFile::start(dir.path(), day(9), 1_600).unwrap();
        file.line_of("a", day(9)).unwrap();
        file.flush().unwrap();
        let text = fs::read_to_string(dir.path().join("daemon-2026-03-09.log")).unwrap();
        assert!(
            text.contains("1 of the oldest log files, 2000 bytes, were deleted") && text.ends_with("\na\n"),
            "{text}"
        );
    }

    #[test]
    fn a_week_is_kept_and_strangers_too() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "daemon-2026-03-01.log",
            "daemon-2026-03-01.12.log",
            "daemon-2026-03-02.log",
            "daemon-2026-03-09.log",
            "daemon-x.log",
            "notes",
        ];
        names.iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        assert_eq!(prune(dir.path(), day(9), MANY).unwrap(), Deleted::default(), "what is old is no loss");
        assert!(names[..2].iter().all(|name| !dir.path().join(name).exists()));
        assert!(names[2..].iter().all(|name| dir.path().join(name).exists()));
    }

    #[test]
    fn days_and_numbers_of_names() {
        let of = |path: &str| Part::of(path.into()).map(|part| (part.day, part.number));
        assert_eq!(of("/x/daemon-2026-03-01.log"), Some((day(1), 0)));
        assert_eq!(of("/x/daemon-2026-03-01.10.log"), Some((day(1), 10)));
        for other in
            ["daemon-2026-13-01.log", "daemon-2026-03-01.x.log", "daemon-2026-03-01.1.2.log", "other-2026-03-01.log"]
        {
            assert_eq!(of(&format!("/x/{other}")), None, "{other}");
        }
    }
}
