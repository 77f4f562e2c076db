// The markers around calls: where a section begins and ends, and what stands between its calls.
#include <utility>

#include "chat/call_reader.h"
#include "chat/literal.h"

namespace pagoda::chat {
namespace {

// The brackets of an array of calls are no part of its markers: models write a lone call with and
// without them.
bool is_array(const ToolCallForm& form) { return core(form.section_begin).ends_with('['); }

std::string_view section_opening(const ToolCallForm& form) {
  std::string_view literal = core(form.section_begin);
  if (is_array(form)) literal.remove_suffix(1);
  return core(literal);
}

std::string_view section_closing(const ToolCallForm& form) {
  std::string_view literal = core(form.section_end);
  if (is_array(form) && literal.starts_with(']')) literal.remove_prefix(1);
  return core(literal);
}

class SectionReader : public CallReader {
 public:
  SectionReader(const ToolCallForm& form, const ToolSchemas& schemas, SectionStart start)
      : form_(form),
        schemas_(schemas),
        bare_(start == SectionStart::kBare),
        as_json_(form.syntax == CallSyntax::kJsonObject),
        call_begin_(words(form.call_begin)),
        call_end_(words(form.call_end)),
        section_end_(words(section_closing(form))) {
    const std::vector<std::string> section = words(section_opening(form));
    has_section_ = !section.empty();
    const bool opens_call = start == SectionStart::kInner || start == SectionStart::kOther ||
                            (start == SectionStart::kSection && !has_section_);
    in_call_ = opens_call && !call_begin_.empty();
    // The words of the literal behind the one that was found.
    if (start == SectionStart::kSection && has_section_) {
      expected_.assign(section.begin() + 1, section.end());
    } else if (in_call_ && start != SectionStart::kOther) {
      const bool skips_two = start == SectionStart::kInner && !has_section_;
      expected_.assign(call_begin_.begin() + (skips_two ? 2 : 1), call_begin_.end());
    }
  }

  // Each call is one step, so that the caller knows where a call ended.
  Progress read(std::string_view text, CallSink& sink) override {
    if (at_ == At::kBody) return read_body(text, sink);
    if (settled()) return read_settled(text);
    if (text.empty()) return {0, Verdict::kNeedsMore};
    if (is_space(text.front())) return {1, Verdict::kGoOn};
    return step(text);
  }

  CallRest finish(std::string_view text, CallSink& sink) override {
    return at_ == At::kBody ? body_->finish(text, sink) : CallRest{};
  }

  bool settled() const override {
    return at_ == At::kAfter || at_ == At::kAfterLast || (at_ == At::kBefore && calls_ > 0);
  }

 private:
  enum class At : std::uint8_t { kWords, kBefore, kBody, kAfter, kAfterLast };
  using Verdict = Progress::Verdict;
  static constexpr std::size_t kSpaceMax = 64;  // between the parts of a section

  Progress step(std::string_view text) {
    switch (at_) {
      case At::kWords:
        return read_words(text);
      case At::kBefore:
        return read_before(text);
      case At::kAfter:
        return read_after(text);
      default:
        return read_after_last(text);
    }
  }

  // White space is the section's where more of it follows.
  Progress read_settled(std::string_view text) {
    const std::size_t space = head_space(text).size();
    if (space > kSpaceMax) return {0, Verdict::kEnd};
    if (space == text.size()) return {0, Verdict::kNeedsMore};
    const Progress next = step(text.substr(space));
    return {next.taken == 0 ? 0 : space + next.taken, next.verdict};
  }

