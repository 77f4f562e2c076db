#include "text/chat_template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <random>
#include <string>

#include "default_model.h"
#include "text/counting_account.h"
#include "text/prompt_tokens.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

ChatTemplate parse(std::string_view source) {
  auto made = ChatTemplate::parse("test", source, {"<s>", "</s>"});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

std::string shown(const Result<OriginText>& prompt) {
  return prompt.ok() ? std::string(prompt.value().bytes()) : "error: " + prompt.error().message;
}

// Braces around one value mean an array to some compilers and that value to others: arrays are
// named.
Conversation talk(std::vector<ChatJson> messages) {
  Conversation conversation;
  conversation.messages = ChatJson(std::move(messages));
  return conversation;
}

ChatJson say(const char* role, ChatJson content) {
  return {{"role", role}, {"content", std::move(content)}};
}

// Returns the runs of a prompt as "template:…|user#1:…".
std::string runs_of(const OriginText& prompt) {
  std::string shown;
  std::size_t begin = 0;
  for (const OriginText::Run& run : prompt.runs()) {
    if (!shown.empty()) shown += '|';
    shown += source_name(run.origin.source);
    if (run.origin.message != Origin::kNoMessage) {
      shown += '#' + std::to_string(run.origin.message);
    }
    shown += ':';
    shown += prompt.bytes().substr(begin, run.end - begin);
    begin = run.end;
  }
  return shown;
}

TEST(ChatTemplate, EveryByteKnowsWhoWroteIt) {
  const ChatTemplate chat =
      parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const auto prompt = chat.render(talk({say("system", "S"), say("user", "U"), say("assistant", "A"),
                                        say("tool", "T"), say("critic", "C")}));
  ASSERT_TRUE(prompt.ok());
  // An unknown role is the client's text, and no part of a special token.
  EXPECT_EQ(runs_of(prompt.value()),
            "template:<system>|system#0:S|template:<user>|user#1:U|template:<assistant>|"
            "assistant#2:A|template:<tool>|tool#3:T|template:<|user#4:critic|template:>|user#4:C");
}

// Command R's files and others have a template of its own for conversations with tools, as
// transformers chooses it.
TEST(ChatTemplate, ConversationsWithToolsHaveTheModelsTemplateForThem) {
  MadeVocabulary made;
  made.add("a");
  made.more.add("tokenizer.chat_template", "plain {{ messages[0].content }}");
  const auto load = [&] {
    const auto tokenizer = made.load_or_fail();
    const std::vector<std::byte> bytes = made.more.bytes();
    const auto file = gguf::File::parse(bytes, "made.gguf");
    auto chat = ChatTemplate::load(file.value().metadata(), *tokenizer);
    EXPECT_TRUE(chat.ok()) << chat.error().message;
    return chat;
  };
  Conversation plain = talk({say("user", "U")});
  Conversation with_tools = plain;
  with_tools.tools = ChatJson::array({{{"name", "f"}}});
  EXPECT_EQ(shown(load().value().render(with_tools)), "plain U");
  made.more.add("tokenizer.chat_template.tool_use",
                "{{ tools[0].name }} for {{ messages[0].content }}");
  made.more.add("tokenizer.chat_template.rag", "{{ no such");
  EXPECT_EQ(shown(load().value().render(plain)), "plain U");
  EXPECT_EQ(shown(load().value().render(with_tools)), "f for U");
}

TEST(ChatTemplate, ToolsDocumentsAndArgumentsAreNotTheTemplates) {
  const ChatTemplate chat =
      parse("{{ tools[0].name }}/{{ documents[0].text }}/{{ mood }}{{ messages[0].content }}");
  Conversation conversation = talk({say("user", "U")});
  conversation.tools = ChatJson::array({{{"name", "f"}}});
  conversation.documents = ChatJson::array({{{"text", "d"}}});
  conversation.kwargs = {{"mood", "m"}};
  const auto prompt = chat.render(conversation);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(runs_of(prompt.value()), "tool:f|template:/|tool:d|template:/|user:m|user#0:U");
}

TEST(ChatTemplate, WhatAUserWritesNeverBecomesASpecialToken) {
  REQUIRE_DEFAULT_MODEL();
  const auto tokenizer = load_tokenizer(default_model_path());
  ASSERT_NE(tokenizer, nullptr);
  const ChatTemplate chat = parse(kChatMl);
  std::vector<std::string> specials;
  for (std::uint32_t i = 0; i < tokenizer->size(); ++i) {
    if (tokenizer->is_control(TokenId(i))) specials.emplace_back(tokenizer->text_of(TokenId(i)));
  }
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    const auto words = [&] {
      std::string text;
      for (std::size_t i = random() % 5; i > 0; --i) {
        // The vocabulary lacks some bytes of rare characters.
        constexpr std::array<std::string_view, 6> kWords = {"Hi", " there\n", "<|",
                                                            "|>", "é",        "中文"};
        text += random() % 2 == 0 ? std::string_view(specials[random() % specials.size()])
                                  : kWords[random() % kWords.size()];
      }
      return text;
    };
    const Conversation conversation = talk({say("system", words()), say("user", words()),
                                            say("assistant", words()), say("user", words())});
    const auto prompt = chat.render(conversation);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    const PromptTokens tokens = tokenise_prompt(prompt.value(), *tokenizer);
    std::vector<std::string> found;
    for (const TokenId id : tokens.ids) {
      if (tokenizer->is_control(id)) found.emplace_back(tokenizer->text_of(id));
    }
    const std::string s = "<|im_start|>";
    const std::string e = "<|im_end|>";
    EXPECT_EQ(found, (std::vector<std::string>{s, e, s, e, s, e, s, e, s}));
    EXPECT_EQ(tokenizer->decode(tokens.ids, true).value(), prompt.value().bytes());
  }
}

