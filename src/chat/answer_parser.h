// Reads an answer's text by its form while it comes in pieces: reasoning, content, tool calls.
//
// Markers are held back until it is certain what they are, and so is the white space before them. A
// call that is malformed before its arguments begin becomes content with its markers; what is
// malformed behind that point is content from there on. A call within reasoning is a draft and so
// part of the reasoning, unless the answer ends with it: some models forget to end their reasoning
// before a call. But for CallReading no text is lost, and nothing depends on how the text is cut
// into pieces. Pieces must be whole characters. One thread may use a parser at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_event.h"
#include "chat/answer_form.h"
#include "chat/call_reader.h"
#include "chat/channel_reader.h"
#include "chat/literal.h"
#include "chat/tool_schemas.h"

namespace pagoda::chat {

// Which texts are calls.
enum class CallReading : std::uint8_t {
  kAnySpelling,  // whatever models write in place of the form
  // A grammar makes the model write calls as the form has them: nothing else is a call.
  kAsWritten,  // behind any text
  // Behind reasoning alone. The answer may be other content instead: it is a call where it begins
  // with calls_announcement(), and then the grammar lets nothing else follow.
  kFirst,
  kAlone,  // likewise, and there is nothing else: a call that is cut off is no content
};

struct AnswerOptions {
  bool in_reasoning = false;  // the prompt has opened the reasoning
  bool reads_calls = true;    // false: the text of calls is content
  bool single_call = false;   // the answer ends where a second call begins
  CallReading calls = CallReading::kAnySpelling;
  std::uint64_t id_seed = 0;  // the ids of calls are a function of it
};

class AnswerParser : private CallSink {
 public:
  // Form and schemas must outlive the parser.
  AnswerParser(const AnswerForm& form, const ToolSchemas& schemas, const AnswerOptions& options);
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  std::vector<AnswerEvent> push(std::string_view piece);
  // Returns what was held back.
  std::vector<AnswerEvent> finish();

  // A second call began where there may be one only: the rest of the answer is not wanted.
  bool ended() const { return ended_; }
  std::uint32_t calls() const { return calls_; }
  // After finish(): the answer ended within the arguments of its last call.
  bool cut_within_call() const { return cut_within_call_; }

 private:
  enum class MarkerKind : std::uint8_t {
    kReasoningBegin,
    kReasoningEnd,
    kContentEdge,  // stands around content and means nothing
    kTurnEnd,      // means nothing where the answer ends with it
    kCalls,
    kOtherCalls,
    kInnerCalls,  // the marker of a call whose section's marker the model has left out
  };
  struct Marker {
    std::string text;
    MarkerKind kind;
    std::string before = {};  // the white space that belongs to it
    std::string after = {};
  };
  struct Found {
    std::size_t at;
    const Marker* marker;  // nullptr: the text ends within one
  };

  bool begin_call(std::string_view name, std::string_view id) override;
  void add_arguments(std::string_view piece) override;
  void end_call() override;

  void add_marker(std::string_view literal, MarkerKind kind, std::string_view before = {});
  void add_call_markers(const ToolCallForm& calls);
  static bool is_of_calls(MarkerKind kind) {
    return kind == MarkerKind::kCalls || kind == MarkerKind::kOtherCalls ||
           kind == MarkerKind::kInnerCalls;
  }
  bool as_written() const { return options_.calls != CallReading::kAnySpelling; }
  bool is_sought(const Marker& marker, bool behind_words) const;
  void run();
  bool seek_again();
  bool step_text();
  bool step_turn_end(std::string_view text, const Found& found);
  bool step_calls();
  bool skip_space();
  bool step_behind_calls();
  bool step_behind_draft();
  LiteralMatch match_calls(std::string_view text) const;
  LiteralMatch match_bare(std::string_view text) const;
  bool is_leading_space(std::string_view text) const;
  bool step_anchored();
  std::optional<Found> find_marker(std::string_view text) const;
  void enter(const Marker& marker);
  void open_section(std::size_t mark, SectionStart start);
  void close_section();
  void give_up_section();
  void emit_text(std::string_view text);
  void emit(AnswerEvent event);
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }

  const AnswerForm& form_;
  const ToolSchemas& schemas_;
  AnswerOptions options_;
  std::vector<Marker> markers_;
  std::size_t space_max_ = 0;  // the longest white space before a marker
  std::optional<ChannelReader> channels_;

  std::string buffer_;
  std::size_t at_ = 0;  // what lies before it is read
  bool finishing_ = false;
  bool ended_ = false;
  bool in_reasoning_;
  bool is_leading_ = true;      // no content was passed on
  bool has_content_ = false;    // something that is not white space was content
  bool has_reasoning_ = false;  // likewise
  bool has_anchor_;             // nothing announces calls
  bool anchored_;               // such calls may begin here
  std::string_view skip_;       // white space of the last marker that may follow
  bool behind_calls_ = false;   // white space here belongs to calls if another or the end follows
  bool behind_draft_ = false;   // the text from mark_ on is calls if the answer ends here

  std::unique_ptr<CallReader> reader_;  // within a section of calls
  std::optional<std::size_t> mark_;     // where text begins that is content if it is no call
  std::size_t mark_end_ = 0;            // behind the marker that stands at mark_
  bool call_open_ = false;
  bool cut_within_call_ = false;
  bool needs_known_name_ = false;
  bool is_draft_ = false;  // the section stands in reasoning: nothing of it is passed on yet
  int again_ = 0;          // how often finish() has looked for markers in text that was held back
  std::set<std::string, std::less<>> ids_;
  std::uint32_t calls_ = 0;
  std::vector<AnswerEvent> events_;
};

}  // namespace pagoda::chat
