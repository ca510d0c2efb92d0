//! Terminals: a shell over a WebSocket, in its sandbox, for administrators alone (spec 3, Remaining routes).

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::people::person;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::socket::Socket;
use crate::support::until;

const KEY: &str = "the-key-of-the-configuration-of-32-characters";

/// A daemon with terminals; `sh` prompts little.
fn daemon(more: &str) -> Daemon {
    let config = format!(
        "api_key = \"{KEY}\"\nrate_limit_per_second = 1000000\n[terminal]\nenabled = true\nshell = \"sh\"\n{more}"
    );
    let mut daemon = Daemon::with(&config);
    daemon.use_key(KEY);
    daemon
}

/// A terminal that speaks JSON.
struct Terminal {
    socket: Socket,
    started: Value,
    /// What was shown and not looked for yet.
    shown: String,
}

impl Terminal {
    #[track_caller]
    fn open(client: &Client, query: &str) -> Self {
        let path = format!("/api/terminal/ws?format=json{query}");
        let mut socket = Socket::ask(client, &path, &[]).expect("the terminal opens");
        let started = socket.any();
        assert_eq!(started["type"], "started", "{started}");
        Self { socket, started, shown: String::new() }
    }

    fn input(&mut self, data: &str) {
        self.socket.send(json!({ "type": "input", "data": data }).to_string());
    }

    /// Reads until this is shown. What is shown behind it stays.
    #[track_caller]
    fn until(&mut self, wanted: &str) {
        loop {
            if let Some(at) = self.shown.find(wanted) {
                self.shown.drain(..at + wanted.len());
                return;
            }
            let frame = self.socket.any();
            assert_eq!(frame["type"], "output", "{frame} after {:?}, for {wanted:?}", self.shown);
            self.shown += frame["data"].as_str().unwrap();
        }
    }

    /// The frame with which the shell ends.
    #[track_caller]
    fn exit(&mut self) -> Value {
        loop {
            let frame = self.socket.any();
            if frame["type"] != "output" {
                assert_eq!(self.socket.closed(), 1000);
                return frame;
            }
        }
    }
}

/// Opens no terminal: the status.
#[track_caller]
fn refused(client: &Client, path: &str, headers: &[(&str, &str)]) -> u16 {
    match Socket::ask(client, path, headers) {
        Ok(_) => panic!("{path}: the terminal opens"),
        Err(refused) => refused.status,
    }
}

/// Does a process on this machine have this among its arguments?
fn is_running(marker: &str) -> bool {
    let all = fs::read_dir("/proc").expect("processes are listed").flatten();
    all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == marker.as_bytes()))
}

/// An argument of `sleep` that no other test has, nor another run of this one.
fn marker(of: u32) -> String {
    format!("9{of}{}", std::process::id())
}

fn sessions(daemon: &Daemon) -> Value {
    daemon.get("/api/terminal/health").expect(200)["sessions"].clone()
}

fn entries(daemon: &Daemon, kind: &str) -> Vec<Value> {
    let all = daemon.get("/api/audit/recent").expect(200);
    all["entries"].as_array().unwrap().iter().filter(|entry| entry["event_type"] == kind).cloned().collect()
}

#[test]
fn terminals_are_off_unless_the_configuration_wants_them() {
    let daemon = Daemon::start();
    let health = daemon.get("/api/terminal/health").expect(200);
    assert_eq!((&health["ok"], &health["enabled"], &health["tmux"]), (&json!(false), &json!(false), &json!(false)));
    assert_eq!(refused(&daemon, "/api/terminal/ws", &[]), 403);
    let reply = daemon.get("/api/terminal/ws");
    reply.refused(403);
    assert!(reply.text().contains("terminal_off"), "{}", reply.text());
}

