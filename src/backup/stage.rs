//! Unpacks an archive beside the home, checking everything that can be checked of it by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::limit::VAULT_SECRET_BYTES_MAX;

use super::component::{CONFIG, Part, Selection};
use super::error::{Error, found_in, io, smuggled};
use super::files::{Places, Warnings};
use super::manifest::Manifest;
use super::pack::unpack_file;
use super::place::Rooms;
use super::progress::Progress;
use super::read::{self, Reading};
use super::rows;
use crate::kernel::config::Merged;
use crate::kernel::free_space;
use crate::kernel::home::{create_private_dir, private_file};
use crate::kernel::settings::DataDir;
use crate::kernel::store::rows::RowReader;
use crate::kernel::vault::Vault;

/// Bytes of a configuration; more is none.
const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// The secret that stays as it is once there is one: what it says of used codes must not be set back.
const SECOND_FACTOR: &str = "vault/totp.sealed";

/// An archive that was found whole and is unpacked.
pub(super) struct Stage {
    /// What it is.
    pub(super) manifest: Manifest,
    /// The rows files, of the parts that were wanted.
    pub(super) rows: BTreeMap<Part, PathBuf>,
    /// The entries that wait for their places.
    pub(super) files: BTreeSet<String>,
    /// The configuration that comes with it, if it is wanted.
    pub(super) config: Option<DataDir>,
    /// The keys of the configuration that stay as they are here.
    pub(super) config_kept: Vec<String>,
    /// What is left out.
    pub(super) warnings: Warnings,
}

/// What an archive is unpacked for.
pub(super) struct Target<'a> {
    pub(super) places: &'a Places,
    pub(super) rooms: &'a Rooms,
    pub(super) vault: &'a Vault,
    pub(super) selection: &'a Selection,
    /// The configuration of this home, if the keys that clients may not write stay as they are in it.
    pub(super) present: Option<&'a str>,
}

/// Unpacks what is wanted of the archive, and checks the rest as well.
///
/// # Errors
/// [`Error`]: what is wrong with the archive. What was staged is of no use then.
pub(super) fn unpack(archive: &Path, target: &Target<'_>, progress: &Progress) -> Result<Stage, Error> {
    target.rooms.clear()?;
    let mut stage = Stage {
        manifest: Manifest::default(),
        rows: BTreeMap::new(),
        files: BTreeSet::new(),
        config: None,
        config_kept: Vec::new(),
        warnings: Warnings::default(),
    };
    let begin = |manifest: &Manifest| {
        progress.begin("checking", manifest.bytes());
        // Once as it comes, once more as a store.
        make_room(&target.places.data, manifest.bytes().saturating_mul(2).saturating_add(free_space::SPARE_BYTES))
    };
    stage.manifest = read::read(archive, begin, |reading| {
        let Reading { line, runs, content } = reading;
        let mut content = Told { content, progress };
        match Part::of_entry(&line.name) {
            Some(part) => stage.rows_file(part, line.rows, &mut content, target),
            None => stage.file(&line.name, runs, &mut content, target),
        }
    })?;
    Ok(stage)
}

/// Is there room for so many bytes?
fn make_room(dir: &Path, needed: u64) -> Result<(), Error> {
    create_private_dir(dir).map_err(|error| io("create", dir)(io::Error::other(error)))?;
    let free = free_space::free(dir).map_err(io("look at", dir))?;
    if free < needed { Err(Error::NoRoom { needed, free, path: dir.to_owned() }) } else { Ok(()) }
}

impl Stage {
    /// Reads every row of a rows file; keeps the file when it is wanted.
    fn rows_file(
        &mut self,
        part: Part,
        count: Option<u64>,
        content: &mut Told<'_>,
        target: &Target<'_>,
    ) -> Result<(), Error> {
        let is_wanted = part == Part::AuditLog || target.selection.takes_part(part);
        let path = target.rooms.rows_dir().join(part.entry().replace('/', "-"));
        let copy: Box<dyn Write> = if is_wanted {
            create_private_dir(&target.rooms.rows_dir())
                .map_err(|error| io("create", &path)(io::Error::other(error)))?;
            let mut options = private_file();
            Box::new(options.write(true).create_new(true).open(&path).map_err(io("create", &path))?)
        } else {
            Box::new(io::sink())
        };
        let of_rows = |error| Error::of_rows(part.entry(), error);
        let mut reader = RowReader::new(Tee { content, copy }).map_err(of_rows)?;
        for row in reader.by_ref() {
            rows::check(part, &row.map_err(of_rows)?)?;
        }
        let found = reader.totals().map(|totals| totals.world + totals.content);
        if found != count {
            return Err(Error::Damaged(format!("{}: the row count does not match the manifest", part.entry())));
        }
        if is_wanted {
            self.rows.insert(part, path);
        }
        Ok(())
    }

