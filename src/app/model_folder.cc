#include "app/model_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/ascii.h"
#include "base/file_bytes.h"

namespace pagoda::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".gguf";
constexpr std::string_view kWeightsEnding = ".safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::size_t kIndexBytesMax = 64 << 20;
constexpr int kDepthMax = 2;  // folders of a quantisation each, and one more
constexpr std::size_t kFilesMax = 10'000;

// One model in GGUF: a file, or parts whose names end in -00001-of-00003.gguf.
struct GgufSet {
  std::string stem;                  // relative, without part and ending: "sub/model-Q4_K_M"
  std::string first;                 // the first part
  std::vector<std::string> missing;  // parts that are not there
};

struct PartOfSet {
  std::string stem;
  std::uint32_t count = 0;  // 0: no part of a set
};

std::optional<std::uint32_t> five_digits(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

// "model-00002-of-00003.gguf" is a part of "model" of 3.
PartOfSet part_of_set(std::string_view file) {
  constexpr std::string_view kShape = "-00000-of-00000";
  const std::string_view stem = file.substr(0, file.size() - kEnding.size());
  if (stem.size() > kShape.size()) {
    const std::string_view tail = stem.substr(stem.size() - kShape.size());
    const auto count = five_digits(tail.substr(10));
    if (tail[0] == '-' && tail.substr(6, 4) == "-of-" && five_digits(tail.substr(1, 5)) && count) {
      return {std::string(stem.substr(0, stem.size() - kShape.size())), *count};
    }
  }
  return {std::string(stem), 0};
}

// Relative paths of what has the ending, dangling links included. A projector of images is no
// model.
std::vector<std::string> gguf_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  std::size_t seen = 0;
  for (; !error && at != fs::recursive_directory_iterator() && seen < kFilesMax;
       at.increment(error), ++seen) {
    if (at.depth() >= kDepthMax) at.disable_recursion_pending();
    const std::string name = at->path().filename().string();
    if (!name.ends_with(kEnding) || name.size() == kEnding.size()) continue;
    std::error_code ignored;
    if (name.starts_with("mmproj") || at->is_directory(ignored)) continue;
    files.push_back(at->path().lexically_relative(folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<GgufSet> gguf_sets(const fs::path& folder) {
  std::map<std::string, PartOfSet> sets;  // by the first file's name
  for (const std::string& file : gguf_files(folder)) {
    PartOfSet part = part_of_set(file);
    std::string first =
        part.count == 0 ? file : fmt::format("{}-00001-of-{:05}{}", part.stem, part.count, kEnding);
    sets.emplace(std::move(first), std::move(part));
  }
  std::vector<GgufSet> found;
  for (const auto& [first, part] : sets) {
    GgufSet set = {part.stem, first, {}};
    if (part.count == 0 && !is_plain_file((folder / first).string())) set.missing.push_back(first);
    for (std::uint32_t i = 1; i <= part.count; ++i) {
      const std::string file =
          fmt::format("{}-{:05}-of-{:05}{}", part.stem, i, part.count, kEnding);
      if (!is_plain_file((folder / file).string())) set.missing.push_back(file);
    }
    found.push_back(std::move(set));
  }
  return found;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// "Q4_K_M" is the quantisation of "model-Q4_K_M" and "model.q4_k_m", and not of "model-Q4_K_M_L".
bool has_quantisation(std::string_view stem, std::string_view tag) {
  const std::string name = lower(stem.substr(stem.rfind('/') + 1));
  if (!name.ends_with(lower(tag))) return false;
  const std::size_t at = name.size() - tag.size();
  return at == 0 || name[at - 1] == '-' || name[at - 1] == '.' || name[at - 1] == '_';
}

bool is_chosen(const GgufSet& set, std::string_view file) {
  if (!file.ends_with(kEnding)) return has_quantisation(set.stem, file);
  const PartOfSet part = part_of_set(file);
  const bool has_folder = file.find('/') != std::string_view::npos;
  const std::string_view stem = set.stem;
  return has_folder ? stem == part.stem : stem.substr(stem.rfind('/') + 1) == part.stem;
}

Error missing_parts(const std::string& shown, const std::vector<std::string>& missing) {
  return {ErrorCode::kCorrupt,
          fmt::format("{}: is not complete: {} {} not there", shown, listed_names(missing),
                      missing.size() == 1 ? "is" : "are")};
}

Result<std::string> only_set(const fs::path& folder, const std::vector<GgufSet>& sets,
                             const std::vector<GgufSet>& chosen, const std::string& file,
                             const std::string& shown) {
  std::vector<std::string> names;
  for (const GgufSet& set : chosen.empty() ? sets : chosen) names.push_back(set.first);
  if (chosen.empty()) {
    return Error{ErrorCode::kNotFound,
                 names.empty()
                     ? fmt::format("{}: has no GGUF file, and so none for \"{}\"", shown, file)
                     : fmt::format("{}: no GGUF file of it is \"{}\"; it has {}", shown, file,
                                   listed_names(names))};
  }
  if (chosen.size() > 1) {
    const std::string how =
        shown == folder
            ? fmt::format("give one of them, as in {}/{}", shown, names.front())
            : fmt::format("choose one by its name or its quantisation, as in {}:{} or {}:Q4_K_M",
                          shown, names.front(), shown);
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: has {} GGUF files: {}; {}", shown,
                                                          names.size(), listed_names(names), how)};
  }
  if (!chosen.front().missing.empty()) return missing_parts(shown, chosen.front().missing);
  return (folder / chosen.front().first).string();
}

// Names of the index's files, which are plain names beside it; nothing where it cannot be read.
std::set<std::string> indexed_files(const fs::path& folder) {
  std::set<std::string> files;
  const Result<FileBytes> read = read_file_bytes((folder / kIndexFile).string(), kIndexBytesMax);
  if (!read.ok()) return files;
  const auto index = nlohmann::json::parse(read.value().bytes, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map")) return files;
  for (const auto& file : index["weight_map"]) {
    if (!file.is_string()) continue;
    std::string name = file.get<std::string>();
    if (name.find('/') == std::string::npos) files.insert(std::move(name));
  }
  return files;
}

struct Safetensors {
  bool any = false;  // an index, a file or a link to one
  std::vector<std::string> missing;
};

Safetensors safetensors_of(const fs::path& folder) {
  Safetensors found;
  std::set<std::string> wanted = indexed_files(folder);
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(folder, error);
       !error && at != fs::directory_iterator() && seen < kFilesMax; at.increment(error), ++seen) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kWeightsEnding)) wanted.insert(name);
  }
  found.any = !wanted.empty() || is_plain_file((folder / kIndexFile).string());
  for (const std::string& name : wanted) {
    if (!is_plain_file((folder / name).string())) found.missing.push_back(name);
  }
  return found;
}

}  // namespace

