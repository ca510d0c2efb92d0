//! Modules that were compiled, by the hash of their bytes. Each has an engine of its own: an engine keeps the code of all of its
//! modules until it goes.

use std::sync::Arc;

use agentsvc_systems::wasm::limits::{WASM_CACHE_BYTES_MAX, WASM_CACHE_MODULES_MAX};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wasmi::{CompilationMode, Config, Engine, Module};

use super::WasmError;

/// A module that can run.
pub(super) struct Compiled {
    pub(super) engine: Engine,
    pub(super) module: Module,
    /// Bytes that it was compiled from.
    bytes: usize,
}

type Hash = [u8; 32];

/// The last one is the one that was used last.
static CACHE: Mutex<Vec<(Hash, Arc<Compiled>)>> = Mutex::new(Vec::new());

/// The module of these bytes.
pub(super) fn compiled(bytes: &[u8]) -> Result<Arc<Compiled>, WasmError> {
    let hash: Hash = Sha256::digest(bytes).into();
    if let Some(found) = find(&mut CACHE.lock(), &hash) {
        return Ok(found);
    }
    // Compiled outside of the lock: it takes as long as the module is large.
    let compiled = Arc::new(compile(bytes)?);
    keep(&mut CACHE.lock(), hash, Arc::clone(&compiled));
    Ok(compiled)
}

fn compile(bytes: &[u8]) -> Result<Compiled, WasmError> {
    let mut config = Config::default();
    // Eager: a function that is translated when it is first called would take its fuel, and end the call without any.
    config.compilation_mode(CompilationMode::Eager).consume_fuel(true);
    config.ignore_custom_sections(true).set_max_cached_stacks(1);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, bytes).map_err(|error| WasmError::Module(error.to_string()))?;
    Ok(Compiled { engine, module, bytes: bytes.len() })
}

fn find(cache: &mut Vec<(Hash, Arc<Compiled>)>, hash: &Hash) -> Option<Arc<Compiled>> {
    let at = cache.iter().position(|(known, _)| known == hash)?;
    let entry = cache.remove(at);
    let found = Arc::clone(&entry.1);
    cache.push(entry);
    Some(found)
}

/// Keeps it; those that were used longest ago go.
fn keep(cache: &mut Vec<(Hash, Arc<Compiled>)>, hash: Hash, compiled: Arc<Compiled>) {
    cache.retain(|(known, _)| *known != hash);
    if compiled.bytes > WASM_CACHE_BYTES_MAX {
        return;
    }
    cache.push((hash, compiled));
    let is_over = |cache: &[(Hash, Arc<Compiled>)]| {
        cache.len() > WASM_CACHE_MODULES_MAX
            || cache.iter().map(|(_, compiled)| compiled.bytes).sum::<usize>() > WASM_CACHE_BYTES_MAX
    };
    while is_over(cache) {
        cache.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(bytes: usize) -> Arc<Compiled> {
        let mut compiled = compile(b"\0asm\x01\0\0\0").unwrap();
        compiled.bytes = bytes;
        Arc::new(compiled)
    }

    #[test]
    fn those_that_were_used_longest_ago_go() {
        let mut cache = Vec::new();
        let hash = |n: usize| [u8::try_from(n).unwrap(); 32];
        (0..WASM_CACHE_MODULES_MAX).for_each(|n| keep(&mut cache, hash(n), module(8)));
        assert!(find(&mut cache, &hash(0)).is_some());
        keep(&mut cache, hash(99), module(8));
        assert_eq!(cache.len(), WASM_CACHE_MODULES_MAX);
        assert!(find(&mut cache, &hash(1)).is_none() && find(&mut cache, &hash(0)).is_some());
        // Large ones take the room of many; too large ones none.
        keep(&mut cache, hash(98), module(WASM_CACHE_BYTES_MAX));
        assert_eq!(cache.len(), 1);
        keep(&mut cache, hash(97), module(WASM_CACHE_BYTES_MAX + 1));
        assert!(find(&mut cache, &hash(97)).is_none() && find(&mut cache, &hash(98)).is_some());
    }

    #[test]
    fn the_same_bytes_are_compiled_once() {
        let bytes = b"\0asm\x01\0\0\0";
        let first = compiled(bytes).unwrap();
        assert!(Arc::ptr_eq(&first, &compiled(bytes).unwrap()));
        assert!(matches!(compiled(b"no module"), Err(WasmError::Module(_))));
    }
}
