//! The home directory, its vault, and what a restore may have left of it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{Finding, Keeper, Patient};
use crate::kernel::vault::{KeySource, Vault};

/// The home is there, ours, and nobody else's.
pub(super) fn is_usable(patient: &Patient) -> Finding {
    let root = patient.home.root();
    let shown = root.display();
    let found = match fs::metadata(root) {
        Ok(found) if found.is_dir() => found,
        Ok(_) => return Finding::fail(format!("{shown} is not a directory"), "name another home with --home"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::warn(format!("{shown} is not there yet"), "`agentsvc init` or `agentsvc start` makes it");
        }
        Err(error) => {
            return Finding::fail(format!("cannot look at {shown}: {error}"), "name another home with --home");
        }
    };
    if let Keeper::Unknown(error) = &patient.keeper {
        return Finding::fail(error.clone(), format!("give the user of the daemon {shown} and what is in it"));
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user && user != 0 {
        let message = format!("{shown} belongs to user {}, not to {user}", found.uid());
        return Finding::fail(message, format!("chown -R {user} {shown}, or run as its owner"));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Finding::warn(format!("others may enter {shown} (mode {mode:o})"), format!("chmod 700 {shown}"));
    }
    Finding::pass(format!("{shown}, mode {mode:o}"))
}

/// No restore of a backup was decided and is not done.
pub(super) fn no_restore_is_cut_off(patient: &Patient) -> Finding {
    if !crate::backup::place::is_decided(&patient.home) {
        return Finding::pass("no restore was cut off");
    }
    if patient.is_running() {
        return Finding::pass("a backup is being restored");
    }
    Finding::fail(
        "the restore of a backup was cut off",
        "`agentsvc start` completes it; when it cannot, `agentsvc doctor --repair` takes it back",
    )
}

/// Every secret of the vault opens with its key.
pub(super) fn vault_opens(patient: &Patient) -> Finding {
    let vault = Vault::new(patient.home.vault_dir(), KeySource::from_environment());
    match vault.check() {
        Ok(0) => Finding::pass("the vault holds no secrets"),
        Ok(1) => Finding::pass("the vault's secret opens"),
        Ok(secrets) => Finding::pass(format!("{secrets} secrets open")),
        Err(error) => Finding::fail(
            error.to_string(),
            "put back the key or the file from a backup; as a last resort move the vault's *.sealed files away, which \
             loses the secrets in them",
        ),
    }
}
