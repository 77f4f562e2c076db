#include "cli/foreign_commands.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace pagoda::cli {
namespace {

struct ForeignCommand {
  std::string_view above;
  std::string_view word;
  std::string_view here;
};

constexpr std::string_view kNoList =
    "models are files; pagoda inspect MODEL shows one, and PAGODA_MODELS names folders of them";
constexpr std::string_view kNoProcess = "a server has one model, and GET /v1/models names it";
constexpr std::string_view kStop = "a server ends by Ctrl-C or SIGTERM, and its model with it";
constexpr std::string_view kNamesFlag = "--served-model-name";

constexpr auto kCommands = std::to_array<ForeignCommand>({
    {"", "list", kNoList},
    {"", "ls", kNoList},
    {"", "ps", kNoProcess},
    {"", "stop", kStop},
    {"", "show", "pagoda inspect MODEL shows a model"},
    {"", "rm", "no model is ever deleted; a model is a file or a folder, and rm removes it"},
    {"", "create", "there is no Modelfile; flags of pagoda serve say what it would"},
    {"", "quantize", "--quantization q4_0 of serve, run and chat quantises at load"},
    {"", "complete", "pagoda run -p completes a text"},
    {"", "download", "pagoda pull NAME downloads a model"},
    {"bench", "latency", "pagoda bench depth and pagoda bench batch measure tokens per second"},
    {"bench", "throughput", "pagoda bench batch measures the tokens per second of many sequences"},
});

}  // namespace

std::optional<std::string> foreign_command_hint(std::string_view above, std::string_view word) {
  const auto* const found = std::find_if(
      kCommands.begin(), kCommands.end(),
      [&](const ForeignCommand& row) { return row.above == above && row.word == word; });
  if (found == kCommands.end()) return std::nullopt;
  return std::string(found->here);
}

std::vector<std::string> with_each_served_name(std::vector<std::string> words) {
  const auto is_flag = [](const std::string& word) { return word.starts_with('-'); };
  const bool names_model =
      words.size() > 1 &&
      (!is_flag(words[1]) || std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return word == "-m" || word == "--model" || word.starts_with("--model=");
      }));
  const auto is_model = [](const std::string& word) {
    std::error_code ignored;
    return word.ends_with(".gguf") || std::filesystem::exists(word, ignored);
  };
  std::vector<std::string> made;
  bool is_behind_dashes = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    made.push_back(words[i]);
    is_behind_dashes = is_behind_dashes || words[i] == "--";
    if (is_behind_dashes || words[i] != kNamesFlag || i + 1 == words.size()) continue;
    made.push_back(words[++i]);
    while (i + 1 < words.size() && !is_flag(words[i + 1])) {
      if (!names_model && is_model(words[i + 1])) break;
      made.emplace_back(kNamesFlag);
      made.push_back(words[++i]);
    }
  }
  return made;
}

}  // namespace pagoda::cli
