// Writes one line per completion request when it has ended: its parameters, its token counts and
// how it ended. Prompts are logged only with the operator's consent.
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

// Members that are not known are left out of the line.
struct LogEntry {
  std::string id;  // the completion's id; empty when it was refused before it had one
  std::string path;
  std::string tenant;
  std::string model;
  bool stream = false;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::optional<std::uint64_t> output_tokens;
  std::optional<std::uint64_t> draft_tokens;  // and those of them that were accepted
  std::optional<std::uint64_t> accepted_tokens;
  std::optional<double> first_token_s;
  std::optional<double> total_s;
  std::string finish;  // the first choice's finish reason ("stop"), or "cancelled", "error"
  int status = 0;      // the HTTP status, or kClientGone
  std::string error;
  std::vector<std::string> ignored = {};  // fields of the request that nobody knows
  std::vector<std::string> prompts;

  // nginx's status for a client that closed the connection before the reply.
  static constexpr int kClientGone = 499;
};

// Returns the line without its line end. `time` is "2026-01-31T23:59:59.123Z".
std::string format_entry(const LogEntry& entry, LogFormat format, std::string_view time);

// An error on the server's side and where it happened, for the operator; clients do not see it.
struct Failure {
  std::string_view request_id = {};  // empty when no request is concerned
  std::string_view where;
  std::string_view what;
};
std::string format_failure(const Failure& failure, LogFormat format, std::string_view time);

// Any thread may use a RequestLog.
class RequestLog {
 public:
  explicit RequestLog(const LogOptions& options, std::FILE* file = stderr)
      : options_(options), file_(file) {}

  bool is_on() const { return options_.format != LogFormat::kNone; }
  bool wants_prompts() const { return is_on() && options_.prompts; }
  void write(const LogEntry& entry);
  // Failures are logged also where requests are not.
  void write(const Failure& failure) noexcept;
  void write_thrown(std::string_view request_id, std::string_view where,
                    const std::exception_ptr& thrown) noexcept;

 private:
  void write_line(std::string line);

  LogOptions options_;
  std::FILE* file_;
  std::mutex mutex_;  // keeps lines whole
};

}  // namespace pagoda::server
