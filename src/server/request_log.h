// One line per request for a completion, when it has ended: what it asked, what it cost, how it
// ended. Prompts are part of it only where the operator asked for them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/json.h"

namespace pagoda::server {

enum class LogFormat : std::uint8_t {
  kNone,
  kText,  // time id key=value …
  kJson,  // one object a line
};

struct LogOptions {
  LogFormat format = LogFormat::kNone;
  bool prompts = false;
};

// What is not known is left out of the line.
struct LogEntry {
  std::string id;  // of the completion; empty when it was refused before it had one
  std::string path;
  std::string tenant;
  std::string model;
  bool stream = false;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::optional<std::uint64_t> output_tokens;
  std::optional<double> first_token_s;
  std::optional<double> total_s;
  std::string finish;  // of the first choice: "stop"; or "cancelled", "error"
  int status = 0;      // of HTTP; kClientGone
  std::string error;
  std::vector<std::string> prompts;

  // nginx' word for a client that closed the connection before it was answered.
  static constexpr int kClientGone = 499;
};

// The line without its end. `time` is "2026-01-31T23:59:59.123Z".
std::string format_entry(const LogEntry& entry, LogFormat format, std::string_view time);

// What went wrong on the server's side, and where: the operator reads it, clients do not.
struct Failure {
  std::string_view request_id = {};  // empty when it was about no request
  std::string_view where;
  std::string_view what;
};
std::string format_failure(const Failure& failure, LogFormat format, std::string_view time);

// Any thread.
class RequestLog {
 public:
  explicit RequestLog(const LogOptions& options, std::FILE* file = stderr)
      : options_(options), file_(file) {}

  bool is_on() const { return options_.format != LogFormat::kNone; }
  bool wants_prompts() const { return is_on() && options_.prompts; }
  void write(const LogEntry& entry);
  // Also where requests are not written down.
  void write(const Failure& failure) noexcept;
  void write_thrown(std::string_view request_id, std::string_view where,
                    const std::exception_ptr& thrown) noexcept;

 private:
  void write_line(std::string line);

  LogOptions options_;
  std::FILE* file_;
  std::mutex mutex_;  // lines stay whole
};

}  // namespace pagoda::server