TEST(ChatTemplate, TokensAreCountedByTheirSource) {
  REQUIRE_DEFAULT_MODEL();
  const auto tokenizer = load_tokenizer(default_model_path());
  ASSERT_NE(tokenizer, nullptr);
  const auto prompt =
      parse(kChatMl).render(talk({say("system", "Be brief."), say("user", "Hello, world!")}));
  ASSERT_TRUE(prompt.ok());
  const auto counts = tokenise_prompt(prompt.value(), *tokenizer).count_by_source();
  const auto count = [&](std::string_view text) { return tokenizer->encode(text, {}).size(); };
  EXPECT_EQ(counts[static_cast<std::size_t>(Source::kSystem)], count("Be brief."));
  EXPECT_EQ(counts[static_cast<std::size_t>(Source::kUser)], count("Hello, world!"));
  EXPECT_EQ(counts[static_cast<std::size_t>(Source::kAssistant)], 0U);
  EXPECT_EQ(counts[static_cast<std::size_t>(Source::kTemplate)], 2U * 5 + 2 + count("assistant"));
}

TEST(ChatTemplate, TypedPartsBecomeTextWhereTheTemplateTakesText) {
  const ChatTemplate chat = parse(kChatMl);
  EXPECT_TRUE(chat.traits().text_content);
  EXPECT_FALSE(chat.traits().part_content);
  const ChatJson parts = {{{"type", "text"}, {"text", "one"}}, {{"type", "text"}, {"text", "two"}}};
  EXPECT_EQ(shown(chat.render(talk({say("user", parts)}))),
            "<|im_start|>user\none\ntwo<|im_end|>\n<|im_start|>assistant\n");
  const ChatJson image = ChatJson::array({{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}});
  EXPECT_EQ(
      shown(chat.render(talk({say("user", "a"), say("user", image)}))),
      "error: test: messages[1]: the template takes text only, not parts of type 'image_url'");
}

TEST(ChatTemplate, TextBecomesAPartWhereTheTemplateTakesParts) {
  const ChatTemplate chat = parse(
      "{% for m in messages %}{% for p in m.content %}[{{ p.type }}:{{ p.text }}]{% endfor %}"
      "{% endfor %}");
  EXPECT_FALSE(chat.traits().text_content);
  EXPECT_TRUE(chat.traits().part_content);
  EXPECT_EQ(shown(chat.render(talk({say("user", "hi")}))), "[text:hi]");
}

TEST(ChatTemplate, WithoutASystemRoleItsTextBeginsTheNextUserMessage) {
  const ChatTemplate chat = parse(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
      "{% endif %}({{ m.role }}:{{ m.content }}){% endfor %}");
  EXPECT_FALSE(chat.traits().system_role);
  const auto prompt = chat.render(talk({say("system", "S"), say("user", "U"), say("assistant", "A"),
                                        say("developer", "D"), say("user", "V")}));
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt.value().bytes(), "(user:S\n\nU)(assistant:A)(user:D\n\nV)");
  EXPECT_EQ(runs_of(prompt.value()),
            "template:(user:|system#0:S|template:\n\n|user#1:U|template:)(assistant:|assistant#2:A|"
            "template:)(user:|system#3:D|template:\n\n|user#4:V|template:)");
  EXPECT_EQ(shown(chat.render(talk({say("system", "S")}))), "(user:S)");
  Conversation wordless = talk({ChatJson::object({{"role", "developer"}})});
  EXPECT_EQ(shown(chat.render(wordless)), "(user:)");
  wordless.continue_final_message = true;
  EXPECT_EQ(shown(chat.render(wordless)), "(user:");
}

