//! A corpus of small pages and what a reader should see of them.

use reqwest::Url;

use super::{Page, line, read};

fn page(html: &str) -> Page {
    read(html, Url::parse("https://site.example/dir/page").ok().as_ref())
}

#[track_caller]
fn reads(html: &str, expected: &str) {
    assert_eq!(page(html).text, expected, "{html}");
}

#[test]
fn an_article() {
    let html = r##"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>
  A small &amp; tidy   page </title><style>p { color: red }</style><script>if (1 < 2) document.write("<p>no</p>")</script></head>
<body><header><a href="/">Home</a></header>
<nav><ul><li><a href="/a">One</a><li><a href="/b">Two</a></ul></nav>
<main><h1>The <em>title</em></h1>
<p>First paragraph
with a <a href="../other?x=1&amp;y=2">link</a>, <b>bold</b> text<br>and a break.
<p>Second &lt;paragraph&gt; with <code>code()</code>.</p>
<ul><li>one<li>two<ul><li>nested</li></ul></li><li><p>three</p></li></ul>
<ol start="3"><li>third</li><li>fourth</li></ol>
<blockquote><p>Said so.</p></blockquote>
<pre><code>fn main() {
    run();
}</code></pre>
<table><thead><tr><th>Name<th>Age</tr></thead><tbody><tr><td>Ada<td>36</tr><tr><td></td><td>empty first</td></tr></table>
<img src=x.png alt="A map"><img src=spacer.gif alt="">
<hr>
<p hidden>hidden</p><div style="Display : none">gone</div><span aria-hidden="true">x</span>
</main><footer>Footer</footer></body></html>"##;
    let found = page(html);
    assert_eq!(found.title, "A small & tidy page");
    let expected = "Home (https://site.example/)

# The title

First paragraph with a link (https://site.example/other?x=1&y=2), bold text
and a break.

Second <paragraph> with `code()`.

- one
- two
  - nested
- three

3. third
4. fourth

> Said so.

```
fn main() {
    run();
}
```

Name | Age
Ada | 36
empty first

[image: A map]

---

Footer";
    assert_eq!(found.text, expected);
}

#[test]
fn blanks_and_blocks() {
    reads("<div>a</div><div>b</div>", "a\nb");
    reads("a <b> b </b> c", "a b c");
    reads("<p>a</p>\n\n<p>b</p>", "a\n\nb");
    reads("a<br><br><br><br>b", "a\n\nb");
    reads("a\u{a0}&nbsp; b", "a b");
    reads("<span>a</span><span>b</span>", "ab");
    reads("<dl><dt>Term<dd>Meaning<dt>Other<dd>Thing</dl>", "Term\nMeaning\nOther\nThing");
    reads("text without markup", "text without markup");
    reads("", "");
}

#[test]
fn links() {
    reads(r#"<a href="https://x.example/">https://x.example/</a>"#, "https://x.example/");
    reads(r#"<a href="https://x.example/">x.example</a>"#, "x.example");
    reads("<a href='#top'>top</a> <a href='javascript:x()'>run</a> <a>none</a>", "top run none");
    reads("<a href=/a>A</a><a href=/b>B</a>", "A (https://site.example/a)B (https://site.example/b)");
    reads("<a href=/a>A <a href=/b>B</a>", "A (https://site.example/a) B (https://site.example/b)");
    reads("<a href=/a><h2>Big</h2></a><p>x", "## Big (https://site.example/a)\n\nx");
    reads("<a href=/a><img src=i></a>", "");
    reads("<base href='https://cdn.example/y/'><a href=z>Z</a>", "Z (https://cdn.example/y/z)");
    reads(&format!("<a href=/{}>long</a>", "x".repeat(600)), "long");
}

#[test]
fn tag_soup_keeps_its_text() {
    reads("<p>a<b>b<i>c</b>d</i>e</div></p></p>f", "abcde\n\nf");
    reads("<table><tr><td><p>a</p><td>b<table><tr><td>in</table><tr><td>c</table>d", "a | b\n\nin\n\nc\n\nd");
    reads("<ul><li>a<div>b</ul>c", "- a\n  b\n\nc");
    reads("<div <p>a</p>", "a");
    reads("<!-- <p>no</p> --><p>yes<!-- unclosed", "yes");
    reads("a < b && c > d", "a < b && c > d");
    reads("<script>var a = '</div>';</script><p>after", "after");
    reads("<style>a</style><textarea><p>form</textarea><p>after", "after");
    reads("<svg><title>drawing</title><path/><g><text>x</text></g></svg>after", "after");
    reads("<head><title>t</title><p>no body tag", "no body tag");
}

#[test]
fn what_is_left_open_does_not_swallow_the_page() {
    reads("<nav><a href=/x>menu</a><main><p>content</main>", "content");
    reads("<nav><p>everything", "everything");
    reads("<li hidden>a<li>b", "- b");
    reads("<body style='visibility: hidden'><p>shown by a script", "shown by a script");
}

#[test]
fn titles_of_drawings_are_not_the_page_s() {
    assert_eq!(page("<svg><title>icon</title></svg><title>Page</title>").title, "Page");
    assert_eq!(page("<title>unclosed").title, "unclosed");
    assert!(page(&format!("<title>{}</title>", "x ".repeat(9_000))).title.len() <= 500);
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = "<div>".repeat(100_000) + "<style>x</style>deep" + &"</div>".repeat(100_000) + "<p>after";
    let found = page(&deep).text;
    assert!(found.contains("deep") && found.contains("after") && !found.contains('x'), "{found}");
    let quotes = "<blockquote>".repeat(50_000) + "said";
    assert!(page(&quotes).text.len() < 100);
    // Every link is forty times as long when it is resolved.
    let base = Url::parse(&format!("https://x.example/{}/", "y".repeat(400))).ok();
    let links = "<a href=z>a</a> ".repeat(100_000);
    assert!(read(&links, base.as_ref()).text.len() <= (4 << 20) + 1_000);
}

#[test]
fn pieces_become_one_line() {
    assert_eq!(line("a <b>b</b>\n&amp; <a href='https://x/'>c</a>"), "a b & c");
    assert_eq!(line("<p>a</p><p>b</p>"), "a b");
}

mod generated {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_panics_and_text_survives(
            pieces in proptest::collection::vec(
                "(</?(p|div|a href=/x|ul|ol|li|table|tr|td|pre|code|nav|title|head|body|svg|blockquote|b|br|hr)/?>|word |&amp;|<|\n)",
                0..60,
            )
        ) {
            let html = pieces.concat();
            let page = super::page(&html);
            prop_assert!(page.text.len() <= html.len() * 40 + 100);
            prop_assert!(!page.text.ends_with(char::is_whitespace));
        }

        #[test]
        fn arbitrary_text_never_panics(html in "\\PC{0,300}") {
            let _ = super::page(&html);
        }
    }
}
