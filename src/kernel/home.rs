//! The home directory: its layout, the lock that keeps it to one daemon, and the file that says where the
//! daemon listens.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::disk;

/// The environment variable that names the home.
pub const HOME_VARIABLE: &str = "AGENTSVC_HOME";

/// How often and how long a start tries again for a lock that is held, before it gives up: a `stop` that waits
/// for the daemon's end holds the lock for an instant.
const LOCK_TRIES: u32 = 5;
const LOCK_TRY_PAUSE: Duration = Duration::from_millis(40);

/// Why the home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `--home` nor a variable says where it is.
    #[error("no home directory; set {HOME_VARIABLE} or HOME, or pass --home")]
    Nowhere,
    /// Another daemon has it.
    #[error("a daemon is already running in {}{}", home.display(), pid.map(with_pid).unwrap_or_default())]
    Taken {
        /// The home.
        home: PathBuf,
        /// The process that has it, if it could be read.
        pid: Option<u32>,
    },
    /// The system refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn with_pid(pid: u32) -> String {
    format!(" (pid {pid})")
}

/// Names the file and the deed when the system refuses.
fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

/// Where everything of one daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The home at `root`; it need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// `flag`, else `$AGENTSVC_HOME`, else `~/.agentsvc`. The path is made absolute.
    pub fn locate(flag: Option<&Path>) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = flag.map(Path::to_owned).or_else(|| variable(HOME_VARIABLE));
        let root = root.or_else(|| variable("HOME").map(|user| user.join(".agentsvc"))).ok_or(Error::Nowhere)?;
        std::path::absolute(&root).map(Self::new).map_err(io("find", &root))
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.toml`.
    pub fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The stored files: the configuration's `data_dir`, else `data`.
    pub fn data_dir(&self, configured: Option<&Path>) -> PathBuf {
        configured.map_or_else(|| self.root.join("data"), Path::to_owned)
    }

    /// The world's database under `data_dir`.
    pub fn world_dir(&self, configured: Option<&Path>) -> PathBuf {
        self.data_dir(configured).join("world")
    }

    /// Snapshots of the world under `data_dir`.
    pub fn snapshots_dir(&self, configured: Option<&Path>) -> PathBuf {
        self.data_dir(configured).join("snapshots")
    }

    /// One directory per agent.
    pub fn workspaces_dir(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// Files sent to agents.
    pub fn uploads_dir(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// One directory per MCP server.
    pub fn mcp_servers_dir(&self) -> PathBuf {
        self.root.join("mcp_servers")
    }

    /// Where shells of terminals begin.
    pub fn terminal_dir(&self) -> PathBuf {
        self.root.join("terminal")
    }

    /// MCP servers that can be installed, one file each.
    pub fn mcp_catalog_dir(&self) -> PathBuf {
        self.root.join("mcp").join("catalog")
    }

    /// Skills, one directory each.
    pub fn skills_dir(&self) -> PathBuf {
        self.root.join("skills")
    }

    /// Templates of MCP servers that clients installed from elsewhere, one file each.
    pub fn extensions_dir(&self) -> PathBuf {
        self.root.join("extensions")
    }

    /// Manifests to make agents from, one file each.
    pub fn agent_types_dir(&self) -> PathBuf {
        self.root.join("agent-types")
    }

    /// Backups: the configuration's `[backup] directory`, else `backups`.
    pub fn backups_dir(&self, configured: Option<&Path>) -> PathBuf {
        configured.map_or_else(|| self.root.join("backups"), Path::to_owned)
    }

    /// Keys, and what must not stand in the database only. Readable by the owner only.
    pub fn vault_dir(&self) -> PathBuf {
        self.root.join("vault")
    }

    /// Log files, one a day.
    pub fn logs_dir(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// What was typed into `chat`.
    pub fn history_file(&self) -> PathBuf {
        self.root.join("chat_history")
    }

    /// The file that a running daemon keeps locked.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }

    /// The file that says where the daemon listens.
    pub fn address_file(&self) -> PathBuf {
        self.root.join("daemon.json")
    }

    /// The file that is there while the configuration in force has an API key.
    pub fn api_key_marker(&self) -> PathBuf {
        self.root.join("api_key.set")
    }

    /// The file that says what the clock read when it was last believed.
    pub fn clock_file(&self) -> PathBuf {
        self.root.join("clock.json")
    }

    /// Creates what is missing of the layout, readable by the owner only. What exists is left as it is.
    ///
    /// # Errors
    /// [`Error::Io`] with the directory that could not be made.
    pub fn create(&self, data_dir: Option<&Path>) -> Result<(), Error> {
        let directories = [
            self.root.clone(),
            self.world_dir(data_dir),
            self.workspaces_dir(),
            self.uploads_dir(),
            self.agent_types_dir(),
            self.logs_dir(),
            self.vault_dir(),
        ];
        directories.iter().try_for_each(|path| create_private_dir(path))
    }

    /// Writes `text` as `config.toml` unless there is one. True when it was written.
    pub fn write_config(&self, text: &str) -> Result<bool, Error> {
        let path = self.config_file();
        match private_file().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).map_err(io("write", &path))?;
                Ok(true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(io("create", &path)(error)),
        }
    }

    /// Takes the home for this process until the [`Lock`] is dropped or the process ends, however it ends: the
    /// lock is the system's, so what a killed daemon leaves behind is no obstacle.
    pub fn lock(&self) -> Result<Lock, Error> {
        let path = self.lock_file();
        let mut options = private_file();
        options.read(true).write(true).create(true).truncate(false);
        // What is written into it must not go elsewhere.
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed(),
        );
        let mut file = options.open(&path).map_err(io("open", &path))?;
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < LOCK_TRIES => thread::sleep(LOCK_TRY_PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                    return Err(Error::Taken { home: self.root.clone(), pid });
                }
                Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
            }
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io("write", &path))?;
        Ok(Lock { _file: file })
    }

    /// Does a daemon have this home now? Another program may listen where the last one did.
    pub fn is_taken(&self) -> bool {
        let file = disk::open(&self.lock_file());
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Blocks until no daemon has this home.
    pub fn wait_until_free(&self) -> Result<(), Error> {
        let path = self.lock_file();
        match disk::open(&path) {
            Ok(file) => file.lock_shared().map_err(io("lock", &path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io("open", &path)(error)),
        }
    }

    /// Says where the daemon listens, for as long as the returned value lives. Needs the [`Lock`], so that only
    /// the daemon that has the home speaks for it.
    pub fn publish(&self, address: &Address, _lock: &Lock) -> Result<Published, Error> {
        let path = self.address_file();
        // Written beside and renamed: a reader sees the old file or the new one, never half of one.
        let fresh = path.with_extension("json.new");
        let text = serde_json::json!(address);
        let beside = || -> std::io::Result<()> {
            let mut file = private_file().write(true).create(true).truncate(true).open(&fresh)?;
            writeln!(file, "{text}")?;
            fs::rename(&fresh, &path)
        };
        match beside() {
            // On a full disk the file of the daemon before, which was killed, has its place still.
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                let _left = fs::remove_file(&fresh);
                let line = format!("{text}\n");
                let Ok(file) = private_file().write(true).open(&path) else { return Err(io("write", &fresh)(error)) };
                file.write_all_at(line.as_bytes(), 0).map_err(io("write", &path))?;
                file.set_len(line.len() as u64).map_err(io("write", &path))?;
            }
            written => written.map_err(io("write", &fresh))?,
        }
        Ok(Published { path })
    }

    /// Where the last daemon said it listens; it may have been killed since.
    pub fn address(&self) -> Option<Address> {
        serde_json::from_str(&disk::read_text(&self.address_file()).ok()?).ok()
    }
}

/// Proof that this process has the home.
#[derive(Debug)]
pub struct Lock {
    /// Holds the system's lock; closed by drop or by the end of the process.
    _file: File,
}

/// Where a daemon listens (`daemon.json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Its process.
    pub pid: u32,
    /// The address it is bound to, the true port included.
    pub listen: SocketAddr,
    /// Daemons before it that left this file behind, that is, did not stop in order.
    #[serde(default)]
    pub crashes: u64,
}

