"""A Superpipeline board as far as its questions go, for tests and for the demo.

It holds the questions that agents ask on one board, pushes each of them to whoever subscribed,
lists what is pending, and takes a person's answer, once. It knows nothing of whoever talks to
it, and refuses whatever a real board refuses:

    GET  /v1/boards/{board}/elicitations/pending        an agent reads what is pending
    POST /v1/boards/{board}/push-configs                an agent subscribes to pushes
    POST /v1/boards/{board}/elicitations/{id}/answer    a person answers
    POST /identity/assertions                           a service asks for a person's token

The last one is a different service in real life and is here only to need one process less.

A question is `pending` until it is `answered` or `cancelled`; both are final and the first writer
wins. A push is signed, tried again after 1, 2, 4, 8 and 16 units on anything but 2xx, then dead.
Nothing is kept: a board that is started again has forgotten everything.

What a test wants from it goes through /control (see `Control`), behind a token of its own: asking
and cancelling, looking at everything that came and went, and making it misbehave (see `Faults`).

It listens on loopback only, says `{"url": "http://127.0.0.1:PORT"}` in its first line of output,
and ends when its standard input is closed or on SIGTERM. Secrets may be given in the environment,
where other users of the machine cannot read them: BOARD_AGENT_TOKEN, BOARD_CONTROL_TOKEN,
BOARD_IDENTITY_TOKEN, and BOARD_BEARERS as `TOKEN=USER TOKEN=USER`.

Python 3.10 or newer, its standard library, and this file.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import datetime
import hashlib
import heapq
import hmac
import http.client
import http.server
import ipaddress
import itertools
import json
import os
import re
import secrets
import signal
import socket
import socketserver
import sys
import threading
import time
import urllib.parse

AGENT_TOKEN_PREFIXES = ("kbn_", "spa_")
EVENTS = ("elicitation.pending", "gate.pending", "work.available")
RETRY_UNITS = (1, 2, 4, 8, 16)
PUSH_TIMEOUT_SECONDS = 10
PUSH_WORKERS = 64
LARGEST_BODY = 256 * 1024
REMEMBERED = 20_000


# --- What the board says no with ---------------------------------------------------------------


class Refusal(Exception):
    """A request is answered with this status and body."""

    def __init__(self, status, body):
        super().__init__(status, body)
        self.status = status
        self.body = body

    @property
    def reason(self):
        """The code, or the text of a flat refusal."""
        error = self.body["error"]
        return error["code"] if isinstance(error, dict) else error


def coded(status, code, message):
    """A refusal by a rule of the board."""
    return Refusal(status, {"error": {"code": code, "message": message}})


def flat(status, text):
    """A refusal before any rule of the board was looked at: who calls, and where."""
    return Refusal(status, {"error": text})


def invalid_answer(message):
    return coded(400, "INVALID_ANSWER", message)


# --- Small things ------------------------------------------------------------------------------


def now():
    """The time as it goes over the wire."""
    instant = datetime.datetime.now(datetime.timezone.utc)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wire(value):
    """A value as the bytes that are sent and signed."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def plain(text, most=120):
    """Text of strangers on one line of a terminal."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def is_text(value):
    return isinstance(value, str) and value.strip() != ""


class Story:
    """Tells on standard error what happens, a line each. It is never given a secret."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.lock = threading.Lock()

    def tell(self, line):
        if self.wanted:
            with self.lock:
                print(line, file=sys.stderr, flush=True)


# --- Who is there ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Caller:
    """Whose credential came with a request: an agent's, a person's, or nobody's."""

    agent: str | None = None
    person: str | None = None

    def __str__(self):
        return self.agent or self.person or "unknown"


class People:
    """Credentials: who a token belongs to, who the board knows, and who has which Matrix user.

    Having a credential and being known to the board are two things: somebody who has left still
    holds a valid token.
    """

    def __init__(self, tenant):
        self.lock = threading.RLock()
        self.tenant = tenant
        self.agents = {}
        self.bearers = {}
        self.known = set()
        self.matrix_users = {}
        self.expires_in = 300
        self.life = None

    def caller(self, headers):
        """Who calls. A bearer token that nobody has is not made good by other headers."""
        bearer = bearer_of(headers)
        with self.lock:
            if bearer is not None:
                if bearer in self.agents:
                    return Caller(agent=self.agents[bearer])
                user, until = self.bearers.get(bearer, (None, None))
                expired = until is not None and time.monotonic() >= until
                return Caller() if expired else Caller(person=user)
            user = headers.get("X-User-Id", "").strip()
            if self.tenant and headers.get("X-Tenant-Id") == self.tenant and user:
                return Caller(person=user)
            return Caller()

    def is_known(self, user):
        with self.lock:
            return user in self.known

    def add(self, user, matrix_user=None, bearer=None, known=True):
        with self.lock:
            if known:
                self.known.add(user)
            else:
                self.known.discard(user)
            if matrix_user is not None:
                self.matrix_users[matrix_user] = user
            if bearer is not None:
                self.bearers[bearer] = (user, None)

    def forget_bearer(self, bearer):
        with self.lock:
            self.bearers.pop(bearer, None)

    def issue(self, matrix_user):
        """A token for the person with this Matrix user, or nothing if there is none."""
        with self.lock:
            user = self.matrix_users.get(matrix_user)
            if user is None:
                return None
            token = "ast_" + secrets.token_urlsafe(24)
            life = self.expires_in if self.life is None else self.life
            self.bearers[token] = (user, time.monotonic() + life)
            return {"token": token, "expires_in": self.expires_in}

    def revoke_issued(self):
        """Takes back every token that was issued; those of the command line stay."""
        with self.lock:
            self.bearers = {t: held for t, held in self.bearers.items() if held[1] is None}


