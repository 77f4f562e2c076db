"""The page at / in a real browser: a chat by keyboard, what its tokens cost, tool calls, hostile
text. The other views are page_views_test.py's."""

import json
import os
import sys
import tempfile

import served
from page_case import ANSWER, HERE, HOSTILE, PageTest, facts

QUESTION = "Tell me about a bird"


@HERE
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
            const text = document.querySelector('#messages > li.assistant:last-child > .text');
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
        heights = self.page.evaluate("[...document.querySelectorAll('button')].filter(b => b.checkVisibility()).map(b => b.offsetHeight)")
        self.assertGreaterEqual(min(heights), 44)
        picture = self.page.screenshot()
        self.assertEqual((picture.width, picture.height), (390, 844))

    def test_the_policy_lets_nothing_in(self):
        paths = self.page.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
        files = ["/"] + [path for path in paths if path.startswith("/page/")]
        self.assertGreater(len(files), 10)
        for path in files:
            reply, _ = self.server.request("GET", path)
            policy = reply.headers["Content-Security-Policy"]
            self.assertTrue(policy.startswith("default-src 'none';"))
            self.assertNotIn("unsafe", policy)
            self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
        self.expected_error = "Content Security Policy"
        self.expected_violations = ["script-src-elem inline", "style-src-attr inline"]
        self.page.evaluate("""(() => {
            const script = document.createElement('script');
            script.textContent = 'window.came_in = true';
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend', '<p id="styled" style="color: rgb(1, 2, 3)">x</p>');
        })()""")
        self.assertFalse(self.page.evaluate("'came_in' in window"))
        self.assertNotEqual(self.page.evaluate("getComputedStyle(document.getElementById('styled')).color"), "rgb(1, 2, 3)")

    def test_what_a_user_writes_is_text_never_markup(self):
        for text in HOSTILE:
            with self.subTest(text=text[:40]):
                self.click("fresh")
                self.set("prompt", text)
                self.page.evaluate("document.getElementById('prompt').focus()")
                self.set("max-tokens", 2)
                self.send()
                self.wait_answer()
                said = self.page.evaluate("document.querySelector('#messages > li.user > .text').textContent")
                self.assertEqual(said, self.page.evaluate(f"{json.dumps(text)}.trim()"))
                self.page.evaluate(f"void {ANSWER}.querySelectorAll('details').forEach((one) => one.open = true)")
                self.page.wait(f"{ANSWER}.querySelector('.tokens')?.childElementCount > 2")
                self.assert_nothing_came_in()

    def test_what_a_model_writes_is_text_never_markup(self):
        """The reply is made up here: no model writes all of this."""
        for text in HOSTILE:
            with self.subTest(text=text[:40]):
                self.click("fresh")
                self.page.evaluate(f"""void (window.fetch = async () => {{
                    const text = {json.dumps(text)};
                    const call = {{index: 0, id: text, function: {{name: text, arguments: text}}}};
                    const chunks = [{{choices: [{{delta: {{content: text, reasoning_content: text}}}}]}},
                                    {{choices: [{{delta: {{tool_calls: [call]}}}}]}},
                                    {{choices: [], cache_explain: {{matched_tokens: 1, prompt_tokens: 1, advice: text,
                                      cached_ranges: [{{first: 0, tokens: 1, tier: text}}]}}}}];
                    return new Response(chunks.map(c => 'data: ' + JSON.stringify(c) + '\\n\\n').join(''));
                }})""")
                self.ask(QUESTION)
                self.assertEqual(self.wait_answer(), text)
                self.assertEqual(self.page.evaluate(f"{ANSWER}.querySelector('.reasoning .text').textContent"), text)
                self.assertEqual(self.page.evaluate(f"{ANSWER}.querySelector('.call strong').textContent"), f"Calls {text}")
                self.assertIn(text, self.page.evaluate(f"{ANSWER}.querySelector('.why').textContent"))
                self.assert_nothing_came_in()

    def test_a_server_that_stops_is_told_and_the_page_goes_on_when_it_is_back(self):
        self.expected_error = "ERR_"
        cls = type(self)
        port = cls.server.port
        cls.server.stop()
        self.page.wait("!document.getElementById('connection').hidden")
        self.assertIn("does not answer", self.text("connection"))
        self.set("prompt", QUESTION)
        self.page.evaluate("document.getElementById('prompt').focus()")
        self.send()
        self.page.wait(f"{ANSWER}.dataset.done === 'error'")
        self.assertEqual(self.page.evaluate("document.getElementById('send').disabled"), False)
        cls.server = served.ChatServed(port=port)
        self.page.wait("document.getElementById('connection').hidden")
        self.click("fresh")
        self.ask(QUESTION)
        self.wait_answer()


