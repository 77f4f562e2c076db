#include "chat/answer_parser.h"

#include <algorithm>
#include <utility>

#include "chat/call_id.h"
#include "chat/call_literals.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kLeadingSpaceMax = 64;  // white space that is held back before content
constexpr int kAgainMax = 8;                  // each time reads all that is left

}  // namespace

AnswerParser::AnswerParser(const AnswerForm& form, const ToolSchemas& schemas,
                           const AnswerOptions& options)
    : form_(form),
      schemas_(schemas),
      options_(options),
      in_reasoning_(options.in_reasoning && form.reasoning.has_value()),
      has_anchor_(options.reads_calls && form.calls && section_marker(*form.calls).empty()),
      anchored_(has_anchor_) {
  if (form.channels) {
    channels_.emplace(options.reads_calls, schemas, as_written());
    return;
  }
  if (form.reasoning) {
    add_marker(form.reasoning->begin, MarkerKind::kReasoningBegin);
    add_marker(form.reasoning->end, MarkerKind::kReasoningEnd);
  }
  add_marker(form.content_begin, MarkerKind::kContentEdge);
  add_marker(form.content_end, MarkerKind::kContentEdge);
  add_marker(form.turn_end, MarkerKind::kTurnEnd);
  if (options.reads_calls && form.calls) add_call_markers(*form.calls);
}

void AnswerParser::add_call_markers(const ToolCallForm& calls) {
  add_marker(section_marker(calls), MarkerKind::kCalls, calls.before);
  if (as_written()) return;
  add_marker(inner_marker(calls), MarkerKind::kInnerCalls, calls.before);
  for (const std::string& begin : calls.other_begins) {
    add_marker(begin, MarkerKind::kOtherCalls, calls.before);
  }
}

void AnswerParser::add_marker(std::string_view literal, MarkerKind kind, std::string_view before) {
  if (core(literal).empty()) return;
  const std::string_view space = before.empty() ? head_space(literal) : before;
  markers_.push_back(
      {std::string(core(literal)), kind, std::string(space), std::string(tail_space(literal))});
  space_max_ = std::max(space_max_, space.size());
}

// `behind_words`: something that is not white space stands before the marker. A marker that begins
// reasoning is a word that the model writes about then. Within reasoning that the prompt has begun,
// some models begin it again.
bool AnswerParser::is_sought(const Marker& marker, bool behind_words) const {
  switch (marker.kind) {
    case MarkerKind::kReasoningEnd:
      return in_reasoning_;
    case MarkerKind::kReasoningBegin:
      return !behind_words;
    case MarkerKind::kContentEdge:
      return !in_reasoning_;
    case MarkerKind::kTurnEnd:
      return true;
    default:
      if (as_written() && in_reasoning_) return false;
      if (behind_words && options_.calls >= CallReading::kFirst) return false;
      return again_ < kAgainMax;
  }
}

std::vector<AnswerEvent> AnswerParser::push(std::string_view piece) {
  buffer_ += piece;
  run();
  const std::size_t kept = mark_ ? std::min(*mark_, at_) : at_;
  buffer_.erase(0, kept);
  at_ -= kept;
  if (mark_) *mark_ -= kept;
  mark_end_ -= std::min(mark_end_, kept);
  return std::exchange(events_, {});
}

std::vector<AnswerEvent> AnswerParser::finish() {
  finishing_ = true;
  do {
    run();
  } while (seek_again());
  if (reader_ && call_open_) {
    const CallRest left = reader_->finish(rest(), *this);
    at_ = buffer_.size();
    end_call();
    reader_.reset();
    mark_.reset();
    cut_within_call_ = !left.whole;
    emit_text(left.text);
  }
  return std::exchange(events_, {});
}

