//! What a file is: by its first bytes, by what was declared, by its name.

/// Bytes at the beginning of a file that tell its type.
pub(crate) const MAGIC_BYTES: usize = 512;

/// The type of what nobody knows.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// How a file can be attached to a message (spec 1, Attachment handling).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A picture.
    Image,
    /// A PDF.
    Pdf,
    /// Text or code.
    Text,
}

/// Pictures that models take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// Types under `application/` that are text: JSON, XML, YAML, TOML, JS, TS, SQL, GraphQL and what is made of them.
const TEXT_APPLICATIONS: &str = "ecmascript graphql javascript json json5 jsonc jsonl jsonlines ld+json ndjson sql toml typescript \
    x-httpd-php x-javascript x-json x-jsonlines x-ndjson x-sh x-shellscript x-sql x-toml x-typescript \
    x-yaml xhtml+xml xml xml-dtd yaml";

/// Endings of text and code that have no type of their own, in lower case.
const PLAIN_ENDINGS: &str = "adoc asciidoc asm astro awk bat bib cfg clj cljs cmake cmd conf cs cts d dart diff \
    dockerfile edn el elm eml env erl ex exs f90 fish fs fsx gradle groovy haml hbs hcl hrl \
    hs ini jinja jl jsonc kt kts less lisp lock log lua m make mk ml mli mm mts nim nix org \
    pas patch php pl plist pm po prisma properties proto ps1 psm1 pug r rake rb rmd s sass \
    scala scm scss sol srt sv svelte swift tcl text tf tfvars thrift txt v vb vhd vim vue \
    wat zig zsh";

