//! `shell_exec`: what runs, with what environment, and what it cannot reach.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use agentsvc::kernel::sandbox::config::{ExecMode, ExecPolicy};
use agentsvc::kernel::sandbox::{Asked, Commands, Request, Workspaces};
use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;
use serde_json::json;
use uuid::Uuid;

use crate::Harness;

#[test]
fn a_command_runs_in_the_workspace() {
    let harness = Harness::full();
    let said = harness.sh("pwd; echo hello > f; cat f; echo bad >&2; exit 3");
    assert!(said.starts_with("Exit code: 3\n"), "{said}");
    assert!(said.contains("hello\n--- stderr\nbad\n"), "{said}");
    assert!(said.contains(&harness.workspace().canonicalize().unwrap().display().to_string()), "{said}");
    assert_eq!(fs::read_to_string(harness.workspace().join("f")).unwrap(), "hello\n");
    let words = harness.call("shell_exec", &json!({ "argv": ["echo", "a  b", "$HOME; ls"] }));
    assert!(words.contains("a  b $HOME; ls\n"), "{words}");
    let temporary = harness.sh("mktemp >/dev/null && ls .tmp | wc -l");
    assert!(temporary.contains("\n1\n"), "{temporary}");
    let killed = harness.sh("kill -SEGV $$");
    assert!(killed.contains("Exit code: 139 (ended by signal 11)"), "{killed}");
    let missing = harness.call("shell_exec", &json!({ "argv": ["no-such-program"] }));
    assert!(missing.contains("does not exist on this machine"), "{missing}");
    let both = harness.call("shell_exec", &json!({ "argv": ["ls"], "command": "ls" }));
    assert!(both.contains("either `command` or `argv`"), "{both}");
    let long = harness.call("shell_exec", &json!({ "argv": ["ls"], "timeout_secs": 601 }));
    assert!(long.contains("must be 1 to 600"), "{long}");
}

#[test]
fn the_environment_is_clean() {
    let passed = "env_passthrough = [\"PASSED\", \"TEST_MODEL_KEY\", \"MINE_KEY\", \"OPENAI_API_KEY\"]\n";
    let provider = "[providers.mine]\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"MINE_KEY\"\n";
    let config = format!("{provider}[exec_policy]\nmode = \"full\"\n{passed}");
    let harness = Harness::new(&config, "shell = [\"*\"]\n");
    let said = harness.call("shell_exec", &json!({ "argv": ["env"] }));
    assert!(said.contains("PASSED=passed-value\n"), "{said}");
    for secret in ["secret-value", "key-of-mine", "key-of-the-test-model", "AGENTSVC"] {
        assert!(!said.contains(secret), "{said}");
    }
    let names: Vec<&str> = said.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names.len(), 6, "PATH, HOME, TMPDIR, LANG, TERM and PASSED: {names:?}");
}

#[test]
fn outputs_are_cut_in_the_middle() {
    let config = "[exec_policy]\nmode = \"full\"\nmax_output_bytes = 1024\n";
    let harness = Harness::new(config, "shell = [\"*\"]\n");
    let said = harness.sh("echo first; yes | head -c 5000000; echo last");
    assert!(said.contains("first\n") && said.ends_with("last\n") && said.len() < 1_300, "{said}");
    assert!(said.contains("bytes cut out]"), "{said}");
}

#[test]
fn limits_are_kept() {
    let limits = "max_file_bytes = 65536\nmax_open_files = 20\nmax_cpu_secs = 1\nmax_memory_bytes = 67108864\n";
    let harness = Harness::new(&format!("[exec_policy]\nmode = \"full\"\n{limits}"), "shell = [\"*\"]\n");
    let said = harness.sh("ulimit -n; ulimit -c; head -c 1000000 /dev/zero > big; wc -c < big");
    assert!(said.contains("\n20\n0\n") && said.contains("\n65536\n"), "{said}");
    let busy = harness.sh("while :; do :; done");
    assert!(busy.contains("ended by signal"), "{busy}");
    let hungry = harness.sh("x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}");
    assert!(!hungry.contains("300000000"), "{hungry}");
}