// At the end of the answer: text that might have become calls is read again as what it is now.
// Returns whether there is any.
bool AnswerParser::seek_again() {
  if (ended_ || call_open_ || !mark_ || channels_) return false;
  if (behind_draft_ || (is_draft_ && reader_ && reader_->settled())) {
    // The answer ends with what its reasoning drafted: these are its calls.
    reader_.reset();
    behind_draft_ = is_draft_ = in_reasoning_ = false;
    at_ = *std::exchange(mark_, std::nullopt);
    return true;
  }
  if (!reader_) return false;
  reader_.reset();
  if (as_written()) {
    // A call that was cut off before its arguments.
    mark_.reset();
    at_ = buffer_.size();
    return false;
  }
  const std::size_t mark = *std::exchange(mark_, std::nullopt);
  const std::string_view held = std::string_view(buffer_).substr(mark);
  at_ = std::max(mark, std::min(mark_end_, buffer_.size()));
  if (calls_ > 0 && core(held).empty()) return false;
  emit_text(held.substr(0, at_ - mark));
  anchored_ = is_draft_ = false;
  ++again_;
  return true;
}

void AnswerParser::run() {
  if (channels_) {
    const auto emit_kind = [this](AnswerEvent::Kind kind, std::string_view text) {
      const bool is_content = kind == AnswerEvent::Kind::kContent;
      if (is_content && options_.calls == CallReading::kAlone) return;
      emit({kind, std::string(text)});
    };
    at_ += channels_->read(rest(), finishing_, emit_kind, *this);
    if (finishing_) cut_within_call_ = channels_->was_cut();
    return;
  }
  while (!ended_ && (reader_ ? step_calls() : step_text())) {
  }
}

// Each step returns whether another may follow.
bool AnswerParser::step_text() {
  if (behind_draft_) return step_behind_draft();
  if (behind_calls_) return step_behind_calls();
  if (skip_space()) return true;
  if (rest().empty()) return false;
  if (anchored_ && !in_reasoning_) return step_anchored();
  const std::string_view text = rest();
  const auto found = find_marker(text);
  std::size_t end = found ? found->at : text.size();
  if (found && found->marker != nullptr && found->marker->kind == MarkerKind::kTurnEnd) {
    return step_turn_end(text, *found);
  }
  if (found && found->marker != nullptr) {
    const std::string_view before = found->marker->before;
    for (std::size_t i = 0; i < before.size(); ++i) {
      // The longest end of the marker's white space that the text has.
      if (text.substr(0, end).ends_with(before.substr(i))) {
        end -= before.size() - i;
        break;
      }
    }
    if (is_leading_space(text.substr(0, end))) end = 0;
    emit_text(text.substr(0, end));
    const std::size_t mark = at_ + end;
    at_ += found->at + found->marker->text.size();
    mark_ = mark;
    mark_end_ = at_;
    enter(*found->marker);
    return true;
  }
  if (finishing_) {
    end = text.size();
  } else {
    for (std::size_t i = 0; i < space_max_ && end > 0 && is_space(text[end - 1]); ++i) --end;
  }
  if (!finishing_ && is_leading_space(text.substr(0, end))) return false;
  emit_text(text.substr(0, end));
  at_ += end;
  return false;
}

bool AnswerParser::step_turn_end(std::string_view text, const Found& found) {
  const std::size_t behind = found.at + found.marker->text.size();
  const std::string_view rest_of_text = text.substr(behind);
  const bool may_end = core(rest_of_text).empty() && rest_of_text.size() <= kLeadingSpaceMax;
  const std::size_t taken = may_end ? found.at : behind;
  emit_text(text.substr(0, taken));
  at_ += taken;
  if (may_end && finishing_) at_ = buffer_.size();
  return !may_end;
}

// Nothing but white space before the first marker is no content, unless it is long: what is held
// back is looked at again with every piece.
bool AnswerParser::is_leading_space(std::string_view text) const {
  return is_leading_ && !in_reasoning_ && !markers_.empty() && text.size() <= kLeadingSpaceMax &&
         core(text).empty();
}

bool AnswerParser::skip_space() {
  const std::string_view text = rest();
  if (text.empty() || skip_.empty()) return false;
  if (text.front() == skip_.front()) {
    skip_.remove_prefix(1);
    ++at_;
    return true;
  }
  skip_ = {};
  return false;
}