def bearer_of(headers):
    found = re.fullmatch(r"[Bb]earer +(\S+) *", headers.get("Authorization") or "")
    return found[1] if found else None


# --- Faults ------------------------------------------------------------------------------------


class Faults:
    """How the board misbehaves, by route, on the test's word.

    A route (`pending`, `subscribe`, `answer`, `identity`, `push`, or `*` for every request from
    outside) has a list of behaviours. Each request uses up one; with `forever` they go round.

    For requests:
      {"do": "ok"}                                    nothing unusual
      {"do": "status", "status", "body"?, "headers"?} this answer; the request is not looked at
      {"do": "hang", "seconds"}                       no answer for so long, then closed
      {"do": "close"}                                 closed at once, the request not looked at
      {"do": "slow", "seconds"}                       waits for so long, then as usual
      {"do": "lose_reply"}                            done as usual, then closed without a word
      {"do": "garble"}                                done as usual, the answer cut in half
      {"do": "nest"}                                  done as usual, an error put one deeper

    For pushes, an attempt each:
      {"do": "ok"}         nothing unusual
      {"do": "drop"}       lost: never sent, never tried again
      {"do": "double"}     sent twice at once
      {"do": "wrong_key"}  signed with a key that nobody has
    """

    ROUTES = ("pending", "subscribe", "answer", "identity", "push", "*")
    FOR_REQUESTS = {
        "ok": (),
        "status": ("status", "body", "headers"),
        "hang": ("seconds",),
        "close": (),
        "slow": ("seconds",),
        "lose_reply": (),
        "garble": (),
        "nest": (),
    }
    FOR_PUSHES = {"ok": (), "drop": (), "double": (), "wrong_key": ()}
    USUAL = {"do": "ok"}

    def __init__(self):
        self.lock = threading.Lock()
        self.lists = {}
        self.down = False

    def set(self, route, behaviours, forever):
        if route not in self.ROUTES:
            raise flat(400, f"no route {route!r}; there are {', '.join(self.ROUTES)}")
        if not isinstance(behaviours, list) or not behaviours:
            raise flat(400, "behaviours is to be a list with something in it")
        possible = self.FOR_PUSHES if route == "push" else self.FOR_REQUESTS
        for behaviour in behaviours:
            name = behaviour.get("do") if isinstance(behaviour, dict) else None
            if name not in possible:
                raise flat(400, f"{route} cannot do {name!r}; it can {', '.join(possible)}")
            needed = {key for key in possible[name] if key in ("status", "seconds")}
            given = set(behaviour) - {"do"}
            if not needed <= given <= set(possible[name]):
                raise flat(400, f"{name} takes {possible[name]}, not {sorted(given)}")
        with self.lock:
            self.lists[route] = (collections.deque(behaviours), bool(forever))

    def clear(self, route=None):
        with self.lock:
            if route is None:
                self.lists.clear()
            else:
                self.lists.pop(route, None)

    def left(self):
        with self.lock:
            return {route: list(behaviours) for route, (behaviours, _) in self.lists.items()}

    def next(self, route):
        """What the next request of this route, or the next push, meets with."""
        with self.lock:
            if self.down and route != "push":
                return {"do": "close"}
            for name in (route,) if route == "push" else (route, "*"):
                behaviours, forever = self.lists.get(name, ((), False))
                if behaviours:
                    behaviour = behaviours.popleft()
                    if forever:
                        behaviours.append(behaviour)
                    return behaviour
            return self.USUAL


# --- Pushes ------------------------------------------------------------------------------------


@dataclasses.dataclass
class Subscription:
    """Where an agent wants events pushed, and the key they are signed with."""

    id: str
    agent: str
    url: str
    token: str
    events: list


@dataclasses.dataclass
class Push:
    """One event on its way to one subscription. Its bytes are the same at every attempt."""

    subscription: Subscription
    event: str
    elicitation: str | None
    body: bytes
    state: str = "queued"
    tries: int = 0
    attempts: list = dataclasses.field(default_factory=list)


