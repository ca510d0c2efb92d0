//! Which files of a working directory are kept.

/// Bytes of a file that is kept (spec 2, Checkpoint manager 5).
pub(super) const FILE_BYTES_MAX: u64 = 51_200;
/// Directories whose files are never kept (spec 2, Checkpoint manager 4).
const SKIPPED: [&str; 9] = ["node_modules", "target", ".venv", "venv", "env", ".git", "__pycache__", "dist", "build"];

/// May the file at this path be kept? Files named `.env` and the like hold secrets.
pub(super) fn is_kept(path: &str) -> bool {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_skipped = |name: &str| SKIPPED.contains(&name) || is_git(name);
    !name.starts_with(".env") && !is_git(name) && !above.split('/').any(is_skipped)
}

/// Git takes no such name into a tree: some file systems hold it for `.git`.
fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    #[test]
    fn secrets_and_what_programs_make_are_left_out() {
        for path in ["a", "a/b.txt", "environment", "env", "a/target", "targets/x", "src/build.rs", ".github/x"] {
            assert!(is_kept(path), "{path}");
        }
        for path in [".env", ".env.local", "a/.env", "env/x", "a/node_modules/b/c", "target/x", ".git/HEAD", ".GIT/x"] {
            assert!(!is_kept(path), "{path}");
        }
    }
}
