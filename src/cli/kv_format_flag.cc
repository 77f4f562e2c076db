#include "cli/kv_format_flag.h"

#include <fmt/format.h>

#include "cli/options.h"

namespace pagoda::cli {

Result<app::KvFormat> kv_format_named(const std::string& flag, const std::string& name) {
  if (const app::KvFormat* const format = app::find_kv_format(name)) return *format;
  std::string names;
  for (const app::KvFormat& format : app::kv_formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return invalid(fmt::format("{}: '{}' is not one of {}", flag, name, names));
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
