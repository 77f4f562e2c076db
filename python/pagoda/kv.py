"""The KV cache alone: prefixes, blocks and what leaves first, without a model.

    from pagoda import kv

    cache = kv.Cache(blocks=64, block_tokens=16)
    with cache.open(prompt) as sequence:          # finds what is there
        sequence.reserve(len(prompt))             # makes room, and may evict
        sequence.commit(prompt[sequence.tokens_found:])
    cache.match(prompt)                           # how many tokens are there now
    cache.explain(other)                          # why not more of them

    kv.replay("trace.jsonl.gz", blocks=2000, policy="slru").hit_rate
"""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as _List
from typing import Any, NamedTuple, Union

from . import _arguments
from ._pagoda import kv as _kv

Explanation = _kv.Explanation
HitCounts = _kv.HitCounts

_COUNT_MAX = 2**32 - 1
_BLOCK_ID_MAX = 2**64 - 1
_BESIDE_POLICIES = ("belady", "infinite")  # a replay has them


def _shown(*names: str) -> Any:
    """Returns a __repr__ that says these attributes."""

    def __repr__(self: Any) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


Explanation.__repr__ = _shown("prompt_tokens", "tokens_matched", "reason")
HitCounts.__repr__ = _shown("blocks", "blocks_hit", "hit_rate", "tokens", "tokens_hit", "token_hit_rate")


class OutOfBlocks(MemoryError):
    """The cache refused: too few blocks are free or idle. Nothing was done."""


class Use(NamedTuple):
    """One use of a block: a request fills it, or finds it."""

    now: int  # counts what happens in the cache
    tokens_before: int  # of its prompt, before the block
    blocks_found: int  # of the request, that were there
    blocks_fresh: int  # of the request, that were not
    goes_on: bool  # the request goes on where at most one other did


class Policy:
    """An eviction policy. The block with the smallest value leaves first, as far as chains allow.

    `entered` and `used` return a block's value, an int of 64 bits; a use never lowers it. Blocks are
    numbered by their places: the same number is another block once it `left`. This one is LRU.
    """

    def entered(self, block: int, use: Use) -> int:
        """A block is filled."""
        return use.now

    def used(self, block: int, use: Use) -> int:
        """A request found it."""
        return use.now

    def left(self, block: int) -> None:
        """It cannot be found any more."""


class _Adapter:
    """What the module calls: a use becomes the named tuple."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.left = policy.left

    def entered(self, block: int, use: dict) -> int:
        return self._policy.entered(block, Use(**use))

    def used(self, block: int, use: dict) -> int:
        return self._policy.used(block, Use(**use))


class Sequence:
    """A request's hold on the cache. Closing it leaves its blocks to be found, until they are evicted."""

    def __init__(self, held: Any) -> None:
        self._held = held

    @property
    def tokens_found(self) -> int:
        """How many tokens of the prompt were there."""
        return self._held.tokens_found

    @property
    def tokens_computed(self) -> int:
        """How many tokens it has: found and committed."""
        return self._held.tokens_computed

    @property
    def tokens_reserved(self) -> int:
        """How many tokens its blocks have room for."""
        return self._held.tokens_reserved

    def reserve(self, tokens: int) -> None:
        """Makes room for so many tokens in all. Raises OutOfBlocks."""
        _for_room(self._held.reserve, _arguments.integer("tokens", tokens, 0, _COUNT_MAX))

    def commit(self, tokens: _List[int]) -> None:
        """These tokens follow, and can be found from now on."""
        self._held.commit(_arguments.token_ids("tokens", tokens))

    def close(self) -> None:
        """Ends the hold."""
        self._held.close()

    def __enter__(self) -> "Sequence":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Cache:
    """Blocks of tokens that prompts share by their prefixes. One thread at a time may use it.

    What is committed under a salt is found under that salt alone; what has none, by everyone.
    """

    def __init__(self, blocks: int, block_tokens: int = 16, policy: str = "lru") -> None:
        self._cache = _kv.Cache(
            _arguments.integer("blocks", blocks, 1, _COUNT_MAX),
            _arguments.integer("block_tokens", block_tokens, 1, _COUNT_MAX),
            _name("policy", policy),
        )

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self._cache.blocks

    @property
    def blocks_available(self) -> int:
        """How many are free, or idle and free to go."""
        return self._cache.blocks_available

    def match(self, tokens: _List[int], salt: str = "") -> int:
        """Returns how many tokens of a prompt are there; its last one is never counted."""
        return self._cache.match(_arguments.token_ids("tokens", tokens), _name("salt", salt))

    def explain(self, tokens: _List[int], salt: str = "") -> Explanation:
        """Says why not more of the prompt is there."""
        return self._cache.explain(_arguments.token_ids("tokens", tokens), _name("salt", salt))

    def open(self, tokens: _List[int], salt: str = "") -> Sequence:
        """Begins a request: holds what is there of its prompt. Raises OutOfBlocks."""
        ids = _arguments.token_ids("tokens", tokens)
        return Sequence(_for_room(self._cache.open, ids, _name("salt", salt)))

    def clear(self) -> None:
        """Evicts what nobody holds."""
        self._cache.clear()


def policies() -> list[str]:
    """Returns the names of the policies that are built in, of a Cache or a replay. A replay has "belady" and
    "infinite" beside them, which no cache could have."""
    return _kv.policies()


def replay(
    trace: Union[str, _List[_List[int]]],
    blocks: int,
    policy: Union[str, Policy] = "lru",
    block_tokens: int = 512,
) -> HitCounts:
    """Sends a recorded stream of requests through a cache of so many blocks and counts what was there.

    `trace` is a file in Mooncake's format, or a list that has for each request the ids of its blocks.
    `policy` is a name of policies(), "belady" (knows the future: no policy hits more), "infinite", or an
    object of Policy.
    """
    if isinstance(policy, str):
        if policy not in (*policies(), *_BESIDE_POLICIES):
            raise ValueError(f"policy: is '{policy}', expected {', '.join((*policies(), *_BESIDE_POLICIES))}")
    elif not all(hasattr(policy, name) for name in ("entered", "used", "left")):
        raise _arguments.wrong_type("policy", policy, "a name or an object of Policy")
    asked = policy if isinstance(policy, str) else _Adapter(policy)
    source = trace if isinstance(trace, str) else _requests("trace", trace)
    most = _arguments.integer("blocks", blocks, 1, _COUNT_MAX)
    return _kv.replay(source, most, asked, _arguments.integer("block_tokens", block_tokens, 1, _COUNT_MAX))


def _requests(argument: str, value: Any) -> list[list[int]]:
    """Returns the ids of the blocks of each request."""
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise _arguments.wrong_type(argument, value, "a file or a list that has a list of block ids for each request")
    requests = []
    for blocks in value:
        if isinstance(blocks, (str, bytes, Mapping)) or not isinstance(blocks, Iterable):
            raise _arguments.wrong_type(argument, blocks, "the block ids of a request")
        requests.append([_arguments.integer(argument, block, 0, _BLOCK_ID_MAX) for block in blocks])
    return requests


def _name(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _arguments.wrong_type(argument, value, "a str")
    return value


def _for_room(function: Any, *words: Any) -> Any:
    try:
        return function(*words)
    except MemoryError as refused:
        raise OutOfBlocks(str(refused)) from None