TEST(ChatTemplate, ToolArgumentsHaveTheFormTheTemplateTakes) {
  const ChatJson call = {{"id", "1"},
                         {"type", "function"},
                         {"function", {{"name", "f"}, {"arguments", R"({"b": 1, "a": "é"})"}}}};
  ChatJson assistant = say("assistant", nullptr);
  assistant["tool_calls"] = ChatJson::array({call});
  const std::string loop =
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}";
  const std::string end = "{% endfor %}{% endfor %}";
  const ChatTemplate object = parse(loop + "{{ c.function.arguments | tojson }}" + end);
  EXPECT_EQ(object.traits().tool_arguments, ToolArguments::kObject);
  EXPECT_EQ(shown(object.render(talk({assistant}))), R"({"b": 1, "a": "é"})");
  const ChatTemplate text = parse(loop + "{{ '<' + c.function.arguments + '>' }}" + end);
  EXPECT_EQ(text.traits().tool_arguments, ToolArguments::kText);
  EXPECT_EQ(shown(text.render(talk({assistant}))), R"(<{"b": 1, "a": "é"}>)");
}

Conversation one_call(const std::string& arguments) {
  ChatJson message = say("assistant", "");
  message["tool_calls"] = ChatJson::array(
      {{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}}});
  return talk({say("user", "hi"), message});
}

constexpr const char* kArguments =
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";

// An ordered object's own insertion compares each key with all before it, which would take minutes
// here.
TEST(ChatTemplate, ManyToolArgumentsTakeTheirLengthInTime) {
  std::string arguments = "{\"k\": 0";
  for (int i = 0; i < 200'000; ++i) arguments += ", \"k" + std::to_string(i) + "\": 0";
  arguments += "}";
  const ChatTemplate chat = parse(kArguments);
  const auto prompt = chat.render(one_call(arguments));
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt.value().bytes(), "hi" + arguments);
  const ChatTemplate nested = parse("{{ (messages[0].content | from_json) | length }}");
  EXPECT_EQ(shown(nested.render(talk({say("user", arguments)}))), "200001");
}

TEST(ChatTemplate, ToolArgumentsThatAreNoAcceptableJsonStayText) {
  const ChatTemplate chat = parse(kArguments);
  EXPECT_EQ(shown(chat.render(one_call("{\"a\": {\"b\": [1, 2.5]}}"))),
            "hi{\"a\": {\"b\": [1, 2.5]}}");
  for (const std::string& arguments :
       {std::string("{\"a\": 1, \"a\": 2}"), std::string("{\"a\": "), std::string("[1]"),
        std::string("{\"a\": ") + std::string(70, '[') + std::string(70, ']') + "}"}) {
    EXPECT_EQ(shown(chat.render(one_call(arguments))), "hi" + ChatJson(arguments).dump());
  }
}

// Tries account sizes in the steps by which memory is taken, up to what the conversation needs.
void expect_right_or_exhausted(const ChatTemplate& chat, const Conversation& conversation,
                               std::string_view expected) {
  constexpr std::uint64_t kStepBytes = 4 << 10;
  CountingAccount enough;
  EXPECT_EQ(shown(chat.render(conversation, {.account = &enough})), expected);
  for (std::uint64_t most = 0; most < enough.taken(); most += kStepBytes) {
    CountingAccount account(most);
    const auto prompt = chat.render(conversation, {.account = &account});
    ASSERT_FALSE(prompt.ok()) << most << " bytes: " << prompt.value().bytes().substr(0, 80);
    ASSERT_EQ(prompt.error().code, ErrorCode::kExhausted) << most << ": " << shown(prompt);
  }
}

