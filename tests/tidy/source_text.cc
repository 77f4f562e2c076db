#include "tidy/source_text.h"

#include <algorithm>
#include <cctype>

namespace pagoda::tidy {
namespace {

enum class Kind { kCode, kComment, kLiteral };

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Whether the quote at `at` stands inside a number: 1'000.
bool is_digit_separator(std::string_view text, std::size_t at) {
  std::size_t start = at;
  while (start > 0 && (is_word(text[start - 1]) || text[start - 1] == '\'')) --start;
  return start < at && is_digit(text[start]);
}

// The offset after a string or character literal whose opening quote is at `at`. One that is not
// closed ends with its line.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    } else if (text[i] == '\n') {
      return i;
    }
  }
  return text.size();
}

bool is_raw_string(std::string_view text, std::size_t quote) {
  if (quote == 0 || text[quote - 1] != 'R') return false;
  std::size_t start = quote - 1;
  while (start > 0 && is_word(text[start - 1])) --start;
  const std::string_view prefix = text.substr(start, quote - start);
  return prefix == "R" || prefix == "u8R" || prefix == "LR" || prefix == "uR" || prefix == "UR";
}

std::size_t end_of_raw_string(std::string_view text, std::size_t quote) {
  const std::size_t open = text.find('(', quote);
  if (open == std::string_view::npos) return text.size();
  const std::string close = ")" + std::string(text.substr(quote + 1, open - quote - 1)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

std::size_t end_of_comment(std::string_view text, std::size_t at) {
  const bool block = text[at + 1] == '*';
  const std::size_t end = text.find(block ? "*/" : "\n", at + 2);
  if (end == std::string_view::npos) return text.size();
  return block ? end + 2 : end;
}

// Copies [from, to) of the text into the views it belongs to; elsewhere the blanks stay.
void copy_part(SourceText& source, std::size_t from, std::size_t to, Kind kind) {
  const auto copy = [&](std::string& view, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) view[i] = source.text[i];
  };
  if (kind == Kind::kComment) {
    copy(source.comments, from, to);
    return;
  }
  copy(source.literals, from, to);
  if (kind == Kind::kCode) {
    copy(source.code, from, to);
  } else if (to > from) {  // the quotes remain, so that a literal is still something
    copy(source.code, from, from + 1);
    copy(source.code, to - 1, to);
  }
}

}  // namespace

SourceText read_source(std::string path, std::string text) {
  SourceText source;
  source.path = std::move(path);
  source.text = std::move(text);
  std::string blank = source.text;
  std::replace_if(
      blank.begin(), blank.end(), [](char c) { return c != '\n'; }, ' ');
  source.code = source.literals = source.comments = blank;

  const std::string_view all = source.text;
  std::size_t at = 0;
  while (at < all.size()) {
    const char c = all[at];
    Kind kind = Kind::kCode;
    std::size_t end = at + 1;
    if (c == '/' && end < all.size() && (all[end] == '/' || all[end] == '*')) {
      kind = Kind::kComment;
      end = end_of_comment(all, at);
    } else if (c == '"') {
      kind = Kind::kLiteral;
      end = is_raw_string(all, at) ? end_of_raw_string(all, at) : end_of_quoted(all, at);
    } else if (c == '\'' && !is_digit_separator(all, at)) {
      kind = Kind::kLiteral;
      end = end_of_quoted(all, at);
    }
    copy_part(source, at, end, kind);
    at = end;
  }
  return source;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

int line_of(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(),
                                         text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view extension(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const std::size_t dot = name.find_last_of('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
}

bool is_header(std::string_view path) { return extension(path) == "h" || extension(path) == "cuh"; }

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace pagoda::tidy