#[test]
fn a_shell_runs_hears_of_the_size_and_says_how_it_ended() {
    let daemon = daemon("");
    let mut terminal = Terminal::open(&daemon, "&cols=97&rows=31");
    assert_eq!(terminal.started["shell"], "sh");
    assert!(terminal.started["pid"].is_u64() && terminal.started["isRoot"].is_boolean());
    terminal.input("echo a$((40+2))b; stty size\r");
    terminal.until("a42b\r\n31 97\r\n");
    terminal.socket.send(json!({ "type": "resize", "cols": 132, "rows": 50 }).to_string());
    terminal.input("stty size\r");
    terminal.until("50 132\r\n");
    // It is the terminal of the shell's session: keys are signals.
    let sleep = marker(1);
    terminal.input(&format!("sleep {sleep}; echo after$((1+1))\r"));
    terminal.until(&sleep);
    until("sleep runs", || is_running(&sleep).then_some(()));
    terminal.input("\u{3}");
    until("sleep is interrupted", || (!is_running(&sleep)).then_some(()));
    terminal.input("echo é€$((1+2))\r");
    terminal.until("é€3\r\n");
    assert_eq!(sessions(&daemon), 1);
    terminal.input("exit 7\r");
    assert_eq!(terminal.exit(), json!({ "type": "exit", "code": 7 }));
    until("the end is on record", || (entries(&daemon, "terminal_ended").len() == 1).then_some(()));
    let (start, end) = (&entries(&daemon, "terminal_started")[0], &entries(&daemon, "terminal_ended")[0]);
    assert!(start.to_string().contains("127.0.0.1") && reason_of(end) == "exit", "{start} {end}");
    assert_eq!(sessions(&daemon), 0);
}

#[test]
fn a_shell_sees_its_own_directory_and_not_the_home_of_the_daemon() {
    let daemon = daemon("");
    let mut terminal = Terminal::open(&daemon, "");
    terminal.input("echo kept > file; pwd; echo $TERM\r");
    terminal.until("terminal\r\n");
    terminal.until("xterm-256color\r\n");
    assert_eq!(fs::read_to_string(daemon.home().join("terminal/file")).unwrap(), "kept\n");
    let config = daemon.home().join("config.toml");
    terminal.input(&format!("cat {} || echo hidden$((1+1)); echo $AGENTSVC_VAULT_KEY.$((2+2))\r", config.display()));
    terminal.until("hidden2\r\n");
    terminal.until(".4\r\n");
    assert!(!terminal.shown.contains(KEY));
}

#[test]
fn as_text_the_screen_comes_as_it_is() {
    let daemon = daemon("");
    let mut socket = Socket::ask(&daemon, "/api/terminal/ws", &[]).expect("the terminal opens");
    socket.0.send(Message::binary("echo x$((6*7))x\r")).unwrap();
    let mut shown = String::new();
    while !shown.contains("x42x\r\n") {
        shown += socket.0.read().unwrap().to_text().unwrap();
    }
    socket.send("no JSON");
    while !shown.contains("[agentsvc: the message is not valid") {
        shown += socket.0.read().unwrap().to_text().unwrap();
    }
    socket.send(json!({ "type": "close" }).to_string());
    assert_eq!(socket.closed(), 1000);
    until("the place is free", || (sessions(&daemon) == 0).then_some(()));
}