// Whether the text begins with a marker of calls.
LiteralMatch AnswerParser::match_calls(std::string_view text) const {
  LiteralMatch best = LiteralMatch::kNo;
  for (const Marker& marker : markers_) {
    if (is_of_calls(marker.kind)) best = std::max(best, match_start(text, marker.text));
  }
  return best;
}

// White space behind calls is content where words follow it and others came before.
bool AnswerParser::step_behind_calls() {
  const std::string_view text = rest();
  const std::size_t space = head_space(text).size();
  const LiteralMatch next = match_calls(text.substr(space));
  const bool is_long = space > kLeadingSpaceMax;
  const bool ends = space == text.size();
  if ((ends || next == LiteralMatch::kPartial) && !finishing_ && !is_long) return false;
  behind_calls_ = false;
  const bool is_content = has_content_ && next != LiteralMatch::kYes && !ends;
  if (!is_content && !is_long) at_ += space;
  return !rest().empty();
}

// Other calls may follow those of a draft; anything else shows that it was one.
bool AnswerParser::step_behind_draft() {
  const std::string_view text = rest();
  const std::size_t space = head_space(text).size();
  const bool is_long = space > kLeadingSpaceMax;
  if (space == text.size() && !is_long) return false;
  const auto found = is_long ? std::nullopt : find_marker(text.substr(space));
  const bool is_next = found && found->at == 0;
  if (is_next && found->marker == nullptr) return false;
  behind_draft_ = false;
  if (is_next && is_of_calls(found->marker->kind)) {
    // The section goes on from the mark of the first.
    at_ += space + found->marker->text.size();
    enter(*found->marker);
    return true;
  }
  const std::size_t mark = *std::exchange(mark_, std::nullopt);
  emit_text(std::string_view(buffer_).substr(mark, at_ - mark));
  return true;
}

// Whether the text begins calls that nothing announces. Where other content may begin alike, that
// takes all that stands before the arguments of a tool's call.
LiteralMatch AnswerParser::match_bare(std::string_view text) const {
  if (options_.calls != CallReading::kFirst) {
    return match_start(text.substr(head_space(text).size()), bare_opening(*form_.calls));
  }
  LiteralMatch best = LiteralMatch::kNo;
  for (const std::string& name : schemas_.names()) {
    best = std::max(best, match_start(text, calls_announcement(*form_.calls, name)));
  }
  return best;
}

// Calls that nothing announces stand at the start of the content.
bool AnswerParser::step_anchored() {
  const std::string_view text = rest();
  const std::size_t space = head_space(text).size();
  if (space == text.size() && !finishing_ && space <= kLeadingSpaceMax) return false;
  if (as_written()) {
    const LiteralMatch opens = match_bare(text);
    if (opens == LiteralMatch::kPartial && !finishing_ && space <= kLeadingSpaceMax) return false;
    if (opens != LiteralMatch::kYes) {
      anchored_ = false;
      return true;
    }
  }
  anchored_ = false;
  const char first = space < text.size() ? text[space] : ' ';
  const bool json = form_.calls->syntax == CallSyntax::kJsonObject;
  if (first != '[' && !(json && first == '{')) return true;
  const std::size_t mark = at_;
  at_ += space;
  mark_end_ = at_ + 1;
  open_section(mark, SectionStart::kBare);
  return true;
}

std::optional<AnswerParser::Found> AnswerParser::find_marker(std::string_view text) const {
  bool behind_words = in_reasoning_ ? has_reasoning_ : has_content_;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Marker* best = nullptr;
    for (const Marker& marker : markers_) {
      if (marker.text.front() != text[at] || !is_sought(marker, behind_words)) continue;
      const LiteralMatch match = match_start(text.substr(at), marker.text);
      if (match == LiteralMatch::kPartial && !finishing_) return Found{at, nullptr};
      const bool longer = best == nullptr || marker.text.size() > best->text.size();
      if (match == LiteralMatch::kYes && longer) best = &marker;
    }
    if (best != nullptr) return Found{at, best};
    behind_words = behind_words || !is_space(text[at]);
  }
  return std::nullopt;
}