    fn file(&mut self, name: &str, runs: bool, content: &mut Told<'_>, target: &Target<'_>) -> Result<(), Error> {
        let skipped = |content: &mut Told<'_>| {
            io::copy(content, &mut io::sink()).map(drop).map_err(|error| found_in("read", name.as_ref(), error))
        };
        if !target.selection.takes(name) {
            return skipped(content);
        }
        if name.starts_with("vault/") {
            return self.secret(name, content, target);
        }
        let path = target.rooms.staged(name);
        unpack_file(content, &path, runs)?;
        if name == CONFIG {
            self.configuration(&path, target)?;
        }
        self.files.insert(name.to_owned());
        Ok(())
    }

    /// Checks the configuration that waits at `path`, and puts what this home keeps into it.
    fn configuration(&mut self, path: &Path, target: &Target<'_>) -> Result<(), Error> {
        let bytes = path.metadata().map_err(io("look at", path))?.len();
        if bytes > CONFIG_BYTES_MAX {
            return Err(Error::Damaged(format!("{CONFIG} is not valid")));
        }
        let text = fs::read_to_string(path).map_err(|_| Error::Damaged(format!("{CONFIG} is not UTF-8 text")))?;
        let read = &target.places.read;
        let unfit = |error| {
            let skip = "use `keep_config` to skip it";
            Error::Unfit(format!("the configuration of the backup is not valid; {skip}: {error}"))
        };
        let Some(present) = target.present else {
            self.config = Some((read.data_dir)(&text).map_err(unfit)?);
            return Ok(());
        };
        let Merged { text: merged, kept } = (read.merged)(&text, present).map_err(unfit)?;
        if merged != text {
            fs::write(path, &merged).map_err(io("write", path))?;
        }
        self.config = Some((read.data_dir)(&merged).map_err(unfit)?);
        self.config_kept = kept;
        Ok(())
    }

    /// A sealed secret is taken when this home's key opens it.
    fn secret(&mut self, name: &str, content: &mut Told<'_>, target: &Target<'_>) -> Result<(), Error> {
        let mut sealed = Vec::new();
        let bound = 2 * VAULT_SECRET_BYTES_MAX as u64;
        content.take(bound + 1).read_to_end(&mut sealed).map_err(|error| found_in("read", name.as_ref(), error))?;
        if sealed.len() as u64 > bound {
            return Err(Error::Damaged(format!("{name} is not a secret")));
        }
        let secret = name.trim_start_matches("vault/").trim_end_matches(".sealed");
        if name == SECOND_FACTOR && target.places.target(name).exists() {
            self.warnings.add(format!("{name} is kept unchanged: used codes stay used"));
        } else if !target.vault.opens(secret, &sealed) {
            self.warnings.add(format!("{name} was skipped: the key of this home's vault cannot decrypt it"));
        } else {
            unpack_file(&mut sealed.as_slice(), &target.rooms.staged(name), false)?;
            self.files.insert(name.to_owned());
        }
        Ok(())
    }
}

/// Tells how much was read.
struct Told<'a> {
    content: &'a mut dyn Read,
    progress: &'a Progress,
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.progress.add(read as u64).map_err(smuggled)?;
        Ok(read)
    }
}

/// Copies what is read.
struct Tee<'a, 'b> {
    content: &'a mut Told<'b>,
    copy: Box<dyn Write>,
}

impl Read for Tee<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.copy.write_all(&buffer[..read])?;
        Ok(read)
    }
}

/// Opens a rows file that was checked.
pub(super) fn open_rows(part: Part, path: &Path) -> Result<RowReader<File>, Error> {
    let file = File::open(path).map_err(io("read", path))?;
    RowReader::new(file).map_err(|error| Error::of_rows(part.entry(), error))
}
