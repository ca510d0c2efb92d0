//! The home directory, its vault, and what a restore may have left of it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{Finding, Patient, StoreOwner};
use crate::kernel::sandbox::{damaged_marks, marks_are_kept};
use crate::kernel::vault::{KeySource, Vault};
use crate::upload::record;

/// Damaged uploads and workspaces that are named.
const NAMES_SHOWN: usize = 10;

/// The home is there, ours, and nobody else's.
pub(super) fn is_usable(patient: &Patient) -> Finding {
    let root = patient.home.root();
    let shown = root.display();
    let found = match fs::metadata(root) {
        Ok(found) if found.is_dir() => found,
        Ok(_) => return Finding::fail(format!("{shown} is not a directory"), "choose another home with --home"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::warn(
                format!("{shown} does not exist yet"),
                "run `agentsvc init` or `agentsvc start` to \
                create it",
            );
        }
        Err(error) => {
            return Finding::fail(format!("cannot look at {shown}: {error}"), "choose another home with --home");
        }
    };
    if let StoreOwner::Unknown(error) = &patient.keeper {
        return Finding::fail(
            error.clone(),
            format!(
                "change the owner of {shown} and its contents to the daemon's \
            user"
            ),
        );
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user && user != 0 {
        let message = format!("{shown} belongs to user {}, not to {user}", found.uid());
        return Finding::fail(message, format!("chown -R {user} {shown}, or run as its owner"));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Finding::warn(
            format!("{shown} is accessible to other users (mode {mode:o})"),
            format!("chmod 700 {shown}"),
        );
    }
    Finding::pass(format!("{shown}, mode {mode:o}"))
}

/// No restore of a backup was decided and is not done.
pub(super) fn no_restore_is_cut_off(patient: &Patient) -> Finding {
    if !crate::backup::place::is_decided(&patient.home) {
        return Finding::pass("no interrupted restore");
    }
    if patient.is_running() {
        return Finding::pass("a restore is running");
    }
    Finding::fail(
        "a restore was interrupted",
        "run `agentsvc start` to complete it; if that fails, run `agentsvc doctor --repair` to roll it back",
    )
}

/// Every secret of the vault opens with its key.
pub(super) fn vault_opens(patient: &Patient) -> Finding {
    let vault = Vault::new(patient.home.vault_dir(), KeySource::from_environment());
    match vault.check() {
        Ok(0) => Finding::pass("the vault is empty"),
        Ok(1) => Finding::pass("the secret in the vault can be decrypted"),
        Ok(secrets) => Finding::pass(format!("{secrets} secrets in the vault can be decrypted")),
        Err(error) => Finding::fail(
            error.to_string(),
            "restore the key or the file from a backup; as a last resort, move the *.sealed files out of the vault, \
             which loses their secrets",
        ),
    }
}

/// It is known which agent each workspace belongs to.
pub(super) fn workspaces_have_owners(patient: &Patient) -> Finding {
    let root = patient.home.workspaces_dir();
    if let Ok(false) = marks_are_kept(&root) {
        return no_marks();
    }
    match damaged_marks(&root) {
        Ok(damaged) if damaged.is_empty() => Finding::pass("the owner of each workspace is known"),
        Ok(damaged) => Finding::warn(
            format!("the files that name the owners of {} workspaces are damaged: {}", damaged.len(), list(&damaged)),
            "delete workspaces/.owners/<name>: the daemon writes it again, or gives the workspace to the agent of that name; \
             to give it to another agent, write the id of that agent into the file",
        ),
        Err(error) => {
            Finding::warn(format!("the workspaces cannot be read: {error}"), "look at the directory workspaces")
        }
    }
}

/// What is said where the file system gives all files permissions by which others may write them.
fn no_marks() -> Finding {
    Finding::warn(
        "the file system of the workspaces does not keep permissions: all users may write every file, so the files that name the \
         owners of workspaces do not count",
        "use a file system that keeps permissions, or mount this one so that only the daemon's user may write (for CIFS: uid=, \
         file_mode=0600 and dir_mode=0700)",
    )
}

/// The first of some names, and how many more there are.
fn list(names: &[String]) -> String {
    let (shown, more) = (names.iter().take(NAMES_SHOWN), names.len().saturating_sub(NAMES_SHOWN));
    let names = shown.map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

/// Every upload is what came in.
pub(super) fn uploads_are_whole(patient: &Patient) -> Finding {
    match record::check_all(&patient.home.uploads_dir()) {
        Ok(record::Checked { count, damaged }) if damaged.is_empty() => {
            Finding::pass(format!("{count} uploads match their checksums"))
        }
        Ok(record::Checked { count, damaged }) => Finding::warn(
            format!("{} of {count} uploads are damaged: {}", damaged.len(), list(&damaged)),
            "restore them from a backup, or let their senders upload them again",
        ),
        Err(error) => Finding::warn(format!("the uploads cannot be read: {error}"), "look at the directory uploads"),
    }
}
