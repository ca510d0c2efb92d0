//! The file and what it leads to.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use agentsvc_components::kernel::limit;

use super::{Finding, Patient};
use crate::config::key_guard;
use crate::kernel::config;
use crate::kernel::vault;
use crate::kernel::vault::KeySource;

/// The file parses, every key is known, every value is of its type and in its range.
pub(super) fn parses(patient: &Patient) -> Finding {
    let path = patient.home.config_file();
    match &patient.config {
        Ok(_) if !path.exists() => Finding::pass(format!("{} does not exist; the defaults apply", path.display())),
        Ok(loaded) if loaded.warnings.is_empty() => Finding::pass(format!("{} is valid", path.display())),
        Ok(loaded) => {
            let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            Finding::warn(warnings.join("\n"), "remove the keys without effect, or keep them for a later release")
        }
        Err(error @ config::Error::Read { .. }) => {
            Finding::fail(error.to_string(), "make the file readable by the daemon's user")
        }
        Err(error) => Finding::fail(error.to_string(), "correct the lines above; until then the daemon does not start"),
    }
}

/// Nobody else reads the file: the API's key stands in it.
pub(super) fn is_private(patient: &Patient) -> Finding {
    let path = patient.home.config_file();
    let Ok(found) = fs::metadata(&path) else { return Finding::pass("config.toml does not exist") };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 || !patient.config().api_key.is_set() {
        return Finding::pass(format!("mode {mode:o}"));
    }
    Finding::warn(
        format!("{} contains api_key and is readable by other users (mode {mode:o})", path.display()),
        format!("chmod 600 {}, then replace the key", path.display()),
    )
}

/// The key of the vault, when the environment gives one, is the base64 of 32 bytes.
pub(super) fn vault_key(_: &Patient) -> Finding {
    let source = KeySource::from_environment();
    match source.check() {
        Ok(true) => Finding::pass(format!("{} is set to 32 bytes in base64", vault::VARIABLE)),
        Ok(false) => Finding::pass(format!("{} is not set; the key is in a file of the vault", vault::VARIABLE)),
        Err(error) => Finding::fail(
            error.to_string(),
            format!("set {} to the output of `openssl rand -base64 32`, or unset it", vault::VARIABLE),
        ),
    }
}

/// An API that other machines reach has a key.
pub(super) fn api_key(patient: &Patient) -> Finding {
    if let Ok(loaded) = &patient.config
        && let Err(error) = key_guard::check(&patient.home, &loaded.config)
    {
        return Finding::fail(error.to_string(), "do one of these; until then the daemon does not start");
    }
    let config = patient.config();
    let local = config.api_listen.ip().is_loopback();
    match (config.api_key.is_set(), local) {
        (true, _) if config.api_key.expose().len() < limit::API_KEY_BYTES_MIN => Finding::warn(
            format!("api_key has fewer than {} characters", limit::API_KEY_BYTES_MIN),
            "delete api_key from config.toml, run `agentsvc init --key`, and restart",
        ),
        (true, _) => Finding::pass("api_key is set"),
        (false, true) => Finding::pass("no api_key; any program on this machine can use the API"),
        (false, false) => Finding::fail(
            format!("api_listen {} accepts other machines, but api_key is not set", config.api_listen),
            "run `agentsvc init --key`, or listen on 127.0.0.1",
        ),
    }
}
