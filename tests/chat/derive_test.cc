// The forms that are found in the templates of tests/data/chat, against what their families
// document.
#include "chat/derive.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "chat/answer_text.h"
#include "chat/call_reader.h"
#include "chat/known_forms.h"
#include "chat/literal.h"
#include "chat/reading.h"
#include "test_data.h"

namespace pagoda::chat {
namespace {

std::string template_source(const std::string& name) {
  std::ifstream stream(test_data() + "/chat/templates/" + name + ".jinja");
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

text::ChatTemplate load_template(const std::string& name) {
  auto parsed = text::ChatTemplate::parse(name, template_source(name), {"<s>", "</s>"});
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return std::move(parsed).value();
}

struct DeriveCase {
  std::string name;
  std::string from;
  std::string marker;  // what announces calls
  std::string body;    // json | json argument | tags | quotes | python
  std::string reasoning_begin = {};
  std::string reasoning_end = {};
};

std::string body_of(const ToolCallForm& calls) {
  if (calls.syntax == CallSyntax::kJsonObject) return "json";
  switch (calls.arguments) {
    case ArgumentSyntax::kJson:
      return "json argument";
    case ArgumentSyntax::kTagged:
      return "tags";
    case ArgumentSyntax::kQuoted:
      return "quotes";
    default:
      return "python";
  }
}

const std::vector<DeriveCase> kDeriveCases = {
    {"apertus", "derived", "<|tools_prefix|>", "json"},
    {"apriel1.5", "derived", "<tool_calls>", "json"},
    {"apriel1.6", "derived", "<tool_calls>", "json", "", "[BEGIN FINAL RESPONSE]"},
    {"bielik3", "derived", "<tool_call>", "json", "<think>", "</think>"},
    {"chatml", "generic", "{\"tool_call\":", "json"},
    {"cohere2_moe", "derived", "<|START_ACTION|>", "json", "<|START_THINKING|>",
     "<|END_THINKING|>"},
    {"command_r7b", "derived", "<|START_ACTION|>", "json", "<|START_THINKING|>",
     "<|END_THINKING|>"},
    {"deepseek_r1", "derived", "<｜tool▁calls▁begin｜>", "json argument", "<think>", "</think>"},
    {"deepseek_r1_distill", "table", "<｜tool▁calls▁begin｜>", "json argument", "<think>",
     "</think>"},
    {"deepseek_r1_qwen", "derived", "<｜tool▁calls▁begin｜>", "json argument", "<think>",
     "</think>"},
    {"deepseek_v3.1", "derived", "<｜tool▁calls▁begin｜>", "json argument", "<think>", "</think>"},
    {"deepseek_v3.2", "derived", "<｜DSML｜function_calls>", "tags", "<think>", "</think>"},
    {"deepseek_v4", "derived", "<｜DSML｜tool_calls>", "tags", "<think>", "</think>"},
    {"deepseek_v4_flash", "derived", "<｜DSML｜tool_calls>", "tags", "<think>", "</think>"},
    {"devstral", "derived", "[TOOL_CALLS]", "json argument"},
    {"functionary3.1", "derived", "<function=", "json argument"},
    {"functionary3.2", "none", "", ""},
    {"gemma2", "generic", "{\"tool_call\":", "json"},
    {"gemma4", "table", "<|tool_call>call:", "quotes", "<|channel>thought", "<channel|>"},
    {"gemma4_interleaved", "table", "<|tool_call>call:", "quotes", "<|channel>thought",
     "<channel|>"},
    {"gigachat3", "none", "", ""},
    {"gigachat3.1", "derived", "<|function_call|>", "json"},
    {"glm4.6", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"glm4.7", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"gpt_oss", "table", "<|start|>assistant", "json argument"},
    {"granite3.3", "table", "<|tool_call|>", "json", "<think>", "</think>"},
    {"granite4", "derived", "<tool_call>", "json"},
    {"granite4.1", "derived", "<tool_call>", "json"},
    {"hermes3", "derived", "<tool_call>", "json"},
    {"hy3", "derived", "<tool_calls:opensource>", "tags", "<think:opensource>",
     "</think:opensource>"},
    {"kimi_k2", "table", "<|tool_calls_section_begin|>", "json argument"},
    {"kimi_k2_instruct", "table", "<|tool_calls_section_begin|>", "json argument"},
    {"kimi_k2_thinking", "table", "<|tool_calls_section_begin|>", "json argument", "<think>",
     "</think>"},
    {"kimi_k3", "derived", "<|open|>tools<|sep|>", "tags", "<|open|>think<|sep|>",
     "<|close|>think<|sep|><|open|>response<|sep|>"},
    {"laguna_s2.1", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"laguna_xs", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"laguna_xs2", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"lfm2", "table", "<|tool_call_start|>", "python"},
    {"lfm2.5", "derived", "<|tool_call_start|>", "python", "<think>", "</think>"},
    {"lfm2.5_instruct", "table", "<|tool_call_start|>", "python", "<think>", "</think>"},
    {"ling3", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"llama3.1", "table", "", "json"},
    {"llama3.2", "derived", "", "json"},
    {"llama3_like", "derived", "", "json"},
    {"mimo_vl", "derived", "<tool_call>", "json"},
    {"minicpm5", "derived", "<function", "tags", "<think>", "</think>"},
    {"minimax_m1", "derived", "<tool_calls>", "json"},
    {"minimax_m2", "derived", "<minimax:tool_call>", "tags", "<think>", "</think>"},
    {"minimax_m3", "table", "]<]minimax[>[<tool_call>", "tags", "<mm:think>", "</mm:think>"},
    {"ministral3", "derived", "[TOOL_CALLS]", "json argument", "[THINK]", "[/THINK]"},
    {"mistral_nemo", "derived", "[TOOL_CALLS]", "json"},
    {"mistral_small_3.2", "derived", "[TOOL_CALLS]", "json argument"},
    {"muse_glimmer", "none", "", ""},
    {"nemotron3_nano", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"nemotron_nano2", "derived", "<TOOLCALL>", "json", "<think>", "</think>"},
    {"phi3.5", "generic", "{\"tool_call\":", "json"},
    {"qwen2.5", "derived", "<tool_call>", "json"},
    {"qwen3", "derived", "<tool_call>", "json", "<think>", "</think>"},
    {"qwen3.5", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"qwen3_coder", "derived", "<tool_call>", "tags"},
    {"qwq", "derived", "<tool_call>", "json", "<think>", "</think>"},
    {"reka_edge", "derived", "<tool_call>", "json", "<think>", "</think>"},
    {"seed_oss", "derived", "<seed:tool_call>", "tags", "<seed:think>", "</seed:think>"},
    {"smollm2", "generic", "{\"tool_call\":", "json"},
    {"smollm3", "generic", "{\"tool_call\":", "json", "<think>", "</think>"},
    {"solar_open", "none", "", ""},
    {"spark2.5", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"step3.5", "derived", "<tool_call>", "tags", "<think>", "</think>"},
    {"vllm_alpaca", "generic", "{\"tool_call\":", "json"},
    {"vllm_apertus", "derived", "<|tools_prefix|>", "json"},
    {"vllm_chatglm", "generic", "{\"tool_call\":", "json"},
    {"vllm_chatglm2", "generic", "{\"tool_call\":", "json"},
    {"vllm_deepseek_r1", "derived", "<｜tool▁calls▁begin｜>", "json argument", "<think>",
     "</think>"},
    {"vllm_deepseek_v3", "derived", "<｜tool▁calls▁begin｜>", "json argument"},
    {"vllm_deepseek_v3.1", "table", "<｜tool▁calls▁begin｜>", "json argument", "<think>",
     "</think>"},
    {"vllm_falcon", "generic", "{\"tool_call\":", "json"},
    {"vllm_falcon_180b", "generic", "{\"tool_call\":", "json"},
    {"vllm_functiongemma", "table", "<start_function_call>call:", "quotes"},
    {"vllm_gemma3_pythonic", "table", "", "python"},
    {"vllm_gemma4", "table", "<|tool_call>call:", "quotes", "<|channel>thought", "<channel|>"},
    {"vllm_glm4", "table", "<tool_call>", "tags"},
    {"vllm_granite", "derived", "<|tool_call|>", "json"},
    {"vllm_granite_20b_fc", "derived", "<function_call>", "json"},
    {"vllm_hermes", "derived", "<tool_call>", "json"},
    {"vllm_hunyuan_a13b", "derived", "<tool_calls>", "json", "<think>", "</think>"},
    {"vllm_inkbot", "generic", "{\"tool_call\":", "json"},
    {"vllm_internlm2", "derived", "<|action_start|><|plugin|>", "json"},
    {"vllm_llama3.1_json", "derived", "", "json"},
    {"vllm_llama3.2_json", "derived", "", "json"},
    {"vllm_llama3.2_pythonic", "table", "", "python"},
    {"vllm_llama4_json", "table", "", "json"},
    {"vllm_llama4_pythonic", "table", "", "python"},
    {"vllm_mistral", "derived", "[TOOL_CALLS]", "json"},
    {"vllm_mistral3", "derived", "[TOOL_CALLS]", "json"},
    {"vllm_mistral_parallel", "derived", "[TOOL_CALLS]", "json"},
    {"vllm_muse_glimmer", "none", "", ""},
    {"vllm_phi4_mini", "derived", "", "json"},
    {"vllm_qwen3_coder", "derived", "<tool_call>", "tags"},
    {"vllm_teleflm", "generic", "{\"tool_call\":", "json"},
    {"vllm_toolace", "table", "", "python"},
    {"vllm_xlam_llama", "derived", "", "json"},
    {"vllm_xlam_qwen", "derived", "", "json"},
};

TEST(Derive, FindsWhatFamiliesDocument) {
  for (const DeriveCase& expected : kDeriveCases) {
    const text::ChatTemplate chat = load_template(expected.name);
    const auto found = find_form(chat);
    ASSERT_TRUE(found.ok());
    const AnswerForm& form = found.value().form;
    EXPECT_EQ(found.value().calls_from, expected.from) << expected.name;
    ASSERT_EQ(form.calls.has_value(), expected.from != "none") << expected.name;
    if (!form.calls) continue;
    EXPECT_EQ(section_marker(*form.calls), expected.marker) << expected.name;
    EXPECT_EQ(body_of(*form.calls), expected.body) << expected.name;
    if (form.channels) continue;
    ASSERT_EQ(form.reasoning.has_value(), !expected.reasoning_end.empty()) << expected.name;
    if (!form.reasoning) continue;
    EXPECT_EQ(core(form.reasoning->begin), expected.reasoning_begin) << expected.name;
    EXPECT_EQ(core(form.reasoning->end), expected.reasoning_end) << expected.name;
  }
}

// Every template of the folder is in the table, but for those of tests and of plain chat.
TEST(Derive, NoTemplateIsLeftOut) {
  std::size_t others = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_data() + "/chat/templates")) {
    const std::string name = entry.path().stem().string();
    const bool listed = std::any_of(kDeriveCases.begin(), kDeriveCases.end(),
                                    [&](const DeriveCase& one) { return one.name == name; });
    if (!listed) ++others;
    EXPECT_TRUE(listed || name == "documents" || name == "gemma2_like") << name;
  }
  EXPECT_EQ(others, 2U);
}

// The derived form of a family that the table knows as well reads the same.
TEST(Derive, AgreesWithTheTable) {
  const std::map<std::string, std::string> pairs = {{"qwen2.5", "hermes"},
                                                    {"qwen3_coder", "qwen3_coder"},
                                                    {"deepseek_v3.1", "deepseek_v31"},
                                                    {"deepseek_v3.2", "deepseek_v32"},
                                                    {"deepseek_v4", "deepseek_v4"},
                                                    {"glm4.6", "glm45"},
                                                    {"glm4.7", "glm47"},
                                                    {"minimax_m2", "minimax_m2"},
                                                    {"mistral_nemo", "mistral_nemo"},
                                                    {"mistral_small_3.2", "mistral"},
                                                    {"apertus", "apertus"},
                                                    {"cohere2_moe", "cohere_command4"},
                                                    {"deepseek_r1_qwen", "deepseek_v3"},
                                                    {"seed_oss", "seed_oss"},
                                                    {"lfm2.5", "lfm2"},
                                                    {"hy3", "hy_v3"},
                                                    {"kimi_k3", "kimi_k3"},
                                                    {"minicpm5", "minicpm5"}};
  for (const auto& [name, parser] : pairs) {
    const text::ChatTemplate chat = load_template(name);
    auto found = find_form(chat);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found.value().calls_from, "derived") << name;
    ToolCallForm calls = *found.value().form.calls;
    calls.before.clear();
    EXPECT_EQ(calls, find_tool_form(parser)->calls) << name;
  }
}

