//! Tools of MCP servers, and our tools for MCP clients: `cargo bench --bench all -- mcp`, or some of its parts: `calls`, `servers`,
//! `lists`.
//!
//! The servers are processes of this program, started with `--server` and a number of tools; they answer at once.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::process::anonymous_bytes;
use crate::measure::start::start;
use crate::measure::{Connection, Row, UNLIMITED, drive, goals, head, is_wanted, middle, ms, percentile, post, size};
use crate::support::daemon::Daemon;
use crate::support::until;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// The word that makes this program a server.
const SERVER: &str = "--server";
/// Servers of the goal.
const SERVERS: usize = 50;
/// Tools of each of them.
const TOOLS: usize = 20;
/// Starts of each kind.
const STARTS: usize = 15;

pub(crate) fn main() {
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    head("mcp");
    if is_wanted("calls") {
        calls(&client);
    }
    if is_wanted("servers") {
        servers();
    }
    if is_wanted("lists") {
        lists(&client);
    }
}

/// Is this process such a server?
pub(crate) fn is_server() -> bool {
    std::env::args().any(|argument| argument == SERVER)
}

/// A server over its standard input and output with as many tools as its command line says; ends with its input.
pub(crate) fn serve() {
    let count = std::env::args().skip_while(|argument| argument != SERVER).nth(1);
    let tools: usize = count.and_then(|count| count.parse().ok()).expect("a number of tools");
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.expect("a line of text")).expect("a message is JSON");
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "bench", "version": "1" },
            }),
            "tools/list" => json!({ "tools": (0..tools).map(tool).collect::<Vec<_>>() }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
            _ => json!({}),
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result })).expect("the client reads");
        output.flush().expect("the client reads");
    }
}

/// A tool as servers describe theirs: a few sentences and a few fields.
fn tool(number: usize) -> Value {
    json!({
        "name": format!("look_up_{number}"),
        "description": "Looks a record up by its number and answers with its fields. Give the number of the record \
                        and, where only some fields are wanted, their names.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "record": { "type": "integer", "description": "Number of the record." },
                "fields": { "type": "array", "items": { "type": "string" }, "description": "Names of fields." },
            },
            "required": ["record"],
        },
    })
}

/// Configuration of so many servers, each with [`TOOLS`] tools.
fn configuration(servers: usize) -> String {
    let program = std::env::current_exe().expect("this program has a path");
    let folder = program.parent().expect("a program lies in a folder");
    let mut text = String::from("[exec_policy]\nmode = \"full\"\n");
    for server in 0..servers {
        write!(
            text,
            "[mcp_servers.bench{server}]\ncommand = {program:?}\nargs = [\"{SERVER}\", \"{TOOLS}\"]\n\
             readable_paths = [{folder:?}]\n"
        )
        .expect("a string takes text");
    }
    text
}

/// A daemon with so many servers, all connected.
fn connected(servers: usize, config: &str) -> Daemon {
    let daemon = Daemon::with(&format!("{UNLIMITED}{}{config}", configuration(servers)));
    until("the servers are connected", || {
        let list = daemon.get("/api/mcp/servers").expect(200);
        (list["total_connected"] == json!(servers)).then_some(())
    });
    daemon
}

