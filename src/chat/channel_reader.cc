#include "chat/channel_reader.h"

#include <algorithm>

#include "chat/literal.h"

namespace pagoda::chat {
namespace {

constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::size_t kHeaderBytesMax = 512;

// Returns a word of a header: "analysis" of "<|channel|>analysis", "functions.N" of
// "to=functions.N".
std::string_view word_behind(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(" \n\t<"));
}

// A header begins with a mark, a recipient or the role; anything else is text without a header.
bool may_be_header(std::string_view text) {
  const std::string_view trimmed = core(text);
  return std::any_of(channel_marks().begin(), channel_marks().end(),
                     [&](const std::string& mark) {
                       return match_start(trimmed, mark) != LiteralMatch::kNo;
                     }) ||
         match_start(trimmed, "to=") != LiteralMatch::kNo ||
         match_start(trimmed, "assistant") != LiteralMatch::kNo;
}

struct FoundMark {
  std::size_t at;
  std::size_t bytes;  // 0: the text ends within it
};

FoundMark find_mark(std::string_view text) {
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    for (const std::string& mark : channel_marks()) {
      const LiteralMatch match = match_start(text.substr(at), mark);
      if (match == LiteralMatch::kYes) return {at, mark.size()};
      if (match == LiteralMatch::kPartial) return {at, 0};
    }
  }
  return {text.size(), 0};
}

}  // namespace

const std::vector<std::string>& channel_marks() {
  static const std::vector<std::string> kMarks = {"<|start|>", "<|channel|>",   "<|message|>",
                                                  "<|end|>",   "<|constrain|>", "<|call|>",
                                                  "<|return|>"};
  return kMarks;
}

std::size_t ChannelReader::read(std::string_view text, bool finishing, const Emit& emit,
                                CallSink& sink) {
  std::size_t taken = 0;
  while (taken < text.size()) {
    const std::string_view rest = text.substr(taken);
    const std::size_t more = at_ == At::kHeader ? read_header(rest, finishing, emit, sink)
                                                : read_body(rest, finishing, emit, sink);
    if (more == 0) break;
    taken += more;
  }
  if (finishing) end_body(sink);
  return taken;
}

std::size_t ChannelReader::read_header(std::string_view text, bool finishing, const Emit& emit,
                                       CallSink& sink) {
  const std::size_t message = text.substr(0, kHeaderBytesMax).find(kMessage);
  const bool plausible =
      may_be_header(text) && (message != std::string_view::npos || text.size() < kHeaderBytesMax);
  if (plausible && message == std::string_view::npos && !finishing) return 0;
  if (plausible && message != std::string_view::npos) {
    open_body(text.substr(0, message), sink);
    return message + kMessage.size();
  }
  if (finishing && plausible) {
    // A header that was cut off says nothing.
    const bool is_header =
        behind_mark_ || core(text).starts_with("<|") || core(text).starts_with("to=");
    if (!is_header) emit(AnswerEvent::Kind::kContent, text);
    return text.size();
  }
  at_ = At::kContent;
  behind_mark_ = false;
  // A mark that opens nothing is text, so that reading goes on behind it.
  const FoundMark found = find_mark(text);
  const std::size_t taken = found.at > 0 ? found.at : std::max<std::size_t>(found.bytes, 1);
  emit(AnswerEvent::Kind::kContent, text.substr(0, taken));
  return taken;
}

void ChannelReader::open_body(std::string_view header, CallSink& sink) {
  constexpr std::string_view kFunctions = "functions.";
  const std::string_view channel = word_behind(header, kChannel);
  std::string_view recipient = word_behind(header, "to=");
  // Others than functions are tools that the model was trained with, "python" and "browser.search".
  const bool is_function = recipient.starts_with(kFunctions);
  if (is_function) recipient.remove_prefix(kFunctions.size());
  const bool is_call = is_function ? is_tool_name(recipient) : schemas_.contains(recipient);
  behind_mark_ = has_arguments_ = false;
  arguments_ = JsonStream();
  if (reads_calls_ && is_call && sink.begin_call(recipient, {})) {
    at_ = At::kCall;
  } else {
    at_ = channel == "analysis" ? At::kReasoning : At::kContent;
  }
}

std::size_t ChannelReader::read_body(std::string_view text, bool finishing, const Emit& emit,
                                     CallSink& sink) {
  if (as_written_ && at_ == At::kCall && arguments_.state() == JsonStream::State::kOpen) {
    std::string out;
    const std::size_t taken = arguments_.read(text, out);
    has_arguments_ = has_arguments_ || !out.empty();
    if (!out.empty()) sink.add_arguments(out);
    if (taken > 0) return taken;
  }
  const FoundMark found = find_mark(text);
  const bool whole = found.bytes == 0 && (finishing || found.at == text.size());
  const std::size_t end = whole ? text.size() : found.at;
  if (end > 0) add_body(text.substr(0, end), emit, sink);
  if (found.bytes == 0 || end > 0) return end;
  end_body(sink);
  // A header that begins with the channel keeps its mark.
  const bool opens = text.starts_with(kChannel);
  at_ = At::kHeader;
  behind_mark_ = true;
  return opens ? read_header(text, finishing, emit, sink) : found.bytes;
}

void ChannelReader::add_body(std::string_view text, const Emit& emit, CallSink& sink) {
  if (at_ != At::kCall) {
    emit(at_ == At::kReasoning ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kContent, text);
    return;
  }
  std::string out;
  const std::size_t taken = arguments_.read(text, out);
  has_arguments_ = has_arguments_ || !out.empty();
  if (!out.empty()) sink.add_arguments(out);
  if (taken == text.size() || core(text.substr(taken)).empty()) return;
  end_body(sink);
  at_ = At::kContent;
  emit(AnswerEvent::Kind::kContent, text.substr(taken));
}

void ChannelReader::end_body(CallSink& sink) {
  if (at_ != At::kCall) return;
  const std::string rest = arguments_.finish();
  if (!rest.empty()) sink.add_arguments(rest);
  if (!has_arguments_ && rest.empty()) sink.add_arguments("{}");
  was_cut_ = has_arguments_ && arguments_.state() == JsonStream::State::kOpen;
  sink.end_call();
  at_ = At::kContent;
}

}  // namespace pagoda::chat
