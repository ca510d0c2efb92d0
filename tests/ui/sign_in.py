"""Single sign-on in the browser, at an identity provider that other people wrote: oidc-provider of npm. The provider is at another
site (127.0.0.1) than the page (localhost), as it is in life."""

import os
import pathlib
import re
import subprocess
import sys
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import expect

import access
import stage as stages
from stage import config, until

KEY = 'api_key = "the-key-of-the-configuration"\n'
ADMIN = '[[users]]\nname = "ann@example.com"\nrole = "admin"\n'
ENDED = "Your session has ended. Sign in again."
#: What the page says of a sign-in that is not of this browser, or was completed before.
UNKNOWN = "The sign-in is unknown, was completed before, was begun in another browser, or has expired; start it again."


class Provider:
    """The provider as a child process, and the daemon of the stage, which knows it from now on."""

    def __init__(self, stage, more=""):
        daemon = stage.daemon
        folder = os.environ.get("AGENTSVC_NPM_OIDC") or str(stages.ROOT / "target/npm-oidc")
        assert pathlib.Path(folder, "node_modules/oidc-provider").is_dir(), "npm-oidc is missing: run tests/set_up.sh"
        port = urlsplit(daemon.url).port
        command = ["node", str(stages.ROOT / "tests/http/sign_in/provider.mjs"), folder, str(port)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.host = f"127.0.0.1:{self.process.stdout.readline().strip()}"
        external = (f'[external_auth]\nenabled = true\nissuer_url = "http://{self.host}"\nclient_id = "me"\n'
                    f'client_secret_env = "SIGN_IN_TEST_SECRET"\nallowed_domains = ["example.com"]\n{more}'
                    f'[web.fetch]\nssrf_allowed_hosts = ["{self.host}"]\n')
        with open(pathlib.Path(daemon.home, "config.toml"), "a") as file:
            file.write(external)
        daemon.variables["SIGN_IN_TEST_SECRET"] = "client-secret-canary"
        daemon.restart()
        self.daemon = daemon
        self.page_url = f"http://localhost:{port}/"
        self.callback = f"{self.page_url}api/auth/callback"
        # The page of the provider wants a font of the internet. The others are what this is about: pages of refused sign-ins.
        stage.allowed += ["net::ERR_", "status of 400", "status of 401", "status of 502"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def tell(self, word):
        """`rotate`, `expire` or `renew`: see provider.mjs."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == word

    def browser(self, stage):
        """A browser that nobody has used, at the page."""
        page = stage.new_page()
        page.route("https://**", lambda route: route.abort())
        page.goto(self.page_url)
        return page

    def begin(self, page):
        """Follows the button of the page to the provider; gives the state of the sign-in."""
        with page.expect_request(lambda request: request.url.startswith(f"http://{self.host}/auth?")) as asked:
            login(page).get_by_role("link", name="Sign in with 127.0.0.1").click()
        page.get_by_role("heading", name="Sign-in").wait_for()
        return parse_qs(urlsplit(asked.value.url).query)["state"][0]

    def agree(self, page, person):
        """Signs in at the provider and consents."""
        page.get_by_placeholder("Enter any login").fill(person)
        page.get_by_placeholder("and password").fill("x")
        page.get_by_role("button", name="Sign-in").click()
        page.get_by_role("button", name="Continue").click()

    def sign_in(self, page, person):
        """From the page to the provider and back; gives the address at which the provider sent the browser back."""
        with page.expect_request(lambda request: request.url.startswith(self.callback)) as back:
            self.begin(page)
            self.agree(page, person)
        return back.value.url

    def signed_in(self, page, person):
        """As `sign_in`; the page has the session."""
        url = self.sign_in(page, person)
        expect(page.locator(".rail-links a").first).to_be_visible()
        expect(login(page)).to_have_count(0)
        return url

    def sessions(self):
        return [session["username"] for session in self.daemon.call("GET", "/api/auth/sessions")["sessions"]]


def login(page):
    return page.get_by_role("dialog", name="Sign in to agentsvc")


def whoami(page):
    """Who the browser is for the daemon: by its cookie alone."""
    return page.evaluate("async () => { const answer = await fetch('api/whoami'); return { status: answer.status, ...(await answer.json()) }; }")


def cookie_of(page):
    """The cookie of the session; null without one."""
    return next((cookie for cookie in page.context.cookies() if cookie["name"] == "agentsvc_session"), None)


def names(page):
    """The pages of the navigation."""
    return page.locator(".rail-links a[data-page]").evaluate_all("(links) => links.map((link) => link.dataset.page)")


def expect_refused(stage, page, text, name):
    """The browser shows a page that says why nobody is signed in, and that leads back to the login."""
    expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
    expect(page.get_by_role("paragraph").first).to_have_text(text)
    assert cookie_of(page) is None
    # A page without pages beside it: the rules for those do not hold for it.
    assert access.axe_findings(page) == []
    stage.shoot(name.replace(" ", "-"), page)
    page.get_by_role("link", name="Back to agentsvc").click()
    expect(login(page).get_by_role("link", name="Sign in with 127.0.0.1")).to_be_visible()


def assert_covered(page):
    """Nothing can be seen beside the login, nor clicked, nor reached with the keyboard."""
    script = """() => [0.02, 0.3, 0.5, 0.7, 0.98].flatMap((x) => [0.02, 0.3, 0.5, 0.7, 0.98].map((y) => document.elementFromPoint(x * innerWidth, y * innerHeight)))
      .filter((node) => !node?.closest("dialog.login")).length"""
    assert page.evaluate(script) == 0
    assert page.evaluate("() => getComputedStyle(document.querySelector('dialog.login')).backgroundColor.startsWith('rgb(')"), "it is opaque"


def menu(page, entry):
    page.locator(".rail-foot").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name=entry).click()


@config(KEY + ADMIN)
def case_rights(stage):
    """People sign in at the provider and come back with a session that has the rights of their role; the cookie is no script's."""
    with Provider(stage) as provider:
        agent = stage.daemon.agent("shared")
        page = provider.browser(stage)
        expect(login(page).get_by_role("link", name="Sign in with 127.0.0.1")).to_be_visible()
        access.check(page, "the login with a provider")
        stage.shoot("sign-in-login", page)
        provider.signed_in(page, "ann")
        assert (whoami(page)["kind"], whoami(page)["role"], whoami(page)["name"]) == ("session", "admin", "ann@example.com")
        cookie = cookie_of(page)
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["value"].startswith("asvs_"), cookie
        assert page.evaluate("() => document.cookie + localStorage.getItem('agentsvc-api-key')") == "null"
        assert "asvs_" not in page.evaluate("() => JSON.stringify(sessionStorage)")
        assert {"world", "money", "settings"} <= set(names(page)), names(page)
        page.goto(provider.page_url + "#/settings/sessions")
        expect(page.get_by_role("table", name="Sessions")).to_contain_text("ann@example.com (this session)")
        page.goto(provider.page_url + f"#/chat/{agent}")
        expect(page.locator(".composer textarea")).to_be_enabled()

        # Someone of the domain whom the configuration does not name is a user, and sees what is theirs.
        other = provider.browser(stage)
        provider.signed_in(other, "bob")
        assert whoami(other)["role"] == "user" and names(other) == ["chat", "memory", "automation", "library"], names(other)
        expect(other.get_by_text("Welcome to agentsvc")).to_be_visible()
        expect(other.get_by_text("shared")).to_have_count(0)
        other.goto(provider.page_url + "#/settings")
        expect(other.locator(".chat")).to_be_visible()
        assert sorted(provider.sessions()) == ["ann@example.com", "bob@example.com"]
        menu(other, "Your account")
        account = other.get_by_role("dialog", name="Your account")
        expect(account).to_contain_text("Within limits")
        expect(account.get_by_role("table", name="Sessions")).to_contain_text("bob@example.com (this session)")
        expect(account).not_to_contain_text("ann@example.com")
        access.check(other, "the account of a person with a session")
        stage.shoot("sign-in-account", other)
        account.get_by_role("button", name="End the session of bob@example.com").click()
        other.get_by_role("dialog", name="End the session of bob@example.com?").get_by_role("button", name="End", exact=True).click()
        expect(login(other)).to_be_visible()
        assert provider.sessions() == ["ann@example.com"]

        # Who cancels is told so, and may try again.
        third = provider.browser(stage)
        provider.begin(third)
        third.get_by_role("link", name="Cancel").click()
        expect_refused(stage, third, "127.0.0.1 declined the sign-in: access_denied.", "sign-in cancelled")


@config(KEY)
def case_states_and_codes(stage):
    """A wrong state, that of another browser, an answer that comes twice and a code that was used sign nobody in, and the page says why."""
    with Provider(stage) as provider:
        page = provider.browser(stage)
        other = provider.browser(stage)
        of_other = provider.begin(other)
        state = provider.begin(page)
        for name, wrong in [("wrong state", f"x{state}"), ("state of another browser", of_other)]:
            page.goto(f"{provider.callback}?{urlencode({'code': 'x', 'state': wrong})}")
            expect_refused(stage, page, UNKNOWN, name)
        assert provider.sessions() == []
        # The sign-in of the other browser was not touched.
        provider.agree(other, "bob")
        expect(other.locator(".rail-links a").first).to_be_visible()

        back = provider.signed_in(page, "ann")
        cookie = cookie_of(page)
        page.goto(back)
        expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
        expect(page.get_by_role("paragraph").first).to_have_text(UNKNOWN)
        # The session that there is stays as it is.
        assert cookie_of(page) == cookie
        page.get_by_role("link", name="Back to agentsvc").click()
        expect(page.locator(".rail-links a").first).to_be_visible()

        # The code once more, with the state of a sign-in of its own: the provider refuses it.
        third = provider.browser(stage)
        fresh = provider.begin(third)
        sent = parse_qs(urlsplit(back).query)
        third.goto(f"{provider.callback}?{urlencode({'code': sent['code'][0], 'state': fresh, 'iss': sent['iss'][0]})}")
        expect_refused(stage, third, re.compile("^The identity provider 127.0.0.1 did not sign you in: .*invalid_grant"), "replayed code")
        assert sorted(provider.sessions()) == ["ann@example.com", "bob@example.com"]


@config(KEY)
def case_keys_and_tokens(stage):
    """The provider signs with another key: people still sign in. An identity token that has expired signs nobody in."""
    with Provider(stage) as provider:
        provider.signed_in(provider.browser(stage), "ann")
        provider.tell("rotate")
        provider.signed_in(provider.browser(stage), "bob")
        provider.tell("expire")
        page = provider.browser(stage)
        provider.sign_in(page, "eve")
        text = ("The identity provider 127.0.0.1 cannot be used: the identity token has expired; "
                "compare the clocks of the provider and of this machine.")
        expect_refused(stage, page, text, "expired token")
        assert sorted(provider.sessions()) == ["ann@example.com", "bob@example.com"]
        provider.tell("renew")
        page = provider.browser(stage)
        provider.signed_in(page, "eve")
        assert whoami(page)["name"] == "eve@example.com"


@config(KEY + ADMIN)
def case_the_end_of_a_session(stage):
    """A session of a minute: the open page asks for a new sign-in and says why; the cookie opens nothing any more."""
    with Provider(stage, "session_ttl_secs = 60\n") as provider:
        page = provider.browser(stage)
        provider.signed_in(page, "ann")
        cookie = cookie_of(page)
        page.goto(provider.page_url + "#/settings/sessions")
        expect(page.get_by_role("table", name="Sessions")).to_contain_text("ann@example.com (this session)")
        # The page asks for the sessions again and again, until it may not.
        expect(login(page)).to_contain_text(ENDED)
        assert_covered(page)
        access.check(page, "the login after the end of a session")
        stage.shoot("sign-in-ended", page)
        # The browser has thrown the cookie away. Who has kept it gets nothing for it.
        assert cookie_of(page) is None
        page.context.add_cookies([{**cookie, "expires": -1}])
        assert whoami(page)["status"] == 401
        assert provider.sessions() == []
        # The provider knows the person: there is nothing to type.
        login(page).get_by_role("link", name="Sign in with 127.0.0.1").click()
        until("there is a session again", lambda: cookie_of(page) or page.wait_for_timeout(100))
        expect(login(page)).to_have_count(0)
        assert whoami(page)["name"] == "ann@example.com" and cookie_of(page)["value"] != cookie["value"]


@config(KEY + ADMIN)
def case_logout(stage):
    """After a logout neither the page, nor the way back, nor a kept cookie shows anything."""
    with Provider(stage) as provider:
        stage.daemon.agent("secret-agent")
        page = provider.browser(stage)
        provider.signed_in(page, "ann")
        cookie = cookie_of(page)
        page.goto(provider.page_url + "#/settings/sessions")
        expect(page.get_by_role("table", name="Sessions")).to_contain_text("ann@example.com (this session)")
        page.goto(provider.page_url + "#/chat")
        expect(page.get_by_text("secret-agent").first).to_be_visible()
        # A second tab of the same browser.
        tab = page.context.new_page()
        tab.goto(provider.page_url + "#/settings/sessions")
        expect(tab.get_by_role("table", name="Sessions")).to_contain_text("ann@example.com (this session)")

        menu(page, "Sign out ann@example.com")
        expect(login(page)).to_be_visible()
        assert cookie_of(page) is None and provider.sessions() == []
        stage.shoot("sign-in-logout", page)
        for _ in range(2):
            page.go_back()
            expect(login(page)).to_be_visible()
            content = page.content()
            assert "secret-agent" not in content and "ann@example.com" not in content
        expect(login(tab)).to_contain_text(ENDED)
        assert_covered(tab)

        page.context.add_cookies([cookie])
        assert whoami(page)["status"] == 401
        page.goto(provider.page_url + "#/chat")
        page.reload()
        expect(login(page)).to_be_visible()
        assert "secret-agent" not in page.content()
        # The log knows who went.
        kinds = [entry["event_type"] for entry in stage.daemon.call("GET", "/api/audit/recent")["entries"]]
        assert {"signed_in", "sign_in_ended"} <= set(kinds), kinds


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
