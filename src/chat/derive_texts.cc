// The markers of reasoning and content, and whether a form reads a rendering back.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "chat/answer_parser.h"
#include "chat/derive.h"
#include "chat/known_forms.h"
#include "chat/literal.h"

namespace pagoda::chat {
namespace {

constexpr std::size_t kMissing = std::string::npos;
constexpr std::size_t kTagBytesMax = 64;

std::size_t size_of(const char* word) { return std::string_view(word).size(); }

// The last tag of `head`, which stands before reasoning; empty where the tag stands before content
// as well, and so belongs to the turn.
std::string last_tag(const std::string& head, std::string_view content_head) {
  const std::size_t at = head.find_last_of("<[");
  if (at == kMissing || head.size() - at > kTagBytesMax) return {};
  const std::string tag = head.substr(at);
  return core(content_head).ends_with(core(tag)) ? std::string() : tag;
}

class TextDeriver {
 public:
  TextDeriver(const TemplateProbe& probe, std::string_view source, AnswerForm& form)
      : probe_(probe), source_(source), form_(form) {}

  void derive() {
    generation_ = probe_.generation_tail().value_or("");
    const std::string content = probe_.tail({.content = true}).value_or("");
    const std::size_t at = content.find(kProbeContent);
    if (at == kMissing) return;
    content_head_ = content.substr(0, at);
    find_content_end(content.substr(at + size_of(kProbeContent)));
    find_turn_end(content.substr(at + size_of(kProbeContent)));
    const std::string both = probe_.tail({.content = true, .reasoning = true}).value_or("");
    const std::size_t reasoning = both.find(kProbeReasoning);
    const std::size_t behind =
        reasoning == kMissing ? kMissing : both.find(kProbeContent, reasoning);
    if (behind != kMissing) {
      const std::size_t from = reasoning + size_of(kProbeReasoning);
      set_reasoning(both.substr(0, reasoning), both.substr(from, behind - from));
    } else if (!find_beside_calls()) {
      find_by_table();
    }
    if (!form_.reasoning) find_content_begin();
  }

 private:
  void find_content_end(const std::string& turn_end) {
    if (!form_.calls) return;
    const auto beside = probe_.tail({.content = true, .calls = {{0, probe_arguments(1)}}});
    if (!beside) return;
    const std::size_t at = beside->find(kProbeContent);
    if (at == kMissing || at > beside->find(kProbeNames[0])) return;
    const std::string behind = beside->substr(at + size_of(kProbeContent));
    const std::string shared = turn_end.substr(0, shared_prefix(turn_end, behind));
    if (!core(shared).empty() && shared != turn_end) form_.content_end = shared;
  }

  // The last tag is a token that ends the answer, so that its text is never seen; whole tags before
  // it are.
  void find_turn_end(std::string behind) {
    if (behind.starts_with(form_.content_end)) behind.erase(0, form_.content_end.size());
    const std::string_view all = core(behind);
    const std::size_t last = all.rfind('<');
    if (last == kMissing) return;
    const std::string_view end = core(all.substr(0, last));
    const bool is_tags = end.starts_with('<') && end.ends_with('>');
    if (is_tags && end.size() <= kTagBytesMax) form_.turn_end = end;
  }

  // Returns the tag that a prompt opens to ask for thinking; empty where the prompt without
  // thinking begins with the same text.
  std::string opened_by_prompt() const {
    const std::string off = probe_.generation_tail(false).value_or(generation_);
    const std::size_t shared = shared_prefix(generation_, off);
    if (shared == generation_.size() || off.starts_with(generation_)) return {};
    const std::size_t tag = generation_.substr(0, shared).find_last_of("<[");
    const std::string opened = generation_.substr(tag == kMissing ? shared : tag);
    return opened.size() > kTagBytesMax ? std::string() : opened;
  }

  std::string own_content_head() const {
    return content_head_.substr(shared_prefix(content_head_, generation_));
  }

  void find_content_begin() {
    const std::string own = own_content_head();
    if (!form_.content_end.empty() && !core(own).empty()) form_.content_begin = core(own);
  }

