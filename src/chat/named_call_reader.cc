// A name between markers, then its arguments: N[ARGS]{…}, N><parameter=K>V</parameter>, N(k=1).
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "chat/call_reader.h"
#include "chat/json_stream.h"
#include "chat/literal.h"
#include "chat/literal_arguments.h"
#include "chat/nested_arguments.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kAbsent = std::string_view::npos;
constexpr std::size_t kSlotBytesMax = 256;
constexpr std::size_t kSpaceMax = 64;  // white space behind a value's end
constexpr std::size_t kCallEnd = 3;    // the call's end among what may end a name

using Words = std::vector<std::string>;

// Where `text` has one of several literals first; the longest of those that begin there.
struct FirstOf {
  std::size_t at = kAbsent;
  std::size_t literal = 0;
  std::size_t bytes = 0;  // of the literal in the text
  bool certain = true;    // false: the text ends within a literal that may begin at `at`
};

FirstOf find_first(std::string_view text, const std::vector<Words>& literals) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    FirstOf found;
    for (std::size_t i = 0; i < literals.size(); ++i) {
      if (literals[i].empty()) continue;
      const WordsMatch match = match_words(text.substr(at), literals[i]);
      if (match.match == LiteralMatch::kPartial) return {at, i, 0, false};
      if (match.match == LiteralMatch::kYes && (found.at == kAbsent || match.bytes > found.bytes)) {
        found = {at, i, match.bytes, true};
      }
    }
    if (found.at != kAbsent) return found;
  }
  return {};
}

class NamedCallReader : public CallReader {
 public:
  NamedCallReader(const ToolCallForm& form, const ToolSchemas& schemas)
      : form_(form),
        schemas_(schemas),
        name_ends_({tags(form.name_end), tags(form.arguments_begin), words(form.tagged.key_begin),
                    first_word(form.call_end)}),
        key_begin_(words(form.tagged.key_begin)),
        literal_(form.arguments == ArgumentSyntax::kQuoted ? form.quote : std::string()) {
    if (form.arguments == ArgumentSyntax::kKeywords) name_ends_ = {{"("}};
    if (form.arguments == ArgumentSyntax::kQuoted) name_ends_ = {{"{"}};
    // A name that nothing but white space follows ends where its arguments begin.
    if (form.arguments == ArgumentSyntax::kJson) name_ends_.push_back({"{"});
    for (const KeyEnd& end : form.tagged.key_ends) key_ends_.push_back(tags(end.text));
    for (const std::string& literal : {form.tagged.key_begin, form.call_end, form.section_end}) {
      for (const std::string& word : words(literal)) behind_values_.push_back(word);
    }
  }

  Progress read(std::string_view text, CallSink& sink) override {
    Progress progress;
    while (progress.verdict == Verdict::kGoOn) {
      const Progress next = step(text.substr(progress.taken), sink);
      progress = {progress.taken + next.taken, next.verdict};
    }
    return progress;
  }

  CallRest finish(std::string_view text, CallSink& sink) override {
    if (!begun_) return {};
    switch (at_) {
      case At::kJson:
        sink.add_arguments(json_.finish());
        return {.whole = json_.state() == JsonStream::State::kDone};
      case At::kValue:
        return finish_value(text, sink);
      case At::kBody:
      case At::kKeyOrEnd:
      case At::kKey: {
        // The text behind the last value does not begin a value: the arguments end here.
        const bool in_key = at_ == At::kKey;
        sink.add_arguments("}");
        std::string rest = in_key ? form_.tagged.key_begin : std::string();
        rest += text;
        return {left_behind(rest), !in_key};
      }
      default:
        return {};
    }
  }

 private:
  enum class At : std::uint8_t { kName, kSlot, kBody, kJson, kKeyOrEnd, kKey, kValue, kLiteral };
  using Verdict = Progress::Verdict;

  static Words first_word(std::string_view literal) {
    Words parts = words(literal);
    if (parts.size() > 1) parts.resize(1);
    return parts;
  }

  // The text behind the last value, but for the beginning of a marker.
  std::string left_behind(std::string_view text) const {
    const bool is_marker =
        std::any_of(behind_values_.begin(), behind_values_.end(),
                    [&](const std::string& word) { return word.starts_with(core(text)); });
    return is_marker ? std::string() : std::string(core(text));
  }

  // A value whose end is there is whole, though nothing follows it.
  CallRest finish_value(std::string_view text, CallSink& sink) {
    const std::size_t end = find_value_end(text);
    if (end != kAbsent) {
      end_value(text.substr(0, end), sink);
      sink.add_arguments("}");
      return {left_behind(text.substr(end + value_end_.size())), true};
    }
    if (!value_open_) sink.add_arguments(opening() + "\"");
    sink.add_arguments(json_escaped(text));
    return {};
  }

