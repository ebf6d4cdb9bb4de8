#!/usr/bin/env python3
"""An example agent: it deploys a release when a person asks for one, and it only pretends to.

It shows what an agent does with a session of matrix-elicit (docs/signals.md has the contract):

  * it hears of sessions by webhook, or with --events by a stream, so that nothing has to reach it;
  * it checks the signature of a webhook, acknowledges it at once, and works in a thread per session;
  * it says something soon: a thought, an action, then a question with options (`select`);
  * it takes whatever comes back for what it is: the value of an option, or a person's own words;
  * for production it asks the person to connect an account (`auth`);
  * when a person stops it, it drops everything at once and says one last word.

Run it beside a bot that has an agent with this token, and this webhook if it is to use one:

    ELICIT_URL=http://127.0.0.1:8470 AGENT_TOKEN=… WEBHOOK_SECRET=whsec_… python3 examples/agent.py
    ELICIT_URL=http://127.0.0.1:8470 AGENT_TOKEN=… python3 examples/agent.py --events

Then say `builder: deploy the release` in a room (`builder` being what people call the agent).
`cargo run -- demo --agent` does all of this on a homeserver of its own.

What it keeps, it keeps in memory. An agent with real work writes an event down before it
acknowledges it, so that a restart loses nothing.

Python 3.10 or newer, its standard library, and this file.
"""

import argparse
import base64
import collections
import hashlib
import hmac
import html
import http.client
import http.server
import json
import os
import queue
import re
import secrets
import sys
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

RELEASE = "2.4.0"
ENVIRONMENTS = {"staging": "Staging", "production": "Production"}
STEPS = (
    "reading the change log", "checking the tag", "fetching the sources", "building the image",
    "running the tests", "scanning the image", "signing the image", "pushing the image",
    "taking a backup", "warming the cache", "draining the first node", "updating the first node",
    "checking the first node", "draining the second node", "updating the second node",
    "checking the second node", "running the migrations", "switching the traffic",
    "watching the error rate", "cleaning up",
)  # fmt: skip

# How often it asks the same question before it gives up.
MOST_QUESTIONS = 3
# A webhook that is older than this is somebody's recording.
TOLERANCE_SECONDS = 5 * 60
LARGEST_BODY = 1024 * 1024
# How many ids are remembered, of events and of sessions that are over.
REMEMBERED = 10_000
# A session that nobody has spoken to for so long keeps no thread.
IDLE_SECONDS = 60 * 60
REQUEST_SECONDS = 30
# The stream says something every 15 seconds, if only that it is there.
QUIET_SECONDS = 60
TRIES = 6


def tell(text):
    """Says on standard error what happens, a line each. It is never given a secret."""
    line = "".join(c if c.isprintable() else " " for c in text)
    print(line if len(line) <= 160 else line[:159] + "…", file=sys.stderr, flush=True)


# --- Speaking to the bot -----------------------------------------------------------------------


class Refused(Exception):
    """The bot said no: `{"error": {"code", "message"}}`."""

    def __init__(self, status, code, message):
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code


