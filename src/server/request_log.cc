#include "server/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace pagoda::server {
namespace {

std::string time_now() {
  using std::chrono::floor;
  const auto now = floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = floor<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (now - seconds).count());
}

double microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// Lists the known members in the order of the line.
Json members(const LogEntry& entry) {
  Json all = Json::object();
  const auto add_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) all[name] = text;
  };
  const auto add_number = [&](const char* name, const auto& number) {
    if (number) all[name] = *number;
  };
  const auto add_seconds = [&](const char* name, const std::optional<double>& seconds) {
    if (seconds) all[name] = microseconds(*seconds);
  };
  add_text("id", entry.id);
  add_text("path", entry.path);
  add_text("tenant", entry.tenant);
  add_text("model", entry.model);
  all["stream"] = entry.stream;
  all["status"] = entry.status;
  add_text("finish_reason", entry.finish);
  add_number("prompt_tokens", entry.prompt_tokens);
  add_number("cached_tokens", entry.cached_tokens);
  add_number("completion_tokens", entry.output_tokens);
  add_number("draft_tokens", entry.draft_tokens);
  add_number("accepted_tokens", entry.accepted_tokens);
  add_seconds("ttft_s", entry.first_token_s);
  add_seconds("e2e_s", entry.total_s);
  add_text("error", entry.error);
  add_text("ignored_fields", fmt::format("{}", fmt::join(entry.ignored, ",")));
  if (!entry.prompts.empty()) all["prompts"] = entry.prompts;
  return all;
}

// Prints a plain word as it is and quotes, as in JSON, text that would break a line or a word.
std::string text_value(const Json& value) {
  if (!value.is_string()) return dump_json(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '\\' && c != '=';
  });
  return plain ? text : dump_json(value);
}

std::string format_line(const Json& all, LogFormat format, std::string_view time) {
  if (format == LogFormat::kJson) {
    Json line = {{"time", time}};
    line.update(all);
    return dump_json(line);
  }
  std::string line(time);
  for (const auto& [name, value] : all.items()) {
    line += fmt::format(" {}={}", name, text_value(value));
  }
  return line;
}

}  // namespace

std::string format_entry(const LogEntry& entry, LogFormat format, std::string_view time) {
  return format_line(members(entry), format, time);
}

std::string format_failure(const Failure& failure, LogFormat format, std::string_view time) {
  Json all = Json::object();
  if (!failure.request_id.empty()) all["request_id"] = failure.request_id;
  all["where"] = failure.where;
  all["failure"] = failure.what;
  return format_line(all, format, time);
}

void RequestLog::write(const LogEntry& entry) {
  if (!is_on()) return;
  write_line(format_entry(entry, options_.format, time_now()));
}

// When memory is too short even for the message, nothing is logged.
void RequestLog::write(const Failure& failure) noexcept {
  try {
    write_line(format_failure(failure, options_.format, time_now()));
  } catch (const std::exception&) {
    return;
  }
}

void RequestLog::write_thrown(std::string_view request_id, std::string_view where,
                              const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    write(Failure{request_id, where, error.what()});
  } catch (...) {
    write(Failure{request_id, where, "an exception of no known type"});
  }
}

void RequestLog::write_line(std::string line) {
  line += '\n';
  const std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);
}

}  // namespace pagoda::server
