//! Skills from Git repositories: the real `git`, against the real `git http-backend`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use super::skill_server::{folders, install, installed, skill_md};
use crate::support::daemon::Daemon;

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Repositories behind HTTP.
struct GitServer {
    address: SocketAddr,
    root: TempDir,
}

impl GitServer {
    /// `None` where git or its server is not installed.
    fn start() -> Option<Self> {
        let path = Command::new("git").arg("--exec-path").output().ok()?;
        let backend = PathBuf::from(String::from_utf8_lossy(&path.stdout).trim()).join("git-http-backend");
        if !backend.exists() {
            return None;
        }
        let root = tempfile::tempdir().expect("a temporary directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let served = root.path().to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(&stream, &backend, &served);
            }
        });
        Some(Self { address, root })
    }

    /// Makes a repository with one commit.
    fn repository(&self, name: &str, files: &[(&str, &str)], link: Option<(&str, &str)>) -> String {
        let (work, bare) = (tempfile::tempdir().expect("a temporary directory"), self.root.path().join(name));
        for (path, text) in files {
            let path = work.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        if let Some((name, target)) = link {
            std::os::unix::fs::symlink(target, work.path().join(name)).expect("a link");
        }
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        git(work.path(), &["init", "--quiet"]);
        git(work.path(), &["add", "-A"]);
        git(work.path(), &[&identity[..], &["commit", "--quiet", "-m", "x"]].concat());
        git(work.path(), &["clone", "--quiet", "--bare", ".", &bare.to_string_lossy()]);
        format!("git+http://{}/{name}", self.address)
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// One request, by way of the program that serves repositories.
fn answer(mut stream: &TcpStream, backend: &Path, root: &Path) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    let _gone = reader.read_line(&mut first);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut body = Vec::new();
    let length = header("content-length").parse().unwrap_or(0);
    let _gone = reader.take(length).read_to_end(&mut body);
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut command = Command::new(backend);
    command.env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1").env("REQUEST_METHOD", method);
    command.env("PATH_INFO", path).env("QUERY_STRING", query).env("CONTENT_TYPE", header("content-type"));
    command.env("CONTENT_LENGTH", body.len().to_string()).env("HTTP_CONTENT_ENCODING", header("content-encoding"));
    command.env("GIT_PROTOCOL", header("git-protocol")).env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the server of git runs");
    let _gone = child.stdin.take().expect("a pipe").write_all(&body);
    let output = child.wait_with_output().expect("the server of git ends").stdout;
    let text = String::from_utf8_lossy(&output);
    let status = text.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&output));
}

#[test]
fn a_repository_is_fetched_by_git() {
    let Some(server) = GitServer::start() else { return };
    let config = format!("api_key = \"{KEY}\"\n[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1\"]\n");
    let mut daemon = Daemon::with(&config);
    daemon.use_key(KEY);
    let one = skill_md("of-git", "Comes from a repository");
    let url = server.repository("one.git", &[("SKILL.md", &one), ("references/a.md", "a\n")], None);
    let done = install(&daemon, &url).expect(201);
    assert_eq!((&done["skill"], &done["status"]), (&json!("of-git"), &json!("installed")));
    assert_eq!(installed(&daemon, "of-git/references/a.md").as_deref(), Some("a\n"));
    assert!(installed(&daemon, "of-git/.git/config").is_none());

    let two = skill_md("second", "x");
    let many = [
        ("skills/second/SKILL.md", two.as_str()),
        ("skills/third/SKILL.md", "---\nname: third\ndescription: y\n---\n"),
    ];
    // A link beside the skill is passed over.
    let url = server.repository("many.git", &many, Some(("link", "/etc/passwd")));
    assert_eq!(install(&daemon, &format!("{url}#skills/second")).expect(201)["skill"], "second");
    let linked =
        server.repository("linked.git", &[("SKILL.md", &skill_md("linked", "x"))], Some(("passwd.md", "/etc/passwd")));
    assert_eq!(install(&daemon, &linked).expect(403)["code"], "security_blocked");
    install(&daemon, &url.replace("many.git", "none.git")).refused(502);
    assert_eq!(folders(&daemon), ["of-git", "second"]);
}

#[test]
fn other_protocols_and_private_hosts_are_refused_before_git_runs() {
    let daemon = Daemon::start();
    for source in
        ["git+ssh://x.example/r", "git+file:///etc", "git+http://127.0.0.1:9/r.git", "git+http://93.184.216.34/r.git"]
    {
        install(&daemon, source).refused_field(400, "source");
    }
    assert!(folders(&daemon).is_empty());
}
