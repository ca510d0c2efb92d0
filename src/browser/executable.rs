//! Where Chromium is.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::config::Browser;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::settings::Settings;

/// Names under which it is installed.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// The variable that may name it.
const CHROME_PATH: &str = "CHROME_PATH";

/// The Chromium that agents get. Looks at the disk.
///
/// # Errors
/// A sentence: why they get none.
pub(crate) fn executable(settings: &Settings) -> Result<PathBuf, String> {
    find(&settings.get::<Browser>(), &settings.get::<ExecPolicy>().path)
}

/// As [`executable`], for a configuration that is not in force. `path` is where commands are looked for.
///
/// # Errors
/// As [`executable`].
pub(crate) fn find(browser: &Browser, path: &[PathBuf]) -> Result<PathBuf, String> {
    if !browser.enabled {
        return Err("browsers are disabled: `[browser] enabled` is false".to_owned());
    }
    if let Some(file) = &browser.executable {
        return match is_program(file) {
            true => Ok(file.clone()),
            false => Err(format!("`[browser] executable` names no program: {}", file.display())),
        };
    }
    if let Some(file) =
        env::var_os(CHROME_PATH).map(PathBuf::from).filter(|file| file.is_absolute() && is_program(file))
    {
        return Ok(file);
    }
    let mut directories = path.to_vec();
    directories.extend(env::var_os("PATH").iter().flat_map(|path| env::split_paths(path)));
    let mut files = NAMES.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    let none = "no Chromium was found: install chromium or google-chrome, or set `[browser] executable`";
    files.find(|file| is_program(file)).ok_or_else(|| none.to_owned())
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_one_counts_and_a_wrong_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("google-chrome");
        fs::write(&file, "").unwrap();
        let path = [dir.path().to_owned()];
        let named = Browser { executable: Some(file.clone()), ..Browser::default() };
        assert!(find(&named, &path).unwrap_err().contains("google-chrome"), "it cannot be run");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(&named, &[]), Ok(file));
        assert!(find(&Browser { enabled: false, ..named }, &path).unwrap_err().contains("enabled"));
    }
}
