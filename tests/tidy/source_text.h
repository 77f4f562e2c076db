// A C++ file with its parts told apart. The views have the text's length and lines; what does not
// belong to a view is blank in it, so that line and column mean the same everywhere.
//
// Understands //, /* */, "strings" with escapes, 'c', R"tag(raw)tag" and digit separators. Does not
// understand trigraphs, nor a // comment continued by a backslash.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::tidy {

struct SourceText {
  std::string path;      // from the root of the project, with slashes
  std::string text;      // as it is
  std::string code;      // neither comments nor the insides of literals
  std::string literals;  // code with literals, no comments
  std::string comments;  // comments only
};

SourceText read_source(std::string path, std::string text);

struct Finding {
  int line;  // from 1
  std::string message;

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

// Every file by its path, and findings of rules that look at all files together.
using Sources = std::map<std::string, SourceText>;
struct PlacedFinding {
  std::string path;
  Finding finding;

  bool operator==(const PlacedFinding&) const = default;
};
using PlacedFindings = std::vector<PlacedFinding>;

// Without line ends; a last line without one counts.
std::vector<std::string_view> split_lines(std::string_view text);
int line_of(std::string_view text, std::size_t offset);
std::string_view trimmed(std::string_view text);
bool is_word(char c);  // part of an identifier or number

// "h" of "src/base/result.h", empty without one.
std::string_view extension(std::string_view path);
bool is_header(std::string_view path);
// "src/base" of "src/base/result.h".
std::string_view folder_of(std::string_view path);

}  // namespace pagoda::tidy
