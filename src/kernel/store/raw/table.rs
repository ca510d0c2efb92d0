//! A data table of the engine, read without its index: its blocks from the beginning to the end. Each has a header and both
//! have checksums. The blocks with rows come first; between the others there is more that the rows do not need.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use agentsvc_systems::kernel::record;
use lsm_tree::coding::Decode;
use lsm_tree::table::block::decoder::ParsedItem;
use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::{Block, DataBlock};
use lsm_tree::{CompressionType, InternalValue};
use xxhash_rust::xxh3::xxh3_128;

use super::tree::{Listed, TABLE_BYTES_MAX};
use super::units::{Units, units};
use crate::kernel::disk;

/// A block whose checksums are right.
struct Intact {
    at: usize,
    header: Header,
}

/// The readable rows of a table.
pub(super) struct Table {
    path: PathBuf,
    blocks: Vec<Intact>,
    compression: CompressionType,
    /// What the sequence numbers in it are counted from.
    base_seqno: u64,
    /// Its file is not what the engine wrote.
    pub(super) is_damaged: bool,
    /// Where rows are lost, one text each.
    pub(super) lost: Vec<String>,
}

/// A row of a table: key, sequence number, and value unless it was removed.
pub(super) type Version = (Vec<u8>, u64, Option<Vec<u8>>);

impl Table {
    /// Reads a table; `listed` is what the engine knows of it.
    pub(super) fn read(path: &Path, listed: Option<&Listed>) -> io::Result<Self> {
        let bytes = disk::read_small(path, TABLE_BYTES_MAX)?;
        let found = units(bytes.len(), |at| block(&bytes, at), |at| block(&bytes, at));
        let is_damaged = listed.is_some_and(|listed| listed.checksum != xxh3_128(&bytes));
        let lost_type = Header::decode_from(&mut &bytes[found.gap.start..]).ok().map(|header| header.block_type);
        let compression = compression(&bytes, &found);
        let mut table = Self {
            path: path.to_owned(),
            blocks: Vec::new(),
            compression,
            base_seqno: listed.map_or(0, |listed| listed.base_seqno),
            is_damaged,
            lost: Vec::new(),
        };
        table.find_rows(&bytes, found, lost_type)?;
        Ok(table)
    }

    /// Keeps the blocks with rows, and says between which keys others are lost.
    fn find_rows(&mut self, bytes: &[u8], found: Units<Intact>, lost_type: Option<BlockType>) -> io::Result<()> {
        let is_data = |block: &Intact| block.header.block_type == BlockType::Data;
        // Blocks of other types stand behind the rows.
        let is_complete = found.head.iter().any(|block| !is_data(block));
        let ends = found.head.iter().chain(&found.tail).any(|block| !is_data(block));
        let in_head = found.head.iter().filter(|block| is_data(block)).count();
        let has_gap = !found.tail.is_empty() && lost_type.is_none_or(|kind| kind == BlockType::Data);
        self.blocks = found.head.into_iter().chain(found.tail).filter(is_data).collect();
        let mut edges = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let rows = self.rows_of(&bytes[block.at..])?;
            edges.push((rows.first().map(key), rows.last().map(key)));
        }
        let after = |index: usize| index.checked_sub(1).and_then(|last| edges.get(last)?.1.clone());
        if has_gap && !is_complete {
            let (from, to) = (after(in_head), edges.get(in_head).and_then(|edge| edge.0.clone()));
            self.lost.push(between(from, to));
        } else if !ends {
            self.lost.push(between(after(edges.len()), None));
        }
        Ok(())
    }

    /// The name of its file.
    #[cfg(test)]
    pub(super) fn id(&self) -> &std::ffi::OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// The rows of the block that `bytes` begin with.
    fn rows_of(&self, mut bytes: &[u8]) -> io::Result<Vec<Version>> {
        let block = Block::from_reader(&mut bytes, self.compression).map_err(io::Error::other)?;
        let block = DataBlock::new(block);
        let version = |row: InternalValue| {
            let value = (!row.key.value_type.is_tombstone()).then(|| row.value.to_vec());
            (row.key.user_key.to_vec(), row.key.seqno + self.base_seqno, value)
        };
        Ok(block.iter().map(|row| version(row.materialize(block.as_slice()))).collect())
    }

    /// Its readable rows in the order of keys, the newest version of each first.
    pub(super) fn rows(&self) -> io::Result<impl Iterator<Item = io::Result<Version>>> {
        let file = disk::open(&self.path)?;
        let read = move |block: &Intact| {
            let mut bytes = vec![0; Header::serialized_len() + block.header.data_length as usize];
            file.read_exact_at(&mut bytes, block.at as u64)?;
            self.rows_of(&bytes)
        };
        Ok(self.blocks.iter().flat_map(move |block| match read(block) {
            Ok(rows) => rows.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }))
    }
}

/// Reads the block at `at`.
fn block(bytes: &[u8], at: usize) -> Option<(Intact, usize)> {
    let mut rest = bytes.get(at..)?;
    // What most offsets fail at.
    if !rest.starts_with(&lsm_tree::file::MAGIC_BYTES) {
        return None;
    }
    let header = Header::decode_from(&mut rest).ok()?;
    let data = rest.get(..header.data_length as usize)?;
    let end = at + Header::serialized_len() + data.len();
    (xxh3_128(data) == header.checksum.into_u128()).then_some((Intact { at, header }, end))
}

/// How the rows of a table are compressed: no block says it, and compressed ones have another length.
fn compression(bytes: &[u8], found: &Units<Intact>) -> CompressionType {
    let blocks = || found.head.iter().chain(&found.tail).filter(|block| block.header.block_type == BlockType::Data);
    let is_shorter = |block: &Intact| block.header.data_length != block.header.uncompressed_length;
    let unpacks = |block: &Intact| {
        let (from, length) = (block.at + Header::serialized_len(), block.header.data_length as usize);
        let unpacked = lz4_flex::block::decompress(&bytes[from..from + length], length);
        unpacked.is_ok_and(|unpacked| unpacked.len() == length)
    };
    if blocks().any(is_shorter) || blocks().next().is_some_and(unpacks) {
        CompressionType::Lz4
    } else {
        CompressionType::None
    }
}

fn key(row: &Version) -> Vec<u8> {
    row.0.clone()
}

fn between(from: Option<Vec<u8>>, to: Option<Vec<u8>>) -> String {
    let hex = |key: Option<Vec<u8>>, end: &str| key.map_or_else(|| end.to_owned(), |key| record::hex(&key));
    format!("any rows between {} and {}", hex(from, "the beginning"), hex(to, "the end"))
}
