"""Tokenizer: text to tokens and back, by names of transformers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments, _foreign, _pagoda


class Encoding(dict):
    """The tokens of a text, or of a list of texts: `input_ids` and `attention_mask`, as keys or attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"an encoding has {', '.join(self)}, not '{name}'")
        return self[name]


class Tokenizer:
    """The model's tokenizer, as its file defines it, with a chat template where the model has one."""

    is_fast = True

    def __init__(self, model: "_pagoda.Model") -> None:
        self._model = model

    def __call__(self, text: Union[str, Sequence[str]], add_special_tokens: bool = True, **others: Any) -> Encoding:
        """Returns the tokens of a text, or of several, as lists."""
        others.pop("return_attention_mask", None)
        reasons = {
            "return_tensors": "tokens are lists",
            "padding": "prompts are never padded",
            "truncation": "SamplingParams(truncate_prompt_tokens=…) shortens a prompt",
            "max_length": "SamplingParams(truncate_prompt_tokens=…) shortens a prompt",
        }
        _arguments.check("Tokenizer", others, ("add_special_tokens",), {}, reasons)
        if isinstance(text, str):
            ids: Any = self.encode(text, add_special_tokens)
            return Encoding(input_ids=ids, attention_mask=[1] * len(ids))
        if not hasattr(text, "__iter__"):
            raise _arguments.wrong_type("text", text, "a str or a list of str")
        several = [self.encode(one, add_special_tokens) for one in text]
        return Encoding(input_ids=several, attention_mask=[[1] * len(ids) for ids in several])

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the text's tokens."""
        if not isinstance(text, str):
            raise _arguments.wrong_type("text", text, "a str")
        return self._model.encode(text, bool(add_special_tokens))

    def decode(self, token_ids: Union[int, Sequence[int]], skip_special_tokens: bool = False) -> str:
        """Returns the tokens' text. Bytes that are no UTF-8 become U+FFFD."""
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        tokens = _arguments.token_ids("token_ids", ids)
        return self._model.decode(tokens, bool(skip_special_tokens)).decode("utf-8", "replace")

    def batch_decode(self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = False) -> list[str]:
        """Decodes several."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: bool = True,
        **kwargs: Any,
    ) -> Union[str, list[int]]:
        """Returns the prompt of a chat: its tokens, or its text without `tokenize`.

        The template is the one that chat() takes; further arguments are variables of it.
        """
        if kwargs.pop("return_tensors", None) is not None:
            raise TypeError("apply_chat_template: return_tensors is not supported: tokens are lists")
        if kwargs.pop("chat_template", None) is not None:
            raise TypeError("apply_chat_template: chat_template is an argument of LLM, the path of a file")
        as_dict = kwargs.pop("return_dict", False)
        body: dict[str, Any] = {
            "messages": _arguments.messages("conversation", conversation),
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
        }
        if tools:
            body["tools"] = list(tools)
        if kwargs:
            body["chat_template_kwargs"] = kwargs
        rendered = json.loads(self._model.render(json.dumps(body)))
        if not tokenize:
            return rendered["text"]
        ids = rendered["token_ids"]
        return Encoding(input_ids=ids, attention_mask=[1] * len(ids)) if as_dict else ids

    def convert_ids_to_tokens(self, ids: Union[int, Sequence[int]]) -> Any:
        """Returns tokens as the model's file writes them: "Ġthe", "▁the", "<0x0A>"."""
        if isinstance(ids, int):
            text = self._model.token_text(_arguments.integer("ids", ids, 0, 2**32 - 1))
            return None if text is None else text.decode("utf-8", "replace")
        return [self.convert_ids_to_tokens(each) for each in ids]

    def get_vocab(self) -> dict[str, int]:
        """Returns all tokens by their texts."""
        return {self.convert_ids_to_tokens(token): token for token in range(self.vocab_size)}

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return self._model.vocab_size

    @property
    def bos_token_id(self) -> Optional[int]:
        """The token before a text, or None."""
        return self._model.bos_token_id

    @property
    def eos_token_id(self) -> Optional[int]:
        """The token that ends a text, or None."""
        return self._model.eos_token_id

    @property
    def bos_token(self) -> Optional[str]:
        """The text of the token before a text, or None."""
        return self._text_of(self.bos_token_id)

    @property
    def eos_token(self) -> Optional[str]:
        """The text of the token that ends a text, or None."""
        return self._text_of(self.eos_token_id)

    @property
    def all_special_ids(self) -> list[int]:
        """The control tokens."""
        return self._model.control_tokens()

    @property
    def all_special_tokens(self) -> list[str]:
        """The control tokens' texts."""
        return self.convert_ids_to_tokens(self.all_special_ids)

    @property
    def model_max_length(self) -> int:
        """How many tokens prompt and output may have together."""
        return self._model.max_model_len

    @property
    def name_or_path(self) -> str:
        """The model's name."""
        return self._model.name

    def _text_of(self, token: Optional[int]) -> Optional[str]:
        return None if token is None else self.convert_ids_to_tokens(token)

    def __getattr__(self, name: str) -> Any:
        raise _foreign.missing("Tokenizer", name, _foreign.MISSING_TOKENIZER)
