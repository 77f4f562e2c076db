"""The page at / in a real browser: a chat by keyboard, the cache's picture, a phone, the dark.

PAGODA_PAGE_IMAGE=docs/images/page.png makes the picture of README.md, with the default model:
    PAGODA_PAGE_IMAGE=$PWD/docs/images/page.png ctest --test-dir build -R server_page_test
"""

import os
import sys
import unittest

import browser
import served

ANSWER = "document.querySelector('#messages li.assistant:last-child')"
QUESTION = "Tell me about a bird"


def facts(page):
    """The last answer's facts by name."""
    pairs = page.evaluate(
        f"[...{ANSWER}.querySelectorAll('.facts div')].map(d => [d.children[0].textContent, d.children[1].textContent])"
    )
    return dict(pairs)


class PageTest(unittest.TestCase):
    """One server and one tab for all tests of a class."""

    @classmethod
    def start_server(cls):
        return served.ChatServed()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.start_server()
        cls.page = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.server.stop()

    def setUp(self):
        self.expected_error = None  # part of an error that the browser may log
        self.page.prefer("light")
        self.page.resize(1280, 800)
        self.page.open(self.server.url + "/")
        self.page.wait("document.activeElement.id === 'prompt'")
        self.set("temperature", 0)

    def tearDown(self):
        """Whatever was done, nothing came from elsewhere and nothing broke a rule."""
        self.page.evaluate("1")
        for event in self.page.events:
            if event["method"] == "Network.requestWillBeSent":
                self.assertRegex(event["params"]["request"]["url"], rf"^({self.server.url}/|data:)")
            if event["method"] == "Runtime.exceptionThrown":
                self.fail(event)
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                text = event["params"]["entry"]["text"]
                self.assertTrue(self.expected_error and self.expected_error in text, text)

    def set(self, field, value):
        self.page.evaluate(f"void (document.getElementById('{field}').value = {value!r})")

    def ask(self, text, tokens=12):
        self.set("max-tokens", tokens)
        self.page.evaluate("document.getElementById('prompt').focus()")
        self.page.type(text)
        before = self.page.evaluate("document.querySelectorAll('#messages li.assistant').length")
        self.page.press("Enter", 13, "\r")
        self.page.wait(f"document.querySelectorAll('#messages li.assistant').length === {before + 1}")

    def wait_answer(self):
        self.page.wait(f"{ANSWER}?.dataset.done")
        self.assertEqual(self.page.evaluate(f"{ANSWER}.dataset.done"), "true",
                         self.page.evaluate(f"{ANSWER}.textContent"))
        return self.page.evaluate(f"{ANSWER}.querySelector('.text').textContent")


