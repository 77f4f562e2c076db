#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "app/loaded_model.h"
#include "app/random_shapes.h"
#include "base/byte_size.h"
#include "base/thread_pool.h"
#include "chat/known_forms.h"
#include "cli/access_flags.h"
#include "cli/device_flags.h"
#include "cli/field_flags.h"
#include "cli/kv_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "cli/speculation_flags.h"
#include "cli/tier_flags.h"
#include "server/api/prompt_normalising.h"
#include "terminal/version.h"

namespace pagoda::cli {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

Result<std::uint64_t> read_bytes(const char* flag, const std::string& text) {
  Result<std::uint64_t> bytes = parse_byte_size(text);
  if (bytes.ok()) return bytes;
  return Error{bytes.error().code, fmt::format("{}: {}", flag, bytes.error().message)};
}

void add_model_options(const CommandSpec& command, serve::ServeOptions& options) {
  options.model = app::default_model_path();
  add_model_option(command, options.model);
  add_revision_option(command, options.revision);
  add_tokenizer_option(command, options.tokenizer);
  add_override_options(command, options.overrides);
  add_quantization_options(command, options.quantization);
  command
      .add_option("--served-model-name", options.served_names,
                  "a name that requests may give, once or more; replies carry the first (default: "
                  "its name on Hugging Face, else its file's without .gguf; then the name typed)")
      .one_value_each();  // the word after it may be the model
  command.add_option(
      "--random-weights", options.random.shape,
      fmt::format("serve this shape with random weights, on a GPU: {}", app::random_shape_names()));
  command.add_option("--weights", options.random.type,
                     "with --random-weights: bf16, q8_0, q4_0, q4_1, q4_k or q6_k (default bf16)");
  command.add_option("--chat-template", options.chat_template,
                     "file with a chat template (default: the model's own)");
  command.add_option(
      "--tool-call-parser", options.forms.tool_parser,
      fmt::format("form of tool calls by vLLM's name (default: derived from the chat "
                  "template): {}",
                  chat::list_tool_forms()));
  command.add_option("--reasoning-parser", options.forms.reasoning_parser,
                     fmt::format("form of reasoning by vLLM's name (default: derived from the chat "
                                 "template): {}",
                                 chat::list_reasoning_forms()));
  command.add_flag("--enable-auto-tool-choice", options.auto_tool_choice,
                   "accepted: tool calls are read without a flag");
  add_generation_options(command, options.generation);
  add_trust_option(command, options.trusts_remote_code);
}

void add_network_options(const CommandSpec& command, serve::ServeOptions& options) {
  command.add_option("--host", options.host, "address to listen on (default 127.0.0.1)")
      .check([](const std::string& host) { return host.empty() ? "is empty" : ""; });
  command.add_option("--port", options.port, "port to listen on, 0 for any (default 8000)")
      .range(0, 65535);
  command
      .add_option(
          "--threads-http", options.http_threads,
          "threads for connections (default: 2; beside a GPU a quarter of the cores, 2 to 8)")
      .range(1u, 64u);
  command
      .add_option("--threads-text", options.text_threads,
                  "threads for JSON and text of long requests (default 2)")
      .range(1u, 64u);
  command
      .add_option("--max-connections", options.connections_max,
                  "connections at once; more wait to be accepted (default 4096)")
      .range(1u, 1u << 20);
  command
      .add_option("--max-connections-per-client", options.connections_per_client_max,
                  "connections of one address (IPv6: of one /64); more are refused (default 1024)")
      .range(1u, 1u << 20);
  command
      .add_option("--max-body-bytes", options.body_bytes_max,
                  "largest body of a request, e.g. 64MiB (default 32MiB)")
      .byte_size();
  command
      .add_option("--max-total-body-bytes", options.body_memory_max,
                  "memory for all request bodies being read; beyond it 503 (default 256MiB)")
      .byte_size();
  command
      .add_option(
          "--max-request-memory-bytes", options.request_memory_max,
          "estimated memory of all waiting and running requests; beyond it 503 (default 1GiB)")
      .byte_size();
  command
      .add_option("--max-header-bytes", options.header_bytes_max,
                  "largest header of a request (default 16KiB)")
      .byte_size();
  command
      .add_option("--max-pipelined-bytes", options.ahead_bytes_max,
                  "bytes of following requests read while one is answered (default 64KiB)")
      .byte_size();
  command
      .add_option("--sse-keep-alive", options.keep_alive_s,
                  "seconds after which a silent stream gets a comment (default 10)")
      .range(0.05, 3600.0);
  command
      .add_option("--request-timeout", options.request_timeout_s,
                  "seconds for a request to arrive (default 60)")
      .range(0.05, 3600.0);
  command
      .add_option("--idle-timeout", options.idle_timeout_s,
                  "seconds a connection may be idle between requests (default 75)")
      .range(0.05, 86400.0);
  command
      .add_option("--write-timeout", options.write_timeout_s,
                  "seconds for a client to read a piece of its output (default 30)")
      .range(0.05, 3600.0);
  command
      .add_option("--shutdown-timeout", options.shutdown_timeout_s,
                  "seconds for running requests to finish after SIGTERM (default 30)")
      .range(0.0, 86400.0);
}

void add_cache_options(const CommandSpec& command, serve::ServeOptions& options) {
  command
      .add_option("-c,--max-model-len", options.max_model_len,
                  "context in tokens, prompt and output; 8k is 8000, 8K is 8192 (default, and 0: "
                  "the model's)")
      .token_count(0, std::uint64_t{1} << 30);
  command.add_option("--block-size", options.block_size, "tokens in a KV block (default 16)")
      .range(1u, 4096u);
  add_kv_cache_dtype_options(command, options.kv_cache_dtype);
  add_kv_policy_option(command, options.kv_policy);
  command
      .add_parsed(
          "--kv-quality-gate",
          [&options](const std::string& word) -> std::string {
            options.kv_quality_gate = word == "off"      ? eval::GateMode::kOff
                                      : word == "refuse" ? eval::GateMode::kRefuse
                                                         : eval::GateMode::kWarn;
            return {};
          },
          "quality of a KV format below bf16: warn says what pagoda eval measured, or measures up "
          "to a minute while nothing runs; refuse measures first and does not serve below the "
          "bounds; off (default warn; given, it is for fp16 and fp32, too)")
      .among({"warn", "refuse", "off"});
  command
      .add_option("--kv-cache-memory-bytes", options.kv_cache_memory_bytes,
                  "memory of the KV cache, e.g. 4GiB (default: half of the free memory)")
      .capacity();
  add_kv_eviction_option(command, options.kv_eviction);
  command.add_flag("--kv-curve,!--no-kv-curve", options.kv_curve,
                   "estimate the hit rates of other cache sizes and policies (default on)");
  const auto add_share = [&](const char* flag, double& share, const char* description) {
    command.add_option(flag, share, description).range(0.0, 1.0);
  };
  command
      .add_option("--retain-budget", options.retain_budget,
                  "share of the KV cache that one tenant may retain, all together at most half "
                  "(default 0.25; with keys 0: \"retain\" and \"cache_control\" are refused)")
      .range(0.0, 1.0);
  command
      .add_option("--session-timeout", options.session_timeout_s,
                  "seconds after which a session (prompt_cache_key, X-Session-Id) that nobody uses "
                  "ends, and its blocks make room first (default 3600; 0: never)")
      .range(0.0, 604800.0);
  command.add_option("--normalise-prompts", options.normalise_prompts,
                     "put a fixed text where clients change the start of every prompt: claude-code "
                     "(its billing header), date (in system prompts), with commas; the model sees "
                     "it (default: none)");
  add_share(
      "--kv-quota", options.kv_quota,
      "share of the KV cache beyond which a tenant's blocks are evicted first (default 0: none)");
  add_share("--kv-quota-public", options.kv_quota_public,
            "the same for public blocks (default 0: none)");
  command.add_option("--kv-events-config", options.kv_events_config,
                     "publish KV cache events: JSON with vLLM's fields, e.g. "
                     "'{\"enable_kv_cache_events\": true, \"endpoint\": \"tcp://*:5557\", "
                     "\"replay_endpoint\": \"tcp://*:5558\"}' (default: no events)");
  command.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", options.prefix_caching,
                   "reuse the KV of common prefixes (default on)");
}