class Api:
    """The bot's HTTP API, with this agent's token."""

    def __init__(self, url, token):
        self.url = url.rstrip("/")
        self.token = token

    def open(self, method, path, body=None, headers=(), timeout=REQUEST_SECONDS):
        """Sends one request. Raises `Refused`, or `OSError` when the bot cannot be reached."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        for name, value in headers:
            request.add_header(name, value)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            return urllib.request.urlopen(request, timeout=timeout)
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, text = refusal.code, refusal.read()
        try:
            error = json.loads(text)["error"]
            code, message = error["code"], error["message"]
        except (ValueError, KeyError, TypeError):
            code, message = "UNKNOWN", "this is not how the bot answers"
        raise Refused(status, code, message)

    def post(self, path, body):
        """Posts, and again while the bot is away. What got lost on the way back comes twice."""
        wait = 0.5
        for left in reversed(range(TRIES)):
            try:
                with self.open("POST", path, body) as response:
                    return json.load(response)
            except Refused as refused:
                if refused.status != 503 or left == 0:
                    raise
            except (OSError, http.client.HTTPException):
                if left == 0:
                    raise
            time.sleep(wait)
            wait *= 2


# --- One session -------------------------------------------------------------------------------


class Stopped(Exception):
    """A person wants the session to stop."""


class Ended(Exception):
    """The session is over for good: nothing that is written to it is taken."""


class Session:
    """What this agent does in one session, in a thread of its own."""

    def __init__(self, agent, session_id):
        self.agent = agent
        self.id = session_id
        self.inbox = queue.Queue()
        self.stopping = threading.Event()
        self.has_begun = False
        self.finished = []
        self.environment = None

    def hear(self, activity):
        """Takes a person's prompt. Called from other threads; never waits.

        The field says whether it is a stop: the word in somebody's sentence is a word. A stop goes
        ahead of everything else, so an older prompt may come after it; that one is too late.
        """
        if activity.get("signal") == "stop":
            self.stopping.set()
        elif self.stopping.is_set():
            return
        # A stop goes into the inbox too: it wakes up whoever waits there for an answer.
        self.inbox.put(activity)

    def run(self):
        """Works off what people say, one thing after the other, until the session is over."""
        while True:
            try:
                prompt = self.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self.agent.forget(self):
                    return
                continue
            if "connected" in prompt:
                continue  # It came too late to be waited for.
            try:
                if self.stopping.is_set():
                    raise Stopped
                self.deploy()
                continue
            except Stopped:
                self.last_word()
            except Ended:
                tell(f"{self.id} is over, and takes nothing any more")
            except Exception as error:  # Whatever it is, the person is told.
                tell(f"{self.id} failed: {error}")
                traceback.print_exc()
                if self.fail("Something went wrong on my side."):
                    continue
            self.agent.is_over(self)
            return

    # What it says.

    def act(self, kind, body, **more):
        """Posts an activity. Raises `Stopped` or `Ended` where there is nothing left to do."""
        if self.stopping.is_set() and kind in ("thought", "action", "elicitation"):
            raise Stopped
        try:
            content = {"type": kind, "body": body}
            path = f"/v1/sessions/{urllib.parse.quote(self.id)}/activities"
            return self.agent.api.post(path, {"content": content, **more})
        except Refused as refused:
            if refused.code in ("SESSION_ENDED", "SESSION_NOT_FOUND"):
                raise Ended from None
            if refused.code == "SESSION_STOPPING":
                # The person's stop is stored, and its event is still on its way.
                self.stopping.set()
                raise Stopped from None
            raise

    def ask(self, body, **more):
        """Asks, and waits for what a person says; that may be anything."""
        self.act("elicitation", body, **more)
        return self.next_word()

    def next_word(self, state=None):
        """What is said next, or that the account of this `state` is connected."""
        while True:
            activity = self.inbox.get()
            if self.stopping.is_set():
                raise Stopped
            if activity.get("connected", state) == state:
                return activity

    def last_word(self):
        """Says once what was done, and in which state things are. That ends the session."""
        done = len(self.finished)
        if done == len(STEPS):
            state = f"All of it was done before: {self.environment} has {RELEASE}."
        elif done:
            state = (
                f"I had done {done} of {len(STEPS)} steps for {self.environment}, "
                f"{self.finished[-1]} last. Nothing else is running, and nothing more will happen."
            )
        elif self.has_begun:
            state = "I had not begun to deploy; nothing was changed."
        else:
            # Also where it was restarted, and knows nothing of what it did before.
            state = "I had nothing in hand."
        tell(f"{self.id} is stopped after {done} steps")
        try:
            self.act("response", f"Stopped. {state}")
        except Ended:
            # It took too long, or the work was done just before the stop came.
            tell(f"{self.id} was over already")
        except (Refused, OSError, http.client.HTTPException) as error:
            tell(f"{self.id} did not get the last word: {error}")

    def fail(self, body):
        """Says that it failed. A session lives on after that: a person may say more."""
        try:
            self.act("error", body)
        except (Ended, Refused, OSError, http.client.HTTPException):
            return False
        return not self.stopping.is_set()

    # What it does.

    def deploy(self):
        self.has_begun = True
        self.finished = []
        self.environment = None
        # What is ephemeral stands in the room until the next one, and nobody keeps it.
        self.act("thought", "Looking for what is to be released.", ephemeral=True)
        self.act("action", f"Found release {RELEASE}, built and tested.")
        answer, said = self.choose_environment()
        if self.environment is None:
            self.act("error", "I could not tell where to deploy, so I did nothing.")
            return
        if self.environment == "production" and not self.connect(answer["user"]["user_id"]):
            self.act("response", "Without the account I do nothing. Nothing was deployed.")
            return
        self.work()
        note = ""
        if said != self.environment:
            note = (
                f"\n\nI took your answer for `{self.environment}`. The rest of it is yours to keep "
                "to: this example reads only the names."
            )
        self.act(
            "response",
            f"Deployed **{RELEASE}** to **{self.environment}**, in pretence.{note}\n\n"
            f"```text\n$ deploy --release {RELEASE} --to {self.environment}\n"
            f"{len(STEPS)} steps, 0 errors\n```",
        )
        tell(f"{self.id} has deployed to {self.environment}")

    def choose_environment(self):
        """Asks until it is told where to deploy; gives the answer, and what was said in it."""
        question = f"Which environment should I deploy {RELEASE} to? (An example: I only pretend.)"
        options = [{"value": value, "label": label} for value, label in ENVIRONMENTS.items()]
        answer, said = None, ""
        for _ in range(MOST_QUESTIONS):
            answer = self.ask(question, signal="select", signal_metadata={"options": options})
            said = answer["content"]["body"]
            self.environment = environment_in(said)
            if self.environment is not None:
                break
            question = f"I know of `staging` and `production` only. Where should {RELEASE} go?"
        return answer, said

    def connect(self, user_id):
        """Asks the person who chose production to connect an account; whether they have.

        A page of ours would send them to the provider, and hear from it that they are back. The
        one here, `Pages`, only has a button. Where this agent has an address that people can open
        (--public-url) that page is linked, and its button is the answer. Where it has none, the
        link is an example that leads nowhere, and the person's word is the answer.
        """
        state = self.agent.expect(self)
        self.act(
            "elicitation",
            "I need access to your GitHub account to tag the release. (An example: nothing is "
            "connected. If the page does not open, say `done`.)",
            signal="auth",
            signal_metadata={
                "url": f"{self.agent.public_url}/connect/github?state={state}",
                "user_id": user_id,
                "provider_name": "GitHub",
            },
        )
        going_on = "You say that your account is connected; going on."
        try:
            for _ in range(MOST_QUESTIONS):
                answer = self.next_word(state)
                if "connected" in answer:
                    going_on = "The page says that you are back; going on."
                    break
                # Somebody else in the room cannot say that this person has connected an account.
                said = words(answer["content"]["body"])
                if answer["user"]["user_id"] == user_id:
                    if said & {"done", "connected", "yes", "ok"} and not said & NEGATIONS:
                        break
                    if said & NEGATIONS:
                        return False
                self.act("elicitation", "Say `done` when your account is connected, or `no`.")
            else:
                return False
        finally:
            self.agent.expect_no_more(state)
        # Whatever is said next takes the link away; this is the way to say that it goes on.
        self.act("thought", going_on)
        return True

    def work(self):
        """Does one step after the other. A stop is noticed while one of them runs."""
        self.act("action", f"Deploying to {self.environment}, in {len(STEPS)} steps.")
        for number, step in enumerate(STEPS, 1):
            self.act("action", f"Step {number} of {len(STEPS)}: {step}.", ephemeral=True)
            if self.stopping.wait(self.agent.pace):
                # Here a real agent cancels the call that is running.
                raise Stopped
            self.finished.append(step)


NEGATIONS = {"no", "not", "don't", "never", "cancel", "abort"}


def words(text):
    return set(re.findall(r"[\w']+", text.casefold().replace("’", "'")))


def environment_in(said):
    """What a person means: an option's value, or their own words. `None` when that is not plain.

    An agent with a model has the model read it. This one knows the names, and takes no sentence
    that says no.
    """
    if said in ENVIRONMENTS:
        return said
    spoken = words(said)
    named = spoken & ENVIRONMENTS.keys()
    return named.pop() if len(named) == 1 and not spoken & NEGATIONS else None


# --- All of them -------------------------------------------------------------------------------


class Agent:
    """Hands every event to its session, each event once."""

    def __init__(self, api, pace, public_url):
        self.api = api
        self.pace = pace
        self.public_url = public_url
        self.lock = threading.Lock()
        self.seen = collections.OrderedDict()
        self.sessions = {}
        self.over = collections.OrderedDict()
        self.connecting = {}

    def take(self, event_id, event):
        """Takes an event, quickly: whoever brought it waits. An id that comes again is a retry."""
        if not isinstance(event, dict) or event.get("action") not in ("created", "prompted"):
            return  # Events of questions outside of sessions come the same way.
        session_id, activity = event["agent_session"]["id"], event["agent_activity"]
        signal, said = activity.get("signal") or "no signal", activity["content"]["body"]
        with self.lock:
            if not remember(self.seen, event_id):
                return
            tell(f"{session_id} {event['action']}, {signal}: {said}")
            if session_id in self.over:
                return
            session = self.sessions.get(session_id)
            if session is None:
                # Also for a `prompted`: it may belong to a session from before a restart.
                session = self.sessions[session_id] = Session(self, session_id)
                threading.Thread(target=session.run, daemon=True).start()
            session.hear(activity)

    def is_over(self, session):
        """Nothing more is to be done in a session."""
        with self.lock:
            self.sessions.pop(session.id, None)
            remember(self.over, session.id)

    def forget(self, session):
        """Lets an idle session go, unless somebody has just spoken to it."""
        with self.lock:
            if not session.inbox.empty():
                return False
            self.sessions.pop(session.id, None)
            return True

    def expect(self, session):
        """A secret by which the page of `Pages` knows whose account is being connected."""
        state = secrets.token_urlsafe(32)
        with self.lock:
            self.connecting[state] = session
        return state

    def expect_no_more(self, state):
        with self.lock:
            self.connecting.pop(state, None)

    def is_expected(self, state):
        with self.lock:
            return state in self.connecting

    def connected(self, state):
        """The person is back from the provider. Whether anybody waited for them."""
        with self.lock:
            session = self.connecting.pop(state, None)
        if session is not None:
            session.inbox.put({"connected": state})
        return session is not None


def remember(known, key):
    """Whether this is new. Only the latest are remembered."""
    if key in known:
        return False
    known[key] = True
    if len(known) > REMEMBERED:
        known.popitem(last=False)
    return True


# --- Hearing: webhooks, or the stream ----------------------------------------------------------


def is_signed(secret, headers, body, now):
    """Whether a webhook is the bot's: Standard Webhooks, https://www.standardwebhooks.com."""
    event_id = headers.get("webhook-id", "")
    sent_at = headers.get("webhook-timestamp", "")
    if not event_id or not re.fullmatch("[0-9]{1,12}", sent_at):
        return False
    if abs(now - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join((event_id.encode(), sent_at.encode(), body))
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    # While a secret is being changed there are several signatures.
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected, one.encode()) for one in given)


