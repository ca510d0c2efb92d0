//! The file and what it leads to.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Finding, Patient};
use crate::kernel::config;
use crate::kernel::vault;
use crate::kernel::vault::KeySource;

/// The file parses, every key is known, every value is of its type and in its range.
pub(super) fn parses(patient: &Patient) -> Finding {
    let path = patient.home.config_file();
    match &patient.config {
        Ok(_) if !path.exists() => Finding::pass(format!("{} is not there: the defaults hold", path.display())),
        Ok(loaded) if loaded.warnings.is_empty() => Finding::pass(format!("{} is valid", path.display())),
        Ok(loaded) => {
            let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            Finding::warn(warnings.join("\n"), "remove what has no effect, or leave it for a later release")
        }
        Err(error @ config::Error::Read { .. }) => {
            Finding::fail(error.to_string(), "make the file readable for the user that runs the daemon")
        }
        Err(error) => Finding::fail(error.to_string(), "correct the lines that are named; the daemon does not start"),
    }
}

/// Nobody else reads the file: the API's key stands in it.
pub(super) fn is_private(patient: &Patient) -> Finding {
    let path = patient.home.config_file();
    let Ok(found) = fs::metadata(&path) else { return Finding::pass("there is no file that others could read") };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 || !patient.config().api_key.is_set() {
        return Finding::pass(format!("mode {mode:o}"));
    }
    Finding::warn(
        format!("{} holds api_key and others may read it (mode {mode:o})", path.display()),
        format!("chmod 600 {}, and set another key", path.display()),
    )
}

/// The key of the vault, when the environment gives one, is the base64 of 32 bytes.
pub(super) fn vault_key(_: &Patient) -> Finding {
    let source = KeySource::from_environment();
    match source.check() {
        Ok(true) => Finding::pass(format!("{} holds the base64 of 32 bytes", vault::VARIABLE)),
        Ok(false) => Finding::pass(format!("{} is not set: the key is in a file of the vault", vault::VARIABLE)),
        Err(error) => Finding::fail(
            error.to_string(),
            format!("set {} to what `openssl rand -base64 32` gives, or unset it", vault::VARIABLE),
        ),
    }
}

/// An API that other machines reach has a key.
pub(super) fn api_key(patient: &Patient) -> Finding {
    let config = patient.config();
    let local = config.api_listen.ip().is_loopback();
    match (config.api_key.is_set(), local) {
        (true, _) => Finding::pass("api_key is set"),
        (false, true) => Finding::pass("no api_key: only programs of this machine reach the API, and all of them"),
        (false, false) => Finding::fail(
            format!("api_listen {} is open to other machines and there is no api_key", config.api_listen),
            "set api_key, or listen on 127.0.0.1",
        ),
    }
}