void add_scheduling_options(const CommandSpec& command, serve::ServeOptions& options) {
  add_speculation_options(command, options.speculation);
  command.add_option("-t,--threads", options.threads, "threads (default: usable cores)")
      .range(1u, 1024u);
  command
      .add_option(
          "--max-num-seqs,--max-running-requests,--max-batch-size",
          options.device.steps->sequences_max,
          "sequences that run at once (default: chosen by device: 64; 256 on a GPU of 64 GiB "
          "or more, fewer on smaller ones)")
      .range(1u, 4096u);
  command
      .add_option("--max-num-batched-tokens", options.device.steps->batched_tokens_max,
                  "tokens computed in a step, prefill and decode together (default: chosen by "
                  "device: 512; 8192 on a GPU of 64 GiB or more, fewer on smaller ones)")
      .token_count(2, 1u << 16);
  command
      .add_option(
          "--itl-target", options.device.steps->itl_target_ms,
          "milliseconds that a step in which sequences decode should take at most: prompts "
          "are computed in chunks that are predicted to end by then; 0: no target (default: "
          "50 on a GPU, 0 on a CPU)")
      .range(0.0, 60'000.0);
  command
      .add_option("--long-prefill-token-threshold", options.long_prefill_tokens,
                  "prompt tokens of one request in a step while others wait (default 0: no limit)")
      .range(0u, 1u << 16);
  command
      .add_option("--shared-step-tokens", options.device.steps->shared_step_tokens,
                  "prompt tokens computed in a step while several tenants are active (default: 32; "
                  "on a GPU an eighth of the tokens of a step)")
      .range(1u, 1u << 16);
  command
      .add_option("--max-output-tokens", options.max_output_tokens,
                  "output tokens of requests that name no limit (default: a quarter of the "
                  "context; 0: as many as fit)")
      .token_count(0, std::uint64_t{1} << 30);
  command
      .add_option("--max-waiting-requests", options.requests_queued_max,
                  "requests that wait; more get 429 (default 10000)")
      .range(1u, 1u << 24);
  command.add_option("--context-classes", options.context_classes,
                     "shares by prompt length, e.g. 4096:1,32768:0.5,max:0.25 (default: none)");
}

void add_log_options(const CommandSpec& command, serve::ServeOptions& options) {
  command.add_choice("--log-format", options.log.format,
                     {{"text", server::LogFormat::kText},
                      {"json", server::LogFormat::kJson},
                      {"none", server::LogFormat::kNone}},
                     "a line on stderr per request: text, json or none (default text)");
  command.add_flag("--log-prompts,!--no-log-prompts", options.log.prompts,
                   "log prompts, too (default off)");
}

}  // namespace