  // The rest of the literal whose first word began the section.
  Progress read_words(std::string_view text) {
    if (expected_.empty()) {
      at_ = At::kBefore;
      if (in_call_ && !turns_to_json(text.front())) open_body();
      return {0, Verdict::kGoOn};
    }
    const LiteralMatch match = match_start(text, expected_.front());
    if (match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
    if (match == LiteralMatch::kNo) return {0, Verdict::kMalformed};
    const std::size_t taken = expected_.front().size();
    expected_.erase(expected_.begin());
    return {taken, Verdict::kGoOn};
  }

  // Models that should write a name may write the older [{"name": …, "arguments": …}] instead.
  bool turns_to_json(char byte) {
    if (as_json_ || form_.arguments != ArgumentSyntax::kJson) return false;
    if (byte != '{' && byte != '[') return false;
    as_json_ = true;
    call_begin_.clear();
    call_end_.clear();
    return true;
  }

  void open_body() {
    body_ =
        as_json_ ? make_json_call_reader(form_, bare_) : make_named_call_reader(form_, schemas_);
    at_ = At::kBody;
  }

  // The text at which a call of this syntax begins, behind its marker.
  bool begins_call(char byte) const {
    if (as_json_) return byte == '{';
    return byte != '[' && byte != ']' && byte != '<' && byte != ',' && byte != ';';
  }

  Progress read_before(std::string_view text) {
    const char byte = text.front();
    if (byte == '[' && !in_array_ && call_begin_.empty()) {
      in_array_ = true;
      return {1, Verdict::kGoOn};
    }
    if (byte == ']' && in_array_) {
      in_array_ = false;
      at_ = At::kAfterLast;
      return {1, Verdict::kGoOn};
    }
    if ((byte == ',' || byte == ';') && calls_ > 0 && !separated_) {
      separated_ = true;
      return {1, Verdict::kGoOn};
    }
    if (!section_end_.empty()) {
      const LiteralMatch match = match_start(text, section_end_.front());
      if (match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
      if (match == LiteralMatch::kYes) {
        at_ = At::kAfterLast;
        return {0, Verdict::kGoOn};
      }
    }
    if (!call_begin_.empty()) {
      const LiteralMatch match = match_start(text, call_begin_.front());
      if (match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
      if (match == LiteralMatch::kYes) {
        expected_.assign(call_begin_.begin() + 1, call_begin_.end());
        in_call_ = true;
        at_ = At::kWords;
        return {call_begin_.front().size(), Verdict::kGoOn};
      }
    }
    const bool bare = call_begin_.empty() && begins_call(byte);
    // Objects need nothing between them.
    if (bare && (calls_ == 0 || separated_ || has_section_ || as_json_)) {
      open_body();
      return {0, Verdict::kGoOn};
    }
    return {0, calls_ == 0 ? Verdict::kMalformed : Verdict::kEnd};
  }

  Progress read_body(std::string_view text, CallSink& sink) {
    const Progress progress = body_->read(text, sink);
    if (progress.verdict != Verdict::kEnd) return progress;
    sink.end_call();
    ++calls_;
    separated_ = false;
    expected_ = call_end_;
    at_ = At::kAfter;
    return {progress.taken, Verdict::kGoOn};
  }

  // A call's end. Where another text stands in its place the call counts nevertheless.
  Progress read_after(std::string_view text) {
    if (!expected_.empty()) {
      const LiteralMatch match = match_start(text, expected_.front());
      if (match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
      if (match == LiteralMatch::kYes) {
        const std::size_t taken = expected_.front().size();
        expected_.erase(expected_.begin());
        return {taken, Verdict::kGoOn};
      }
    }
    in_call_ = false;
    const bool alone = !has_section_ && !in_array_ && !call_begin_.empty();
    at_ = alone ? At::kAfterLast : At::kBefore;
    return {0, Verdict::kGoOn};
  }

  Progress read_after_last(std::string_view text) {
    if (section_end_.empty()) return {0, Verdict::kEnd};
    const LiteralMatch match = match_start(text, section_end_.front());
    if (match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
    if (match == LiteralMatch::kNo) return {0, Verdict::kEnd};
    const std::size_t taken = section_end_.front().size();
    section_end_.erase(section_end_.begin());
    return {taken, Verdict::kGoOn};
  }

  const ToolCallForm& form_;
  const ToolSchemas& schemas_;
  bool bare_;
  bool as_json_;  // calls are objects
  std::vector<std::string> call_begin_;
  std::vector<std::string> call_end_;
  std::vector<std::string> section_end_;
  std::vector<std::string> expected_;
  std::unique_ptr<CallReader> body_;
  At at_ = At::kWords;
  bool has_section_ = false;
  bool in_array_ = false;
  bool separated_ = false;  // a comma followed the last call
  bool in_call_ = false;    // the marker of a call was read
  std::size_t calls_ = 0;
};

}  // namespace

std::string section_marker(const ToolCallForm& form) {
  for (const std::string_view literal : {section_opening(form), core(form.call_begin)}) {
    const std::vector<std::string> parts = words(literal);
    if (!parts.empty()) return parts.front();
  }
  return {};
}

std::string inner_marker(const ToolCallForm& form) {
  const std::vector<std::string> call = words(form.call_begin);
  const bool has_section = !words(section_opening(form)).empty();
  const std::size_t at = has_section ? 0 : 1;
  // Half a tag is a word of any text: name=" in <function name="N">.
  const bool is_tag = at < call.size() && (call[at].front() == '<' || call[at].front() == '[');
  return is_tag ? call[at] : std::string();
}

std::unique_ptr<CallReader> make_section_reader(const ToolCallForm& form,
                                                const ToolSchemas& schemas, SectionStart start) {
  return std::make_unique<SectionReader>(form, schemas, start);
}

}  // namespace pagoda::chat