def check_url(url, allow_private):
    """Refuses what the board does not push to.

    Names are not looked up: the board refuses addresses as they are written, in any of the
    spellings that an address has, and names that are local by definition.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise coded(400, "INVALID_URL", "url is not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise coded(400, "INVALID_URL", "url is to be an absolute http or https URL")
    if parts.username is not None or parts.password is not None:
        raise coded(400, "INVALID_URL", "url may not carry credentials")
    if not allow_private and is_private(host):
        raise coded(400, "INVALID_URL", "url is on a private address")


def is_private(host):
    host = host.rstrip(".").lower()
    if "." not in host and ":" not in host and not host.isdecimal() and not host.startswith("0x"):
        return True
    if host.endswith((".localhost", ".local", ".internal", ".home.arpa")):
        return True
    try:
        address = ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, ValueError):
            return False
    address = getattr(address, "ipv4_mapped", None) or address
    return not address.is_global or address.is_multicast


def signature(token, body):
    return "sha256=" + hmac.new(token.encode(), body, hashlib.sha256).hexdigest()


class Pusher:
    """Sends pushes, each on its own: a receiver that hangs delays no other question's push."""

    def __init__(self, unit, faults, story):
        self.unit = unit
        self.faults = faults
        self.story = story
        self.pool = concurrent.futures.ThreadPoolExecutor(PUSH_WORKERS)
        self.changed = threading.Condition()
        self.pushes = collections.deque(maxlen=REMEMBERED)
        self.waiting = []
        self.order = itertools.count()
        threading.Thread(target=self.wake_when_due, daemon=True).start()

    def send(self, push):
        with self.changed:
            self.pushes.append(push)
        self.pool.submit(self.attempt, push)

    def list(self):
        with self.changed:
            return [
                {
                    "event": push.event,
                    "elicitationId": push.elicitation,
                    "subscription": push.subscription.id,
                    "url": push.subscription.url,
                    "body": push.body.decode("utf-8", "replace"),
                    "state": push.state,
                    "attempts": [dict(attempt) for attempt in push.attempts],
                }
                for push in self.pushes
            ]

    def attempt(self, push):
        fault = self.faults.next("push")["do"]
        if fault == "drop":
            with self.changed:
                push.state = "dropped"
            self.story.tell(f"pushed {plain(push.elicitation or push.event)} : lost on the way")
            return
        # The key of this moment: what waits while a key is rotated goes out under the new one.
        key = secrets.token_hex(16) if fault == "wrong_key" else push.subscription.token
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Superpipeline",
            "X-Superpipeline-Event": push.event,
            "X-Superpipeline-Signature": signature(key, push.body),
        }
        copies = 2 if fault == "double" else 1
        outcomes = [{} for _ in range(copies)]
        together = threading.Barrier(copies)
        others = [
            threading.Thread(target=self.post, args=(push, headers, together, outcome), daemon=True)
            for outcome in outcomes[1:]
        ]
        for other in others:
            other.start()
        self.post(push, headers, together, outcomes[0])
        for other in others:
            other.join()
        self.note(push, outcomes)

    @staticmethod
    def post(push, headers, together, outcome):
        """One POST. Redirects are not followed: they are not 2xx."""
        outcome["at"] = now()
        parts = urllib.parse.urlsplit(push.subscription.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname, parts.port, timeout=PUSH_TIMEOUT_SECONDS)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        together.wait()
        try:
            connection.request("POST", target, push.body, headers)
            response = connection.getresponse()
            outcome["status"] = response.status
            outcome["answer"] = response.read(LARGEST_BODY).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            outcome["error"] = type(error).__name__
        finally:
            connection.close()

    def note(self, push, outcomes):
        """Writes down what came of an attempt, and when the next one is."""
        with self.changed:
            push.tries += 1
            push.attempts.extend(outcomes)
            if any(200 <= outcome.get("status", 0) < 300 for outcome in outcomes):
                push.state = "delivered"
            elif push.tries > len(RETRY_UNITS):
                push.state = "dead"
            else:
                push.state = "retrying"
                due = time.monotonic() + RETRY_UNITS[push.tries - 1] * self.unit
                heapq.heappush(self.waiting, (due, next(self.order), push))
                self.changed.notify()
        for outcome in outcomes:
            told = outcome.get("status") or outcome["error"]
            dead = ", given up" if push.state == "dead" else ""
            self.story.tell(f"pushed {plain(push.elicitation or push.event)} : {told}{dead}")

    def wake_when_due(self):
        with self.changed:
            while True:
                if not self.waiting:
                    self.changed.wait()
                elif (left := self.waiting[0][0] - time.monotonic()) > 0:
                    self.changed.wait(left)
                else:
                    self.pool.submit(self.attempt, heapq.heappop(self.waiting)[2])


# --- The board ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Elicitation:
    """A question of an agent that holds a run on a card."""

    id: str
    card_id: str
    card_title: str
    run_id: str
    stage_key: str
    agent_id: str
    question: str
    options: list
    created_at: str
    state: str = "pending"
    answer: dict | None = None
    cancelled_because: str | None = None