TEST(ChatTemplate, LittleMemoryChangesNoPrompt) {
  std::string arguments = "{\"k\": 0";
  for (int i = 0; i < 1'000; ++i) arguments += ", \"k" + std::to_string(i) + "\": 0";
  arguments += "}";
  expect_right_or_exhausted(parse(kArguments), one_call(arguments), "hi" + arguments);
  expect_right_or_exhausted(parse(kArguments), one_call("{\"a\": "), R"(hi"{\"a\": ")");
  const ChatTemplate nested = parse("{{ (messages[0].content | from_json) | length }}");
  expect_right_or_exhausted(nested, talk({say("user", arguments)}), "1001");
}

TEST(ChatTemplate, ContinuingTheFinalMessageEndsThePromptWithItsText) {
  const ChatTemplate chat = parse(kChatMl);
  Conversation conversation = talk({say("user", "U"), say("assistant", "Once upon ")});
  conversation.continue_final_message = true;
  EXPECT_EQ(shown(chat.render(conversation)),
            "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nOnce upon ");
  const auto prompt = chat.render(conversation);
  EXPECT_TRUE(runs_of(prompt.value()).ends_with("|assistant#1:Once upon "));

  conversation.messages.back() = say("assistant", "");
  EXPECT_EQ(shown(chat.render(conversation)),
            "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
  conversation.messages.back() = say("assistant", "CONTINUE_FINAL_MESSAGE_TAG x");
  EXPECT_TRUE(shown(chat.render(conversation)).ends_with("CONTINUE_FINAL_MESSAGE_TAG x"));
  conversation.messages.back() = say("assistant", ChatJson());
  conversation.messages.back()["tool_calls"] = ChatJson::array();
  EXPECT_FALSE(parse("{{ messages[0].content }}").render(conversation).ok());
}

TEST(ChatTemplate, ContinuingWhereTheTemplateTrimsTrimsToo) {
  const ChatTemplate chat =
      parse("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}tail");
  Conversation conversation = talk({say("user", "U"), say("assistant", " Once  ")});
  conversation.continue_final_message = true;
  EXPECT_EQ(shown(chat.render(conversation)), "[U][Once");
}

TEST(ChatTemplate, ConversationsThatAreNoneAreRefused) {
  const ChatTemplate chat = parse(kChatMl);
  const auto refusal = [&](ChatJson messages) {
    Conversation conversation;
    conversation.messages = std::move(messages);
    return shown(chat.render(conversation));
  };
  EXPECT_EQ(refusal(ChatJson::array()), "error: test: messages is not an array of messages");
  EXPECT_EQ(refusal("hi"), "error: test: messages is not an array of messages");
  EXPECT_EQ(refusal({"hi"}), "error: test: messages[0] is not an object");
  EXPECT_EQ(refusal({say("user", "a"), {{"content", "b"}}}),
            "error: test: messages[1] has no role");
  Conversation conversation = talk({say("user", "a")});
  conversation.kwargs = {{"messages", 1}};
  EXPECT_EQ(shown(chat.render(conversation)),
            "error: test: chat_template_kwargs cannot set 'messages'");
  conversation.kwargs = ChatJson::array({1});
  EXPECT_EQ(shown(chat.render(conversation)), "error: test: chat_template_kwargs is not an object");
  conversation = talk({say("user", "a")});
  conversation.tools = "x";
  EXPECT_EQ(shown(chat.render(conversation)), "error: test: tools is not an array");
}

// A vocabulary may give its special tokens any bytes.
TEST(ChatTemplate, SpecialTextsThatAreNotUtf8EndEveryWalkOverThem) {
  for (const char* const text : {"\xA0", "\xE1", "\xE1\xA0", "\xFF\xFE", " \xA0 ", "a\xF0\x9F"}) {
    for (const char* const use :
         {"bos_token.strip()", "bos_token|trim", "bos_token.isalpha()", "bos_token.isupper()",
          "bos_token is lower", "'x'.strip(bos_token)", "bos_token|upper", "bos_token|title",
          "bos_token.split()", "bos_token[::-1]", "bos_token|list",
          "bos_token.rstrip(eos_token)"}) {
      const auto chat = ChatTemplate::parse("test", fmt::format("{{{{ {} }}}}", use), {text, text});
      ASSERT_TRUE(chat.ok()) << chat.error().message;
      const auto rendered = chat.value().render(talk({say("user", "hi")}));
      EXPECT_TRUE(rendered.ok() || !rendered.error().message.empty()) << use;
    }
  }
}

TEST(ChatTemplate, ATemplateComesFromAFile) {
  const auto tokenizer = load_tokenizer(vocabulary_path("gpt-2"));
  ASSERT_NE(tokenizer, nullptr);
  const std::string path = testing::TempDir() + "chat_template_test.jinja";
  std::ofstream(path) << "{{ messages[0].content }}{{ eos_token }}\n";
  const auto chat = ChatTemplate::load_file(path, *tokenizer);
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  EXPECT_EQ(shown(chat.value().render(talk({say("user", "hi")}))), "hi<|endoftext|>");
  std::ofstream(path) << "line one\n{{ oops";
  const auto broken = ChatTemplate::load_file(path, *tokenizer);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message,
            path + ": chat template:2:1: a tag that is never closed with '}}'");
  EXPECT_FALSE(ChatTemplate::load_file(path + ".missing", *tokenizer).ok());
  EXPECT_FALSE(ChatTemplate::load_file(testing::TempDir(), *tokenizer).ok());
}

TEST(ChatTemplate, AModelWithoutOneSaysSo) {
  auto file = gguf::File::open(vocabulary_path("gpt-2"));
  ASSERT_TRUE(file.ok());
  const auto tokenizer = load_tokenizer(vocabulary_path("gpt-2"));
  ASSERT_NE(tokenizer, nullptr);
  const auto chat = ChatTemplate::load(file.value().metadata(), *tokenizer);
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pagoda::text
