#include "structured/string_formats.h"

#include <fmt/format.h>

#include <array>

namespace pagoda::structured {
namespace {

// The last days of months, with the leap days of the Gregorian calendar; the first year is 1, as in
// Python.
constexpr std::string_view kDate =
    "((000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3["
    "01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|1[0-9]|2[0-8]))|"
    "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTime =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?"
    "(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])";
constexpr std::string_view kLabel = "[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?";
constexpr std::string_view kDuration =
    "P([0-9]{1,9}W|"
    "([0-9]{1,9}D|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?)"
    "(T([0-9]{1,9}S|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?))?|"
    "T([0-9]{1,9}S|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?))";

std::string ipv4() {
  constexpr std::string_view kByte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  return fmt::format("{0}(\\.{0}){{3}}", kByte);
}

// Two colons stand once for zeros.
std::string ipv6() {
  constexpr std::string_view kGroup = "[0-9a-fA-F]{1,4}";
  std::string all = fmt::format("({0}:){{7}}{0}|({0}:){{1,7}}:|:(:{0}){{1,7}}|::", kGroup);
  for (int before = 1; before <= 6; ++before) {
    all += fmt::format("|({0}:){{{1}}}(:{0}){{1,{2}}}", kGroup, before, 7 - before);
  }
  return "(" + all + ")";
}

std::string email() {
  constexpr std::string_view kAtom = "[-A-Za-z0-9!#$%&'*+/=?^_`{|}~]";
  return fmt::format("{0}{{1,32}}(\\.{0}{{1,15}}){{0,2}}@{1}(\\.{1}){{1,3}}", kAtom, kLabel);
}

// Every part is bounded, so that the whole has less than 2,000 characters: schemas often say
// maxLength beside this format.
std::string uri() {
  constexpr std::string_view kPath = "[-A-Za-z0-9._~!$&'()*+,;=:@]";
  constexpr std::string_view kRest = "[-A-Za-z0-9._~!$&'()*+,;=:@/?]";
  const auto part = [](std::string_view characters, int most) {
    return fmt::format("{0}{{0,{1}}}(%[0-9A-Fa-f]{{2}}{0}{{0,20}}){{0,2}}", characters, most);
  };
  const std::string segments = fmt::format("(/{}){{0,8}}", part(kPath, 80));
  return fmt::format(
      "[A-Za-z][-A-Za-z0-9+.]{{0,31}}:(//{0}(\\.{0}){{0,3}}(:[0-9]{{1,5}})?{1}|/?{2}{{1,80}}{1})"
      "(\\?{3})?(#{4})?",
      kLabel, segments, kPath, part(kRest, 200), part(kRest, 80));
}

constexpr std::array<std::string_view, 10> kFormats = {
    "date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"};

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  if (format == "date") return std::string(kDate);
  if (format == "time") return std::string(kTime);
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "duration") return std::string(kDuration);
  if (format == "email") return email();
  if (format == "hostname") return fmt::format("{0}(\\.{0}){{0,3}}", kLabel);
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "uri") return uri();
  if (format == "uuid") {
    return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
  }
  return std::nullopt;
}

std::string known_formats() {
  std::string all;
  for (const std::string_view format : kFormats) {
    all += (all.empty() ? "" : ", ") + std::string(format);
  }
  return all;
}

}  // namespace pagoda::structured
