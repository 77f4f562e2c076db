"""What tests of the page have together: a server, a tab, and rules that hold whatever a test does."""

import json
import unittest

import browser
import served

ANSWER = "document.querySelector('#messages > li.assistant:last-child')"
HERE = unittest.skipUnless(browser.PROGRAM or served.on_build_machine(), "chromium is not here")

# Runs before the page does, whatever its policy says.
WATCH = """document.addEventListener('securitypolicyviolation', (event) =>
    (window.violations ??= []).push(`${event.effectiveDirective} ${event.blockedURI}`))"""

# Elements and attributes that only foreign markup could bring.
FOREIGN = """[...document.querySelectorAll('*')].filter((one) =>
    /^(img|iframe|object|embed|base|b|i|style|video|audio|math)$/i.test(one.tagName) ||
    (one.tagName === 'SCRIPT' && one.getAttribute('src') !== '/page/main.js') ||
    one.getAttributeNames().some((name) => name.startsWith('on'))).map((one) => one.outerHTML)"""

# Texts that would do harm where they were taken for anything but text.
HOSTILE = [
    "<script>window.came_in = true</script>",
    "</script><script>window.came_in = true</script>",
    "<img src=x onerror='window.came_in = true'> <b>bold</b>",
    "<svg/onload=window.came_in=true><style>*{display:none}</style>",
    "\"><iframe srcdoc='<script>parent.came_in = true</script>'></iframe>",
    "<a href=\"javascript:window.came_in = true\">here</a>",
    "${window.came_in = true} `${window.came_in = true}` {{constructor.constructor('came_in = true')()}}",
    "<!-- --!><![CDATA[ ]]> &lt;b&gt; &#x3c;script&#x3e;",
    "data: {\"error\": {\"message\": \"came in\"}}\n\ndata: [DONE]",
    "\u202egnp.exe \u2066left\u2069 \u200f\u200e \ufeff",
    "a\u0000b\u0001\u001b[31mred",
    "\u2028\u2029 \U0001f9d1\u200d\U0001f33e e\u0301\u0327",
    "W" * 300,
    "__proto__ constructor toString",
]


def facts(page, of=ANSWER):
    """The facts that stand in an element, those of the last answer where none is named."""
    pairs = page.evaluate(
        f"[...{of}.querySelectorAll('.facts div')].map(d => [d.children[0].textContent, d.children[1].textContent])"
    )
    return dict(pairs)


class PageTest(unittest.TestCase):
    """One server and one tab for all tests of a class."""

    needs_key = False  # true: before there is a key the page does not even know the model

    @classmethod
    def start_server(cls):
        return served.ChatServed()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.start_server()
        cls.page = browser.Browser()
        cls.page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.server.stop()

    def setUp(self):
        self.expected_error = None  # part of an error that the browser may log
        self.expected_violations = []
        self.page.prefer("light")
        self.page.resize(1280, 800)
        self.page.open(self.server.url + "/")
        self.page.wait("document.activeElement.id === 'prompt'")
        if not self.needs_key:
            self.page.wait("document.getElementById('model').textContent !== ''")
        self.set("temperature", 0)

    def tearDown(self):
        """Whatever was done, nothing came from elsewhere and nothing broke a rule."""
        self.assertEqual(self.page.evaluate("window.violations ?? []"), self.expected_violations)
        for event in self.page.events:
            if event["method"] == "Network.requestWillBeSent":
                self.assertRegex(event["params"]["request"]["url"], rf"^({self.server.url}/|data:)")
            if event["method"] == "Runtime.exceptionThrown":
                self.fail(event)
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                text = event["params"]["entry"]["text"]
                self.assertTrue(self.expected_error and self.expected_error in text, text)

    def set(self, field, value):
        self.page.evaluate(f"void (document.getElementById('{field}').value = {json.dumps(value)})")

    def click(self, name):
        self.page.evaluate(f"void document.getElementById('{name}').click()")

    def text(self, name):
        return self.page.evaluate(f"document.getElementById('{name}').textContent")

    def open_view(self, name):
        self.click(f"tab-{name}")
        self.assertFalse(self.page.evaluate(f"document.getElementById('view-{name}').hidden"))

    def ask(self, text, tokens=12):
        self.set("max-tokens", tokens)
        self.page.evaluate("document.getElementById('prompt').focus()")
        self.page.type(text)
        self.send()

    def send(self):
        before = self.page.evaluate("document.querySelectorAll('#messages > li.assistant').length")
        self.page.press("Enter", 13, "\r")
        self.page.wait(f"document.querySelectorAll('#messages > li.assistant').length === {before + 1}")

    def wait_answer(self):
        self.page.wait(f"{ANSWER}?.dataset.done")
        self.assertEqual(self.page.evaluate(f"{ANSWER}.dataset.done"), "true",
                         self.page.evaluate(f"{ANSWER}.textContent"))
        return self.page.evaluate(f"{ANSWER}.querySelector(':scope > .text').textContent")

    def assert_nothing_came_in(self):
        self.assertEqual(self.page.evaluate(FOREIGN), [])
        self.assertFalse(self.page.evaluate("'came_in' in window"))
        self.assertEqual(self.page.evaluate("document.title"), "Pagoda")
