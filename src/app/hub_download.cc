#include "app/hub_download.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "app/model_folder.h"
#include "base/ascii.h"
#include "process/child_process.h"
#include "process/program_output.h"

namespace pagoda::app {
namespace {

// A folder is downloaded only as far as it is read: weights, configuration, tokenizer, chat
// template.
constexpr const char* kFolderPatterns[] = {"*.safetensors", "*.json",     "*.jinja",
                                           "tokenizer*",    "merges.txt", "vocab.txt"};
// Weights in the layouts of their authors' own programs, which lie beside those that are read.
constexpr const char* kOtherLayouts[] = {"original/*", "metal/*", "consolidated*"};

std::string with_case(std::string text, int (*change)(int)) {
  for (char& c : text) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> patterns_for(const ModelName& name) {
  if (name.file.empty()) return {std::begin(kFolderPatterns), std::end(kFolderPatterns)};
  if (name.file.ends_with(".gguf")) {
    const std::string pattern = gguf_set_pattern(name.file);
    if (name.file.find('/') != std::string::npos) return {pattern};
    return {pattern, "*/" + pattern};
  }
  std::vector<std::string> patterns;
  for (const std::string& tag : std::set<std::string>{name.file, with_case(name.file, std::toupper),
                                                      with_case(name.file, std::tolower)}) {
    patterns.push_back(fmt::format("*[-._]{}.gguf", tag));
    patterns.push_back(fmt::format("*[-._]{}-*-of-*.gguf", tag));
  }
  return patterns;
}

// The first number of "huggingface_hub version: 0.36.0". Where there is none, it is a newer one.
bool is_before_version_1(const std::string& program) {
  const auto told = process::run_program({program, "version"}, [] { return false; });
  if (!told.ok()) return false;
  const std::string& text = told.value().out;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (!is_ascii_digit(text[at]) || text[at + 1] != '.') continue;
    return text[at] == '0' && (at == 0 || !is_ascii_digit(text[at - 1]));
  }
  return false;
}

// Versions before 1 take all patterns behind one flag, later ones a flag for each.
std::vector<std::string> download_words(const std::string& program, const ModelName& name) {
  std::vector<std::string> words = {program, "download", name.repository};
  if (!name.revision.empty()) words.push_back("--revision=" + name.revision);
  const bool one_flag = is_before_version_1(program);
  if (one_flag) words.emplace_back("--include");
  for (const std::string& pattern : patterns_for(name)) {
    words.push_back(one_flag ? pattern : "--include=" + pattern);
  }
  if (!name.file.empty()) return words;
  if (one_flag) words.emplace_back("--exclude");
  for (const std::string pattern : kOtherLayouts) {
    words.push_back(one_flag ? pattern : "--exclude=" + pattern);
  }
  return words;
}

Result<std::string> hub_program() {
  const char* const path = std::getenv("PATH");
  for (const char* const name : {"hf", "huggingface-cli"}) {
    const auto program = process::find_program(name, path != nullptr ? path : "");
    if (program) return *program;
  }
  return Error{ErrorCode::kNotFound,
               "neither hf nor huggingface-cli is on PATH: they come with huggingface_hub (pip "
               "install huggingface_hub); or download the model elsewhere and set HF_HOME or "
               "PAGODA_MODELS"};
}

}  // namespace

Result<int> download_from_hub(const ModelName& name) {
  ASSIGN_OR_RETURN(const std::string program, hub_program());
  return process::run_child(download_words(program, name));
}

}  // namespace pagoda::app
