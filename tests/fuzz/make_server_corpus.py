#!/usr/bin/env python3
"""Writes corpus/http (a byte for the size of pieces, then requests) and corpus/json (bodies).

    tests/fuzz/make_server_corpus.py
"""
import pathlib

HERE = pathlib.Path(__file__).parent
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
REQUESTS = [
    b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/models?a=b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\r\n",
    HEAD + b"Content-Type: application/json\r\nContent-Length: 5\r\n\r\nhello",
    HEAD + b"Authorization: Bearer k\r\nX-Request-Id: 7\r\nContent-Length: 0\r\n\r\n",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n",
    HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"X: a\r\n b\r\n\r\n",
    b"GET /health HTTP/1.1\nHost: x\n\n",
    CHUNKED + b"5\r\nhello\r\n0\r\n\r\n",
    CHUNKED + b"1;a=b\r\n{\r\n1\r\n}\r\n0\r\nX-Trailer: 1\r\n\r\n",
    CHUNKED + b"ffffffffffffffff\r\nhello",
    HEAD + b"X: " + b"a" * 500 + b"\r\n\r\n",
    HEAD + b"Content-Length: 300\r\n\r\n" + b"a" * 300,
    b"\r\n\r\nGET http://[::1]:8000/health?x HTTP/1.1\r\nHost: x\r\n\r\n",
    HEAD + b"Content-Length: 2, 2\r\nExpect: more\r\n\r\n{}",
]
BODIES = [
    b'{"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0.5, "seed": -1}',
    b'{"n": 2, "stop": ["a", "b"], "stream": true, "stream_options": {"include_usage": true}}',
    b'{"logit_bias": {"5": -100, "7": 1.5}, "stop_token_ids": [1, 2], "top_k": -1, "min_p": 0}',
    b'{"retain": {"seconds": 600, "priority": 50, "upto": "system"}, "cache_salt": "s"}',
    b'{"cache_public_upto": "system", "priority": -5, "prompt_logprobs": 3}',
    b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "\\ud83d\\ude00"}]}]}',
    b'{"response_format": {"type": "json_object"}, "tools": [], "best_of": 2}',
    b'{"max_tokens": 5, "system": [{"type": "text", "text": "s"}], "tools": [{"name": "f", "input_schema": {}}],'
    b' "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "thinking",'
    b' "thinking": "t", "signature": "x"}, {"type": "text", "text": "b"}, {"type": "tool_use", "id": "i",'
    b' "name": "f", "input": {"k": 1}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i",'
    b' "content": [{"type": "text", "text": "r"}]}]}], "tool_choice": {"type": "any"}, "stop_sequences": ["z"]}',
    b'{"input": [{"role": "developer", "content": "d"}, {"role": "user", "content": [{"type": "input_text",'
    b' "text": "a"}]}, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},'
    b' {"type": "function_call", "call_id": "i", "name": "f", "arguments": "{}"}, {"type": "function_call_output",'
    b' "call_id": "i", "output": "r"}], "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],'
    b' "reasoning": {"effort": "low", "summary": "auto"}, "text": {"format": {"type": "json_object"}}}',
    b'{"prompt": "p", "system": "s", "options": {"num_predict": 4, "stop": ["a"]}, "think": true, "format": "json",'
    b' "messages": [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},'
    b' {"role": "tool", "content": "r"}]}',
    # Claude Code's shape: results behind words, a failure, a tool of Anthropic's.
    b'{"max_tokens": 5, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],'
    b' "tools": [{"type": "web_search_20250305", "name": "w"}, {"name": "f", "input_schema": {}}], "messages": ['
    b'{"role": "assistant", "content": [{"type": "tool_use", "id": "i", "name": "f", "input": {}},'
    b' {"type": "tool_use", "id": "j", "name": "f", "input": {}}]}, {"role": "user", "content": [{"type": "text",'
    b' "text": "a"}, {"type": "tool_result", "tool_use_id": "j", "is_error": true, "content": [{"type": "text",'
    b' "text": "x"}]}, {"type": "tool_result", "tool_use_id": "i", "is_error": true}]}]}',
    # Codex's: reasoning that is encrypted, calls in a row, tools that are left out.
    b'{"instructions": "s", "input": [{"type": "message", "role": "developer", "content": [{"type": "input_text",'
    b' "text": "d"}]}, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}],'
    b' "encrypted_content": "e"}, {"type": "function_call", "call_id": "i", "name": "f", "arguments": ""},'
    b' {"type": "function_call", "call_id": "j", "name": "f", "arguments": "{"}, {"type": "function_call_output",'
    b' "call_id": "j", "output": [{"type": "input_text", "text": "r"}]}], "tools": [{"type": "custom", "name": "p"},'
    b' {"type": "function", "name": "f", "strict": false}], "include": [], "prompt_cache_key": "k", "store": false}',
    # Ollama's results, by name and by id.
    b'{"keep_alive": 0, "messages": [{"role": "assistant", "tool_calls": [{"id": "i", "function": {"name": "f"}},'
    b' {"function": {"name": "g"}}]}, {"role": "tool", "tool_name": "g", "content": "r"},'
    b' {"role": "tool", "tool_call_id": "i", "content": "r"}]}',
    # Prompts that are to be cut, and a summary that comes back.
    b'{"truncation": {"type": "middle", "keep": "system"}, "messages": [{"role": "system", "content": "s"},'
    b' {"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"id": "i", "function": {"name": "f"}},'
    b' {"id": "j", "function": {"name": "f"}}]}, {"role": "tool", "tool_call_id": "j", "content": "r"},'
    b' {"role": "user", "content": "b"}, {"role": "tool", "tool_call_id": "i", "content": "r"},'
    b' {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}], "truncate": true}',
    b'{"truncate_prompt_tokens": -1, "truncation": "disabled", "prompt": "p"}',
    b'{"truncation": "auto", "keep_turns": 1, "input": [{"type": "compaction", "encrypted_content":'
    b' "pagoda-summary:x"}, {"role": "user", "content": "a"}, {"type": "compaction", "encrypted_content": "e"}]}',
    b'{"a": 1, "a": 2}',
    b'{"a": NaN}',
    b'{"a": 1e999}',
    b'{"a": "\xff"}',
    b'{"a": "\\ud800"}',
    b"[" * 65 + b"]" * 65,
    b"[" * 64 + b"]" * 64,
    b"[1, -0.0, 18446744073709551616, 1E-400, true, null]",
    b"",
    # A name that no tool may have is found by the checks of chats.
    b'{"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "tools": [{"name": "a b", "input_schema": {}}]}',
]


def write(folder, inputs):
    place = HERE / "corpus" / folder
    place.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (place / f"seed_{number:02}").write_bytes(data)


write("http", [bytes([7 * number % 64]) + data for number, data in enumerate(REQUESTS)])
write("json", BODIES)
