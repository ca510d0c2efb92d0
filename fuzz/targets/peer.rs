//! See `src/peer.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agentsvc_fuzz::peer::run(input));
