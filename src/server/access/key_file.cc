#include "server/access/key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/ascii.h"
#include "base/file_bytes.h"
#include "server/access/key_ring.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kNameBytesMax = 64;
constexpr std::size_t kKeyBytesMax = 512;
constexpr std::size_t kKeyFileBytesMax = 16 << 20;
constexpr std::string_view kHashed = "sha256:";
constexpr double kWeightMin = 1e-3;
constexpr double kWeightMax = 1e6;

struct LimitName {
  std::string_view name;
  std::uint64_t engine::TenantLimits::*wide = nullptr;
  std::uint32_t engine::TenantLimits::*narrow = nullptr;
};

// The limits of engine::TenantLimits except the weight.
constexpr std::array<LimitName, 7> kLimitNames = {{
    {.name = "answers_running", .narrow = &engine::TenantLimits::sequences_running},
    {.name = "requests_queued", .narrow = &engine::TenantLimits::requests_queued},
    {.name = "kv_tokens", .wide = &engine::TenantLimits::kv_tokens},
    {.name = "tokens_per_minute", .wide = &engine::TenantLimits::tokens_per_minute},
    {.name = "context_tokens", .wide = &engine::TenantLimits::context_tokens},
    {.name = "output_tokens", .wide = &engine::TenantLimits::output_tokens},
    {.name = "output_tokens_default", .wide = &engine::TenantLimits::output_tokens_default},
}};

Error refusal(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

template <class Number>
Result<Number> read_number(std::string_view setting, std::string_view text, Number low,
                           Number high) {
  Number number = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && number >= low && number <= high) return number;
  return refusal(fmt::format("{} takes {} to {}", setting, low, high));
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string_view> words;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.empty() || line.front() == '#') return words;
    const std::size_t end = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

Status check_name(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return is_ascii_letter(c) || is_ascii_digit(c) || c == '_' || c == '-' || c == '.';
  });
  if (!plain || name.size() > kNameBytesMax) {
    return refusal(
        fmt::format("is no tenant's name, expected up to {} of a-z A-Z 0-9 _ - .", kNameBytesMax));
  }
  if (name == kDefaultTenant) {
    return refusal(fmt::format("{} is the tenant of the server option `api_key`", kDefaultTenant));
  }
  return ok_status();
}

Result<Digest> read_digest(std::string_view hex) {
  Digest digest;
  bool good = hex.size() == 2 * digest.size();
  for (std::size_t i = 0; good && i < digest.size(); ++i) {
    const char* const at = hex.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, digest[i], 16);
    good = error == std::errc() && end == at + 2;
  }
  if (good) return digest;
  return refusal("what follows sha256: is no SHA-256, expected 64 hexadecimal digits");
}

