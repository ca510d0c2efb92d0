//! Tells the build its date, commit and compiler (`GET /api/version`), and that the folder of the web page is part of it.
//! What cannot be found out stays unknown.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The compiler looks at the files that it embeds, but not for new ones.
    println!("cargo:rerun-if-changed=ui");
    // Only a path that exists: a missing one would run this, and rebuild the crate, every time.
    if std::path::Path::new("../.git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=../.git/logs/HEAD");
    }
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    tell("AGENTSVC_GIT_SHA", output("git", &["rev-parse", "--short=12", "HEAD"]));
    tell("AGENTSVC_RUST_VERSION", output(&std::env::var("RUSTC").unwrap_or("rustc".to_owned()), &["--version"]));
    // A reproducible build sets the moment; otherwise it is the day of this build.
    let day = std::env::var("SOURCE_DATE_EPOCH").map_or_else(|_| "now".to_owned(), |seconds| format!("@{seconds}"));
    tell("AGENTSVC_BUILD_DATE", output("date", &["-u", "-d", &day, "+%Y-%m-%d"]));
}

fn tell(name: &str, value: Option<String>) {
    if let Some(value) = value {
        println!("cargo:rustc-env={name}={value}");
    }
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
