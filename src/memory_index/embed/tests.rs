//! Vectors of small models that the tests write.

use std::path::Path;

use serde_json::json;

use super::*;

/// Words with vectors: those of one topic are near to each other.
const WORDS: [(&str, [f32; 3]); 9] = [
    ("[UNK]", [9.0, 9.0, 9.0]),
    ("dog", [1.0, 0.0, 0.0]),
    ("puppy", [0.9, 0.1, 0.0]),
    ("car", [0.0, 1.0, 0.0]),
    ("vehicle", [0.0, 0.9, 0.1]),
    ("re", [0.0, 0.0, 1.0]),
    ("##d", [0.0, 0.0, 0.5]),
    (".", [0.0, 0.0, 0.0]),
    ("狗", [1.0, 0.0, 0.1]),
];

/// Writes a small model; `half` with numbers of 16 bits.
pub(in crate::memory_index) fn write_model(folder: &Path, half: bool) {
    let vocabulary: serde_json::Map<_, _> =
        WORDS.iter().enumerate().map(|(id, (word, _))| ((*word).to_owned(), json!(id))).collect();
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true, "strip_accents": null },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": vocabulary },
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).expect("a file");
    let numbers = WORDS.iter().flat_map(|(_, vector)| *vector);
    let data: Vec<u8> = if half {
        numbers.flat_map(|number| half_of(number).to_le_bytes()).collect()
    } else {
        numbers.flat_map(f32::to_le_bytes).collect()
    };
    let kind = if half { "F16" } else { "F32" };
    let header = json!({ "embeddings": { "dtype": kind, "shape": [WORDS.len(), 3], "data_offsets": [0, data.len()] } });
    let header = header.to_string();
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
    std::fs::write(folder.join("model.safetensors"), file).expect("a file");
}

/// Near enough for numbers from 0 to 9: the fraction is cut.
fn half_of(number: f32) -> u16 {
    let bits = number.to_bits();
    if number == 0.0 { 0 } else { (((bits >> 23) - 112) << 10 | bits >> 13 & 0x3ff) as u16 }
}

fn near(one: &dyn Embedder, text: &str, other: &str) -> f32 {
    similarity(&one.embed(text).expect("a vector"), &one.embed(other).expect("a vector"))
}

#[test]
fn static_models_find_other_words() {
    for half in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        write_model(dir.path(), half);
        let model = StaticModel::open(dir.path()).unwrap();
        assert!(model.name().ends_with("/3"));
        assert!(near(&model, "My Dog.", "a PUPPY") > 0.9 && near(&model, "dog", "car") < 0.1);
        assert!(near(&model, "dog", "狗狗") > 0.9, "ideographs are words of their own");
        assert!(near(&model, "red", "re") > 0.9, "of two pieces");
        assert_eq!(*model.embed("nothing known").unwrap(), [0.0; 3]);
    }
}

#[test]
fn errors_name_the_broken_file() {
    let dir = tempfile::tempdir().unwrap();
    let said = || StaticModel::open(dir.path()).err().unwrap();
    assert!(said().contains("tokenizer.json"));
    write_model(dir.path(), false);
    let path = dir.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..20]).unwrap();
    assert!(said().contains("model.safetensors"));
    std::fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
    assert!(said().contains("not a safetensors file"));
    let other = String::from_utf8_lossy(&whole[8..]).replacen("embeddings", "embeddingz", 1);
    std::fs::write(&path, [&whole[..8], other.as_bytes()].concat()).unwrap();
    assert!(said().contains("no tensor `embeddings`"));
    std::fs::write(dir.path().join("tokenizer.json"), "{\"model\":{\"type\":\"BPE\"}}").unwrap();
    assert!(said().contains("tokenizer.json"));
}

#[test]
fn unigrams_are_the_most_likely_ones() {
    let dir = tempfile::tempdir().unwrap();
    let vocabulary = json!([
        ["<unk>", 0.0],
        ["\u{2581}", -5.0],
        ["\u{2581}dog", -3.0],
        ["s", -4.0],
        ["\u{2581}do", -2.0],
        ["gs", -9.0]
    ]);
    let file = json!({ "normalizer": { "type": "Lowercase" }, "model": { "type": "Unigram", "unk_id": 0, "vocab": vocabulary } });
    let path = dir.path().join("tokenizer.json");
    std::fs::write(&path, file.to_string()).unwrap();
    let tokenizer = tokenizer::Tokenizer::open(&path).unwrap();
    assert_eq!(tokenizer.tokens("Dogs dogx", 10), [2, 3, 2]);
    assert_eq!(tokenizer.tokens("Dogs dogs", 1), [2]);
    assert_eq!(tokenizer.tokens("xyz", 10), [1]);
}

#[test]
fn hashed_vectors_find_other_spellings() {
    assert!(near(&Hashed, "the organisation", "my organization") > 0.6);
    assert!(near(&Hashed, "the dog", "the cat") < 0.2);
    assert!(Hashed.embed("").unwrap().iter().all(|part| *part == 0.0));
}

#[test]
fn vectors_are_made_once() {
    struct Counting(std::sync::atomic::AtomicUsize);
    impl Embedder for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn embed(&self, _: &str) -> Result<Arc<[f32]>, String> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(vec![1.0; 1 << 20].into())
        }
        fn least(&self) -> f32 {
            0.0
        }
    }
    let vectors = Vectors::new(Box::new(Counting(Default::default())), Chunks::default());
    let first = vectors.of("a").unwrap();
    assert!(Arc::ptr_eq(&first, &vectors.of("a").unwrap()));
    vectors.of("b").unwrap();
    vectors.of("c").unwrap();
    assert!(!Arc::ptr_eq(&first, &vectors.of("a").unwrap()), "the third did not fit beside the others");
}
