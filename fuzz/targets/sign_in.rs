//! See `src/sign_in.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agentsvc_fuzz::sign_in::run(input));