impl Address {
    /// The address of this process, after so many `crashes`.
    pub fn own(listen: SocketAddr, crashes: u64) -> Self {
        Self { pid: std::process::id(), listen, crashes }
    }

    /// The URL under which a client of this machine reaches it.
    pub fn url(&self) -> String {
        url_of(self.listen)
    }
}

/// The URL under which a client of this machine reaches `listen`; `0.0.0.0` and `[::]` are no destinations.
pub fn url_of(listen: SocketAddr) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, listen.port()))
}

/// Removes the address file when the daemon stops in order.
#[derive(Debug)]
pub struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        // A file that stays behind names a port where no one answers; clients say so.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates `path` and its parents, `path` itself for the owner only.
pub(crate) fn create_private_dir(path: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(io("create", path))
}

/// Options for a file that only its owner may read. Opening does not wait: what is in its place may be a FIFO.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(disk::NO_WAIT);
    }
    options
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Address, Error, Home, url_of};

    #[test]
    fn the_flag_comes_first_and_is_made_absolute() {
        assert_eq!(Home::locate(Some(Path::new("/x"))).unwrap().root(), Path::new("/x"));
        assert!(Home::locate(Some(Path::new("x"))).unwrap().root().is_absolute());
    }

    #[test]
    fn create_is_idempotent_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"));
        home.create(None).unwrap();
        home.create(None).unwrap();
        assert!(home.world_dir(None).is_dir() && home.logs_dir().is_dir());
        assert_eq!(home.world_dir(Some(Path::new("/srv"))), Path::new("/srv/world"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(home.root()).unwrap().permissions().mode() & 0o777, 0o700);
            home.write_config("").unwrap();
            assert_eq!(fs::metadata(home.config_file()).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn an_existing_config_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        assert!(home.write_config("").unwrap());
        fs::write(home.config_file(), "# mine\n").unwrap();
        assert!(!home.write_config("").unwrap());
        assert_eq!(fs::read_to_string(home.config_file()).unwrap(), "# mine\n");
    }

    #[test]
    fn one_daemon_per_home_and_stale_files_are_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        fs::write(home.lock_file(), "99999999999999\n").unwrap();
        let lock = home.lock().unwrap();
        match home.lock() {
            Err(Error::Taken { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("expected a taken home, got {other:?}"),
        }
        drop(lock);
        home.wait_until_free().unwrap();
        home.lock().unwrap();
    }

    #[test]
    fn the_address_is_there_while_published() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let lock = home.lock().unwrap();
        let address = Address::own("0.0.0.0:81".parse().unwrap(), 2);
        let published = home.publish(&address, &lock).unwrap();
        assert_eq!(home.address(), Some(address.clone()));
        assert_eq!(address.url(), "http://127.0.0.1:81");
        drop(published);
        assert_eq!(home.address(), None);
    }

    #[test]
    fn urls_of_addresses() {
        assert_eq!(url_of("[::]:1".parse().unwrap()), "http://[::1]:1");
        assert_eq!(url_of("10.0.0.1:1".parse().unwrap()), "http://10.0.0.1:1");
    }
}
