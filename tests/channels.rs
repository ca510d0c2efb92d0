//! Adapters that the community wrote, as they are, under the real daemon and against scripted servers of their platforms: see
//! `tests/channels/harness.py`.
//!
//! Every platform of `tests/channels/run.py` is a test here. `AGENTSVC_CLIENTS=skip` skips them all.

mod support;

use std::collections::BTreeSet;
use std::process::Command;

use support::clients::{python, skipped};
use support::routes::root;

fn run(what: &str) -> Command {
    let mut command = Command::new(python("aiosmtpd, librefang, pymap, trustme"));
    command.arg(root().join("tests/channels/run.py")).arg(what);
    command.env("AGENTSVC_BIN", env!("CARGO_BIN_EXE_agentsvc")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs the cases of a platform.
#[track_caller]
fn drive(platform: &str) {
    if skipped() {
        return;
    }
    let output = run(platform).output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.ends_with(b"passed\n"), "{platform}: {said}");
}

/// One test for each platform.
macro_rules! platforms {
    ($($platform:ident),* $(,)?) => {
        $(#[test]
        fn $platform() {
            drive(stringify!($platform));
        })*

        const PLATFORMS: &[&str] = &[$(stringify!($platform)),*];
    };
}

platforms! { email, line, matrix, mattermost, ntfy, telegram, twitch, webhook, wechat, whatsapp }

#[test]
fn every_platform_is_a_test() {
    if skipped() {
        return;
    }
    let output = run("list").output().expect("Python starts");
    let listed = String::from_utf8(output.stdout).expect("names are text");
    let listed: BTreeSet<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(listed, PLATFORMS.iter().copied().collect());
}
