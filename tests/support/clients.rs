//! Programs that other people wrote, with which tests look at the daemon from outside.

use std::process::{Command, Stdio};

use super::routes::root;

/// True when tests that need such programs are switched off.
pub(crate) fn skipped() -> bool {
    std::env::var("AGENTSVC_SKIP_CLIENTS").is_ok_and(|value| value == "1")
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
        None => panic!("{advice} (or set AGENTSVC_SKIP_CLIENTS=1)"),
    }
}

/// A Python that has `package`.
#[track_caller]
pub(crate) fn python(package: &str) -> String {
    let venv = root().join("target/venv/bin/python").display().to_string();
    let given = std::env::var("AGENTSVC_PYTHON").unwrap_or_else(|_| "python3".into());
    let advice = format!("the Python package {package} is missing: pip install {package}");
    tool(&[given, venv, "python3".into()], &["-c", &format!("import {package}")], &advice)
}

/// The Python of an environment beside the one of the other packages, `target/venv-<name>` or what the variable
/// `AGENTSVC_PYTHON_<NAME>` names: for packages of which two versions are used.
#[track_caller]
pub(crate) fn python_of(name: &str, package: &str, install: &str) -> String {
    let venv = root().join(format!("target/venv-{name}/bin/python")).display().to_string();
    let given = std::env::var(format!("AGENTSVC_PYTHON_{}", name.to_uppercase())).unwrap_or_else(|_| venv.clone());
    let advice = format!("the environment target/venv-{name} lacks {package}: {install}");
    tool(&[given, venv], &["-c", &format!("import {package}")], &advice)
}