@unittest.skipUnless(browser.PROGRAM or served.on_build_machine(), "chromium is not here")
class Page(PageTest):
    def test_a_chat_by_keyboard_gives_the_answer_of_the_api_and_what_it_cost(self):
        body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 12, "temperature": 0}
        self.server.post("/reset_prefix_cache", None)
        self.ask(QUESTION)
        text = self.wait_answer()
        cold = facts(self.page)
        reply = self.server.post("/v1/chat/completions", body)[1]
        self.assertEqual(text, reply["choices"][0]["message"]["content"])
        self.assertEqual(cold["prompt"], f"{reply['usage']['prompt_tokens']} tokens")
        self.assertEqual(cold["output"], "12 tokens")
        self.assertEqual(cold["cached"], "0 tokens")
        self.assertRegex(cold["TTFT"], r"^\d+ ms$|^[\d.]+ s$")
        self.assertRegex(cold["speed"], r"^[\d.]+ tok/s$")
        self.assertIn("user", cold["by source"])
        self.ask("And then?")
        self.wait_answer()
        warm = facts(self.page)
        self.assertGreater(int(warm["cached"].split()[0]), reply["usage"]["prompt_tokens"])
        self.assertIn("assistant", warm["by source"])

    def test_the_explanation_of_a_miss_stands_under_the_answer(self):
        """The reply is made up here: not every server explains."""
        self.page.evaluate("""void (window.fetch = async (path, options) => {
            window.sent = JSON.parse(options.body);
            const why = {matched_tokens: 9, prompt_tokens: 90, reason: 'differs', advice: 'a date changes'};
            const chunks = [{choices: [{delta: {content: 'Hi'}}]}, {choices: [], cache_explain: why}];
            return new Response(chunks.map(c => 'data: ' + JSON.stringify(c) + '\\n\\n').join('') + 'data: [DONE]\\n\\n');
        })""")
        self.ask(QUESTION)
        self.assertEqual(self.wait_answer(), "Hi")
        self.assertTrue(self.page.evaluate("window.sent.cache_explain"))
        self.assertEqual(self.page.evaluate(f"{ANSWER}.querySelector('.why').textContent"),
                         "9 of 90 prompt tokens were in the cache: a date changes")

    def test_accepted_draft_tokens_stand_under_the_answer(self):
        """The reply is made up here: whether drafts pay depends on the machine."""
        self.page.evaluate("""void (window.fetch = async () => {
            const usage = {prompt_tokens: 9, completion_tokens: 7,
                           prompt_tokens_details: {cached_tokens: 0, by_source: {}},
                           speculation: {drafts: 2, draft_tokens: 8, accepted_tokens: 5}};
            const chunks = [{choices: [{delta: {content: 'Hi'}}]}, {choices: [], usage}];
            return new Response(chunks.map(c => 'data: ' + JSON.stringify(c) + '\\n\\n').join('') + 'data: [DONE]\\n\\n');
        })""")
        self.ask(QUESTION)
        self.wait_answer()
        self.assertEqual(facts(self.page)["drafts"], "5 of 8 tokens accepted")

    def test_the_strip_and_the_cache_show_what_happens(self):
        self.ask("Once upon a time there was a fox and a very old tree in the wood")
        self.wait_answer()
        self.page.wait("document.querySelectorAll('#map .cell.reusable').length > 0")
        blocks = self.server.snapshot()["now"]["blocks_all"]
        cells = self.page.evaluate("document.querySelectorAll('#map .cell').length")
        self.assertLessEqual(cells, 1024)
        self.assertGreater(cells, min(blocks, 1024) / 2)
        self.assertIn(f"{blocks} blocks", self.page.evaluate("document.getElementById('map-note').textContent"))
        self.page.wait("[...document.querySelectorAll('#branches li')].some(b => b.textContent.includes('user'))")
        self.page.wait("/%/.test(document.getElementById('hits').textContent)")
        self.page.wait("document.getElementById('running').textContent === '0'")
        self.page.wait("document.getElementById('waiting').textContent === '0'")
        self.assertRegex(self.page.evaluate("document.getElementById('usage').textContent"), r"^[\d.]+ %$")
        self.assertEqual(self.page.evaluate("document.getElementById('model').textContent"), "stories260K")

    def test_escape_stops_an_answer_and_the_next_one_works(self):
        # The story model may be through before a key comes from here: it is pressed in the page, as
        # soon as there is text.
        self.page.evaluate("""(() => {
          const watch = new MutationObserver(() => {
            const text = document.querySelector('#messages li.assistant:last-child .text');
            if (!text || text.textContent.length === 0) return;
            watch.disconnect();
            document.activeElement.dispatchEvent(
                new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
          });
          watch.observe(document.body, {subtree: true, childList: true, characterData: true});
        })()""")
        self.ask(QUESTION, 450)
        self.page.wait(f"{ANSWER}.dataset.done")
        self.assertIn("stopped", self.page.evaluate(f"{ANSWER}.textContent"))
        served.wait_until(lambda: self.server.snapshot()["now"]["answers_running"] == 0)
        self.page.evaluate("document.getElementById('fresh').click()")
        self.ask(QUESTION)
        self.wait_answer()

    def test_an_error_is_told(self):
        self.expected_error = "400"
        self.ask(QUESTION, 100000)
        self.page.wait(f"{ANSWER}?.dataset.done")
        self.assertIn("max_tokens", self.page.evaluate(f"{ANSWER}.querySelector('.error').textContent"))

    def test_every_control_is_reached_by_tab_and_shows_it(self):
        reached = []
        for _ in range(4):
            reached.append(self.page.evaluate("document.activeElement.id || document.activeElement.tagName"))
            outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            self.assertNotEqual(outline, "none", reached)
            self.page.press("Tab", 9)
        self.assertEqual(reached, ["prompt", "send", "fresh", "SUMMARY"])

    def test_screenshots_have_their_size_and_show_the_page(self):
        self.ask(QUESTION)
        self.wait_answer()
        self.page.wait("document.querySelectorAll('#map .cell.reusable').length > 0")
        light = self.page.screenshot()
        self.assertEqual((light.width, light.height), (1280, 800))
        self.assertGreater(len(light.colours()), 50)
        self.assertGreater(light.brightness(), 180)
        self.page.prefer("dark")
        dark = self.page.screenshot()
        self.assertGreater(len(dark.colours()), 50)
        self.assertLess(dark.brightness(), 80)

    def test_a_phone_has_all_of_it_in_one_column(self):
        self.page.resize(390, 844, phone=True)
        self.ask(QUESTION)
        self.wait_answer()
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 390)
        chat, aside = (self.page.evaluate(f"document.querySelector('{s}').getBoundingClientRect().toJSON()")
                       for s in ("#chat", "aside"))
        self.assertGreaterEqual(aside["top"], chat["bottom"])
        heights = self.page.evaluate("[...document.querySelectorAll('button')].map(b => b.offsetHeight)")
        self.assertGreaterEqual(min(heights), 44)
        picture = self.page.screenshot()
        self.assertEqual((picture.width, picture.height), (390, 844))

    def test_the_policy_lets_nothing_in(self):
        for path in ("/", "/page.css", "/page.js"):
            reply, _ = self.server.request("GET", path)
            policy = reply.headers["Content-Security-Policy"]
            self.assertTrue(policy.startswith("default-src 'none';"))
            self.assertNotIn("unsafe", policy)
            self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
        self.expected_error = "Content Security Policy"
        self.page.evaluate("""(() => {
            const script = document.createElement('script');
            script.textContent = 'window.came_in = true';
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend', '<p id="styled" style="color: rgb(1, 2, 3)">x</p>');
        })()""")
        self.assertFalse(self.page.evaluate("'came_in' in window"))
        self.assertNotEqual(self.page.evaluate("getComputedStyle(document.getElementById('styled')).color"), "rgb(1, 2, 3)")

    def test_what_a_model_writes_is_text_never_markup(self):
        self.ask("<img src=x onerror=document.title='in'> <b>bold</b>")
        self.wait_answer()
        self.assertEqual(self.page.evaluate("document.querySelectorAll('#messages img, #messages b').length"), 0)
        self.assertEqual(self.page.evaluate("document.title"), "Pagoda")


