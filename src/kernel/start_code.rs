//! The program's own code and constants in memory: most of what a daemon without agents occupies, and most of that is
//! code that only a start runs.
//!
//! The system maps a file's pages as they are used, 64 KiB around each at once, and keeps them mapped. Once a start is
//! over they are handed back; what runs again comes out of the page cache, without a read of the disk unless memory is
//! short.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::mm::{Advice, madvise};
use tokio::runtime::Handle;

/// How long after a start its code is handed back: the first beats and timers are over then.
const AFTER: Duration = Duration::from_secs(1);

/// Hands the code of the start back once it is over.
pub(crate) fn hand_back(runtime: &Handle) {
    runtime.spawn(async {
        tokio::time::sleep(AFTER).await;
        match now() {
            Ok(bytes) => tracing::debug!(bytes, "released the memory of startup code"),
            Err(error) => tracing::debug!(%error, "the memory of startup code could not be released"),
        }
    });
}

/// Hands back all pages that are a plain copy of a file; gives the bytes of the mappings.
fn now() -> std::io::Result<usize> {
    let own = fs::read_link("/proc/self/exe")?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    maps.lines().filter_map(|line| plain(line, &own)).try_fold(0, |sum, (start, length)| {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is a private mapping of a file that nobody may write to, and to which the loader wrote nothing,
        // so that its pages are the file's: they are mapped again, with the same bytes, when they are next touched.
        #[expect(unsafe_code, reason = "the one call that hands pages back")]
        unsafe { madvise(start, length, Advice::LinuxDontNeed) }?;
        Ok(sum + length)
    })
}

/// Start and length of a line of `/proc/self/maps` when it is code of any file, or the constants of the program `own`,
/// which lie at the file's beginning. The loader writes addresses into neither.
fn plain(line: &str, own: &Path) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, may, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let path = fields.nth(2).filter(|path| path.starts_with('/'))?;
    let is_constants = may == "r--p" && offset.bytes().all(|byte| byte == b'0') && Path::new(path) == own;
    if may != "r-xp" && !is_constants {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_constants_are_handed_back_and_nothing_else() {
        let own = Path::new("/bin/own");
        let of = |line| plain(line, own);
        assert_eq!(of("1000-3000 r-xp 00002000 fe:00 7   /bin/own"), Some((0x1000, 0x2000)));
        assert_eq!(of("1000-3000 r-xp 00002000 fe:00 7   /lib/libc.so.6"), Some((0x1000, 0x2000)));
        assert_eq!(of("0-1000 r--p 00000000 fe:00 7   /bin/own"), Some((0, 0x1000)));
        for other in [
            "0-1000 r--p 00000000 fe:00 7   /lib/libc.so.6",
            "0-1000 r--p 00001000 fe:00 7   /bin/own",
            "0-1000 rw-p 00000000 fe:00 7   /bin/own",
            "0-1000 r-xs 00000000 fe:00 7   /bin/own",
            "0-1000 r-xp 00000000 00:00 0   [vdso]",
            "0-1000 r-xp 00000000 00:00 0",
            "1000-0 r-xp 00000000 fe:00 7   /bin/own",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_program_runs_on_without_its_pages() {
        let resident = || -> usize {
            let status = fs::read_to_string("/proc/self/status").expect("it can be read");
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).expect("it is told");
            line.trim().trim_end_matches(" kB").parse().expect("a number")
        };
        // Tests beside this one run code, too, and map it again.
        let is_less = (0..100).any(|_| {
            let before = resident();
            assert!(now().expect("pages can be handed back") > 1 << 20);
            resident() < before
        });
        assert!(is_less);
    }
}
