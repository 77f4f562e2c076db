#include "app/model_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace pagoda::app {
namespace {

constexpr std::string_view kMarks = "@:";  // what a revision and a file begin with
constexpr std::size_t kCommitDigitsMin = 4;
constexpr std::size_t kCommitDigitsMax = 64;

bool is_name_character(char c) {
  return is_ascii_letter(c) || is_ascii_digit(c) || c == '-' || c == '_' || c == '.';
}

bool is_edge(char c) { return c == '-' || c == '.'; }

// "Org" and "Name". The cache folder writes "--" between the two, so that it is in neither.
std::string name_fault(std::string_view part) {
  if (part.empty()) return "is empty";
  if (!std::all_of(part.begin(), part.end(), is_name_character)) {
    return "may have letters, digits, '-', '_' and '.'";
  }
  if (is_edge(part.front()) || is_edge(part.back())) return "may not begin or end with '-' or '.'";
  for (const std::string_view pair : {"..", "--"}) {
    if (part.find(pair) != std::string_view::npos) return fmt::format("may not have \"{}\"", pair);
  }
  return "";
}

std::string repository_fault(std::string_view repository) {
  if (repository.size() > kRepositoryBytesMax) {
    return fmt::format("has {} characters, at most {} are taken", repository.size(),
                       kRepositoryBytesMax);
  }
  const std::size_t slash = repository.find('/');
  if (slash == std::string_view::npos) return name_fault(repository);
  if (repository.find('/', slash + 1) != std::string_view::npos) return "has more than one '/'";
  const std::string fault = name_fault(repository.substr(0, slash));
  return fault.empty() ? name_fault(repository.substr(slash + 1)) : fault;
}

// Returns why a revision ("refs/pr/1") or a file ("Q4_K_M/model.gguf") is no relative path that
// leads down; empty where it is.
std::string path_fault(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.size() > kNamePartBytesMax) {
    return fmt::format("has {} bytes, at most {} are taken", path.size(), kNamePartBytesMax);
  }
  const auto is_wrong = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
           std::string_view("\\*?[]").find(c) != std::string_view::npos;
  };
  if (path.front() == '-') return "begins with '-'";
  if (std::any_of(path.begin(), path.end(), is_wrong)) return "has a character that is not taken";
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return "is no path that leads down";
    if (slash == std::string_view::npos) return "";
    path.remove_prefix(slash + 1);
  }
}

Error fault_of(std::string_view what, std::string_view fault) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} {}", what, fault)};
}

}  // namespace

Result<ModelName> parse_model_name(std::string_view word) {
  ModelName name;
  std::size_t mark = std::min(word.find_first_of(kMarks), word.size());
  name.repository = word.substr(0, mark);
  const std::string fault = repository_fault(name.repository);
  if (!fault.empty()) return fault_of("a name", fault);
  while (mark < word.size()) {
    const bool is_revision = word[mark] == '@';
    const std::size_t end = std::min(word.find_first_of(kMarks, mark + 1), word.size());
    std::string& part = is_revision ? name.revision : name.file;
    const char* const what = is_revision ? "the revision behind '@'" : "the file behind ':'";
    if (!part.empty()) return fault_of(what, "is there twice");
    part = word.substr(mark + 1, end - mark - 1);
    const std::string of_part = path_fault(part);
    if (!of_part.empty()) return fault_of(what, of_part);
    mark = end;
  }
  return name;
}

Result<std::string> with_revision(const std::string& word, const std::string& revision) {
  if (revision.empty()) return word;
  const Result<ModelName> name = parse_model_name(word);
  if (is_path_like(word) || !name.ok()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`revision={}`: makes sense with the name of a model on Hugging Face "
                             "only, not with {}",
                             revision, word)};
  }
  if (!name.value().revision.empty() && name.value().revision != revision) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`revision={}`: {} has another one", revision, word)};
  }
  return name.value().revision.empty() ? fmt::format("{}@{}", word, revision) : word;
}

bool is_path_like(std::string_view word) {
  if (word.empty() || word.front() == '/' || word.front() == '.' || word.front() == '~')
    return true;
  const std::string_view repository = word.substr(0, word.find_first_of(kMarks));
  if (repository.size() == word.size() && word.ends_with(".gguf")) return true;
  return std::count(repository.begin(), repository.end(), '/') > 1;
}

bool is_commit_like(std::string_view text) {
  const auto is_digit = [](char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'f'); };
  return text.size() >= kCommitDigitsMin && text.size() <= kCommitDigitsMax &&
         std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace pagoda::app
