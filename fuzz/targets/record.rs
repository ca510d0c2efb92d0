//! Stored rows: any bytes are read or refused.
#![no_main]

use agentsvc_systems::record;

libfuzzer_sys::fuzz_target!(|row: (&[u8], &[u8])| {
    let _ = record::decode_world(row.0, row.1);
    let _ = record::parse_message_key(row.0);
    let _ = record::parse_audit_key(row.0);
});
