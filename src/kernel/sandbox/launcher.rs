//! The daemon's binary as the launcher of commands: hidden first arguments, looked at before anything else.
//!
//! ```text
//! daemon --> agentsvc @supervise CAGE program args...             makes namespaces, watches, and kills what is left
//!              `-> agentsvc @init CAGE program args...            the first process of the namespaces: starts the program
//!              `-> agentsvc @enter CAGE program args...           where there are none: becomes the program
//! ```

use std::ffi::OsString;
use std::process::ExitCode;

use super::sandbox_spec::{NOT_CAGED, SandboxSpec, enter};
use super::supervise::supervise;

/// This binary, also when its file was replaced meanwhile.
pub(super) const SELF: &str = "/proc/self/exe";
/// First argument of the process that watches.
pub(super) const SUPERVISE: &str = "@supervise";
/// First argument of the process that becomes the command.
pub(super) const ENTER: &str = "@enter";
/// First argument of the process that is the first of its namespaces.
pub(super) const INIT: &str = "@init";

/// Keeps the allocator from taking memory ahead, which counts for the limits of the command; it does not see the variable.
pub(super) const SMALL_ARENA: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");

/// Does what a hidden first argument asks for; `None` when there is none and the program is to go on as usual.
pub fn intercept() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    let code = match first.to_str()? {
        SUPERVISE => arguments.next().map(|sandbox_spec| supervise(&sandbox_spec, arguments)),
        ENTER => enter_as_told(false, arguments),
        INIT => enter_as_told(true, arguments),
        _ => return None,
    };
    Some(ExitCode::from(code.unwrap_or(NOT_CAGED)))
}

fn enter_as_told(namespaces: bool, mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    let sandbox_spec: SandboxSpec = serde_json::from_str(arguments.next()?.to_str()?).ok()?;
    Some(enter(&sandbox_spec, namespaces, arguments))
}
