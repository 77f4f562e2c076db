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
};

constexpr std::string_view kVllm = "vLLM";
constexpr std::string_view kSglang = "SGLang";
constexpr std::string_view kTensorrt = "TensorRT-LLM";
constexpr std::string_view kLlama = "llama.cpp";
constexpr std::string_view kOllama = "Ollama";
constexpr std::string_view kAlways = "it is always on here";
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
constexpr std::string_view kByDefault = "it is not needed here";

// Flags that are called the same everywhere need no row. docs/guide/migrate.md has the whole table.
constexpr auto kFlags = std::to_array<ForeignFlag>({
    {"--model-path", kSglang, "--model"},
    {"-hf", kLlama, "--model"},
    {"-hfr", kLlama, "--model"},
    {"--hf-repo", kLlama, "--model"},
    {"-hff", kLlama, kFileBehindName},
    {"--hf-file", kLlama, kFileBehindName},
    {"-mu", kLlama, kNoUrl},
    {"--model-url", kLlama, kNoUrl},
    {"--tokenizer-path", kSglang, "--tokenizer"},
    {"--sampling-defaults", kSglang, "--generation-config"},
    {"--trust-remote-code", kVllm, kByDefault},  // of commands other than serve, run and chat
    {"--dtype", kVllm, kFileTypes},              // of commands other than serve
    {"--enforce-eager", kVllm, kByDefault},
    {"--mlock", kLlama, kNone},
    {"--no-mmap", kLlama, kNone},
    {"-a", kLlama, "--served-model-name"},
    {"--alias", kLlama, "--served-model-name"},
    {"--context-length", kSglang, "--max-model-len"},
    {"--max-seq-len", kTensorrt, "--max-model-len"},
    {"--ctx-size", kLlama, "--max-model-len"},
    {"--num-ctx", kOllama, "--max-model-len"},
    {"--max-running-requests", kSglang, "--max-num-seqs"},
    {"--max-batch-size", kTensorrt, "--max-num-seqs"},
    {"--parallel", kLlama, "--max-num-seqs"},
    {"--chunked-prefill-size", kSglang, "--max-num-batched-tokens"},
    {"--max-prefill-tokens", kSglang, "--max-num-batched-tokens"},
    {"--max-num-tokens", kTensorrt, "--max-num-batched-tokens"},
    {"-b", kLlama, "--max-num-batched-tokens"},
    {"--batch-size", kLlama, "--max-num-batched-tokens"},
    {"-ub", kLlama, "--max-num-batched-tokens"},
    {"--ubatch-size", kLlama, "--max-num-batched-tokens"},
    {"--num-batch", kOllama, "--max-num-batched-tokens"},
    {"--enable-chunked-prefill", kVllm, kAlways},
    {"-cb", kLlama, kAlways},
    {"--cont-batching", kLlama, kAlways},
    {"--max-queued-requests", kSglang, "--max-waiting-requests"},
    {"--scheduling-policy", kVllm, kOrder},
    {"--schedule-policy", kSglang, kOrder},
    {"--enable-priority-scheduling", kSglang, kAlways},
    {"--max-total-tokens", kSglang, "--kv-cache-memory-bytes"},
    {"--mem-fraction-static", kSglang, "--gpu-memory-utilization"},
    {"--kv-cache-free-gpu-memory-fraction", kTensorrt, "--gpu-memory-utilization"},
    {"--free-gpu-memory-fraction", kTensorrt, "--gpu-memory-utilization"},
    {"-fit", kLlama, "--gpu-memory-utilization"},
    {"--fit", kLlama, "--gpu-memory-utilization"},
    {"--page-size", kSglang, "--block-size"},
    {"--cache-type-k", kLlama, "--kv-cache-dtype"},
    {"--cache-type-v", kLlama, "--kv-cache-dtype"},
    {"--disable-radix-cache", kSglang, "--no-enable-prefix-caching"},
    {"--no-cache-prompt", kLlama, "--no-enable-prefix-caching"},
    {"--cache-prompt", kLlama, "--enable-prefix-caching"},
    {"-sps", kLlama, "--enable-prefix-caching"},
    {"--slot-prompt-similarity", kLlama, "--enable-prefix-caching"},
    {"--flash-attn", kLlama, kAlways},
    {"-fa", kLlama, kAlways},
    {"--radix-eviction-policy", kSglang, "--kv-eviction"},
    {"--kv-offloading-size", kVllm, "--kv-host-size"},
    {"--swap-space", kVllm, "--kv-host-size"},
    {"--hicache-size", kSglang, "--kv-host-size"},
    {"--hicache-ratio", kSglang, "--kv-host-size"},
    {"--enable-hierarchical-cache", kSglang, "--kv-host-size"},
    {"--cache-ram", kLlama, "--kv-host-size"},
    {"-cram", kLlama, "--kv-host-size"},
    {"--slot-save-path", kLlama, "--kv-disk"},
    {"--hicache-storage-backend", kSglang, "--kv-remote"},
    {"--enable-lmcache", kSglang, "--kv-remote"},
    {"--kv-transfer-config", kVllm, "--kv-remote"},
    {"--hicache-write-policy", kSglang, "--kv-write"},
    {"--enable-prompt-tokens-details", kVllm, kAlways},
    {"--enable-cache-report", kSglang, kAlways},
    {"--enable-deterministic-inference", kSglang, kAlways},
    {"-dev", kLlama, "--device"},
    {"--gpu-layers", kLlama, "--device"},
    {"--n-gpu-layers", kLlama, "--device"},
    {"--num-gpu", kOllama, "--device"},
    {"-ngl", kLlama, "--device"},
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
    {"--enable-metrics", kSglang, kAlways},
    {"--metrics", kLlama, kAlways},
    {"--enable-log-requests", kVllm, "--log-format"},
    {"--disable-log-requests", kVllm, "--log-format"},
    {"--log-requests", kSglang, "--log-format"},
    {"-v", kLlama, "--log-format"},
    {"--verbose", kLlama, "--log-format"},
    {"--sse-ping-interval", kLlama, "--sse-keep-alive"},
    {"--num-postprocess-workers", kTensorrt, "--threads-http"},
    {"--n-predict", kLlama, "--max-tokens"},
    {"--predict", kLlama, "--max-tokens"},
    {"--num-predict", kOllama, "--max-tokens"},
    {"--tensor-parallel-size", kVllm, kNone},
    {"--pipeline-parallel-size", kVllm, kNone},
    {"--tp-size", kSglang, kNone},
    {"--pp-size", kSglang, kNone},
    {"--tp", kSglang, kNone},
    {"--pp", kSglang, kNone},
    {"-tp", kVllm, kNone},
    {"-sm", kLlama, kNone},
    {"--split-mode", kLlama, kNone},
    {"-ts", kLlama, kNone},
    {"--tensor-split", kLlama, kNone},
    {"--disaggregation-mode", kSglang, kNone},
    {"--server-role", kTensorrt, kNone},
    {"--speculative-config", kVllm, kNone},
    {"--speculative-algorithm", kSglang, kNone},
    {"--spec-type", kLlama, kNone},
    {"-md", kLlama, kNone},
    {"--model-draft", kLlama, kNone},
    {"--enable-lora", kVllm, kNone},
    {"--lora", kLlama, kNone},
    {"--tool-parser", kTensorrt, "--tool-call-parser"},
    {"--jinja", kLlama, "chat templates are always Jinja here, and calls are always read"},
    {"--reasoning-format", kLlama, kReadReasoning},
    {"--structured-outputs-config", kVllm, kNone},
    {"--grammar-backend", kSglang, kNone},
    {"--grammar", kLlama, kNone},
    {"--json-schema", kLlama, kNone},
    {"-mm", kLlama, kNone},
    {"--mmproj", kLlama, kNone},
    {"--embedding", kLlama, kNone},
    {"--embeddings", kLlama, kNone},
    {"--rerank", kLlama, kNone},
    {"--reranking", kLlama, kNone},
    {"--quantization", kVllm, kFileTypes},  // of commands other than serve, run and chat
    {"--models-dir", kLlama, kNone},
    {"--enable-sleep-mode", kVllm, kNone},
    {"--sleep-idle-seconds", kLlama, kNone},
    {"--allow-auto-truncate", kSglang, kNone},
    {"--context-shift", kLlama, kNone},
});

// Returns the row of a flag, or nothing.
const ForeignFlag* find_row(std::string_view word) {
  std::string flag(word.substr(0, word.find('=')));
  std::replace(flag.begin(), flag.end(), '_', '-');
  const auto found = std::find_if(kFlags.begin(), kFlags.end(),
                                  [&](const ForeignFlag& row) { return row.flag == flag; });
  return found == kFlags.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::string> foreign_flag_hint(std::string_view word,
                                             std::span<const std::string> known) {
  const ForeignFlag* const found = find_row(word);
  if (found == nullptr) return std::nullopt;
  const std::string_view shown = word.substr(0, word.find('='));
  if (!found->here.starts_with("--")) {
    return fmt::format("{}'s {}: {}", found->program, shown, found->here);
  }
  if (std::find(known.begin(), known.end(), found->here) == known.end()) return std::nullopt;
  return fmt::format("{}'s {} is {} here", found->program, shown, found->here);
}

bool is_foreign_flag(std::string_view word) { return find_row(word) != nullptr; }

}  // namespace pagoda::cli
