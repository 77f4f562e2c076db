"""The pictures of README and the guide, with the default model. They are written only when asked for:
    PAGODA_PAGE_IMAGES=$PWD/docs/images ctest --test-dir build -R server_page_images_test
"""

import os
import sys

import browser
import served
from page_case import HERE, PageTest, facts

SYSTEM = "You answer in one short sentence."
QUESTIONS = ["What is a pagoda?", "In which countries are they found?"]


@HERE
class Pictures(PageTest):
    @classmethod
    def start_server(cls):
        served.require_default_model(cls("test_a_second_question_finds_the_first_in_the_cache"))
        return served.Served(served.DEFAULT_MODEL, "-c", "2048", "--served-model-name", "SmolLM2-135M-Instruct",
                             memory="48MiB")

    def take(self, name, height=720):
        self.page.evaluate("void (document.activeElement.blur(), window.scrollTo(0, 0))")
        self.page.resize(1080, height)
        png = self.page.screenshot_png()
        self.assertGreater(len(browser.Picture(png).colours()), 30, name)
        if folder := os.environ.get("PAGODA_PAGE_IMAGES"):
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name), "wb") as file:
                file.write(png)

    def talk(self):
        self.set("system", SYSTEM)
        self.ask(QUESTIONS[0], 96)
        self.wait_answer()
        first = int(facts(self.page)["prompt"].split()[0])
        self.ask(QUESTIONS[1], 96)
        self.wait_answer()
        self.assertGreater(int(facts(self.page)["cached"].split()[0]), first)

    def test_a_second_question_finds_the_first_in_the_cache(self):
        for salt in ("team-a", "team-b"):  # others' blocks have colours of their own
            self.server.post("/v1/completions", {"prompt": "Once upon a time " * 60, "max_tokens": 16,
                                                 "cache_salt": salt})
        self.page.resize(1080, 720)
        self.talk()
        self.page.wait("document.querySelectorAll('#map .cell.reusable').length > 3")
        self.page.wait("document.querySelectorAll('#branches li').length > 0")
        self.page.wait("document.getElementById('running').textContent === '0'")
        self.page.wait("/%/.test(document.getElementById('hits').textContent)")
        self.page.wait("document.getElementById('map-note').textContent.includes(' 0 active')")
        self.take("page.png")

    def test_the_views_of_the_guide(self):
        self.page.resize(1080, 720)
        self.talk()
        for end in ("a river", "a castle", "the sea"):
            self.server.post("/v1/chat/completions", {"max_tokens": 24, "messages": [
                {"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Tell me about {end}."}]})
        self.open_view("live")
        self.page.wait("document.querySelectorAll('#plots polyline').length > 8")
        self.take("page_live.png", 840)
        self.open_view("curve")
        self.page.wait("document.querySelectorAll('#curve-table td').length > 0")
        self.take("page_curve.png", 760)
        self.open_view("tree")
        self.page.wait("document.querySelectorAll('#tree-below button').length > 0")
        # The system prompt of the chats, which all of them go on from.
        self.page.evaluate("void [...document.querySelectorAll('#tree-below button')]"
                           ".find((button) => button.textContent !== '(private)').click()")
        self.page.wait("document.querySelectorAll('#tree-node .text').length > 0")
        self.take("page_tree.png", 840)
        self.open_view("explain")
        self.set("first-prompt", "Today is 14 November. What is a pagoda?")
        self.set("second-prompt", "Today is 15 November. What is a pagoda?")
        self.click("compare-now")
        self.page.wait("document.querySelectorAll('#comparison .facts').length > 0")
        self.take("page_explain.png", 760)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