/// The same server, asked over its pipes without a daemon.
struct Direct {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Direct {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args([SERVER, "20"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program starts");
        let input = child.stdin.take().expect("the input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        Self { child, input, output }
    }

    fn call(&mut self) -> Duration {
        let begun = Instant::now();
        let params = json!({ "name": "look_up_1", "arguments": { "record": 1 } });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        writeln!(self.input, "{message}").expect("the server reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server answers");
        begun.elapsed()
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a call of a server's tool takes longer than one of a built-in tool by the same route, beside the server's own
/// time. Both calls are in the audit log before they run, so that the difference is what the MCP client adds.
fn calls(client: &Runtime) {
    let invoke = "[tool_invoke]\nenabled = true\nallowlist = [\"mcp_bench0_look_up_1\", \"system_time\"]\n";
    let daemon = connected(1, invoke);
    let manifest = "mcp_servers = [\"*\"]\n[capabilities]\ntools = [\"*\"]\n";
    let agent = daemon.agent_with("caller", manifest);
    let request =
        |tool: &str, input: &Value| post(&format!("/api/tools/{tool}/invoke?agent_id={agent}"), &input.to_string());
    let theirs = request("mcp_bench0_look_up_1", &json!({ "record": 1 }));
    let ours = request("system_time", &json!({}));
    let rounds = size("AGENTSVC_BENCH_CALLS", 5_000, 200);
    let (mut direct, mut of_server, mut built_in, mut own) = (Direct::start(), Vec::new(), Vec::new(), Vec::new());
    client.block_on(async {
        let mut wire = Connection::open(daemon.addr).await.expect("the daemon takes connections");
        for _ in 0..rounds {
            for (bytes, times) in [(&theirs, &mut of_server), (&ours, &mut built_in)] {
                let begun = Instant::now();
                let (status, body) = wire.call(bytes).await.expect("the daemon answers");
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
                times.push(begun.elapsed());
            }
            own.push(direct.call());
        }
    });
    for times in [&mut of_server, &mut built_in, &mut own] {
        times.sort_unstable();
    }
    let added = |part| {
        let without = percentile(&built_in, part) + percentile(&own, part);
        percentile(&of_server, part).saturating_sub(without)
    };
    let (median, p99) = (added(0.5), added(0.99));
    let of = |times: &[Duration]| format!("{} / {}", ms(percentile(times, 0.5)), ms(percentile(times, 0.99)));
    Row::new("a call of a warm stdio server: added to its own time", format!("median {}, p99 {}", ms(median), ms(p99)))
        .beside(format!(
            "median / p99: server's tool {}, built-in tool {}, server alone {}",
            of(&of_server),
            of(&built_in),
            of(&own)
        ))
        .goal(&goals::MCP_CALL, p99 <= Duration::from_millis(1))
        .print();
}

/// What many servers cost: the start of the daemon, and its memory once all are connected.
fn servers() {
    let (many, starts) = (configuration(SERVERS), size("AGENTSVC_BENCH_STARTS", STARTS, 3));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        without.push(start("").as_secs_f64());
        with.push(start(&many).as_secs_f64());
    }
    let (with, without) = (middle(with), middle(without));
    let tools = SERVERS * TOOLS;
    Row::new(
        format!("exec to first 200 with {SERVERS} servers of {tools} tools, median of {starts}"),
        format!("{:.1} ms", with * 1e3),
    )
    .beside(format!("{:.1} ms without servers, in turns", without * 1e3))
    .goal(&goals::MCP_START, with <= without * 1.1 + 0.001)
    .print();

    let memory = |servers| {
        let daemon = connected(servers, "");
        thread::sleep(Duration::from_secs(5));
        anonymous_bytes(daemon.pid()) as f64 / f64::from(1 << 20)
    };
    let (none, all) = (memory(0), memory(SERVERS));
    Row::new(
        format!("memory of the daemon with {SERVERS} connected servers of {tools} tools"),
        format!("{:.1} MiB more", all - none),
    )
    .beside(format!("{none:.1} MiB without servers; both without a file behind it"))
    .goal(&goals::MCP_MEMORY, all - none <= 1.0)
    .print();
}

/// How many lists of our own tools clients get.
fn lists(client: &Runtime) {
    let daemon = Daemon::with(UNLIMITED);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let time = Duration::from_secs(size("AGENTSVC_BENCH_SECS", 5, 1) as u64);
    let bytes = post("/mcp", &body);
    let run = client.block_on(drive(daemon.addr, 32, time, 200, move |_, _| bytes.clone()));
    let rate = run.rate();
    Row::new(
        "POST /mcp tools/list, 32 connections",
        format!("{rate:.0}/s, p99 {}", ms(percentile(&run.latencies, 0.99))),
    )
    .goal(&goals::MCP_LIST, rate >= 20_000.0)
    .print();
}
