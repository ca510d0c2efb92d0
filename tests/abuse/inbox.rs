//! Files that somebody drops into the inbox without measure: too many, too large, links, pipes, files that change while they are
//! read. Agents beside them, the operator, and files that are sound are served all the while.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::harness::{Memory, Neighbour, harness, wait};
use crate::support::daemon::Daemon;
use crate::support::model::Model;

/// Files of a flood: more than one look takes on.
const FILES: usize = 1_200;
/// Agents that they are for.
const READERS: usize = 12;

fn daemon(config: &str) -> (Daemon, PathBuf) {
    let daemon =
        harness(&format!("{config}[inbox]\nenabled = true\npoll_interval_secs = 1\ndefault_agent = \"reader\"\n"));
    let inbox = daemon.home().join("inbox");
    wait("the inbox is there", || inbox.join("failed").is_dir().then_some(()));
    (daemon, inbox)
}

/// Has a file been still for a while.
fn age(file: &File) {
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
}

/// A file that is complete.
fn put(inbox: &Path, name: &str, bytes: &[u8]) {
    let part = inbox.join(format!(".{name}"));
    let mut file = File::create(&part).unwrap();
    file.write_all(bytes).unwrap();
    age(&file);
    fs::rename(part, inbox.join(name)).unwrap();
}

fn waiting(inbox: &Path) -> usize {
    let names = fs::read_dir(inbox).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| !matches!(name.to_str(), Some("processed" | "failed"))).count()
}

