//! The web chat at `/` (spec 1, Authentication: `GET /` is public): its files, embedded at build time.
//!
//! No build step and nothing from elsewhere: plain ES modules that a `default-src 'self'` policy lets through.
//! They hold no secret, hence need no key; the page asks for one when the API answers 401.

/// One file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    /// Where it is served, such as `/assets/app.js`.
    pub path: &'static str,
    /// Its `content-type`.
    pub content_type: &'static str,
    /// Its bytes.
    pub body: &'static [u8],
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file of the page; `/` is the page itself.
pub(crate) const ASSETS: &[Asset] = &[
    Asset { path: "/", content_type: "text/html; charset=utf-8", body: include_bytes!("index.html") },
    Asset { path: "/assets/style.css", content_type: "text/css; charset=utf-8", body: include_bytes!("style.css") },
    Asset { path: "/assets/icon.svg", content_type: "image/svg+xml", body: include_bytes!("icon.svg") },
    Asset { path: "/assets/app.js", content_type: JAVASCRIPT, body: include_bytes!("app.js") },
    Asset { path: "/assets/api.js", content_type: JAVASCRIPT, body: include_bytes!("api.js") },
    Asset { path: "/assets/bindings.js", content_type: JAVASCRIPT, body: include_bytes!("bindings.js") },
    Asset { path: "/assets/chat.js", content_type: JAVASCRIPT, body: include_bytes!("chat.js") },
    Asset { path: "/assets/markdown.js", content_type: JAVASCRIPT, body: include_bytes!("markdown.js") },
];

#[cfg(test)]
mod tests {
    use super::{ASSETS, Asset};

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.body).unwrap()
    }

    /// The parts of `text` between `open` and the next `"`.
    fn quoted<'t>(text: &'t str, open: &'t str) -> impl Iterator<Item = &'t str> {
        text.split(open).skip(1).filter_map(|rest| rest.split('"').next())
    }

    fn served(path: &str) -> bool {
        ASSETS.iter().any(|asset| asset.path == path)
    }

    #[test]
    fn everything_the_page_asks_for_is_served() {
        let page = text(&ASSETS[0]);
        for link in quoted(page, "src=\"").chain(quoted(page, "href=\"")).filter(|link| !link.starts_with('#')) {
            assert!(served(&format!("/{link}")), "{link}");
        }
        for script in ASSETS.iter().filter(|asset| asset.path.ends_with(".js")) {
            for module in quoted(text(script), "from \"./") {
                assert!(served(&format!("/assets/{module}")), "{}: {module}", script.path);
            }
        }
    }

    #[test]
    fn every_id_that_the_script_uses_is_in_the_page() {
        let page = text(&ASSETS[0]);
        let ids: Vec<String> = quoted(page, " id=\"").map(|id| id.replace('-', "")).collect();
        for script in ASSETS.iter().filter(|asset| asset.path.ends_with("app.js")) {
            for part in text(script).split("ui.").skip(1) {
                let name: String = part.chars().take_while(char::is_ascii_alphanumeric).collect();
                assert!(ids.iter().any(|id| id.eq_ignore_ascii_case(&name)), "{name}");
            }
        }
    }

    #[test]
    fn nothing_needs_more_than_the_strict_policy() {
        for asset in ASSETS {
            let forbidden =
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\"", "onclick=\""];
            for word in forbidden {
                assert!(!text(asset).contains(word), "{}: {word}", asset.path);
            }
        }
        let page = text(&ASSETS[0]);
        assert!(!page.contains("<style") && page.matches("<script").count() == 1);
    }

    #[test]
    fn the_manifest_it_offers_is_a_good_one() {
        let script = ASSETS.iter().find(|asset| asset.path == "/assets/app.js").map(text).unwrap();
        let manifest = script.split("const MANIFEST = `").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        assert_eq!(&*agentsvc_systems::manifest::parse(manifest).unwrap().name, "my-agent");
    }
}
