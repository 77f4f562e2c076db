#include "text/chat_template.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "text/chat_messages.h"
#include "text/jinja/unicode.h"

namespace pagoda::text {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kToolUseKey = "tokenizer.chat_template.tool_use";

// Current templates take a few hundred steps for conversations as small as the probes.
constexpr jinja::RenderLimits kProbeLimits = {.steps = 100'000, .bytes = 16U << 20};

// Cuts the prompt where the text that generation continues from ends. Where the template stripped
// white space from that text's end, the space before the mark is stripped too.
Status cut_at_mark(OriginText& prompt) {
  std::size_t run = prompt.runs().size();
  while (run > 0 && prompt.runs()[run - 1].origin != kContinuationMark) --run;
  if (run == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "continue_final_message: the template leaves the last message out"};
  }
  const std::size_t begin = run == 1 ? 0 : prompt.runs()[run - 2].end;
  const bool whole = prompt.runs()[run - 1].end - begin == kContinuationTag.size();
  prompt.truncate(begin);
  if (!whole) prompt.truncate(begin - jinja::trailing_space_bytes(prompt.bytes()));
  return ok_status();
}

// The error of a template that cannot be parsed names its source. Errors about a conversation do
// not, because the client that reads them need not know the paths of this machine.
Result<ChatTemplate> parse_of(const std::string& where, std::string_view source,
                              const Tokenizer& tokenizer) {
  Result<ChatTemplate> parsed =
      ChatTemplate::parse("chat template", source, special_texts(tokenizer));
  if (parsed.ok()) return parsed;
  return Error{parsed.error().code, fmt::format("{}: {}", where, parsed.error().message)};
}

}  // namespace

SpecialTexts special_texts(const Tokenizer& tokenizer) {
  const auto text = [&](std::optional<TokenId> id) -> std::optional<std::string> {
    if (!id) return std::nullopt;
    return std::string(tokenizer.text_of(*id));
  };
  return {text(tokenizer.bos()), text(tokenizer.eos())};
}

Result<ChatTemplate> ChatTemplate::parse(std::string name, std::string_view source,
                                         SpecialTexts specials) {
  ASSIGN_OR_RETURN(jinja::Template parsed, jinja::Template::parse(std::move(name), source));
  ChatTemplate made(std::move(parsed), source, std::move(specials));
  // While the template is probed, nothing is rewritten.
  made.traits_ = {.part_content = true, .tool_arguments = ToolArguments::kAsSent};
  const auto probe = [&](const Conversation& conversation) -> std::optional<std::string> {
    const auto prompt = made.render(conversation, kProbeLimits);
    if (!prompt.ok()) return std::nullopt;
    return std::string(prompt.value().bytes());
  };
  made.traits_ = find_traits(probe, made.source_);
  return made;
}

Result<ChatTemplate> ChatTemplate::load(const gguf::Metadata& metadata,
                                        const Tokenizer& tokenizer) {
  if (!metadata.contains(kTemplateKey)) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: the model has no chat template ({})",
                                                   metadata.source(), kTemplateKey)};
  }
  const auto parse_key = [&](std::string_view key) -> Result<ChatTemplate> {
    ASSIGN_OR_RETURN(const std::string_view source, metadata.text(key));
    return parse_of(fmt::format("{}: {}", metadata.source(), key), source, tokenizer);
  };
  ASSIGN_OR_RETURN(ChatTemplate main, parse_key(kTemplateKey));
  if (!metadata.contains(kToolUseKey)) return main;
  ASSIGN_OR_RETURN(ChatTemplate tool_use, parse_key(kToolUseKey));
  main.source_ += '\n';
  main.source_ += tool_use.source_;
  main.tool_use_ = std::make_shared<const ChatTemplate>(std::move(tool_use));
  return main;
}

Result<ChatTemplate> ChatTemplate::load_file(const std::string& path, const Tokenizer& tokenizer) {
  std::ifstream stream(path, std::ios::binary);
  // The buffer has one byte more than allowed, so that parsing refuses longer files.
  std::string source(jinja::Template::kSourceBytesMax + 1, '\0');
  stream.read(source.data(), static_cast<std::streamsize>(source.size()));
  source.resize(static_cast<std::size_t>(stream.gcount()));
  if (!stream.is_open() || stream.bad()) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot read the chat template '{}': expected a file", path)};
  }
  return parse_of(path, source, tokenizer);
}

Result<OriginText> ChatTemplate::render(const Conversation& conversation,
                                        const jinja::RenderLimits& limits) const {
  if (tool_use_ && !conversation.tools.is_null()) return tool_use_->render(conversation, limits);
  const bool continues = conversation.continue_final_message;
  const auto bind = [&](jinja::Heap& heap, jinja::Scope& scope) {
    if (specials_.bos) scope.set("bos_token", heap.text(*specials_.bos));
    if (specials_.eos) scope.set("eos_token", heap.text(*specials_.eos));
    bind_extras(conversation, traits_, heap, scope);
    scope.set("messages", import_messages(conversation, traits_, heap));
    scope.set("add_generation_prompt",
              jinja::Value::boolean(conversation.add_generation_prompt && !continues));
  };
  const std::time_t now = conversation.now ? *conversation.now : std::time(nullptr);
  ASSIGN_OR_RETURN(OriginText prompt, template_.render(bind, now, limits));
  if (continues) RETURN_IF_ERROR(cut_at_mark(prompt));
  return prompt;
}

}  // namespace pagoda::text
