"""The page's views beside the chat, in a real browser: live plots, the curve, the tree, two prompts
compared, what an admin may do; all of them by keyboard, on a phone and in the dark."""

import json
import sys

import served
from keys_test import Folder
from page_case import HERE, HOSTILE, PageTest, facts

VIEWS = ["chat", "live", "curve", "tree", "explain", "admin"]
STORY = "Once upon a time there was a fox and a very old tree in the wood"

# What somebody can reach by Tab: all controls that are shown.
CONTROLS = """[...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
    .filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({visibilityProperty: true}))
    .map((one) => one.id || one.textContent)"""

# The least contrast of any text that is shown, by WCAG's formula, with the text.
CONTRAST = """(() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const read = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (one) => {
        for (; one; one = one.parentElement) {
            const colour = read(getComputedStyle(one).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255];
    };
    let least = [99, ''];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const one = walk.currentNode.parentElement;
        if (!walk.currentNode.textContent.trim() || !one.checkVisibility() || one.disabled) continue;
        const style = getComputedStyle(one);
        const front = one instanceof SVGElement ? style.fill : style.color;
        const pair = [light(read(front)), light(behind(one))].sort((a, b) => b - a);
        const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
        if (contrast < least[0]) least = [contrast, walk.currentNode.textContent];
    }
    return least;
})()"""