// As the template writes it, so that a conversation that goes on finds its prefix in the cache.
TEST(Derive, AValueStandsBehindTheEndOfItsKind) {
  const ToolCallForm derived = *find_form(load_template("kimi_k3")).value().form.calls;
  for (const ToolCallForm& form : {derived, find_tool_form("kimi_k3")->calls}) {
    const auto written = [&](const nlohmann::ordered_json& value) {
      const std::string text = write_calls(form, {{"f", {{"key", value}}}});
      const std::size_t from = text.find("type=\"") + 6;
      return text.substr(from, text.find('"', from) - from);
    };
    EXPECT_EQ(written("x"), "string");
    EXPECT_EQ(written(2.5), "number");
    EXPECT_EQ(written(7), "number");
    EXPECT_EQ(written(true), "boolean");
    EXPECT_EQ(written(nlohmann::ordered_json::array({1})), "array");
    EXPECT_EQ(written({{"a", 1}}), "object");
    EXPECT_EQ(written(nullptr), "null");
  }
}

// What the model writes of its own accord at the end of its turn is no content.
TEST(Derive, TheEndOfATurnIsNoContent) {
  const AnswerForm form = find_form(load_template("kimi_k3")).value().form;
  EXPECT_EQ(form.turn_end, "<|close|>message<|sep|>");
  const std::string end = "<|close|>response<|sep|><|close|>message<|sep|>";
  const ToolSchemas schemas;
  for (const std::string& text : {"Hello." + end, "Hello." + end + "\n"}) {
    for (const std::size_t edge : character_edges(text)) {
      const Reading read = read_pieces(form, schemas, {}, cut_at(text, {edge}));
      EXPECT_EQ(read.content, "Hello.") << text << " cut at " << edge;
    }
  }
  const Reading thought = read_pieces(
      form, schemas, {.in_reasoning = true},
      {std::string_view(
          "Hm.<|close|>think<|sep|><|open|>response<|sep|>Hello.<|close|>response<|sep|>"
          "<|close|>message<|sep|>")});
  EXPECT_EQ(thought, (Reading{"Hm.", "Hello.", {}}));
  for (const char* const name : {"qwen3", "minimax_m2", "command_r7b", "llama3.1"}) {
    EXPECT_EQ(find_form(load_template(name)).value().form.turn_end, "") << name;
  }
}

