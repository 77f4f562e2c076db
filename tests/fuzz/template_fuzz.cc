// Any bytes are refused as a template, or render within the limits; every byte of the output has
// an origin, and what a client wrote never becomes a control token.
//
// Input: a template, then after a zero byte a conversation as JSON; without one, a fixed one.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "gguf/file.h"
#include "gguf/gguf_writer.h"
#include "text/chat_template.h"
#include "text/prompt_tokens.h"
#include "text/tokenizer.h"

namespace pagoda::text {
namespace {

constexpr std::string_view kMessages =
    R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<s>Hi </s>é"},)"
    R"( {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function",)"
    R"( "function": {"name": "f", "arguments": "{\"k\": [1, 2.5, null]}"}}]},)"
    R"( {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "1"}]}])";

constexpr std::string_view kTools =
    R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])";

// Small ones, so that every input is quick.
jinja::RenderLimits limits() {
  jinja::RenderLimits limits;
  limits.steps = 20'000;
  limits.bytes = 1U << 20;
  limits.output_bytes = 1U << 18;
  return limits;
}

const Tokenizer& tokenizer() {
  static const std::unique_ptr<Tokenizer> kTokenizer = [] {
    std::vector<std::string> tokens = {"<s>", "</s>", "s>"};
    std::vector<std::int32_t> types = {3, 3, 4};  // control, control, user-defined
    for (char c = '!'; c <= '~'; ++c) {
      tokens.emplace_back(1, c);
      types.push_back(1);
    }
    gguf::GgufWriter writer;
    writer.add("tokenizer.ggml.model", "gpt2");
    writer.add("tokenizer.ggml.pre", "gpt-2");
    writer.add_array("tokenizer.ggml.tokens", tokens);
    writer.add_array("tokenizer.ggml.token_type", types);
    writer.add_array("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
    const std::vector<std::byte> bytes = writer.bytes();
    auto file = gguf::File::parse(bytes, "made");
    return Tokenizer::load(std::move(file).value().metadata()).value();
  }();
  return *kTokenizer;
}

void check(const OriginText& prompt) {
  ASSERT(prompt.size() <= limits().output_bytes, "the output is bounded");
  std::size_t begin = 0;
  for (const OriginText::Run& run : prompt.runs()) {
    ASSERT(run.end > begin, "runs are not empty");
    begin = run.end;
  }
  ASSERT(begin == prompt.size(), "every byte has an origin");
  const PromptTokens tokens = tokenise_prompt(prompt, tokenizer());
  ASSERT(tokens.ids.size() == tokens.origins.size(), "every token has an origin");
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    ASSERT(!tokenizer().is_control(tokens.ids[i]) || tokens.origins[i].source == Source::kTemplate,
           "control tokens are the template's");
  }
}

void render(std::string_view source, std::string_view json) {
  const auto parsed = jinja::Template::parse("fuzz", source);
  if (!parsed.ok()) {
    ASSERT(parsed.error().message.starts_with("fuzz:"), "a message names its template");
    return;
  }
  Conversation conversation;
  conversation.messages = ChatJson::parse(json, nullptr, false);
  conversation.tools = ChatJson::parse(kTools);
  conversation.now = 0;
  const auto chat = ChatTemplate::parse("fuzz", source, {"<s>", "</s>"});
  ASSERT(chat.ok(), "what can be parsed is a chat template");
  for (const bool goes_on : {false, true}) {
    conversation.continue_final_message = goes_on;
    const auto prompt = chat.value().render(conversation, limits());
    if (prompt.ok()) check(prompt.value());
  }
}

}  // namespace
}  // namespace pagoda::text

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  const bool has_json = zero != std::string_view::npos;
  pagoda::text::render(input.substr(0, zero),
                       has_json ? input.substr(zero + 1) : pagoda::text::kMessages);
  return 0;
}