  // `gap` stands between reasoning and content.
  void set_reasoning(const std::string& head, const std::string& gap) {
    std::size_t shared = shared_suffix(content_head_, gap);
    if (shared == gap.size()) shared = 0;
    std::string opening = gap.substr(gap.size() - shared);
    const std::string own = own_content_head();
    opening = opening.substr(opening.size() - shared_suffix(opening, own));
    if (core(opening).empty()) opening.clear();
    form_.content_begin = core(opening);
    ReasoningForm reasoning;
    reasoning.end = gap.substr(0, gap.size() - opening.size());
    reasoning.begin = head.substr(shared_prefix(head, generation_));
    if (core(reasoning.begin).empty()) reasoning.begin = last_tag(head, content_head_);
    if (core(reasoning.begin).empty()) reasoning.begin = opened_by_prompt();
    if (!core(reasoning.end).empty()) form_.reasoning = std::move(reasoning);
  }

  // Some templates show reasoning before calls alone.
  bool find_beside_calls() {
    if (!form_.calls) return false;
    const auto beside = probe_.tail({.reasoning = true, .calls = {{0, probe_arguments(1)}}});
    const std::size_t at = beside ? beside->find(kProbeReasoning) : kMissing;
    const std::string marker = section_marker(*form_.calls);
    if (at == kMissing || marker.empty()) return false;
    const std::size_t from = at + size_of(kProbeReasoning);
    const std::size_t end = beside->find(marker, from);
    if (end == kMissing || core(beside->substr(from, end - from)).empty()) return false;
    ReasoningForm reasoning;
    reasoning.end = beside->substr(from, end - from);
    const std::string head = beside->substr(0, at);
    reasoning.begin = head.substr(shared_prefix(head, generation_));
    if (core(reasoning.begin).empty()) reasoning.begin = last_tag(head, content_head_);
    if (core(reasoning.begin).empty()) return false;
    form_.reasoning = std::move(reasoning);
    return true;
  }

  // A template that takes reasoning out of the history names its markers.
  void find_by_table() {
    for (const KnownReasoningForm& known : known_reasoning_forms()) {
      if (known.channels || source_.find(core(known.reasoning.end)) == kMissing) continue;
      form_.reasoning = known.reasoning;
      return;
    }
  }