// Templates that say one thing and write another, as those of Phi-4-mini and of vLLM's examples do.
TEST(Derive, MarkersThatATemplateOnlyNamesAreReadToo) {
  const std::string loop =
      "{% if tools %}Tools: {{ tools | tojson }} Answer functools[{}].{% endif %}"
      "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}"
      "{% for c in m.tool_calls %}{{ {'name': c.function.name, "
      "'arguments': c.function.arguments} | tojson }}{% endfor %}"
      "{% else %}{{ m.content }}{% endif %}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}";
  const auto chat = text::ChatTemplate::parse("phi", loop, {"<s>", "</s>"});
  ASSERT_TRUE(chat.ok());
  const auto found = find_form(chat.value());
  EXPECT_EQ(found.value().calls_from, "derived");
  const ToolSchemas schemas(text::ChatJson::parse(R"([{"function": {"name": "f"}}])"));
  for (const std::string_view text :
       {R"(functools[{"name": "f", "arguments": {}}])", R"({"name": "f", "arguments": {}})"}) {
    const Reading read = read_pieces(found.value().form, schemas, {}, {text});
    EXPECT_EQ(read.content, "") << text;
    ASSERT_EQ(read.calls.size(), 1U) << text;
    EXPECT_EQ(read.calls[0].name, "f") << text;
  }
}