void AnswerParser::enter(const Marker& marker) {
  switch (marker.kind) {
    case MarkerKind::kReasoningBegin:
    case MarkerKind::kReasoningEnd:
      in_reasoning_ = marker.kind == MarkerKind::kReasoningBegin;
      anchored_ = has_anchor_;
      break;
    case MarkerKind::kContentEdge:
    case MarkerKind::kTurnEnd:
      break;
    case MarkerKind::kCalls:
      return open_section(*mark_, SectionStart::kSection);
    case MarkerKind::kOtherCalls:
      return open_section(*mark_, SectionStart::kOther);
    case MarkerKind::kInnerCalls:
      return open_section(*mark_, SectionStart::kInner);
  }
  mark_.reset();
  skip_ = marker.after;
}

void AnswerParser::open_section(std::size_t mark, SectionStart start) {
  mark_ = mark;
  is_draft_ = in_reasoning_;
  needs_known_name_ =
      in_reasoning_ || start == SectionStart::kBare || start == SectionStart::kInner;
  reader_ = make_section_reader(*form_.calls, schemas_, start);
}

bool AnswerParser::step_calls() {
  const Progress progress = reader_->read(rest(), *this);
  at_ += progress.taken;
  if (!call_open_ && !is_draft_ && reader_->settled()) mark_ = mark_end_ = at_;
  switch (progress.verdict) {
    case Progress::Verdict::kGoOn:
      return true;
    case Progress::Verdict::kNeedsMore:
      return false;
    case Progress::Verdict::kEnd:
      close_section();
      return true;
    case Progress::Verdict::kMalformed:
      give_up_section();
      return true;
  }
  return false;
}

void AnswerParser::close_section() {
  reader_.reset();
  behind_draft_ = is_draft_;
  behind_calls_ = !is_draft_;
  if (!is_draft_) mark_.reset();
}

void AnswerParser::give_up_section() {
  reader_.reset();
  if (call_open_) end_call();
  if (ended_ || !mark_) return;
  const std::size_t mark = *std::exchange(mark_, std::nullopt);
  emit_text(std::string_view(buffer_).substr(mark, at_ - mark));
}

bool AnswerParser::begin_call(std::string_view name, std::string_view id) {
  if ((needs_known_name_ || as_written()) && !schemas_.contains(name)) return false;
  if (is_draft_) return true;
  if (options_.single_call && calls_ == 1) {
    ended_ = true;
    return false;
  }
  mark_.reset();
  call_open_ = true;
  std::string own(id);
  if (!is_call_id(form_.ids, id) || !ids_.emplace(id).second) {
    std::uint32_t number = calls_;
    do {
      own = make_call_id(form_.ids, options_.id_seed, number++, name);
    } while (!ids_.insert(own).second);
  }
  emit({AnswerEvent::Kind::kCallBegin, std::string(name), calls_, std::move(own)});
  ++calls_;
  return true;
}

void AnswerParser::add_arguments(std::string_view piece) {
  if (piece.empty() || is_draft_) return;
  emit({AnswerEvent::Kind::kArguments, std::string(piece), calls_ - 1});
}

void AnswerParser::end_call() { call_open_ = false; }

void AnswerParser::emit_text(std::string_view text) {
  if (text.empty() || (!in_reasoning_ && options_.calls == CallReading::kAlone)) return;
  if (!core(text).empty()) (in_reasoning_ ? has_reasoning_ : has_content_) = true;
  if (!in_reasoning_) is_leading_ = false;
  emit({in_reasoning_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kContent,
        std::string(text)});
}

// Neighbours of one kind are one event.
void AnswerParser::emit(AnswerEvent event) {
  if (ended_) return;
  const bool joins = !events_.empty() && event.kind != AnswerEvent::Kind::kCallBegin &&
                     events_.back().kind == event.kind && events_.back().call == event.call;
  if (joins) {
    events_.back().text += event.text;
  } else {
    events_.push_back(std::move(event));
  }
}

}  // namespace pagoda::chat