fn reasons(inbox: &Path) -> Vec<String> {
    let files = fs::read_dir(inbox.join("failed")).unwrap().map(|entry| entry.unwrap().path());
    let notes = files.filter(|path| path.extension().is_some_and(|it| it == "reason"));
    notes.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Counts of the status, processed and failed.
fn counts(daemon: &Daemon) -> (u64, u64) {
    let status = daemon.get("/api/inbox/status").expect(200);
    (status["processed_count"].as_u64().unwrap(), status["failed_count"].as_u64().unwrap())
}

#[test]
fn thousands_of_files_are_taken_a_few_at_a_time_and_hooks_have_room_beside_them() {
    let model = Model::start();
    let hooks = "[webhook_triggers]\nenabled = true\nrate_limit_per_minute = 1000000\n";
    let (daemon, inbox) = daemon(&(model.config() + hooks));
    for n in 0..READERS {
        daemon.agent_with(&format!("reader{n}"), "");
    }
    daemon.agent("other");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    model.hold();
    for n in 0..FILES {
        put(&inbox, &format!("f{n:04}.txt"), format!("agent:reader{}\nfile {n}", n % READERS).as_bytes());
    }
    let status = wait("no more are taken", || {
        let status = daemon.get("/api/inbox/status").expect(200);
        status["last_error"].as_str().is_some_and(|why| why.contains("open")).then_some(status)
    });
    assert!(status["processed_count"].as_u64() <= Some(128), "{status}");
    // What the inbox has open leaves room for hooks.
    let asked = serde_json::json!({ "message": "hello", "agent": "other" });
    assert_eq!(daemon.post("/api/hooks/agent", &asked).expect(200)["status"], "completed");
    memory.is_flat(&daemon, "1,200 files in the inbox");
    neighbour.is_served();
    model.release();
    wait("all are taken", || (counts(&daemon) == (FILES as u64, 0)).then_some(()));
    assert_eq!(waiting(&inbox), 0);
    memory.is_flat(&daemon, "1,200 files that were read");
    neighbour.leave();
}

#[test]
fn giant_files_links_and_pipes_are_put_aside_unread_and_sound_files_pass_them() {
    let model = Model::start();
    let (daemon, inbox) = daemon(&model.config());
    daemon.agent_with("reader", "");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let secret = daemon.home().join("secret.txt");
    fs::write(&secret, "the-secret-of-the-operator").unwrap();
    for n in 0..20 {
        // Sparse: 10 GiB that take no room on the disk.
        let file = File::create(inbox.join(format!(".g{n}"))).unwrap();
        file.set_len(10 << 30).unwrap();
        age(&file);
        fs::rename(inbox.join(format!(".g{n}")), inbox.join(format!("giant-{n}.txt"))).unwrap();
        symlink(&secret, inbox.join(format!("link-{n}.txt"))).unwrap();
        symlink("/dev/zero", inbox.join(format!("zero-{n}.txt"))).unwrap();
        symlink(inbox.join(format!("loop-{n}")), inbox.join(format!("loop-{n}"))).unwrap();
        symlink("processed", inbox.join(format!("folder-{n}"))).unwrap();
        fs::hard_link(&secret, inbox.join(format!("hard-{n}.txt"))).unwrap();
        fs::create_dir(inbox.join(format!("directory-{n}"))).unwrap();
        let pipe = inbox.join(format!("pipe-{n}.txt"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        put(&inbox, &format!("{}.txt", "n".repeat(230 + n % 10)), b"a long name");
    }
    put(&inbox, "zz-sound.txt", b"the last one, and sound");
    wait("all are put aside or taken", || (waiting(&inbox) == 0).then_some(()));
    let asked =
        || model.server.requests().iter().map(|request| format!("{:?}", request.messages())).collect::<String>();
    wait("the sound one is read", || asked().contains("the last one, and sound").then_some(()));
    assert!(!asked().contains("the-secret-of-the-operator"));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the-secret-of-the-operator");
    let all = reasons(&inbox);
    for (part, least) in
        [("longer than", 20), ("symbolic link", 80), ("hard link", 20), ("directory", 20), ("regular file", 20)]
    {
        let found = all.iter().filter(|why| why.contains(part)).count();
        assert_eq!(found, least, "{part}: {all:?}");
    }
    memory.is_flat(&daemon, "giant files, links and pipes");
    neighbour.leave();
}

#[test]
fn files_that_change_while_they_are_read_become_whole_messages_or_none() {
    let model = Model::start();
    let (daemon, inbox) = daemon(&model.config());
    daemon.agent_with("reader", "");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let stop = AtomicBool::new(false);
    struct StopAtEnd<'s>(&'s AtomicBool);
    impl Drop for StopAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let whole = |letter: char| letter.to_string().repeat(20_000);
    std::thread::scope(|scope| {
        // One that is replaced all the time; one that is written in place and always looks old; one that is moved away again.
        scope.spawn(|| {
            for n in 0_u32.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let letter = if n.is_multiple_of(2) { 'a' } else { 'b' };
                put(&inbox, "replaced.txt", whole(letter).as_bytes());
                let mut file = File::create(inbox.join("written.txt")).unwrap();
                for half in [&whole('c'), &whole('d')] {
                    file.write_all(half.as_bytes()).unwrap();
                    age(&file);
                }
                put(&inbox, "moved.txt", whole('e').as_bytes());
                // It may be taken by now.
                let _ = fs::rename(inbox.join("moved.txt"), inbox.join(".moved"));
            }
        });
        let at_end = StopAtEnd(&stop);
        wait("some became messages", || (counts(&daemon).0 >= 5).then_some(()));
        neighbour.is_served();
        drop(at_end);
    });
    wait("what is left is taken", || {
        let names = fs::read_dir(&inbox).unwrap().map(|entry| entry.unwrap().file_name());
        let open = names.filter(|name| name.to_str().is_some_and(|name| name.ends_with(".txt"))).count();
        (open == 0).then_some(())
    });
    daemon.settle();
    for request in model.server.requests() {
        let said = request.last_user().to_owned();
        let Some((head, body)) = said.split_once('\n').filter(|(head, _)| head.starts_with("[INBOX FILE")) else {
            continue;
        };
        let letters: std::collections::BTreeSet<char> = body.chars().collect();
        // One whose name is taken when it is put away gets another.
        let is_put = ["replaced", "moved"].iter().any(|name| head.starts_with(&format!("[INBOX FILE: {name}")));
        let is_whole = if is_put {
            letters.len() == 1 && body.len() == 20_000
        } else {
            // It was never complete by the rules of the inbox; what was read was there at one time.
            letters.iter().all(|letter| matches!(letter, 'c' | 'd'))
        };
        assert!(is_whole, "{head}: {} bytes of {letters:?}", body.len());
    }
    memory.is_flat(&daemon, "files that change");
    neighbour.leave();
}
