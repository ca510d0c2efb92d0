//! Single sign-on at an identity provider that other people wrote: oidc-provider of npm.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;

use super::owner;
use super::provider::KEY;
use crate::support::clients::{has_node, installed, skipped};
use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::routes::root;

/// The provider as a child process.
struct Provider {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    client: Client,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Provider {
    /// For a daemon at this port.
    fn start(port: u16) -> Self {
        let folder = installed().join("npm-oidc");
        assert!(folder.join("node_modules/oidc-provider").is_dir(), "npm-oidc is missing: run tests/set_up.sh");
        let mut command = Command::new("node");
        command.arg(root().join("tests/http/sign_in/provider.mjs")).arg(folder).arg(port.to_string());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Node starts");
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut provider = Self { child, to, from, client: Client::new(SocketAddr::from(([127, 0, 0, 1], 0))) };
        let port = provider.line().parse().expect("its port");
        provider.client = Client::new(SocketAddr::from(([127, 0, 0, 1], port)));
        provider
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the provider says something");
        line.trim().to_owned()
    }

    fn rotate(&mut self) {
        writeln!(self.to, "rotate").unwrap();
        assert_eq!(self.line(), "rotate");
    }

    fn issuer(&self) -> String {
        format!("http://{}", self.client.addr)
    }
}

/// A browser at the provider: its cookies.
#[derive(Default)]
struct Browser(BTreeMap<String, String>);

impl Browser {
    fn send(&mut self, client: &Client, method: &str, path: &str, body: Option<&str>) -> Reply {
        let cookies: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        let headers = [
            ("cookie", cookies.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "text/html"),
        ];
        let reply = client.send(method, path, &headers, body.map(str::as_bytes));
        for (_, value) in reply.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = value.split(';').next().unwrap().split_once('=').unwrap();
            self.0.insert(name.to_owned(), value.to_owned());
        }
        reply
    }

    /// Signs in as `person` at the address, agrees, and gives where the browser is sent back.
    fn agree(&mut self, provider: &Provider, location: &str, person: &str) -> String {
        let path = |url: &str| url.strip_prefix(&provider.issuer()).unwrap_or(url).to_owned();
        let mut next = path(location);
        for _ in 0..12 {
            let reply = self.send(&provider.client, "GET", &next, None);
            if let Some(to) = reply.header("location") {
                if to.contains("/api/auth/callback") {
                    return to[to.find("/api").unwrap()..].to_owned();
                }
                next = path(to);
                continue;
            }
            let page = reply.text();
            assert_eq!(reply.status, 200, "{next}: {page}");
            let prompt = if page.contains("name=\"login\"") { "login" } else { "consent" };
            let form = format!("prompt={prompt}&login={person}&password=x");
            let reply = self.send(&provider.client, "POST", &next, Some(&form));
            next = path(reply.header("location").unwrap_or_else(|| panic!("{prompt}: {}", reply.text())));
        }
        panic!("the provider asks without an end");
    }
}

#[test]
fn people_sign_in_at_a_real_provider() {
    if skipped() || !has_node("a real identity provider") {
        return;
    }
    // The provider must know where the daemon is, and the daemon where the provider is.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut provider = Provider::start(port);
    let config = format!(
        "api_key = \"{KEY}\"\nrate_limit_per_second = 1000000\n[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n[external_auth]\nenabled = true\n\
         issuer_url = \"{}\"\nclient_id = \"me\"\nclient_secret_env = \"SIGN_IN_TEST_SECRET\"\nallowed_domains = [\"example.com\"]\n\
         redirect_url = \"http://127.0.0.1:{port}/api/auth/callback\"\n",
        provider.client.addr,
        provider.issuer()
    );
    let daemon = Daemon::with_env(&config, &[("SIGN_IN_TEST_SECRET", "client-secret-canary")]);
    let login = || {
        let sent = daemon.get("/api/auth/login");
        assert_eq!(sent.status, 307, "{}", sent.text());
        sent.header("location").unwrap().to_owned()
    };
    let back = Browser::default().agree(&provider, &login(), "ann");
    let signed_in = daemon.get(&back).expect(200);
    assert_eq!((&signed_in["user"]["username"], &signed_in["user"]["sub"]), (&json!("ann@example.com"), &json!("ann")));
    let ann = daemon.keyed(&text(&signed_in["token"]));
    ann.get("/api/agents").expect(200);
    // Once, and with no other state.
    assert_eq!(daemon.get(&back).expect(400)["code"], "sign_in_state");
    let other = Browser::default().agree(&provider, &login(), "bob");
    let wrong = format!("{}x", other);
    assert_eq!(daemon.get(&wrong.replace("state=", "state=x")).expect(400)["code"], "sign_in_state");
    // It signs with another key from now on.
    provider.rotate();
    let back = Browser::default().agree(&provider, &login(), "bob");
    assert_eq!(daemon.get(&back).expect(200)["user"]["username"], "bob@example.com");
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 2);
    ann.poke("/auth/logout").expect(200);
    ann.get("/api/agents").refused(401);
}
