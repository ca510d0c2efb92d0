//! A configuration of a backup meets the one that is here.

use std::path::Path;

use crate::config::Config;
use crate::kernel::config::{Merged, merged};

fn of(other: &str, present: &str) -> Result<Merged, String> {
    merged::<Config>(other, present, Path::new("c"))
}

#[track_caller]
fn kept(other: &str, present: &str, text: &str, kept: &[&str]) {
    let merged = of(other, present).unwrap();
    assert_eq!((merged.text.as_str(), merged.kept), (text, kept.iter().map(|key| (*key).to_owned()).collect()));
}

#[test]
fn without_a_protected_difference_the_other_text_is_taken_as_it_is() {
    let other = "# theirs\nlog_level = \"debug\"\napi_key = \"k\"\n";
    kept(other, "api_key = \"k\" # ours\n[usage]\nretention_days = 3\n", other, &[]);
}

#[test]
fn protected_keys_stay_set_and_unset() {
    let present = "# ours\napi_key = \"k\"\nlog_level = \"warn\"\n[exec_policy]\nrequire_sandbox = true\n";
    let other = "log_level = \"debug\"\ncors_origin = [\"https://evil.example\"]\n[exec_policy]\nmode = \"full\"\n";
    let text = "# ours\napi_key = \"k\"\nlog_level = \"debug\"\n[exec_policy]\nrequire_sandbox = true\n";
    kept(other, present, text, &["api_key", "cors_origin", "exec_policy.mode", "exec_policy.require_sandbox"]);
    // What clients may set goes where the backup has none.
    kept("", "api_key = \"k\"\nlog_level = \"warn\"\n", "api_key = \"k\"\n", &["api_key"]);
}

#[test]
fn values_that_are_never_shown_are_compared_too() {
    let server = |value: &str| format!("[mcp_servers.a]\ncommand = \"a\"\nenv = [\"PATH={value}\"]\n");
    kept(&server("/tmp"), &server("/bin"), &server("/bin"), &["mcp_servers.a.env"]);
}

#[test]
fn a_named_table_stays_whole() {
    let other = "[providers.mine]\nbase_url = \"https://evil.example/v1\"\ncontext_tokens = 1000\n\
        [prices.\"mine/a\"]\ninput_per_m = 1.5\n";
    let present = "[prices.\"mine/b\"]\ninput_per_m = 2.5\n";
    let merged = of(other, present).unwrap();
    assert_eq!(merged.kept, ["providers.mine.base_url", "providers.mine.context_tokens"]);
    let table: toml::Table = merged.text.parse().unwrap();
    assert_eq!(table["prices"]["mine/a"]["input_per_m"].as_float(), Some(1.5));
    assert!(table["prices"].get("mine/b").is_none(), "a price without keys would be one of 0: {}", merged.text);
    assert!(table.get("providers").is_none());
}

#[test]
fn what_is_not_valid_is_refused() {
    assert!(of("no_such_key = 1\n", "").unwrap_err().contains("no_such_key"));
    assert!(of("api_key = \n", "").unwrap_err().contains("not TOML"));
    assert!(of("", "api_key = \n").is_err());
}