#[test]
fn nothing_runs_by_default() {
    let harness = Harness::new("", "shell = [\"*\"]\n");
    let said = harness.call("shell_exec", &json!({ "argv": ["ls"] }));
    assert_eq!(said, "This machine does not allow agents to run \"ls\". Allowed programs: none.");
    assert!(harness.sh("ls").contains("shell command lines are not available"));
    let deny = Harness::new("[exec_policy]\nmode = \"deny\"\n", "shell = [\"*\"]\n");
    assert!(deny.sh("ls").contains("disabled"));
    let ungranted = Harness::new("[exec_policy]\nmode = \"full\"\n", "");
    assert!(ungranted.sh("ls").contains("is not allowed to call the tool"));
    let some = Harness::new("[exec_policy]\nmode = \"full\"\n", "shell = [\"echo\"]\n");
    assert!(some.call("shell_exec", &json!({ "argv": ["echo", "hi"] })).contains("hi\n"));
    assert!(some.call("shell_exec", &json!({ "argv": ["ls"] })).contains("Its manifest grants: echo."));
}

#[test]
fn an_allowlist_holds_for_what_a_program_starts() {
    let harness = Harness::new("[exec_policy]\nallowed_commands = [\"env\", \"echo\"]\n", "shell = [\"*\"]\n");
    let env = |words: &[&str]| {
        let words: Vec<&str> = ["env"].iter().chain(words).copied().collect();
        harness.call("shell_exec", &json!({ "argv": words }))
    };
    assert!(env(&["echo", "hi"]).contains("hi\n"));
    assert!(
        harness.call("shell_exec", &json!({ "argv": ["sh", "-c", "ls"] })).contains("Allowed programs: env, echo.")
    );
    if harness.landlock().is_none() {
        return;
    }
    harness.call("file_write", &json!({ "path": "own.sh", "content": "#!/bin/sh\necho escaped\n" }));
    let own = harness.workspace().join("own.sh");
    fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::copy("/bin/sh", harness.workspace().join("sh")).unwrap();
    for words in [&["sh", "-c", "echo escaped"][..], &["./own.sh"], &["./sh", "-c", "echo escaped"], &["cat", "own.sh"]]
    {
        let said = env(words);
        // Not to be run, or not even there.
        let refused = ["Exit code: 126", "Exit code: 127"].iter().any(|code| said.starts_with(code));
        assert!(refused && !said.contains("escaped"), "{said}");
    }
}

#[test]
fn the_home_and_the_machine_are_out_of_reach() {
    let harness = Harness::full();
    let (home, pid) = (harness.daemon.home().display().to_string(), harness.daemon.pid());
    let other = harness.daemon.agent_with("bob", "");
    assert!(harness.sh("echo begins").contains("begins"));
    if harness.landlock().is_none() {
        return;
    }
    let config = fs::read_to_string(harness.daemon.home().join("config.toml")).unwrap();
    for line in [
        format!("cat {home}/config.toml"),
        "cat ../../config.toml".to_owned(),
        "ln -s ../../config.toml link; cat link".to_owned(),
        "ln ../../config.toml hard && cat hard".to_owned(),
        "cat /proc/self/root/../../config.toml /proc/self/cwd/../../config.toml".to_owned(),
        format!("cat /proc/{pid}/environ"),
        format!("cat /proc/{pid}/root{home}/config.toml"),
        format!("ls {home} {home}/data {home}/data/world"),
        format!("ls {home}/workspaces {home}/workspaces/bob"),
        "cat /etc/shadow".to_owned(),
        "ls /root /home /var /tmp /run".to_owned(),
        "cat /dev/sda /dev/mem /dev/vda".to_owned(),
    ] {
        let said = harness.sh(&line);
        let out = said.split("--- stderr").next().unwrap_or_default();
        assert!(!out.contains("--- stdout"), "{line}: {said}");
    }
    for line in [
        format!("echo x >> {home}/config.toml"),
        format!("mv {home}/config.toml ."),
        "touch /tmp/agentsvc-escaped".to_owned(),
        "mknod device b 8 0".to_owned(),
        "mv ../bob ./bob".to_owned(),
    ] {
        let said = harness.sh(&line);
        assert!(!said.starts_with("Exit code: 0"), "{line}: {said}");
    }
    harness.sh(&format!("rm -rf {home}/data"));
    assert!(harness.daemon.home().join("data").read_dir().unwrap().next().is_some());
    assert_eq!(fs::read_to_string(harness.daemon.home().join("config.toml")).unwrap(), config);
    harness.daemon.detail(&other);
    if harness.landlock() >= Some(6) {
        let said = harness.sh(&format!("kill -9 {pid}; kill -9 $PPID; echo alive"));
        assert!(said.contains("alive"), "{said}");
        harness.daemon.get("/api/health").expect(200);
    }
}

