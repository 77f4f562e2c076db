// Any text is read to the same reasoning, content and calls however it is cut. The first byte
// chooses the form and whether the prompt has opened the reasoning, the second the cuts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "chat/answer_parser.h"
#include "chat/known_forms.h"

namespace pagoda::chat {
namespace {

const ToolSchemas& fuzz_schemas() {
  static const ToolSchemas kSchemas(nlohmann::ordered_json::parse(
      R"([{"function": {"name": "f", "parameters": {"properties": {"s": {"type": "string"},
          "n": {"type": "integer"}}}}}])"));
  return kSchemas;
}

// Everything that was read, in order, as one text.
std::string transcript(const AnswerForm& form, std::string_view text, bool in_reasoning,
                       std::uint8_t cuts) {
  AnswerParser parser(form, fuzz_schemas(),
                      {.in_reasoning = in_reasoning, .single_call = cuts % 7 == 6});
  std::string all;
  char last = ' ';
  const auto add = [&](const std::vector<AnswerEvent>& events) {
    for (const AnswerEvent& event : events) {
      const char kind = "rcba"[static_cast<int>(event.kind)];
      if (kind != last || kind == 'b') all += std::string("\n") + kind + std::to_string(event.call);
      all += event.text + event.id;
      last = kind;
    }
  };
  std::uint32_t state = cuts;
  while (!text.empty()) {
    state = state * 1664525U + 1013904223U;
    const std::size_t bytes = cuts % 7 == 0 ? text.size() : 1 + (state >> 24) % 9;
    add(parser.push(text.substr(0, bytes)));
    text.remove_prefix(std::min(bytes, text.size()));
  }
  add(parser.finish());
  return all;
}

}  // namespace
}  // namespace pagoda::chat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda::chat;
  if (size < 2) return 0;
  const auto forms = known_tool_forms();
  const KnownToolForm& known = forms[(data[0] & 0x7F) % forms.size()];
  const bool in_reasoning = (data[0] & 0x80) != 0;
  AnswerForm form;
  form.calls = known.calls;
  form.channels = known.channels;
  form.reasoning = ReasoningForm{"<think>\n", "\n</think>\n\n"};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::uint8_t cuts = data[1];
  const std::uint8_t whole = cuts % 7 == 6 ? 6 : 0;
  ASSERT(transcript(form, text, in_reasoning, whole) == transcript(form, text, in_reasoning, cuts),
         "a cut changes the answer");
  return 0;
}