// A model whose template shows tools in a syntax of its own is not asked for another.
TEST(Derive, TheGenericFormIsForTemplatesWithoutTools) {
  const std::string odd =
      "{% if tools %}Tools: {{ tools | tojson }}{% endif %}"
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
      "{% for c in m.tool_calls or [] %}call {{ c.function.name }} with "
      "{% for k, v in c.function.arguments.items() %}{{ v }} as {{ k }} {% endfor %}{% endfor %}"
      "<|end|>{% endfor %}";
  const auto chat = text::ChatTemplate::parse("odd", odd, {"<s>", "</s>"});
  ASSERT_TRUE(chat.ok());
  const auto found = find_form(chat.value());
  EXPECT_EQ(found.value().calls_from, "none");
  EXPECT_TRUE(found.value().unreadable_calls);
  EXPECT_FALSE(found.value().form.generic);
}

// vLLM's example for DeepSeek V3.1 writes white space around calls, the model what it is told to.
TEST(Derive, WhiteSpaceBetweenCallsIsReadWhereItIsAndWhereNot) {
  const AnswerForm form = find_form(load_template("vllm_deepseek_v3.1")).value().form;
  const ToolSchemas schemas(
      text::ChatJson::parse(R"([{"function": {"name": "f"}}, {"function": {"name": "g"}}])"));
  const auto call = [](const std::string& name) {
    return "<｜tool▁call▁begin｜>" + name + R"(<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>)";
  };
  const std::string begin = "<｜tool▁calls▁begin｜>";
  const std::string end = "<｜tool▁calls▁end｜>";
  for (const std::string& text :
       {"Yes." + begin + call("f") + "        " + call("g") + "    " + end,
        "Yes." + begin + call("f") + call("g") + end}) {
    const Reading read = read_pieces(form, schemas, {}, {std::string_view(text)});
    EXPECT_EQ(read.content, "Yes.") << text;
    ASSERT_EQ(read.calls.size(), 2U) << text;
    EXPECT_EQ(read.calls[1].name, "g") << text;
  }
}