#[test]
fn pages_ask_for_frames_with_the_subprotocol() {
    let daemon = daemon("");
    let protocol = format!("bearer, {KEY}, json");
    let no_key = Client { key: None, ..daemon.client() };
    let mut socket = Socket::ask(&no_key, "/api/terminal/ws", &[("sec-websocket-protocol", &protocol)]).expect("opens");
    assert_eq!(socket.any()["type"], "started");
    let mut socket = Socket::ask(&daemon, "/api/terminal/ws", &[("sec-websocket-protocol", "json")]).expect("opens");
    assert_eq!(socket.any()["type"], "started");
    for (text, why) in [
        ("ls", "not valid"),
        (r#"{"type":"resize","cols":0,"rows":5}"#, "cols"),
        (r#"{"type":"switch_window","window":2}"#, "windows"),
    ] {
        socket.send(text);
        let frame = loop {
            let frame = socket.any();
            if frame["type"] == "error" {
                break frame;
            }
        };
        assert!(text_of(&frame).contains(why), "{frame}");
    }
}

fn text_of(frame: &Value) -> String {
    text(&frame["content"])
}

#[test]
fn only_administrators_open_terminals() {
    let daemon = daemon("");
    for (role, status) in [("viewer", 403), ("user", 403)] {
        let (_, client) = person(&daemon, role, role);
        assert_eq!(refused(&client, "/api/terminal/ws", &[]), status, "{role}");
        client.get("/api/terminal/health").refused(403);
    }
    let narrow = daemon.post("/api/keys", &json!({ "name": "n", "scopes": ["read", "chat", "write"] })).expect(201);
    assert_eq!(refused(&daemon.keyed(&text(&narrow["key"])), "/api/terminal/ws", &[]), 403);
    assert_eq!(refused(&Client { key: None, ..daemon.client() }, "/api/terminal/ws", &[]), 401);
    let (user, admin) = person(&daemon, "ann", "admin");
    let mut terminal = Terminal::open(&admin, "");
    assert!(entries(&daemon, "terminal_started")[0].to_string().contains(&format!("user:{user}/key:")));
    // With the key goes the terminal.
    let sleep = marker(2);
    terminal.input(&format!("sleep {sleep}\r"));
    until("it runs", || is_running(&sleep).then_some(()));
    daemon.delete(&format!("/api/users/{user}")).expect(204);
    assert_eq!(terminal.socket.closed(), 1008);
    until("it is killed", || (!is_running(&sleep)).then_some(()));
    assert_eq!(reason_of_end(&daemon), "key_changed");
}

/// Why a terminal ended, by its entry on the audit log.
fn reason_of(entry: &Value) -> String {
    let details: Value = serde_json::from_str(entry["details"].as_str().unwrap()).unwrap();
    text(&details["reason"])
}

fn reason_of_end(daemon: &Daemon) -> String {
    until("the end is on record", || entries(daemon, "terminal_ended").first().map(reason_of))
}

#[test]
fn other_origins_and_bad_sizes_are_refused() {
    let daemon = daemon("");
    let other = [("origin", "https://evil.example")];
    assert_eq!(refused(&daemon, "/api/terminal/ws", &other), 403);
    for query in ["cols=0", "cols=1001", "rows=501", "rows=x", "format=xml"] {
        assert_eq!(refused(&daemon, &format!("/api/terminal/ws?{query}"), &[]), 400, "{query}");
    }
    daemon.get("/api/terminal/ws?cols=0").refused_field(400, "cols");
    daemon.get("/api/terminal/ws").refused(426);
    assert_eq!(sessions(&daemon), 0);
    let own = format!("http://{}", daemon.client().addr);
    Socket::ask(&daemon, "/api/terminal/ws", &[("origin", &own)]).expect("the page of the daemon opens one");
}

#[test]
fn an_origin_that_may_call_the_api_may_open_no_terminal_unless_it_is_listed() {
    let config = |listed: &str| {
        let mut daemon = Daemon::with(&format!(
            "api_key = \"{KEY}\"\ncors_origin = [\"https://chat.example\"]\n[terminal]\nenabled = true\n{listed}"
        ));
        daemon.use_key(KEY);
        daemon
    };
    let origin = [("origin", "https://chat.example")];
    assert_eq!(refused(&config(""), "/api/terminal/ws", &origin), 403);
    let daemon = config("allowed_origins = [\"https://chat.example\"]\n");
    Socket::ask(&daemon, "/api/terminal/ws", &origin).expect("it is listed");
}

/// An address of this machine that others would reach it at. Nothing is sent: the system is asked for its way.
fn address_for_others() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9))?;
    let address = socket.local_addr()?.ip();
    if address.is_loopback() { Err(io::Error::other("it is that of the loopback")) } else { Ok(address) }
}

