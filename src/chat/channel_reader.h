// The messages of gpt-oss (harmony), of which an answer has several:
//   <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
//   <|channel|>commentary to=functions.N <|constrain|>json<|message|>{…}
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_event.h"
#include "chat/call_reader.h"
#include "chat/json_stream.h"

namespace pagoda::chat {

// The marks of the format; a vocabulary has a control token for each.
const std::vector<std::string>& channel_marks();

class ChannelReader {
 public:
  using Emit = std::function<void(AnswerEvent::Kind, std::string_view)>;

  // `reads_calls` false: a message to a tool is content. `as_written`: a grammar makes arguments
  // whole JSON, whose strings may spell a mark. The schemas must outlive the reader.
  ChannelReader(bool reads_calls, const ToolSchemas& schemas, bool as_written = false)
      : reads_calls_(reads_calls), as_written_(as_written), schemas_(schemas) {}

  // Returns the bytes taken from the start of `text`; with `finishing` it takes all.
  std::size_t read(std::string_view text, bool finishing, const Emit& emit, CallSink& sink);
  // The last call ended within its arguments.
  bool was_cut() const { return was_cut_; }

 private:
  enum class At : std::uint8_t { kHeader, kReasoning, kContent, kCall };

  std::size_t read_header(std::string_view text, bool finishing, const Emit& emit, CallSink& sink);
  std::size_t read_body(std::string_view text, bool finishing, const Emit& emit, CallSink& sink);
  void open_body(std::string_view header, CallSink& sink);
  void add_body(std::string_view text, const Emit& emit, CallSink& sink);
  void end_body(CallSink& sink);

  bool reads_calls_;
  bool as_written_;
  const ToolSchemas& schemas_;
  At at_ = At::kHeader;
  bool behind_mark_ = false;  // the header follows a mark, and so is one
  bool was_cut_ = false;
  JsonStream arguments_;
  bool has_arguments_ = false;
};

}  // namespace pagoda::chat
