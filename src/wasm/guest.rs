//! One module that runs. It runs in slices of fuel, so that the clock is looked at between them. A call of the host leaves the
//! module, is carried out, and goes back into it with the answer.

use std::time::Instant;

use agentsvc_systems::wasm::limits::{WASM_LOG_LINE_BYTES_MAX, WASM_LOG_LINES_MAX};
use serde_json::{Value, json};
use wasmi::errors::HostError;
use wasmi::{
    Caller, Error, Extern, Linker, Memory, Store, StoreLimits, StoreLimitsBuilder, TrapCode, TypedFunc,
    TypedResumableCall, Val, WasmResults,
};

use super::cache::Compiled;
use super::call::Asked;
use super::{Capabilities, Host, Limits, WasmError, bounded};

/// Fuel between two looks at the clock.
const SLICE: u64 = 50_000;
/// Calls of the host within calls of the host.
const DEPTH_MAX: usize = 4;
/// Modules whose functions the host gives; older builds name the second.
const IMPORTED: [&str; 2] = ["librefang", "openfang"];

/// What the functions of the host leave for what drives the module.
struct State {
    limits: StoreLimits,
    /// Bytes that a request may have.
    payload_bytes: usize,
    /// What the module asks for.
    request: Option<Result<Vec<u8>, WasmError>>,
    log: Vec<(i32, String)>,
    /// Lines so far.
    lines: usize,
}

/// The module is left, because it calls the host.
#[derive(Debug)]
struct Left;

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the host is called")
    }
}

impl HostError for Left {}

/// A module that runs.
pub(super) struct Guest<'a> {
    store: Store<State>,
    memory: Memory,
    alloc: TypedFunc<i32, i32>,
    execute: TypedFunc<(i32, i32), i64>,
    /// Fuel that the store does not have yet.
    left: u64,
    limits: Limits,
    deadline: Instant,
    capabilities: &'a Capabilities,
    host: &'a dyn Host,
}

impl<'a> Guest<'a> {
    /// Makes an instance of a module.
    pub(super) fn start(
        compiled: &Compiled,
        limits: Limits,
        deadline: Instant,
        capabilities: &'a Capabilities,
        host: &'a dyn Host,
    ) -> Result<Self, WasmError> {
        let bounds = StoreLimitsBuilder::new().memory_size(limits.memory_bytes).memories(1).tables(8).instances(1);
        let bounds = bounds.table_elements(100_000).build();
        let payload_bytes = limits.payload_bytes;
        let state = State { limits: bounds, payload_bytes, request: None, log: Vec::new(), lines: 0 };
        let mut store = Store::new(&compiled.engine, state);
        store.limiter(|state| &mut state.limits);
        let unusable = |error: Error| WasmError::Module(error.to_string());
        // A start function cannot call the host, and is bounded by the fuel alone.
        store.set_fuel(limits.fuel).map_err(unusable)?;
        let instance = linker(compiled)?.instantiate_and_start(&mut store, &compiled.module);
        let instance = instance.map_err(|error| match error.as_trap_code() {
            Some(TrapCode::OutOfFuel) => WasmError::Fuel(limits.fuel),
            _ => unusable(error),
        })?;
        let left = store.get_fuel().map_err(unusable)?;
        store.set_fuel(0).map_err(unusable)?;
        let memory = instance.get_memory(&store, "memory").ok_or(WasmError::Export("`memory`"))?;
        let alloc = instance.get_typed_func(&store, "alloc");
        let alloc = alloc.map_err(|_| WasmError::Export("`alloc`, a function of an i32 that returns an i32"))?;
        let execute = instance.get_typed_func(&store, "execute");
        let execute = execute.map_err(|_| WasmError::Export("`execute`, a function of two i32 that returns an i64"))?;
        Ok(Self { store, memory, alloc, execute, left, limits, deadline, capabilities, host })
    }

    /// Gives it the envelope, and takes its result.
    pub(super) fn execute(mut self, envelope: &[u8]) -> Result<Vec<u8>, WasmError> {
        let place = self.put(envelope, 0)?;
        let call = self.execute.call_resumable(&mut self.store, (place.0.cast_signed(), place.1.cast_signed()));
        let packed = self.drive(call, 0);
        self.flush_log();
        let (at, length) = unpacked(packed?);
        bounded("the result", length, self.limits.payload_bytes)?;
        slice(self.memory.data(&self.store), at, length).map(<[u8]>::to_vec).ok_or(WasmError::Pointer)
    }

    /// Puts bytes into its memory, where it makes room for them.
    fn put(&mut self, bytes: &[u8], depth: usize) -> Result<(u32, u32), WasmError> {
        let length = u32::try_from(bytes.len()).map_err(|_| WasmError::Pointer)?;
        let call = self.alloc.call_resumable(&mut self.store, length.cast_signed());
        let at = self.drive(call, depth)?.cast_unsigned();
        let start = usize::try_from(at).map_err(|_| WasmError::Pointer)?;
        let place =
            start.checked_add(bytes.len()).and_then(|end| self.memory.data_mut(&mut self.store).get_mut(start..end));
        place.ok_or(WasmError::Pointer)?.copy_from_slice(bytes);
        Ok((at, length))
    }

    /// Lets it run until a call of it ends.
    fn drive<R: WasmResults>(
        &mut self,
        mut call: Result<TypedResumableCall<R>, Error>,
        depth: usize,
    ) -> Result<R, WasmError> {
        loop {
            call = match call.map_err(|error| self.failure(&error))? {
                TypedResumableCall::Finished(result) => return Ok(result),
                TypedResumableCall::OutOfFuel(stopped) => {
                    self.refuel(stopped.required_fuel())?;
                    stopped.resume(&mut self.store)
                }
                TypedResumableCall::HostTrap(stopped) => {
                    let answer = self.answer(depth)?;
                    stopped.resume(&mut self.store, &[Val::I64(answer)])
                }
            };
        }
    }

