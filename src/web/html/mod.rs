//! HTML to readable text, in one pass over the tokens: no tree is built, so that memory is bounded by the output and
//! by [`OPEN_MAX`] whatever the page does.
//!
//! Kept: the title, headings (`#`), paragraphs, lists (`-`, `1.`), quotes (`>`), preformatted text, links as
//! `text (url)`, tables as rows of cells joined by ` | `, alternative texts of images. Dropped: scripts, styles,
//! navigation, form controls, and what the page itself hides.

mod open;
mod shallow;
#[cfg(test)]
mod tests;
mod write;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, Token, Tokenizer};
use reqwest::Url;

use self::open::{Open, is_void};
use self::shallow::Shallow;
use self::write::Writer;

/// Elements that may be open at once; what is nested deeper counts as part of the deepest.
const OPEN_MAX: usize = 256;
/// Bytes of readable text; the rest of the page is not read. Resolving short links can make it longer than the page.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Bytes of a link or of a title that are worth showing.
const LINK_BYTES_MAX: usize = 500;

/// Elements whose content is not for reading.
const DROPPED: &[&str] = &[
    "audio", "button", "canvas", "datalist", "embed", "head", "iframe", "math", "nav", "noembed", "noframes",
    "noscript", "object", "script", "select", "style", "svg", "template", "textarea", "video",
];

/// A page as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Its title on one line; empty when it has none.
    pub(crate) title: String,
    /// Its text.
    pub(crate) text: String,
}

/// Reads a page that came from `base`, which relative links are resolved against.
pub(crate) fn read(html: &str, base: Option<&Url>) -> Page {
    let page = Reader::new(base, DROPPED).read(html);
    if !page.text.is_empty() {
        return page;
    }
    // An element that is dropped and never closed takes the rest of the page with it: better too much than nothing.
    let text = Reader::new(base, &["script", "style", "head", "template"]).read(html).text;
    Page { text, ..page }
}

/// The text of a piece of HTML on one line, such as a title with `<b>` and `&amp;` in it.
pub(crate) fn line(html: &str) -> String {
    let page = Reader { links: false, ..Reader::new(None, DROPPED) }.read(html);
    page.text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The tokens of a page, scripts and the like already told apart from markup. They end at a tag that is too deep to read.
pub(crate) fn tokens(html: &str) -> impl Iterator<Item = Token> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(Shallow::of(html), emitter).map_while(Result::ok)
}

/// The text of an attribute; empty when it is missing.
pub(crate) fn attribute(tag: &StartTag<()>, name: &str) -> String {
    let value = tag.attributes.get(name.as_bytes());
    value.map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
}

/// Reads tokens, keeps what is open, and writes.
struct Reader<'a> {
    base: Option<Url>,
    dropped: &'a [&'a str],
    /// Whether the targets of links are written.
    links: bool,
    open: Open,
    writer: Writer,
    title: Option<String>,
    /// The link that is open: where its text begins, and where it leads.
    link: Option<(usize, String)>,
}

