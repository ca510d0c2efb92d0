//! `web_fetch`: one page or document of the web, as text.

use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kernel::egress::{Fetched, Media, Request};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};
use crate::web::html;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;
/// Characters of an error page that the model is shown.
const ERROR_CHARS_MAX: usize = 500;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "web_fetch",
    "Fetches an http or https URL with GET and returns its content as text: web pages as readable text with headings \
     and links; plain text, JSON and XML unchanged. Long content is returned in parts; continue with `offset`.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Network)
.anywhere()
.order(10);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The whole URL, with http:// or https://.
    url: String,
    /// Maximum number of characters.
    max_chars: Option<usize>,
    /// Number of characters to skip, to continue after an earlier part.
    offset: Option<usize>,
    /// True returns the source of a web page instead of its readable text.
    raw: Option<bool>,
}

async fn run(context: Context, asked: Input) -> Result<Ended, String> {
    let web = &context.parts.web;
    let request = Request {
        url: &asked.url,
        holder: context.run.holder,
        network: &context.run.manifest.manifest.capabilities.network,
        trusted: None,
        accept: "text/html,application/xhtml+xml,application/json,application/xml;q=0.9,text/*;q=0.9,*/*;q=0.1",
        header: None,
        json: None,
        redirects_max: REDIRECTS_MAX,
    };
    let fetched = web.fetch(request).await.map_err(|error| error.to_string())?;
    let chars_max = asked.max_chars.unwrap_or(usize::MAX).clamp(1, web.settings().max_chars);
    let offset = asked.offset.unwrap_or(0);
    let raw = asked.raw.unwrap_or(false);
    // Megabytes to read: not on the runtime's threads.
    let shown = tokio::task::spawn_blocking(move || {
        let (text, part) = show(&fetched, raw, offset, chars_max)?;
        Ok(Ended::web(text, &format!("{part} {}", led_to(&fetched, &asked.url))))
    });
    shown.await.map_err(|_| "The page could not be read.".to_owned())?
}

/// Where redirects led, without the fragment, which they keep from what was asked; empty when there were none.
fn led_to(fetched: &Fetched, asked: &str) -> String {
    let bare = |mut url: Url| {
        url.set_fragment(None);
        String::from(url)
    };
    let end = bare(fetched.url.clone());
    let is_asked = Url::parse(asked.trim()).is_ok_and(|asked| bare(asked) == end);
    if is_asked { String::new() } else { end }
}

/// The result: what came, from where, and the wanted part of it; and that part alone.
fn show(fetched: &Fetched, raw: bool, offset: usize, chars_max: usize) -> Result<(String, String), String> {
    let (title, text) = match fetched.media {
        Media::Html if !raw => {
            let page = html::read(&fetched.text, Some(&fetched.url));
            (page.title, page.text)
        }
        _ => (String::new(), fetched.text.clone()),
    };
    if !fetched.status.is_success() {
        let said: String = text.chars().take(ERROR_CHARS_MAX).collect();
        let said = if said.trim().is_empty() { String::new() } else { format!(" It says:\n{}", said.trim()) };
        return Err(format!("{} returned status {}.{said}", fetched.url, fetched.status));
    }
    let chars = text.chars().count();
    if offset > 0 && offset >= chars {
        return Err(format!("The content has only {chars} characters; offset {offset} is beyond its end."));
    }
    let part: String = text.chars().skip(offset).take(chars_max).collect();
    let end = offset + part.chars().count();
    let mut head = format!("URL: {}\n", fetched.url);
    if !title.is_empty() {
        head += &format!("Title: {title}\n");
    }
    if !fetched.content_type.is_empty() {
        head += &format!("Content type: {}\n", fetched.content_type);
    }
    if offset > 0 || end < chars {
        head += &format!("Characters {offset} to {end} of {chars}");
        head += &if end < chars { format!("; continue with offset {end}\n") } else { "\n".to_owned() };
    }
    if fetched.cut {
        head += "The content exceeds the size limit; its end is missing.\n";
    }
    let shown = if part.is_empty() { "(no text)" } else { &part };
    Ok((format!("{head}\n{shown}"), part))
}

#[cfg(test)]
mod tests {
    use reqwest::{StatusCode, Url};

    use super::led_to;
    use crate::kernel::egress::{Fetched, Media};

    fn show(fetched: &Fetched, raw: bool, offset: usize, chars_max: usize) -> Result<String, String> {
        super::show(fetched, raw, offset, chars_max).map(|(text, _)| text)
    }

    #[test]
    fn a_redirect_shows_an_address_and_the_call_itself_does_not() {
        let page = fetched("", Media::Html);
        assert_eq!(led_to(&page, " HTTPS://x.example/a#made-up"), "");
        let mut page = page;
        page.url = Url::parse("https://x.example/b#made-up").unwrap();
        assert_eq!(led_to(&page, "https://x.example/a#made-up"), "https://x.example/b");
    }

    fn fetched(text: &str, media: Media) -> Fetched {
        Fetched {
            url: Url::parse("https://x.example/a").unwrap(),
            status: StatusCode::OK,
            content_type: "text/html".to_owned(),
            text: text.to_owned(),
            media,
            cut: false,
        }
    }

    #[test]
    fn pages_are_read_and_parted() {
        let page = fetched("<title>T</title><p>äbcdef<p>x", Media::Html);
        let shown = show(&page, false, 0, 100).unwrap();
        assert_eq!(shown, "URL: https://x.example/a\nTitle: T\nContent type: text/html\n\näbcdef\n\nx");
        let shown = show(&page, false, 0, 4).unwrap();
        assert!(shown.ends_with("Characters 0 to 4 of 9; continue with offset 4\n\näbcd"), "{shown}");
        let shown = show(&page, false, 8, 4).unwrap();
        assert!(shown.ends_with("Characters 8 to 9 of 9\n\nx"), "{shown}");
        assert!(show(&page, false, 9, 4).unwrap_err().contains("only 9 characters"));
        assert!(show(&page, true, 0, 100).unwrap().ends_with("<title>T</title><p>äbcdef<p>x"));
        let cut = Fetched { cut: true, ..fetched("{}", Media::Text) };
        assert!(show(&cut, false, 0, 9).unwrap().ends_with("its end is missing.\n\n{}"));
        assert!(show(&fetched("", Media::Html), false, 0, 9).unwrap().ends_with("\n\n(no text)"));
    }

    #[test]
    fn an_error_status_is_an_error_with_what_it_says() {
        let missing = Fetched { status: StatusCode::NOT_FOUND, ..fetched("<h1>Gone</h1>", Media::Html) };
        let error = show(&missing, false, 0, 100).unwrap_err();
        assert_eq!(error, "https://x.example/a returned status 404 Not Found. It says:\n# Gone");
    }
}
