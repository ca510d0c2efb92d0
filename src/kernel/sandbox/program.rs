//! Which program a call may run: the policy, the manifest and the file that the name leads to.
//!
//! Nothing is read out of a command line. Where not everything may run, a call names one program and its arguments; the
//! file is found here, in the directories of the configuration. What that program starts is for the kernel to refuse, which
//! knows files and no arguments: a program that is granted by its name may start others that are, and one that is granted with
//! certain arguments may start nothing.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::limit::{COMMAND_BYTES_MAX, COMMAND_WORDS_MAX, PROGRAMS_MAX};
use agentsvc_systems::kernel::glob;

use crate::kernel::disk;
use crate::kernel::sandbox::config::{ExecMode, ExecPolicy};

/// The shell of command lines.
const SHELL: &str = "/bin/sh";
/// Bytes of a program that are looked at for what runs it.
const HEAD_BYTES: usize = 4 << 10;
/// What a script begins with.
const SCRIPT: &[u8] = b"#!";
/// How many interpreters may stand one behind the other.
const INTERPRETERS_MAX: usize = 4;

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A command line for the shell.
    Line(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

/// What is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The program's file and its arguments.
    pub(super) words: Vec<OsString>,
    /// The only files that may be run; `None`: all that can be read.
    pub(super) programs: Option<Vec<PathBuf>>,
    /// The program may start no other, nor itself again.
    pub(super) alone: bool,
}

/// Decides. `granted` are the manifest's patterns (`[capabilities] shell`). Blocks on the disk.
pub(super) fn plan(policy: &ExecPolicy, granted: &[Box<str>], asked: &Asked) -> Result<Plan, String> {
    check_size(asked)?;
    if policy.mode == ExecMode::Deny {
        return Err("Commands are disabled on this machine ([exec_policy] mode is \"deny\").".to_owned());
    }
    let everything = policy.mode == ExecMode::Full && granted.iter().any(|pattern| &**pattern == "*");
    let words = match asked {
        Asked::Line(line) if everything => vec![SHELL.to_owned(), "-c".to_owned(), line.clone()],
        Asked::Line(_) => return Err(no_shell(policy)),
        Asked::Words(words) => words.clone(),
    };
    let name = words.first().filter(|name| !name.is_empty()).ok_or("`argv` needs the name of a program.")?;
    let file = if everything && name.contains('/') {
        PathBuf::from(name)
    } else {
        check_name(policy, granted, name, &words)?;
        find(policy, name).ok_or_else(|| format!("Program {name:?} does not exist on this machine."))?
    };
    // A script is started by what runs it.
    let alone = !everything && !is_named(granted, name) && !head(&file).starts_with(SCRIPT);
    let programs = if everything { None } else { Some(programs(policy, granted, &file, alone)?) };
    let words = std::iter::once(file.into_os_string()).chain(words[1..].iter().map(OsString::from)).collect();
    Ok(Plan { words, programs, alone })
}

fn check_size(asked: &Asked) -> Result<(), String> {
    let words = match asked {
        Asked::Line(line) => std::slice::from_ref(line),
        Asked::Words(words) => words,
    };
    let bytes: usize = words.iter().map(|word| word.len() + 1).sum();
    if bytes > COMMAND_BYTES_MAX || words.len() > COMMAND_WORDS_MAX {
        return Err(format!("A command can have at most {COMMAND_BYTES_MAX} bytes and {COMMAND_WORDS_MAX} words."));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("A command cannot contain the character NUL.".to_owned());
    }
    Ok(())
}

fn no_shell(policy: &ExecPolicy) -> String {
    let why = match policy.mode {
        ExecMode::Full => "This agent is limited to some programs, so shell command lines are not available.",
        _ => "This machine only runs programs of an allowlist, so shell command lines are not available.",
    };
    format!("{why} Use `argv` with the program and its arguments, such as [\"ls\", \"-l\"].")
}