@HERE
class Tools(PageTest):
    @classmethod
    def start_server(cls):
        return served.Served(os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf"))

    def test_a_call_is_shown_and_its_result_is_sent(self):
        self.click("tool-example")
        self.ask("How warm is it?", 200)
        self.assertEqual(self.wait_answer(), "Let me ask.")
        reasoning = f"{ANSWER}.querySelector('details.reasoning')"
        self.assertEqual(self.page.evaluate(f"{reasoning}.querySelector('.text').textContent"), "I look it up.")
        self.assertFalse(self.page.evaluate(f"{reasoning}.open"))
        call = f"{ANSWER}.querySelector('.call')"
        self.assertEqual(self.page.evaluate(f"{call}.querySelector('strong').textContent"), "Calls get_weather")
        arguments = self.page.evaluate(f"{call}.querySelector('pre').textContent")
        self.assertEqual(json.loads(arguments), {"city": "Rome"})
        self.assertEqual(self.page.evaluate("document.activeElement.labels[0].textContent"), "Result of get_weather")
        self.page.evaluate("""void (() => {
            const fetched = window.fetch;
            window.fetch = (path, options) => {
                if (path === '/v1/chat/completions') window.sent = JSON.parse(options.body);
                return fetched(path, options);
            };
        })()""")
        self.page.type("17 degrees")
        self.page.press("Tab", 9)
        self.page.press("Enter", 13, "\r")
        self.page.wait("document.querySelectorAll('#messages > li.assistant').length === 2")
        self.wait_answer()
        asked, result = self.page.evaluate("window.sent.messages.slice(-2)")
        self.assertEqual(json.loads(asked["tool_calls"][0]["function"]["arguments"]), {"city": "Rome"})
        self.assertEqual(result, {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "17 degrees"})

    def test_tools_that_are_no_json_are_told_and_nothing_is_sent(self):
        self.set("tools", "{")
        self.ask(QUESTION)
        self.page.wait(f"{ANSWER}?.dataset.done")
        self.assertIn("this is not JSON", self.page.evaluate(f"{ANSWER}.querySelector('.error').textContent"))


@HERE
class Tiers(PageTest):
    @classmethod
    def start_server(cls):
        cls.folder = tempfile.TemporaryDirectory()
        return served.ChatServed("--kv-disk", os.path.join(cls.folder.name, "kv"), "--kv-disk-size", "200MB")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def tokens(self):
        """The last answer's prompt tokens, each [text, where it came from]."""
        self.page.evaluate(f"void ({ANSWER}.querySelector('.prompt-tokens').open = true)")
        self.page.wait(f"{ANSWER}.querySelector('.tokens')?.childElementCount > 0")
        return self.page.evaluate(f"[...{ANSWER}.querySelectorAll('.tokens .token')].map((t) => [t.textContent, t.dataset.tier])")

    def test_tokens_have_the_colour_of_where_they_came_from(self):
        question = "Tell me about a bird that " + "flew over the sea and " * 8 + "sang"
        rendered = self.server.post("/v1/chat/completions/render", {"messages": [{"role": "user", "content": question}]})[1]
        whole = (rendered["count"] - 1) // 16 * 16
        self.ask(question)
        self.wait_answer()
        cold = self.tokens()
        self.assertEqual({tier for _, tier in cold}, {"computed"})
        self.assertIn("".join(text for text, _ in cold).strip(), rendered["prompt"])
        self.click("fresh")
        self.ask(question)  # blocks that are used again are kept on disk
        self.wait_answer()
        self.assertEqual([tier for _, tier in self.tokens()], ["memory"] * (rendered["count"] - 1) + ["computed"])
        served.wait_until(lambda: self.server.snapshot()["tiers"][0]["pages_written"] >= whole // 16)
        self.server.post("/reset_prefix_cache", None)
        self.click("fresh")
        self.ask(question)
        self.wait_answer()
        tiers = [tier for _, tier in self.tokens()]
        self.assertEqual(tiers, ["disk"] * whole + ["computed"] * (rendered["count"] - whole))
        self.click("fresh")
        self.ask(question)
        self.wait_answer()
        self.assertEqual([tier for _, tier in self.tokens()], ["memory"] * (rendered["count"] - 1) + ["computed"])
        colours = {tier: self.page.evaluate(f"getComputedStyle({ANSWER}.querySelector('.token[data-tier={tier}]')).backgroundColor")
                   for tier in ("memory", "computed")}
        self.assertNotEqual(colours["memory"], colours["computed"])


if __name__ == "__main__":
    served.run(sys.modules[__name__])