impl<'a> Reader<'a> {
    fn new(base: Option<&Url>, dropped: &'a [&'a str]) -> Self {
        let (open, writer) = (Open::default(), Writer::default());
        Self { base: base.cloned(), dropped, links: true, open, writer, title: None, link: None }
    }

    fn read(mut self, html: &str) -> Page {
        for token in tokens(html) {
            match token {
                Token::StartTag(tag) => self.start(&tag),
                Token::EndTag(tag) => self.end(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => self.text(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
            if self.writer.len() > TEXT_BYTES_MAX {
                break;
            }
        }
        self.close_link();
        let title = self.title.unwrap_or_default();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let end = title.floor_char_boundary(LINK_BYTES_MAX);
        Page { title: title[..end].to_owned(), text: self.writer.finish() }
    }

    fn text(&mut self, text: &str) {
        if self.open.innermost("title") && !self.open.foreign() {
            if let Some(title) = self.title.as_mut().filter(|title| title.len() < LINK_BYTES_MAX) {
                title.push_str(text);
            }
        } else if !self.open.hidden() {
            self.writer.text(text);
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        let name = name.as_str();
        for closed in self.open.implied_ends(name) {
            self.left(&closed);
        }
        if name == "title" && self.title.is_none() && !self.open.foreign() {
            self.title = Some(String::new());
        }
        if name == "base" && !self.open.inside("body") {
            let href = attribute(tag, "href");
            self.base = self.base.take().map(|base| base.join(href.trim()).unwrap_or(base));
        }
        let root = matches!(name, "html" | "body");
        let hidden = self.dropped.contains(&name) || name == "title" || (!root && is_hidden(tag));
        if !hidden && !self.open.hidden() {
            self.entered(name, tag);
        }
        let closed = is_void(name) || (self.open.foreign() && tag.self_closing);
        if !closed {
            self.open.push(name, hidden);
        }
    }

    fn end(&mut self, name: &str) {
        // A stray `</p>` or `</br>` breaks the line in browsers too.
        if matches!(name, "p" | "br") && !self.open.inside(name) && !self.open.hidden() {
            self.writer.block(1);
        }
        for closed in self.open.pop(name) {
            self.left(&closed);
        }
    }

    /// What is written where a visible element begins.
    fn entered(&mut self, name: &str, tag: &StartTag<()>) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.writer.mark(&format!("{} ", "#".repeat(level)));
            }
            "p" | "article" | "section" | "main" | "table" | "dl" | "figure" | "details" | "form" | "fieldset" => {
                self.writer.block(2);
            }
            "ul" | "ol" | "menu" => {
                let start = attribute(tag, "start").trim().parse().unwrap_or(1);
                self.writer.block(if self.writer.in_list() { 1 } else { 2 });
                self.writer.enter_list((name == "ol").then_some(start));
            }
            "li" => self.writer.item(),
            "blockquote" => {
                self.writer.block(2);
                self.writer.enter_quote();
            }
            "pre" => {
                self.writer.block(2);
                self.writer.enter_pre();
            }
            "code" | "kbd" | "samp" => self.writer.enter_code(),
            "br" => self.writer.newline(),
            "hr" => {
                self.writer.block(2);
                self.writer.mark("---");
                self.writer.block(2);
            }
            "tr" => self.writer.row(),
            "td" | "th" => self.writer.cell(),
            "img" => {
                let alt = attribute(tag, "alt");
                if !alt.trim().is_empty() {
                    self.writer.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "a" => {
                self.close_link();
                if let Some(url) = self.resolve(&attribute(tag, "href")) {
                    self.link = Some((self.writer.len(), url));
                }
            }
            _ if is_block(name) => self.writer.block(1),
            _ => {}
        }
    }

    /// What is written where an element that was open ends.
    fn left(&mut self, closed: &open::Closed) {
        if closed.hidden {
            return;
        }
        match closed.name.as_str() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "article" | "section" | "main" | "dl" | "figure"
            | "details" | "form" | "fieldset" => self.writer.block(2),
            "table" => self.writer.leave_table(),
            "ul" | "ol" | "menu" => {
                self.writer.leave_list();
                self.writer.block(if self.writer.in_list() { 1 } else { 2 });
            }
            "blockquote" => {
                self.writer.leave_quote();
                self.writer.block(2);
            }
            "pre" => self.writer.leave_pre(),
            "code" | "kbd" | "samp" => self.writer.leave_code(),
            "a" => self.close_link(),
            "li" | "tr" => self.writer.block(1),
            name if is_block(name) => self.writer.block(1),
            _ => {}
        }
    }

    fn close_link(&mut self) {
        let Some((begin, url)) = self.link.take() else { return };
        let said = self.writer.since(begin).trim().to_owned();
        let same = |said: &str| said == url || url.trim_end_matches('/').ends_with(&format!("://{said}"));
        // A link around nothing, or around its own address, says nothing more.
        if self.links && !said.is_empty() && !same(said.trim_end_matches('/')) && !same(&said) {
            self.writer.suffix(&format!(" ({url})"));
        }
    }

    /// Where a link leads, when that can be fetched and is another place than this page.
    fn resolve(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(href).ok()?,
            None => Url::parse(href).ok()?,
        };
        let shown = url.to_string();
        let useful = matches!(url.scheme(), "http" | "https" | "mailto") && shown.len() <= LINK_BYTES_MAX;
        useful.then_some(shown)
    }
}

/// True for elements that the page itself hides from readers.
fn is_hidden(tag: &StartTag<()>) -> bool {
    let hidden = tag.attributes.get(b"hidden".as_slice());
    if hidden.is_some_and(|value| !value.eq_ignore_ascii_case(b"until-found")) {
        return true;
    }
    if attribute(tag, "aria-hidden").eq_ignore_ascii_case("true") || attribute(tag, "role") == "navigation" {
        return true;
    }
    let style: String = attribute(tag, "style").to_ascii_lowercase().split_whitespace().collect();
    style.contains("display:none") || style.contains("visibility:hidden")
}

/// Elements that stand on lines of their own.
fn is_block(name: &str) -> bool {
    const BLOCKS: &str = "address aside body caption center dd dialog div dt figcaption footer header hgroup html legend \
        optgroup option search summary tbody tfoot thead title";
    BLOCKS.split(' ').any(|block| block == name)
}
