//! Files and connections that the process may have open at once. Connections leave the store, files, calls and tools
//! their share: a store that cannot open a file has failed.

use agentsvc_components::kernel::limit;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The last descriptor that a program is given.
const STDERR: i32 = 2;

/// Lets the process have as many open as the system permits it to ask for, and gives how many of them may be
/// connections.
pub(crate) fn connections_max() -> usize {
    let most = connections_of(raise());
    if most < limit::CONNECTIONS_MAX {
        tracing::info!(connections = most, "the system's limit of open files limits the connections (LimitNOFILE)");
    }
    most
}

/// Closes everything but stdin, stdout and stderr: what this process inherited from the one that started it, such as a log or a
/// socket of a shell, would be open in its own programs, too, and the walls of a sandbox do not hold for what is open already.
/// To be called before anything is opened.
pub(crate) fn close_inherited() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > STDERR) {
        // The descriptor of the listing itself is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}

/// Raises the soft limit to the hard one; gives the limit in force, `None` where there is none.
fn raise() -> Option<u64> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current == limits.maximum {
        return limits.current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum }) {
        Ok(()) => limits.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            limits.current
        }
    }
}

/// How many of `files` may be connections.
fn connections_of(files: Option<u64>) -> usize {
    let Some(files) = files else { return limit::CONNECTIONS_MAX };
    let rest = files - limit::FILES_RESERVED.min(files / 2);
    usize::try_from(rest).unwrap_or(usize::MAX).clamp(1, limit::CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_their_share() {
        assert_eq!(connections_of(None), limit::CONNECTIONS_MAX);
        assert_eq!(connections_of(Some(1 << 20)), limit::CONNECTIONS_MAX);
        assert_eq!(connections_of(Some(4_096)), 3_072);
        assert_eq!(connections_of(Some(1_024)), 512);
        assert_eq!(connections_of(Some(0)), 1);
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise(), before.maximum);
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