  const TemplateProbe& probe_;
  std::string_view source_;
  AnswerForm& form_;
  std::string generation_;
  std::string content_head_;
};

bool ends_open(const ReasoningForm& reasoning, std::string_view text) {
  const std::string_view begin = core(reasoning.begin);
  const std::size_t closed = text.rfind(core(reasoning.end));
  if (begin.empty()) return closed == kMissing && !core(text).empty();
  const std::size_t opened = text.rfind(begin);
  return opened != kMissing && (closed == kMissing || opened > closed);
}

// The parts of a whole answer, as AnswerParser reads them.
struct ReadAnswer {
  std::string reasoning;
  std::string content;
  std::vector<std::string> names;
  std::vector<std::string> arguments;
};

ReadAnswer read_whole(const AnswerForm& form, std::string_view text, bool in_reasoning) {
  const ToolSchemas schemas(text::ChatJson::array(
      {{{"function", {{"name", kProbeNames[0]}}}}, {{"function", {{"name", kProbeNames[1]}}}}}));
  AnswerParser parser(form, schemas, {.in_reasoning = in_reasoning});
  ReadAnswer read;
  const auto add = [&](const std::vector<AnswerEvent>& events) {
    for (const AnswerEvent& event : events) {
      switch (event.kind) {
        case AnswerEvent::Kind::kReasoning:
          read.reasoning += event.text;
          break;
        case AnswerEvent::Kind::kContent:
          read.content += event.text;
          break;
        case AnswerEvent::Kind::kCallBegin:
          read.names.push_back(event.text);
          read.arguments.emplace_back();
          break;
        case AnswerEvent::Kind::kArguments:
          read.arguments.back() += event.text;
          break;
      }
    }
  };
  add(parser.push(text));
  add(parser.finish());
  return read;
}

// The bytes at the end of an answer that end its turn. `behind` follows content that ends a turn.
std::size_t turn_end_bytes(std::string_view text, std::string_view behind) {
  const std::size_t at = core(behind).empty() ? kMissing : text.find(core(behind));
  return at == kMissing ? shared_suffix(text, behind) : text.size() - at;
}

bool reads(const TemplateProbe& probe, const AnswerForm& form, const ProbeMessage& message,
           const std::string& written) {
  const std::string generation = probe.generation_tail().value_or("");
  const std::string content = probe.tail({.content = true}).value_or("");
  const std::size_t at = content.find(kProbeContent);
  if (at == kMissing) return false;
  std::string_view text = written;
  bool open = false;
  if (text.starts_with(generation)) {
    text.remove_prefix(generation.size());
    open = form.reasoning && ends_open(*form.reasoning, generation);
  } else {
    // The answer begins where the generation prompt of another turn would end.
    std::size_t begin =
        std::max(shared_prefix(text, generation), shared_prefix(text, content.substr(0, at)));
    if (form.reasoning && text.find(kProbeReasoning) != kMissing) {
      const std::string_view opening = core(form.reasoning->begin);
      open = opening.empty();
      if (!open) begin = std::min(begin, text.rfind(opening, text.find(kProbeReasoning)));
    }
    text.remove_prefix(std::min(begin, text.size()));
  }
  std::string behind = content.substr(at + size_of(kProbeContent));
  if (behind.starts_with(form.content_end)) behind.erase(0, form.content_end.size());
  if (core(behind).empty()) behind = probe.late_end(text);
  const std::size_t name = text.find(kProbeNames[0]);
  text = text.substr(0, text.size() - turn_end_bytes(text, behind));
  // Content in a turn of its own says nothing about calls.
  if (message.content && name != kMissing && text.size() < name) return true;

  const ReadAnswer read = read_whole(form, text, open);
  if (read.names.size() != message.calls.size()) return false;
  for (std::size_t i = 0; i < message.calls.size(); ++i) {
    const auto parsed = text::ChatJson::parse(read.arguments[i], nullptr, false);
    if (read.names[i] != kProbeNames[message.calls[i].name]) return false;
    if (parsed != message.calls[i].arguments) return false;
  }
  const bool has_content = text.find(kProbeContent) != kMissing;
  const bool has_reasoning = text.find(kProbeReasoning) != kMissing;
  return core(read.content) == (has_content ? kProbeContent : "") &&
         core(read.reasoning) == (has_reasoning ? kProbeReasoning : "");
}

}  // namespace

void derive_texts(const TemplateProbe& probe, std::string_view source, AnswerForm& form) {
  TextDeriver(probe, source, form).derive();
}

bool reads_back(const TemplateProbe& probe, const AnswerForm& form, std::size_t calls_max) {
  const std::vector<ProbeCall> one = {{0, probe_arguments(2)}};
  const std::vector<ProbeCall> two = {{0, probe_arguments(2)}, {1, probe_arguments(1)}};
  bool any = false;
  for (const ProbeMessage& message :
       {ProbeMessage{.calls = one}, ProbeMessage{.calls = two},
        ProbeMessage{.content = true, .calls = two},
        ProbeMessage{.content = true, .reasoning = true, .calls = one},
        ProbeMessage{.content = true, .reasoning = true, .calls = two}}) {
    if (message.calls.size() > calls_max) continue;
    const auto written = probe.tail(message);
    // A template that refuses a message, or shows its first call alone, says nothing about it.
    if (!written) continue;
    const bool shows_all = std::all_of(
        message.calls.begin(), message.calls.end(),
        [&](const ProbeCall& call) { return written->find(kProbeNames[call.name]) != kMissing; });
    if (!shows_all) continue;
    if (!reads(probe, form, message, *written)) return false;
    any = true;
  }
  return any;
}

bool opens_reasoning(const AnswerForm& form, const text::OriginText& prompt) {
  if (form.channels || !form.reasoning) return false;
  // The text behind the last message is the generation prompt.
  std::size_t begin = 0;
  const auto runs = prompt.runs();
  for (std::size_t i = runs.size(); i-- > 0;) {
    if (runs[i].origin.source == text::Source::kTemplate) continue;
    // A message that the answer continues is part of the answer.
    const bool continued = i + 1 == runs.size();
    begin = continued ? (i == 0 ? 0 : runs[i - 1].end) : runs[i].end;
    break;
  }
  return ends_open(*form.reasoning, prompt.bytes().substr(begin));
}

bool closes_reasoning(const AnswerForm& form, const text::OriginText& prompt) {
  return form.reasoning && core(prompt.bytes()).ends_with(core(form.reasoning->end));
}

}  // namespace pagoda::chat