class Board:
    """The questions, the subscriptions, and the rules."""

    ASKED_WITH = ("cardId", "cardTitle", "runId", "stageKey", "agentId", "question", "options")

    def __init__(self, board_id, name, people, pusher, allow_private, story):
        self.id = board_id
        self.name = name
        self.people = people
        self.pusher = pusher
        self.allow_private = allow_private
        self.story = story
        self.lock = threading.RLock()
        self.elicitations = {}
        self.subscriptions = {}

    # Asking

    def ask(self, fields):
        """A question is asked; an older one about the same card is over, and nobody is told."""
        unknown = set(fields) - set(self.ASKED_WITH) - {"elicitationId"}
        if unknown:
            raise flat(400, f"a question has no {', '.join(sorted(unknown))}")
        for name in set(fields) - {"options"}:
            if not isinstance(fields[name], str):
                raise flat(400, f"{name} is to be a string")
        asked = Elicitation(
            id=fields.get("elicitationId") or "elc_" + secrets.token_hex(6),
            card_id=fields.get("cardId") or "crd_" + secrets.token_hex(6),
            card_title=fields.get("cardTitle", "Upgrade the build image"),
            run_id=fields.get("runId") or "run_" + secrets.token_hex(6),
            stage_key=fields.get("stageKey", "build"),
            agent_id=fields.get("agentId") or "agt_31d0",
            question=fields.get("question", ""),
            options=read_options(fields.get("options")),
            created_at=now(),
        )
        with self.lock:
            if asked.id in self.elicitations:
                raise flat(409, f"{asked.id} was asked before")
            self.retire(lambda older: older.card_id == asked.card_id, "superseded")
            self.elicitations[asked.id] = asked
            self.story.tell(f"asks {plain(asked.id)} “{plain(asked.question)}”")
            self.push("elicitation.pending", self.pushed_form(asked), asked.id)
            return asked

    def retire(self, which, why):
        """Cancels what is pending of these. The board pushes nothing of the kind."""
        with self.lock:
            retired = [
                asked.id
                for asked in self.elicitations.values()
                if asked.state == "pending" and which(asked)
            ]
            for elicitation_id in retired:
                self.elicitations[elicitation_id].state = "cancelled"
                self.elicitations[elicitation_id].cancelled_because = why
                self.story.tell(f"{plain(elicitation_id)} cancelled: {plain(why)}")
            return retired

    def pushed_form(self, asked):
        form = {"event": "elicitation.pending", "boardId": self.id}
        if self.name is not None:
            form["boardName"] = self.name
        form |= {
            "cardId": asked.card_id,
            "cardTitle": asked.card_title,
            "elicitationId": asked.id,
            "runId": asked.run_id,
            "stageKey": asked.stage_key,
            "agentId": asked.agent_id,
            "question": asked.question,
            "options": asked.options,
            "ts": asked.created_at,
        }
        return form

    def pending(self):
        """What is pending, the oldest first."""
        with self.lock:
            return [
                self.pushed_form(asked)
                for asked in self.elicitations.values()
                if asked.state == "pending"
            ]

    def find(self, elicitation_id):
        with self.lock:
            asked = self.elicitations.get(elicitation_id)
            if asked is None:
                raise coded(404, "ELICITATION_NOT_FOUND", "there is no such question")
            return asked

    # Answering

    def answer(self, caller, elicitation_id, body):
        """Takes a person's answer, or refuses. The first one is the only one."""
        try:
            return self.take_answer(caller, elicitation_id, body)
        except Refusal as refusal:
            who = f"{plain(str(caller))}: {plain(str(refusal.reason))}"
            self.story.tell(f"{plain(elicitation_id)} not answered by {who}")
            raise

    def take_answer(self, caller, elicitation_id, body):
        with self.lock:
            asked = self.elicitations.get(elicitation_id)
            if asked is not None and asked.agent_id in (caller.agent, caller.person):
                raise coded(403, "SEPARATION_OF_DUTIES", "whoever asks may not answer")
            # Any other agent's token is nobody's, where people are asked for.
            if caller.person is None:
                raise flat(401, "unauthenticated")
            if not self.people.is_known(caller.person):
                raise flat(403, "you are not a member of this board's workspace")
            option, text = read_answer(body)
            asked = self.find(elicitation_id)
            if asked.state != "pending":
                raise coded(409, "ELICITATION_NOT_PENDING", f"the question is {asked.state}")
            if option is not None and option not in [offered["id"] for offered in asked.options]:
                raise invalid_answer("that is not one of the options")
            asked.state = "answered"
            asked.answer = {
                "option": option,
                "text": text,
                "answeredBy": caller.person,
                "answeredAt": now(),
            }
            said = option if option is not None else f"“{text}”"
            self.story.tell(f"{plain(asked.id)} answered: {plain(said)}, by {plain(caller.person)}")
            return {
                "card": {"id": asked.card_id, "title": asked.card_title, "state": "working"},
                "elicitation": own_form(asked),
            }

    # Subscribing and pushing

    def subscribe(self, agent, body):
        """Subscribes an agent, or changes its subscription for the same URL; whether it is new."""
        if not isinstance(body, dict):
            raise coded(400, "INVALID_PUSH_CONFIG", "the body is to be a JSON object")
        url, token, events = (body.get(name) for name in ("url", "token", "events"))
        if not is_text(url):
            raise coded(400, "INVALID_URL", "url is to be a string")
        check_url(url, self.allow_private)
        if not is_text(token):
            raise coded(400, "INVALID_PUSH_CONFIG", "token is to be a string that is not blank")
        if not isinstance(events, list) or not events:
            raise coded(400, "INVALID_PUSH_CONFIG", "events is to be a list with something in it")
        for event in events:
            if event not in EVENTS:
                raise coded(400, "INVALID_PUSH_CONFIG", "events names one that nobody emits")
        with self.lock:
            found = self.subscriptions.get((agent, url))
            if found is None:
                found = Subscription("psh_" + secrets.token_hex(6), agent, url, token, events)
                self.subscriptions[agent, url] = found
                self.story.tell(f"{plain(agent)} subscribed to {', '.join(events)}")
                return found, True
            found.token, found.events = token, events
            return found, False

    def forget_subscriptions(self):
        with self.lock:
            self.subscriptions.clear()

    def list_subscriptions(self):
        """Keys only by their fingerprint: whether one has arrived can be told, not what it is."""
        with self.lock:
            return [
                {
                    **subscribed_form(each),
                    "agentId": each.agent,
                    "tokenSha256": hashlib.sha256(each.token.encode()).hexdigest(),
                }
                for each in self.subscriptions.values()
            ]

    def push(self, event, body, elicitation_id=None):
        """Sends these bytes, or this value, to whoever subscribed to the event."""
        body = body if isinstance(body, bytes) else wire(body)
        with self.lock:
            wanting = [each for each in self.subscriptions.values() if event in each.events]
        for subscription in wanting:
            self.pusher.send(Push(subscription, event, elicitation_id, body))
        return len(wanting)