  Progress step(std::string_view text, CallSink& sink) {
    switch (at_) {
      case At::kName:
        return read_name(text, sink);
      case At::kSlot:
        return read_slot(text, sink);
      case At::kBody:
        return read_body(text);
      case At::kJson:
        return read_json(text, sink);
      case At::kKeyOrEnd:
        return read_key_begin(text, sink);
      case At::kKey:
        return read_key(text);
      case At::kValue:
        return read_value(text, sink);
      case At::kLiteral:
        return read_literal(text, sink);
    }
    return {0, Verdict::kMalformed};
  }

  Progress read_name(std::string_view text, CallSink& sink) {
    const std::string_view window = text.substr(0, kNameBytesMax + 64);
    const FirstOf end = find_first(window, name_ends_);
    if (end.at == kAbsent || !end.certain) {
      return {0, window.size() < text.size() ? Verdict::kMalformed : Verdict::kNeedsMore};
    }
    name_ = core(text.substr(0, end.at));
    written_ = name_;
    if (!form_.name_prefix.empty() && name_.starts_with(form_.name_prefix)) {
      name_.erase(0, form_.name_prefix.size());
    }
    if (!is_tool_name(name_)) return {0, Verdict::kMalformed};
    const Words& literal = name_ends_[end.literal];
    const bool is_name_end = literal == tags(form_.name_end);
    const bool is_slot_end = literal == tags(form_.arguments_begin);
    const bool is_bracket = literal == Words{"("} || literal == Words{"{"};
    const std::size_t taken =
        (is_name_end || is_slot_end) && !is_bracket ? end.at + end.bytes : end.at;
    if (is_name_end && form_.has_slot) {
      at_ = At::kSlot;
      return {taken, Verdict::kGoOn};
    }
    return begin(taken, sink);
  }

  Progress read_slot(std::string_view text, CallSink& sink) {
    const std::string_view end = core(form_.arguments_begin);
    const std::string_view window = text.substr(0, kSlotBytesMax);
    const std::size_t at = window.find(end);
    if (at == kAbsent) {
      return {0, window.size() < text.size() ? Verdict::kMalformed : Verdict::kNeedsMore};
    }
    const std::string slot(core(text.substr(0, at)));
    if (form_.slot_is_id) id_ = slot;
    if (form_.call_is_id) id_ = written_ + form_.name_end + slot;
    return begin(at + end.size(), sink);
  }

  // Literal arguments are checked as a whole before their call begins.
  Progress begin(std::size_t taken, CallSink& sink) {
    const bool later = form_.arguments == ArgumentSyntax::kQuoted ||
                       form_.arguments == ArgumentSyntax::kKeywords ||
                       form_.arguments == ArgumentSyntax::kJson;
    at_ = At::kBody;
    if (later) return {taken, Verdict::kGoOn};
    begun_ = sink.begin_call(name_, id_);
    if (!begun_) return {0, Verdict::kMalformed};
    sink.add_arguments("{");
    return {taken, Verdict::kGoOn};
  }

  Progress read_body(std::string_view text) {
    if (text.empty()) return {0, Verdict::kNeedsMore};
    if (is_space(text.front())) return {1, Verdict::kGoOn};
    switch (form_.arguments) {
      case ArgumentSyntax::kJson:
        if (text.front() != '{') return {0, Verdict::kMalformed};
        at_ = At::kJson;
        break;
      case ArgumentSyntax::kTagged:
        at_ = At::kKeyOrEnd;
        break;
      default:
        at_ = At::kLiteral;
        break;
    }
    return {0, Verdict::kGoOn};
  }

  Progress read_json(std::string_view text, CallSink& sink) {
    if (text.empty()) return {0, Verdict::kNeedsMore};
    if (!begun_) {
      begun_ = sink.begin_call(name_, id_);
      if (!begun_) return {0, Verdict::kMalformed};
    }
    std::string out;
    const std::size_t taken = json_.read(text, out);
    sink.add_arguments(out);
    if (json_.state() == JsonStream::State::kDone) return {taken, Verdict::kEnd};
    if (json_.state() == JsonStream::State::kMalformed) return {taken, Verdict::kMalformed};
    return {taken, Verdict::kNeedsMore};
  }

  Progress read_literal(std::string_view text, CallSink& sink) {
    const auto end = literal_.find_end(text);
    if (!end) return {0, literal_.malformed() ? Verdict::kMalformed : Verdict::kNeedsMore};
    const auto json = form_.arguments == ArgumentSyntax::kQuoted
                          ? quoted_to_json(text.substr(0, *end), form_.quote)
                          : keywords_to_json(text.substr(0, *end));
    if (!json || !sink.begin_call(name_, id_)) return {0, Verdict::kMalformed};
    begun_ = true;
    sink.add_arguments(*json);
    return {*end, Verdict::kEnd};
  }

