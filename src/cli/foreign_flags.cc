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

// Flags that are called the same everywhere need no row. docs/guide/migrate.md has the whole table.
constexpr auto kFlags = std::to_array<ForeignFlag>({
    {"--model-path", kSglang, "--model"},
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
    {"--cont-batching", kLlama, kAlways},
    {"--max-queued-requests", kSglang, "--max-waiting-requests"},
    {"--max-total-tokens", kSglang, "--kv-cache-memory-bytes"},
    {"--mem-fraction-static", kSglang, "--gpu-memory-utilization"},
    {"--kv-cache-free-gpu-memory-fraction", kTensorrt, "--gpu-memory-utilization"},
    {"--free-gpu-memory-fraction", kTensorrt, "--gpu-memory-utilization"},
    {"--page-size", kSglang, "--block-size"},
    {"--cache-type-k", kLlama, "--kv-cache-dtype"},
    {"--cache-type-v", kLlama, "--kv-cache-dtype"},
    {"--disable-radix-cache", kSglang, "--no-enable-prefix-caching"},
    {"--no-cache-prompt", kLlama, "--no-enable-prefix-caching"},
    {"--cache-prompt", kLlama, "--enable-prefix-caching"},
    {"--radix-eviction-policy", kSglang, "--kv-eviction"},
    {"--kv-offloading-size", kVllm, "--kv-host-size"},
    {"--swap-space", kVllm, "--kv-host-size"},
    {"--hicache-size", kSglang, "--kv-host-size"},
    {"--hicache-ratio", kSglang, "--kv-host-size"},
    {"--enable-hierarchical-cache", kSglang, "--kv-host-size"},
    {"--cache-ram", kLlama, "--kv-host-size"},
    {"--hicache-storage-backend", kSglang, "--kv-remote"},
    {"--kv-transfer-config", kVllm, "--kv-remote"},
    {"--hicache-write-policy", kSglang, "--kv-write"},
    {"--enable-prompt-tokens-details", kVllm, kAlways},
    {"--enable-cache-report", kSglang, kAlways},
    {"--enable-deterministic-inference", kSglang, kAlways},
    {"-dev", kLlama, "--device"},
    {"--gpu-layers", kLlama, "--device"},
    {"--n-gpu-layers", kLlama, "--device"},
    {"--num-gpu", kOllama, "--device"},
    {"--num-thread", kOllama, "--threads"},
    {"--api-key-file", kLlama, "--api-keys"},
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
    {"--sse-ping-interval", kLlama, "--sse-keep-alive"},
    {"--n-predict", kLlama, "--max-tokens"},
    {"--predict", kLlama, "--max-tokens"},
    {"--num-predict", kOllama, "--max-tokens"},
    {"--tensor-parallel-size", kVllm, kNone},
    {"--pipeline-parallel-size", kVllm, kNone},
    {"--tp-size", kSglang, kNone},
    {"--pp-size", kSglang, kNone},
    {"--speculative-config", kVllm, kNone},
    {"--speculative-algorithm", kSglang, kNone},
    {"--enable-lora", kVllm, kNone},
    {"--lora", kLlama, kNone},
    {"--tool-call-parser", kVllm, kNone},
    {"--reasoning-parser", kVllm, kNone},
    {"--quantization", kVllm, kNone},
});

}  // namespace

std::optional<std::string> foreign_flag_hint(std::string_view word,
                                             std::span<const std::string> known) {
  std::string flag(word.substr(0, word.find('=')));
  std::replace(flag.begin(), flag.end(), '_', '-');
  const auto* const found = std::find_if(kFlags.begin(), kFlags.end(),
                                         [&](const ForeignFlag& row) { return row.flag == flag; });
  if (found == kFlags.end()) return std::nullopt;
  const std::string_view shown = word.substr(0, flag.size());
  if (!found->here.starts_with("--")) {
    return fmt::format("{}'s {}: {}", found->program, shown, found->here);
  }
  if (std::find(known.begin(), known.end(), found->here) == known.end()) return std::nullopt;
  return fmt::format("{}'s {} is {} here", found->program, shown, found->here);
}

}  // namespace pagoda::cli
