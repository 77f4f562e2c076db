"""Names of vLLM that are not here as they are there, and why. A name may mean nothing here, which is warned of, or
ask for something that is not here, which is an error."""

_ONE_GPU = "one process computes, on one GPU or its CPUs"
_NO_LORA = "an adapter is merged into a model's file first"
_NO_IMAGES = "models of text alone are computed"
_TIERS = "`pagoda serve` has tiers: --kv-host-size, --kv-disk, --kv-remote"
_NO_GRAPHS = "nothing is compiled or captured ahead"

LLM_IGNORED = {
    "trust_remote_code": "no code of a model is ever run",
    "enforce_eager": _NO_GRAPHS,
    "swap_space": "sequences that make room are computed again from the cache",
    "cpu_offload_gb": "weights are in one memory, that of the device that computes",
    "disable_log_stats": "nothing is logged",
    "disable_log_requests": "nothing is logged",
    "enable_log_requests": "nothing is logged",
    "disable_custom_all_reduce": "one process computes",
    "distributed_executor_backend": "one process computes",
    "download_dir": "nothing is downloaded; `pagoda pull` does that",
    "load_format": "the model's file says what it is",
    "config_format": "the model's file says what it is",
    "tokenizer_mode": "the model's file says how text is cut",
    "skip_tokenizer_init": "prompts may be token ids with a tokenizer there",
    "enable_chunked_prefill": "prompts are computed in chunks always",
    "max_seq_len_to_capture": _NO_GRAPHS,
    "max_logprobs": "up to 20 are given",
    "async_scheduling": "steps are planned while the last one is computed",
    "compilation_config": _NO_GRAPHS,
    "cuda_graph_sizes": _NO_GRAPHS,
    "runner": "a model generates and embeds",
    "convert": "a model generates and embeds",
    "task": "a model generates and embeds",
    "seed": "requests have seeds of their own: SamplingParams(seed=…)",
    "use_tqdm_on_load": "loading shows itself on a terminal",
    "generation_config": "parameters of a request stand above the model's",
    "attention_backend": "the kernels of a machine are chosen once",
    "disable_hybrid_kv_cache_manager": "window layers keep their window alone",
    "structured_outputs_config": "grammars have one matcher",
    "guided_decoding_backend": "grammars have one matcher",
    "scheduling_policy": "the order is fixed: SamplingParams(priority=…), then arrival",
    "prefix_caching_hash_algo": "blocks have one hash",
    "optimization_level": _NO_GRAPHS,
}
LLM_REFUSED = {
    "enable_lora": _NO_LORA,
    "max_loras": _NO_LORA,
    "max_lora_rank": _NO_LORA,
    "lora_modules": _NO_LORA,
    "hf_overrides": "a model's config is read from its file; `pagoda serve` has --hf-overrides",
    "override_generation_config": "SamplingParams say it; get_default_sampling_params() has the model's",
    "kv_offloading_size": _TIERS,
    "kv_offloading_backend": _TIERS,
    "kv_transfer_config": _TIERS,
    "kv_events_config": "`pagoda serve` publishes events of the cache: --kv-events-config",
    "limit_mm_per_prompt": _NO_IMAGES,
    "mm_processor_kwargs": _NO_IMAGES,
    "allowed_local_media_path": _NO_IMAGES,
    "pooler_config": "an embedding is the last token's vector, of length 1",
    "override_pooler_config": "an embedding is the last token's vector, of length 1",
    "logits_processors": "no code of Python runs between tokens; logit_bias and structured_outputs are here",
    "enable_sleep_mode": "close() gives all memory back",
    "worker_cls": _ONE_GPU,
    "enable_expert_parallel": _ONE_GPU,
    "data_parallel_backend": _ONE_GPU,
    "rope_scaling": "it is the model's; `pagoda serve` has --rope-scaling",
    "rope_theta": "it is the model's",
    "tokenizer_revision": "a name with its revision is `tokenizer` itself: Org/Name@REVISION",
    "code_revision": "no code of a model is ever run",
    "hf_token": "`pagoda pull` reads HF_TOKEN",
    "served_model_name": "there is no server here; `pagoda serve` has --served-model-name",
    "calculate_kv_scales": "scales of the cache are computed with what they scale",
}