def read_options(given):
    """Options in either spelling; of two with the same id the first counts."""
    options = {}
    for option in given if given is not None else []:
        if not isinstance(option, dict):
            raise flat(400, "an option is to be an object")
        option_id = option.get("id", option.get("name"))
        label = option.get("label", option.get("title", option_id))
        if not isinstance(option_id, str) or not isinstance(label, str):
            raise flat(400, "an option is to have an id and a label")
        options.setdefault(option_id, {"id": option_id, "label": label})
    return list(options.values())


def read_answer(body):
    """The option or the text of an answer: exactly one of them."""
    if not isinstance(body, dict):
        raise invalid_answer("the body is to be a JSON object")
    given = [name for name in ("option", "text") if name in body]
    if len(given) != 1:
        raise invalid_answer("exactly one of option and text is to be given")
    value = body[given[0]]
    if not is_text(value):
        raise invalid_answer(f"{given[0]} is to be a string that is not blank")
    return (value, None) if given[0] == "option" else (None, value)


def own_form(asked):
    """A question as the board itself speaks of it, in its own words for options."""
    return {
        "id": asked.id,
        "cardId": asked.card_id,
        "runId": asked.run_id,
        "agentId": asked.agent_id,
        "stageKey": asked.stage_key,
        "question": asked.question,
        "options": [{"name": each["id"], "title": each["label"]} for each in asked.options],
        "status": asked.state,
        "answer": asked.answer,
        "createdAt": asked.created_at,
    }


def subscribed_form(subscription):
    return {"id": subscription.id, "url": subscription.url, "events": subscription.events}


# --- The public side over HTTP -----------------------------------------------------------------


