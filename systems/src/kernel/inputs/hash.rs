//! Two hashes: a quick one that tells records apart, and the hash of a world.

use sha2::{Digest, Sha256};

/// Multipliers of [`quick_hash`]: the golden ratio and pi in binary. Part of the log's format.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0x2437_54aa_98e5_6d3b;

const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Eight bytes that tell one value from another, the same on every machine and in every release. Nobody is kept from
/// making two values of one hash; it finds mistakes, not enemies.
#[must_use]
pub fn quick_hash(bytes: &[u8]) -> u64 {
    let mut hash = fold(bytes.len() as u64 ^ FIRST, SECOND) | 1;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        // The sum keeps a word that happens to equal the hash from wiping it out.
        hash = fold(hash ^ u64::from_le_bytes(word), FIRST).wrapping_add(hash.rotate_left(23));
    }
    fold(hash ^ SECOND, FIRST)
}

/// The hash of a world: SHA-256 over all rows of the world space in the order of keys, each key and value behind its
/// length in four bytes, big-endian. Equal for worlds of equal records, wherever they are stored.
pub fn world_hash<'a>(rows: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (key, value) in rows {
        for part in [key, value] {
            hash.update(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            hash.update(part);
        }
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_quick_hash_stays_as_it_was_written_to_logs() {
        assert_eq!(quick_hash(b""), quick_hash(&[]));
        let hashes = [quick_hash(b""), quick_hash(b"agentsvc"), quick_hash(&[7; 100])];
        assert_eq!(hashes, [0xcf8d_cbb8_ebe6_d315, 0xf229_46a6_f3ec_d2dc, 0x8a44_fd67_b992_9900]);
    }

    #[test]
    fn values_that_differ_little_have_other_hashes() {
        let mut seen = BTreeSet::new();
        let value: Vec<u8> = (0..64).collect();
        assert!(seen.insert(quick_hash(&value)));
        for at in 0..value.len() {
            for bit in 0..8 {
                let mut other = value.clone();
                other[at] ^= 1 << bit;
                assert!(seen.insert(quick_hash(&other)), "bit {bit} of byte {at}");
            }
        }
        for length in 0..64 {
            assert!(seen.insert(quick_hash(&vec![0; length])), "{length} zeros");
        }
    }

    #[test]
    fn the_world_hash_parts_keys_from_values() {
        let hash = |rows: &[(&'static [u8], &'static [u8])]| world_hash(rows.iter().copied());
        assert_ne!(hash(&[(b"ab", b"c")]), hash(&[(b"a", b"bc")]));
        assert_ne!(hash(&[(b"a", b"b"), (b"c", b"d")]), hash(&[(b"c", b"d"), (b"a", b"b")]));
        assert_eq!(hash(&[]), <[u8; 32]>::from(Sha256::digest(b"")));
    }
}
