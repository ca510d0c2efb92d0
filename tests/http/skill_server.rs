//! A scripted server of skills over real sockets: what is at each path, and what was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::daemon::Daemon;
use crate::support::until;

/// An answer.
#[derive(Clone, Debug)]
struct Answer {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

/// The server.
pub(crate) struct SkillServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Opens an answer that is held back, and tells that it was asked for.
type Doors = (Sender<()>, Receiver<()>);

#[derive(Default)]
struct Shared {
    answers: Mutex<BTreeMap<String, Answer>>,
    asked: Mutex<Vec<String>>,
    /// Waited for before the path is answered; told when it is asked for.
    gates: Mutex<BTreeMap<String, Doors>>,
}

/// An answer that is held back.
pub(crate) struct Gate {
    reached: Receiver<()>,
    open: Sender<()>,
}

impl Gate {
    /// Waits until the path is asked for.
    pub(crate) fn reached(&self) {
        self.reached.recv().expect("the path is asked for");
    }

    /// Lets the answer go.
    pub(crate) fn open(&self) {
        let _gone = self.open.send(());
    }
}

impl SkillServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || shared.answer(&stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A configuration in which all sources are this server.
    pub(crate) fn config(&self) -> String {
        let url = self.url("");
        format!(
            "[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1\"]\n[clawhub]\nurl = \"{url}/api/v1\"\n\
             [clawhub_cn]\nurl = \"{url}/cn\"\n[registry]\nurl = \"{url}/registry.tar.gz\"\n\
             [skill_sources]\nskills_sh_url = \"{url}/sh\"\ngithub_url = \"{url}/github\"\n"
        )
    }

    /// Puts something at a path, query included.
    pub(crate) fn put(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.put_status(path, "200 OK", "", body);
    }

    pub(crate) fn put_json(&self, path: &str, body: &Value) {
        self.put_status(path, "200 OK", "content-type: application/json\r\n", body.to_string());
    }

    pub(crate) fn put_status(&self, path: &str, status: &'static str, headers: &str, body: impl Into<Vec<u8>>) {
        let answer = Answer { status, headers: headers.to_owned(), body: body.into() };
        lock(&self.shared.answers).insert(path.to_owned(), answer);
    }

    /// Holds the answer of a path back.
    pub(crate) fn gate(&self, path: &str) -> Gate {
        let ((tell, reached), (open, opened)) = (channel(), channel());
        lock(&self.shared.gates).insert(path.to_owned(), (tell, opened));
        Gate { reached, open }
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        lock(&self.shared.asked).iter().filter(|asked| *asked == path).count()
    }
}

impl Shared {
    fn answer(&self, mut stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
        for _header in lines.take_while(|line| !line.is_empty()) {}
        lock(&self.asked).push(path.clone());
        let gate = lock(&self.gates).remove(&path);
        if let Some((tell, opened)) = gate {
            let _gone = tell.send(());
            let _gone = opened.recv();
        }
        let none = || Answer { status: "404 Not Found", headers: String::new(), body: b"Skill not found".to_vec() };
        let Answer { status, headers, body } = lock(&self.answers).get(&path).cloned().unwrap_or_else(none);
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a skill.
pub(crate) fn skill_md(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nUse it with care.\n")
}

/// A zip archive of these files.
pub(crate) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a name fits");
        writer.write_all(content).expect("memory takes it");
    }
    writer.finish().expect("memory takes it").into_inner()
}

/// A tar.gz archive of these files.
pub(crate) fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).expect("memory takes it");
    }
    builder.into_inner().and_then(GzEncoder::finish).expect("memory takes it")
}

pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Installs, and gives the answer whatever it is.
pub(crate) fn install(daemon: &Daemon, source: &str) -> crate::support::http::Reply {
    daemon.post("/api/skills/install", &json!({ "source": source }))
}

/// A file of an installed skill.
pub(crate) fn installed(daemon: &Daemon, path: &str) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(daemon.home().join("skills").join(path));
    file.ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The names in the folder of skills, sorted, once what was staged is gone.
pub(crate) fn folders(daemon: &Daemon) -> Vec<String> {
    until("what was staged is gone", || {
        let names = all_folders(daemon);
        (!names.iter().any(|name| name.starts_with(".staging-"))).then_some(names)
    })
}

/// The names in the folder of skills, sorted.
pub(crate) fn all_folders(daemon: &Daemon) -> Vec<String> {
    let entries = std::fs::read_dir(daemon.home().join("skills")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The codes of the audit log that are about skills, newest first.
pub(crate) fn audited(daemon: &Daemon) -> Vec<String> {
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200);
    let kinds = entries["entries"].as_array().into_iter().flatten();
    kinds
        .filter_map(|entry| entry["event_type"].as_str())
        .filter(|kind| kind.starts_with("skill_"))
        .map(str::to_owned)
        .collect()
}
