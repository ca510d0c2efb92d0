//! Where lines are written: one file per UTC day, and the terminal.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{Days, NaiveDate};

use super::outlet::Sink;
use crate::kernel::home::private_file;

/// Files of this many days before today are kept (spec 2, Limits).
const DAYS_KEPT: u64 = 7;

/// The file of today, `daemon-YYYY-MM-DD.log`; goes over to the next at midnight UTC.
#[derive(Debug)]
pub(crate) struct DailyFile {
    directory: PathBuf,
    day: NaiveDate,
    file: BufWriter<File>,
}

impl DailyFile {
    /// Opens the file of `today` in `directory` and goes on at its end.
    pub(crate) fn open(directory: &Path, today: NaiveDate) -> io::Result<Self> {
        let path = directory.join(format!("daemon-{today}.log"));
        let file = private_file().append(true).create(true).open(path)?;
        Ok(Self { directory: directory.to_owned(), day: today, file: BufWriter::new(file) })
    }

    fn line_of(&mut self, line: &str, today: NaiveDate) -> io::Result<()> {
        if today != self.day {
            self.file.flush()?;
            *self = Self::open(&self.directory, today)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")
    }
}

impl Sink for DailyFile {
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

/// The day of a log file's name; `None` for any other file.
pub fn day_of(path: &Path) -> Option<NaiveDate> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("daemon-")?.strip_suffix(".log")?.parse().ok()
}

/// The newest log file in `directory`.
///
/// # Errors
/// What the system said when the directory cannot be read.
pub fn newest(directory: &Path) -> io::Result<Option<PathBuf>> {
    let files = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(files.filter_map(|path| Some((day_of(&path)?, path))).max().map(|(_, path)| path))
}

/// Removes log files of more than a week before `today`. Other files are left alone.
pub(crate) fn prune(directory: &Path, today: NaiveDate) -> io::Result<()> {
    let oldest = today.checked_sub_days(Days::new(DAYS_KEPT)).unwrap_or(NaiveDate::MIN);
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if day_of(&path).is_some_and(|day| day < oldest) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use chrono::NaiveDate;

    use super::{DailyFile, day_of, newest, prune};
    use crate::kernel::logging::outlet::Sink;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, day).unwrap()
    }

    #[test]
    fn a_new_day_is_a_new_file_and_a_restart_appends() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = DailyFile::open(dir.path(), day(1)).unwrap();
        file.line_of("a", day(1)).unwrap();
        file.line_of("b", day(2)).unwrap();
        file.flush().unwrap();
        drop(file);
        let mut file = DailyFile::open(dir.path(), day(2)).unwrap();
        file.line_of("c", day(2)).unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("daemon-2026-03-01.log")).unwrap(), "a\n");
        assert_eq!(fs::read_to_string(dir.path().join("daemon-2026-03-02.log")).unwrap(), "b\nc\n");
        assert_eq!(newest(dir.path()).unwrap(), Some(dir.path().join("daemon-2026-03-02.log")));
    }

    #[test]
    fn a_week_is_kept_and_strangers_too() {
        let dir = tempfile::tempdir().unwrap();
        let names =
            ["daemon-2026-03-01.log", "daemon-2026-03-02.log", "daemon-2026-03-09.log", "daemon-x.log", "notes"];
        names.iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        prune(dir.path(), day(9)).unwrap();
        assert!(!dir.path().join(names[0]).exists());
        assert!(names[1..].iter().all(|name| dir.path().join(name).exists()));
    }

    #[test]
    fn days_of_names() {
        assert_eq!(day_of(Path::new("/x/daemon-2026-03-01.log")), Some(day(1)));
        assert_eq!(day_of(Path::new("/x/daemon-2026-13-01.log")), None);
        assert_eq!(day_of(Path::new("/x/other-2026-03-01.log")), None);
    }
}