    /// Gives it the fuel of another slice, if there is any, and time.
    fn refuel(&mut self, required: u64) -> Result<(), WasmError> {
        self.look_at_clock()?;
        let has = self.fuel();
        let more = required.max(SLICE).saturating_sub(has).min(self.left);
        if has + more < required {
            return Err(WasmError::Fuel(self.limits.fuel));
        }
        self.left -= more;
        self.set_fuel(has + more)
    }

    /// Takes fuel for what the host does.
    fn charge(&mut self, cost: u64) -> Result<(), WasmError> {
        let has = self.fuel();
        let all = self.left + has;
        let rest = all.checked_sub(cost).ok_or(WasmError::Fuel(self.limits.fuel))?;
        self.left = rest.saturating_sub(has);
        self.set_fuel(rest - self.left)
    }

    fn fuel(&self) -> u64 {
        self.store.get_fuel().unwrap_or_default()
    }

    fn set_fuel(&mut self, fuel: u64) -> Result<(), WasmError> {
        self.store.set_fuel(fuel).map_err(|error| WasmError::Trap(error.to_string()))
    }

    fn look_at_clock(&self) -> Result<(), WasmError> {
        if self.host.is_cancelled() {
            return Err(WasmError::Stopped);
        }
        if Instant::now() < self.deadline { Ok(()) } else { Err(WasmError::Time(self.limits.time.as_secs())) }
    }

    /// Carries out what it asks for, and puts the answer into its memory.
    fn answer(&mut self, depth: usize) -> Result<i64, WasmError> {
        let request = self.store.data_mut().request.take().unwrap_or(Err(WasmError::Depth))?;
        if depth >= DEPTH_MAX {
            return Err(WasmError::Depth);
        }
        self.flush_log();
        self.look_at_clock()?;
        let done = match Asked::read(&request) {
            Ok(asked) => {
                self.charge(asked.fuel())?;
                let granted = self.capabilities.allow(&asked.call);
                granted.and_then(|()| self.host.call(asked.call, self.deadline))
            }
            Err(why) => Err(why),
        };
        self.look_at_clock()?;
        let (at, length) = self.put(&answered(done, self.limits.payload_bytes), depth + 1)?;
        Ok(((u64::from(at) << 32) | u64::from(length)).cast_signed())
    }

    fn flush_log(&mut self) {
        for (level, line) in std::mem::take(&mut self.store.data_mut().log) {
            self.host.log(level, &line);
        }
    }

    fn failure(&mut self, error: &Error) -> WasmError {
        match error.as_trap_code() {
            Some(TrapCode::OutOfFuel) => WasmError::Fuel(self.limits.fuel),
            _ => WasmError::Trap(error.to_string()),
        }
    }
}

/// An answer as the module reads it.
fn answered(done: Result<Value, String>, max: usize) -> Vec<u8> {
    let answer = match done {
        Ok(value) => json!({ "ok": value }),
        Err(why) => json!({ "error": why }),
    };
    let text = answer.to_string();
    if text.len() <= max {
        return text.into_bytes();
    }
    json!({ "error": format!("the answer has more than {max} bytes") }).to_string().into_bytes()
}

/// What the module may import.
fn linker(compiled: &Compiled) -> Result<Linker<State>, WasmError> {
    let mut linker = Linker::new(&compiled.engine);
    for module in IMPORTED {
        let named = linker.func_wrap(module, "host_call", host_call);
        named.map_err(|error| WasmError::Module(error.to_string()))?;
        let named = linker.func_wrap(module, "host_log", host_log);
        named.map_err(|error| WasmError::Module(error.to_string()))?;
    }
    Ok(linker)
}

/// Takes the request out of the module, and leaves it.
fn host_call(mut caller: Caller<'_, State>, at: i32, length: i32) -> Result<i64, Error> {
    let max = caller.data().payload_bytes;
    let length = length.cast_unsigned() as usize;
    let read = || {
        bounded("a request", length, max)?;
        let bytes = bytes(&caller, at, length).ok_or(WasmError::Pointer)?;
        Ok(bytes)
    };
    let request = read();
    caller.data_mut().request = Some(request);
    Err(Error::host(Left))
}

/// Takes a line of the log. A place outside of the memory is no line.
fn host_log(mut caller: Caller<'_, State>, level: i32, at: i32, length: i32) {
    if caller.data().lines >= WASM_LOG_LINES_MAX {
        return;
    }
    let length = (length.cast_unsigned() as usize).min(WASM_LOG_LINE_BYTES_MAX);
    let Some(bytes) = bytes(&caller, at, length) else { return };
    let line = String::from_utf8_lossy(&bytes).into_owned();
    let state = caller.data_mut();
    state.lines += 1;
    state.log.push((level, line));
}

fn bytes(caller: &Caller<'_, State>, at: i32, length: usize) -> Option<Vec<u8>> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory)?;
    slice(memory.data(caller), at.cast_unsigned() as usize, length).map(<[u8]>::to_vec)
}

fn slice(memory: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    memory.get(at..at.checked_add(length)?)
}

/// Pointer and length of a result.
const fn unpacked(packed: i64) -> (usize, usize) {
    let packed = packed.cast_unsigned();
    ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize)
}
