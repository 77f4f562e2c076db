#include "server/api/own_paths.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace pagoda::server {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "3]" at the start; nothing is taken where there is no index.
std::optional<std::size_t> take_index(std::string_view& text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits >= text.size() || *end != ']') return std::nullopt;
  text.remove_prefix(digits + 1);
  return index;
}

}  // namespace

std::string OwnPaths::rename(std::string_view text) const {
  std::string renamed;
  while (!text.empty()) {
    std::string_view rest = text;
    const bool is_message = take_prefix(rest, "messages[");
    const bool is_tool = !is_message && take_prefix(rest, "tools[");
    const auto index = is_message || is_tool ? take_index(rest) : std::nullopt;
    if (index && is_message && *index < messages.size()) {
      renamed += rename_message(*index, rest);
      text = rest;
    } else if (index && is_tool && *index < tools.size()) {
      renamed += rename_tool(*index, rest);
      text = rest;
    } else {
      renamed += text.front();
      text.remove_prefix(1);
    }
  }
  return renamed;
}

std::optional<std::uint32_t> OwnPaths::list_index(std::string_view path) {
  if (!take_prefix(path, "messages[") && !take_prefix(path, "input[")) return std::nullopt;
  const auto index = take_index(path);
  if (!index) return std::nullopt;
  return static_cast<std::uint32_t>(*index);
}

std::uint64_t OwnPaths::bytes() const {
  std::uint64_t bytes = messages.capacity() * sizeof(MessagePlace);
  for (const MessagePlace& place : messages) {
    bytes += place.path.capacity() + place.last.capacity() +
             place.calls.capacity() * sizeof(std::string);
    for (const std::string& call : place.calls) bytes += call.capacity();
  }
  return bytes;
}

std::string OwnPaths::first_of(std::size_t message) const {
  return message < messages.size() ? messages[message].path : fmt::format("messages[{}]", message);
}

std::string OwnPaths::last_of(std::size_t message) const {
  const bool is_joined = message < messages.size() && !messages[message].last.empty();
  return is_joined ? messages[message].last : first_of(message);
}

std::string OwnPaths::rename_message(std::size_t index, std::string_view& rest) const {
  const MessagePlace& place = messages[index];
  std::string_view behind = rest;
  if (!take_prefix(behind, ".tool_calls[")) return place.path;
  const auto call = take_index(behind);
  if (!call || *call >= place.calls.size()) return place.path;
  rest = behind;
  if (take_prefix(rest, ".function.arguments")) {
    return fmt::format("{}.{}", place.calls[*call], arguments);
  }
  take_prefix(rest, ".function");
  return place.calls[*call];
}

std::string OwnPaths::rename_tool(std::size_t index, std::string_view& rest) const {
  const std::string path = fmt::format("tools[{}]", tools[index]);
  if (take_prefix(rest, ".function.parameters")) return fmt::format("{}.{}", path, schema);
  take_prefix(rest, ".function");
  return path;
}

}  // namespace pagoda::server
