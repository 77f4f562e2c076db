#include "tidy/type_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "tidy/function_length.h"

namespace pagoda::tidy {
namespace {

// The code with preprocessor lines blank, over lines that end in a backslash.
std::string without_directives(std::string code) {
  bool line_start = true;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (line_start && code[at] == '#') {
      for (bool escaped = false; at < code.size() && (code[at] != '\n' || escaped); ++at) {
        escaped = code[at] == '\\';
        if (code[at] != '\n') code[at] = ' ';
      }
    }
    if (at >= code.size()) break;
    line_start = code[at] == '\n' || (line_start && code[at] == ' ');
  }
  return code;
}

std::string_view first_word(std::string_view text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_word);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

// What follows the brackets that `text` begins with.
std::string_view after_brackets(std::string_view text, char open, char close) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return trimmed(text.substr(at + 1));
  }
  return {};
}

std::string_view without_template(std::string_view head) {
  while (first_word(head) == "template") {
    head = after_brackets(trimmed(head.substr(8)), '<', '>');
  }
  return head;
}

bool skip_word(std::string_view& text, std::string_view word) {
  if (first_word(text) != word) return false;
  text = trimmed(text.substr(word.size()));
  return true;
}

// The name that a head like "template <class T> struct alignas(16) Row : Base" defines.
std::optional<std::string> type_of_head(std::string_view head) {
  head = without_template(trimmed(head));
  const bool is_enum = skip_word(head, "enum");
  const bool is_class =
      skip_word(head, "class") || skip_word(head, "struct") || skip_word(head, "union");
  if (!is_enum && !is_class) return std::nullopt;
  for (;;) {
    if (head.starts_with('[')) {
      head = after_brackets(head, '[', ']');
    } else if (skip_word(head, "alignas")) {
      head = after_brackets(head, '(', ')');
    } else {
      break;
    }
  }
  const std::string_view name = first_word(head);
  const std::string_view rest = trimmed(head.substr(name.size()));
  // `struct Point make() {` is a function; `struct Server::State {` is nested.
  const bool is_other = rest.ends_with(')') || rest.starts_with("::");
  if (name.empty() || is_other) return std::nullopt;
  return std::string(name);
}

std::optional<std::string> alias_of_head(std::string_view head) {
  head = without_template(trimmed(head));
  if (!skip_word(head, "using")) return std::nullopt;
  const std::string_view name = first_word(head);
  if (!trimmed(head.substr(name.size())).starts_with('=')) return std::nullopt;
  return std::string(name);
}

// "kSizes" of "constexpr std::array<int, 2> kSizes = {1, 2}". Functions and types are none.
std::optional<std::string> constant_of_head(std::string_view head) {
  head = trimmed(head.substr(0, head.find('=')));
  const bool is_constant = first_word(head) == "constexpr" || first_word(head) == "const";
  if (!is_constant || head.find('(') != std::string_view::npos) return std::nullopt;
  if (const std::size_t array = head.find('['); array != std::string_view::npos) {
    head = trimmed(head.substr(0, array));
  }
  std::size_t begin = head.size();
  while (begin > 0 && is_word(head[begin - 1])) --begin;
  return std::string(head.substr(begin));
}

// What a walk lists: types of named namespaces, or types and constants of every namespace.
enum class Listed { kNamedTypes, kAllNames };

class TypeWalk {
 public:
  TypeWalk(const SourceText& source, Listed listed)
      : listed_(listed), code_(without_directives(source.code)) {}

  std::vector<TypeDefinition> run() {
    for (std::size_t at = 0; at < code_.size(); ++at) {
      if (code_[at] == '{') open(at);
      if (code_[at] == '}') close(at);
      if (code_[at] == ';') end_statement(at);
    }
    return std::move(types_);
  }

 private:
  struct Level {
    bool is_listed_namespace = false;
    std::optional<std::size_t> type = {};  // its index in types_
  };

  bool at_namespace() const {
    return std::all_of(open_.begin(), open_.end(),
                       [](const Level& level) { return level.is_listed_namespace; });
  }
  std::string_view head(std::size_t at) const {
    return trimmed(std::string_view(code_).substr(head_, at - head_));
  }
  int line_of_head() const { return line_of(code_, code_.find_first_not_of(" \n", head_)); }

  void open(std::size_t at) {
    Level level;
    std::string_view words = head(at);
    if (at_namespace()) {
      if (const std::optional<std::string> name = type_of_head(words)) {
        level.type = types_.size();
        types_.push_back({*name, line_of_head(), 0});
      }
      list_constant(at);
      skip_word(words, "inline");
      level.is_listed_namespace =
          skip_word(words, "namespace") && (!words.empty() || listed_ == Listed::kAllNames);
    }
    open_.push_back(level);
    head_ = at + 1;
  }

  void close(std::size_t at) {
    if (!open_.empty()) {
      if (open_.back().type) types_[*open_.back().type].last_line = line_of(code_, at);
      open_.pop_back();
    }
    head_ = at + 1;
  }

