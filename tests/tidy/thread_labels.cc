#include "tidy/thread_labels.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace pagoda::tidy {
namespace {

struct Program {
  std::string name;
  std::string path;  // of its CMakeLists.txt
  int line = 0;
  std::vector<std::string> sources = {};  // from the root of the project
  std::set<std::string> labels = {};
};

std::vector<std::string> blank_separated(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" \n", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

Program read_call(const std::string& path, int line, std::string_view arguments) {
  const std::vector<std::string> words = blank_separated(arguments);
  Program program = {.name = words.empty() ? "" : words.front(), .path = path, .line = line};
  std::string part;
  for (const std::string& word : words) {
    if (word == "SOURCES" || word == "DEPS" || word == "LABELS" || word == "TIMEOUT") {
      part = word;
    } else if (part == "SOURCES") {
      const std::filesystem::path source = std::filesystem::path(folder_of(path)) / word;
      program.sources.push_back(source.lexically_normal().generic_string());
    } else if (part == "LABELS") {
      program.labels.insert(word);
    }
  }
  return program;
}

std::vector<Program> list_programs(const std::string& path, std::string_view text) {
  constexpr std::string_view kCall = "pagoda_test(";
  std::vector<Program> programs;
  for (std::size_t at = text.find(kCall); at != std::string_view::npos;
       at = text.find(kCall, at + 1)) {
    const std::size_t begin = at + kCall.size();
    const std::size_t end = std::min(text.find(')', begin), text.size());
    programs.push_back(read_call(path, line_of(text, at), text.substr(begin, end - begin)));
  }
  return programs;
}

bool has_word(std::string_view code, std::string_view word) {
  for (std::size_t at = code.find(word); at != std::string_view::npos;
       at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !is_word(code[at - 1]);
    if (begins && (end == code.size() || !is_word(code[end]))) return true;
  }
  return false;
}

bool owns_thread(const SourceText& header) {
  return has_word(header.code, "std::thread") || has_word(header.code, "std::jthread");
}

// "a/b.h" of each line #include "a/b.h".
std::vector<std::string> included(const SourceText& source) {
  constexpr std::string_view kInclude = "#include \"";
  std::vector<std::string> paths;
  for (const std::string_view line : split_lines(source.literals)) {
    if (!line.starts_with(kInclude)) continue;
    const std::string_view rest = line.substr(kInclude.size());
    paths.emplace_back(rest.substr(0, rest.find('"')));
  }
  return paths;
}

// The name by which a source, or what it includes of tests/, has threads; nothing where it has
// none.
std::string reason_of(const std::string& path, const Sources& sources,
                      std::set<std::string>& seen) {
  const auto found = sources.find(path);
  if (found == sources.end() || !seen.insert(path).second) return "";
  for (const char* word :
       {"std::thread", "std::jthread", "std::async", "ThreadPool", "memory_copier"}) {
    if (has_word(found->second.code, word)) return path + " names " + word;
  }
  for (const std::string& name : included(found->second)) {
    const auto ours = sources.find("src/" + name);
    if (ours != sources.end() && owns_thread(ours->second)) return path + " includes " + name;
    const std::string header = "tests/" + name;
    const std::string beside = header.substr(0, header.rfind('.')) + ".cc";
    for (const std::string& next : {header, beside}) {
      const std::string reason = reason_of(next, sources, seen);
      if (!reason.empty()) return reason;
    }
  }
  return "";
}

}  // namespace

PlacedFindings missing_thread_labels(const CMakeTexts& lists, const Sources& sources) {
  PlacedFindings findings;
  for (const auto& [path, text] : lists) {
    for (const Program& program : list_programs(path, text)) {
      if (program.labels.contains("threads") || program.labels.contains("gpu")) continue;
      std::set<std::string> seen;
      for (const std::string& source : program.sources) {
        const std::string reason = reason_of(source, sources, seen);
        if (reason.empty()) continue;
        findings.push_back(
            {path, {program.line, program.name + " lacks the label threads: " + reason}});
        break;
      }
    }
  }
  return findings;
}

}  // namespace pagoda::tidy
