#include "kv/kv_policy.h"

#include <charconv>
#include <optional>

namespace pagoda::kv {
namespace {

constexpr std::string_view kWindow = "window:";
constexpr std::string_view kStreaming = "streaming:";

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::vector<memory::AttentionSpec> KvPolicy::of(
    std::span<const memory::AttentionSpec> groups) const {
  std::vector<memory::AttentionSpec> bounded;
  for (const memory::AttentionSpec& group : groups) bounded.push_back(of(group));
  return bounded;
}

std::uint64_t KvPolicy::tokens_dropped(std::uint64_t tokens) const {
  return is_full() || tokens < tokens_kept_max() ? 0 : tokens + 1 - tokens_kept_max();
}

std::string KvPolicy::name() const {
  if (is_full()) return "full";
  if (sinks == 0) return std::string(kWindow) + std::to_string(window);
  return std::string(kStreaming) + std::to_string(sinks) + '+' + std::to_string(window);
}

Result<KvPolicy> KvPolicy::parse(std::string_view text) {
  if (text == "full") return KvPolicy{};
  std::optional<std::uint32_t> sinks = 0;
  std::optional<std::uint32_t> window;
  if (text.starts_with(kWindow)) {
    window = to_number(text.substr(kWindow.size()));
  } else if (text.starts_with(kStreaming)) {
    const std::string_view sizes = text.substr(kStreaming.size());
    const std::size_t plus = std::min(sizes.find('+'), sizes.size());
    sinks = to_number(sizes.substr(0, plus));
    window = to_number(sizes.substr(std::min(plus + 1, sizes.size())));
  }
  if (!sinks || window.value_or(0) == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        "KV policy '" + std::string(text) +
            "': expected full, window:W or streaming:S+W (sinks + window, in tokens), as in "
            "streaming:4+1024"};
  }
  return KvPolicy{.window = *window, .sinks = *sinks};
}

std::string KvPolicy::hash_key(std::string_view adapter) const {
  if (is_full()) return std::string(adapter);
  return std::string(adapter) + "\nkv_policy=" + name();
}

}  // namespace pagoda::kv
