#include "chat/literal.h"

#include <algorithm>

namespace pagoda::chat {
namespace {

bool opens_tag(char c) { return c == '<' || c == '['; }
bool closes_tag(char c) { return c == '>' || c == ']'; }

}  // namespace

std::string_view core(std::string_view literal) {
  while (!literal.empty() && is_space(literal.front())) literal.remove_prefix(1);
  while (!literal.empty() && is_space(literal.back())) literal.remove_suffix(1);
  return literal;
}

std::string_view head_space(std::string_view literal) {
  std::size_t at = 0;
  while (at < literal.size() && is_space(literal[at])) ++at;
  return literal.substr(0, at);
}

std::string_view tail_space(std::string_view literal) {
  std::size_t at = literal.size();
  while (at > 0 && is_space(literal[at - 1])) --at;
  return at == 0 ? std::string_view() : literal.substr(at);
}

std::vector<std::string> words(std::string_view literal) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < literal.size();) {
    std::size_t end = at;
    while (end < literal.size() && !is_space(literal[end])) ++end;
    if (end > at) found.emplace_back(literal.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

std::vector<std::string> tags(std::string_view literal) {
  std::vector<std::string> found;
  for (const std::string& word : words(literal)) {
    std::size_t from = 0;
    for (std::size_t at = word.find("><"); at != std::string::npos; at = word.find("><", from)) {
      found.push_back(word.substr(from, at + 1 - from));
      from = at + 1;
    }
    found.push_back(word.substr(from));
  }
  return found;
}

LiteralMatch match_start(std::string_view text, std::string_view literal) {
  if (text.starts_with(literal)) return LiteralMatch::kYes;
  return literal.starts_with(text) ? LiteralMatch::kPartial : LiteralMatch::kNo;
}

WordsMatch match_words(std::string_view text, const std::vector<std::string>& words) {
  WordsMatch found = {LiteralMatch::kYes, 0};
  for (std::size_t i = 0; i < words.size(); ++i) {
    while (i > 0 && found.bytes < text.size() && is_space(text[found.bytes])) ++found.bytes;
    found.match = match_start(text.substr(found.bytes), words[i]);
    if (found.match != LiteralMatch::kYes) return {found.match, 0};
    found.bytes += words[i].size();
  }
  return found;
}

std::size_t shared_prefix(std::string_view a, std::string_view b) {
  std::size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) && a[shared] == b[shared]) ++shared;
  // Both continue: the texts may have parted within a tag, which then begins before `shared`.
  if (shared == a.size() && shared == b.size()) return shared;
  for (std::size_t at = shared; at > 0; --at) {
    if (closes_tag(a[at - 1])) break;
    if (opens_tag(a[at - 1])) return at - 1;
  }
  return shared;
}

std::size_t shared_suffix(std::string_view a, std::string_view b) {
  std::size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) &&
         a[a.size() - 1 - shared] == b[b.size() - 1 - shared]) {
    ++shared;
  }
  if (shared == a.size() || shared == b.size()) return shared;
  // The suffix begins within a tag when a tag closes in it before one opens.
  const std::size_t begin = a.size() - shared;
  for (std::size_t at = begin; at < a.size(); ++at) {
    if (opens_tag(a[at])) break;
    if (closes_tag(a[at])) return a.size() - at - 1;
  }
  return shared;
}

}  // namespace pagoda::chat
