//! Limits of WebAssembly modules.

agentsvc_components::limits! {
    pub const ALL;
    /// Fuel of one run of a WASM module, about one unit an instruction. More: the run fails.
    pub const WASM_FUEL_MAX: u64 = 1_000_000;
    /// Seconds of one run of a WASM module, calls of the host included. Longer: the run fails.
    pub const WASM_SECS_MAX: u64 = 30;
    /// WASM modules that run at once. More wait.
    pub const WASM_RUNS_MAX: usize = 32;
    /// Those of the agents of a user with a limited role, or of a family, which is an agent that a client created and all that descend
    /// from it. More wait.
    pub const WASM_RUNS_FAMILY_MAX: usize = 8;
    /// WASM modules that are compiled at once. More wait, and the time of their runs passes.
    pub const WASM_COMPILATIONS_MAX: usize = 2;
    /// Bytes of memory of a WASM module. More: it gets none.
    pub const WASM_MEMORY_BYTES_MAX: usize = 16 << 20;
    /// Bytes of the input and of the result of a WASM module, and of each of its requests to the host. Longer: the run fails. A
    /// longer answer of the host is an error for the module.
    pub const WASM_PAYLOAD_BYTES_MAX: usize = 1 << 20;
    /// Bytes of a WASM module. Longer: it does not run.
    pub const WASM_MODULE_BYTES_MAX: usize = 8 << 20;
    /// Bytes of one line of the log of a WASM module; the rest is cut off.
    pub const WASM_LOG_LINE_BYTES_MAX: usize = 4 << 10;
    /// Lines of the log of one run of a WASM module. More are dropped.
    pub const WASM_LOG_LINES_MAX: usize = 200;
    /// WASM modules that are kept compiled. More: those that were used longest ago go.
    pub const WASM_CACHE_MODULES_MAX: usize = 16;
    /// Bytes of the WASM modules that are kept compiled. More: as too many of them.
    pub const WASM_CACHE_BYTES_MAX: usize = 16 << 20;
}