  // A key, or the end of the arguments, which the section's reader sees to. A key's marker may be
  // the beginning of the call's end ("<" and "</invoke>").
  Progress read_key_begin(std::string_view text, CallSink& sink) {
    if (text.empty()) return {0, Verdict::kNeedsMore};
    if (is_space(text.front())) return {1, Verdict::kGoOn};
    const Words& call_end = name_ends_[kCallEnd];
    const LiteralMatch closes =
        call_end.empty() ? LiteralMatch::kNo : match_words(text, call_end).match;
    if (closes == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
    WordsMatch key = {LiteralMatch::kNo, 0};
    if (closes == LiteralMatch::kNo) key = match_words(text, key_begin_);
    if (key.match == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
    if (key.match == LiteralMatch::kNo) {
      sink.add_arguments("}");
      return {0, Verdict::kEnd};
    }
    at_ = At::kKey;
    return {key.bytes, Verdict::kGoOn};
  }

  Progress read_key(std::string_view text) {
    const std::string_view window = text.substr(0, kNameBytesMax + 64);
    const FirstOf end = find_first(window, key_ends_);
    if (end.at == kAbsent || !end.certain) {
      return {0, window.size() < text.size() ? Verdict::kMalformed : Verdict::kNeedsMore};
    }
    key_ = core(text.substr(0, end.at));
    type_ = form_.tagged.key_ends[end.literal].type;
    if (type_ == ArgumentType::kBySchema) type_ = schemas_.type_of(name_, key_);
    lead_ = tail_space(form_.tagged.key_ends[end.literal].text);
    value_end_ = core(form_.tagged.value_end);
    if (form_.tagged.value_end_has_key) value_end_ += key_ + form_.tagged.close_end;
    value_open_ = false;
    const bool is_json = type_ == ArgumentType::kBySchema || type_ == ArgumentType::kJson;
    follows_json_ = is_json && schemas_.is_enforced(name_);
    value_json_ = JsonStream();
    value_read_ = 0;
    nested_.reset();
    if (form_.tagged.nests && is_json) nested_.emplace(form_.tagged);
    may_be_quoted_ = !form_.tagged.text_begin.empty();
    at_ = At::kValue;
    return {end.at + end.bytes, Verdict::kGoOn};
  }

  // The comma and the key before a value.
  std::string opening() {
    const std::string comma = std::exchange(first_, false) ? "" : ", ";
    return comma + "\"" + json_escaped(key_) + "\": ";
  }

  Progress read_value(std::string_view text, CallSink& sink) {
    if (text.empty()) return {0, Verdict::kNeedsMore};
    // The white space that the template writes behind a key is no part of the value.
    if (!lead_.empty()) {
      if (text.front() == lead_.front()) {
        lead_.remove_prefix(1);
        return {1, Verdict::kGoOn};
      }
      lead_ = {};
    }
    if (may_be_quoted_) return read_text_begin(text);
    if (follows_json_ && !pass_json(text)) return {0, Verdict::kNeedsMore};
    const std::size_t end = find_value_end(text);
    if (end == kAbsent) return is_text(text) ? stream_string(text, sink) : wait(text);
    const LiteralMatch ends = match_behind(text.substr(end + value_end_.size()));
    if (ends == LiteralMatch::kPartial) {
      searched_ = end;
      return {0, Verdict::kNeedsMore};
    }
    if (ends == LiteralMatch::kNo) {
      // The text of the marker is part of the value.
      nested_.reset();
      searched_ = end + 1;
      return {0, Verdict::kGoOn};
    }
    end_value(text.substr(0, end), sink);
    at_ = At::kKeyOrEnd;
    return {end + value_end_.size(), Verdict::kGoOn};
  }

  // A value between the form's quotes is a text, which ends behind the closing one.
  Progress read_text_begin(std::string_view text) {
    const LiteralMatch begins = match_start(text, form_.tagged.text_begin);
    if (begins == LiteralMatch::kPartial) return {0, Verdict::kNeedsMore};
    may_be_quoted_ = false;
    if (begins == LiteralMatch::kNo) return {0, Verdict::kGoOn};
    type_ = ArgumentType::kString;
    follows_json_ = false;
    value_end_ = form_.tagged.text_end + value_end_;
    return {form_.tagged.text_begin.size(), Verdict::kGoOn};
  }

  // Strings of JSON may contain the value's end: it is looked for behind the whole value. False:
  // the value may go on.
  bool pass_json(std::string_view text) {
    std::string out;
    value_read_ += value_json_.read(text.substr(value_read_), out);
    if (value_json_.state() == JsonStream::State::kOpen && value_read_ == text.size()) return false;
    if (value_json_.state() != JsonStream::State::kMalformed) {
      searched_ = std::max(searched_, value_read_);
    }
    return true;
  }

  void end_value(std::string_view value, CallSink& sink) {
    const std::string_view space = head_space(form_.tagged.value_end);
    if (!space.empty() && value.ends_with(space)) value.remove_suffix(space.size());
    if (value_open_) {
      sink.add_arguments(json_escaped(value) + "\"");
    } else {
      sink.add_arguments(opening() + value_json(value));
    }
    searched_ = 0;
  }

  // A value's end is one where another value or the call's end follows: strings may contain it.
  LiteralMatch match_behind(std::string_view text) const {
    const std::string_view next = text.substr(head_space(text).size());
    if (text.size() - next.size() > kSpaceMax) return LiteralMatch::kNo;
    LiteralMatch best = LiteralMatch::kNo;
    for (const std::string& word : behind_values_) best = std::max(best, match_start(next, word));
    return best;
  }

  Progress wait(std::string_view text) {
    const std::size_t reached =
        text.size() < value_end_.size() ? 0 : text.size() - value_end_.size() + 1;
    searched_ = std::max(searched_, reached);
    return {0, Verdict::kNeedsMore};
  }

  // Whether the value is a string, as far as this text of it tells.
  bool is_text(std::string_view text) const {
    if (type_ != ArgumentType::kNullableString) return type_ == ArgumentType::kString;
    constexpr std::string_view kNull = "null";
    const std::size_t lead = head_space(text).size();
    const bool may_be_null = match_start(text.substr(lead), kNull) != LiteralMatch::kNo;
    const std::size_t longest =
        lead + kNull.size() + form_.tagged.value_end.size() + value_end_.size() + kSpaceMax;
    return value_open_ || !may_be_null || text.size() > longest;
  }

  // Passes on all but what may be the value's end.
  Progress stream_string(std::string_view text, CallSink& sink) {
    const std::size_t held = value_end_.size() - 1 + head_space(form_.tagged.value_end).size();
    if (text.size() <= held) return wait(text);
    std::size_t taken = text.size() - held;
    while (taken > 0 && (static_cast<unsigned char>(text[taken]) & 0xC0) == 0x80) --taken;
    if (taken == 0) return wait(text);
    if (!std::exchange(value_open_, true)) sink.add_arguments(opening() + "\"");
    sink.add_arguments(json_escaped(text.substr(0, taken)));
    searched_ -= std::min(searched_, taken);
    return {taken, Verdict::kNeedsMore};
  }

  // Where the value's closing tag begins.
  std::size_t find_value_end(std::string_view text) {
    if (!nested_) return text.find(value_end_, searched_);
    const auto end = nested_->find_end(text, searched_);
    if (!end) return kAbsent;
    const LiteralMatch closes = match_start(text.substr(*end), value_end_);
    if (closes == LiteralMatch::kYes) return *end;
    if (closes == LiteralMatch::kPartial) return kAbsent;
    nested_.reset();  // tags that do not match are text
    return text.find(value_end_, searched_);
  }

  std::string value_json(std::string_view value) const {
    if (form_.tagged.nests) {
      const auto nested = nested_value_json(form_.tagged, value, schemas_.shape_of(name_, key_));
      if (nested) return *nested;
    }
    return tagged_value_json(type_, value);
  }

  const ToolCallForm& form_;
  const ToolSchemas& schemas_;
  std::vector<Words> name_ends_;
  Words key_begin_;
  std::vector<Words> key_ends_;
  Words behind_values_;  // what may follow a value
  At at_ = At::kName;
  std::string name_;
  std::string written_;  // the name with its prefix
  std::string id_;
  bool begun_ = false;
  JsonStream json_;
  LiteralScanner literal_;
  // The argument that is being read.
  bool first_ = true;
  std::string key_;
  ArgumentType type_ = ArgumentType::kBySchema;
  std::string_view lead_;
  std::string value_end_;
  std::size_t searched_ = 0;    // the value's end does not begin before this byte
  bool value_open_ = false;     // a part of the string was passed on
  bool may_be_quoted_ = false;  // the value may begin with the form's text_begin
  bool follows_json_ = false;
  JsonStream value_json_;
  std::size_t value_read_ = 0;           // bytes of the value that value_json_ has
  std::optional<NestedScanner> nested_;  // of values that may have tags within
};

}  // namespace

std::unique_ptr<CallReader> make_named_call_reader(const ToolCallForm& form,
                                                   const ToolSchemas& schemas) {
  return std::make_unique<NamedCallReader>(form, schemas);
}

}  // namespace pagoda::chat
