#include "cli/foreign_variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "cli/foreign_flags.h"
#include "cli/options.h"
#include "gguf/printable.h"

namespace pagoda::cli {
namespace {

constexpr std::size_t kShownBytesMax = 60;
constexpr std::string_view kLlamaPrefix = "LLAMA_ARG_";

// A variable that is read. docs/guide/migrate.md has the list.
struct VariableRow {
  std::string_view name;
  std::string_view flag;
  std::array<std::string_view, 3> above = {};  // flags besides that say as much: they stand above
  std::string_view unit = {};                  // that a bare number has there
  bool zero_is_default = false;
  bool is_key = false;
};

constexpr auto kRead = std::to_array<VariableRow>({
    {.name = "OLLAMA_CONTEXT_LENGTH", .flag = "--max-model-len", .zero_is_default = true},
    {.name = "OLLAMA_NUM_PARALLEL", .flag = "--max-num-seqs", .zero_is_default = true},
    {.name = "OLLAMA_KV_CACHE_TYPE",
     .flag = "--kv-cache-dtype",
     .above = {"--cache-type-k", "--cache-type-v"}},
    {.name = "VLLM_CPU_KVCACHE_SPACE",
     .flag = "--kv-cache-memory-bytes",
     .above = {"--gpu-memory-utilization", "--num-gpu-blocks-override"},
     .unit = "GiB",
     .zero_is_default = true},
    {.name = "VLLM_API_KEY", .flag = "--api-key", .above = {"--api-keys"}, .is_key = true},
});

// Says which flag a variable that is not read is here, or why there is none.
struct UnreadRow {
  std::string_view name;
  std::string_view here;
};

constexpr std::string_view kListen = "--host and --port say where to listen";
constexpr std::string_view kOneModel = "there is none, because a server has one model";
constexpr std::string_view kOneServer =
    "there is none, because one device or --tensor-parallel-size computes";
constexpr std::string_view kThreads = "--threads says how many threads compute; they are not bound";
constexpr std::string_view kLog = "--log-format and --log-prompts say what is logged";
constexpr std::string_view kNothingSent = "there is none, because nothing is sent to anybody";
constexpr std::string_view kMeasuredKernels =
    "there is none, because kernels are chosen at start; PAGODA_KERNELS names others";

constexpr auto kUnread = std::to_array<UnreadRow>({
    {"OLLAMA_HOST", kListen},
    {"OLLAMA_MODELS", "PAGODA_MODELS names folders of models; Ollama's own has another layout"},
    {"OLLAMA_ORIGINS", "--cors-origin and --allowed-hosts say which pages and names may ask"},
    {"OLLAMA_KEEP_ALIVE", "there is none, because a model stays loaded until the server ends"},
    {"OLLAMA_LOAD_TIMEOUT", "there is none, because loading has no time limit"},
    {"OLLAMA_MAX_QUEUE", "--max-waiting-requests says how many requests may wait"},
    {"OLLAMA_MAX_LOADED_MODELS", kOneModel},
    {"OLLAMA_FLASH_ATTENTION", "there is none, because attention is always fused"},
    {"OLLAMA_GPU_OVERHEAD", "--gpu-memory-utilization says how much of a GPU is used"},
    {"OLLAMA_SCHED_SPREAD", kOneServer},
    {"OLLAMA_NUM_GPU", "--device says what computes: all layers are on the GPU, or none"},
    {"OLLAMA_NUM_THREADS", "--threads says how many threads compute"},
    {"OLLAMA_LLM_LIBRARY", "--device says what computes"},
    {"OLLAMA_DEBUG", kLog},
    {"OLLAMA_NOHISTORY", "there is none, because pagoda chat keeps no file of what was asked"},
    {"OLLAMA_NOPRUNE", "there is none, because no model is ever deleted"},
    {"OLLAMA_MULTIUSER_CACHE", "there is none, because every prompt finds its prefix"},
    {"VLLM_HOST_IP", kListen},
    {"VLLM_PORT", kListen},
    {"VLLM_API_SERVER_COUNT", "--threads-http says how many threads serve connections"},
    {"VLLM_ALLOW_LONG_MAX_MODEL_LEN",
     "there is none, because --max-model-len may pass the trained context, with a warning"},
    {"VLLM_ATTENTION_BACKEND", "there is none, because there is one"},
    {"VLLM_BATCH_INVARIANT", "there is none, because answers never depend on the batch"},
    {"VLLM_CACHE_ROOT", "XDG_CACHE_HOME says where the cache folder lies"},
    {"VLLM_CONFIGURE_LOGGING", kLog},
    {"VLLM_CPU_MOE_PREPACK", kMeasuredKernels},
    {"VLLM_CPU_NUM_OF_RESERVED_CPU", kThreads},
    {"VLLM_CPU_OMP_THREADS_BIND", kThreads},
    {"VLLM_CPU_SGL_KERNEL", kMeasuredKernels},
    {"VLLM_DO_NOT_TRACK", kNothingSent},
    {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "--idle-timeout says when an idle connection ends"},
    {"VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES", "--kv-events-config has the field int_block_hashes"},
    {"VLLM_LOGGING_CONFIG_PATH", kLog},
    {"VLLM_LOGGING_LEVEL", kLog},
    {"VLLM_NO_USAGE_STATS", kNothingSent},
    {"VLLM_SERVER_DEV_MODE", "there is none, because /reset_prefix_cache is there for admins"},
    {"VLLM_USE_MODELSCOPE", "there is none, because pagoda pull downloads from Hugging Face"},
    {"VLLM_USE_V1", "there is none, because there is one engine"},
    {"VLLM_WORKER_MULTIPROC_METHOD", kOneServer},
});

bool is_flag_among(std::span<const std::string> flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

bool is_plain_number(std::string_view text) {
  return text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// The first flag among those given that says what the variable would.
std::optional<std::string_view> flag_above(const VariableRow& row,
                                           std::span<const std::string> given) {
  if (is_flag_among(given, row.flag)) return row.flag;
  for (const std::string_view flag : row.above) {
    if (is_flag_among(given, flag)) return flag;
  }
  return std::nullopt;
}

void read_row(const VariableRow& row, std::string_view value, std::span<const std::string> given,
              ForeignVariables& found) {
  const std::string shown =
      row.is_key ? std::string(row.name)
                 : fmt::format("{}={}", row.name, gguf::printable(value, kShownBytesMax));
  if (const auto above = flag_above(row, given)) {
    const std::string variable = environment_name(std::string(*above));
    const bool is_ours = is_flag_among(given, variable);
    found.notes.push_back(fmt::format("{} is not read: {} says it", shown,
                                      is_ours ? std::string_view(variable) : *above));
    return;
  }
  if (row.zero_is_default && value == "0") {
    found.notes.push_back(fmt::format("{} leaves {} at its default", shown, row.flag));
    return;
  }
  std::string taken(value);
  if (is_plain_number(value) && !value.empty()) taken += row.unit;
  const std::string here = row.is_key ? "" : gguf::printable(" " + taken, kShownBytesMax);
  found.notes.push_back(fmt::format("{} is read as {}{}", shown, row.flag, here));
  found.read.push_back({std::string(row.name), std::string(row.flag), std::move(taken)});
}

// LLAMA_ARG_CTX_SIZE is llama.cpp's --ctx-size.
std::optional<std::string> llama_hint(std::string_view name, std::span<const std::string> known) {
  std::string flag = "--";
  for (const char c : name.substr(kLlamaPrefix.size())) {
    flag += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (flag == "--n-parallel") flag = "--parallel";
  if (flag == "--n-ctx") flag = "--ctx-size";
  if (flag == "--batch" || flag == "--ubatch") flag += "-size";
  if (flag == "--endpoint-metrics") flag = "--metrics";
  if (is_flag_among(known, flag)) return fmt::format("{} says it", flag);
  return foreign_flag_hint(flag, known);
}

std::optional<std::string> unread_hint(std::string_view name, std::span<const std::string> known) {
  const auto* const row = std::find_if(kUnread.begin(), kUnread.end(),
                                       [&](const UnreadRow& each) { return each.name == name; });
  if (row != kUnread.end()) return std::string(row->here);
  return name.starts_with(kLlamaPrefix) ? llama_hint(name, known) : std::nullopt;
}

}  // namespace

ForeignVariables read_foreign_variables(std::string_view command,
                                        std::span<const char* const> environment,
                                        std::span<const std::string> known,
                                        std::span<const std::string> given) {
  ForeignVariables found;
  if (command != "serve" && command != "run" && command != "chat") return found;
  const bool serves = command == "serve";
  std::vector<std::string_view> others;
  for (const std::string_view entry : environment) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
    if (!name.starts_with("OLLAMA_") && !name.starts_with("VLLM_") &&
        !name.starts_with(kLlamaPrefix)) {
      continue;
    }
    const auto* const row = std::find_if(
        kRead.begin(), kRead.end(), [&](const VariableRow& each) { return each.name == name; });
    if (row != kRead.end()) {
      // An empty key is what an unset variable of a script leaves: it is refused, as the server
      // would be open instead of protected.
      const bool is_read = is_flag_among(known, row->flag) && (serves || !row->is_key);
      if (is_read && (row->is_key || !value.empty())) read_row(*row, value, given, found);
      continue;
    }
    if (!serves || value.empty()) continue;
    if (const auto hint = unread_hint(name, known)) {
      found.warnings.push_back(
          fmt::format("the environment variable {} changes nothing here: {}", name, *hint));
    } else {
      others.push_back(name);
    }
  }
  if (!others.empty()) {
    found.warnings.push_back(
        fmt::format("{} of the environment: there is none here, because Pagoda has no such setting",
                    fmt::join(others, ", ")));
  }
  return found;
}

std::string with_foreign_variable(const std::string& message,
                                  std::span<const ReadVariable> variables) {
  for (const ReadVariable& variable : variables) {
    if (message.starts_with(variable.flag + ": ")) {
      return variable.name + message.substr(variable.flag.size());
    }
  }
  return message;
}

}  // namespace pagoda::cli
