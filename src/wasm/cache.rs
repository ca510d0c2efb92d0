//! Modules that were compiled, by the hash of their bytes. Each has an engine of its own: an engine keeps the code of all of its
//! modules until it goes.

use std::sync::Arc;
use std::time::Instant;

use agentsvc_systems::wasm::limits::{WASM_CACHE_BYTES_MAX, WASM_CACHE_MODULES_MAX, WASM_COMPILATIONS_MAX};
use parking_lot::{Condvar, Mutex};
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

/// Free places for compilations: one takes a core for as long as its module is large, and counts no fuel.
static PLACES: Mutex<usize> = Mutex::new(WASM_COMPILATIONS_MAX);
static FREED: Condvar = Condvar::new();

/// A place for a compilation, until it is dropped.
struct Place;

impl Place {
    /// Waits for one; `None` after the deadline.
    fn wait(deadline: Instant) -> Option<Self> {
        let mut free = PLACES.lock();
        FREED.wait_while_until(&mut free, |free| *free == 0, deadline);
        *free = free.checked_sub(1)?;
        Some(Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *PLACES.lock() += 1;
        FREED.notify_one();
    }
}

/// The module of these bytes. `None`: the deadline passed before it could be compiled.
pub(super) fn compiled(bytes: &[u8], deadline: Instant) -> Result<Option<Arc<Compiled>>, WasmError> {
    let hash: Hash = Sha256::digest(bytes).into();
    if let Some(found) = find(&mut CACHE.lock(), &hash) {
        return Ok(Some(found));
    }
    let Some(_place) = Place::wait(deadline) else { return Ok(None) };
    // Another call may have compiled it meanwhile.
    if let Some(found) = find(&mut CACHE.lock(), &hash) {
        return Ok(Some(found));
    }
    // Compiled outside of the lock of the cache.
    let compiled = Arc::new(compile(bytes)?);
    keep(&mut CACHE.lock(), hash, Arc::clone(&compiled));
    Ok(Some(compiled))
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
    use std::time::Duration;

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
        let later = Instant::now() + Duration::from_secs(60);
        let first = compiled(bytes, later).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &compiled(bytes, later).unwrap().unwrap()));
        assert!(matches!(compiled(b"no module", later), Err(WasmError::Module(_))));
    }

    #[test]
    fn few_are_compiled_at_once_and_none_waits_beyond_its_time() {
        let later = Instant::now() + Duration::from_secs(60);
        let held: Vec<Place> = (0..WASM_COMPILATIONS_MAX).map(|_| Place::wait(later).unwrap()).collect();
        let other = b"\0asm\x01\0\0\0\0\x02\x01a";
        assert!(compiled(other, Instant::now()).unwrap().is_none());
        let waiting = std::thread::spawn(move || compiled(other, later).unwrap().is_some());
        drop(held);
        assert!(waiting.join().unwrap());
    }
}
