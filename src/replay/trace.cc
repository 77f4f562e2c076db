#include "replay/trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace pagoda::replay {
namespace {

using InputJson = nlohmann::json;

constexpr unsigned kChunkBytes = 256 * 1024;
constexpr std::uint64_t kIdsMax = UINT32_MAX - 1;  // the last number stands for nothing
constexpr TokenId kNothing(UINT32_MAX);

// The lines of a file; zlib passes on what is not gzip as it is.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) {
      error_ = failure(std::generic_category().message(errno));
      return;
    }
    gzbuffer(file_.get(), kChunkBytes);
  }

  // Valid until the next call; nothing at the end or after an error.
  std::optional<std::string_view> next() {
    for (std::size_t searched = 0;;) {
      const std::string_view rest = std::string_view(buffer_).substr(begin_);
      const std::size_t end = rest.find('\n', searched);
      if (end != std::string_view::npos) {
        begin_ += end + 1;
        return rest.substr(0, end);
      }
      searched = rest.size();
      if (!read_more()) break;
    }
    if (error_ || begin_ == buffer_.size()) return std::nullopt;
    const std::size_t begin = begin_;
    begin_ = buffer_.size();
    return std::string_view(buffer_).substr(begin);
  }

  const std::optional<Error>& error() const { return error_; }
  std::uint64_t bytes_read() const { return bytes_read_; }  // of the file as it is stored

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };

  Error failure(const std::string& reason) const {
    return {ErrorCode::kIo, fmt::format("cannot read '{}': {}", path_, reason)};
  }

  bool read_more() {
    if (!file_ || error_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t kept = buffer_.size();
    buffer_.resize(kept + kChunkBytes);
    const int bytes = gzread(file_.get(), buffer_.data() + kept, kChunkBytes);
    buffer_.resize(kept + static_cast<std::size_t>(std::max(bytes, 0)));
    int status = Z_OK;
    const char* const reason = gzerror(file_.get(), &status);
    // Z_BUF_ERROR: the file ends inside its gzip data. From zlib 1.3.2 on only the call that gives
    // the last bytes says so.
    if (status != Z_OK && status != Z_STREAM_END) error_ = failure(reason);
    bytes_read_ = static_cast<std::uint64_t>(std::max<z_off_t>(gzoffset(file_.get()), 0));
    return bytes > 0;
  }

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what was not given out yet
  std::uint64_t bytes_read_ = 0;
  std::optional<Error> error_;
};

struct Line {
  std::uint64_t input_tokens = 0;
  double output_tokens = 0;
  double timestamp_ms = 0;
  std::vector<std::uint64_t> ids;
};

Error malformed(std::string reason) { return {ErrorCode::kCorrupt, std::move(reason)}; }

// A line must say its input; what else it says of itself must be a number.
Result<Line> parse_line(std::string_view text) {
  const InputJson json = InputJson::parse(text, nullptr, false);
  if (json.is_discarded()) return malformed("not a JSON value");
  if (!json.is_object()) return malformed("not a JSON object");
  Line line;
  for (const auto& [name, value] : {std::pair{"timestamp", &line.timestamp_ms},
                                    std::pair{"output_length", &line.output_tokens}}) {
    const auto found = json.find(name);
    if (found == json.end()) continue;
    if (!found->is_number() || found->get<double>() < 0) {
      return malformed(fmt::format("{} is not a number from 0", name));
    }
    *value = found->get<double>();
  }
  const auto length = json.find("input_length");
  if (length == json.end()) return malformed("no input_length");
  if (!length->is_number_unsigned()) {
    return malformed("input_length is not a whole number from 0 to 2^64 - 1");
  }
  const auto ids = json.find("hash_ids");
  if (ids == json.end()) return malformed("no hash_ids");
  if (!ids->is_array()) return malformed("hash_ids is not an array");
  line.input_tokens = length->get<std::uint64_t>();
  line.ids.reserve(ids->size());
  for (const InputJson& id : *ids) {
    if (!id.is_number_unsigned()) {
      return malformed(
          fmt::format("hash_ids[{}] is not a whole number from 0 to 2^64 - 1", line.ids.size()));
    }
    line.ids.push_back(id.get<std::uint64_t>());
  }
  return line;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Result<Trace> read_trace(const std::string& path, const TraceEvents& events) {
  Trace trace;
  trace.name = path;
  Lines lines(path);
  std::error_code unknown_size;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown_size);
  const std::uint64_t bytes_total = unknown_size ? 0 : size;
  std::uint64_t bytes_shown = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (std::uint64_t number = 1;; ++number) {
    const std::optional<std::string_view> text = lines.next();
    if (!text) break;
    if (events.on_progress && lines.bytes_read() != bytes_shown) {
      bytes_shown = lines.bytes_read();
      events.on_progress(bytes_shown, bytes_total);
    }
    if (is_blank(*text)) continue;
    const Result<Line> line = parse_line(*text);
    if (!line.ok()) {
      ++trace.lines_malformed;
      if (events.on_malformed) events.on_malformed(number, line.error().message);
      continue;
    }
    const std::vector<std::uint64_t>& ids = line.value().ids;
    trace.requests.push_back(
        {.first = trace.ids.size(),
         .blocks = ids.size(),
         .input_tokens = line.value().input_tokens,
         .output_tokens = static_cast<std::uint64_t>(std::min(line.value().output_tokens, 1e18)),
         .timestamp_ms = line.value().timestamp_ms});
    for (const std::uint64_t id : ids) {
      const auto fresh = static_cast<std::uint32_t>(numbers.size());
      trace.ids.emplace_back(numbers.try_emplace(id, fresh).first->second);
    }
    trace.ids.push_back(kNothing);
    if (numbers.size() > kIdsMax) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("'{}' has more than {} different ids", path, kIdsMax)};
    }
  }
  if (lines.error()) return *lines.error();
  return trace;
}

}  // namespace pagoda::replay
