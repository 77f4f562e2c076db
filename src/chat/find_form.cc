#include <fmt/format.h>

#include <algorithm>

#include "chat/call_reader.h"
#include "chat/derive.h"
#include "chat/known_forms.h"
#include "chat/literal.h"

namespace pagoda::chat {
namespace {

bool has_signs(const KnownToolForm& known, std::string_view source) {
  const auto has = [&](std::string_view sign) {
    return source.find(sign) != std::string_view::npos;
  };
  return std::any_of(known.signs.begin(), known.signs.end(), [&](const auto& signs) {
    return std::all_of(signs.begin(), signs.end(), has);
  });
}

CallIdStyle find_ids(const TemplateProbe& probe) {
  const ProbeMessage nine = {.calls = {{0, probe_arguments(1)}}};
  if (!probe.tail(nine)) return CallIdStyle::kAny;
  // Some templates want nine exactly, others (vLLM's of Mistral) nine at least and show the last.
  for (const char* const other : {"call_0123456789abcdef01234567", "call_1"}) {
    ProbeMessage message = nine;
    message.id = other;
    if (!probe.tail(message)) return CallIdStyle::kNine;
  }
  return CallIdStyle::kAny;
}

void use_known(const KnownToolForm& known, AnswerForm& form) {
  form.name = known.names.front();
  form.calls = known.calls;
  form.channels = known.channels;
  if (known.ids != CallIdStyle::kAny) form.ids = known.ids;
}

class FormFinder {
 public:
  explicit FormFinder(const text::ChatTemplate& chat) : chat_(chat), probe_(chat) {
    found_.shows_tools = probe_.shows_tools();
    found_.form.ids = find_ids(probe_);
    const auto shown = probe_.tail({.calls = {{0, probe_arguments(1)}}});
    found_.shows_calls = shown && shown->find(kProbeNames[0]) != std::string::npos;
  }

  FoundForm find() {
    for (const KnownToolForm& known : known_tool_forms()) {
      if (known.sure && has_signs(known, chat_.source())) return take(known);
    }
    // A template may write several calls in a way that no model was trained on.
    for (const std::size_t calls_max : {2, 1}) {
      if (derive(calls_max)) return finished();
    }
    for (const KnownToolForm& known : known_tool_forms()) {
      if (!has_signs(known, chat_.source())) continue;
      // A form that the template contradicts is another family's.
      AnswerForm form = found_.form;
      use_known(known, form);
      derive_texts(probe_, chat_.source(), form);
      if (!found_.shows_calls || reads_back(probe_, form, 1)) return take(known);
    }
    if (found_.shows_tools || found_.shows_calls) {
      // The model was trained on something else than the generic form.
      found_.form.name = found_.calls_from = "none";
      found_.unreadable_calls = true;
    } else {
      found_.form.name = found_.calls_from = "generic";
      found_.form.generic = true;
      found_.form.calls = generic_tool_form();
    }
    derive_texts(probe_, chat_.source(), found_.form);
    return finished();
  }

 private:
  bool derive(std::size_t calls_max) {
    auto calls = derive_calls(probe_);
    if (!calls) return false;
    AnswerForm form = found_.form;
    form.name = "derived";
    form.calls = std::move(calls);
    derive_texts(probe_, chat_.source(), form);
    if (!reads_back(probe_, form, calls_max)) return false;
    add_table(form);
    found_.form = std::move(form);
    found_.calls_from = "derived";
    return true;
  }

  // Adds from the table what the template describes to the model but does not write itself: a
  // marker of bare objects (Phi-4-mini), a place for the id (Devstral).
  void add_table(AnswerForm& form) const {
    for (const KnownToolForm& known : known_tool_forms()) {
      if (!has_signs(known, chat_.source())) continue;
      const std::string marker = section_marker(known.calls);
      if (section_marker(*form.calls).empty()) {
        const bool same = known.calls.syntax == form.calls->syntax;
        if (same && !marker.empty()) form.calls->other_begins.push_back(marker);
      } else if (known.calls.has_slot && !form.calls->has_slot) {
        AnswerForm with_slot = form;
        with_slot.calls = known.calls;
        with_slot.calls->before = form.calls->before;
        if (reads_back(probe_, with_slot, 1)) form = std::move(with_slot);
      }
    }
  }

  FoundForm take(const KnownToolForm& known) {
    use_known(known, found_.form);
    found_.calls_from = "table";
    if (!known.channels) derive_texts(probe_, chat_.source(), found_.form);
    return finished();
  }

  FoundForm finished() {
    const AnswerForm& form = found_.form;
    found_.reasoning_from = form.channels || form.reasoning ? "derived" : "none";
    return std::move(found_);
  }

  const text::ChatTemplate& chat_;
  TemplateProbe probe_;
  FoundForm found_;
};

}  // namespace

Result<FoundForm> find_form(const text::ChatTemplate& chat, const FormOverrides& overrides) {
  const KnownToolForm* tools = nullptr;
  const KnownReasoningForm* reasoning = nullptr;
  if (!overrides.tool_parser.empty()) {
    tools = find_tool_form(overrides.tool_parser);
    if (tools == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("`tool_call_parser`: unknown parser \"{}\", known are {}",
                               overrides.tool_parser, list_tool_forms())};
    }
  }
  if (!overrides.reasoning_parser.empty()) {
    reasoning = find_reasoning_form(overrides.reasoning_parser);
    if (reasoning == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("`reasoning_parser`: unknown parser \"{}\", known are {}",
                               overrides.reasoning_parser, list_reasoning_forms())};
    }
  }
  FoundForm found = FormFinder(chat).find();
  if (tools != nullptr) {
    found.form.generic = false;
    use_known(*tools, found.form);
    found.calls_from = "flag";
  }
  if (reasoning != nullptr) {
    found.form.channels = found.form.channels || reasoning->channels;
    // The template's white space is kept where its markers are those that were asked for.
    const std::optional<ReasoningForm>& derived = found.form.reasoning;
    const bool same =
        derived && derived->end.find(core(reasoning->reasoning.end)) != std::string::npos;
    if (!same) found.form.reasoning = reasoning->reasoning;
    found.reasoning_from = "flag";
  }
  return found;
}

}  // namespace pagoda::chat
