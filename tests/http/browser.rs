//! Browsers of agents, with a real Chromium and a site of our own (`docs/browser.md`).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::hands::{activate, install, instances};
use crate::support::clients;
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

const GRANTS: &str = "[capabilities]\ntools = [\"browser_*\"]\nnetwork = [\"*\"]\n";

/// Chromium takes what the machine has: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The turn of a test; `None` where tests that need other programs are switched off.
fn turn() -> Option<MutexGuard<'static, ()>> {
    if clients::skipped() {
        return None;
    }
    let programs = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].map(str::to_owned);
    clients::tool(&programs, &["--version"], "Chromium is missing: apt-get install chromium");
    Some(ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What a site was asked: `METHOD path`, the cookies and the body.
type Asked = (String, String, String);

/// A site of pages.
struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// An answer: its status, further headers and its body.
type Answer = (u16, String, String);

fn page(body: &str) -> Answer {
    (200, "content-type: text/html\r\n".to_owned(), body.to_owned())
}

impl Site {
    fn start(answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (heard, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
                thread::spawn(move || {
                    let (mut reader, mut first, mut cookies, mut length) =
                        (BufReader::new(&socket), String::new(), String::new(), 0);
                    let _ = reader.read_line(&mut first);
                    let mut line = String::new();
                    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                        let header = line.trim().to_ascii_lowercase();
                        if let Some(value) = header.strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap_or(0);
                        }
                        if let Some(value) = header.strip_prefix("cookie:") {
                            value.trim().clone_into(&mut cookies);
                        }
                        line.clear();
                    }
                    let mut body = vec![0; length];
                    let _ = reader.read_exact(&mut body);
                    let body = String::from_utf8_lossy(&body).into_owned();
                    let what = first.rsplit_once(' ').map_or("", |(what, _)| what).to_owned();
                    let (status, headers, said) = answer(&what, &body);
                    if let Ok(mut heard) = heard.lock() {
                        heard.push((what, cookies, body));
                    }
                    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n", said.len());
                    let _ = (&socket).write_all(format!("{head}connection: close\r\n\r\n{said}").as_bytes());
                });
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no handler panics").clone()
    }
}

/// A daemon whose agents may reach the site and nothing else that is private.
fn daemon(site: &Site, rest: &str) -> (Model, Daemon) {
    let model = Model::start();
    let config = format!(
        "rate_limit_per_second = 1000000\n{}[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n[browser]\n{rest}\n",
        model.config(),
        site.address
    );
    (model, Daemon::with(&config))
}

/// Has the agent make these calls in one turn, and gives their results.
fn calls(model: &Model, daemon: &Daemon, agent: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let replies = calls.iter().enumerate().map(|(number, (tool, input))| {
        Reply::calls(&[(&format!("c{number}"), &format!("browser_{tool}"), &input.to_string())])
    });
    model.script(replies.chain([Reply::text("done")]));
    assert_eq!(daemon.say(agent, "go")["response"], "done");
    let request = model.requests().pop().expect("the model was asked");
    let messages = request["messages"].as_array().expect("messages").clone();
    let results = messages.iter().filter(|message| message["role"] == "tool").map(|message| text(&message["content"]));
    let results: Vec<String> = results.collect();
    results[results.len() - calls.len()..].to_vec()
}

/// The processes of the browser of this daemon: ids and command lines.
fn processes(home: &str) -> Vec<(u32, String)> {
    let all = fs::read_dir("/proc").expect("there are processes").flatten();
    let lines = all.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
        (line.contains(home) && line.contains("--remote-debugging-pipe")).then_some((id, line))
    });
    lines.collect()
}

/// The first process of the browser itself.
fn main_process(home: &str) -> u32 {
    let is_browser = |line: &str| !line.contains(" @") && !line.contains("--type=") && !line.contains(" -c ");
    until("the browser runs", || processes(home).into_iter().find(|(_, line)| is_browser(line)).map(|(id, _)| id))
}

const FORM: &str = "<title>Order</title><h1>Cakes</h1><p>Choose <a href='/other' target='_blank'>another</a>.</p>\
    <form method=post action=/sent><label for=kind>Which cake</label><input id=kind name=kind value=old>\
    <select name=size><option value=s>Small</option><option value=l>Large</option></select>\
    <button>Send order</button></form><div style='height:3000px'></div>\
    <script>document.cookie='seen=1';setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p id=late>Late</p>'), 300)</script>";

