"""GET /metrics as Prometheus reads it: an independent parser takes it, and the figures are true."""

import json
import math
import os
import re
import sys
import tempfile
import threading
import unittest

import served
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_text
from router_process import free_port

OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
DASHBOARD = os.path.join(served.SOURCE, "docs/examples/grafana.json")
GUIDE = os.path.join(served.SOURCE, "docs/guide/metrics.md")
BASE_LABELS = {"model_name", "engine"}
# Rows of vLLM's list that gateways and its own dashboards read.
EXPECTED = """
num_requests_running num_requests_waiting num_requests_waiting_by_reason kv_cache_usage_perc
cache_config_info lora_requests_info prefix_cache_queries prefix_cache_hits num_preemptions
prompt_tokens prompt_tokens_cached generation_tokens prompt_tokens_by_source request_success
time_to_first_token_seconds inter_token_latency_seconds request_time_per_output_token_seconds
e2e_request_latency_seconds request_queue_time_seconds request_inference_time_seconds
request_prefill_time_seconds request_decode_time_seconds request_prompt_tokens
request_generation_tokens request_max_num_generation_tokens request_params_max_tokens
request_prefill_kv_computed_tokens request_params_n iteration_tokens_total
""".split()
HISTOGRAM_ENDS = ("_bucket", "_sum", "_count")


