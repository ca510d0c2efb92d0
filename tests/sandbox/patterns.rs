//! Patterns of `[capabilities] shell`: what they grant holds for what a program starts, too.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::Harness;

const FULL: &str = "[exec_policy]\nmode = \"full\"\n";

/// Runs any binary that can be read.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Runs a program with arguments that have no spaces.
#[track_caller]
fn run(harness: &Harness, line: &str) -> String {
    harness.call("shell_exec", &json!({ "argv": line.split(' ').collect::<Vec<_>>() }))
}

#[test]
fn patterns_with_arguments_hold_for_what_a_program_starts() {
    let harness = Harness::new(FULL, "shell = [\"env\", \"find *\", \"xargs *\", \"touch allowed*\", \"echo\"]\n");
    let made = |name: &str| harness.workspace().join(name).exists();
    assert!(run(&harness, "touch allowed-1").starts_with("Exit code: 0") && made("allowed-1"));
    assert!(run(&harness, "touch other").contains("is not allowed to run \"touch\""));
    assert!(run(&harness, "env echo any arguments").contains("any arguments\n"));
    if harness.landlock().is_none() {
        return;
    }
    for line in [
        "env touch other",
        "env -S touch other",
        "env xargs touch other",
        "find allowed-1 -exec touch other ;",
        "find allowed-1 -execdir touch other ;",
        "find allowed-1 -exec env touch other ;",
        "xargs -a allowed-1 touch other",
        // What its own pattern would allow is not started by others either.
        "env touch allowed-2",
    ] {
        let said = run(&harness, line);
        assert!(!made("other") && !made("allowed-2"), "{line}: {said}");
    }
    let starts = run(&harness, "find allowed-1 -exec echo started {} ;");
    assert!(!starts.contains("started allowed-1") && starts.contains("Permission denied"), "{starts}");
    assert!(run(&harness, "find allowed-1 -name allowed*").contains("allowed-1\n"));
}

#[test]
fn git_starts_nothing_that_is_not_granted() {
    // The last is a script of a shell on most machines.
    let harness = Harness::new(FULL, "shell = [\"git *\", \"find *\", \"egrep\"]\n");
    if run(&harness, "git init .").contains("does not exist") || harness.landlock().is_none() {
        return eprintln!("skipped: no git, or no Landlock");
    }
    assert!(harness.workspace().join(".git").is_dir());
    for words in [
        &["git", "-c", "alias.x=!touch escaped", "x"][..],
        &["git", "-c", "core.editor=touch escaped", "config", "--edit"],
        &["git", "-c", "core.sshCommand=touch escaped;", "ls-remote", "host:x"],
        &["find", ".git", "-maxdepth", "0", "-exec", "git", "init", "escaped", ";"],
        &["find", ".git", "-maxdepth", "0", "-exec", LOADER, "/usr/lib/git-core/git", "init", "escaped", ";"],
    ] {
        let said = harness.call("shell_exec", &json!({ "argv": words }));
        assert!(!harness.workspace().join("escaped").exists(), "{words:?}: {said}");
    }
}

#[test]
fn the_interpreter_of_a_script_runs_for_no_other_program() {
    let programs = tempfile::tempdir().unwrap();
    let script = programs.path().join("own-script");
    fs::write(&script, "#!/bin/sh\necho from the script $1\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{FULL}path = [\"/usr/bin\", \"/bin\", \"{}\"]\n", programs.path().display());
    let harness = Harness::new(&path, "shell = [\"env\", \"own-script\"]\n");
    let said = run(&harness, "own-script 1");
    assert!(said.contains("from the script 1\n"), "{said}");
    if harness.landlock().is_none() {
        return;
    }
    for line in ["env sh -c echo", "env /bin/sh -c echo", "env own-script"] {
        assert!(!run(&harness, line).starts_with("Exit code: 0"), "{line}");
    }
    let with_shell = Harness::new(&path, "shell = [\"env\", \"own-script\", \"sh\"]\n");
    assert!(run(&with_shell, "env own-script 2").contains("from the script 2\n"));
}
