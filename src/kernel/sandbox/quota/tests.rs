//! What is known of workspaces, and the bounds that it is held to.

use std::fs::File;
use std::os::fd::AsFd;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::id::UserId;
use uuid::Uuid;

use super::*;
use crate::kernel::removal;
use crate::kernel::sandbox::fullness::Full;
use crate::kernel::sandbox::{Error, Workspace, Workspaces, Write};

const MIB: u64 = 1 << 20;
/// Bytes of a file, of which one fits beneath [`TOTAL`].
const HALF: &[u8] = &[7; 600 << 10];
const TOTAL: u64 = MIB;

#[test]
fn what_is_written_while_it_is_measured_counts() {
    let dir = tempfile::tempdir().unwrap();
    let quotas = Quotas::new(dir.path().join("none"), Settings::default());
    let root = File::open(dir.path()).unwrap();
    let write = |written| quotas.admit(dir.path(), root.as_fd(), Change { written, ..Change::default() });
    quotas.measured(dir.path(), || Ok(1)).unwrap();
    {
        let mut state = quotas.state.lock();
        // However slow this machine is, the measure still holds when the write comes.
        state.known.get_mut(dir.path()).unwrap().until = Some(Instant::now() + Duration::from_secs(3600));
        // No thread measures beside this test.
        state.counted = Some(Instant::now());
    }
    let measured = quotas.measured(dir.path(), || {
        write(5).unwrap();
        Ok(10)
    });
    assert_eq!(measured, Ok(15));
    assert!(quotas.measured(dir.path(), || Err(Errno::IO)).is_err());
    assert_eq!(quotas.measured(dir.path(), || Ok(3)), Ok(3));
    assert_eq!(quotas.state.lock().total, 3);
}

#[test]
fn what_goes_while_it_is_measured_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    settings.set(Limits { max_bytes: 100 * MIB, max_total_bytes: TOTAL, ..Limits::default() });
    let quotas = Quotas::new(dir.path().join("none"), settings);
    let path = dir.path();
    quotas.measured(path, || Ok(2 * TOTAL)).unwrap();
    // A measure that began before a deletion, and ends behind one that began after it.
    let late = quotas.measured(path, || {
        quotas.forget(path);
        assert!(quotas.check_sums(path).is_ok(), "what is there is measured");
        Ok(2 * TOTAL)
    });
    assert_eq!((late, quotas.check_sums(path).is_ok()), (Ok(2 * TOTAL), true));
    // A measure behind a deletion that is still under way.
    quotas.measured(path, || Ok(2 * TOTAL)).unwrap();
    quotas.forget(path);
    let second = quotas.measured(path, || {
        assert!(quotas.check_sums(path).is_ok(), "nobody waits for the other measure");
        Ok(0)
    });
    assert_eq!((second, quotas.check_sums(path).is_ok()), (Ok(0), true));
    assert!(quotas.state.lock().shrunk.is_empty());
}

/// The workspaces in a directory, anew, and those of three agents.
fn workspaces(dir: &Path) -> (Settings, [Workspace; 3]) {
    let settings = Settings::default();
    settings.set(Limits { max_bytes: 100 * MIB, max_total_bytes: TOTAL, ..Limits::default() });
    let all = Workspaces::limited(dir.join("workspaces"), settings.clone());
    let open = |n: u128| all.open(AgentId(Uuid::from_u128(n)), &format!("agent-{n}")).unwrap();
    (settings, [1, 2, 3].map(open))
}

fn full<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::TotalQuota { max: TOTAL, .. }))
}

#[test]
fn small_files_that_are_written_again_count_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (_, [w, ..]) = workspaces(dir.path());
    let bytes = || w.shared.quotas.state.lock().known[w.path()].bytes;
    w.write("a", b"x", Write::Overwrite).unwrap();
    w.write("b", &HALF[..64 << 10], Write::Overwrite).unwrap();
    let before = bytes();
    for _ in 0..10 {
        w.write("a", b"y", Write::Overwrite).unwrap();
    }
    // A file system may count a block twice for the moment in which it gives it its place on the disk.
    assert!(bytes().abs_diff(before) <= 4096, "{} after {before}", bytes());
}

