#include <array>

#include "cli/foreign_flag_rows.h"

namespace pagoda::cli {
namespace {

constexpr std::string_view kMlc = "MLC LLM";
constexpr std::string_view kOllama = "Ollama";
constexpr std::string_view kOursPlan = "pagoda plan";
constexpr std::string_view kOursSize = "pagoda size";
constexpr std::string_view kOursChat = "pagoda chat";
constexpr std::string_view kNone = "it is not supported here";
constexpr std::string_view kNoUrl =
    "a model is a file, a folder or a name here; pagoda pull downloads by name";
constexpr std::string_view kFileBehindName =
    "the file stands behind the model's name: Org/Name:FILE.gguf";
constexpr std::string_view kOrder =
    "the queue's order is fixed: priority, then tenants by weight, then arrival";
constexpr std::string_view kFileTypes = "weights have the types of their file here";
constexpr std::string_view kReadReasoning =
    "reasoning is always in reasoning_content here; --reasoning-parser names another form";
constexpr std::string_view kTruncation = "requests say what goes here, by their field truncation";
constexpr std::string_view kUnit = ", in bytes or with a unit: 8GiB";
constexpr std::string_view kLayers = ": all layers are on the GPU, or none";
constexpr std::string_view kPullFirst = ": \"pagoda pull\" downloads the model first";
constexpr std::string_view kOneKvMemory = "KV is in the memory of the device that computes";
constexpr std::string_view kNoPieces =
    "a prompt shares blocks from its beginning on; pieces behind a change are computed again";
constexpr std::string_view kAnyPrefix = "every prompt finds its prefix, whoever computed it";
constexpr std::string_view kNoImages = "images, audio and video are not supported here";
constexpr std::string_view kTierFlags = "tiers are --kv-host-size, --kv-disk and --kv-remote here";
constexpr std::string_view kRequestSays = "every request says it for itself here";
constexpr std::string_view kPoolingOfRequest = "a request says it: \"pooling\" is last or mean";
constexpr std::string_view kNoSystem =
    "a system message is part of a chat: pagoda chat has it, and so have messages of a request";
constexpr std::string_view kVerbose =
    "there is a line per request, and --log-prompts adds their text";
constexpr std::string_view kDraftLengths =
    "drafts are as long as measured times pay for here, at most --spec-draft-n-max";
constexpr std::string_view kNoLookupFile =
    "drafts are looked up in prompts and outputs that are in the cache, and in no file";
constexpr std::string_view kNoCode = "no code of others is loaded into the program";
constexpr std::string_view kOneMachine =
    "the processes of --tensor-parallel-size are on this machine";
constexpr std::string_view kWindowsApart =
    "layers with a window keep what the window shows, in blocks of their own";
constexpr std::string_view kNoStates = "models with a recurrent state are not supported here";
constexpr std::string_view kNoTraces =
    "there are no traces; /metrics and a line per request have the times";
constexpr std::string_view kPrefillShares =
    "prompts share the tokens of a step: --context-classes, --long-prefill-token-threshold";
constexpr std::string_view kRoomFirst =
    "a request starts when there is room for all tokens that it has";
constexpr std::string_view kOwnFlags =
    "its fields are flags here: --kv-cache-dtype, --block-size, --kv-cache-memory-bytes, …";
constexpr std::string_view kSamplers =
    "there are temperature, top_k, top_p, min_p and three penalties, in this order";
constexpr std::string_view kPenalties = "requests of a server have a field for it";
constexpr std::string_view kPlaces = "threads are not bound; taskset binds a process";
constexpr std::string_view kEscapes =
    "a prompt is taken as it is; the shell writes line ends: $'one\\ntwo'";
constexpr std::string_view kStops = "a request of a server says it, by its field stop";
constexpr std::string_view kChatCommand = "\"pagoda chat\" talks";

constexpr auto kForeignFlagRows = std::to_array<ForeignFlag>({
    {"--model-path", kSglang, "--model"},
    {"-hf", kLlama, "--model", kPullFirst},
    {"-hfr", kLlama, "--model", kPullFirst},
    {"--hf-repo", kLlama, "--model", kPullFirst},
    {"-hff", kLlama, kFileBehindName},
    {"--hf-file", kLlama, kFileBehindName},
    {"-mu", kLlama, kNoUrl},
    {"--model-url", kLlama, kNoUrl},
    {"--tokenizer-path", kSglang, "--tokenizer"},
    {"--sampling-defaults", kSglang, "--generation-config"},
    {"-a", kLlama, "--served-model-name"},
    {"--alias", kLlama, "--served-model-name"},
    {"--context-length", kSglang, "--max-model-len"},
    {"--max-seq-len", kTensorrt, "--max-model-len"},
    {"--ctx-size", kLlama, "--max-model-len"},
    {"--num-ctx", kOllama, "--max-model-len"},
    {"--parallel", kLlama, "--max-num-seqs"},
    {"--chunked-prefill-size", kSglang, "--max-num-batched-tokens"},
    {"--max-prefill-tokens", kSglang, "--max-num-batched-tokens"},
    {"--max-num-tokens", kTensorrt, "--max-num-batched-tokens"},
    {"-b", kLlama, "--max-num-batched-tokens"},
    {"--batch-size", kLlama, "--max-num-batched-tokens"},
    {"-ub", kLlama, "--max-num-batched-tokens"},
    {"--ubatch-size", kLlama, "--max-num-batched-tokens"},
    {"--num-batch", kOllama, "--max-num-batched-tokens"},
    {"--max-queued-requests", kSglang, "--max-waiting-requests"},
    {"--scheduling-policy", kVllm, kOrder},
    {"--schedule-policy", kSglang, kOrder},
    {"--max-total-tokens", kSglang, "--kv-cache-memory-bytes", kUnit},
    {"--mem-fraction-static", kSglang, "--gpu-memory-utilization"},
    {"--kv-cache-free-gpu-memory-fraction", kTensorrt, "--gpu-memory-utilization"},
    {"--free-gpu-memory-fraction", kTensorrt, "--gpu-memory-utilization"},
    {"-fit", kLlama, "--gpu-memory-utilization"},
    {"--fit", kLlama, "--gpu-memory-utilization"},
    {"--page-size", kSglang, "--block-size"},
    {"--disable-radix-cache", kSglang, "--no-enable-prefix-caching"},
    {"--no-cache-prompt", kLlama, "--no-enable-prefix-caching"},
    {"-sps", kLlama, kAnyPrefix},
    {"--slot-prompt-similarity", kLlama, kAnyPrefix},
    {"--cache-reuse", kLlama, kNoPieces},
    {"--radix-eviction-policy", kSglang, "--kv-eviction"},
    {"--swap-space", kVllm, "--kv-host-size", kUnit},
    {"--hicache-size", kSglang, "--kv-host-size", kUnit},
    {"--hicache-ratio", kSglang, "--kv-host-size"},
    {"--enable-hierarchical-cache", kSglang, "--kv-host-size"},
    {"--cache-ram", kLlama, "--kv-host-size", kUnit},
    {"-cram", kLlama, "--kv-host-size", kUnit},
    {"--slot-save-path", kLlama, "--kv-disk"},
    {"--hicache-storage-backend", kSglang, "--kv-remote"},
    {"--enable-lmcache", kSglang, "--kv-remote"},
    {"--disaggregation-bootstrap-port", kSglang, "--kv-peer-listen"},
    {"--kv-transfer-config", kVllm, kTierFlags},
    {"--hicache-write-policy", kSglang, "--kv-write"},
    {"-dev", kLlama, "--device"},
    {"--gpu-layers", kLlama, "--device", kLayers},
    {"--n-gpu-layers", kLlama, "--device", kLayers},
    {"--num-gpu", kOllama, "--device", kLayers},
    {"-ngl", kLlama, "--device", kLayers},
    {"--num-thread", kOllama, "--threads"},
    {"-tb", kLlama, "--threads"},
    {"--threads-batch", kLlama, "--threads"},
    {"--api-key-file", kLlama, "--api-keys"},
    {"--admin-api-key", kSglang, "--api-keys"},
    {"--ssl-cert-file", kLlama, "--ssl-certfile"},
    {"--ssl-key-file", kLlama, "--ssl-keyfile"},
    {"--allowed-origins", kVllm, "--cors-origin"},
    {"--cors-origins", kLlama, "--cors-origin"},
    {"--chat-template-file", kLlama, "--chat-template"},
    {"--disable-log-requests", kVllm, "--log-format", " none"},
    {"--no-enable-log-requests", kVllm, "--log-format", " none"},
    {"--log-disable", kLlama, "--log-format", " none"},
    {"-v", kLlama, kVerbose},
    {"--verbose", kLlama, kVerbose},
    {"--sse-ping-interval", kLlama, "--sse-keep-alive"},
    {"--num-postprocess-workers", kTensorrt, "--threads-http"},
    {"--n-predict", kLlama, "--max-tokens"},
    {"--predict", kLlama, "--max-tokens"},
    {"--num-predict", kOllama, "--max-tokens"},
    {"--n-predict", kLlama, "--max-output-tokens"},
    {"--predict", kLlama, "--max-output-tokens"},
    {"--num-predict", kOllama, "--max-output-tokens"},
    {"-n", kLlama, "--max-output-tokens"},
    {"--seed", kVllm, kRequestSays},
    {"--temp", kLlama, "--override-generation-config", " '{\"temperature\": N}'"},
    {"--temperature", kLlama, "--override-generation-config", " '{\"temperature\": N}'"},
    {"--top-k", kLlama, "--override-generation-config", " '{\"top_k\": N}'"},
    {"--top-p", kLlama, "--override-generation-config", " '{\"top_p\": N}'"},
    {"--min-p", kLlama, "--override-generation-config", " '{\"min_p\": N}'"},
    {"--repeat-penalty", kLlama, "--override-generation-config", " '{\"repetition_penalty\": N}'"},
    {"--repeat-last-n", kLlama, "a repetition penalty sees the whole sequence here"},
    {"--rope-freq-base", kLlama, "it is the model's; --hf-overrides changes a folder's rope_theta"},
    {"--cpu-offload-gb", kVllm, "weights are in one memory here, and KV has --kv-host-size"},
    {"--root-path", kVllm, kNone},
    {"--download-dir", kVllm,
     "names are looked up where PAGODA_MODELS says, and in the cache of Hugging Face"},
    {"--data-parallel-size", kVllm, kOneDevice},
    {"-dp", kVllm, kOneDevice},
    {"--dp-size", kSglang, kOneDevice},
    {"--dp", kSglang, kOneDevice},
    {"--load-format", kVllm, kFoundByItself},
    {"--tokenizer-mode", kVllm, kOneTokenizer},
    {"--pooling", kLlama, kPoolingOfRequest},
    {"--base-url", kVllm, "--url"},
    {"--num-prompts", kVllm, "--requests"},
    {"--request-rate", kVllm, "--rate"},
    {"--max-concurrency", kVllm, "--concurrency"},
    {"--dataset-name", kVllm, "--workload"},
    {"--random-input-len", kVllm, "--input-tokens"},
    {"--random-output-len", kVllm, "--output-tokens"},
    {"-sys", kLlama, "--system"},
    {"-sys", kLlama, kNoSystem},
    {"--system-prompt", kLlama, "--system"},
    {"--system-prompt", kLlama, kNoSystem},
    {"--system", kOursChat, kNoSystem},
    {"--context", kOursPlan, "--max-model-len"},
    {"--requests", kOursPlan, "--max-num-seqs"},
    {"--kv", kOursPlan, "--kv-cache-dtype"},
    {"--sequence-length", kOursSize, "--max-model-len"},
    {"--dtype", kVllm, kFileTypes},  // of commands other than serve, run, chat and eval
    {"--tensor-parallel-size", kVllm, kOneDevice},
    {"--pipeline-parallel-size", kVllm, kOneDevice},
    {"--tp-size", kSglang, "--tensor-parallel-size"},
    {"--pp-size", kSglang, kOneDevice},
    {"--tp", kSglang, "--tensor-parallel-size"},
    {"--pp", kSglang, kOneDevice},
    {"-tp", kVllm, kOneDevice},
    {"-pp", kVllm, kOneDevice},
    {"-mg", kLlama, kOneDevice},
    {"--main-gpu", kLlama, kOneDevice},
    {"-sm", kLlama, kOneDevice},
    {"--split-mode", kLlama, kOneDevice},
    {"-ts", kLlama, kOneDevice},
    {"--tensor-split", kLlama, kOneDevice},
    {"--server-role", kTensorrt, kNone},
    {"--speculative-algorithm", kSglang, "--speculative-config", " '{\"method\": \"ngram\"}'"},
    {"--speculative-num-draft-tokens", kSglang, "--spec-draft-n-max"},
    {"--num-speculative-tokens", kVllm, "--spec-draft-n-max"},
    {"--draft", kLlama, "--spec-draft-n-max"},
    {"--draft-n", kLlama, "--spec-draft-n-max"},
    {"--spec-default", kLlama, "--spec-type", " ngram-mod"},
    {"--spec-draft-n-min", kLlama, kDraftLengths},
    {"--spec-draft-p-min", kLlama, kDraftLengths},
    {"--spec-ngram-simple-size-n", kLlama, kDraftLengths},
    {"--spec-ngram-simple-size-m", kLlama, kDraftLengths},
    {"--spec-ngram-mod-n-match", kLlama, kDraftLengths},
    {"--spec-ngram-mod-n-min", kLlama, kDraftLengths},
    {"--spec-ngram-mod-n-max", kLlama, kDraftLengths},
    {"--enable-lora", kVllm, kNone},
    {"--lora", kLlama, kNone},
    {"-hfd", kLlama, "--model-draft", kPullFirst},
    {"--hf-repo-draft", kLlama, "--model-draft", kPullFirst},
    {"-hfv", kLlama, kNone},
    {"-hft", kLlama, "pagoda pull reads HF_TOKEN"},
    {"--hf-token", kVllm, "pagoda pull reads HF_TOKEN"},
    {"-td", kLlama, "--threads"},
    {"--threads-draft", kLlama, "--threads"},
    {"-tbd", kLlama, "--threads"},
    {"-ctkd", kLlama, "a draft model keeps KV in its model's format, where its heads allow that"},
    {"-ctvd", kLlama, "a draft model keeps KV in its model's format, where its heads allow that"},
    {"-cd", kLlama, "a draft model has its model's context"},
    {"-ngld", kLlama, "a draft model computes on its model's device"},
    {"-devd", kLlama, "a draft model computes on its model's device"},
    {"--draft-min", kLlama, kDraftLengths},
    {"--draft-p-min", kLlama, kDraftLengths},
    {"-to", kLlama, "a request has no time limit here; a client that leaves ends it"},
    {"--timeout", kLlama, "a request has no time limit here; a client that leaves ends it"},
    {"-cmoe", kLlama, kOneDevice},
    {"--cpu-moe", kLlama, kOneDevice},
    {"-ncmoe", kLlama, kOneDevice},
    {"--n-cpu-moe", kLlama, kOneDevice},
    {"-ot", kLlama, kOneDevice},
    {"--override-tensor", kLlama, kOneDevice},
    {"-nkvo", kLlama, kOneKvMemory},
    {"--no-kv-offload", kLlama, kOneKvMemory},
    {"-lv", kLlama, kVerbose},
    {"--log-verbosity", kLlama, kVerbose},
    {"-s", kLlama, kRequestSays},
    {"--keep", kLlama, kTruncation},
    {"--reasoning-budget", kLlama, "requests say how much a model thinks: reasoning_effort"},
    {"--yarn-orig-ctx", kLlama, "--rope-scaling"},
    {"--rope-scale", kLlama, "--rope-scaling"},
    {"--slots", kLlama, "/cache/map and /v1/loads show what runs"},
    {"--props", kLlama, kNone},
    {"--no-webui", kLlama, "the page is always at /"},
    {"--prio", kLlama, "nice sets a process's priority"},
    {"--max-logprobs", kVllm, "a request may ask for 20 log-probabilities a token"},
    {"--limit-mm-per-prompt", kVllm, kNoImages},
    {"--config", kVllm, "every flag has an environment variable, and flags are few"},
    {"--no-enable-chunked-prefill", kVllm, "prefill is always chunked"},
    {"--task", kVllm, kOneTask},
    {"--runner", kVllm, kOneTask},
    {"-q", kVllm, "--quantization"},
    {"--tool-parser", kTensorrt, "--tool-call-parser"},
    {"--reasoning-format", kLlama, kReadReasoning},
    {"--structured-outputs-config", kVllm, kOneMatcher},
    {"--grammar-backend", kSglang, kOneMatcher},
    {"--grammar", kLlama, kNone},
    {"--json-schema", kLlama, kNone},
    {"-mm", kLlama, kNoImages},
    {"--mmproj", kLlama, kNoImages},
    {"--rerank", kLlama, kNone},
    {"--reranking", kLlama, kNone},
    {"--quantization", kVllm, kFileTypes},  // of commands other than serve, run and chat
    {"--models-dir", kLlama, kNone},
    {"--enable-sleep-mode", kVllm, kNone},
    {"--sleep-idle-seconds", kLlama, kNone},
    {"--allow-auto-truncate", kSglang, kTruncation},
    {"--context-shift", kLlama, "answers go on past the context by --kv-policy streaming:4+W"},
    {"--tokenizer-revision", kVllm, "--revision"},
    {"--code-revision", kVllm, kNoCode},
    {"--middleware", kVllm, kNoCode},
    {"--logits-processors", kVllm, kNoCode},
    {"--worker-cls", kVllm, kNoCode},
    {"--distributed-executor-backend", kVllm, kOneMachine},
    {"--nnodes", kSglang, kOneMachine},
    {"--node-rank", kSglang, kOneMachine},
    {"--dist-init-addr", kSglang, kOneMachine},
    {"--enable-expert-parallel", kVllm, kOneDevice},
    {"--ep-size", kSglang, kOneDevice},
    {"--ep", kSglang, kOneDevice},
    {"--enable-dp-attention", kSglang, kOneDevice},
    {"--moe-dense-tp-size", kSglang, kOneDevice},
    {"--max-lora-rank", kVllm, kNone},
    {"--max-loras", kVllm, kNone},
    {"--max-cpu-loras", kVllm, kNone},
    {"--lora-modules", kVllm, kNone},
    {"--lora-paths", kSglang, kNone},
    {"--enable-prompt-embeds", kVllm, "a prompt is text or token ids here"},
    {"--response-role", kVllm, "the role of an answer is assistant"},
    {"--ssl-ca-certs", kVllm, "clients are known by their keys: --api-keys"},
    {"--return-tokens-as-token-ids", kVllm, "a request asks for ids by its field return_token_ids"},
    {"--max-log-len", kVllm, "prompts are in the log by --log-prompts alone"},
    {"--disable-hybrid-kv-cache-manager", kVllm, kWindowsApart},
    {"--disable-sliding-window", kVllm, kWindowsApart},
    {"--kv-sharing-fast-prefill", kVllm, kNone},
    {"--mamba-cache-dtype", kVllm, kNoStates},
    {"--mamba-ssm-cache-dtype", kVllm, kNoStates},
    {"--num-lookahead-slots", kVllm, kDraftLengths},
    {"--override-pooler-config", kVllm, kPoolingOfRequest},
    {"--kv-offloading-backend", kVllm, kTierFlags},
    {"--otlp-traces-endpoint", kVllm, kNoTraces},
    {"--collect-detailed-traces", kVllm, kNoTraces},
    {"--tokenizer-pool-size", kVllm, "--threads-text"},
    {"--tokenizer-worker-num", kSglang, "--threads-text"},
    {"--rope-theta", kVllm, "it is the model's; --hf-overrides changes a folder's rope_theta"},
    {"--json-model-override-args", kSglang, "--hf-overrides"},
    {"--max-num-partial-prefills", kVllm, kPrefillShares},
    {"--max-long-partial-prefills", kVllm, kPrefillShares},
    {"--schedule-conservativeness", kSglang, kRoomFirst},
    {"--stream-interval", kSglang, "a stream sends what each step gave"},
    {"--skip-tokenizer-init", kSglang, "/v1/completions takes token ids beside texts"},
    {"--watchdog-timeout", kSglang, "a lost device is told by /health and ends requests"},
    {"--crash-dump-folder", kSglang, kNone},
    {"--log-level", kSglang, kVerbose},
    {"--max-input-len", kTensorrt, "--max-model-len"},
    {"--max-beam-width", kTensorrt,
     "there is no beam search; a request's field n has several answers"},
    {"--tokens-per-block", kTensorrt, "--block-size"},
    {"--kv-cache-config", kTensorrt, kOwnFlags},
    {"--extra-llm-api-options", kTensorrt, kOwnFlags},
    {"--kv-cache-quantization", kMlc, "--kv-cache-dtype"},
    {"-gan", kLlama, "--rope-scaling"},
    {"-gaw", kLlama, "--rope-scaling"},
    {"--grp-attn-n", kLlama, "--rope-scaling"},
    {"--grp-attn-w", kLlama, "--rope-scaling"},
    {"--ignore-eos", kLlama, "a request says it for itself, by its field ignore_eos"},
    {"--samplers", kLlama, kSamplers},
    {"--mirostat", kLlama, kSamplers},
    {"--dry-multiplier", kLlama, kSamplers},
    {"--xtc-probability", kLlama, kSamplers},
    {"--typical", kLlama, kSamplers},
    {"--dynatemp-range", kLlama, kSamplers},
    {"--presence-penalty", kLlama, kPenalties},
    {"--frequency-penalty", kLlama, kPenalties},
    {"-C", kLlama, kPlaces},
    {"--cpu-mask", kLlama, kPlaces},
    {"--cpu-range", kLlama, kPlaces},
    {"--cpu-strict", kLlama, kPlaces},
    {"-lcs", kLlama, kNoLookupFile},
    {"-lcd", kLlama, kNoLookupFile},
    {"--lookup-cache-static", kLlama, kNoLookupFile},
    {"--lookup-cache-dynamic", kLlama, kNoLookupFile},
    {"-e", kLlama, kEscapes},
    {"--escape", kLlama, kEscapes},
    {"-r", kLlama, kStops},
    {"--reverse-prompt", kLlama, kStops},
    {"-i", kLlama, kChatCommand},
    {"--interactive", kLlama, kChatCommand},
    {"--interactive-first", kLlama, kChatCommand},
    {"-cnv", kLlama, kChatCommand},
    {"--conversation", kLlama, kChatCommand},
    {"--in-prefix", kLlama, "the chat template writes what stands around a message"},
    {"--in-suffix", kLlama, "the chat template writes what stands around a message"},
});

}  // namespace

std::span<const ForeignFlag> foreign_flag_rows() { return kForeignFlagRows; }

}  // namespace pagoda::cli