/// Endings of text and code, and the type that is told for them.
const TEXT_ENDINGS: &[(&str, &str)] = &[
    ("bash", "application/x-sh"),
    ("c", "text/x-c"),
    ("cc", "text/x-c"),
    ("cjs", "text/javascript"),
    ("cpp", "text/x-c"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("cxx", "text/x-c"),
    ("go", "text/x-go"),
    ("gql", "application/graphql"),
    ("graphql", "application/graphql"),
    ("h", "text/x-c"),
    ("hh", "text/x-c"),
    ("hpp", "text/x-c"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("hxx", "text/x-c"),
    ("ics", "text/calendar"),
    ("ipynb", "application/json"),
    ("java", "text/x-java"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("json5", "application/json5"),
    ("jsonl", "application/jsonl"),
    ("jsx", "text/jsx"),
    ("markdown", "text/markdown"),
    ("md", "text/markdown"),
    ("mdx", "text/markdown"),
    ("mjs", "text/javascript"),
    ("ndjson", "application/x-ndjson"),
    ("py", "text/x-python"),
    ("pyi", "text/x-python"),
    ("rs", "text/x-rust"),
    ("rst", "text/x-rst"),
    ("sh", "application/x-sh"),
    ("sql", "application/sql"),
    ("tex", "text/x-tex"),
    ("toml", "application/toml"),
    ("ts", "application/typescript"),
    ("tsv", "text/tab-separated-values"),
    ("tsx", "text/tsx"),
    ("vtt", "text/vtt"),
    ("wsdl", "application/xml"),
    ("xhtml", "application/xhtml+xml"),
    ("xml", "application/xml"),
    ("xsd", "application/xml"),
    ("xsl", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// Endings of other files whose type is told.
const OTHER_ENDINGS: &[(&str, &str)] = &[
    ("bmp", "image/bmp"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("zip", "application/zip"),
];

/// Whole names of text files, in lower case.
const TEXT_NAMES: &str = ".bashrc .dockerignore .editorconfig .gitattributes .gitignore .npmrc .profile .zshrc authors \
    brewfile build cargo.lock changelog cmakelists.txt codeowners containerfile copying dockerfile \
    gemfile gnumakefile jenkinsfile justfile license makefile notice procfile rakefile readme todo \
    vagrantfile";

/// The type that the first bytes of a file tell; `None` when they tell none that matters here.
pub(crate) fn sniff(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        [b'P', b'K', 3, 4, ..] => Some("application/zip"),
        [0x1f, 0x8b, 8, ..] => Some("application/gzip"),
        [0x7f, b'E', b'L', b'F', ..] => Some(UNKNOWN),
        _ => None,
    }
}

/// The type of a file: of a picture or PDF what its first bytes tell, else what was declared, else what its name tells.
///
/// What is declared as a picture or PDF and is none has no known type: a model would refuse it, or worse.
/// `application/octet-stream` declares nothing.
pub(crate) fn content_type(head: &[u8], declared: &str, filename: &str) -> String {
    let declared = declared.trim().to_ascii_lowercase();
    let sniffed = sniff(head);
    if let Some(known) = sniffed.filter(|known| IMAGES.contains(known) || *known == "application/pdf") {
        return known.to_owned();
    }
    let is_well_formed = declared.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    if is_well_formed && declared != UNKNOWN {
        let is_pretended = IMAGES.contains(&declared.as_str()) || declared == "application/pdf";
        return if is_pretended { UNKNOWN.to_owned() } else { declared };
    }
    let named = of_name(filename);
    // A ZIP archive is not text because of its name; the documents that are ZIP archives inside keep their type.
    match sniffed {
        Some(known) if is_text(named) || is_pretended_by_name(named) => known.to_owned(),
        None if is_pretended_by_name(named) => UNKNOWN.to_owned(),
        _ => named.to_owned(),
    }
}

fn is_pretended_by_name(named: &str) -> bool {
    IMAGES.contains(&named) || named == "application/pdf"
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 127
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
}

/// The type that a file's name tells; [`UNKNOWN`] when it tells none.
pub(crate) fn of_name(filename: &str) -> &'static str {
    let name = filename.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let told = |endings: &[(&str, &'static str)], ending: &str| {
        endings.iter().find(|(known, _)| *known == ending).map(|(_, told)| *told)
    };
    // A name that begins with its only dot is all ending: `.env`.
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if let Some(told) = told(TEXT_ENDINGS, ending) {
        return told;
    }
    let is_text_name = is_one_of(PLAIN_ENDINGS, ending)
        || is_one_of(TEXT_NAMES, &name)
        || ["dockerfile.", "makefile.", ".env."].iter().any(|start| name.starts_with(start));
    if is_text_name { "text/plain" } else { told(OTHER_ENDINGS, ending).unwrap_or(UNKNOWN) }
}

/// Is it one of these words, which stand with a space between them?
fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

fn is_text(content_type: &str) -> bool {
    let Some((kind, subtype)) = content_type.split_once('/') else { return false };
    kind == "text"
        || kind == "application"
            && (is_one_of(TEXT_APPLICATIONS, subtype)
                || ["+json", "+xml", "+yaml"].iter().any(|suffix| subtype.ends_with(suffix)))
}

/// How a file of this type is attached; `None` when it cannot be.
pub(crate) fn class(content_type: &str) -> Option<Class> {
    if IMAGES.contains(&content_type) {
        Some(Class::Image)
    } else if content_type == "application/pdf" {
        Some(Class::Pdf)
    } else if is_text(content_type) {
        Some(Class::Text)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

    #[test]
    fn bytes_count_more_than_words() {
        for (head, declared, name, expected) in [
            (PNG, "", "a", "image/png"),
            (PNG, "text/plain", "a.txt", "image/png"),
            (b"%PDF-1.7", "application/octet-stream", "a.bin", "application/pdf"),
            (b"hello", "image/png", "a.png", UNKNOWN),
            (b"hello", "", "a.png", UNKNOWN),
            (b"hello", "application/pdf", "a.pdf", UNKNOWN),
            (b"hello", "Text/Plain", "a.bin", "text/plain"),
            (b"hello", "", "a.rs", "text/x-rust"),
            (b"hello", "", "A.TXT", "text/plain"),
            (b"hello", "application/octet-stream", "Makefile", "text/plain"),
            (b"hello", "nonsense", "a.json", "application/json"),
            (b"hello", "a/b\r\nx: y", "a.json", "application/json"),
            (b"hello", "", "a.weird", UNKNOWN),
            (b"PK\x03\x04", "", "a.txt", "application/zip"),
            (b"PK\x03\x04", "", "a.docx", of_name("a.docx")),
            (b"", "", "", UNKNOWN),
        ] {
            assert_eq!(content_type(head, declared, name), expected, "{declared} {name}");
        }
    }

    #[test]
    fn classes_are_those_of_the_table() {
        for text in [
            "text/plain",
            "text/x-anything",
            "application/json",
            "application/xml",
            "application/yaml",
            "application/x-yaml",
            "application/toml",
            "application/javascript",
            "application/typescript",
            "application/sql",
            "application/graphql",
            "application/vnd.api+json",
        ] {
            assert_eq!(class(text), Some(Class::Text), "{text}");
        }
        for image in IMAGES {
            assert_eq!(class(image), Some(Class::Image));
        }
        assert_eq!(class("application/pdf"), Some(Class::Pdf));
        for none in ["image/svg+xml", "image/bmp", "application/zip", UNKNOWN, "video/mp4", "", "application/msword"] {
            assert_eq!(class(none), None, "{none}");
        }
    }

    #[test]
    fn every_ending_of_the_specification_is_known() {
        let listed = ".txt .md .markdown .rst .csv .tsv .log .json .yaml .yml .toml .xml .ini .conf .cfg .env .html .css \
            .js .ts .tsx .jsx .vue .svelte .py .rs .go .java .kt .swift .scala .c .cpp .h .rb .php .lua .r .sh .bash \
            .sql .graphql .proto .ipynb";
        for ending in listed.split_whitespace() {
            for name in [ending.to_owned(), format!("a.b{ending}"), format!("a{}", ending.to_uppercase())] {
                assert_eq!(class(&content_type(b"x", "", &name)), Some(Class::Text), "{name}");
            }
        }
        for name in ["Dockerfile", "Makefile", "Dockerfile.dev", ".env.local", ".gitignore"] {
            assert_eq!(class(of_name(name)), Some(Class::Text), "{name}");
        }
        let sorted = |list: &[(&str, &str)]| list.is_sorted_by(|a, b| a.0 < b.0);
        assert!(sorted(OTHER_ENDINGS) && TEXT_NAMES.split(' ').is_sorted() && PLAIN_ENDINGS.split(' ').is_sorted());
    }
}