bool is_plain_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string gguf_set_pattern(const std::string& file) {
  const PartOfSet part = part_of_set(file);
  return part.count == 0 ? file : fmt::format("{}-*-of-{:05}{}", part.stem, part.count, kEnding);
}

std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t kListedMax = 12;
  const std::size_t count = std::min(names.size(), kListedMax);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(count);
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > count) text += fmt::format(" and {} more", names.size() - count);
  return text;
}

Result<std::string> model_in_folder(const std::string& folder, const std::string& file,
                                    const std::string& shown) {
  const std::vector<GgufSet> sets = gguf_sets(folder);
  if (!file.empty()) {
    std::vector<GgufSet> chosen;
    for (const GgufSet& set : sets) {
      if (is_chosen(set, file)) chosen.push_back(set);
    }
    return only_set(folder, sets, chosen, file, shown);
  }
  const bool has_config = is_plain_file(folder + "/config.json");
  const Safetensors weights = safetensors_of(folder);
  // Folders of GGUF files often have a config.json, too.
  if (has_config && weights.any) {
    if (!weights.missing.empty()) return missing_parts(shown, weights.missing);
    return folder;
  }
  if (!sets.empty()) return only_set(folder, sets, sets, file, shown);
  return Error{ErrorCode::kNotFound,
               fmt::format("{}: has no weights: {} has no *.gguf and no {}", shown, folder,
                           has_config ? "*.safetensors" : "config.json with *.safetensors")};
}

}  // namespace pagoda::app