  void end_statement(std::size_t at) {
    if (at_namespace()) {
      const std::optional<std::string> name = alias_of_head(head(at));
      if (name && listed_ == Listed::kNamedTypes) {
        types_.push_back({*name, line_of_head(), line_of(code_, at)});
      }
      list_constant(at);
    }
    head_ = at + 1;
  }

  void list_constant(std::size_t at) {
    if (listed_ != Listed::kAllNames) return;
    const std::optional<std::string> name = constant_of_head(head(at));
    if (name) types_.push_back({*name, line_of_head(), line_of_head()});
  }

  Listed listed_;

  std::string code_;
  std::size_t head_ = 0;  // where the words before the next brace or ';' begin
  std::vector<Level> open_;
  std::vector<TypeDefinition> types_;
};

bool is_source_header(std::string_view path) { return path.starts_with("src/") && is_header(path); }

// "Cache" of "Result<std::function<void()>> Cache::open(int a)", and of "Cache::Part::close()".
std::string_view class_of_member(std::string_view head) {
  head = without_template(head);
  int angles = 0;
  std::size_t end = 0;
  for (; end < head.size(); ++end) {
    if (head[end] == '<') ++angles;
    if (head[end] == '>') --angles;
    if (head[end] == '(' && angles == 0) break;
  }
  const auto is_in_name = [](char c) { return is_word(c) || c == ':' || c == '~'; };
  std::size_t begin = end;
  while (begin > 0 && is_in_name(head[begin - 1])) --begin;
  const std::string_view name = head.substr(begin, end - begin);
  const std::size_t colons = name.find("::");
  return colons == std::string_view::npos ? std::string_view() : name.substr(0, colons);
}

// Lines of one file by the class that they define or whose members they define.
std::map<std::string, int> lines_by_class(const SourceText& source,
                                          const std::set<std::string>& classes) {
  std::map<std::string, int> lines;
  if (is_header(source.path)) {
    for (const TypeDefinition& type : list_types(source)) {
      lines[type.name] += type.last_line - type.first_line + 1;
    }
  }
  for (const Function& function : list_functions(source).functions) {
    const std::string name(class_of_member(function.head));
    if (classes.contains(name)) lines[name] += function.lines();
  }
  return lines;
}

}  // namespace

std::vector<TypeDefinition> list_types(const SourceText& source) {
  return TypeWalk(source, Listed::kNamedTypes).run();
}

PlacedFindings names_in_two_sources(const Sources& sources) {
  std::map<std::pair<std::string, std::string>, std::string> first_path;  // by library and name
  PlacedFindings findings;
  for (const auto& [path, source] : sources) {
    if (!path.starts_with("src/") || path.starts_with("src/kernels/")) continue;
    if (extension(path) != "cc") continue;
    const std::string library = path.substr(0, path.find('/', 4));
    for (const TypeDefinition& found : TypeWalk(source, Listed::kAllNames).run()) {
      const auto [first, is_new] = first_path.emplace(std::pair(library, found.name), path);
      if (is_new || first->second == path) continue;
      findings.push_back(
          {path, {found.first_line, "'" + found.name + "' is also in " + first->second}});
    }
  }
  return findings;
}

PlacedFindings types_in_two_folders(const Sources& sources) {
  std::map<std::string, std::string> first_path;  // by name
  PlacedFindings findings;
  for (const auto& [path, source] : sources) {
    if (!is_source_header(path)) continue;
    for (const TypeDefinition& type : list_types(source)) {
      const auto [first, is_new] = first_path.emplace(type.name, path);
      if (is_new || folder_of(first->second) == folder_of(path)) continue;
      findings.push_back(
          {path, {type.first_line, "type '" + type.name + "' is also in " + first->second}});
    }
  }
  return findings;
}

PlacedFindings classes_too_long(const Sources& sources) {
  std::map<std::string, std::set<std::string>> classes_of;  // by folder
  for (const auto& [path, source] : sources) {
    if (!is_source_header(path)) continue;
    for (const TypeDefinition& type : list_types(source)) {
      classes_of[std::string(folder_of(path))].insert(type.name);
    }
  }
  struct Extent {
    int lines = 0;
    int files = 0;
    std::string path;  // of the header, or the first file
  };
  std::map<std::pair<std::string, std::string>, Extent> extents;  // by folder and class
  for (const auto& [path, source] : sources) {
    if (!path.starts_with("src/")) continue;
    const std::string folder(folder_of(path));
    const std::map<std::string, int> lines = lines_by_class(source, classes_of[folder]);
    const auto most =
        std::max_element(lines.begin(), lines.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == lines.end()) continue;
    Extent& extent = extents[{folder, most->first}];
    extent.lines += static_cast<int>(split_lines(source.text).size());
    ++extent.files;
    if (extent.path.empty() || is_header(path)) extent.path = path;
  }
  PlacedFindings findings;
  for (const auto& [name, extent] : extents) {
    if (extent.lines <= kClassLinesMax) continue;
    findings.push_back({extent.path,
                        {1, name.second + " has " + std::to_string(extent.lines) + " lines in " +
                                std::to_string(extent.files) + " files, at most " +
                                std::to_string(kClassLinesMax)}});
  }
  return findings;
}

}  // namespace pagoda::tidy