class Public:
    """What the board and the identity service answer, and a log of all that came."""

    PATHS = (
        ("pending", "GET", re.compile(r"/v1/boards/([^/]+)/elicitations/pending")),
        ("subscribe", "POST", re.compile(r"/v1/boards/([^/]+)/push-configs")),
        ("answer", "POST", re.compile(r"/v1/boards/([^/]+)/elicitations/([^/]+)/answer")),
        ("identity", "POST", re.compile(r"/identity/assertions")),
    )

    def __init__(self, board, people, identity_token, audience):
        self.board = board
        self.people = people
        self.identity_token = identity_token
        self.audience = audience
        self.lock = threading.Lock()
        self.log = collections.deque(maxlen=REMEMBERED)

    def route(self, method, path):
        """The name of the route, and the parts of the path; `None` where there is nothing."""
        for name, expected, pattern in self.PATHS:
            found = pattern.fullmatch(path)
            if found and method == expected:
                return name, [urllib.parse.unquote(part) for part in found.groups()]
        return None, []

    def respond(self, route, parts, headers, body):
        """Status and body for a request that is looked at."""
        if route is None or (route != "identity" and parts[0] != self.board.id):
            raise flat(404, "not found")
        return getattr(self, route)(parts, headers, body)

    def pending(self, _parts, headers, _body):
        self.agent(headers)
        return 200, {"elicitations": self.board.pending()}

    def subscribe(self, _parts, headers, body):
        agent = self.agent(headers)
        subscription, new = self.board.subscribe(agent, read_json(headers, body))
        return 201 if new else 200, subscribed_form(subscription)

    def answer(self, parts, headers, body):
        caller = self.people.caller(headers)
        return 200, self.board.answer(caller, parts[1], read_json(headers, body))

    def identity(self, _parts, headers, body):
        given = bearer_of(headers) or ""
        if not self.identity_token or not hmac.compare_digest(
            given.encode(), self.identity_token.encode()
        ):
            raise flat(401, "unauthenticated")
        asked = read_json(headers, body) or {}
        wanted = [asked.get(name) for name in ("matrix_user_id", "audience")]
        if not all(map(is_text, wanted)):
            message = "matrix_user_id and audience are to be strings"
            raise coded(400, "INVALID_REQUEST", message)
        if self.audience is not None and wanted[1] != self.audience:
            raise coded(400, "INVALID_AUDIENCE", "no tokens are issued for this audience")
        issued = self.people.issue(wanted[0])
        if issued is None:
            raise coded(404, "UNKNOWN_PERSON", "nobody is known by this Matrix user")
        return 200, issued

    def agent(self, headers):
        caller = self.people.caller(headers)
        if caller.agent is None:
            raise flat(401, "unauthenticated")
        return caller.agent

    def remember(self, method, path, route, headers, body):
        """An entry of the log, its status yet to come, with names in the place of secrets."""
        if route == "identity" and self.identity_token and (
            bearer_of(headers) == self.identity_token
        ):
            name = "identity client"
        else:
            name = str(self.people.caller(headers))
        shown = {}
        for header, value in headers.items():
            if header.lower() == "authorization":
                value = f"<{name}>"
            elif header.lower() in ("cookie", "proxy-authorization"):
                value = "<hidden>"
            shown[header.lower()] = value
        try:
            said = json.loads(body) if body else None
        except ValueError:
            said = "<unreadable>"
        if route == "subscribe" and isinstance(said, dict) and "token" in said:
            said["token"] = "<hidden>"
        entry = {
            "at": now(),
            "method": method,
            "path": path,
            "route": route,
            "by": name,
            "headers": shown,
            "body": said,
            "status": None,
            "lost": False,
        }
        with self.lock:
            self.log.append(entry)
        return entry

    def list(self):
        with self.lock:
            return [dict(entry) for entry in self.log]


def read_json(headers, body):
    """A JSON object, or `None` for anything else: the routes have their own words for that."""
    if headers.get("Content-Type", "").split(";")[0].strip().lower() != "application/json":
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# --- The control side over HTTP ----------------------------------------------------------------


