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
  SectionReader(const ToolCallForm& form, const ToolSchemas& schemas, bool other)
      : form_(form),
        schemas_(schemas),
        call_begin_(words(form.call_begin)),
        call_end_(words(form.call_end)),
        section_end_(words(section_closing(form))) {
    std::vector<std::string> section = words(section_opening(form));
    has_section_ = !section.empty();
    if (other) {
      expected_ = {};
    } else if (has_section_) {
      expected_.assign(section.begin() + 1, section.end());
    } else if (!call_begin_.empty()) {
      expected_.assign(call_begin_.begin() + 1, call_begin_.end());
    }
    in_call_ = !other && !has_section_ && !call_begin_.empty();
    at_ = At::kWords;
  }

  // Each call is one step, so that the caller knows where a call ended.
  Progress read(std::string_view text, CallSink& sink) override {
    if (at_ == At::kBody) return read_body(text, sink);
    if (text.empty()) return {0, Verdict::kNeedsMore};
    if (is_space(text.front())) return {1, Verdict::kGoOn};
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

  void finish(std::string_view text, CallSink& sink) override {
    if (at_ == At::kBody) body_->finish(text, sink);
  }

  bool settled() const override {
    return at_ == At::kAfter || at_ == At::kAfterLast || (at_ == At::kBefore && calls_ > 0);
  }

 private:
  enum class At : std::uint8_t { kWords, kBefore, kBody, kAfter, kAfterLast };
  using Verdict = Progress::Verdict;

  // The rest of the literal whose first word began the section.
  Progress read_words(std::string_view text) {
    if (expected_.empty()) {
      at_ = At::kBefore;
      if (in_call_) open_body();
      return {0, Verdict::kGoOn};
    }
    const LiteralMatch match = match_start(text, expected_.front());
    if (match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
    if (match == LiteralMatch::kNo) return {0, Verdict::kMalformed};
    const std::size_t taken = expected_.front().size();
    expected_.erase(expected_.begin());
    return {taken, Verdict::kGoOn};
  }

  void open_body() {
    body_ = form_.syntax == CallSyntax::kJsonObject ? make_json_call_reader(form_)
                                                    : make_named_call_reader(form_, schemas_);
    at_ = At::kBody;
  }

  // The text at which a call of this syntax begins, behind its marker.
  bool begins_call(char byte) const {
    if (form_.syntax == CallSyntax::kJsonObject) return byte == '{';
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
    if (bare && (calls_ == 0 || separated_ || has_section_)) {
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

std::unique_ptr<CallReader> make_section_reader(const ToolCallForm& form,
                                                const ToolSchemas& schemas, bool other) {
  return std::make_unique<SectionReader>(form, schemas, other);
}

}  // namespace pagoda::chat