class Page:
    """The families of one reading, and its samples by name and labels."""

    def __init__(self, server, accept=None, parse=parse_text):
        headers = {"Accept": accept} if accept else {}
        self.reply, self.text = server.request("GET", "/metrics", headers=headers)
        self.families = list(parse(self.text))
        self.samples = {}
        for family in self.families:
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"twice: {key}"
                self.samples[key] = sample.value

    def names(self):
        return {name for name, _ in self.samples}

    def value(self, name, **labels):
        """The one sample of this name whose labels contain these."""
        wanted = set(labels.items())
        found = [v for (n, l), v in self.samples.items() if n == name and wanted <= l]
        assert len(found) == 1, (name, labels, found)
        return found[0]


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.name = 'a "name" \\ of its own'
        cls.server = served.Served(served.STORIES, "--served-model-name", cls.name, "--max-num-seqs", "2")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def complete(self, **more):
        body = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0, **more}
        status, reply = self.server.post("/v1/completions", body)
        self.assertEqual(status, 200)
        return reply

    @staticmethod
    def sources(page):
        return sum(v for (n, _), v in page.samples.items() if n == "pagoda:prompt_tokens_by_source_total")

    def test_both_formats_are_parsed_and_say_the_same(self):
        self.complete()
        plain = Page(self.server)
        self.assertEqual(plain.reply.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        for line in plain.text.splitlines():
            self.assertRegex(line, r"^# (HELP|TYPE) [a-z][a-z0-9_:]* |^[a-z][a-z0-9_:]*(\{.*\})? \S+$")
        open_metrics = Page(self.server, OPEN + ",text/plain;q=0.1", parse_open)
        self.assertEqual(open_metrics.reply.headers["Content-Type"], OPEN)
        self.assertTrue(open_metrics.text.endswith("# EOF\n"))
        skipped = {"http_requests_total"}  # the first reading is a reply as well
        self.assertEqual(
            {k for k in plain.samples if k[0] not in skipped},
            {k for k in open_metrics.samples if k[0] not in skipped},
        )

    def test_steps_have_a_time_and_one_that_was_predicted(self):
        self.complete()
        page = Page(self.server)
        steps = page.value("pagoda:steps_total")
        self.assertEqual(page.value("pagoda:step_time_seconds_count"), steps)
        self.assertEqual(page.value("pagoda:step_time_predicted_seconds_count"), steps - 1)
        took = page.value("pagoda:step_time_seconds_sum")
        self.assertGreater(took, 0)
        self.assertLessEqual(took, page.value("pagoda:step_seconds_sum", phase="launch")
                             + page.value("pagoda:step_seconds_sum", phase="wait") + 1e-3 * steps)

    def test_every_family_has_a_type_a_help_and_samples(self):
        self.complete()
        for family in Page(self.server).families:
            self.assertIn(family.type, ("counter", "gauge", "histogram"), family.name)
            self.assertTrue(family.documentation.endswith("."), family.name)
            self.assertTrue(family.samples, family.name)

    def test_the_names_of_vllm_are_there_with_both_labels(self):
        page = Page(self.server)
        families = {family.name: family for family in page.families}
        for name in EXPECTED:
            self.assertIn(f"vllm:{name}", families)
        for family in page.families:
            for sample in family.samples:
                if family.name.startswith(("vllm:", "pagoda:")):
                    self.assertLessEqual(BASE_LABELS, set(sample.labels), sample.name)
                    self.assertEqual(sample.labels["model_name"], self.name)
                    self.assertEqual(sample.labels["engine"], "0")
        info = families["vllm:cache_config_info"].samples[0].labels
        self.assertEqual(info["block_size"], "16")
        self.assertGreater(int(info["num_gpu_blocks"]), 0)

    def test_histograms_are_cumulative_and_end_with_their_count(self):
        self.complete(n=2)
        for family in Page(self.server).families:
            if family.type != "histogram":
                continue
            series = {}
            for sample in family.samples:
                rest = frozenset((k, v) for k, v in sample.labels.items() if k != "le")
                series.setdefault(rest, []).append(sample)
            for samples in series.values():
                buckets = [s for s in samples if s.name.endswith("_bucket")]
                bounds = [float(s.labels["le"]) for s in buckets]
                self.assertEqual(bounds, sorted(set(bounds)))
                self.assertEqual(bounds[-1], math.inf)
                counts = [s.value for s in buckets]
                self.assertEqual(counts, sorted(counts), family.name)
                count = next(s.value for s in samples if s.name.endswith("_count"))
                self.assertEqual(counts[-1], count, family.name)

    def test_what_requests_cost_adds_up(self):
        before = Page(self.server)
        system = {"prompt": "A bird sat on a high tree and sang", "max_tokens": 6, "temperature": 0}
        replies = [self.complete(**system) for _ in range(2)]
        # Tenants and sources follow a reply at once, but do not precede it.
        served.wait_until(lambda: Page(self.server).value("pagoda:tenant_requests_finished_total", tenant="default")
                          == before.value("pagoda:tenant_requests_finished_total", tenant="default") + 2)
        served.wait_until(lambda: self.sources(Page(self.server)) - self.sources(before)
                          == sum(reply["usage"]["prompt_tokens"] for reply in replies))
        after = Page(self.server)

        def grown(name, **labels):
            return after.value(name, **labels) - before.value(name, **labels)

        usages = [reply["usage"] for reply in replies]
        prompt = sum(u["prompt_tokens"] for u in usages)
        cached = sum(u["prompt_tokens_details"]["cached_tokens"] for u in usages)
        chosen = sum(u["completion_tokens"] for u in usages)
        self.assertGreater(cached, 0)
        self.assertEqual(grown("vllm:prompt_tokens_total"), prompt)
        self.assertEqual(grown("vllm:prompt_tokens_by_source_total", source="local_cache_hit"), cached)
        self.assertEqual(grown("vllm:prompt_tokens_by_source_total", source="local_compute"), prompt - cached)
        self.assertEqual(grown("vllm:generation_tokens_total"), chosen)
        self.assertEqual(grown("vllm:e2e_request_latency_seconds_count"), 2)
        self.assertEqual(grown("pagoda:prompt_tokens_by_source_total", source="user", cached="true")
                         + grown("pagoda:prompt_tokens_by_source_total", source="template", cached="true"), cached)
        self.assertEqual(grown("pagoda:tenant_prompt_tokens_total", tenant="default"), prompt)
        self.assertEqual(grown("http_requests_total", handler="/v1/completions", status="2xx"), 2)
        self.assertEqual(grown("llamacpp:tokens_predicted_total"), chosen)

    def test_blocks_are_all_accounted_for(self):
        self.complete()
        page = Page(self.server)
        states = [page.value("pagoda:kv_blocks", state=s) for s in ("free", "active", "reusable")]
        self.assertEqual(sum(states), self.server.snapshot()["now"]["blocks_all"])
        self.assertGreater(states[2], 0)
        self.assertEqual(page.value("vllm:kv_cache_usage_perc"), 0)

    def test_a_queue_shows_while_it_stands(self):
        bodies = [{"prompt": f"{i} Once upon a time", "max_tokens": 480, "ignore_eos": True} for i in range(16)]
        threads = [threading.Thread(target=self.complete, kwargs=body) for body in bodies]
        for thread in threads:
            thread.start()
        seen = []

        def waits():
            page = Page(self.server)
            seen.append(page)
            return page.value("vllm:num_requests_waiting") > 0 and page.value("vllm:num_requests_running") == 2

        served.wait_until(waits)
        for thread in threads:
            thread.join()
        page = seen[-1]
        reasons = sum(v for (n, _), v in page.samples.items() if n == "pagoda:requests_waiting")
        self.assertEqual(reasons, page.value("vllm:num_requests_waiting"))
        self.assertGreater(page.value("vllm:kv_cache_usage_perc"), 0)

    def test_the_process_tells_what_the_system_says_of_it(self):
        page = Page(self.server)
        pid = self.server.process.pid
        with open(f"/proc/{pid}/status") as file:
            resident = int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024
        self.assertAlmostEqual(page.value("process_resident_memory_bytes") / resident, 1, delta=0.2)
        self.assertAlmostEqual(page.value("process_open_fds"), self.server.descriptors(), delta=2)
        started = os.stat(f"/proc/{pid}").st_mtime
        self.assertAlmostEqual(page.value("process_start_time_seconds"), started, delta=2)
        with open(f"/proc/{pid}/stat") as file:
            ticks = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        self.assertAlmostEqual(page.value("process_cpu_seconds_total"), ticks / os.sysconf("SC_CLK_TCK"), delta=0.5)

    def test_connections_are_counted_while_they_are_open(self):
        def connections():
            return Page(self.server).value("pagoda:connections")

        before = connections()  # this one included
        open_ones = [self.server.socket() for _ in range(5)]
        served.wait_until(lambda: connections() == before + 5)
        for one in open_ones:
            one.close()
        served.wait_until(lambda: connections() == before)

    def test_evictions_have_a_cause(self):
        def evicted(cause):
            return Page(self.server).value("pagoda:kv_blocks_evicted_total", cause=cause, policy="lru")

        self.complete()
        before = evicted("reset")
        reusable = Page(self.server).value("pagoda:kv_blocks", state="reusable")
        self.server.post("/reset_prefix_cache", None)
        served.wait_until(lambda: evicted("reset") == before + reusable)
        self.assertEqual(evicted("quota"), 0)

    def test_paths_that_do_not_exist_are_one(self):
        for path in ("/nowhere", "/nowhere/else"):
            self.server.request("GET", path)
        self.assertGreaterEqual(Page(self.server).value("http_requests_total", handler="none", status="4xx"), 2)
        self.assertNotIn("nowhere", Page(self.server).text)


def metric_names(text):
    return set(re.findall(r"(?:vllm|llamacpp|pagoda):[a-z0-9_]+|http_requests_total|process_[a-z_]+", text))


class Documents(unittest.TestCase):
    """What is written about metrics names metrics that exist."""

    @classmethod
    def setUpClass(cls):
        with served.Served(served.STORIES) as server:
            server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
            cls.page = Page(server)

    def test_the_dashboard_shows_names_that_exist_and_shows_ours(self):
        with open(DASHBOARD) as file:
            dashboard = json.load(file)
        queries = [t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])]
        queries += [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
        names = set().union(*(metric_names(query) for query in queries))
        self.assertGreater(len(names), 20)
        self.assertLessEqual(names, self.page.names())
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        ours = {n for n in self.page.names() if n.startswith("pagoda:")}
        shown = {re.sub("_(bucket|sum|count)$", "", n) for n in names}
        missing = {re.sub("_(bucket|sum|count)$", "", n) for n in ours} - shown
        self.assertLessEqual(missing, {"pagoda:build_info", "pagoda:preemptions_total",
                                       "pagoda:rank_exchanged_bytes_total",
                                       "pagoda:tenant_requests_finished_total"})

    def test_the_labels_in_queries_exist(self):
        with open(DASHBOARD) as file:
            text = file.read()
        labels = {key for _, pairs in self.page.samples for key, _ in pairs}
        used = set(re.findall(r"by \(([a-z_, ]+)\)", text))
        for group in used:
            self.assertLessEqual(set(re.split(", *", group)), labels, group)

    def test_the_guide_lists_every_family_and_no_other(self):
        with open(GUIDE) as file:
            guide = metric_names(file.read())
        ends = tuple(HISTOGRAM_ENDS)
        families = set()
        # Nobody answers there: a tier that is off is counted, too.
        remote = ("--kv-remote", "redis://127.0.0.1:1")
        with tempfile.TemporaryDirectory() as folder:
            key = f"{folder}/key"
            with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(b"k" * 32)
            peers = ("--kv-store-key", key, "--kv-peer-listen", f"127.0.0.1:{free_port()}")
            with served.Served(served.STORIES, "--kv-host-size", "16MiB", *remote, *peers) as server:
                with_tiers = Page(server)
        for family in with_tiers.families:
            families.add(family.name + ("_total" if family.type == "counter" else ""))
        self.assertEqual({n for n in guide if not n.endswith(ends)}, families)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