/// May the program of this name run?
fn check_name(policy: &ExecPolicy, granted: &[Box<str>], name: &str, words: &[String]) -> Result<(), String> {
    if name.contains('/') {
        return Err(format!(
            "{name:?} is a path; use a program name, such as \"ls\". Programs are searched in the system's directories."
        ));
    }
    if policy.mode == ExecMode::Allowlist && !policy.allowed_commands.iter().any(|pattern| glob::matches(pattern, name))
    {
        let list: Vec<&str> = policy.allowed_commands.iter().map(AsRef::as_ref).collect();
        let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        return Err(format!("This machine does not allow agents to run {name:?}. Allowed programs: {list}."));
    }
    let joined = words.join(" ");
    let grants = |pattern: &str| glob::matches(pattern, if has_arguments(pattern) { &joined } else { name });
    if granted.iter().any(|pattern| grants(pattern)) {
        return Ok(());
    }
    Err(format!("This agent is not allowed to run {name:?}. Its manifest grants: {}.", granted.join(", ")))
}

/// A pattern with a space is for the program and its arguments, joined by spaces.
fn has_arguments(pattern: &str) -> bool {
    pattern.contains(' ')
}

/// Is the program granted with any arguments?
fn is_named(granted: &[Box<str>], name: &str) -> bool {
    granted.iter().any(|pattern| !has_arguments(pattern) && glob::matches(pattern, name))
}

/// The program's file, its links followed: what the kernel is told is the file itself.
pub(super) fn find(policy: &ExecPolicy, name: &str) -> Option<PathBuf> {
    // The name stays what it is: programs with many names look at it.
    policy.path.iter().map(|directory| directory.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Every file that may be run in a call of `program`: it and what runs it and, unless it is `alone`, the programs that both
/// the policy and the manifest name. An interpreter of these is not among them unless it is named itself: who may start
/// it can have it do anything.
fn programs(policy: &ExecPolicy, granted: &[Box<str>], program: &Path, alone: bool) -> Result<Vec<PathBuf>, String> {
    let allowed = |name: &str| {
        let listed =
            policy.mode == ExecMode::Full || policy.allowed_commands.iter().any(|pattern| glob::matches(pattern, name));
        listed && is_named(granted, name)
    };
    let mut found = Vec::new();
    add(&mut found, policy, program, INTERPRETERS_MAX);
    for directory in policy.path.iter().filter(|_| !alone) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(allowed) && is_program(&entry.path()) {
                add(&mut found, policy, &entry.path(), 0);
            }
            if found.len() > PROGRAMS_MAX {
                return Err(format!(
                    "The allowlists match more than {PROGRAMS_MAX} programs; the operator must narrow them or set \
                     [exec_policy] mode = \"full\"."
                ));
            }
        }
    }
    Ok(found)
}

/// Adds a file and what runs it: the loader of a binary, and the interpreters of a script, as many as there may be.
fn add(found: &mut Vec<PathBuf>, policy: &ExecPolicy, file: &Path, interpreters: usize) {
    let Ok(real) = file.canonicalize() else { return };
    // A name that leads there by links must be there, too.
    if file != real && !found.iter().any(|found| found == file) {
        found.push(file.to_owned());
    }
    if found.contains(&real) {
        return;
    }
    let head = head(&real);
    found.push(real);
    let loader = loader(&head).and_then(|loader| loader.canonicalize().ok());
    if let Some(loader) = loader.filter(|loader| !found.contains(loader)) {
        found.push(loader);
    }
    if interpreters > 0 {
        let named = named_interpreters(policy, &head);
        named.iter().for_each(|interpreter| add(found, policy, interpreter, interpreters - 1));
    }
}

/// The beginning of a file; empty when it cannot be read.
fn head(file: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let read = disk::open(file).and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head));
    if read.is_ok() { head } else { Vec::new() }
}