#[test]
fn the_network_needs_a_grant() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    if !std::path::Path::new("/bin/bash").exists() {
        return eprintln!("skipped: no bash");
    }
    let line = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port} && echo connected'");
    let open = Harness::new("[exec_policy]\nmode = \"full\"\n", "shell = [\"*\"]\nnetwork = [\"*\"]\n");
    assert!(open.sh(&line).contains("connected"));
    if open.landlock() < Some(4) {
        return eprintln!("skipped: this kernel has no rules for TCP");
    }
    for capabilities in ["shell = [\"*\"]\n", "shell = [\"*\"]\nnetwork = [\"example.org\"]\n"] {
        let closed = Harness::new("[exec_policy]\nmode = \"full\"\n", capabilities);
        let said = closed.sh(&line);
        assert!(!said.contains("connected\n") && said.contains("Permission denied"), "{said}");
    }
}

/// Another agent's workspace may come in the place of one whose command waited.
#[tokio::test]
async fn a_command_runs_in_no_other_workspace_than_its_own() {
    let home = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(home.path().join("workspaces"));
    let ann = AgentId(Uuid::from_u128(1));
    let policy = ExecPolicy { mode: ExecMode::Full, ..ExecPolicy::default() };
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_agentsvc"));
    let commands = Commands::with_launcher(policy.clone(), vec![home.path().to_owned()], Vec::new(), launcher);
    let workspace = workspaces.open(ann, "ann").unwrap();
    let request = async |is_moved: bool| {
        let workspace_of_command = workspace.for_command().unwrap();
        let place = commands.place(Holder::Family(ann)).await.unwrap();
        if is_moved {
            fs::rename(workspace.path(), home.path().join("workspaces/moved")).unwrap();
            fs::create_dir(workspace.path()).unwrap();
            fs::write(workspace.path().join("secret"), "of another agent").unwrap();
        }
        Request {
            place,
            asked: Asked::Line("echo begun; cat secret".to_owned()),
            workspace: workspace_of_command,
            shown: Vec::new(),
            granted: vec!["*".into()],
            network: false,
            secrets: Vec::new(),
            variables: Vec::new(),
            timeout_secs: None,
        }
    };
    let ran = commands.run(request(false).await).await.unwrap();
    assert_eq!(ran.stdout, "begun\n", "{ran:?}");
    let ran = commands.run(request(true).await).await.unwrap();
    assert!(ran.code == Some(125) && ran.stdout.is_empty() && ran.stderr.contains("was moved"), "{ran:?}");
    commands.set(ExecPolicy { mode: ExecMode::Deny, ..policy }, Vec::new());
    fs::remove_dir_all(workspace.path()).unwrap();
    fs::rename(home.path().join("workspaces/moved"), workspace.path()).unwrap();
    let refused = commands.run(request(false).await).await.unwrap_err();
    assert!(refused.contains("Commands are disabled"), "what is in force counts, not what was: {refused}");
}
