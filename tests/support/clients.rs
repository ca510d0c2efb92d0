//! Programs that other people wrote, with which tests look at the daemon from outside.
//!
//! `tests/set_up.sh` installs them when the first test needs them. Where it cannot, those tests are skipped with a notice, or
//! fail with `AGENTSVC_CLIENTS=required`. `AGENTSVC_CLIENTS=skip` skips them at once.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::routes::root;

/// Where the programs are installed.
pub(crate) fn installed() -> PathBuf {
    std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), |target| root().join(target))
}

/// Whether `tests/set_up.sh` has installed all, which it is asked once for each test program.
fn is_set_up() -> bool {
    static SET_UP: OnceLock<bool> = OnceLock::new();
    *SET_UP.get_or_init(|| {
        let status = Command::new(root().join("tests/set_up.sh")).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let is_set_up = status.is_ok_and(|status| status.success());
        if !is_set_up {
            // Straight to the terminal: what a test prints is shown only where it fails.
            let notice = "\n*** SKIPPED: the tests that need other programs (see above for what could not be installed). ***\n\
                          *** Run tests/set_up.sh to try again; AGENTSVC_CLIENTS=required makes them fail instead. ***\n\n";
            let _ = io::stderr().write_all(notice.as_bytes());
        }
        is_set_up
    })
}

/// True when tests that need such programs are skipped.
#[track_caller]
pub(crate) fn skipped() -> bool {
    let wanted = std::env::var("AGENTSVC_CLIENTS").unwrap_or_default();
    let is_skipped = wanted == "skip" || !is_set_up();
    assert!(!is_skipped || wanted != "required", "tests/set_up.sh could not install what this test needs");
    is_skipped
}

/// The first of `programs` that runs; panics with `advice`.
#[track_caller]
pub(crate) fn tool(programs: &[String], probe: &[&str], advice: &str) -> String {
    let works = |program: &&String| {
        let mut command = Command::new(program);
        command.args(probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match programs.iter().find(works) {
        Some(program) => program.clone(),
        None => panic!("{advice} (or set AGENTSVC_CLIENTS=skip)"),
    }
}

/// Whether there is Node; where there is none, what needs it is not tested, and a line says so. With `AGENTSVC_CLIENTS=required`
/// there must be one.
#[track_caller]
pub(crate) fn has_node(what: &str) -> bool {
    let version = Command::new("node").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let has_node = version.is_ok_and(|status| status.success());
    if !has_node {
        assert!(std::env::var("AGENTSVC_CLIENTS").as_deref() != Ok("required"), "there is no Node for {what}");
        eprintln!("not tested: there is no Node for {what}");
    }
    has_node
}

/// A Python that has `package`.
#[track_caller]
pub(crate) fn python(package: &str) -> String {
    python_in("venv", package)
}

/// The Python of the environment `venv-<name>`, which has `package`: for packages of which two versions are used.
#[track_caller]
pub(crate) fn python_of(name: &str, package: &str) -> String {
    python_in(&format!("venv-{name}"), package)
}

#[track_caller]
fn python_in(environment: &str, package: &str) -> String {
    let python = installed().join(environment).join("bin/python").display().to_string();
    let advice = format!("{environment} lacks the Python package {package}: run tests/set_up.sh");
    tool(&[python], &["-c", &format!("import {package}")], &advice)
}
