// {"name": "N", "arguments": {…}} in any order of keys, {"type": "function", "function": {…}}, and
// {"N": {…}}.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "chat/call_reader.h"
#include "chat/json_stream.h"
#include "chat/literal.h"

namespace pagoda::chat {
namespace {

class JsonCallReader : public CallReader {
 public:
  JsonCallReader(const ToolCallForm& form, bool bare) : form_(form), bare_(bare) {}

  Progress read(std::string_view text, CallSink& sink) override {
    Progress progress;
    while (progress.verdict == Progress::Verdict::kGoOn) {
      const std::string_view rest = text.substr(progress.taken);
      if (rest.empty()) return {progress.taken, Progress::Verdict::kNeedsMore};
      const Progress next = at_ == At::kValue ? read_value(rest, sink) : read_structure(rest, sink);
      progress = {progress.taken + next.taken, next.verdict};
    }
    return progress;
  }

  CallRest finish(std::string_view, CallSink& sink) override {
    const bool within = at_ == At::kValue && streams_;
    if (within) sink.add_arguments(value_.finish());
    return {.whole = !within};
  }

 private:
  enum class At : std::uint8_t { kBegin, kKeyOrEnd, kKey, kInKey, kColon, kValue, kCommaOrEnd };
  enum class Role : std::uint8_t { kOther, kName, kArguments, kId };
  using Verdict = Progress::Verdict;

  Progress read_structure(std::string_view text, CallSink& sink) {
    if (at_ == At::kInKey) return read_key(text);
    const char byte = text.front();
    if (is_space(byte)) return {1, Verdict::kGoOn};
    switch (at_) {
      case At::kBegin:
        return expect(byte == '{', At::kKeyOrEnd);
      case At::kColon:
        return expect(byte == ':', At::kValue);
      case At::kCommaOrEnd:
        if (byte == ',') return expect(true, At::kKey);
        break;
      default:
        if (byte == '"') {
          key_ = JsonStream();
          key_text_.clear();
          at_ = At::kInKey;
          return {0, Verdict::kGoOn};
        }
        break;
    }
    if (byte != '}' || at_ == At::kKey) return {0, Verdict::kMalformed};
    return close(sink);
  }

  Progress expect(bool fits, At next) {
    if (!fits) return {0, Verdict::kMalformed};
    at_ = next;
    return {1, Verdict::kGoOn};
  }

  // The end of the object, or of the one within "function".
  Progress close(CallSink& sink) {
    if (depth_ > 0) {
      --depth_;
      at_ = At::kCommaOrEnd;
      return {1, Verdict::kGoOn};
    }
    if (!begun_) {
      if (!name_ || !begin(sink)) return {0, Verdict::kMalformed};
      sink.add_arguments(arguments_.value_or("{}"));
    }
    return {1, Verdict::kEnd};
  }

  Progress read_key(std::string_view text) {
    const std::size_t taken = key_.read(text, key_text_);
    if (key_text_.size() > 6 * kNameBytesMax || key_.state() == JsonStream::State::kMalformed) {
      return {taken, Verdict::kMalformed};
    }
    if (key_.state() == JsonStream::State::kOpen) return {taken, Verdict::kNeedsMore};
    const auto parsed = nlohmann::json::parse(key_text_, nullptr, false);
    if (!parsed.is_string()) return {taken, Verdict::kMalformed};
    role_ = role_of(parsed.get<std::string>());
    if (bare_ && role_ == Role::kOther && !is_beside(parsed.get<std::string>())) {
      return {taken, Verdict::kMalformed};
    }
    at_ = At::kColon;
    value_ = JsonStream();
    value_text_.clear();
    is_first_ = true;
    streams_ = false;
    return {taken, Verdict::kGoOn};
  }

  Role role_of(const std::string& key) {
    if (form_.name_is_key && depth_ == 0) {
      name_ = key;
      return Role::kArguments;
    }
    if (key == form_.name_key || key == "name" || (key == "function" && depth_ == 0)) {
      return Role::kName;
    }
    if (key == form_.arguments_key || key == "arguments" || key == "parameters") {
      return Role::kArguments;
    }
    return key == "id" ? Role::kId : Role::kOther;
  }

  // Keys that calls have beside those that matter.
  static bool is_beside(const std::string& key) {
    return key == "type" || key == "tool_call_id" || key == "index";
  }

  Progress read_value(std::string_view text, CallSink& sink) {
    if (is_first_) {
      if (is_space(text.front())) return {1, Verdict::kGoOn};
      is_first_ = false;
      // {"type": "function", "function": {"name": …}}
      if (role_ == Role::kName && text.front() == '{') {
        if (depth_ > 0) return {0, Verdict::kMalformed};
        ++depth_;
        return expect(true, At::kKeyOrEnd);
      }
      // Arguments may be a string that holds JSON: it is passed on as what it holds.
      streams_ =
          role_ == Role::kArguments && text.front() == '{' && name_ && !begun_ && !form_.id_is_last;
      if (streams_ && !begin(sink)) return {0, Verdict::kMalformed};
    }
    std::string out;
    const std::size_t taken = value_.read(text, out);
    if (streams_) {
      sink.add_arguments(out);
    } else {
      value_text_ += out;
    }
    if (value_.state() == JsonStream::State::kMalformed) return {taken, Verdict::kMalformed};
    if (value_.state() == JsonStream::State::kOpen) return {taken, Verdict::kNeedsMore};
    at_ = At::kCommaOrEnd;
    if (streams_ || keep_value(sink)) return {taken, Verdict::kGoOn};
    return {taken, Verdict::kMalformed};
  }

  bool keep_value(CallSink& sink) {
    if (role_ == Role::kOther) return true;
    auto parsed = nlohmann::ordered_json::parse(value_text_, nullptr, false);
    if (role_ == Role::kArguments) {
      if (begun_) return false;
      std::string text = parsed.is_string() ? parsed.get<std::string>() : value_text_;
      if (parsed.is_null() || text.empty()) text = "{}";
      if (!nlohmann::json::accept(text)) return false;
      arguments_ = std::move(text);
    } else if (role_ == Role::kId) {
      if (parsed.is_string()) id_ = parsed.get<std::string>();
    } else {
      if (!parsed.is_string() || begun_) return false;
      name_ = parsed.get<std::string>();
    }
    if (begun_ || !name_ || !arguments_) return true;
    // The id comes last, or the object ends without one.
    if (form_.id_is_last && role_ != Role::kId) return true;
    if (!begin(sink)) return false;
    sink.add_arguments(*arguments_);
    return true;
  }

  bool begin(CallSink& sink) {
    begun_ = is_tool_name(*name_) && sink.begin_call(*name_, id_);
    return begun_;
  }

  const ToolCallForm& form_;
  bool bare_;
  At at_ = At::kBegin;
  Role role_ = Role::kOther;
  std::uint32_t depth_ = 0;
  bool begun_ = false;
  bool is_first_ = false;
  bool streams_ = false;
  JsonStream key_;
  std::string key_text_;
  JsonStream value_;
  std::string value_text_;
  std::optional<std::string> name_;
  std::optional<std::string> arguments_;
  std::string id_;
};

}  // namespace

std::unique_ptr<CallReader> make_json_call_reader(const ToolCallForm& form, bool bare) {
  return std::make_unique<JsonCallReader>(form, bare);
}

bool is_tool_name(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) return false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F) return false;
    if (std::string_view("\"'<>{}[](),;=").find(c) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace pagoda::chat
