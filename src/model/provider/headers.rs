//! Headers that single providers want with every request, beside those of their protocol.

/// What GitHub Copilot wants to know of an editor. It answers only integrations that it knows.
const COPILOT: &[(&str, &str)] = &[
    ("editor-version", concat!("agentsvc/", env!("CARGO_PKG_VERSION"))),
    ("editor-plugin-version", concat!("agentsvc/", env!("CARGO_PKG_VERSION"))),
    ("copilot-integration-id", "vscode-chat"),
];

/// Name and value of the headers of a provider; empty for nearly all.
pub(crate) fn extra_headers(provider: &str) -> &'static [(&'static str, &'static str)] {
    match provider {
        "github-copilot" => COPILOT,
        _ => &[],
    }
}
