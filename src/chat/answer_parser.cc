#include "chat/answer_parser.h"

#include <algorithm>
#include <utility>

#include "chat/call_id.h"
#include "chat/literal.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kLeadingSpaceMax = 64;  // white space that is held back before content

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
    channels_.emplace(options.reads_calls);
    return;
  }
  if (form.reasoning) {
    add_marker(form.reasoning->begin, MarkerKind::kReasoningBegin);
    add_marker(form.reasoning->end, MarkerKind::kReasoningEnd);
  }
  add_marker(form.content_begin, MarkerKind::kContentEdge);
  add_marker(form.content_end, MarkerKind::kContentEdge);
  if (!options.reads_calls || !form.calls) return;
  add_marker(section_marker(*form.calls), MarkerKind::kCalls, form.calls->before);
  for (const std::string& begin : form.calls->other_begins) {
    add_marker(begin, MarkerKind::kOtherCalls, form.calls->before);
  }
}

void AnswerParser::add_marker(std::string_view literal, MarkerKind kind, std::string_view before) {
  if (core(literal).empty()) return;
  const std::string_view space = before.empty() ? head_space(literal) : before;
  markers_.push_back(
      {std::string(core(literal)), kind, std::string(space), std::string(tail_space(literal))});
  space_max_ = std::max(space_max_, space.size());
}

bool AnswerParser::is_sought(const Marker& marker) const {
  switch (marker.kind) {
    case MarkerKind::kReasoningEnd:
      return in_reasoning_;
    case MarkerKind::kReasoningBegin:
      return !in_reasoning_;
    case MarkerKind::kContentEdge:
      return !in_reasoning_;
    default:
      return true;
  }
}

std::vector<AnswerEvent> AnswerParser::push(std::string_view piece) {
  buffer_ += piece;
  run();
  const std::size_t kept = mark_ ? std::min(*mark_, at_) : at_;
  buffer_.erase(0, kept);
  at_ -= kept;
  if (mark_) *mark_ -= kept;
  return std::exchange(events_, {});
}

std::vector<AnswerEvent> AnswerParser::finish() {
  finishing_ = true;
  run();
  if (reader_ && call_open_) {
    reader_->finish(rest(), *this);
    at_ = buffer_.size();
    end_call();
  } else if (reader_ && mark_) {
    at_ = buffer_.size();
    const std::string_view held = std::string_view(buffer_).substr(*mark_);
    if (calls_ == 0 || !core(held).empty()) emit_text(held);
  }
  return std::exchange(events_, {});
}

void AnswerParser::run() {
  if (channels_) {
    const auto emit_kind = [this](AnswerEvent::Kind kind, std::string_view text) {
      emit({kind, std::string(text)});
    };
    at_ += channels_->read(rest(), finishing_, emit_kind, *this);
    return;
  }
  while (!ended_ && (reader_ ? step_calls() : step_text())) {
  }
}

// Each step returns whether another may follow.
bool AnswerParser::step_text() {
  if (skip_space()) return true;
  if (rest().empty()) return false;
  if (anchored_ && !in_reasoning_) return step_anchored();
  const std::string_view text = rest();
  const auto found = find_marker(text);
  std::size_t end = found ? found->at : text.size();
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

// Nothing but white space before the first marker is no content, unless it is long: what is held
// back is looked at again with every piece.
bool AnswerParser::is_leading_space(std::string_view text) const {
  return is_leading_ && !in_reasoning_ && !markers_.empty() && text.size() <= kLeadingSpaceMax &&
         core(text).empty();
}

bool AnswerParser::skip_space() {
  const std::string_view text = rest();
  if (text.empty() || (skip_.empty() && !skip_all_space_)) return false;
  if (skip_all_space_ ? is_space(text.front()) : text.front() == skip_.front()) {
    if (!skip_all_space_) skip_.remove_prefix(1);
    ++at_;
    return true;
  }
  skip_ = {};
  skip_all_space_ = false;
  return false;
}

// Calls that nothing announces stand at the start of the content.
bool AnswerParser::step_anchored() {
  const std::string_view text = rest();
  const std::size_t space = head_space(text).size();
  if (space == text.size() && !finishing_ && space <= kLeadingSpaceMax) return false;
  anchored_ = false;
  const char first = space < text.size() ? text[space] : ' ';
  const bool json = form_.calls->syntax == CallSyntax::kJsonObject;
  if (first != '[' && !(json && first == '{')) return true;
  const std::size_t mark = at_;
  at_ += space;
  open_section(mark, true, true);
  return true;
}

std::optional<AnswerParser::Found> AnswerParser::find_marker(std::string_view text) const {
  bool has_content = has_content_;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Marker* best = nullptr;
    for (const Marker& marker : markers_) {
      if (marker.text.front() != text[at] || !is_sought(marker)) continue;
      // Behind content the marker is a word that the model writes about.
      if (marker.kind == MarkerKind::kReasoningBegin && has_content) continue;
      const LiteralMatch match = match_start(text.substr(at), marker.text);
      if (match == LiteralMatch::kPartial && !finishing_) return Found{at, nullptr};
      const bool longer = best == nullptr || marker.text.size() > best->text.size();
      if (match == LiteralMatch::kYes && longer) best = &marker;
    }
    if (best != nullptr) return Found{at, best};
    has_content = has_content || !is_space(text[at]);
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
      break;
    case MarkerKind::kCalls:
    case MarkerKind::kOtherCalls:
      open_section(*mark_, marker.kind == MarkerKind::kOtherCalls, in_reasoning_);
      return;
  }
  mark_.reset();
  skip_ = marker.after;
}

void AnswerParser::open_section(std::size_t mark, bool other, bool needs_known_name) {
  mark_ = mark;
  needs_known_name_ = needs_known_name;
  reader_ = make_section_reader(*form_.calls, schemas_, other);
}

bool AnswerParser::step_calls() {
  const Progress progress = reader_->read(rest(), *this);
  at_ += progress.taken;
  if (!call_open_ && reader_->settled()) mark_ = at_;
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
  mark_.reset();
  skip_all_space_ = true;
}

void AnswerParser::give_up_section() {
  reader_.reset();
  if (call_open_) end_call();
  if (ended_ || !mark_) return;
  const std::size_t mark = *std::exchange(mark_, std::nullopt);
  emit_text(std::string_view(buffer_).substr(mark, at_ - mark));
}

bool AnswerParser::begin_call(std::string_view name, std::string_view id) {
  if (needs_known_name_ && !schemas_.contains(name)) return false;
  if (options_.single_call && calls_ == 1) {
    ended_ = true;
    return false;
  }
  in_reasoning_ = false;
  mark_.reset();
  call_open_ = true;
  std::string own =
      id.empty() ? make_call_id(form_.ids, options_.id_seed, calls_, name) : std::string(id);
  emit({AnswerEvent::Kind::kCallBegin, std::string(name), calls_, std::move(own)});
  ++calls_;
  return true;
}

void AnswerParser::add_arguments(std::string_view piece) {
  if (!piece.empty()) emit({AnswerEvent::Kind::kArguments, std::string(piece), calls_ - 1});
}

void AnswerParser::end_call() { call_open_ = false; }

void AnswerParser::emit_text(std::string_view text) {
  if (text.empty()) return;
  if (!in_reasoning_ && !core(text).empty()) has_content_ = true;
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
