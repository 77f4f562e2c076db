#include "bench/tekken_tokens.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_bytes.h"

namespace pagoda::bench {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 28;
constexpr std::size_t kTokensMax = std::size_t{1} << 22;
constexpr TokenId kEndToken = TokenId(2);  // </s>

std::optional<std::string> base64_decoded(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

}  // namespace

// Control tokens come first, then as many texts as there is room for.
Result<std::shared_ptr<const structured::MaskVocabulary>> read_tekken(const std::string& path) {
  ASSIGN_OR_RETURN(const FileBytes file, read_file_bytes(path, kFileBytesMax));
  const auto wrong = [&path] {
    return Error{ErrorCode::kCorrupt, fmt::format("'{}' is no tekken.json", path)};
  };
  const nlohmann::json all = nlohmann::json::parse(file.bytes, nullptr, false);
  if (!all.is_object() || !all.contains("vocab") || !all["vocab"].is_array()) return wrong();
  const nlohmann::json config = all.value("config", nlohmann::json::object());
  if (!config.is_object()) return wrong();
  const auto number = [&config](const char* key) -> std::size_t {
    const auto found = config.find(key);
    return found != config.end() && found->is_number_unsigned() ? found->get<std::size_t>() : 0;
  };
  const std::size_t size = number("default_vocab_size");
  const std::size_t special = number("default_num_special_tokens");
  if (size == 0 || size > kTokensMax || special >= size) return wrong();
  std::vector<std::string> bytes(special);
  for (const nlohmann::json& entry : all["vocab"]) {
    if (bytes.size() == size) break;
    if (!entry.is_object() || !entry.contains("token_bytes") || !entry["token_bytes"].is_string()) {
      return wrong();
    }
    std::optional<std::string> text =
        base64_decoded(entry["token_bytes"].get_ref<const std::string&>());
    if (!text) return wrong();
    bytes.push_back(*std::move(text));
  }
  return structured::MaskVocabulary::build(std::move(bytes), std::span(&kEndToken, 1), size);
}

}  // namespace pagoda::bench
