//! Git repositories: the newest commit, fetched by the program `git` in the sandbox of commands.
//!
//! Nothing is checked out. `git clone --bare --depth 1` fetches one commit over https, without hooks, submodules, credentials
//! or redirects, from the addresses that were checked; `git archive` writes its files as a tar archive, which is unpacked like
//! any other: links in it are refused.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentsvc_api::skill_source::sources::SourceError;
use reqwest::Url;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{interval, timeout};

use super::convert::Origin;
use super::fetch::{self, Fetched};
use super::folders::{FolderError, Folders};
use super::staging::SKILL_BYTES_MAX;
use super::wire::{Whose, Wire, blocking, failed, one_line};
use crate::kernel::disk;
use crate::kernel::sandbox::{Commands, ServerProgram};

/// For all of it.
const TIME_MAX: Duration = Duration::from_secs(180);
/// Time between two looks at how much was fetched.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Bytes of the output of git that are kept.
const OUTPUT_BYTES_MAX: u64 = 16 << 10;
/// The directory of the repository, and the file of its archive, beside the skill.
const DIRECTORY: &str = "git";
const REPOSITORY: &str = "repository";
const ARCHIVE: &str = "files.tar";

/// What runs in every call.
const SETTINGS: &[&str] = &[
    "protocol.allow=never",
    "http.followRedirects=false",
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "credential.helper=",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "submodule.recurse=false",
    "gc.auto=0",
];

/// What to fetch.
pub(super) struct Repository<'a> {
    pub(super) url: &'a Url,
    /// `None`: the repository's own.
    pub(super) branch: Option<String>,
    /// The folder of the skill in it.
    pub(super) inner: Option<String>,
}

/// Fetches the newest commit of a repository, and finds the skill in it.
///
/// # Errors
/// [`SourceError::NoGit`] where git is not installed or may not run, and others.
pub(super) async fn fetch(
    wire: &Wire,
    commands: &Commands,
    folders: Folders,
    Repository { url, branch, inner }: Repository<'_>,
    (field, verify): (&'static str, bool),
) -> Result<Fetched, SourceError> {
    let (url, addresses) = wire.web.pinned(url.as_str()).await.map_err(|error| failed(error, Whose::Client(field)))?;
    let staging = blocking(move || Ok(folders.stage()?)).await?;
    let directory = staging.beside(DIRECTORY);
    let git = Git { commands, directory: &directory };
    let fetched = async {
        git.run(&clone(&url, &addresses, branch.as_deref())).await?;
        git.run(&archive()).await
    };
    timeout(TIME_MAX, fetched)
        .await
        .map_err(|_| SourceError::Late(format!("git did not finish within {} seconds", TIME_MAX.as_secs())))??;
    let fallback = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let fallback = inner.as_deref().unwrap_or(fallback.trim_end_matches(".git"));
    let fallback = fallback.rsplit('/').next().unwrap_or_default().to_owned();
    blocking(move || {
        let mut staging = staging;
        let file = disk::open(&directory.join(ARCHIVE)).map_err(FolderError::from)?;
        fetch::unpack_into(file, &mut staging, inner.as_deref())?;
        let origin = Origin { kind: "local", fallback, ..Origin::default() };
        let mut fetched = Fetched::new(staging, origin);
        if verify {
            fetched.verify_folder()?;
        }
        Ok(fetched)
    })
    .await
}

fn clone(url: &Url, addresses: &[SocketAddr], branch: Option<&str>) -> Vec<String> {
    let mut arguments: Vec<String> = SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(str::to_owned).collect();
    arguments.extend(["-c".to_owned(), format!("protocol.{}.allow=always", url.scheme())]);
    let name = url.host_str().filter(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().is_err());
    if let (Some(name), Some(port)) = (name, url.port_or_known_default()) {
        let ip = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let list: Vec<String> = addresses.iter().map(ip).collect();
        arguments.extend(["-c".to_owned(), format!("http.curloptResolve={name}:{port}:{}", list.join(","))]);
    }
    let rest = ["clone", "--quiet", "--bare", "--depth=1", "--single-branch", "--no-tags", "--template="];
    arguments.extend(rest.map(str::to_owned));
    arguments.extend(branch.map(|branch| format!("--branch={branch}")));
    arguments.push("--".to_owned());
    arguments.extend([url.as_str().to_owned(), REPOSITORY.to_owned()]);
    arguments
}

fn archive() -> Vec<String> {
    let directory = format!("--git-dir={REPOSITORY}");
    [&directory, "archive", "--format=tar", "-o", ARCHIVE, "HEAD"].map(str::to_owned).to_vec()
}

struct Git<'a> {
    commands: &'a Commands,
    directory: &'a Path,
}

