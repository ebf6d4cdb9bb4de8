"""The rules of the board in `superpipeline.py`, each tried on a process of its own."""

import collections
import concurrent.futures
import functools
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

PROGRAM = pathlib.Path(__file__).with_name("superpipeline.py")
AGENT = "spa_of-the-carrier"
CONTROL = "control-token"
IDENTITY = "identity-token"
SOON = 60
OPTIONS = [{"id": "run_them", "label": "Run the tests"}, {"id": "skip", "label": "Skip them"}]
PENDING = "/v1/boards/brd_7c1f/elicitations/pending"
CONFIGS = "/v1/boards/brd_7c1f/push-configs"
ASSERTIONS = "/identity/assertions"


def answer_path(elicitation_id):
    return f"/v1/boards/brd_7c1f/elicitations/{elicitation_id}/answer"


class Receiver:
    """Takes pushes, and answers them with the statuses it is given, then with 200. Before each
    answer it does what it is told to."""

    def __init__(self, statuses=(), before=lambda: None):
        received = self.received = []
        statuses = collections.deque(statuses)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.path, dict(self.headers), body))
                before()
                self.send_response(statuses.popleft() if statuses else 200)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?board=1"

    def bodies(self):
        return [json.loads(body) for _, _, body in self.received]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def verifies(token, headers, body):
    expected = "sha256=" + hmac.new(token.encode(), body, hashlib.sha256).hexdigest()
    return headers["X-Superpipeline-Signature"] == expected


