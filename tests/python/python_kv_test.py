"""pagoda.kv: the cache alone, and policies written in Python."""

import os
import sys
import unittest

from python_case import SOURCE

import python_tests
from pagoda import kv

TRACE = os.path.join(SOURCE, "tests/data/traces/conversation_1000.jsonl.gz")


def fill(cache, tokens, salt=""):
    with cache.open(tokens, salt) as sequence:
        sequence.reserve(len(tokens))
        sequence.commit(tokens[sequence.tokens_found:])
        return sequence.tokens_found


class Cache(unittest.TestCase):
    def test_a_prompt_finds_the_longest_prefix(self):
        cache = kv.Cache(blocks=16, block_tokens=4)
        self.assertEqual(fill(cache, list(range(10))), 0)
        self.assertEqual(cache.match(list(range(10))), 9)
        self.assertEqual(cache.match([0, 1, 2, 3, 4, 99, 100]), 5)
        self.assertEqual(fill(cache, list(range(12))), 10)

    def test_what_has_a_salt_is_found_with_it_alone_and_the_rest_by_everyone(self):
        cache = kv.Cache(blocks=16, block_tokens=4)
        fill(cache, list(range(10)), salt="mine")
        self.assertEqual([cache.match(list(range(10)), salt) for salt in ("mine", "other", "")], [9, 0, 0])
        fill(cache, list(range(20, 30)))
        self.assertEqual([cache.match(list(range(20, 30)), salt) for salt in ("mine", "")], [9, 9])

    def test_an_explanation_says_where_and_why(self):
        cache = kv.Cache(blocks=16, block_tokens=4)
        fill(cache, list(range(8)))
        why = cache.explain([0, 1, 2, 3, 4, 50, 51])
        self.assertEqual((why.reason, why.stops_at, why.stored[:2]), ("differs", 5, [5, 6]))
        self.assertEqual(cache.explain([70, 71]).reason, "never_seen")
        cache.clear()
        self.assertEqual(cache.explain(list(range(8))).reason, "cleared")

    def test_what_does_not_fit_is_refused_and_changes_nothing(self):
        cache = kv.Cache(blocks=2, block_tokens=4)
        with cache.open([1, 2, 3]) as sequence:
            with self.assertRaisesRegex(kv.OutOfBlocks, "needs 3 blocks, 2 are available"):
                sequence.reserve(12)
            with self.assertRaisesRegex(kv.OutOfBlocks, f"needs {2**30} blocks, 2 are available"):
                sequence.reserve(2**32 - 1)
            sequence.reserve(8)
            sequence.commit([1, 2, 3])
            with self.assertRaisesRegex(ValueError, "reserve"):
                sequence.commit([0] * 6)
            self.assertEqual((sequence.tokens_computed, cache.blocks_available), (3, 0))
        with self.assertRaisesRegex(ValueError, "closed"):
            sequence.reserve(1)
        self.assertEqual(cache.blocks_available, 2)

    def test_wrong_sizes_are_value_errors(self):
        for wrong in ({"blocks": 0}, {"blocks": 4, "block_tokens": 0}, {"blocks": 4, "policy": "best"}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                kv.Cache(**wrong)
        with self.assertRaises(ValueError):
            kv.Cache(blocks=4).match([])


class LastIn(kv.Policy):
    """Keeps what came first."""

    def __init__(self):
        self.blocks = {}

    def entered(self, block, use):
        self.blocks[block] = -use.now
        return -use.now

    def used(self, block, use):
        return self.blocks[block]

    def left(self, block):
        del self.blocks[block]


class Replay(unittest.TestCase):
    def test_a_policy_in_python_is_the_one_built_in(self):
        ours = kv.replay(TRACE, 2000, kv.Policy())
        theirs = kv.replay(TRACE, 2000, "lru")
        self.assertGreater(theirs.blocks_hit, 0)
        self.assertEqual((ours.blocks, ours.blocks_hit, ours.tokens_hit),
                         (theirs.blocks, theirs.blocks_hit, theirs.tokens_hit))

    def test_policies_stand_between_nothing_and_the_future(self):
        rates = {name: kv.replay(TRACE, 2000, name).hit_rate for name in [*kv.policies(), "belady", "infinite"]}
        for name in kv.policies():
            self.assertLessEqual(rates[name], rates["belady"], name)
        self.assertLessEqual(rates["belady"], rates["infinite"])

    def test_requests_may_be_lists(self):
        loop = [[block] for block in range(5)] * 20  # one block more than there is room for
        self.assertEqual(kv.replay(loop, 4, "lru", block_tokens=16).blocks_hit, 0)
        keeps = kv.replay(loop, 4, LastIn(), block_tokens=16)
        self.assertEqual((keeps.blocks, keeps.tokens), (100, 1600))
        self.assertGreater(keeps.blocks_hit, 50)

    def test_an_error_of_a_policy_is_raised(self):
        class Broken(kv.Policy):
            def used(self, block, use):
                raise KeyError("my own")

        class Falling(kv.Policy):
            def used(self, block, use):
                return -5

        class Wordy(kv.Policy):
            def entered(self, block, use):
                return "much"

        loop = [[1, 2]] * 3
        with self.assertRaisesRegex(KeyError, "my own"):
            kv.replay(loop, 4, Broken())
        with self.assertRaisesRegex(ValueError, "never lowers"):
            kv.replay(loop, 4, Falling())
        with self.assertRaisesRegex(TypeError, "int of 64 bits"):
            kv.replay(loop, 4, Wordy())
        self.assertEqual(kv.replay(loop, 4, kv.Policy()).blocks_hit, 4)

    def test_a_policy_may_replay_with_another_one(self):
        inner = []

        class Curious(kv.Policy):
            def entered(self, block, use):
                inner.append(kv.replay([[1, 2]] * 3, 4, kv.Policy()).blocks_hit)
                if len(inner) == 1:
                    with self.outer.assertRaisesRegex(KeyError, "inner"):
                        kv.replay([[1]], 4, Failing())
                return use.now

        class Failing(kv.Policy):
            def entered(self, block, use):
                raise KeyError("inner")

        Curious.outer = self
        loop = [[block] for block in (1, 2, 3, 1, 2, 3)]
        self.assertEqual(kv.replay(loop, 4, Curious()).blocks_hit, kv.replay(loop, 4, "lru").blocks_hit)
        self.assertEqual(inner, [4, 4, 4])

    def test_counts_are_shown(self):
        self.assertRegex(repr(kv.replay([[1], [1]], 4)), r"^HitCounts\(blocks=2, blocks_hit=1, hit_rate=0.5, ")
        self.assertRegex(repr(kv.Cache(blocks=4).explain([1, 2])), r"^Explanation\(prompt_tokens=2, .*'never_seen'\)$")

    def test_values_of_a_wrong_type_are_named(self):
        cache = kv.Cache(blocks=4)
        for call, named in ((lambda: cache.match("abc"), "tokens"), (lambda: cache.explain([1.5]), "tokens"),
                            (lambda: kv.Cache("4"), "blocks"), (lambda: cache.match([1], 3), "salt"),
                            (lambda: kv.replay([[1]], 10, 7), "policy"), (lambda: kv.replay([["a"]], 2), "trace"),
                            (lambda: kv.replay([1, 2], 2), "trace"), (lambda: kv.replay(7, 2), "trace")):
            with self.subTest(named), self.assertRaisesRegex(TypeError, f"^{named}: is "):
                call()
        with self.assertRaisesRegex(ValueError, "^tokens: is -1"):
            cache.open([-1])
        with self.assertRaisesRegex(ValueError, "^trace: is -1"):
            kv.replay([[-1]], 2)

    def test_a_missing_file_and_an_unknown_policy_are_named(self):
        with self.assertRaisesRegex(Exception, "/no/such.jsonl"):
            kv.replay("/no/such.jsonl", 10)
        with self.assertRaisesRegex(ValueError, "'best'.*lru"):
            kv.replay([[1]], 10, "best")
        with self.assertRaisesRegex(ValueError, "expected .*lru.*, belady, infinite"):
            kv.replay([[1]], 10, "best")


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