#[test]
fn all_workspaces_hold_no_more_than_they_may_together() {
    let dir = tempfile::tempdir().unwrap();
    let (settings, [a, b, c]) = workspaces(dir.path());
    a.write("d/file", HALF, Write::Overwrite).unwrap();
    let refused = b.write("file", HALF, Write::Overwrite);
    assert!(refused.as_ref().unwrap_err().to_string().contains("`[workspaces] max_total_bytes`"), "{refused:?}");
    assert!(full(refused) && full(b.append("file", HALF)) && full(a.write("more", HALF, Write::Overwrite)));
    assert!(b.list("", true, 9).unwrap().entries.is_empty(), "nothing is left of what was refused");
    // Whatever is smaller than what is left is written, and commands run.
    b.write("small", b"x", Write::Overwrite).unwrap();
    drop(b.for_command().unwrap());
    // What goes elsewhere counts no more at once, also where a directory goes.
    assert_eq!(a.remove("d", true).unwrap(), 2);
    b.write("file", HALF, Write::Overwrite).unwrap();
    assert!(full(a.write("file", HALF, Write::Overwrite)));
    assert_eq!(a.read("file", 0, 1).map_err(|error| matches!(error, Error::NotFound(_))), Err(true));
    assert_eq!(b.read("file", 0, 2).unwrap().bytes, [7, 7]);
    // A command that writes too much is stopped, and one that only reads is not; then none begins.
    let (reads, writes) = (b.for_command().unwrap(), c.for_command().unwrap());
    fs::write(c.path().join("big"), HALF).unwrap();
    assert_eq!(writes.full(None).unwrap(), Some(Full::Workspaces));
    assert_eq!(reads.full(None).unwrap(), None);
    drop((reads, writes));
    assert!(full(a.for_command()) && full(c.for_command()) && full(a.write("x", b"x", Write::Overwrite)));
    b.remove("file", false).unwrap();
    drop(a.for_command().unwrap());
    settings.set(Limits { max_bytes: 100 * MIB, max_total_bytes: 3 * MIB, ..Limits::default() });
    b.write("file", HALF, Write::Overwrite).unwrap();
}

/// Until something is so that another thread brings about.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 20, "{what}");
        thread::yield_now();
    }
}

#[test]
fn what_is_there_after_a_start_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (_, [a, ..]) = workspaces(dir.path());
    a.write("file", HALF, Write::Overwrite).unwrap();
    // Of an agent that is gone.
    let aside = dir.path().join("workspaces/gone.1");
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("file"), HALF).unwrap();
    let (_, [_, b, _]) = workspaces(dir.path());
    let quotas = &b.shared.quotas;
    assert_eq!(quotas.state.lock().total, 0);
    until("all are counted", || full(b.write("x", b"x", Write::Overwrite)));
    // What goes by other hands is found by the next count.
    removal::remove(&aside).unwrap();
    assert!(full(b.for_command()));
    quotas.state.lock().counted = None;
    until("all are counted", || b.write("x", b"x", Write::Overwrite).is_ok());
    assert!(!quotas.state.lock().known.contains_key(&aside));
    assert!(full(b.write("y", HALF, Write::Overwrite)));
}

#[test]
fn a_family_and_a_user_leave_room_to_others_and_files_of_deleted_agents_count_for_whose_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    settings.set(Limits { max_bytes: 100 * MIB, max_share_bytes: MIB, max_total_bytes: 100 * MIB });
    let [family, other] = [1, 9].map(|n| Holder::Family(AgentId(Uuid::from_u128(n))));
    let user = Holder::User(UserId(Uuid::from_u128(1)));
    let start = || Workspaces::limited(dir.path().join("workspaces"), settings.clone());
    let open = |all: &Workspaces, n: u128, holder| {
        all.open_for(AgentId(Uuid::from_u128(n)), &format!("agent-{n}"), holder).unwrap()
    };
    let full = |result: Result<bool, Error>| matches!(result, Err(Error::ShareQuota { max: MIB, .. }));
    let all = start();
    let [a, b, c, d] = [(1, family), (2, family), (3, user), (4, other)].map(|(n, holder)| open(&all, n, holder));
    a.write("file", HALF, Write::Overwrite).unwrap();
    let refused = b.write("file", HALF, Write::Overwrite);
    assert!(refused.as_ref().unwrap_err().to_string().contains("`[workspaces] max_share_bytes`"), "{refused:?}");
    assert!(full(refused) && full(b.append("file", HALF).map(|_| true)));
    c.write("file", HALF, Write::Overwrite).unwrap();
    d.write("file", HALF, Write::Overwrite).unwrap();
    a.remove("file", false).unwrap();
    b.write("file", HALF, Write::Overwrite).unwrap();
    // A command that fills the share is stopped; those of others run.
    let (filling, of_user) = (a.for_command().unwrap(), c.for_command().unwrap());
    fs::write(a.path().join("big"), HALF).unwrap();
    assert_eq!((filling.full(None).unwrap(), of_user.full(None).unwrap()), (Some(Full::Share), None));
    drop((filling, of_user));
    assert!(matches!(b.for_command(), Err(Error::ShareQuota { .. })));
    fs::remove_file(a.path().join("big")).unwrap();
    // The second agent is gone when the daemon starts again; one that goes to another holder takes its files along.
    let all = start();
    let (a, d) = (open(&all, 1, family), open(&all, 4, other));
    until("all are counted", || full(a.write("file", HALF, Write::Overwrite)));
    d.write("small", b"x", Write::Overwrite).unwrap();
    let d = open(&all, 4, user);
    assert!(full(d.write("more", b"x", Write::Overwrite)));
}