class Parser {
 public:
  Status take_line(std::string_view line) {
    ++line_;
    word_ = 0;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) return ok_status();
    if (words.front() == "tenant") return take_tenant(words);
    if (words.front() == "key") return take_key(words);
    return refusal("begins no line, expected tenant or key");
  }
  // Names where the last line was refused: "3: word 2".
  std::string place() const { return fmt::format("{}: word {}", line_, word_ + 1); }
  KeyList take() { return std::move(list_); }

 private:
  // Reads word `index` of the line; a word behind the line's end is missing.
  std::string_view word(const std::vector<std::string_view>& words, std::size_t index) {
    word_ = index;
    return index < words.size() ? words[index] : std::string_view();
  }

  Status take_tenant(const std::vector<std::string_view>& words) {
    const std::string name(word(words, 1));
    if (name.empty()) return refusal("is missing, expected a tenant's name");
    RETURN_IF_ERROR(check_name(name));
    const auto [known, is_new] = tenant_lines_.try_emplace(name, line_);
    if (!is_new)
      return refusal(fmt::format("this tenant stands on line {} already", known->second));
    if (list_.tenants.size() == kTenantsMax) {
      return refusal(fmt::format("more than {} tenants", kTenantsMax));
    }
    ListedTenant tenant = {.name = name};
    for (std::size_t i = 2; i < words.size(); ++i) {
      RETURN_IF_ERROR(take_setting(word(words, i), tenant));
    }
    list_.tenants.push_back(std::move(tenant));
    return ok_status();
  }

  static Status take_setting(std::string_view word, ListedTenant& tenant) {
    const std::size_t sign = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, sign);
    const std::string_view value = word.substr(std::min(sign + 1, word.size()));
    if (name == "weight") {
      ASSIGN_OR_RETURN(tenant.limits.weight, read_number(name, value, kWeightMin, kWeightMax));
      return ok_status();
    }
    if (name == "priority_min") {
      ASSIGN_OR_RETURN(tenant.priority_min, read_number(name, value, INT32_MIN, INT32_MAX));
      return ok_status();
    }
    for (const LimitName& limit : kLimitNames) {
      if (limit.name != name) continue;
      const std::uint64_t high = limit.wide != nullptr ? INT64_MAX : UINT32_MAX;
      ASSIGN_OR_RETURN(const std::uint64_t number,
                       read_number(name, value, std::uint64_t{1}, high));
      if (limit.wide != nullptr) tenant.limits.*limit.wide = number;
      if (limit.narrow != nullptr) tenant.limits.*limit.narrow = static_cast<std::uint32_t>(number);
      return ok_status();
    }
    std::string names = "weight, priority_min";
    for (const LimitName& limit : kLimitNames) names += fmt::format(", {}", limit.name);
    return refusal(fmt::format("is no setting of a tenant, expected one of {}", names));
  }

  Status take_key(const std::vector<std::string_view>& words) {
    ListedKey key;
    ASSIGN_OR_RETURN(key.digest, read_key(word(words, 1)));
    key.tenant = word(words, 2);
    if (!tenant_lines_.contains(key.tenant)) {
      return refusal("expected a tenant that stands on a line above: key KEY TENANT");
    }
    for (std::size_t i = 3; i < words.size(); ++i) {
      const std::string_view right = word(words, i);
      if (right != "may_publish" && right != "admin") {
        return refusal("is no right of a key, expected may_publish or admin");
      }
      (right == "admin" ? key.is_admin : key.may_publish) = true;
    }
    word_ = 1;
    const auto [known, is_new] = key_lines_.try_emplace(key.digest, line_);
    if (!is_new) return refusal(fmt::format("this key stands on line {} already", known->second));
    if (list_.keys.size() == kKeysMax) return refusal(fmt::format("more than {} keys", kKeysMax));
    list_.keys.push_back(std::move(key));
    return ok_status();
  }

  Result<Digest> read_key(std::string_view word) {
    if (word.empty()) return refusal("is missing, expected: key KEY TENANT");
    if (word.starts_with(kHashed)) return read_digest(word.substr(kHashed.size()));
    RETURN_IF_ERROR(check_key(word));
    list_.shows_keys = true;
    return sha256(word);
  }

  int line_ = 0;
  std::size_t word_ = 0;  // counts from 0
  KeyList list_;
  std::map<std::string, int> tenant_lines_;
  std::map<Digest, int> key_lines_;
};

}  // namespace

Status check_key(std::string_view key) {
  const bool visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!key.empty() && visible && key.size() <= kKeyBytesMax) return ok_status();
  return refusal(fmt::format("a key has 1 to {} visible ASCII characters", kKeyBytesMax));
}

Result<KeyList> parse_keys(std::string_view text, const std::string& name) {
  Parser parser;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const Status taken = parser.take_line(text.substr(0, end));
    if (!taken.ok()) {
      return Error{taken.error().code,
                   fmt::format("{}:{}: {}", name, parser.place(), taken.error().message)};
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  KeyList list = parser.take();
  if (list.keys.empty()) return refusal(fmt::format("{}: has no key: nobody could ask", name));
  return list;
}

Result<KeyList> read_key_file(const std::string& path) {
  ASSIGN_OR_RETURN(const FileBytes file, read_file_bytes(path, kKeyFileBytesMax));
  ASSIGN_OR_RETURN(KeyList list, parse_keys(file.bytes, path));
  list.is_open_to_others = file.is_open_to_others();
  return list;
}

}  // namespace pagoda::server