impl Git<'_> {
    /// Runs git and waits for its end.
    async fn run(&self, arguments: &[String]) -> Result<(), SourceError> {
        let variable = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
        let program = ServerProgram {
            shown: Vec::new(),
            memory_bytes: None,
            command: "git".to_owned(),
            arguments: arguments.to_vec(),
            directory: self.directory.to_owned(),
            environment: vec![
                variable("GIT_CONFIG_NOSYSTEM", "1"),
                variable("GIT_CONFIG_GLOBAL", "/dev/null"),
                variable("GIT_TERMINAL_PROMPT", "0"),
                variable("GIT_ATTR_NOSYSTEM", "1"),
                variable("GIT_LFS_SKIP_SMUDGE", "1"),
            ],
            readable: Vec::new(),
            writable: Vec::new(),
            network: true,
        };
        let mut server = self.commands.serve(program).await.map_err(|why| {
            SourceError::NoGit(format!("git cannot run: {why} Install git, or use the URL of an archive."))
        })?;
        let ended = {
            let (process, stream, stderr) = (&mut server.process, &mut server.stream, &mut server.stderr);
            let all = async { tokio::join!(process.ended(), beginning(stream), beginning(stderr)) };
            tokio::select! {
                ended = all => Ok(ended),
                () = until_too_large(self.directory) => Err(()),
            }
        };
        let Ok((ended, _, said)) = ended else {
            return Err(SourceError::TooLarge(format!("the repository has more than {SKILL_BYTES_MAX} bytes")));
        };
        if ended == "exit code 0" {
            return Ok(());
        }
        // The last line says why; those before it are about the way.
        let why = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(&ended);
        Err(SourceError::Failed(format!("git could not fetch the repository: {}", one_line(why, 200))))
    }
}

/// Reads all, and keeps the beginning.
async fn beginning(from: &mut (impl AsyncRead + Unpin)) -> String {
    let mut kept = Vec::new();
    let _unread = AsyncReadExt::take(&mut *from, OUTPUT_BYTES_MAX).read_to_end(&mut kept).await;
    let _rest = tokio::io::copy(from, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

/// Waits until more is fetched than a skill may have.
async fn until_too_large(directory: &Path) {
    let mut looks = interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let directory = directory.to_owned();
        let bytes = tokio::task::spawn_blocking(move || bytes_of(directory)).await.unwrap_or_default();
        if bytes > SKILL_BYTES_MAX {
            return;
        }
    }
}

/// Bytes of the files of a directory. What goes meanwhile counts nothing.
fn bytes_of(directory: PathBuf) -> u64 {
    let (mut open, mut bytes) = (vec![directory], 0);
    while let Some(path) = open.pop() {
        for path in disk::entries(&path).unwrap_or_default() {
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => open.push(path),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_connects_only_to_what_was_checked_and_to_nothing_but_its_protocol() {
        let addresses = ["93.184.216.34:443".parse().unwrap(), "[2606:4700::1111]:443".parse().unwrap()];
        let arguments = clone(&Url::parse("https://git.example/r.git").unwrap(), &addresses, Some("-x"));
        let all = arguments.join(" ");
        assert!(all.contains("http.curloptResolve=git.example:443:93.184.216.34,[2606:4700::1111]"), "{all}");
        assert!(all.contains("protocol.allow=never") && all.contains("protocol.https.allow=always"));
        assert!(!all.contains("protocol.http.allow") && all.contains("http.followRedirects=false"));
        assert!(all.contains(" --branch=-x -- "), "{all}");
        // What begins with a dash is no option.
        assert!(all.ends_with("-- https://git.example/r.git repository"));
        let address =
            clone(&Url::parse("http://127.0.0.1:8/r").unwrap(), &["127.0.0.1:8".parse().unwrap()], None).join(" ");
        assert!(!address.contains("curloptResolve"), "{address}");
    }
}
