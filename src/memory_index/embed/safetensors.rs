//! Reads tensors of a file in the form of safetensors, a row at a time: a table of vectors need not be in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// Bytes of the description of the tensors at most.
const HEADER_BYTES_MAX: u64 = 16 << 20;

/// A file of tensors.
pub(super) struct Tensors {
    file: File,
    data_at: u64,
    tensors: BTreeMap<String, Value>,
}

/// What a tensor's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Kind {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I8,
}

impl Kind {
    const fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::I8 => 1,
        }
    }

    fn number(self, bytes: &[u8]) -> f32 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match self {
            Self::F64 => f64::from_bits(word) as f32,
            Self::F32 => f32::from_bits(word as u32),
            Self::F16 => half(word as u16),
            Self::BF16 => f32::from_bits((word as u32) << 16),
            Self::I64 => word as i64 as f32,
            Self::I32 => word as u32 as i32 as f32,
            Self::I8 => f32::from(word as u8 as i8),
        }
    }
}

/// A number of 16 bits (IEEE 754).
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match (exponent, fraction) {
        (0, _) => fraction as f32 / 16_777_216.0,
        (0x1f, 0) => f32::INFINITY,
        (0x1f, _) => f32::NAN,
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// A tensor of one or two dimensions.
pub(super) struct Tensor {
    kind: Kind,
    /// How many rows it has.
    pub(super) rows: usize,
    /// Numbers of a row.
    pub(super) width: usize,
    at: u64,
}

impl Tensors {
    /// Opens a file and reads what is in it.
    ///
    /// # Errors
    /// The file is missing or not valid.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| failed(&error))?;
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 0).map_err(|error| failed(&error))?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_BYTES_MAX {
            return Err(failed(&"not a safetensors file"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, 8).map_err(|error| failed(&error))?;
        let tensors = serde_json::from_slice(&header).map_err(|error| failed(&error))?;
        Ok(Self { file, data_at: 8 + length, tensors })
    }

    /// A tensor by its name; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn get(&self, name: &str) -> Result<Option<Tensor>, String> {
        #[derive(Deserialize)]
        struct Described {
            dtype: Kind,
            shape: Vec<usize>,
            data_offsets: (u64, u64),
        }
        let Some(value) = self.tensors.get(name) else { return Ok(None) };
        let described: Described =
            serde_json::from_value(value.clone()).map_err(|error| format!("tensor {name}: {error}"))?;
        let (rows, width) = match *described.shape {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => return Err(format!("tensor {name}: one or two dimensions expected")),
        };
        let bytes = rows.checked_mul(width).and_then(|numbers| numbers.checked_mul(described.dtype.bytes()));
        let (from, to) = described.data_offsets;
        if bytes.map(|bytes| bytes as u64) != to.checked_sub(from) {
            return Err(format!("tensor {name}: its bytes do not match its shape"));
        }
        Ok(Some(Tensor { kind: described.dtype, rows, width, at: self.data_at.saturating_add(from) }))
    }

    /// Adds a row of a tensor, times `factor`, to `sum`.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn add_row(&self, tensor: &Tensor, row: usize, factor: f32, sum: &mut [f32]) -> Result<(), String> {
        let bytes = tensor.kind.bytes();
        let mut read = vec![0; tensor.width * bytes];
        let at = tensor.at + (row * read.len()) as u64;
        self.file.read_exact_at(&mut read, at).map_err(|error| error.to_string())?;
        for (sum, number) in sum.iter_mut().zip(read.chunks_exact(bytes)) {
            *sum += factor * tensor.kind.number(number);
        }
        Ok(())
    }

    /// All numbers of a tensor of one dimension.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn all(&self, tensor: &Tensor) -> Result<Vec<f32>, String> {
        let bytes = tensor.kind.bytes();
        let mut read = vec![0; tensor.rows * tensor.width * bytes];
        self.file.read_exact_at(&mut read, tensor.at).map_err(|error| error.to_string())?;
        Ok(read.chunks_exact(bytes).map(|number| tensor.kind.number(number)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_are_what_they_are() {
        for (bits, number) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333_251_95), (0x0001, 5.960_464_5e-8), (0, 0.0)]
        {
            assert_eq!(half(bits), number, "{bits:x}");
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
