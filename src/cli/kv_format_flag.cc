#include "cli/kv_format_flag.h"

#include <fmt/format.h>

#include "cli/options.h"

namespace pagoda::cli {

Result<app::KvFormat> kv_format_named(const std::string& flag, const std::string& name) {
  const app::KvFormat* const found = app::find_kv_format(name == "auto" ? "bf16" : name);
  if (found != nullptr) return *found;
  std::string names;
  for (const app::KvFormat& format : app::kv_formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return invalid(
      fmt::format("{}: '{}' is not one of {}, another name of theirs (q8_0, q4_0, f16, …), or two "
                  "of them for keys and values: bf16/int8",
                  flag, name, names));
}

Result<app::KvFormat> kv_format_of_bytes(const std::string& bytes) {
  // Tutorials write 2.0.
  const std::string whole = bytes.ends_with(".0") ? bytes.substr(0, bytes.size() - 2) : bytes;
  for (const app::KvFormat& format : app::kv_formats()) {
    const bool is_meant = format.name != "fp16" && !format.quantised();
    if (is_meant && fmt::format("{}", format.key_bits / 8) == whole) return format;
  }
  return invalid(
      fmt::format("{}: '{}' is not 4, 2 or 1; --dtype names smaller elements, which have scales",
                  kElementBytesFlag, bytes));
}

}  // namespace pagoda::cli