SAMPLING_IGNORED = {
    "detokenize": "every output has its text",
    "spaces_between_special_tokens": "special tokens stand as they were written",
    "output_kind": "outputs of a stream hold all text so far",
    "skip_clone": "parameters are read when a request is made",
    "skip_reading_prefix_cache": "prompt_logprobs alone computes a whole prompt again",
    "extra_args": "there is nobody to read them",
    "flat_logprobs": "log-probabilities are dicts",
}
SAMPLING_REFUSED = {
    "best_of": "n outputs are returned; cumulative_logprob says which is likeliest",
    "use_beam_search": "outputs are sampled; n asks for several",
    "length_penalty": "there is no beam search",
    "early_stopping": "there is no beam search",
    "logits_processors": "no code of Python runs between tokens; logit_bias, bad_words and structured_outputs are here",
    "allowed_token_ids": "logit_bias weighs tokens, structured_outputs allows texts",
    "thinking_token_budget": "max_tokens bounds reasoning and answer together",
}

METHOD_IGNORED = {
    "priority": "SamplingParams has it",
    "tokenization_kwargs": "prompts may be token ids",
    "chat_template_content_format": "content is read in either form",
}
METHOD_REFUSED = {
    "lora_request": _NO_LORA,
    "chat_template": "it is an argument of LLM, the path of a file",
    "mm_processor_kwargs": _NO_IMAGES,
    "guided_options_request": "SamplingParams(structured_outputs=…) says it",
    "reasoning_effort": "chat_template_kwargs={'reasoning_effort': …} says it",
}

_ONE_VECTOR = "a model generates, and embeds by embed(); there is no head that gives classes or scores"
_NO_WORKERS = "the model is in this process, without workers"
MISSING_METHODS = {
    "beam_search": "outputs are sampled; SamplingParams(n=…, logprobs=1) gives several with their log-probabilities",
    "score": _ONE_VECTOR + ". The product of two embeddings is their cosine",
    "classify": _ONE_VECTOR,
    "reward": _ONE_VECTOR,
    "llm_engine": _NO_WORKERS,
    "engine": _NO_WORKERS,
    "collective_rpc": _NO_WORKERS,
    "apply_model": _NO_WORKERS,
    "sleep": "close() gives all memory back",
    "wake_up": "close() gives all memory back",
    "start_profile": "`pagoda bench` measures",
    "stop_profile": "`pagoda bench` measures",
    "get_metrics": "`pagoda serve` has /metrics; an output has num_cached_tokens",
    "set_tokenizer": "`tokenizer` is an argument of LLM",
    "preprocess_chat": "get_tokenizer().apply_chat_template() renders a chat",
    "enqueue": "AsyncLLM takes requests one by one",
    "from_vllm_config": "arguments are those of LLM",
    "add_lora": _NO_LORA,
    "start_weight_update": "weights are read once",
}
MISSING_TOKENIZER = {
    "chat_template": "apply_chat_template() renders it; LLM(chat_template=…) names another",
    "pad_token_id": "prompts are never padded",
    "pad_token": "prompts are never padded",
    "pad": "prompts are never padded",
    "add_tokens": "the vocabulary is the model's",
    "add_special_tokens": "the vocabulary is the model's",
    "save_pretrained": "the tokenizer is in the model's file",
    "from_pretrained": "LLM(model).get_tokenizer() opens it",
}


def missing(owner: str, name: str, reasons: dict[str, str]) -> AttributeError:
    """Returns the error of an attribute that is not here, with the reason where it is vLLM's."""
    reason = f": {reasons[name]}" if name in reasons else ""
    return AttributeError(f"'{owner}' has no attribute '{name}'{reason}")