void add_serve_options(const CommandSpec& command, serve::ServeOptions& options) {
  command.group("Model");
  add_model_options(command, options);
  command.group("Network");
  add_network_options(command, options);
  command.group("Access");
  add_access_options(command, options.access);
  command.group("Device");
  add_device_options(command, options.device);
  command.group("KV cache");
  add_cache_options(command, options);
  command.group("KV tiers");
  add_tier_options(command, options.tiers);
  command.group("Scheduling");
  add_scheduling_options(command, options);
  command.group("Log");
  add_log_options(command, options);
  command.used_most({"--model", "--host", "--port", "--api-key", "--device", "--max-model-len",
                     "--kv-cache-memory-bytes", "--kv-cache-dtype", "--max-num-seqs", "--threads"});
}

Result<server::ServerOptions> server_options(const serve::ServeOptions& options) {
  ASSIGN_OR_RETURN(const std::uint64_t body_bytes,
                   read_bytes("--max-body-bytes", options.body_bytes_max));
  ASSIGN_OR_RETURN(const std::uint64_t header_bytes,
                   read_bytes("--max-header-bytes", options.header_bytes_max));
  ASSIGN_OR_RETURN(const std::uint64_t ahead_bytes,
                   read_bytes("--max-pipelined-bytes", options.ahead_bytes_max));
  ASSIGN_OR_RETURN(const std::uint64_t body_memory,
                   read_bytes("--max-total-body-bytes", options.body_memory_max));
  ASSIGN_OR_RETURN(const std::uint64_t request_memory,
                   read_bytes("--max-request-memory-bytes", options.request_memory_max));
  constexpr std::uint64_t kHeaderBytesMax = 1 << 20;
  if (header_bytes < 256 || header_bytes > kHeaderBytesMax || ahead_bytes > (16 << 20)) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("--max-header-bytes takes 256 to {}, --max-pipelined-bytes up to "
                             "16MiB; they are {} and {}",
                             kHeaderBytesMax, header_bytes, ahead_bytes)};
  }
  server::ServerOptions made;
  made.host = options.host;
  made.port = options.port;
  made.threads = options.http_threads.value_or(
      app::choose_http_threads(app::may_run_on_gpu(options.device), usable_cores()));
  made.text_threads = options.text_threads;
  made.body_memory_max = std::max(body_memory, body_bytes);
  made.request_memory_max = request_memory;
  made.connections_max = options.connections_max;
  made.version = terminal::kVersion;
  made.log = options.log;
  made.option_name = flag_of;
  made.connection.body_bytes_max = body_bytes;
  made.connection.keep_alive = milliseconds(options.keep_alive_s);
  made.connection.request_timeout = milliseconds(options.request_timeout_s);
  made.connections_per_client_max = options.connections_per_client_max;
  made.connection.header_bytes_max = static_cast<std::uint32_t>(header_bytes);
  made.connection.ahead_bytes_max = static_cast<std::uint32_t>(ahead_bytes);
  made.connection.idle_timeout = milliseconds(options.idle_timeout_s);
  made.connection.write_timeout = milliseconds(options.write_timeout_s);
  RETURN_IF_ERROR(check_access_variables(options.access));
  const auto rules = server::read_normalise_rules(options.normalise_prompts);
  if (!rules.ok()) return Error{rules.error().code, with_flags(rules.error().message)};
  RETURN_IF_ERROR(app::set_access(options.access, made));
  return made;
}

