//! The file of `audit.heads_file`: signed heads of the audit trail, one to a line.
//!
//! A line is the time of the signature, a space and the signed checkpoint in hex. The line of a head with which an operator
//! accepted the trail ends with a space and a signature that says so, in hex: the heads before it are of a trail that was
//! given up. The file may be on another machine, so that each call of the system may hang: calls are made by a thread
//! that is left behind when it takes too long.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::parse_checkpoint;
use agentsvc_systems::kernel::record::unhex;
use crossbeam_channel::{Receiver, Sender, bounded};

use super::vault::Vault;

/// How long a line may take to be written.
const WRITE_WAIT: Duration = Duration::from_secs(2);
/// How long the file may take to be read.
const READ_WAIT: Duration = Duration::from_secs(20);
/// Bytes that are read in one go, from the end.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a line; longer ones are none.
const LINE_BYTES_MAX: usize = 1 << 10;

/// The file, used by one at a time.
pub(super) struct HeadsFile {
    path: Arc<PathBuf>,
    /// Holds one token while nobody uses the file.
    free: (Sender<()>, Receiver<()>),
}

impl HeadsFile {
    pub(super) fn new(path: PathBuf) -> Self {
        let free = bounded(1);
        // The channel is empty.
        let _ = free.0.try_send(());
        Self { path: path.into(), free }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, which ends with a line feed, and waits until it is on the disk.
    pub(super) fn append(&self, line: String) -> Result<()> {
        self.within(WRITE_WAIT, move |path| append(path, &line))
    }

    /// The head of the highest entry that `vault` signed since an operator accepted the trail last. None of a file that
    /// is not there.
    pub(super) fn highest(&self, vault: &Arc<Vault>) -> Result<Option<AuditCheckpoint>> {
        let vault = Arc::clone(vault);
        self.within(READ_WAIT, move |path| match open(OpenOptions::new().read(true), path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => highest(file?, &vault),
        })
    }

    /// What `job` gives, or a failure when it takes longer than `wait`. It may end later.
    fn within<T: Send + 'static>(
        &self,
        wait: Duration,
        job: impl FnOnce(&Path) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let late = |_| Error::new(ErrorKind::TimedOut, "the file system does not answer");
        self.free.1.recv_timeout(wait).map_err(late)?;
        let (path, free, (done, result)) = (Arc::clone(&self.path), self.free.0.clone(), bounded(1));
        let spawned = std::thread::Builder::new().name("audit-heads".to_owned()).spawn(move || {
            let given = job(&path);
            // Nobody else has put the token back; a result that nobody waits for any more is of no use.
            let _ = (free.try_send(()), done.send(given));
        });
        if let Err(error) = spawned {
            let _ = self.free.0.try_send(());
            return Err(error);
        }
        result.recv_timeout(wait).map_err(late)?
    }
}

/// Opens a regular file; anything else could take what is written, or never answer.
fn open(options: &mut OpenOptions, path: &Path) -> Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Error::other("it is not a regular file")) }
}

/// Appends a line. One that a crash has cut off is ended first.
fn append(path: &Path, line: &str) -> Result<()> {
    let mut file = open(OpenOptions::new().create(true).append(true).read(true).mode(0o600), path)?;
    let length = file.metadata()?.len();
    if length + line.len() as u64 > limit::AUDIT_HEADS_BYTES_MAX {
        let most = limit::AUDIT_HEADS_BYTES_MAX;
        return Err(Error::other(format!("the file has {most} bytes; move it away and keep it")));
    }
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let end = if last == *b"\n" { "" } else { "\n" };
    file.write_all(format!("{end}{line}").as_bytes())?;
    file.sync_all()
}

/// The head of the highest entry since the trail was accepted last.
///
/// An accepted line counts where it stands first: whoever can only append to the file could put a copy of an old one behind
/// newer heads, to have them forgotten.
fn highest(file: File, vault: &Vault) -> Result<Option<AuditCheckpoint>> {
    let mut best: Option<AuditCheckpoint> = None;
    // Accepted lines, from the end of the file on, with the best head from there on.
    let mut accepted: Vec<(Vec<u8>, Option<AuditCheckpoint>)> = Vec::new();
    lines_from_the_end(file, |line| {
        let Some((row, acceptance)) = parts(line) else { return };
        // Whose signature it has is only asked of a head that would be higher: there may be a million.
        if parse_checkpoint(&row, |_, _| true).map(|head| head.sequence) > best.map(|best| best.sequence) {
            best = vault.parse(&row).or(best);
        }
        if acceptance.is_some_and(|signature| vault.is_acceptance(&row, &signature)) {
            accepted.retain(|(of, _)| *of != row);
            accepted.push((row, best));
        }
    })?;
    Ok(accepted.into_iter().next().map_or(best, |(_, best)| best))
}

/// The signed checkpoint of a line, and what is said to accept it.
fn parts(line: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ').skip(1);
    let row = unhex(words.next()?.as_bytes())?;
    Some((row, words.next().and_then(|word| unhex(word.as_bytes()))))
}

