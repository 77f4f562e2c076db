// Readers of tool calls: one reads the section of calls behind its first marker, and leaves each
// call's name and arguments to the reader of its syntax.
//
// A reader sees the text that it has not taken yet and says how much it takes. What it decides
// holds for any text that may follow, so that nothing depends on how the text is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_form.h"
#include "chat/tool_schemas.h"

namespace pagoda::chat {

// Takes the calls that are read.
class CallSink {
 public:
  virtual ~CallSink() = default;
  // `id` is empty where the model wrote none. False: no call may have this name, and its text is
  // malformed.
  virtual bool begin_call(std::string_view name, std::string_view id) = 0;
  // A piece of the arguments as JSON.
  virtual void add_arguments(std::string_view piece) = 0;
  virtual void end_call() = 0;
};

struct Progress {
  enum class Verdict : std::uint8_t { kGoOn, kNeedsMore, kEnd, kMalformed };

  std::size_t taken = 0;  // bytes of the text
  Verdict verdict = Verdict::kGoOn;
};

// The remainder of a call within which the answer ends.
struct CallRest {
  std::string text = {};  // that is no part of its arguments, for which it came too late
  bool whole = false;     // the arguments are complete
};

class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual Progress read(std::string_view text, CallSink& sink) = 0;
  // The answer ends with `text`, which read() wanted more of.
  virtual CallRest finish(std::string_view text, CallSink& sink) = 0;
  // All that was taken is certain: no call is being read whose text may turn out to be content.
  virtual bool settled() const { return false; }
};

inline constexpr std::size_t kNameBytesMax = 256;

// Returns whether `name` may be a tool's.
bool is_tool_name(std::string_view name);

// Where the text that a section's reader gets begins.
enum class SectionStart : std::uint8_t {
  kSection,  // behind section_marker()
  kInner,    // behind inner_marker()
  kOther,    // behind one of the form's other_begins
  kBare,     // at a bracket: nothing announces the calls
};

// Form and schemas must outlive the reader. Each reads one call without its markers. With `bare` an
// object is no call at the first key that calls do not have.
std::unique_ptr<CallReader> make_json_call_reader(const ToolCallForm& form, bool bare);
std::unique_ptr<CallReader> make_named_call_reader(const ToolCallForm& form,
                                                   const ToolSchemas& schemas);

// The text that begins a section of calls, without white space; empty: calls stand at the start of
// the answer and nothing announces them.
std::string section_marker(const ToolCallForm& form);
// The text behind it that begins a call and that models write without the section's, too:
// "<function=" behind "<tool_call>"; empty: there is none.
std::string inner_marker(const ToolCallForm& form);

std::unique_ptr<CallReader> make_section_reader(const ToolCallForm& form,
                                                const ToolSchemas& schemas, SectionStart start);

}  // namespace pagoda::chat