Result<engine::BackendOptions> backend_options(const serve::ServeOptions& options) {
  engine::BackendOptions made;
  made.threads = options.threads;
  made.block_tokens = options.block_size;
  made.context_tokens = options.max_model_len;
  made.prefix_caching = options.prefix_caching;
  made.kv_cache_dtype = options.kv_cache_dtype;
  made.kv_policy = options.kv_policy;
  made.speculation = options.speculation;
  made.kv_eviction = options.kv_eviction;
  made.live_curve = options.kv_curve;
  made.retain_share = options.retain_share();
  made.sessions = true;
  made.session_timeout_s = options.session_timeout_s;
  made.quota_share = options.kv_quota;
  made.quota_share_public = options.kv_quota_public;
  if (!options.kv_cache_memory_bytes.empty()) {
    ASSIGN_OR_RETURN(made.kv_bytes,
                     read_bytes("--kv-cache-memory-bytes", options.kv_cache_memory_bytes));
  }
  const auto& [sequences, tokens, shared, target] = *options.device.steps;
  if (sequences && tokens && *tokens <= *sequences) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("--max-num-batched-tokens: is {}, expected more than --max-num-seqs, "
                             "which is {}",
                             *tokens, *sequences)};
  }
  made.scheduler.long_prefill_tokens = options.long_prefill_tokens;
  if (!options.context_classes.empty()) {
    auto classes = sched::ContextClasses::parse(options.context_classes);
    if (!classes.ok()) {
      return Error{classes.error().code, "--context-classes: " + classes.error().message};
    }
    made.scheduler.context_classes = std::move(classes).value();
  }
  return made;
}

}  // namespace pagoda::cli
