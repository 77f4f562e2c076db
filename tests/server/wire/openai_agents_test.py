"""An agent of the openai-agents package, which speaks the Responses API, works with the server."""

import asyncio
import os
import sys
import unittest

import agents
import openai

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")


class Agent(unittest.TestCase):
    """By a model whose answers are known (tests/data/make_scripted_model.py)."""

    def test_calls_its_tool_and_says_what_it_said(self):
        cities = []

        @agents.function_tool
        def get_weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "21"

        async def ask(server):
            client = openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
            agent = agents.Agent(
                name="weather", instructions="Be kind.", tools=[get_weather],
                model=agents.OpenAIResponsesModel("scripted_calls", client))
            whole = await agents.Runner.run(agent, "How warm is it?")
            streamed = agents.Runner.run_streamed(agent, "How warm is it?")
            async for _ in streamed.stream_events():
                pass
            await client.close()
            # What the model wrote is found again, all but its last token.
            for first, second in (whole.raw_responses, streamed.raw_responses):
                written = first.usage.input_tokens + first.usage.output_tokens
                cached = second.usage.input_tokens_details.cached_tokens
                self.assertGreaterEqual(cached, written - 2)
            return whole.final_output, streamed.final_output

        agents.set_tracing_disabled(True)
        with served.Served(SCRIPTED) as server:
            answers = asyncio.run(ask(server))
        self.assertEqual(answers, ("It is 21 degrees.",) * 2)
        self.assertEqual(cities, ["Rome"] * 2)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
