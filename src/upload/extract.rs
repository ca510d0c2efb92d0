//! Reads the text of a PDF in a process of its own: what `agentsvc pdf-text` does (see [`super::pdf`] for why).

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::{Document, Object, ObjectId, PlainTextOutput, output_doc_page};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::pdf::TEXT_BYTES_MAX;

/// Bytes of address space that it may take. A PDF of a few megabytes takes some tens; the allocator sets a whole GiB
/// aside at once, most of which it never touches.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// Seconds of processor time that it may take.
const CPU_SECS_MAX: u64 = 10;
/// Bytes of the largest PDF that is read.
const PDF_BYTES_MAX: u64 = 256 << 20;
/// Bytes of the stack of the thread that reads; pages may lie in each other.
const STACK_BYTES: usize = 64 << 20;
/// The size of a page where a PDF tells none: US letter, in points.
const MEDIA_BOX: [i64; 4] = [0, 0, 612, 792];
/// Dictionaries on the way from a page to what it inherits.
const PARENTS_MAX: usize = 32;

/// Writes the text of the PDF on stdin to stdout, page by page. What was written before a failure counts.
pub(crate) fn run() -> Result<(), &'static str> {
    bound_process();
    let read = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(read_and_write);
    read.map_err(|_| "no thread is available to read it")?.join().unwrap_or(Err("it cannot be read"))
}

/// Takes from this process what reading a PDF does not need. A bound that cannot be set is no reason not to read.
fn bound_process() {
    let bounds = [
        (Resource::As, MEMORY_BYTES_MAX),
        (Resource::Cpu, CPU_SECS_MAX),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nofile, 16),
    ];
    for (resource, most) in bounds {
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

fn read_and_write() -> Result<(), &'static str> {
    let mut bytes = Vec::new();
    std::io::stdin().take(PDF_BYTES_MAX).read_to_end(&mut bytes).map_err(|_| "it cannot be read")?;
    let mut document = load(&bytes).ok_or("it is damaged")?;
    drop(bytes);
    if document.is_encrypted() {
        document.decrypt("").map_err(|_| "it is encrypted")?;
    }
    let pages = document.get_pages();
    for page in pages.values() {
        give_size(&mut document, *page);
    }
    let mut written = 0;
    let mut lost = false;
    for number in pages.keys() {
        let text = page_text(&document, *number);
        lost |= text.is_none();
        let text = text.unwrap_or_default();
        let out = &mut std::io::stdout();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| "the reader has disconnected")?;
        written += text.len() as u64;
        if written > TEXT_BYTES_MAX {
            return Ok(());
        }
    }
    if lost { Err("some pages cannot be read") } else { Ok(()) }
}

/// The document; `None` when it is none.
fn load(bytes: &[u8]) -> Option<Document> {
    let load = |bytes: &[u8]| catch_unwind(AssertUnwindSafe(|| Document::load_mem(bytes).ok())).ok().flatten();
    let has_pages = |document: &Document| !document.get_pages().is_empty();
    load(bytes).filter(has_pages).or_else(|| load(&reindexed(bytes)?))
}

/// The text of one page; `None` when it cannot be read.
fn page_text(document: &Document, number: u32) -> Option<String> {
    let mut text = String::new();
    let read = catch_unwind(AssertUnwindSafe(|| {
        output_doc_page(document, &mut PlainTextOutput::new(&mut text), number).is_ok()
    }));
    // What stands before the place that cannot be read is better than nothing.
    if read.unwrap_or(false) || !text.trim().is_empty() { Some(text) } else { None }
}

/// Gives a page the usual size when it tells none, which the reader insists on.
fn give_size(document: &mut Document, page: ObjectId) {
    let mut next = Some(page);
    for _ in 0..PARENTS_MAX {
        let Some(dictionary) = next.and_then(|id| document.get_dictionary(id).ok()) else { break };
        if dictionary.has(b"MediaBox") {
            return;
        }
        next = dictionary.get(b"Parent").and_then(Object::as_reference).ok();
    }
    if let Ok(dictionary) = document.get_dictionary_mut(page) {
        dictionary.set("MediaBox", Object::Array(MEDIA_BOX.map(Object::Integer).to_vec()));
    }
}

/// The PDF with a table of its objects made anew, for one whose own table is wrong; `None` when it has no objects.
fn reindexed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut objects = std::collections::BTreeMap::new();
    let mut root = None;
    for (at, _) in find_all(bytes, b" obj") {
        let Some((start, number)) = object_before(bytes, at) else { continue };
        objects.insert(number, start);
        let body = &bytes[at..bytes.len().min(at + 1_024)];
        let body = &body[..find_all(body, b"endobj").next().map_or(body.len(), |(end, _)| end)];
        let words: Vec<u8> = body.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        if find_all(&words, b"/Type/Catalog").next().is_some() {
            root = Some(number);
        }
    }
    let (root, last) = (root?, *objects.keys().next_back()?);
    let mut fixed = bytes.to_vec();
    fixed.push(b'\n');
    let table = fixed.len();
    fixed.extend_from_slice(b"xref\n0 1\n0000000000 65535 f \n");
    for (number, start) in &objects {
        fixed.extend_from_slice(format!("{number} 1\n{start:010} 00000 n \n").as_bytes());
    }
    let size = last + 1;
    let trailer = format!("trailer\n<< /Size {size} /Root {root} 0 R >>\nstartxref\n{table}\n%%EOF\n");
    fixed.extend_from_slice(trailer.as_bytes());
    Some(fixed)
}

/// Where `word` stands.
fn find_all<'a>(bytes: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    bytes.windows(word.len()).enumerate().filter(move |(_, window)| *window == word)
}

/// Start and number of the object whose ` obj` stands at `at`: `12 0 obj`. Later generations are taken for the first.
fn object_before(bytes: &[u8], at: usize) -> Option<(usize, u32)> {
    let digits = |end: usize| bytes[..end].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let generation = digits(at);
    let gap = at.checked_sub(generation)?.checked_sub(1)?;
    let number = digits(gap);
    if generation == 0 || number == 0 || number > 8 || bytes.get(gap) != Some(&b' ') {
        return None;
    }
    let start = gap - number;
    Some((start, std::str::from_utf8(&bytes[start..gap]).ok()?.parse().ok()?))
}