class BoardCase(unittest.TestCase):
    """A fresh board, with three people, of whom one has left."""

    arguments = ("--allow-private", "--tenant", "tnt_dev", "--name", "Build board")

    def setUp(self):
        self.start()

    def start(self, *more, environment=()):
        secrets = {
            "BOARD_AGENT_TOKEN": AGENT,
            "BOARD_CONTROL_TOKEN": CONTROL,
            "BOARD_IDENTITY_TOKEN": IDENTITY,
            "BOARD_BEARERS": "miras-token==usr_mira sams-token=usr_sam",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(PROGRAM), "--retry-unit", "0.02", "--story"]
            + [*self.arguments, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **secrets, **dict(environment)},
        )
        self.addCleanup(self.stop, self.process)
        self.port = int(json.loads(self.process.stdout.readline())["url"].rpartition(":")[2])

    def stop(self, process):
        """Ends it, if it has not; what it told."""
        if process.poll() is None:
            process.stdin.close()
        process.wait(SOON)
        told = "" if process.stderr.closed else process.stderr.read()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        return told

    def receiver(self, **options):
        receiver = Receiver(**options)
        self.addCleanup(receiver.close)
        return receiver

    def call(self, method, path, body=None, token=None, headers=(), raw=None):
        """Status and body; the body as text where it is no JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SOON)
        headers = {"Content-Type": "application/json", **dict(headers)}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            raw = json.dumps(body)
        try:
            connection.request(method, path, raw, headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text

    def control(self, method, path, body=None):
        status, answer = self.call(method, f"/control/{path}", body, CONTROL)
        self.assertEqual(status, 200, answer)
        return answer

    def ask(self, **fields):
        fields.setdefault("question", "May I run them?")
        fields.setdefault("options", OPTIONS)
        return self.control("POST", "ask", fields)["elicitationId"]

    def answer(self, elicitation_id, body, token="miras-token="):
        return self.call("POST", answer_path(elicitation_id), body, token)

    def pending(self):
        status, answer = self.call("GET", PENDING, token=AGENT)
        self.assertEqual(status, 200, answer)
        return answer["elicitations"]

    def subscribe(self, url, key="the-key", events=("elicitation.pending",)):
        config = {"url": url, "token": key, "events": list(events)}
        return self.call("POST", CONFIGS, config, AGENT)

    def fault(self, route, *behaviours, forever=False):
        wanted = {"route": route, "behaviours": list(behaviours), "forever": forever}
        self.control("POST", "faults", wanted)

    def soon(self, what, ask):
        until = time.monotonic() + SOON
        while not (found := ask()):
            self.assertLess(time.monotonic(), until, f"waited in vain for {what}")
            time.sleep(0.01)
        return found

    def pushes_in(self, *states):
        pushes = self.control("GET", "pushes")["pushes"]
        return pushes if pushes and all(push["state"] in states for push in pushes) else None

    def assert_refused(self, outcome, status, code):
        self.assertEqual(outcome[0], status, outcome)
        error = outcome[1]["error"]
        self.assertEqual(set(outcome[1]), {"error"})
        self.assertEqual(set(error), {"code", "message"}, error)
        self.assertEqual(error["code"], code)

    def assert_flat(self, outcome, status, text=None):
        self.assertEqual(outcome[0], status, outcome)
        self.assertEqual(set(outcome[1]), {"error"})
        self.assertIsInstance(outcome[1]["error"], str)
        if text is not None:
            self.assertEqual(outcome[1]["error"], text)


class Answering(BoardCase):
    def test_an_option_is_taken_as_the_person_whose_token_it_is(self):
        asked = self.ask()
        status, taken = self.answer(asked, {"option": "run_them"})
        self.assertEqual((status, taken["elicitation"]["status"]), (200, "answered"))
        found = self.control("GET", f"elicitations/{asked}")
        self.assertEqual(found["state"], "answered")
        answer = found["answer"]
        self.assertEqual(
            (answer["option"], answer["text"], answer["answeredBy"]),
            ("run_them", None, "usr_mira"),
        )
        self.assertRegex(answer["answeredAt"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(self.pending(), [])

    def test_a_text_is_taken_with_or_without_options(self):
        for options in (OPTIONS, []):
            asked = self.ask(options=options)
            self.assertEqual(self.answer(asked, {"text": "later"})[0], 200)
            answer = self.control("GET", f"elicitations/{asked}")["answer"]
            self.assertEqual((answer["option"], answer["text"]), (None, "later"))

    def test_the_first_answer_is_the_only_one(self):
        asked = self.ask()
        self.assertEqual(self.answer(asked, {"option": "skip"}, "sams-token")[0], 200)
        again = self.answer(asked, {"option": "run_them"})
        self.assert_refused(again, 409, "ELICITATION_NOT_PENDING")
        answer = self.control("GET", f"elicitations/{asked}")["answer"]
        self.assertEqual((answer["option"], answer["answeredBy"]), ("skip", "usr_sam"))

    def test_of_many_answers_at_once_one_is_taken(self):
        asked = self.ask()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            outcomes = list(pool.map(lambda n: self.answer(asked, {"text": str(n)}), range(16)))
        statuses = collections.Counter(status for status, _ in outcomes)
        self.assertEqual(statuses, {200: 1, 409: 15})
        winner = [n for n, (status, _) in enumerate(outcomes) if status == 200]
        answer = self.control("GET", f"elicitations/{asked}")["answer"]
        self.assertEqual(answer["text"], str(winner[0]))

    def test_what_is_no_answer_is_invalid_and_changes_nothing(self):
        asked = self.ask()
        for body in (
            {},
            {"option": "run_them", "text": "yes"},
            {"option": "run_them", "text": None},
            {"option": "RUN_THEM"},
            {"option": "Run the tests"},
            {"option": ""},
            {"option": 1},
            {"text": " \n"},
            {"text": None},
            ["run_them"],
        ):
            with self.subTest(body):
                self.assert_refused(self.answer(asked, body), 400, "INVALID_ANSWER")
        path = answer_path(asked)
        broken = self.call("POST", path, raw='{"option":', token="sams-token")
        self.assert_refused(broken, 400, "INVALID_ANSWER")
        form = self.call(
            "POST", path, {"option": "skip"}, "sams-token", {"Content-Type": "text/plain"}
        )
        self.assert_refused(form, 400, "INVALID_ANSWER")
        no_options = self.ask(options=[])
        self.assert_refused(self.answer(no_options, {"option": "skip"}), 400, "INVALID_ANSWER")
        self.assertEqual(len(self.pending()), 2)

    def test_an_unknown_question_is_not_found(self):
        self.assert_refused(self.answer("elc_no", {"text": "x"}), 404, "ELICITATION_NOT_FOUND")

    def test_whoever_asks_may_not_answer(self):
        asked = self.ask(agentId="agt_carrier")
        outcome = self.answer(asked, {"option": "skip"}, AGENT)
        self.assert_refused(outcome, 403, "SEPARATION_OF_DUTIES")
        asked = self.ask(agentId="usr_mira")
        outcome = self.answer(asked, {"option": "skip"})
        self.assert_refused(outcome, 403, "SEPARATION_OF_DUTIES")
        self.assertEqual(len(self.pending()), 2)

    def test_an_agent_is_no_person(self):
        asked = self.ask(agentId="agt_another")
        self.assert_flat(self.answer(asked, {"option": "skip"}, AGENT), 401, "unauthenticated")

    def test_nobody_is_unauthenticated(self):
        asked = self.ask()
        for token in (None, "", "wrong"):
            outcome = self.answer(asked, {"option": "skip"}, token)
            self.assert_flat(outcome, 401, "unauthenticated")

    def test_a_person_the_board_does_not_know_is_refused(self):
        asked = self.ask()
        self.control("POST", "people", {"user": "usr_sam", "known": False})
        self.assert_flat(self.answer(asked, {"option": "skip"}, "sams-token"), 403)
        self.control("POST", "people", {"user": "usr_sam"})
        self.assertEqual(self.answer(asked, {"option": "skip"}, "sams-token")[0], 200)

    def test_a_token_that_was_taken_back_is_nobodys(self):
        asked = self.ask()
        self.control("DELETE", "people", {"bearer": "sams-token"})
        outcome = self.answer(asked, {"option": "skip"}, "sams-token")
        self.assert_flat(outcome, 401, "unauthenticated")

    def test_the_dev_headers_are_taken_for_the_tenant_alone(self):
        asked = self.ask()
        path = answer_path(asked)
        body = {"option": "skip"}
        wrong = {"X-Tenant-Id": "tnt_other", "X-User-Id": "usr_mira"}
        self.assert_flat(self.call("POST", path, body, headers=wrong), 401, "unauthenticated")
        unnamed = {"X-Tenant-Id": "tnt_dev"}
        self.assert_flat(self.call("POST", path, body, headers=unnamed), 401, "unauthenticated")
        stranger = {"X-Tenant-Id": "tnt_dev", "X-User-Id": "usr_nobody"}
        self.assert_flat(self.call("POST", path, body, headers=stranger), 403)
        mira = {"X-Tenant-Id": "tnt_dev", "X-User-Id": "usr_mira"}
        self.assert_flat(self.call("POST", path, body, "wrong", mira), 401, "unauthenticated")
        self.assertEqual(self.call("POST", path, body, headers=mira)[0], 200)
        answer = self.control("GET", f"elicitations/{asked}")["answer"]
        self.assertEqual(answer["answeredBy"], "usr_mira")

    def test_somebody_in_the_web_app_keeps_the_same_rules(self):
        asked = self.ask()
        path = f"/control/elicitations/{asked}/answer"
        wrong = self.call("POST", path, {"user": "usr_sam", "option": "no"}, CONTROL)
        self.assert_refused(wrong, 400, "INVALID_ANSWER")
        right = self.call("POST", path, {"user": "usr_sam", "option": "skip"}, CONTROL)
        self.assertEqual(right[0], 200)
        late = self.answer(asked, {"option": "run_them"})
        self.assert_refused(late, 409, "ELICITATION_NOT_PENDING")


class WithoutATenant(BoardCase):
    arguments = ("--allow-private",)

    def test_the_dev_headers_are_worth_nothing(self):
        asked = self.ask()
        mira = {"X-Tenant-Id": "tnt_dev", "X-User-Id": "usr_mira"}
        outcome = self.call("POST", answer_path(asked), {"option": "skip"}, headers=mira)
        self.assert_flat(outcome, 401, "unauthenticated")

    def test_a_board_without_a_name_sends_none(self):
        self.ask()
        self.assertNotIn("boardName", self.pending()[0])


class Reading(BoardCase):
    def test_pending_questions_come_in_the_shape_of_a_push_oldest_first(self):
        first = self.ask(
            elicitationId="elc_7f3c",
            cardId="crd_51d0",
            cardTitle="Upgrade",
            runId="run_12",
            stageKey="build",
            agentId="agt_31d0",
        )
        second = self.ask(question="", options=[{"name": "a", "title": "A"}])
        found = self.pending()
        self.assertEqual([each["elicitationId"] for each in found], [first, second])
        ts = found[0].pop("ts")
        self.assertRegex(ts, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(
            found[0],
            {
                "event": "elicitation.pending",
                "boardId": "brd_7c1f",
                "boardName": "Build board",
                "cardId": "crd_51d0",
                "cardTitle": "Upgrade",
                "elicitationId": "elc_7f3c",
                "runId": "run_12",
                "stageKey": "build",
                "agentId": "agt_31d0",
                "question": "May I run them?",
                "options": OPTIONS,
            },
        )
        self.assertEqual(found[1]["options"], [{"id": "a", "label": "A"}])

    def test_only_agents_read(self):
        for token in (None, "wrong", "miras-token=", CONTROL):
            self.assert_flat(self.call("GET", PENDING, token=token), 401, "unauthenticated")

    def test_what_is_not_there_is_flatly_not_found(self):
        for method, path in (
            ("GET", "/v1/boards/brd_other/elicitations/pending"),
            ("POST", "/v1/boards/brd_other/push-configs"),
            ("POST", "/v1/boards/brd_other/elicitations/elc_1/answer"),
            ("POST", PENDING),
            ("GET", "/v1/boards/brd_7c1f"),
            ("GET", "/"),
        ):
            with self.subTest(path):
                outcome = self.call(method, path, {"text": "x"}, AGENT)
                self.assert_flat(outcome, 404, "not found")

    def test_a_card_that_asks_again_supersedes_its_question_silently(self):
        receiver = self.receiver()
        self.subscribe(receiver.url)
        old = self.ask(cardId="crd_1")
        other = self.ask(cardId="crd_2")
        new = self.ask(cardId="crd_1")
        self.assertEqual([each["elicitationId"] for each in self.pending()], [other, new])
        found = self.control("GET", f"elicitations/{old}")
        self.assertEqual((found["state"], found["cancelledBecause"]), ("cancelled", "superseded"))
        late = self.answer(old, {"option": "skip"})
        self.assert_refused(late, 409, "ELICITATION_NOT_PENDING")
        self.soon("three pushes", lambda: len(self.pushes_in("delivered") or []) == 3)
        self.assertEqual({each["elicitationId"] for each in receiver.bodies()}, {old, other, new})

    def test_an_answered_question_is_not_superseded(self):
        old = self.ask(cardId="crd_1")
        self.answer(old, {"option": "skip"})
        self.ask(cardId="crd_1")
        self.assertEqual(self.control("GET", f"elicitations/{old}")["state"], "answered")

    def test_a_card_that_moves_and_a_run_that_ends_cancel(self):
        moved = self.ask(cardId="crd_1")
        ended = self.ask(runId="run_1")
        cancelled = self.ask()
        self.control("POST", "cards/crd_1/move")
        self.control("POST", "runs/run_1/end")
        self.control("POST", f"elicitations/{cancelled}/cancel", {"reason": "reclaimed"})
        whys = [
            self.control("GET", f"elicitations/{each}")["cancelledBecause"]
            for each in (moved, ended, cancelled)
        ]
        self.assertEqual(whys, ["card moved", "run ended", "reclaimed"])
        self.assertEqual(self.pending(), [])


class Subscribing(BoardCase):
    def test_the_same_agent_and_url_is_the_same_subscription(self):
        status, first = self.subscribe("https://bot.example.org/push", "one")
        self.assertEqual(status, 201)
        status, again = self.subscribe("https://bot.example.org/push", "two")
        self.assertEqual((status, again), (200, first))
        self.assertEqual(self.subscribe("https://bot.example.org/other")[0], 201)
        found = self.control("GET", "subscriptions")["subscriptions"]
        self.assertEqual(len(found), 2)
        self.assertEqual(found[0]["tokenSha256"], hashlib.sha256(b"two").hexdigest())

    def test_what_is_wrong_with_a_subscription_is_named(self):
        url = "https://bot.example.org/push"
        events = ["elicitation.pending"]
        for config, code in (
            ({"token": "k", "events": events}, "INVALID_URL"),
            ({"url": "bot.example.org", "token": "k", "events": events}, "INVALID_URL"),
            ({"url": "ftp://bot.example.org/", "token": "k", "events": events}, "INVALID_URL"),
            ({"url": "https://", "token": "k", "events": events}, "INVALID_URL"),
            ({"url": "https://a:b@bot.example/", "token": "k", "events": events}, "INVALID_URL"),
            ({"url": "https://bot.example:x/", "token": "k", "events": events}, "INVALID_URL"),
            ({"url": url, "events": events}, "INVALID_PUSH_CONFIG"),
            ({"url": url, "token": " ", "events": events}, "INVALID_PUSH_CONFIG"),
            ({"url": url, "token": "k"}, "INVALID_PUSH_CONFIG"),
            ({"url": url, "token": "k", "events": []}, "INVALID_PUSH_CONFIG"),
            ({"url": url, "token": "k", "events": ["no.such"]}, "INVALID_PUSH_CONFIG"),
            (["not an object"], "INVALID_PUSH_CONFIG"),
        ):
            with self.subTest(config):
                outcome = self.call("POST", CONFIGS, config, AGENT)
                self.assert_refused(outcome, 400, code)
        self.assertEqual(self.control("GET", "subscriptions")["subscriptions"], [])

    def test_only_agents_subscribe(self):
        config = {"url": "https://bot.example/", "token": "k", "events": ["elicitation.pending"]}
        for token in (None, "wrong", "miras-token="):
            outcome = self.call("POST", CONFIGS, config, token)
            self.assert_flat(outcome, 401, "unauthenticated")


class OnPrivateAddresses(BoardCase):
    arguments = ()

    def test_urls_are_refused_however_they_are_written(self):
        for host in (
            "127.0.0.1:8080",
            "localhost",
            "bot",
            "bot.local",
            "metadata.google.internal",
            "10.0.0.1",
            "172.16.5.5",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "224.0.0.1",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[fe80::1]",
            "[fd00::1]",
        ):
            with self.subTest(host):
                outcome = self.subscribe(f"https://{host}/push")
                self.assert_refused(outcome, 400, "INVALID_URL")
        public = ("bot.example.org", "8.8.8.8", "[::ffff:8.8.8.8]", "[2606:4700:4700::1111]")
        for host in public:
            self.assertEqual(self.subscribe(f"https://{host}/push")[0], 201, host)


class Pushing(BoardCase):
    def test_a_question_is_pushed_signed_over_its_exact_bytes(self):
        receiver = self.receiver()
        self.subscribe(receiver.url, "schlüssel")
        asked = self.ask(question="Darf ich? — “ja” 🙂\ud83d")
        self.soon("the push", lambda: self.pushes_in("delivered"))
        [(path, headers, body)] = receiver.received
        self.assertEqual(path, "/hook?board=1")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(headers["X-Superpipeline-Event"], "elicitation.pending")
        self.assertRegex(headers["X-Superpipeline-Signature"], r"^sha256=[0-9a-f]{64}$")
        self.assertTrue(verifies("schlüssel", headers, body))
        self.assertIn("Darf ich? — “ja” 🙂".encode(), body)
        pending = self.pending()
        self.assertEqual(pending[0]["elicitationId"], asked)
        self.assertEqual(json.loads(body), pending[0])
        self.assertEqual(
            list(json.loads(body)),
            "event boardId boardName cardId cardTitle elicitationId runId stageKey agentId"
            " question options ts".split(),
        )

    def test_every_subscription_gets_it_and_none_that_did_not_ask_for_it(self):
        first, second, other = self.receiver(), self.receiver(), self.receiver()
        self.subscribe(first.url)
        self.subscribe(second.url)
        self.subscribe(other.url, events=["work.available"])
        self.ask()
        self.soon("two pushes", lambda: len(self.pushes_in("delivered") or []) == 2)
        counts = [len(each.received) for each in (first, second, other)]
        self.assertEqual(counts, [1, 1, 0])

    def test_anything_but_2xx_is_tried_again_with_the_same_bytes(self):
        receiver = self.receiver(statuses=[500, 404, 302, 401])
        self.subscribe(receiver.url)
        self.ask()
        [push] = self.soon("the push", lambda: self.pushes_in("delivered"))
        statuses = [attempt["status"] for attempt in push["attempts"]]
        self.assertEqual(statuses, [500, 404, 302, 401, 200])
        self.assertEqual(len({body for _, _, body in receiver.received}), 1)
        self.assertEqual({path for path, _, _ in receiver.received}, {"/hook?board=1"})

    def test_after_five_more_tries_it_is_dead_though_the_question_is_not(self):
        receiver = self.receiver(statuses=[503] * 9)
        self.subscribe(receiver.url)
        asked = self.ask()
        [push] = self.soon("the end of it", lambda: self.pushes_in("dead"))
        self.assertEqual(len(push["attempts"]), 6)
        self.assertEqual(len(receiver.received), 6)
        self.assertEqual([each["elicitationId"] for each in self.pending()], [asked])

    def test_a_receiver_that_is_not_there_is_tried_again(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            self.subscribe(f"http://127.0.0.1:{nobody.getsockname()[1]}/")
            self.ask()
            [push] = self.soon("the end of it", lambda: self.pushes_in("dead"))
        self.assertEqual({each["error"] for each in push["attempts"]}, {"ConnectionRefusedError"})

    def test_pushes_do_not_wait_for_one_another(self):
        # Each is only answered once the other is there too.
        receiver = self.receiver(before=functools.partial(threading.Barrier(2).wait, SOON))
        self.subscribe(receiver.url)
        self.ask()
        self.ask()
        self.soon("both", lambda: len(self.pushes_in("delivered") or []) == 2)

    def test_a_key_that_was_changed_signs_what_is_tried_again(self):
        receiver = self.receiver(
            statuses=[401],
            before=lambda: self.control(
                "POST", "subscriptions", {"url": receiver.url, "token": "new"}
            ),
        )
        self.subscribe(receiver.url, "old")
        self.ask()
        self.soon("the push", lambda: self.pushes_in("delivered"))
        (_, *first), (_, *second) = receiver.received
        self.assertTrue(verifies("old", *first))
        self.assertTrue(verifies("new", *second))

    def test_other_events_and_broken_ones_can_be_pushed(self):
        receiver = self.receiver()
        self.subscribe(receiver.url, events=["work.available", "elicitation.pending"])
        self.control("POST", "push", {"event": "work.available", "body": {"event": "x"}})
        self.control("POST", "push", {"event": "elicitation.pending", "raw": '{"event":'})
        self.soon("both", lambda: len(self.pushes_in("delivered") or []) == 2)
        found = {h["X-Superpipeline-Event"]: (h, body) for _, h, body in receiver.received}
        self.assertEqual(found["work.available"][1], b'{"event":"x"}')
        self.assertEqual(found["elicitation.pending"][1], b'{"event":')
        for headers, body in found.values():
            self.assertTrue(verifies("the-key", headers, body))

    def test_a_question_can_be_pushed_once_more(self):
        receiver = self.receiver()
        self.subscribe(receiver.url)
        asked = self.ask()
        self.control("POST", f"elicitations/{asked}/push")
        self.soon("both", lambda: len(self.pushes_in("delivered") or []) == 2)
        self.assertEqual([each["elicitationId"] for each in receiver.bodies()], [asked] * 2)


class Identity(BoardCase):
    arguments = ("--person", "usr_mira=@mira=x:example.org", "--token-life", "60")

    def assertion(self, user="@mira=x:example.org", token=IDENTITY, **more):
        body = {"matrix_user_id": user, "audience": "brd_7c1f", **more}
        return self.call("POST", ASSERTIONS, body, token)

    def test_an_issued_token_answers_as_the_person(self):
        status, issued = self.assertion()
        self.assertEqual((status, set(issued)), (200, {"token", "expires_in"}))
        self.assertEqual(issued["expires_in"], 60)
        asked = self.ask()
        self.assertEqual(self.answer(asked, {"option": "skip"}, issued["token"])[0], 200)
        answer = self.control("GET", f"elicitations/{asked}")["answer"]
        self.assertEqual(answer["answeredBy"], "usr_mira")

    def test_an_unknown_person_is_told_apart(self):
        self.assert_refused(self.assertion("@eve:example.org"), 404, "UNKNOWN_PERSON")

    def test_only_its_own_client_is_served(self):
        for token in (None, "wrong", AGENT, CONTROL, "miras-token="):
            self.assert_flat(self.assertion(token=token), 401, "unauthenticated")

    def test_a_question_about_nobody_is_invalid(self):
        self.assert_refused(self.assertion(audience=""), 400, "INVALID_REQUEST")
        self.assert_refused(self.assertion(matrix_user_id=7), 400, "INVALID_REQUEST")

    def test_a_token_is_good_until_it_expires_or_is_taken_back(self):
        asked = self.ask()
        self.control("POST", "identity", {"life": 0})
        expired = self.assertion()[1]["token"]
        outcome = self.answer(asked, {"option": "skip"}, expired)
        self.assert_flat(outcome, 401, "unauthenticated")
        self.control("POST", "identity", {"life": 60})
        revoked = self.assertion()[1]["token"]
        self.control("POST", "identity", {"revoke": True})
        outcome = self.answer(asked, {"option": "skip"}, revoked)
        self.assert_flat(outcome, 401, "unauthenticated")
        self.assertEqual(self.answer(asked, {"option": "skip"})[0], 200)


class ForOneAudience(BoardCase):
    arguments = ("--person", "usr_mira=@mira:example.org", "--audience", "https://board")

    def test_no_token_is_issued_for_another(self):
        wanted = {"matrix_user_id": "@mira:example.org", "audience": "https://elsewhere"}
        outcome = self.call("POST", ASSERTIONS, wanted, IDENTITY)
        self.assert_refused(outcome, 400, "INVALID_AUDIENCE")
        wanted["audience"] = "https://board"
        self.assertEqual(self.call("POST", ASSERTIONS, wanted, IDENTITY)[0], 200)


class Misbehaving(BoardCase):
    def test_canned_answers_are_used_up_one_by_one(self):
        limited = {"error": "slow down"}
        self.fault(
            "pending",
            {"do": "status", "status": 503, "body": "not even JSON"},
            {"do": "ok"},
            {"do": "status", "status": 429, "body": limited, "headers": {"Retry-After": 1}},
        )
        outcomes = [self.call("GET", PENDING, token=AGENT) for _ in range(4)]
        empty = {"elicitations": []}
        expected = [(503, "not even JSON"), (200, empty), (429, limited), (200, empty)]
        self.assertEqual(outcomes, expected)

    def test_for_ever_goes_on_until_it_is_cleared(self):
        self.fault("*", {"do": "status", "status": 500}, forever=True)
        for _ in range(3):
            self.assertEqual(self.call("GET", PENDING, token=AGENT)[0], 500)
        self.control("DELETE", "faults", {"route": "*"})
        self.assertEqual(self.pending(), [])

    def test_a_canned_answer_takes_nothing(self):
        asked = self.ask()
        self.fault("answer", {"do": "status", "status": 200})
        self.assertEqual(self.answer(asked, {"option": "skip"})[0], 200)
        self.assertEqual(self.control("GET", f"elicitations/{asked}")["state"], "pending")

    def assert_closed(self, ask):
        with self.assertRaises((http.client.RemoteDisconnected, ConnectionError)):
            ask()

    def test_a_closed_connection_has_taken_nothing_and_a_lost_answer_has(self):
        asked = self.ask()
        self.fault("answer", {"do": "close"}, {"do": "hang", "seconds": 0}, {"do": "lose_reply"})
        self.assert_closed(lambda: self.answer(asked, {"option": "skip"}))
        self.assert_closed(lambda: self.answer(asked, {"option": "skip"}))
        self.assertEqual(self.control("GET", f"elicitations/{asked}")["state"], "pending")
        self.assert_closed(lambda: self.answer(asked, {"option": "skip"}))
        self.assertEqual(self.control("GET", f"elicitations/{asked}")["state"], "answered")
        log = self.control("GET", "requests")["requests"]
        seen = [(entry["status"], entry["lost"]) for entry in log]
        self.assertEqual(seen, [(None, False), (None, False), (200, True)])

    def test_a_slow_board_still_does_it(self):
        asked = self.ask()
        self.fault("answer", {"do": "slow", "seconds": 0.05})
        self.assertEqual(self.answer(asked, {"option": "skip"})[0], 200)

    def test_an_answer_can_be_cut_in_half(self):
        self.fault("pending", {"do": "garble"})
        self.assertEqual(self.call("GET", PENDING, token=AGENT), (200, '{"elicita'))

    def test_an_error_can_lie_one_deeper(self):
        self.fault("answer", {"do": "nest"})
        status, body = self.answer("elc_no", {"text": "x"})
        self.assertEqual(status, 404)
        self.assertEqual(body["error"]["error"]["code"], "ELICITATION_NOT_FOUND")

    def test_a_board_that_is_down_closes_everything_but_control(self):
        self.ask()
        self.control("POST", "down", {"down": True})
        self.assert_closed(self.pending)
        self.assert_closed(lambda: self.call("GET", "/"))
        self.control("POST", "down", {"down": False})
        self.assertEqual(len(self.pending()), 1)

    def test_pushes_can_be_lost_doubled_and_signed_by_nobody(self):
        receiver = self.receiver()
        self.subscribe(receiver.url)
        self.fault("push", {"do": "drop"}, {"do": "double"}, {"do": "wrong_key"})
        self.ask()
        self.soon("the loss", lambda: self.pushes_in("dropped"))
        doubled = self.ask()
        self.soon("the double", lambda: self.pushes_in("dropped", "delivered"))
        self.assertEqual([each["elicitationId"] for each in receiver.bodies()], [doubled] * 2)
        for _, headers, body in receiver.received:
            self.assertTrue(verifies("the-key", headers, body))
        self.ask()
        self.soon("the third", lambda: len(receiver.received) == 3)
        _, headers, body = receiver.received[2]
        self.assertFalse(verifies("the-key", headers, body))

    def test_a_fault_that_there_is_not_is_refused(self):
        for wanted in (
            {"route": "nowhere", "behaviours": [{"do": "ok"}]},
            {"route": "answer", "behaviours": []},
            {"route": "answer", "behaviours": [{"do": "drop"}]},
            {"route": "push", "behaviours": [{"do": "status", "status": 500}]},
            {"route": "answer", "behaviours": [{"do": "status"}]},
            {"route": "answer", "behaviours": [{"do": "close", "seconds": 1}]},
        ):
            with self.subTest(wanted):
                self.assert_flat(self.call("POST", "/control/faults", wanted, CONTROL), 400)


class TheProcess(BoardCase):
    def test_control_is_for_whoever_has_its_token(self):
        for token in (None, "wrong", AGENT, "miras-token="):
            outcome = self.call("GET", "/control/requests", token=token)
            self.assert_flat(outcome, 401, "unauthenticated")

    def test_the_log_names_people_in_the_place_of_secrets(self):
        asked = self.ask()
        self.subscribe("https://bot.example/", "the-secret-key")
        self.answer(asked, {"option": "skip"})
        self.answer(asked, {"option": "skip"}, "guessed-token")
        person = {"matrix_user_id": "@eve:example.org", "audience": "brd_7c1f"}
        self.call("POST", ASSERTIONS, person, IDENTITY)
        log = self.control("GET", "requests")["requests"]
        seen = [(e["method"], e["path"], e["route"], e["by"], e["status"]) for e in log]
        self.assertEqual(
            seen,
            [
                ("POST", CONFIGS, "subscribe", "agt_carrier", 201),
                ("POST", answer_path(asked), "answer", "usr_mira", 200),
                ("POST", answer_path(asked), "answer", "unknown", 401),
                ("POST", ASSERTIONS, "identity", "identity client", 404),
            ],
        )
        self.assertEqual(log[1]["body"], {"option": "skip"})
        self.assertEqual(log[1]["headers"]["authorization"], "<usr_mira>")
        told = json.dumps(log)
        for secret in (AGENT, "the-secret-key", "miras-token=", "guessed-token", IDENTITY):
            self.assertNotIn(secret, told)

    def test_the_story_is_plain_lines_without_secrets(self):
        receiver = self.receiver()
        self.subscribe(receiver.url, "the-secret-key")
        asked = self.ask(question="Run\nthem?\x1b[31m")
        self.soon("the push", lambda: self.pushes_in("delivered"))
        self.answer(asked, {"option": "no"})
        self.answer(asked, {"option": "run_them"})
        told = self.stop(self.process)
        self.assertEqual(
            told.splitlines(),
            [
                "agt_carrier subscribed to elicitation.pending",
                f"asks {asked} “Run them? [31m”",
                f"pushed {asked} : 200",
                f"{asked} not answered by usr_mira: INVALID_ANSWER",
                f"{asked} answered: run_them, by usr_mira",
            ],
        )

    def test_it_ends_with_its_input_and_on_a_signal(self):
        self.process.stdin.close()
        self.assertEqual(self.process.wait(SOON), 0)
        self.start()
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(SOON), 0)

    def test_started_again_on_the_same_port_it_has_forgotten_everything(self):
        self.ask()
        self.subscribe("https://bot.example/")
        port = self.port
        self.stop(self.process)
        self.start("--port", str(port))
        self.assertEqual(self.port, port)
        self.assertEqual(self.pending(), [])
        self.assertEqual(self.control("GET", "subscriptions")["subscriptions"], [])

    def test_a_connection_is_kept_open(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SOON)
        local = set()
        for _ in range(3):
            connection.request("GET", PENDING, headers={"Authorization": f"Bearer {AGENT}"})
            response = connection.getresponse()
            self.assertEqual((response.status, response.version), (200, 11))
            response.read()
            local.add(connection.sock.getsockname())
        connection.close()
        self.assertEqual(len(local), 1)

    def test_an_agent_token_looks_like_one(self):
        outcome = subprocess.run(
            [sys.executable, "-B", str(PROGRAM), "--agent-token", "miras"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SOON,
            check=False,
        )
        self.assertEqual(outcome.returncode, 2)
        self.assertTrue(re.search(r"kbn_ or spa_", outcome.stderr), outcome.stderr)

    def test_a_question_with_a_field_it_cannot_have_is_refused(self):
        for wanted in ({"prompt": "x"}, {"question": 1}, {"options": ["a"]}):
            self.assert_flat(self.call("POST", "/control/ask", wanted, CONTROL), 400)
        self.ask(elicitationId="elc_1")
        again = self.call("POST", "/control/ask", {"elicitationId": "elc_1"}, CONTROL)
        self.assert_flat(again, 409)

    def test_of_options_with_one_id_the_first_counts(self):
        self.ask(options=[{"id": "a", "label": "A"}, {"id": "a", "label": "B"}])
        self.assertEqual(self.pending()[0]["options"], [{"id": "a", "label": "A"}])


if __name__ == "__main__":
    unittest.main()
