//! The build script: packs the vocabularies of OpenAI's tokenizers, which tiktoken-rs brings as 5 MB of text, into 1.5 MB.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use tiktoken_rs::{CoreBPE, cl100k_base, o200k_base};

fn main() {
    let rerun = b"cargo::rerun-if-changed=src/model/pack_tokens.rs\n";
    std::io::stdout().write_all(rerun).expect("cargo reads what a build script says");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let vocabularies: [(_, fn() -> _); 2] = [("o200k", o200k_base), ("cl100k", cl100k_base)];
    for (name, load) in vocabularies {
        let packed = pack(&load().expect("the vocabulary is well-formed")).expect("memory takes all that is written");
        std::fs::write(Path::new(&out).join(name), packed).expect("OUT_DIR takes files");
    }
}

/// The tokens in the order of their ranks, each behind its length, compressed.
fn pack(encoding: &CoreBPE) -> std::io::Result<Vec<u8>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    // Special tokens stand behind a gap.
    for token in (0..).map_while(|rank| encoding.decode_bytes(&[rank]).ok()) {
        packed.write_all(&[u8::try_from(token.len()).expect("tokens are short")])?;
        packed.write_all(&token)?;
    }
    packed.finish()
}
