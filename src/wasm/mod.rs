//! WebAssembly modules of skills: untrusted code that computes within fuel, time and memory, and reaches the rest of the
//! daemon only through [`Host`].
//!
//! A module exports `memory`, `alloc(i32) -> i32` and `execute(ptr, len) -> i64`, whose result is `ptr << 32 | len`. It may
//! import `host_call(ptr, len) -> i64` and `host_log(level, ptr, len)`. Requests and answers are JSON.
//!
//! [`run`] blocks: it belongs on a thread that may.

mod cache;
mod call;
mod capability;
mod guest;
mod host;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use agentsvc_systems::wasm::limits::{
    WASM_FUEL_MAX, WASM_MEMORY_BYTES_MAX, WASM_MODULE_BYTES_MAX, WASM_PAYLOAD_BYTES_MAX, WASM_SECS_MAX,
};

pub use call::HostCall;
pub use capability::Capabilities;
pub use host::run_in_call;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "wasm",
    uses: &["agent", "approval", "injection", "manifest", "memory", "taint", "tool", "turn"],
    ..Domain::EMPTY
};

/// What one run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fuel: about one unit an instruction, and more for some calls of the host.
    pub fuel: u64,
    /// Time by the wall clock, calls of the host included.
    pub time: Duration,
    /// Bytes of its memory.
    pub memory_bytes: usize,
    /// Bytes of its input, its result, and of each request to the host and answer.
    pub payload_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: WASM_FUEL_MAX,
            time: Duration::from_secs(WASM_SECS_MAX),
            memory_bytes: WASM_MEMORY_BYTES_MAX,
            payload_bytes: WASM_PAYLOAD_BYTES_MAX,
        }
    }
}

/// Carries out what a module asks for and is granted.
pub trait Host {
    /// Does it, until `deadline` at most. Blocks.
    ///
    /// # Errors
    /// Why not, for the module.
    fn call(&self, call: HostCall, deadline: Instant) -> Result<serde_json::Value, String>;

    /// Takes a line of the module's log; it may hold anything.
    fn log(&self, level: i32, line: &str);

    /// Does nobody want the result any more?
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WasmError {
    /// The module cannot be used.
    #[error("the WASM module cannot be used: {0}")]
    Module(String),
    /// The module does not export what it must.
    #[error("the WASM module must export {0}")]
    Export(&'static str),
    /// The fuel is used up.
    #[error("the WASM module used up its fuel of {0} units")]
    Fuel(u64),
    /// The time is over.
    #[error("the WASM module did not finish within {0} seconds")]
    Time(u64),
    /// The call was stopped.
    #[error("the WASM module was stopped")]
    Stopped,
    /// It gave a place outside of its memory.
    #[error("the WASM module named a place outside of its memory")]
    Pointer,
    /// Something is too long.
    #[error("{what} of the WASM module has {bytes} bytes; the limit is {max}")]
    Payload {
        /// What.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// It called the host from the function that makes room for an answer, again and again.
    #[error("the WASM module called the host within calls of the host too deeply")]
    Depth,
    /// It ended itself, or did what is not allowed.
    #[error("the WASM module failed: {0}")]
    Trap(String),
}

/// Runs `execute` of a module on an envelope and gives its result. Blocks until it ends, at most for the time of `limits`.
///
/// # Errors
/// [`WasmError`]; what the host did before stays done.
pub fn run(
    module: &[u8],
    envelope: &[u8],
    limits: Limits,
    capabilities: &Capabilities,
    host: &dyn Host,
) -> Result<Vec<u8>, WasmError> {
    let deadline = Instant::now() + limits.time;
    bounded("the module", module.len(), WASM_MODULE_BYTES_MAX)?;
    bounded("the input", envelope.len(), limits.payload_bytes)?;
    let compiled = cache::compiled(module, deadline)?.ok_or(WasmError::Time(limits.time.as_secs()))?;
    guest::Guest::start(&compiled, limits, deadline, capabilities, host)?.execute(envelope)
}

/// Is a module refused, or stopped, that burns fuel or time? For the report of security systems.
pub(crate) fn metering_holds() -> bool {
    /// Answers nothing.
    struct Deaf;
    impl Host for Deaf {
        fn call(&self, _: HostCall, _: Instant) -> Result<serde_json::Value, String> {
            Err(String::new())
        }

        fn log(&self, _: i32, _: &str) {}
    }
    let stopped = |limits| run(ENDLESS, b"{}", limits, &Capabilities::default(), &Deaf);
    let fuel = Limits { fuel: 10_000, ..Limits::default() };
    let time = Limits { time: Duration::ZERO, ..Limits::default() };
    stopped(fuel) == Err(WasmError::Fuel(10_000)) && stopped(time) == Err(WasmError::Time(0))
}

/// A module whose `execute` never ends: `(loop br 0)`.
const ENDLESS: &[u8] = &[
    0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic, version
    0x01, 0x0c, 0x02, 0x60, 0x01, 0x7f, 0x01, 0x7f, 0x60, 0x02, 0x7f, 0x7f, 0x01,
    0x7e, // (i32)->i32, (i32,i32)->i64
    0x03, 0x03, 0x02, 0x00, 0x01, // two functions
    0x05, 0x03, 0x01, 0x00, 0x01, // a memory of one page
    0x07, 0x1c, 0x03, // three exports
    0x06, b'm', b'e', b'm', b'o', b'r', b'y', 0x02, 0x00, //
    0x05, b'a', b'l', b'l', b'o', b'c', 0x00, 0x00, //
    0x07, b'e', b'x', b'e', b'c', b'u', b't', b'e', 0x00, 0x01, //
    0x0a, 0x0f, 0x02, // two bodies
    0x04, 0x00, 0x41, 0x00, 0x0b, // i32.const 0
    0x08, 0x00, 0x03, 0x40, 0x0c, 0x00, 0x0b, 0x00, 0x0b, // loop br 0 end unreachable
];

/// Refuses what is too long.
fn bounded(what: &'static str, bytes: usize, max: usize) -> Result<(), WasmError> {
    if bytes > max { Err(WasmError::Payload { what, bytes, max }) } else { Ok(()) }
}
