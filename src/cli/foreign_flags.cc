#include "cli/foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pagoda::cli {
namespace {

struct ForeignFlag {
  std::string_view flag;     // with dashes for underscores
  std::string_view program;  // whose it is
  std::string_view here;     // our flag, or words where there is none
  // Behind our flag: a value, a unit, what is different. "N}" holds the number that was typed.
  std::string_view more = {};
};

// A flag that asks for what is here anyway, or for what has no meaning here: the command does the
// same without it.
struct IdleFlag {
  std::string_view flag;
  std::string_view program;
  std::string_view why;
  std::string_view values = {};  // that it may have: "on|off", or "N" for any; empty: none
  bool needs_value = false;      // with another value, or none, it asks for something
};

constexpr std::string_view kVllm = "vLLM";
constexpr std::string_view kSglang = "SGLang";
constexpr std::string_view kTensorrt = "TensorRT-LLM";
constexpr std::string_view kLlama = "llama.cpp";
constexpr std::string_view kOllama = "Ollama";
constexpr std::string_view kOursPlan = "pagoda plan";
constexpr std::string_view kOursSize = "pagoda size";
constexpr std::string_view kOursChat = "pagoda chat";
constexpr std::string_view kAlways = "always on";
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
constexpr std::string_view kOneDevice = "a server computes on one GPU, or on its CPUs";
constexpr std::string_view kOneKvMemory = "KV is in the memory of the device that computes";
constexpr std::string_view kNoPieces =
    "a prompt shares blocks from its beginning on; pieces behind a change are computed again";
constexpr std::string_view kAnyPrefix = "every prompt finds its prefix, whoever computed it";
constexpr std::string_view kNoImages = "images, audio and video are not supported here";
constexpr std::string_view kOneMatcher = "grammars have one matcher here";
constexpr std::string_view kTierFlags = "tiers are --kv-host-size, --kv-disk and --kv-remote here";
constexpr std::string_view kRequestSays = "every request says it for itself here";
constexpr std::string_view kSeedOfRequest = "a request says it for itself, by its field seed";
constexpr std::string_view kOneTask = "a server generates, and embeds at /v1/embeddings";
constexpr std::string_view kFoundByItself =
    "a model is read as the GGUF file or the folder that it is";
constexpr std::string_view kOneTokenizer = "there is one tokenizer, in one mode";
constexpr std::string_view kNothingToCompile = "there is nothing to compile";
constexpr std::string_view kPoolingOfRequest = "a request says it: \"pooling\" is last or mean";
constexpr std::string_view kNoSystem =
    "a system message is part of a chat: pagoda chat has it, and so have messages of a request";
constexpr std::string_view kVerbose =
    "there is a line per request, and --log-prompts adds their text";
constexpr std::string_view kDraftLengths =
    "drafts are as long as measured times pay for here, at most --spec-draft-n-max";
constexpr std::string_view kNoLookupFile =
    "drafts are looked up in prompts and outputs that are in the cache, and in no file";
constexpr std::string_view kSwitch = "on|off|auto|0|1|true|false";

// Flags that are called the same everywhere need no row. Of several rows of a flag the first that
// names a flag of the command is meant, or that has words. docs/guide/migrate.md has the whole
// table.
constexpr auto kFlags = std::to_array<ForeignFlag>({
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
    {"-lcs", kLlama, kNoLookupFile},
    {"--lookup-cache-static", kLlama, kNoLookupFile},
    {"-lcd", kLlama, kNoLookupFile},
    {"--lookup-cache-dynamic", kLlama, kNoLookupFile},
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
});

// Taken by serve, run and chat, so that scripts go on working; what would change an answer, its
// speed or who may read it is in the table above.
constexpr auto kIdleFlags = std::to_array<IdleFlag>({
    {"--jinja", kLlama, "chat templates are always Jinja"},
    {"-fa", kLlama, "attention is always fused", kSwitch},
    {"--flash-attn", kLlama, "attention is always fused", kSwitch},
    {"-cb", kLlama, kAlways},
    {"--cont-batching", kLlama, kAlways},
    {"--cache-prompt", kLlama, "on unless --no-enable-prefix-caching is given"},
    {"--metrics", kLlama, kAlways},
    {"--embedding", kLlama, "/v1/embeddings is always there"},
    {"--embeddings", kLlama, "/v1/embeddings is always there"},
    {"--no-context-shift", kLlama, "a context is never shifted"},
    {"--no-mmap", kLlama, "a model's file is always mapped"},
    {"--mmap", kLlama, kAlways},
    {"--numa", kLlama, "threads are not bound to nodes", "distribute|isolate|numactl"},
    {"--no-warmup", kLlama, "there is no empty run"},
    {"--warmup", kLlama, "there is no empty run"},
    {"--webui", kLlama, "the page is always at /"},
    {"--enforce-eager", kVllm, "there is nothing to compile or capture ahead"},
    {"--max-seq-len-to-capture", kVllm, "there is nothing to capture ahead", "N"},
    {"--enable-chunked-prefill", kVllm, kAlways},
    {"--enable-prompt-tokens-details", kVllm, kAlways},
    {"--enable-log-requests", kVllm, "there is a line per request unless --log-format is none"},
    {"--disable-log-stats", kVllm, "there are no lines of statistics; /metrics has them"},
    {"--trust-remote-code", kVllm, "no code of a model is ever run"},
    {"--async-scheduling", kVllm, "a GPU is always given the next step ahead"},
    {"--uvicorn-log-level", kVllm, "there is no other server behind this one", "N"},
    {"--attention-backend", kVllm, "there is one", "N"},
    {"--compilation-config", kVllm, kNothingToCompile, "N"},
    {"--optimization-level", kVllm, kNothingToCompile, "N"},
    {"-O", kVllm, kNothingToCompile, "0|1|2|3"},
    {"--seed", kVllm, kSeedOfRequest, "N", true},
    {"--task", kVllm, kOneTask, "auto|generate|embed|embedding", true},
    {"--runner", kVllm, kOneTask, "auto|generate", true},
    {"--load-format", kVllm, kFoundByItself, "auto|safetensors|gguf", true},
    {"--tokenizer-mode", kVllm, kOneTokenizer, "auto|hf|slow|fast", true},
    {"--mlock", kLlama, "a model's file is mapped, and not locked in memory"},
    {"--no-slots", kLlama, "there is no /slots; /v1/loads and /cache/map show what runs"},
    {"--guided-decoding-backend", kVllm, kOneMatcher, "N"},
    {"--tensor-parallel-size", kVllm, kOneDevice, "1", true},
    {"--pipeline-parallel-size", kVllm, kOneDevice, "1", true},
    {"--data-parallel-size", kVllm, kOneDevice, "1", true},
    {"--dp-size", kSglang, kOneDevice, "1", true},
    {"--dp", kSglang, kOneDevice, "1", true},
    {"-tp", kVllm, kOneDevice, "1", true},
    {"-pp", kVllm, kOneDevice, "1", true},
    {"-dp", kVllm, kOneDevice, "1", true},
    {"--tp-size", kSglang, kOneDevice, "1", true},
    {"--pp-size", kSglang, kOneDevice, "1", true},
    {"--tp", kSglang, kOneDevice, "1", true},
    {"--swap-space", kVllm, "there is no host tier without --kv-host-size", "0", true},
    {"-kvu", kLlama, "all sequences share one KV memory"},
    {"--kv-unified", kLlama, "all sequences share one KV memory"},
    {"--swa-full", kLlama, "what a window no longer shows is never asked for"},
    {"--defrag-thold", kLlama, "pages are not moved", "N"},
    {"--log-requests", kSglang, "there is a line per request unless --log-format is none"},
    {"--enable-priority-scheduling", kSglang, kAlways},
    {"--enable-cache-report", kSglang, kAlways},
    {"--enable-metrics", kSglang, kAlways},
    {"--enable-deterministic-inference", kSglang, kAlways},
});

constexpr std::string_view kYes = "true|True|on|1";
constexpr std::string_view kNo = "false|False|off|0";

// A level stands right behind vLLM's -O: "-O3".
bool has_glued_level(std::string_view word) {
  return word.size() == 3 && word.starts_with("-O") && word[2] >= '0' && word[2] <= '3';
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Returns the name of a flag as tables write it.
std::string plain_name(std::string_view word) {
  if (has_glued_level(word)) return std::string(word.substr(0, 2));
  std::string flag(word.substr(0, word.find('=')));
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

const IdleFlag* find_idle(std::string_view word) {
  const std::string name = plain_name(word);
  const auto found = std::find_if(kIdleFlags.begin(), kIdleFlags.end(),
                                  [&](const IdleFlag& row) { return row.flag == name; });
  return found == kIdleFlags.end() ? nullptr : &*found;
}

bool has(std::span<const std::string> known, std::string_view flag) {
  return std::find(known.begin(), known.end(), flag) != known.end();
}

// Is `value` one of "on|off"?
bool is_among(std::string_view values, std::string_view value) {
  if (values == "N") return !value.starts_with("--");
  while (!values.empty()) {
    const std::size_t end = std::min(values.find('|'), values.size());
    if (values.substr(0, end) == value) return true;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return false;
}

// "{\"temperature\": N}" with the number that was typed; other values are never shown.
std::string with_number(std::string_view more, std::string_view value) {
  std::string text(more);
  const std::size_t at = text.find("N}");
  if (at != std::string::npos && is_number(value)) text.replace(at, 1, value);
  return text;
}

}  // namespace

std::optional<std::string> foreign_flag_hint(std::string_view word,
                                             std::span<const std::string> known,
                                             std::string_view next) {
  const std::string_view shown = word.substr(0, word.find('='));
  const std::string_view value = shown.size() < word.size() ? word.substr(shown.size() + 1) : next;
  const std::string name = plain_name(word);
  for (const ForeignFlag& row : kFlags) {
    if (row.flag != name) continue;
    if (!row.here.starts_with("--")) {
      return fmt::format("{}'s {}: {}", row.program, shown, row.here);
    }
    if (has(known, row.here)) {
      const std::string more = with_number(row.more, value);
      return fmt::format("{}'s {} is {}{}{}", row.program, shown, row.here,
                         more.starts_with(' ') ? more : " here",
                         more.starts_with(' ') ? " here" : more);
    }
  }
  if (const IdleFlag* const idle = find_idle(word)) {
    const bool is_refused =
        idle->values.empty() && shown.size() < word.size() && is_among(kNo, value);
    if (is_refused) {
      return fmt::format("{}'s {} is not possible here: {}", idle->program, word, idle->why);
    }
    return fmt::format("{}'s {} does nothing here: {}", idle->program, shown, idle->why);
  }
  constexpr std::string_view kNegation = "--no-";
  if (!name.starts_with(kNegation)) return std::nullopt;
  const IdleFlag* const asked = find_idle("--" + name.substr(kNegation.size()));
  if (asked == nullptr) return std::nullopt;
  return fmt::format("{}'s {} is not possible here: {}", asked->program, shown, asked->why);
}

std::optional<TakenFlag> take_idle_flag(std::string_view word, std::string_view next,
                                        std::span<const std::string> known) {
  const IdleFlag* const idle = find_idle(word);
  if (idle == nullptr || has(known, plain_name(word))) return std::nullopt;
  const std::string_view shown = word.substr(0, word.find('='));
  const bool is_joined = shown.size() < word.size();
  if (has_glued_level(word)) next = {};
  const std::string_view value = is_joined ? word.substr(shown.size() + 1) : next;
  const bool has_value =
      !value.empty() && is_among(idle->values.empty() ? kYes : idle->values, value);
  if (idle->needs_value && !has_value) return std::nullopt;
  // A thing that is always so cannot be switched off.
  if (idle->values.empty() && (is_joined ? !has_value : is_among(kNo, value))) return std::nullopt;
  return TakenFlag{fmt::format("{}'s {} does nothing here: {}", idle->program, shown, idle->why),
                   has_value && !is_joined ? std::size_t{2} : std::size_t{1}};
}

bool is_foreign_flag(std::string_view word) {
  const std::string name = plain_name(word);
  return find_idle(word) != nullptr ||
         std::any_of(kFlags.begin(), kFlags.end(),
                     [&](const ForeignFlag& row) { return row.flag == name; });
}

}  // namespace pagoda::cli