class Pages(http.server.BaseHTTPRequestHandler):
    """What this agent serves: /webhook for the bot, and /connect/github for people."""

    timeout = REQUEST_SECONDS

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > LARGEST_BODY:
            return self.answer(413)
        body = self.rfile.read(int(length))
        path = urllib.parse.urlsplit(self.path).path
        if path == "/webhook" and self.server.secret:
            return self.webhook(body)
        if path == "/connect/github":
            form = urllib.parse.parse_qs(body.decode(errors="replace"))
            if not self.server.agent.connected(form.get("state", [""])[0]):
                return self.answer(404, "Nobody waits for this any more.")
            return self.answer(200, "Thank you. The agent goes on; you may close this page.")
        return self.answer(404)

    def webhook(self, body):
        if not is_signed(self.server.secret, self.headers, body, time.time()):
            return self.answer(401)
        try:
            self.server.agent.take(self.headers["webhook-id"], json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError):
            return self.answer(400)
        # Within five seconds, or it comes again: the work goes on in the session's thread.
        return self.answer(204)

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        state = urllib.parse.parse_qs(address.query).get("state", [""])[0]
        if address.path != "/connect/github" or not self.server.agent.is_expected(state):
            return self.answer(404, "There is nothing here.")
        return self.answer(
            200,
            "This page stands for GitHub's: here you would let the agent use your account. "
            f'<form method="post"><input type="hidden" name="state" value="{html.escape(state)}">'
            "<button>Connect nothing, and go on</button></form>",
        )

    def answer(self, status, page=""):
        content = f"<!doctype html><title>Example agent</title><p>{page}".encode() if page else b""
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        if page:
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", "default-src 'none'; form-action 'self'")
            self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Addresses hold secrets here, so none is logged."""


def serve(address, agent, secret):
    """Serves `Pages` from threads of their own; gives where."""
    host, _, port = address.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Pages)
    server.daemon_threads = True
    server.agent, server.secret = agent, secret
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{host}:{server.server_address[1]}"


def listen(agent):
    """Takes events from the stream for ever, and goes on where it was when that ends."""
    last, is_new = None, True
    while True:
        # What was asked of the agent before its first start is none of its business.
        headers = [("Last-Event-ID", last)] if last else []
        try:
            with agent.api.open("GET", "/v1/events", None, headers, QUIET_SECONDS) as stream:
                if is_new:
                    tell("listening")
                    is_new = False
                for event_id, data in frames(stream):
                    try:
                        agent.take(event_id, json.loads(data))
                    except (ValueError, KeyError, TypeError, AttributeError) as error:
                        tell(f"event {event_id} is not understood: {error!r}")
                    last = event_id
        except Refused as refused:
            if refused.code == "EVENTS_EXPIRED":
                last = None
            elif refused.status not in (429, 503):
                raise
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(1)


def frames(stream):
    """The events of a stream (server-sent events), each with its id."""
    event_id, data = None, []
    for line in stream:
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            event_id = value
        elif name == "data":
            data.append(value)
        elif not name and not value and data:
            yield event_id, "\n".join(data)
            data = []


# --- The program -------------------------------------------------------------------------------


def options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--url", default=os.environ.get("ELICIT_URL", "http://127.0.0.1:8470"),
        help="where the bot's API is (ELICIT_URL)")  # fmt: skip
    add("--events", action="store_true", help="listen to /v1/events instead of taking webhooks")
    add("--listen", default="127.0.0.1:8600", metavar="HOST:PORT",
        help="where webhooks and the connect page are served; port 0 takes a free one")  # fmt: skip
    add("--public-url", metavar="URL",
        help="the https address at which people reach the connect page; without it the link in "
        "the room is an example that leads nowhere")  # fmt: skip
    add("--pace", type=float, default=1.5, metavar="SECONDS", help="how long a step of work takes")
    add("--end-with-stdin", action="store_true", help="end when standard input is closed")
    given = parser.parse_args()
    given.token = os.environ.get("AGENT_TOKEN") or parser.error("AGENT_TOKEN is not set")
    given.secret = None if given.events else os.environ.get("WEBHOOK_SECRET")
    if not given.events and not given.secret:
        parser.error("WEBHOOK_SECRET is not set; without webhooks there is --events")
    return given


def main():
    given = options()
    public_url = (given.public_url or "https://builder.example").rstrip("/")
    agent = Agent(Api(given.url, given.token), given.pace, public_url)
    if not given.events or given.public_url:
        # The first line of output says where; `/webhook` below it is the webhook.
        print(json.dumps({"url": serve(given.listen, agent, given.secret)}), flush=True)
    if given.events:
        listening = threading.Thread(target=listen, args=(agent,), daemon=True)
        listening.start()
    else:
        listening = threading.current_thread()
    if given.end_with_stdin:
        sys.stdin.read()
        return
    while listening.is_alive():
        time.sleep(1)
    sys.exit("the bot takes nothing from this agent: is the token right?")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