@HERE
class Views(PageTest):
    def setUp(self):
        super().setUp()
        self.server.post("/v1/completions", {"prompt": STORY, "max_tokens": 8, "temperature": 0})

    def wait_view(self, name):
        self.open_view(name)
        self.page.wait({
            "chat": "document.querySelectorAll('#branches li').length > 0",
            "live": "document.querySelectorAll('#plots polyline').length > 0",
            "curve": "document.querySelectorAll('#curve-table td').length > 0",
            "tree": "document.querySelectorAll('#tree-below li').length > 0",
            "explain": "true",
            "admin": "document.querySelectorAll('#tenants td').length > 0",
        }[name])

    def plot(self, title):
        """{name: last value} of the plot whose title begins so."""
        found = f"[...document.querySelectorAll('.plot')].find((p) => p.textContent.startsWith({json.dumps(title)}))"
        entries = self.page.evaluate(f"[...({found})?.querySelectorAll('li') ?? []].map((li) => li.textContent.trim())")
        return dict(entry.split(": ", 1) if ": " in entry else (entry, None) for entry in entries)

    def wait_plot(self, title, name):
        served.wait_until(lambda: self.plot(title).get(name), 60)
        return self.plot(title)[name]

    def test_the_plots_show_what_the_server_does(self):
        self.open_view("live")
        self.server.post("/v1/completions", {"prompt": STORY * 4, "max_tokens": 1})
        self.server.post("/reset_prefix_cache", None)
        self.page.wait("Number(document.querySelectorAll('#plots polyline').length) > 2")
        for _ in range(2):
            self.server.post("/v1/completions", {"prompt": STORY * 4, "max_tokens": 40, "temperature": 0})
        for title in ("TTFT", "ITL"):
            self.assertRegex(self.wait_plot(title, "p50"), r"^[\d.]+ m?s$")
            self.assertRegex(self.wait_plot(title, "p95"), r"^[\d.]+ m?s$")
        self.assertEqual(self.wait_plot("Requests", "running"), "0")
        self.assertEqual(self.wait_plot("Requests", "waiting"), "0")
        served.wait_until(lambda: int(self.wait_plot("KV by tenant", "default")) > 0, 60)
        self.assertRegex(self.wait_plot("KV by tier", "memory"), r"^[\d.]+ %$")
        self.assertRegex(self.wait_plot("Hit rate", "hit rate"), r"^[\d.]+ %$")
        served.wait_until(lambda: int(self.wait_plot("Reasons of misses", "cleared")) > 0, 60)
        self.page.wait("[...document.querySelectorAll('.plot')].find((p) => p.textContent.startsWith('Tokens a second')).querySelector('polyline') !== null")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.plot').length"), 8)

    def test_quantiles_are_those_of_what_came_lately(self):
        """Histograms of known contents, through the page's own module."""
        found = self.page.evaluate("""(async () => {
            const {History, Reading} = await import('/page/metrics.js');
            const text = (low, all) => `t_bucket{le="1"} ${low}\\nt_bucket{le="3"} ${all}\\nt_bucket{le="+Inf"} ${all}\\n`;
            const history = new History();
            for (const [i, [low, all]] of [[5, 5], [5, 9], [5, 9], [0, 1]].entries()) {
                history.add(new Reading(text(low, all) + `process_start_time_seconds ${i < 3 ? 1 : 2}\\n`, 1000 * i));
            }
            return history.quantile('t', 0.5, 1).map((point) => point?.y ?? null);
        })()""")
        # Four between 1 and 3; then none; then another server, whose counters began anew.
        self.assertEqual(found, [None, 2, None, None])

    def test_the_curves_advice_stands_above_it_as_text(self):
        texts = self.page.evaluate("""(async () => {
            const {showAdvice} = await import('/page/curve.js');
            showAdvice({advice: [{text: '1.60 GiB more would raise hits from 61 to 74 %'}, {text: '<b>int8</b> KV'}]});
            const shown = [...document.querySelectorAll('#curve-advice li')].map((one) => one.textContent);
            showAdvice({advice: []});
            return [shown, document.querySelectorAll('#curve-advice li').length];
        })()""")
        self.assertEqual(texts, [["1.60 GiB more would raise hits from 61 to 74 %.", "<b>int8</b> KV."], 0])

    def test_the_curve_marks_the_size_of_today_and_has_all_policies(self):
        self.wait_view("curve")
        curve = self.server.get("/cache/curve")[1]
        mark = self.page.evaluate("[...document.querySelectorAll('#curve-plot text')].map((t) => t.textContent).find((t) => t.startsWith('today'))")
        self.assertTrue(mark.endswith(curve["policy"]))
        at = self.page.evaluate("Number(document.querySelector('#curve-plot .mark').getAttribute('x1'))")
        self.assertTrue(self.page.evaluate(f"[...document.querySelectorAll('#curve-plot circle')].some((c) => Math.abs(c.getAttribute('cx') - {at}) < 0.1)"))
        rows = self.page.evaluate("[...document.querySelectorAll('#curve-table tbody tr')].map((r) => r.firstChild.textContent)")
        self.assertEqual([row.removesuffix(" (runs)") for row in rows], [one["policy"] for one in curve["policies"]])
        self.assertIn(curve["policy"] + " (runs)", rows)
        rates = self.page.evaluate("[...document.querySelectorAll('#curve-table tbody tr')].map((r) => r.children[2].textContent)")
        for rate, policy in zip(rates, curve["policies"]):
            self.assertEqual(rate == "unknown", policy["points"][1]["hit_rate"] is None)

    def below(self):
        return self.page.evaluate("[...document.querySelectorAll('#tree-below button')].map((b) => b.textContent)")

    def test_the_tree_is_walked_down_and_up(self):
        self.server.post("/reset_prefix_cache", None)
        shared = "The dog and the cat went home together after a long day"
        for end in (" and slept", ". Then they ate"):
            self.server.post("/v1/completions", {"prompt": shared + end, "max_tokens": 1})
        self.server.post("/v1/completions", {"prompt": "Secret words of somebody", "max_tokens": 1, "cache_salt": "s"})
        self.open_view("tree")
        self.click("tree-again")
        self.page.wait("document.querySelectorAll('#tree-below li').length === 2")
        self.assertIn("(private)", self.below())
        self.assertNotIn("Secret", self.page.evaluate("document.body.textContent"))
        public = next(name for name in self.below() if name != "(private)")
        self.assertIn("The dog and the cat", public)
        self.page.evaluate("void [...document.querySelectorAll('#tree-below button')].find((b) => b.textContent.includes('The dog')).click()")
        self.page.wait("document.querySelectorAll('#tree-node .text').length === 1")
        node = facts(self.page, "document.getElementById('tree-node')")
        self.assertEqual(node["whose"], "public")
        self.assertEqual(node["held by"], "nobody")
        self.assertRegex(node["last used"], r"^\d+ s ago$")
        self.assertRegex(node["evicted"], "^next$|^after|^not soon$")
        self.assertGreater(int(node["tokens"]), 0)
        self.assertRegex(node["blocks"], r"^\d+ here, \d+ with all below$")
        self.assertEqual(len(self.below()), 2)
        self.page.evaluate("void document.querySelector('#tree-below button').click()")
        self.page.wait("document.querySelectorAll('#tree-path button').length === 2")
        self.page.evaluate("void document.querySelector('#tree-path button').click()")
        self.page.wait("document.querySelectorAll('#tree-node .text').length === 0")

    def test_a_branch_that_left_leads_back_to_the_top(self):
        self.expected_error = "404"
        self.wait_view("tree")
        self.page.evaluate("void document.querySelector('#tree-below button').click()")
        self.page.wait("document.querySelectorAll('#tree-node .text').length === 1")
        self.server.post("/reset_prefix_cache", None)
        self.click("tree-again")
        self.page.wait("document.querySelectorAll('#tree-node .text').length === 0")
        self.page.wait("document.getElementById('tree-note').textContent.includes('nothing goes on')")

    def compare(self, first, second):
        self.set("first-prompt", first)
        self.set("second-prompt", second)
        self.click("compare-now")
        self.page.wait("document.querySelectorAll('#comparison .facts').length === 1")

    def test_two_prompts_part_where_their_tokens_do(self):
        self.open_view("explain")
        self.page.evaluate("void document.getElementById('as-chat').click()")
        first, second = (STORY + end for end in (". He slept", ". She ran away"))
        tokens = [self.server.post("/tokenize", {"prompt": text})[1]["tokens"] for text in (first, second)]
        shared = next(i for i, (a, b) in enumerate(zip(*tokens)) if a != b)
        self.server.post("/reset_prefix_cache", None)
        self.server.post("/v1/completions", {"prompt": first, "max_tokens": 1})
        self.compare(first, second)
        self.assertEqual(self.page.evaluate("document.querySelector('#comparison p').textContent"), f"They part at token {shared}.")
        told = facts(self.page, "document.getElementById('comparison')")
        self.assertEqual(told["shared"], f"{shared} tokens")
        self.assertEqual(told["to compute"], f"{len(tokens[1]) - shared} tokens")
        self.assertRegex(told["that takes"], r"^about [\d.]+ m?s$")
        marks = self.page.evaluate("[...document.querySelectorAll('#comparison mark')].map((m) => m.textContent)")
        self.assertTrue(first.endswith(marks[0]) and second.endswith(marks[1]), marks)
        self.assertIn("tokens of the second", self.page.evaluate("document.querySelector('#comparison .why').textContent"))
        self.page.evaluate("document.querySelector('#comparison').replaceChildren()")
        self.compare(first, first)
        self.assertIn("same prompt", self.text("comparison"))
        self.assertEqual(facts(self.page, "document.getElementById('comparison')")["to compute"], "1 tokens")

    def test_hostile_prompts_are_text_in_every_view(self):
        self.server.post("/reset_prefix_cache", None)
        for text in HOSTILE:
            self.server.post("/v1/completions", {"prompt": text + " and more, so that a block is full of it", "max_tokens": 1})
        self.open_view("tree")
        self.click("tree-again")
        self.page.wait(f"document.querySelectorAll('#tree-below li').length >= {len(HOSTILE) // 2}")
        self.assertIn("<script>", self.page.evaluate("document.getElementById('tree-below').textContent"))
        self.assert_nothing_came_in()
        self.open_view("chat")
        self.page.wait("document.getElementById('branches').textContent.includes('<script>')")
        self.assert_nothing_came_in()
        self.open_view("explain")
        for text in HOSTILE:
            self.page.evaluate("document.querySelector('#comparison').replaceChildren()")
            self.compare("x" + text, "y" + text)
            self.assertIn(text[:4], self.text("comparison"))
            self.assert_nothing_came_in()

    def test_emptying_the_cache_asks_first(self):
        self.wait_view("admin")
        full = self.server.snapshot()["now"]["blocks_idle"]
        self.assertGreater(full, 0)
        for no in ("document.getElementById('confirm-no').click()", None):
            self.click("reset")
            self.assertTrue(self.page.evaluate("document.getElementById('confirm').open"))
            self.page.evaluate(f"void {no}") if no else self.page.press("Escape", 27)
            self.page.wait("!document.getElementById('confirm').open")
            self.assertEqual(self.server.snapshot()["now"]["blocks_idle"], full)
        self.click("reset")
        self.click("confirm-yes")
        self.page.wait("document.getElementById('admin-note').textContent === 'The cache was emptied.'")
        served.wait_until(lambda: self.server.snapshot()["now"]["blocks_idle"] == 0)

    def test_every_control_is_reached_by_tab_and_shows_it(self):
        for view in VIEWS:
            with self.subTest(view=view):
                self.wait_view(view)
                self.page.evaluate("void document.querySelectorAll('details').forEach((one) => one.open = true)")
                self.page.evaluate("document.querySelector('.skip').focus()")
                self.page.press("Tab", 9)
                self.page.press("Tab", 9, modifiers=8)  # back, now by keyboard
                expected = self.page.evaluate(CONTROLS)
                reached = []
                for _ in expected:
                    reached.append(self.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
                    outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                    self.assertNotEqual(outline, "none", reached)
                    self.page.press("Tab", 9)
                self.assertEqual(reached, expected)

    def test_arrow_keys_go_from_view_to_view(self):
        self.page.evaluate("document.getElementById('tab-chat').focus()")
        for view in VIEWS[1:] + ["chat"]:
            self.page.press("ArrowRight", 39)
            self.assertEqual(self.page.evaluate("document.activeElement.id"), f"tab-{view}")
            shown = self.page.evaluate("[...document.querySelectorAll('.view')].filter((v) => !v.hidden).map((v) => v.id)")
            self.assertEqual(shown, [f"view-{view}"])

    def test_every_control_has_a_name(self):
        for view in VIEWS:
            self.wait_view(view)
            nameless = self.page.evaluate("""[...document.querySelectorAll('button, input, select, textarea, [role=tabpanel], [role=img], dialog')]
                .filter((one) => !(one.textContent.trim() || one.labels?.length || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby')))
                .map((one) => one.outerHTML)""")
            self.assertEqual(nameless, [], view)

    def test_a_small_phone_scrolls_down_only(self):
        self.page.resize(360, 740, phone=True)
        for view in VIEWS:
            self.wait_view(view)
            if view == "explain":
                self.compare("W" * 300, "W" * 200 + "x")
            self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 360, view)
            heights = self.page.evaluate(f"[...document.querySelectorAll('#view-{view} button')].map((b) => b.offsetHeight)")
            self.assertGreaterEqual(min(heights, default=44), 44, view)

    def test_text_is_read_in_the_light_and_in_the_dark(self):
        self.ask("Tell me about a bird")
        self.wait_answer()
        self.page.evaluate("void document.querySelectorAll('details').forEach((one) => one.open = true)")
        self.page.wait("document.querySelector('.tokens')?.childElementCount > 0")
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            for view in VIEWS:
                self.wait_view(view)
                if view == "explain":
                    self.compare(STORY, STORY + " now")
                contrast, text = self.page.evaluate(CONTRAST)
                self.assertGreaterEqual(contrast, 4.5, f"{view} in the {scheme}: {text!r}")