/// Gives each line, the last one first.
fn lines_from_the_end(mut file: File, mut give: impl FnMut(&[u8])) -> Result<()> {
    let mut before = file.metadata()?.len().min(limit::AUDIT_HEADS_BYTES_MAX);
    // The line that `before` stands in, as far as it was read; too long a line keeps its end alone.
    let mut rest: Vec<u8> = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    while before > 0 {
        let length = CHUNK_BYTES.min(usize::try_from(before).unwrap_or(CHUNK_BYTES));
        before -= length as u64;
        file.seek(SeekFrom::Start(before))?;
        file.read_exact(&mut chunk[..length])?;
        let mut pieces = chunk[..length].rsplit(|byte| *byte == b'\n');
        let last = pieces.next().unwrap_or_default();
        rest.splice(0..0, last.iter().copied());
        for piece in pieces {
            give(&rest);
            rest.clear();
            rest.extend_from_slice(piece);
        }
        rest.drain(..rest.len().saturating_sub(LINE_BYTES_MAX));
    }
    give(&rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentsvc_components::Timestamp;
    use agentsvc_systems::kernel::record::hex;

    use super::*;

    fn head(sequence: u64) -> AuditCheckpoint {
        AuditCheckpoint { sequence, hash: [3; 32], previous: 0, first: 1, anchor: [0; 32], at: Timestamp(5) }
    }

    #[test]
    fn every_line_is_given_the_last_first_whatever_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let lines: Vec<String> = (0..3_000_usize).map(|n| format!("{n} {}", "x".repeat(n % 97))).collect();
        for end in ["", "\n"] {
            fs::write(&path, lines.join("\n") + end).unwrap();
            let mut given = Vec::new();
            lines_from_the_end(File::open(&path).unwrap(), |line| {
                given.push(String::from_utf8_lossy(line).into_owned())
            })
            .unwrap();
            given.reverse();
            given.retain(|line| !line.is_empty());
            assert_eq!(given, lines);
        }
        fs::write(&path, "a\n".to_owned() + &"y".repeat(300_000) + "\nb").unwrap();
        let mut given = Vec::new();
        lines_from_the_end(File::open(&path).unwrap(), |line| given.push(line.len())).unwrap();
        assert_eq!((given[0], given[2]), (1, 1));
        assert!(given[1] <= LINE_BYTES_MAX + CHUNK_BYTES, "{given:?}");
    }

    #[test]
    fn a_head_that_is_sent_once_more_is_not_the_highest() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Arc::new(Vault::open(dir.path()).unwrap());
        let heads = HeadsFile::new(dir.path().join("heads"));
        let line = |sequence: u64, is_accepted: bool| {
            let row = vault.sign(&head(sequence));
            let acceptance =
                if is_accepted { format!(" {}", hex(&vault.sign_acceptance(&row))) } else { String::new() };
            format!("at {}{acceptance}\n", hex(&row))
        };
        let highest = || heads.highest(&vault).unwrap().map(|head| head.sequence);
        assert_eq!(highest(), None, "a file that is not there");
        heads.append(line(20, false)).unwrap();
        heads.append(line(3, true)).unwrap();
        assert_eq!(highest(), Some(3), "what an operator accepted counts, not what is given up");
        for sequence in [4, 9] {
            heads.append(line(sequence, false)).unwrap();
        }
        for again in [line(4, false), line(3, true), line(3, true)] {
            heads.append(again).unwrap();
            assert_eq!(highest(), Some(9));
        }
        let forged = line(30, false).replacen('1', "2", 1);
        let of_others = format!("{} {}\n", line(2, false).trim_end(), hex(&[7; 64]));
        for not_ours in [forged, of_others, "nothing\n".to_owned(), "at 00\n".to_owned()] {
            heads.append(not_ours).unwrap();
            assert_eq!(highest(), Some(9));
        }
        heads.append(line(5, true)).unwrap();
        assert_eq!(highest(), Some(5));
    }

    #[test]
    fn a_file_that_does_not_answer_holds_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let heads = HeadsFile::new(dir.path().join("heads"));
        let (hold, held) = bounded::<()>(0);
        let late = heads.within(Duration::ZERO, move |_| held.recv().map_err(Error::other)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        let busy = heads.within(Duration::ZERO, |_| Ok(())).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::TimedOut, "one call at a time is left behind");
        drop(hold);
        heads.within(READ_WAIT, |_| Ok(())).unwrap();
    }

    #[test]
    fn only_a_regular_file_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let vault = Arc::new(Vault::open(dir.path()).unwrap());
        for path in [pipe, "/dev/full".into(), dir.path().to_owned()] {
            let heads = HeadsFile::new(path);
            assert!(heads.append("line\n".to_owned()).is_err() && heads.highest(&vault).is_err(), "{:?}", heads.path());
        }
    }
}