fn bakery() -> Site {
    Site::start(|what, body| match what {
        "GET /" => page(FORM),
        "POST /sent" => page(&format!("<title>Sent</title><p>You sent {body}.</p>")),
        "GET /other" => page("<title>Other</title><p>Other cakes.</p>"),
        "GET /dialog" => page("<title>D</title><script>alert('Hello there')</script><p>After the dialog.</p>"),
        "GET /jump" => (302, "location: /\r\n".to_owned(), String::new()),
        _ => (404, String::new(), "none".to_owned()),
    })
}

#[test]
fn an_agent_reads_fills_and_sends_a_form() {
    let Some(_turn) = turn() else { return };
    let site = bakery();
    let (model, daemon) = daemon(&site, "");
    let agent = daemon.agent_with("a", GRANTS);
    let results = calls(
        &model,
        &daemon,
        &agent,
        &[
            ("navigate", json!({ "url": site.url("/jump") })),
            ("wait", json!({ "selector": "#late" })),
            ("type", json!({ "selector": "#kind", "text": "Sachertorte" })),
            ("type", json!({ "selector": "select[name=size]", "text": "Large" })),
            ("scroll", json!({})),
            ("run_js", json!({ "expression": "({ y: scrollY, kind: document.querySelector('#kind').value })" })),
            ("screenshot", json!({})),
            ("click", json!({ "selector": "Send order" })),
            ("back", json!({})),
            ("read_page", json!({})),
            ("close", json!({})),
            ("read_page", json!({})),
        ],
    );
    let opened = &results[0];
    assert!(
        opened.contains("Title: Order")
            && opened.contains("# Cakes")
            && opened.contains("#kind: input text Which cake")
    );
    assert!(opened.contains(&site.url("/")) && !opened.contains("/jump"), "{opened}");
    assert!(results[1].contains("has an element"), "{results:?}");
    assert!(results[4].contains("Scrolled to 0, 600"), "{results:?}");
    assert!(results[5].contains(r#""kind":"Sachertorte""#) && results[5].contains("\"y\":600"), "{results:?}");
    let upload = results[6].split("kept as ").nth(1).map(|path| path.split_whitespace().next().unwrap_or("")).unwrap();
    let image = daemon.get(upload);
    assert_eq!(image.status, 200);
    assert!(image.body.starts_with(b"\x89PNG"), "{}", results[6]);
    assert!(
        results[7].contains("Title: Sent") && results[7].contains("You sent kind=Sachertorte&size=l."),
        "{results:?}"
    );
    assert!(results[8].contains("Title: Order"), "{results:?}");
    assert!(results[9].contains("Late"), "{results:?}");
    assert!(results[10].contains("closed") && results[11].contains("No page is open"), "{results:?}");
    let sent = site.asked().into_iter().find(|(what, ..)| what == "POST /sent").expect("the form was sent");
    assert_eq!((&*sent.1, &*sent.2), ("seen=1", "kind=Sachertorte&size=l"));
}

#[test]
fn windows_dialogs_wrong_elements_and_scripts_have_results() {
    let Some(_turn) = turn() else { return };
    let site = bakery();
    let (model, daemon) = daemon(&site, "timeout_secs = 5");
    let (agent, other) = (daemon.agent_with("a", GRANTS), daemon.agent_with("b", GRANTS));
    let results = calls(
        &model,
        &daemon,
        &agent,
        &[
            ("navigate", json!({ "url": site.url("/") })),
            ("click", json!({ "selector": "another" })),
            ("navigate", json!({ "url": site.url("/dialog") })),
            ("click", json!({ "selector": "#nothing" })),
            ("type", json!({ "selector": "p", "text": "x" })),
            ("run_js", json!({ "expression": "nonsense()" })),
            ("run_js", json!({ "expression": "new Promise(r => setTimeout(() => r(7), 50))" })),
            ("wait", json!({ "selector": "#never", "timeout_ms": 200 })),
            ("navigate", json!({ "url": "file:///etc/passwd" })),
            ("run_js", json!({ "expression": "for (;;) {}" })),
            ("read_page", json!({})),
        ],
    );
    assert!(results[1].contains("Title: Other") && results[1].contains("opened in this page instead"), "{results:?}");
    assert!(results[2].contains("Hello there") && results[2].contains("After the dialog."), "{results:?}");
    assert!(results[3].contains("No element matches"), "{results:?}");
    assert!(results[4].contains("no field that takes text"), "{results:?}");
    assert!(results[5].contains("nonsense is not defined"), "{results:?}");
    assert!(results[6].contains('7'), "{results:?}");
    assert!(results[7].contains("within 200 ms"), "{results:?}");
    assert!(results[8].contains("only http and https"), "{results:?}");
    assert!(results[9].contains("did not respond within 5 seconds and was closed"), "{results:?}");
    assert!(results[10].contains("No page is open"), "{results:?}");
    // Another agent has cookies of its own, and the browser is still there.
    let results = calls(&model, &daemon, &other, &[("navigate", json!({ "url": site.url("/other") }))]);
    assert!(results[0].contains("Other cakes."), "{results:?}");
    let of_other = site.asked().into_iter().rfind(|(what, ..)| what == "GET /other").expect("it was asked");
    assert_eq!(of_other.1, "");
}

#[test]
fn what_an_agent_looks_for_stays_hidden_from_the_page() {
    let Some(_turn) = turn() else { return };
    let html = "<title>Ears</title><script>window.heard = []; for (const [of, name] of [[document, 'querySelector'], \
        [document, 'querySelectorAll'], [window, 'scrollBy'], [String.prototype, 'includes']]) { const own = of[name]; \
        of[name] = function (...all) { heard.push(name); return own.apply(this, all) } }</script><button id=here>Press</button>";
    let site = Site::start(|_, _| page(html));
    let (model, daemon) = daemon(&site, "");
    let agent = daemon.agent_with("a", GRANTS);
    let (here, none) = (json!({ "selector": "#here" }), json!({ "selector": "#secret", "timeout_ms": 200 }));
    let click = ("click", json!({ "selector": "press" }));
    let (open, heard) = (json!({ "url": site.url("/") }), json!({ "expression": "heard" }));
    let acts = [("navigate", open), ("wait", here), ("wait", none), click, ("scroll", json!({})), ("run_js", heard)];
    let results = calls(&model, &daemon, &agent, &acts);
    assert!(results[1].contains("has an element") && results[2].contains("No element"), "{results:?}");
    assert!(results[3].contains("#here: button Press") && results[5] == "[]", "{results:?}");
}

#[test]
fn private_hosts_are_refused_in_every_way() {
    let Some(_turn) = turn() else { return };
    let private = Site::start(|_, _| page("<title>Secret</title><p>The secret.</p>"));
    let (to, port) = (private.url("/x"), private.address.port());
    let site = Site::start(move |what, _| match what {
        "GET /redirect" => (302, format!("location: {to}\r\n"), String::new()),
        "GET /" => page(&format!(
            "<title>Hostile</title><img src='{to}'><iframe src='{to}'></iframe><script src='{to}'></script><script>\
             window.seen = []; const tell = (text) => seen.push(text);\
             fetch('{to}', {{ mode: 'no-cors' }}).then(() => tell('fetched'), () => tell('fetch failed'));\
             const socket = new WebSocket('ws://127.0.0.1:{port}/x');\
             socket.onopen = () => tell('socket open'); socket.onerror = () => tell('socket failed');\
             new Worker(URL.createObjectURL(new Blob([\"fetch('{to}', {{ mode: 'no-cors' }}).then(() => postMessage('worker fetched'), \
             () => postMessage('worker failed'))\"]))).onmessage = (e) => tell(e.data);\
             </script><p>Text.</p>"
        )),
        _ => (404, String::new(), String::new()),
    });
    let (model, daemon) = daemon(&site, "");
    let agent = daemon.agent_with("a", GRANTS);
    let all_told = "new Promise(done => { const look = () => seen.length > 2 ? done(seen.sort().join()) : setTimeout(look, 20); look() })";
    let results = calls(
        &model,
        &daemon,
        &agent,
        &[
            ("navigate", json!({ "url": private.url("/x") })),
            ("navigate", json!({ "url": site.url("/redirect") })),
            ("navigate", json!({ "url": site.url("/") })),
            ("run_js", json!({ "expression": all_told })),
            ("run_js", json!({ "expression": format!("location.href = '{}'; 1", private.url("/x")) })),
            ("navigate", json!({ "url": "http://169.254.169.254/latest/meta-data" })),
        ],
    );
    assert!(results[0].contains("not public"), "{results:?}");
    assert!(results[1].contains("not public"), "{results:?}");
    assert!(results[2].contains("Text.") && results[2].contains("Not loaded"), "{results:?}");
    assert!(results[3].contains("fetch failed,socket failed,worker failed"), "{results:?}");
    assert!(results[5].contains("not public"), "{results:?}");
    assert!(!results.join("").contains("The secret"), "{results:?}");
    assert_eq!(private.asked(), [], "something reached the private host");
}

#[test]
fn hosts_outside_of_the_grant_and_agents_without_one_are_refused() {
    let Some(_turn) = turn() else { return };
    let site = bakery();
    let (model, daemon) = daemon(&site, "");
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"browser_*\"]\nnetwork = [\"example.org\"]\n");
    let results = calls(&model, &daemon, &agent, &[("navigate", json!({ "url": site.url("/") }))]);
    assert!(results[0].contains("not allowed to reach 127.0.0.1"), "{results:?}");
    for grants in
        ["[capabilities]\ntools = [\"browser_*\"]\n", "[capabilities]\ntools = [\"web_fetch\"]\nnetwork = [\"*\"]\n"]
    {
        let agent = daemon.agent_with(&format!("x{}", grants.len()), grants);
        let results = calls(&model, &daemon, &agent, &[("navigate", json!({ "url": site.url("/") }))]);
        assert!(!results[0].contains("Cakes"), "{results:?}");
    }
    assert_eq!(site.asked(), []);
    assert_eq!(processes(&daemon.home().display().to_string()), [], "nothing was started");
}

#[test]
fn a_browser_that_dies_is_told_and_started_again_and_none_outlives_the_daemon() {
    let Some(_turn) = turn() else { return };
    let site = bakery();
    let (model, mut daemon) = daemon(&site, "");
    let home = daemon.home().display().to_string();
    let agent = daemon.agent_with("a", GRANTS);
    let open = ("navigate", json!({ "url": site.url("/") }));
    calls(&model, &daemon, &agent, std::slice::from_ref(&open));
    let pid = main_process(&home);
    let kill = |pid: u32| std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(kill(pid).is_ok_and(|status| status.success()));
    until("the browser is gone", || processes(&home).is_empty().then_some(()));
    let results = calls(&model, &daemon, &agent, &[("read_page", json!({}))]);
    assert!(results[0].contains("ended unexpectedly") || results[0].contains("No page is open"), "{results:?}");
    until("it is started again", || {
        calls(&model, &daemon, &agent, std::slice::from_ref(&open))[0].contains("Cakes").then_some(())
    });
    assert!(main_process(&home) != pid);
    daemon.kill();
    until("no browser outlives the daemon", || processes(&home).is_empty().then_some(()));
    daemon.restart();
    let left = daemon.home().join("data/browser");
    assert!(!left.exists(), "its directory is removed with the next start");
}

const HAND: &str = "id = \"surfer\"\nname = \"Surfer\"\ndescription = \"Reads pages\"\ncategory = \"data\"\n\
    tools = [\"browser_navigate\", \"browser_read_page\"]\n\
    [[requires]]\nkey = \"chromium\"\nlabel = \"Chromium\"\nrequirement_type = \"binary\"\ncheck_value = \"chromium\"\n\
    [agent]\nname = \"surf\"\nsystem_prompt = \"You read pages.\"\n";

#[test]
fn an_instance_of_a_hand_shows_its_browser_which_goes_with_it() {
    let Some(_turn) = turn() else { return };
    let site = bakery();
    let (model, daemon) = daemon(&site, "");
    install(&daemon, HAND);
    let made = activate(&daemon, "surfer", &json!({}));
    let (id, agent) = (text(&made["instance_id"]), text(&made["agent_id"]));
    let path = format!("/api/hands/instances/{id}/browser");
    assert_eq!(daemon.get(&path).expect(200), json!({ "active": false }));
    let hand = daemon.get("/api/hands/surfer").expect(200);
    assert_eq!((&hand["degraded"], &hand["requirements_met"]), (&json!(false), &json!(true)), "{hand}");
    calls(&model, &daemon, &agent, &[("navigate", json!({ "url": site.url("/") }))]);
    let shown = daemon.get(&path).expect(200);
    assert_eq!(
        (&shown["active"], &shown["title"], &shown["url"]),
        (&json!(true), &json!("Order"), &json!(site.url("/")))
    );
    assert!(text(&shown["content"]).contains("Cakes"), "{shown}");
    assert!(text(&shown["screenshot_base64"]).starts_with("iVBORw0KGgo"), "{shown}");
    let home = daemon.home().display().to_string();
    assert!(!processes(&home).is_empty());
    daemon.delete(&format!("/api/hands/instances/{id}")).expect(200);
    assert_eq!(instances(&daemon).len(), 0);
    until("the browser ends with its agent", || processes(&home).is_empty().then_some(()));
}

#[test]
fn without_a_chromium_the_tools_are_missing_and_it_is_said_why() {
    let site = bakery();
    let (model, daemon) = daemon(&site, "executable = \"/no/such/chromium\"");
    install(&daemon, HAND);
    activate(&daemon, "surfer", &json!({}));
    let hand = daemon.get("/api/hands/surfer").expect(200);
    assert_eq!((&hand["degraded"], &hand["requirements_met"]), (&json!(true), &json!(false)), "{hand}");
    assert_eq!(hand["missing_tools"], json!(["browser_navigate", "browser_read_page"]));
    let agent = daemon.agent_with("a", GRANTS);
    let results = calls(&model, &daemon, &agent, &[("navigate", json!({ "url": site.url("/") }))]);
    assert!(!results[0].contains("Cakes"), "{results:?}");
    let doctor = daemon.cli(&["doctor", "--offline"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        said.contains("/no/such/chromium") && said.contains("browser.executable")
            || said.contains("[browser] executable"),
        "{said}"
    );
}

/// Bytes of memory that the daemon has had at most.
fn peak_memory(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("the daemon runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// A page that asks for 200 large files at once, and one that sends more than a message of the browser holds.
#[test]
fn hostile_pages_take_bounded_memory_and_leave_the_browser_to_others() {
    let Some(_turn) = turn() else { return };
    let script = |script: &str| page(&format!("<title>Busy</title><script>{script}</script>"));
    let many = "let n=0; for (let i=0;i<200;i++) fetch('/big?'+i).then(r => r.text()).then(t => { n += t.length > 4e6; \
                document.title = 'got ' + n })";
    let (many, send) = (script(many), script("fetch('/sink', {method: 'POST', body: 'z'.repeat(9e7)})"));
    let site = Site::start(move |what, _| match what {
        "GET /many" => many.clone(),
        "GET /send" => send.clone(),
        "GET /quiet" => page("<title>Quiet</title><p>Words of another.</p>"),
        _ => (200, String::new(), "x".repeat(4_900_000)),
    });
    let (model, daemon) = daemon(&site, "");
    let (hostile, other) = (daemon.agent_with("hostile", GRANTS), daemon.agent_with("other", GRANTS));
    calls(&model, &daemon, &other, &[("navigate", json!({ "url": site.url("/quiet") }))]);
    let begun = peak_memory(&daemon);
    let asks = ("run_js", json!({ "expression": "document.title" }));
    calls(&model, &daemon, &hostile, &[("navigate", json!({ "url": site.url("/many") })), asks.clone()]);
    until("the page got most of what it fetches", || {
        let title = calls(&model, &daemon, &hostile, std::slice::from_ref(&asks)).pop().unwrap();
        let got = title.split("got ").nth(1).unwrap_or_default();
        let digits: String = got.chars().take_while(char::is_ascii_digit).collect();
        (digits.parse::<u32>().is_ok_and(|got| got >= 100)).then_some(())
    });
    let grown = peak_memory(&daemon) - begun;
    assert!(grown < 400 << 20, "{} MiB more", grown >> 20);
    calls(&model, &daemon, &hostile, &[("navigate", json!({ "url": site.url("/send") }))]);
    let read = calls(&model, &daemon, &other, &[("read_page", json!({}))]).pop().unwrap();
    assert!(read.contains("Words of another"), "{read}");
    assert!(site.asked().iter().all(|(what, ..)| what != "POST /sink"));
}