class Control:
    """What tests and the demo do with the board. JSON in and out, never in the log of requests.

    POST   /control/ask                        a question, in the words of a push, all optional,
                                               also elicitationId; answers {"elicitationId"}
    GET    /control/elicitations               all of them, with state and answer
    GET    /control/elicitations/{id}          one of them
    POST   /control/elicitations/{id}/cancel   {"reason"?}: its run has ended
    POST   /control/elicitations/{id}/answer   {"user", "option" or "text"}: in the web app
    POST   /control/elicitations/{id}/push     pushes it once more, whatever has become of it
    POST   /control/cards/{id}/move            what is pending about the card is cancelled
    POST   /control/runs/{id}/end              what is pending of the run is cancelled
    POST   /control/push                       {"event", "body" or "raw"}: any event at all
    GET    /control/pushes                     what was pushed, every attempt with its outcome
    GET    /control/requests                   what came from outside, and how it was answered
    GET    /control/subscriptions              who is subscribed
    POST   /control/subscriptions              {"url", "token", "events"?, "agentId"?}: subscribes,
                                               or rotates the key of a subscription
    DELETE /control/subscriptions              forgets them all
    POST   /control/board                      {"name"}: renames, or with null has no name
    POST   /control/people                     {"user", "matrixUserId"?, "bearer"?, "known"?}
    DELETE /control/people                     {"bearer"}: this credential is good no longer
    POST   /control/identity                   {"expiresIn"?, "life"?, "revoke"?}: what tokens are
                                               said to live, what they do live, takes them back
    GET    /control/faults                     what is left of them
    POST   /control/faults                     {"route", "behaviours", "forever"?}; see `Faults`
    DELETE /control/faults                     {"route"?}: behaves again
    POST   /control/down                       {"down"}: whether every connection is closed
    """

    PATHS = (
        ("ask", "POST", r"ask"),
        ("elicitations", "GET", r"elicitations"),
        ("elicitation", "GET", r"elicitations/([^/]+)"),
        ("cancel", "POST", r"elicitations/([^/]+)/cancel"),
        ("answer", "POST", r"elicitations/([^/]+)/answer"),
        ("push_again", "POST", r"elicitations/([^/]+)/push"),
        ("move_card", "POST", r"cards/([^/]+)/move"),
        ("end_run", "POST", r"runs/([^/]+)/end"),
        ("push", "POST", r"push"),
        ("pushes", "GET", r"pushes"),
        ("requests", "GET", r"requests"),
        ("subscriptions", "GET", r"subscriptions"),
        ("subscribe", "POST", r"subscriptions"),
        ("forget_subscriptions", "DELETE", r"subscriptions"),
        ("rename", "POST", r"board"),
        ("person", "POST", r"people"),
        ("forget_bearer", "DELETE", r"people"),
        ("identity", "POST", r"identity"),
        ("faults_left", "GET", r"faults"),
        ("misbehave", "POST", r"faults"),
        ("behave", "DELETE", r"faults"),
        ("down", "POST", r"down"),
    )

    def __init__(self, token, public, people, board, faults):
        self.token = token
        self.public = public
        self.people = people
        self.board = board
        self.faults = faults

    def respond(self, method, path, headers, body):
        given = bearer_of(headers) or ""
        if not self.token or not hmac.compare_digest(given.encode(), self.token.encode()):
            raise flat(401, "unauthenticated")
        for name, expected, pattern in self.PATHS:
            found = re.fullmatch("/control/" + pattern, path)
            if found and method == expected:
                fields = read_json(headers, body) if body else {}
                if fields is None:
                    raise flat(400, "the body is to be a JSON object")
                parts = [urllib.parse.unquote(part) for part in found.groups()]
                return 200, getattr(self, name)(fields, *parts)
        raise flat(404, "not found")

    def ask(self, fields):
        return {"elicitationId": self.board.ask(fields).id}

    def elicitations(self, _fields):
        with self.board.lock:
            return {"elicitations": [self.shown(a) for a in self.board.elicitations.values()]}

    def elicitation(self, _fields, elicitation_id):
        with self.board.lock:
            return self.shown(self.board.find(elicitation_id))

    def shown(self, asked):
        return {
            **self.board.pushed_form(asked),
            "state": asked.state,
            "answer": asked.answer,
            "cancelledBecause": asked.cancelled_because,
        }

    def cancel(self, fields, elicitation_id):
        self.board.find(elicitation_id)
        why = str(fields.get("reason", "run ended"))
        return {"cancelled": self.board.retire(lambda a: a.id == elicitation_id, why)}

    def answer(self, fields, elicitation_id):
        caller = Caller(person=fields.pop("user", None))
        return self.board.answer(caller, elicitation_id, fields)

    def push_again(self, _fields, elicitation_id):
        with self.board.lock:
            asked = self.board.find(elicitation_id)
            form = self.board.pushed_form(asked)
            return {"subscriptions": self.board.push(form["event"], form, asked.id)}

    def move_card(self, _fields, card_id):
        return {"cancelled": self.board.retire(lambda a: a.card_id == card_id, "card moved")}

    def end_run(self, _fields, run_id):
        return {"cancelled": self.board.retire(lambda a: a.run_id == run_id, "run ended")}

    def push(self, fields):
        event = fields["event"]
        body = fields["raw"].encode() if "raw" in fields else wire(fields.get("body", {}))
        return {"subscriptions": self.board.push(event, body)}

    def pushes(self, _fields):
        return {"pushes": self.board.pusher.list()}

    def requests(self, _fields):
        return {"requests": self.public.list()}

    def subscriptions(self, _fields):
        return {"subscriptions": self.board.list_subscriptions()}

    def subscribe(self, fields):
        agent = fields.pop("agentId", next(iter(self.people.agents.values()), "agt_carrier"))
        fields.setdefault("events", ["elicitation.pending"])
        return subscribed_form(self.board.subscribe(agent, fields)[0])

    def forget_subscriptions(self, _fields):
        self.board.forget_subscriptions()
        return {}

    def rename(self, fields):
        with self.board.lock:
            self.board.name = fields["name"]
        return {}

    def person(self, fields):
        self.people.add(
            fields["user"],
            fields.get("matrixUserId"),
            fields.get("bearer"),
            fields.get("known", True),
        )
        return {}

    def forget_bearer(self, fields):
        self.people.forget_bearer(fields["bearer"])
        return {}

    def identity(self, fields):
        with self.people.lock:
            self.people.expires_in = fields.get("expiresIn", self.people.expires_in)
            self.people.life = fields.get("life", self.people.life)
        if fields.get("revoke"):
            self.people.revoke_issued()
        return {}

    def faults_left(self, _fields=None):
        return {"faults": self.faults.left(), "down": self.faults.down}

    def misbehave(self, fields):
        self.faults.set(fields.get("route"), fields.get("behaviours"), fields.get("forever"))
        return self.faults_left()

    def behave(self, fields):
        self.faults.clear(fields.get("route"))
        return self.faults_left()

    def down(self, fields):
        self.faults.down = bool(fields["down"])
        return self.faults_left()


# --- HTTP --------------------------------------------------------------------------------------