@HERE
class Keys(PageTest):
    needs_key = True

    @classmethod
    def start_server(cls):
        cls.folder = Folder()
        return served.ChatServed(*cls.folder.key_flags())

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.__exit__()

    def use(self, key):
        self.set("key", key)
        self.page.evaluate("void document.getElementById('key').dispatchEvent(new Event('change'))")
        self.page.wait("document.getElementById('model').textContent !== ''")

    def test_what_is_an_admins_needs_an_admins_key(self):
        self.expected_error = "40"
        self.use("anna-key")
        self.ask("Tell me about a bird")
        self.wait_answer()
        for view, note in (("chat", "map-note"), ("curve", "curve-note"), ("tree", "tree-note"), ("admin", "tenants")):
            self.open_view(view)
            self.page.wait(f"document.getElementById('{note}').textContent.includes(\"needs an admin's API key\")")
        self.use("ops-key")
        self.open_view("tree")
        self.page.wait("document.querySelectorAll('#tree-below li').length > 0")
        self.assertEqual(self.page.evaluate("document.querySelector('#tree-below button').textContent"), "(private)")
        self.assertEqual(facts(self.page, "document.querySelector('#tree-below li')")["whose"], "anna")

    def test_a_tenant_is_removed_after_one_question(self):
        self.expected_error = "40"
        self.use("anna-key")
        self.ask("Tell me about a bird and what it sang to the fox in the wood")
        self.wait_answer()
        self.use("ops-key")
        self.open_view("admin")
        self.page.wait("document.querySelectorAll('#tenants button').length > 0")
        headers = {"Authorization": "Bearer ops-key"}
        blocks = lambda: next(t for t in self.server.get("/tenants", headers)[1]["data"] if t["name"] == "anna")["now"]["kv_blocks"]
        served.wait_until(lambda: blocks() > 0)
        self.page.evaluate("void document.querySelector('[aria-label=\"Remove tenant anna\"]').click()")
        self.assertIn('"anna"', self.text("confirm-text"))
        self.click("confirm-yes")
        self.page.wait("document.getElementById('admin-note').textContent.includes('removed everywhere')")
        served.wait_until(lambda: blocks() == 0)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
