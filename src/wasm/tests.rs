//! Modules built from text: what they compute, and what stops them.

use std::time::{Duration, Instant};

use agentsvc_systems::wasm::limits::{WASM_LOG_LINE_BYTES_MAX, WASM_LOG_LINES_MAX, WASM_MODULE_BYTES_MAX};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// A host that notes what it is asked, and answers with what it is given.
#[derive(Default)]
struct Noting {
    calls: Mutex<Vec<HostCall>>,
    lines: Mutex<Vec<(i32, String)>>,
    answer: Option<Value>,
    /// How long each call takes.
    takes: Duration,
    /// Nobody wants the result.
    cancelled: bool,
}

impl Host for Noting {
    fn call(&self, call: HostCall, _: Instant) -> Result<Value, String> {
        let until = Instant::now() + self.takes;
        while Instant::now() < until {
            std::thread::yield_now();
        }
        self.calls.lock().push(call);
        self.answer.clone().ok_or_else(|| "the host refuses".to_owned())
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    fn log(&self, level: i32, line: &str) {
        self.lines.lock().push((level, line.to_owned()));
    }
}

/// The module of this text, with a memory and a bump allocator.
fn module(body: &str) -> Vec<u8> {
    module_of("librefang", body)
}

fn module_of(imported: &str, body: &str) -> Vec<u8> {
    let text = format!(
        "(module
            (import \"{imported}\" \"host_call\" (func $host_call (param i32 i32) (result i64)))
            (import \"{imported}\" \"host_log\" (func $host_log (param i32 i32 i32)))
            (memory (export \"memory\") 40)
            (global $next (mut i32) (i32.const 4096))
            (func $alloc (export \"alloc\") (param $length i32) (result i32)
                (local $at i32)
                (local.set $at (global.get $next))
                (global.set $next (i32.add (global.get $next) (local.get $length)))
                (local.get $at))
            (func $packed (param $at i32) (param $length i32) (result i64)
                (i64.or
                    (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32))
                    (i64.extend_i32_u (local.get $length))))
            {body})"
    );
    wat::parse_str(text).expect("a module")
}

/// A module that sends this request and gives the answer as its result.
fn asking(imported: &str, request: &Value) -> Vec<u8> {
    let text = request.to_string();
    let data = text.replace('\\', "\\\\").replace('"', "\\\"");
    let length = text.len();
    module_of(
        imported,
        &format!(
            "(data (i32.const 16) \"{data}\")
             (func (export \"execute\") (param i32 i32) (result i64)
                (call $host_call (i32.const 16) (i32.const {length})))"
        ),
    )
}

const ECHO: &str = "(func (export \"execute\") (param $at i32) (param $length i32) (result i64)
    (call $packed (local.get $at) (local.get $length)))";

fn all() -> Capabilities {
    Capabilities::parse([
        "FileRead(*)",
        "FileWrite(*)",
        "NetConnect(*)",
        "ShellExec(*)",
        "AgentMessage(*)",
        "AgentSpawn",
    ])
}

fn run_with(module: &[u8], limits: Limits, host: &Noting) -> Result<Vec<u8>, WasmError> {
    run(module, b"{}", limits, &all(), host)
}

fn result(module: &[u8]) -> Result<Vec<u8>, WasmError> {
    run_with(module, Limits::default(), &Noting::default())
}

#[test]
fn the_envelope_goes_in_and_the_result_comes_out() {
    let envelope = json!({ "tool": "echo", "input": { "text": "ä" } }).to_string();
    let given =
        run(&module(ECHO), envelope.as_bytes(), Limits::default(), &Capabilities::default(), &Noting::default());
    assert_eq!(given.unwrap(), envelope.as_bytes());
    // As long as it may be.
    let limits = Limits { payload_bytes: 1 << 20, ..Limits::default() };
    let longest = vec![b'x'; 1 << 20];
    assert_eq!(run(&module(ECHO), &longest, limits, &all(), &Noting::default()).unwrap(), longest);
}

#[test]
fn an_endless_loop_burns_its_fuel_and_a_slow_one_its_time() {
    let endless = module("(func (export \"execute\") (param i32 i32) (result i64) (loop (br 0)) unreachable)");
    assert_eq!(result(&endless), Err(WasmError::Fuel(1_000_000)));
    // With all the fuel that it wants, the clock stops it between two slices.
    let limits = Limits { fuel: u64::MAX / 2, time: Duration::from_millis(50), ..Limits::default() };
    let began = Instant::now();
    assert_eq!(run_with(&endless, limits, &Noting::default()), Err(WasmError::Time(0)));
    assert!(began.elapsed() < Duration::from_secs(20));
    let cancelled = Noting { cancelled: true, ..Noting::default() };
    assert_eq!(run_with(&endless, Limits::default(), &cancelled), Err(WasmError::Stopped));
    // One that is done before is not stopped.
    let counting = module(
        "(func (export \"execute\") (param i32 i32) (result i64)
            (local $n i32)
            (loop (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if 0 (i32.lt_u (local.get $n) (i32.const 50000))))
            (call $packed (i32.const 0) (i32.const 0)))",
    );
    assert_eq!(result(&counting), Ok(Vec::new()));
    let little = Limits { fuel: 10_000, ..Limits::default() };
    assert_eq!(run_with(&counting, little, &Noting::default()), Err(WasmError::Fuel(10_000)));
    assert!(metering_holds());
}

#[test]
fn a_start_function_and_an_allocator_burn_the_same_fuel() {
    let start = wat::parse_str("(module (func $s (loop (br 0))) (start $s) (memory (export \"memory\") 1))").unwrap();
    assert_eq!(result(&start), Err(WasmError::Fuel(1_000_000)));
    let alloc = wat::parse_str(
        "(module (memory (export \"memory\") 1)
            (func (export \"alloc\") (param i32) (result i32) (loop (br 0)) unreachable)
            (func (export \"execute\") (param i32 i32) (result i64) (i64.const 0)))",
    );
    assert_eq!(result(&alloc.unwrap()), Err(WasmError::Fuel(1_000_000)));
    let calls = wat::parse_str(
        "(module (import \"librefang\" \"host_call\" (func $c (param i32 i32) (result i64)))
            (func $s (drop (call $c (i32.const 0) (i32.const 0)))) (start $s) (memory (export \"memory\") 1))",
    );
    assert!(matches!(result(&calls.unwrap()), Err(WasmError::Module(_))), "a start function cannot call the host");
}

#[test]
fn memory_does_not_grow_beyond_its_limit() {
    // 256 pages are 16 MiB: 40 are there, so that 216 more can be had, and not one beyond.
    let grows = |pages: u32| {
        module(&format!(
            "(func (export \"execute\") (param i32 i32) (result i64)
                (i32.store (i32.const 0) (memory.grow (i32.const {pages})))
                (call $packed (i32.const 0) (i32.const 4)))"
        ))
    };
    assert_eq!(result(&grows(216)), Ok(40_i32.to_le_bytes().to_vec()));
    assert_eq!(result(&grows(217)), Ok((-1_i32).to_le_bytes().to_vec()));
    let large = wat::parse_str("(module (memory (export \"memory\") 257))").unwrap();
    assert!(matches!(result(&large), Err(WasmError::Module(_))));
}

#[test]
fn places_outside_of_its_memory_are_refused() {
    for (at, length) in [(-1, 1), (0, 0x3f_ffff), (40 * 65_536, 1), (40 * 65_536 - 1, 2)] {
        let given = module(&format!(
            "(func (export \"execute\") (param i32 i32) (result i64) (call $packed (i32.const {at}) (i32.const {length})))"
        ));
        let refused = result(&given).unwrap_err();
        assert!(matches!(refused, WasmError::Pointer | WasmError::Payload { .. }), "{at} {length}: {refused}");
        let asks = module(&format!(
            "(func (export \"execute\") (param i32 i32) (result i64) (call $host_call (i32.const {at}) (i32.const {length})))"
        ));
        let host = Noting::default();
        let refused = run_with(&asks, Limits::default(), &host).unwrap_err();
        assert!(matches!(refused, WasmError::Pointer | WasmError::Payload { .. }), "{at} {length}: {refused}");
        assert!(host.calls.lock().is_empty());
        // A line of the log from nowhere is none.
        let logs = module(&format!(
            "(func (export \"execute\") (param i32 i32) (result i64)
                (call $host_log (i32.const 2) (i32.const {at}) (i32.const 9)) (i64.const 0))"
        ));
        let host = Noting::default();
        assert_eq!(run_with(&logs, Limits::default(), &host), Ok(Vec::new()));
        assert_eq!(host.lines.lock().len(), usize::from(at == 0));
    }
    let bad_alloc = wat::parse_str(
        "(module (memory (export \"memory\") 1)
            (func (export \"alloc\") (param i32) (result i32) (i32.const -1))
            (func (export \"execute\") (param i32 i32) (result i64) (i64.const 0)))",
    );
    assert_eq!(result(&bad_alloc.unwrap()), Err(WasmError::Pointer));
}

#[test]
fn what_is_too_long_is_refused() {
    let limits = Limits { payload_bytes: 100, ..Limits::default() };
    let refused = run(&module(ECHO), &[b'x'; 101], limits, &all(), &Noting::default());
    assert_eq!(refused, Err(WasmError::Payload { what: "the input", bytes: 101, max: 100 }));
    let long = "(func (export \"execute\") (param i32 i32) (result i64) (call $packed (i32.const 0) (i32.const 101)))";
    let refused = run_with(&module(long), limits, &Noting::default());
    assert_eq!(refused, Err(WasmError::Payload { what: "the result", bytes: 101, max: 100 }));
    let asks =
        "(func (export \"execute\") (param i32 i32) (result i64) (call $host_call (i32.const 0) (i32.const 101)))";
    let refused = run_with(&module(asks), limits, &Noting::default());
    assert_eq!(refused, Err(WasmError::Payload { what: "a request", bytes: 101, max: 100 }));
    // A long answer is an error for the module, which goes on.
    let host = Noting { answer: Some("x".repeat(200).into()), ..Noting::default() };
    let answer = run_with(&asking("librefang", &json!({ "method": "time_now" })), limits, &host).unwrap();
    assert_eq!(answer, br#"{"error":"the answer has more than 100 bytes"}"#);
    let refused = result(&vec![0; WASM_MODULE_BYTES_MAX + 1]).unwrap_err();
    assert!(matches!(refused, WasmError::Payload { what: "the module", .. }));
}

#[test]
fn the_host_answers_both_names_of_it() {
    for imported in ["librefang", "openfang"] {
        let host = Noting { answer: Some(json!(7)), ..Noting::default() };
        let answer = run_with(&asking(imported, &json!({ "method": "time_now" })), Limits::default(), &host).unwrap();
        assert_eq!((answer, host.calls.lock().clone()), (br#"{"ok":7}"#.to_vec(), vec![HostCall::TimeNow]));
    }
    let answer = result(&asking("librefang", &json!({ "method": "time_now" }))).unwrap();
    assert_eq!(answer, br#"{"error":"the host refuses"}"#);
    let answer = result(&asking("librefang", &json!({ "method": "no_such" }))).unwrap();
    assert_eq!(answer, br#"{"error":"unknown method \"no_such\""}"#);
    let other =
        wat::parse_str("(module (import \"wasi_snapshot_preview1\" \"proc_exit\" (func (param i32))))").unwrap();
    assert!(matches!(result(&other), Err(WasmError::Module(_))));
}

#[test]
fn what_is_not_granted_does_not_reach_the_host() {
    let request = json!({ "method": "net_fetch", "params": { "url": "https://evil.test/" } });
    let host = Noting { answer: Some(Value::Null), ..Noting::default() };
    let granted = Capabilities::parse(["NetConnect(example.com)", "nonsense", "NetConnect"]);
    let answer = run(&asking("librefang", &request), b"{}", Limits::default(), &granted, &host).unwrap();
    assert_eq!(answer, br#"{"error":"not granted: NetConnect(https://evil.test/)"}"#);
    assert!(host.calls.lock().is_empty());
}

#[test]
fn calls_of_the_host_take_fuel_and_time() {
    let spawn = asking("librefang", &json!({ "method": "agent_spawn", "params": { "manifest": "" } }));
    let host = Noting { answer: Some(Value::Null), ..Noting::default() };
    let limits = |fuel| Limits { fuel, ..Limits::default() };
    assert_eq!(run_with(&spawn, limits(200_000), &host), Err(WasmError::Fuel(200_000)));
    assert!(host.calls.lock().is_empty(), "it is not begun without the fuel");
    run_with(&spawn, limits(201_000), &host).unwrap();
    assert_eq!(host.calls.lock().len(), 1);
    let slow = Noting { takes: Duration::from_millis(30), answer: Some(Value::Null), ..Noting::default() };
    let limits = Limits { time: Duration::from_millis(20), ..Limits::default() };
    assert_eq!(
        run_with(&asking("librefang", &json!({ "method": "time_now" })), limits, &slow),
        Err(WasmError::Time(0))
    );
}

/// A module that calls the host again and again has all of its answers; one that does so while it makes room for an answer is
/// stopped.
#[test]
fn calls_of_the_host_follow_one_another_and_do_not_nest_without_end() {
    let request = r#"{\"method\":\"time_now\"}"#;
    let many = module(&format!(
        "(data (i32.const 16) \"{request}\")
         (func (export \"execute\") (param i32 i32) (result i64)
            (local $n i32) (local $last i64)
            (loop
                (local.set $last (call $host_call (i32.const 16) (i32.const 21)))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if 0 (i32.lt_u (local.get $n) (i32.const 100))))
            (local.get $last))"
    ));
    let host = Noting { answer: Some(json!("t")), ..Noting::default() };
    assert_eq!(run_with(&many, Limits::default(), &host).unwrap(), br#"{"ok":"t"}"#);
    assert_eq!(host.calls.lock().len(), 100);
    // `alloc` itself asks the host.
    let nesting = |when: &str| {
        wat::parse_str(format!(
            "(module
                (import \"librefang\" \"host_call\" (func $host_call (param i32 i32) (result i64)))
                (memory (export \"memory\") 1)
                (data (i32.const 16) \"{request}\")
                (global $calls (mut i32) (i32.const 0))
                (func (export \"alloc\") (param i32) (result i32)
                    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
                    (if ({when} (global.get $calls) (i32.const 2))
                        (then (drop (call $host_call (i32.const 16) (i32.const 21)))))
                    (i32.const 1024))
                (func (export \"execute\") (param i32 i32) (result i64)
                    (call $host_call (i32.const 16) (i32.const 21))))"
        ))
        .expect("a module")
    };
    let host = Noting { answer: Some(json!("t")), ..Noting::default() };
    assert_eq!(run_with(&nesting("i32.ge_u"), Limits::default(), &host), Err(WasmError::Depth));
    let once = Noting { answer: Some(json!("t")), ..Noting::default() };
    assert_eq!(run_with(&nesting("i32.eq"), Limits::default(), &once).unwrap(), br#"{"ok":"t"}"#);
    assert_eq!(once.calls.lock().len(), 2);
}

#[test]
fn lines_of_the_log_are_cut_and_counted() {
    let length = WASM_LOG_LINE_BYTES_MAX + 100;
    let times = WASM_LOG_LINES_MAX + 10;
    let logs = module(&format!(
        "(func (export \"execute\") (param i32 i32) (result i64)
            (local $n i32)
            (memory.fill (i32.const 0) (i32.const 120) (i32.const {length}))
            (loop
                (call $host_log (i32.const 2) (i32.const 0) (i32.const {length}))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if 0 (i32.lt_u (local.get $n) (i32.const {times}))))
            (i64.const 0))"
    ));
    let host = Noting::default();
    run_with(&logs, Limits::default(), &host).unwrap();
    let lines = host.lines.lock();
    assert_eq!((lines.len(), lines[0].1.len(), lines[0].0), (WASM_LOG_LINES_MAX, WASM_LOG_LINE_BYTES_MAX, 2));
}

#[test]
fn modules_that_do_not_fit_or_fail_say_so() {
    assert!(matches!(result(b"nonsense"), Err(WasmError::Module(_))));
    let without = |text: &str| result(&wat::parse_str(text).unwrap()).unwrap_err().to_string();
    assert!(without("(module)").contains("must export `memory`"));
    assert!(without("(module (memory (export \"memory\") 1))").contains("must export `alloc`"));
    let no_execute =
        "(module (memory (export \"memory\") 1) (func (export \"alloc\") (param i32) (result i32) (local.get 0))
        (func (export \"execute\")))";
    assert!(without(no_execute).contains("must export `execute`"));
    let fails = module("(func (export \"execute\") (param i32 i32) (result i64) unreachable)");
    assert!(matches!(result(&fails), Err(WasmError::Trap(_))));
    let recursive =
        module("(func $e (export \"execute\") (param i32 i32) (result i64) (call $e (i32.const 0) (i32.const 0)))");
    assert!(matches!(result(&recursive), Err(WasmError::Trap(_) | WasmError::Fuel(_))));
}