@unittest.skipUnless(browser.PROGRAM or served.on_build_machine(), "chromium is not here")
class PictureOfTheReadme(PageTest):
    @classmethod
    def start_server(cls):
        served.require_default_model(cls("test_a_second_question_finds_the_first_in_the_cache"))
        return served.Served(served.DEFAULT_MODEL, "-c", "2048", "--served-model-name", "SmolLM2-135M-Instruct",
                             memory="48MiB")

    def test_a_second_question_finds_the_first_in_the_cache(self):
        for salt in ("team-a", "team-b"):  # others' blocks have colours of their own
            self.server.post("/v1/completions", {"prompt": "Once upon a time " * 60, "max_tokens": 16,
                                                 "cache_salt": salt})
        self.page.resize(1080, 720)
        self.set("system", "You answer in one short sentence.")
        self.ask("What is a pagoda?", 96)
        self.wait_answer()
        first = int(facts(self.page)["prompt"].split()[0])
        self.ask("In which countries are they found?", 96)
        self.wait_answer()
        self.assertGreater(int(facts(self.page)["cached"].split()[0]), first)
        self.page.wait("document.querySelectorAll('#map .cell.reusable').length > 3")
        self.page.wait("document.querySelectorAll('#branches li').length > 0")
        self.page.wait("document.getElementById('running').textContent === '0'")
        self.page.wait("/%/.test(document.getElementById('hits').textContent)")
        self.page.wait("document.getElementById('map-note').textContent.includes(' 0 active')")
        self.page.evaluate("window.scrollTo(0, 0)")
        png = self.page.screenshot_png()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        if path := os.environ.get("PAGODA_PAGE_IMAGE"):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "wb") as file:
                file.write(png)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