TEST(Derive, DevstralMayWriteIds) {
  const AnswerForm form = find_form(load_template("devstral")).value().form;
  const ToolSchemas schemas(text::ChatJson::parse(R"([{"function": {"name": "f"}}])"));
  for (const std::string_view text :
       {"[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{}", "[TOOL_CALLS]f[ARGS]{}"}) {
    EXPECT_EQ(read_pieces(form, schemas, {}, {text}), (Reading{"", "", {{"f", "{}"}}})) << text;
  }
}

TEST(Derive, IdsHaveNineLettersWhereTheTemplateWantsThem) {
  EXPECT_EQ(find_form(load_template("mistral_nemo")).value().form.ids, CallIdStyle::kNine);
  EXPECT_EQ(find_form(load_template("qwen3")).value().form.ids, CallIdStyle::kAny);
}

TEST(Derive, KnowsWhetherThePromptOpensTheReasoning) {
  struct Opening {
    std::string name;
    text::ChatJson kwargs;
    bool open;
  };
  const std::vector<Opening> openings = {
      {"qwen3", text::ChatJson::object(), false},
      {"qwen3", {{"enable_thinking", false}}, false},
      {"qwen3.5", text::ChatJson::object(), true},
      {"qwen3.5", {{"enable_thinking", false}}, false},
      {"glm4.7", text::ChatJson::object(), true},
      {"glm4.7", {{"enable_thinking", false}}, false},
      {"deepseek_v3.1", text::ChatJson::object(), false},
      {"deepseek_v3.1", {{"thinking", true}}, true},
      {"minimax_m2", text::ChatJson::object(), true},
      {"apriel1.6", text::ChatJson::object(), true},
      {"mistral_nemo", text::ChatJson::object(), false},
      {"kimi_k3", text::ChatJson::object(), true},
      {"kimi_k3", {{"thinking", false}}, false},
  };
  for (const Opening& one : openings) {
    const text::ChatTemplate chat = load_template(one.name);
    text::Conversation conversation;
    // What a user writes opens nothing.
    conversation.messages = {{{"role", "user"}, {"content", "What is <think>?"}}};
    conversation.kwargs = one.kwargs;
    const auto prompt = chat.render(conversation);
    ASSERT_TRUE(prompt.ok()) << one.name;
    EXPECT_EQ(opens_reasoning(find_form(chat).value().form, prompt.value()), one.open)
        << one.name << one.kwargs.dump();
  }
}

// A template may write anything; deriving ends, and believes nothing.
TEST(Derive, HostileTemplatesEndSoon) {
  for (const std::string source :
       {"{% for i in range(4000) %}{{ '{' }}{% endfor %}",
        "{% for m in messages %}{{ m | tojson * 3 }}{{ '<{[' * 600 }}{% endfor %}",
        "{{ raise_exception('no') }}", "{{ '[' * 1000000 }}{{ messages }}"}) {
    const auto chat = text::ChatTemplate::parse("hostile", source, {"<s>", "</s>"});
    if (!chat.ok()) continue;
    const std::string from = find_form(chat.value()).value().calls_from;
    EXPECT_TRUE(from == "generic" || from == "none") << source;
  }
}

TEST(Derive, ParsersAreChosenByVllmsNames) {
  const text::ChatTemplate chat = load_template("qwen3");
  const auto chosen = find_form(chat, {.tool_parser = "kimi_k2", .reasoning_parser = "mistral"});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value().calls_from, "flag");
  EXPECT_EQ(section_marker(*chosen.value().form.calls), "<|tool_calls_section_begin|>");
  EXPECT_EQ(chosen.value().form.reasoning->begin, "[THINK]");
  const auto refused = find_form(chat, {.tool_parser = "hermse"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("\"hermse\""), std::string::npos);
  EXPECT_NE(refused.error().message.find("hermes"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::chat