#[test]
fn clients_of_other_machines_open_terminals_only_where_that_is_allowed() {
    let address = match address_for_others() {
        Ok(address) => address,
        Err(why) => return eprintln!("SKIPPED: this machine has no address for others: {why}"),
    };
    let start = |more: &str| {
        let home = tempfile::tempdir().unwrap();
        let config = format!(
            "api_listen = \"0.0.0.0:0\"\napi_key = \"{KEY}\"\n[terminal]\nenabled = true\nshell = \"sh\"\n{more}"
        );
        fs::write(home.path().join("config.toml"), config).unwrap();
        let daemon = Daemon::on(home);
        let at = |ip| Client { addr: SocketAddr::new(ip, daemon.client().addr.port()), ..daemon.keyed(KEY) };
        let (here, there) = (at(Ipv4Addr::LOCALHOST.into()), at(address));
        (daemon, here, there)
    };
    let (_daemon, here, there) = start("");
    assert_eq!(refused(&there, "/api/terminal/ws", &[]), 403);
    let reply = there.get("/api/terminal/ws");
    reply.refused(403);
    assert!(reply.text().contains("terminal_remote"), "{}", reply.text());
    let health = |client: &Client| {
        let health = client.get("/api/terminal/health").expect(200);
        [&health["ok"], &health["allow_remote"], &health["sessions"]].map(Value::clone)
    };
    assert_eq!(health(&there), [json!(false), json!(false), json!(0)]);
    let _terminal = Terminal::open(&here, "");
    assert_eq!(health(&here), [json!(true), json!(false), json!(1)]);
    let (_daemon, _, there) = start("allow_remote = true\n");
    let mut terminal = Terminal::open(&there, "");
    terminal.input("echo from$((6*7))there\r");
    terminal.until("from42there\r\n");
    assert_eq!(health(&there), [json!(true), json!(true), json!(1)]);
}

#[test]
fn terminals_are_bounded_and_end_when_they_are_idle() {
    let daemon = daemon("max_sessions = 1\nidle_timeout_secs = 2\n");
    let mut terminal = Terminal::open(&daemon, "");
    assert_eq!(refused(&daemon, "/api/terminal/ws", &[]), 429);
    let sleep = marker(3);
    terminal.input(&format!("sleep {sleep}\r"));
    until("it runs", || is_running(&sleep).then_some(()));
    let frame = loop {
        let frame = terminal.socket.any();
        if frame["type"] == "error" {
            break frame;
        }
    };
    assert!(text_of(&frame).contains("idle"), "{frame}");
    assert_eq!(terminal.socket.closed(), 1008);
    until("it is killed", || (!is_running(&sleep)).then_some(()));
    assert_eq!(reason_of_end(&daemon), "idle");
    until("the place is free", || (sessions(&daemon) == 0).then_some(()));
    Terminal::open(&daemon, "");
}

#[test]
fn what_a_shell_started_goes_with_its_socket_and_with_the_daemon() {
    let mut daemon = daemon("");
    let mut terminal = Terminal::open(&daemon, "");
    // One that leaves its session, too.
    let [apart, below] = [4, 5].map(marker);
    let run = || is_running(&apart) && is_running(&below);
    let are_gone = || !is_running(&apart) && !is_running(&below);
    terminal.input(&format!("setsid sleep {apart} & sleep {below}\r"));
    until("both run", || run().then_some(()));
    drop(terminal);
    until("both are killed", || are_gone().then_some(()));
    until("the place is free", || (sessions(&daemon) == 0).then_some(()));
    let mut terminal = Terminal::open(&daemon, "");
    terminal.input(&format!("trap '' HUP TERM; setsid sleep {apart} & sleep {below}\r"));
    until("both run again", || run().then_some(()));
    daemon.kill();
    until("both are killed with the daemon", || are_gone().then_some(()));
}

#[test]
fn a_client_that_does_not_read_holds_the_shell_up_and_loses_nothing() {
    let daemon = daemon("");
    let mut terminal = Terminal::open(&daemon, "");
    terminal.input("i=0; while [ $i -lt 200000 ]; do echo line$i; i=$((i+1)); done; echo the end$((1+1))\r");
    let mut next = 0;
    while next < 200_000 {
        terminal.until(&format!("line{next}\r\n"));
        next += 40_000;
    }
    terminal.until("line199999\r\n");
    terminal.until("the end2\r\n");
}