/// The interpreter that a script names in its first line, and the one that `env` finds for it.
fn named_interpreters(policy: &ExecPolicy, head: &[u8]) -> Vec<PathBuf> {
    let Some(line) = head.strip_prefix(SCRIPT) else { return Vec::new() };
    let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    let mut words = line.split_whitespace();
    let runner = words.next().map(PathBuf::from);
    let by_name = runner.as_ref().is_some_and(|runner| runner.ends_with("env"));
    let named = words.find(|word| by_name && !word.starts_with('-')).and_then(|name| find(policy, name));
    runner.into_iter().chain(named).collect()
}

/// The loader that a binary names: its path stands near the beginning of the file, between zeros.
fn loader(head: &[u8]) -> Option<PathBuf> {
    let mut texts = head.strip_prefix(b"\x7fELF")?.split(|byte| *byte == 0);
    let loader = texts.find(|text| {
        text.starts_with(b"/") && text.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"ld"))
    });
    loader.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Asked, plan};
    use crate::kernel::sandbox::config::{ExecMode, ExecPolicy};

    fn policy(mode: ExecMode, allowed: &[&str]) -> ExecPolicy {
        ExecPolicy { mode, allowed_commands: boxed(allowed), ..ExecPolicy::default() }
    }

    fn boxed(list: &[&str]) -> Vec<Box<str>> {
        list.iter().map(|text| Box::from(*text)).collect()
    }

    fn words(words: &[&str]) -> Asked {
        Asked::Words(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The refusal, or the programs that may be run.
    fn decide(policy: &ExecPolicy, granted: &[&str], asked: &Asked) -> Result<Option<usize>, String> {
        plan(policy, &boxed(granted), asked).map(|plan| plan.programs.map(|programs| programs.len()))
    }

    #[test]
    fn full_runs_what_the_manifest_grants() {
        let full = policy(ExecMode::Full, &[]);
        let line = Asked::Line("ls | wc".to_owned());
        assert_eq!(decide(&full, &["*"], &line), Ok(None));
        assert_eq!(decide(&full, &["*"], &words(&["./own.sh"])), Ok(None));
        assert!(decide(&full, &["ls"], &line).unwrap_err().contains("Use `argv`"));
        assert!(decide(&full, &["ls"], &words(&["ls", "-l"])).unwrap().is_some_and(|count| count >= 1));
        assert!(
            decide(&full, &["ls"], &words(&["rm"]))
                .unwrap_err()
                .contains("is not allowed to run \"rm\". Its manifest grants: ls.")
        );
        assert!(decide(&full, &["ls *"], &words(&["ls", "-l"])).is_ok());
        assert!(decide(&full, &["ls *"], &words(&["ls"])).is_err());
        assert!(decide(&full, &["ls"], &words(&["./ls"])).unwrap_err().contains("is a path"));
        assert!(
            decide(&full, &["*"], &words(&["no-such-program"])).unwrap_err().contains("does not exist on this machine")
        );
    }

    #[test]
    fn an_allowlist_takes_both_grants_and_no_shell() {
        let listed = policy(ExecMode::Allowlist, &["ls", "cat"]);
        assert!(decide(&listed, &["*"], &words(&["ls"])).is_ok());
        assert!(decide(&listed, &["cat"], &words(&["ls"])).unwrap_err().contains("Its manifest grants: cat"));
        assert!(decide(&listed, &["*"], &words(&["sh"])).unwrap_err().contains("Allowed programs: ls, cat."));
        for trick in ["ls; sh", "ls sh", "../bin/sh", "/bin/ls", "l\ns", ""] {
            assert!(decide(&listed, &["*"], &words(&[trick])).is_err(), "{trick}");
        }
        assert!(decide(&listed, &["*"], &Asked::Line("ls".to_owned())).unwrap_err().contains("shell command lines"));
        let none = policy(ExecMode::Allowlist, &[]);
        assert!(decide(&none, &["*"], &words(&["ls"])).unwrap_err().contains("Allowed programs: none."));
        let deny = policy(ExecMode::Deny, &["*"]);
        assert!(decide(&deny, &["*"], &words(&["ls"])).unwrap_err().contains("disabled"));
    }

    #[test]
    fn the_files_that_may_run_are_the_program_and_its_loader() {
        let made = plan(&policy(ExecMode::Allowlist, &["ls"]), &boxed(&["*"]), &words(&["ls", "x"])).unwrap();
        assert!(Path::new(&made.words[0]).ends_with("ls") && made.words[1] == "x");
        let programs = made.programs.unwrap();
        assert!(programs.iter().all(|file| !file.ends_with("sh")) && programs.len() <= 4, "{programs:?}");
    }

    /// The names of the files that may be run in a call, of programs in a directory of their own.
    fn runs(mode: ExecMode, allowed: &[&str], granted: &[&str], asked: &[&str]) -> Vec<String> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("a", ""), ("b", ""), ("c", ""), ("script", "#!/usr/bin/env inner\n"), ("inner", "#! /c")]
        {
            let file = dir.path().join(name);
            std::fs::write(&file, text.replace("/c", dir.path().join("c").to_str().unwrap())).unwrap();
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let policy = ExecPolicy { path: vec![dir.path().to_owned()], ..policy(mode, allowed) };
        let programs = plan(&policy, &boxed(granted), &words(asked)).unwrap().programs.unwrap();
        let (first, mut others) = (programs[0].clone(), programs[1..].to_vec());
        others.retain(|file| file.starts_with(dir.path()));
        others.sort();
        let all = std::iter::once(first).chain(others);
        all.map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn other_programs_may_be_started_when_any_arguments_are_granted() {
        let full = |granted: &[&str], asked: &[&str]| runs(ExecMode::Full, &[], granted, asked);
        assert_eq!(full(&["a *", "b x*"], &["a", "x"]), ["a"]);
        assert_eq!(full(&["a", "b x*"], &["b", "x"]), ["b"]);
        assert_eq!(full(&["a", "b x*"], &["a", "x"]), ["a"]);
        assert_eq!(full(&["?", "* y"], &["a"]), ["a", "b", "c"]);
        assert_eq!(runs(ExecMode::Allowlist, &["a", "b"], &["a *", "*"], &["a", "x"]), ["a", "b"]);
        let alone = |granted: &[&str], asked: &[&str]| {
            plan(&policy(ExecMode::Full, &[]), &boxed(granted), &words(asked)).unwrap().alone
        };
        assert!(alone(&["ls *", "cat"], &["ls", "x"]) && !alone(&["ls *", "ls"], &["ls", "x"]));
        assert!(!alone(&["*"], &["ls", "x"]) && !alone(&["ls *", "*"], &["ls", "x"]));
    }

    #[test]
    fn an_interpreter_runs_for_its_own_script() {
        let full = |asked: &str| runs(ExecMode::Full, &[], &["a", "script"], &[asked]);
        assert_eq!(full("a"), ["a", "script"]);
        assert_eq!(full("script"), ["script", "a", "c", "inner"]);
        let with_arguments = runs(ExecMode::Full, &[], &["a", "script x*"], &["script", "x"]);
        assert_eq!(with_arguments, ["script", "a", "c", "inner"]);
    }

    #[test]
    fn sizes_are_bounded() {
        let full = policy(ExecMode::Full, &[]);
        assert!(decide(&full, &["*"], &Asked::Line("x".repeat(200_000))).is_err());
        assert!(decide(&full, &["*"], &Asked::Line("a\0b".to_owned())).unwrap_err().contains("NUL"));
        assert!(decide(&full, &["*"], &Asked::Words(vec!["a".to_owned(); 5_000])).is_err());
        assert!(decide(&full, &["*"], &words(&[])).is_err());
    }
}