class Connection(http.server.BaseHTTPRequestHandler):
    """One connection, kept open between requests."""

    protocol_version = "HTTP/1.1"
    server_version = "Superpipeline"
    sys_version = ""
    disable_nagle_algorithm = True
    # Buffered, so that an answer leaves in one piece.
    wbufsize = -1

    def serve(self):
        path = urllib.parse.urlsplit(self.path).path
        body = self.read_body()
        if body is None:
            return
        if path.startswith("/control/"):
            self.serve_control(path, body)
        else:
            self.serve_public(path, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def read_body(self):
        """The body, or nothing if it was refused for its length."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.close_connection = True
            self.reply(411, {"error": "length required"})
            return None
        if int(length) > LARGEST_BODY:
            self.close_connection = True
            self.reply(413, {"error": "too large"})
            return None
        return self.rfile.read(int(length))

    def serve_control(self, path, body):
        try:
            status, answer = self.server.control.respond(self.command, path, self.headers, body)
        except Refusal as refusal:
            status, answer = refusal.status, refusal.body
        except (KeyError, TypeError, AttributeError) as error:
            status, answer = 400, {"error": f"{type(error).__name__}: {error}"}
        self.reply(status, answer)

    def serve_public(self, path, body):
        public = self.server.public
        route, parts = public.route(self.command, path)
        entry = public.remember(self.command, self.path, route, self.headers, body)
        fault = self.server.faults.next(route)
        if fault["do"] == "close":
            return self.hang_up()
        if fault["do"] == "hang":
            time.sleep(fault["seconds"])
            return self.hang_up()
        if fault["do"] == "status":
            entry["status"] = fault["status"]
            return self.reply(fault["status"], fault.get("body", {}), fault.get("headers"))
        if fault["do"] == "slow":
            time.sleep(fault["seconds"])
        try:
            status, answer = public.respond(route, parts, self.headers, body)
        except Refusal as refusal:
            status, answer = refusal.status, refusal.body
            if fault["do"] == "nest":
                answer = {"error": answer}
        entry["status"] = status
        if fault["do"] == "lose_reply":
            entry["lost"] = True
            return self.hang_up()
        answer = wire(answer)
        if fault["do"] == "garble":
            answer = answer[: len(answer) // 2]
        return self.reply(status, answer)

    def reply(self, status, answer, headers=None):
        """Answers with bytes or text as they are, anything else as JSON."""
        if isinstance(answer, bytes):
            body = answer
        else:
            body = answer.encode() if isinstance(answer, str) else wire(answer)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, str(value))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Listens, and has what connections need."""

    daemon_threads = True
    request_queue_size = 1024

    def server_bind(self):
        # Without looking up the machine's name, which can take long.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request, client_address):
        # Whoever has gone is told nothing; anything else is a mistake in this file.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


# --- The program -------------------------------------------------------------------------------


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description="A Superpipeline board for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--board", default="brd_7c1f")
    parser.add_argument("--name", help="what the board is called; without it, nothing")
    parser.add_argument("--agent-token", default=os.environ.get("BOARD_AGENT_TOKEN", ""))
    parser.add_argument("--agent", default="agt_carrier", help="whose the agent token is")
    parser.add_argument("--bearer", action="append", default=[], metavar="TOKEN=USER")
    parser.add_argument("--person", action="append", default=[], metavar="USER[=MATRIX_USER]")
    parser.add_argument("--tenant", help="takes X-Tenant-Id and X-User-Id for this tenant")
    parser.add_argument("--identity-token", default=os.environ.get("BOARD_IDENTITY_TOKEN", ""))
    parser.add_argument("--audience", help="the only one that tokens are issued for")
    parser.add_argument("--token-life", type=int, default=300, metavar="SECONDS")
    parser.add_argument("--retry-unit", type=float, default=5, metavar="SECONDS")
    parser.add_argument("--allow-private", action="store_true", help="pushes to loopback too")
    parser.add_argument("--control", default=os.environ.get("BOARD_CONTROL_TOKEN", ""))
    parser.add_argument("--story", action="store_true", help="tells what happens")
    options = parser.parse_args(arguments)
    options.bearer += os.environ.get("BOARD_BEARERS", "").split()
    if options.agent_token and not options.agent_token.startswith(AGENT_TOKEN_PREFIXES):
        parser.error("an agent token begins with " + " or ".join(AGENT_TOKEN_PREFIXES))
    for bearer in options.bearer:
        if not all(bearer.rpartition("=")):
            parser.error("--bearer is TOKEN=USER")
    return options


def build(options):
    """The whole of it, listening but not yet serving."""
    story = Story(options.story)
    people = People(options.tenant)
    people.expires_in = options.token_life
    if options.agent_token:
        people.agents[options.agent_token] = options.agent
    for bearer in options.bearer:
        token, _, user = bearer.rpartition("=")
        people.add(user, bearer=token)
    for person in options.person:
        user, _, matrix_user = person.partition("=")
        people.add(user, matrix_user=matrix_user or None)
    faults = Faults()
    pusher = Pusher(options.retry_unit, faults, story)
    board = Board(options.board, options.name, people, pusher, options.allow_private, story)
    server = Server(("127.0.0.1", options.port), Connection)
    server.faults = faults
    server.public = Public(board, people, options.identity_token, options.audience)
    server.control = Control(options.control, server.public, people, board, faults)
    return server


def end(*_):
    # At once: threads that wait for a receiver are not waited for.
    sys.stderr.flush()
    os._exit(0)


def main():
    server = build(read_arguments(sys.argv[1:]))
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        while os.read(0, 4096):
            pass
    finally:
        end()


if __name__ == "__main__":
    main()
