#include "chat/known_forms.h"

#include <algorithm>

namespace pagoda::chat {
namespace {

// Calls that are objects of JSON between markers.
ToolCallForm json_calls(std::string section_begin, std::string section_end, std::string call_begin,
                        std::string call_end, std::string separator) {
  ToolCallForm form;
  form.section_begin = std::move(section_begin);
  form.section_end = std::move(section_end);
  form.call_begin = std::move(call_begin);
  form.call_end = std::move(call_end);
  form.separator = std::move(separator);
  return form;
}

ToolCallForm json_array(std::string begin, std::string end) {
  return json_calls(std::move(begin), std::move(end), "", "", ", ");
}

// A name, then arguments of JSON.
ToolCallForm named_json(ToolCallForm form, std::string name_end) {
  form.syntax = CallSyntax::kNamed;
  form.arguments = ArgumentSyntax::kJson;
  form.name_end = std::move(name_end);
  return form;
}

ToolCallForm with_slot(ToolCallForm form, std::string arguments_begin, bool is_id) {
  form.arguments_begin = std::move(arguments_begin);
  form.has_slot = true;
  form.slot_is_id = is_id;
  return form;
}

ToolCallForm tagged(ToolCallForm form, std::string name_end, std::string key_begin,
                    std::vector<KeyEnd> key_ends, std::string value_end) {
  form.syntax = CallSyntax::kNamed;
  form.arguments = ArgumentSyntax::kTagged;
  form.name_end = std::move(name_end);
  form.tagged.key_begin = std::move(key_begin);
  form.tagged.key_ends = std::move(key_ends);
  form.tagged.value_end = std::move(value_end);
  return form;
}

ToolCallForm keywords(std::string begin, std::string end, std::string separator) {
  ToolCallForm form = json_calls(std::move(begin), std::move(end), "", "", std::move(separator));
  form.syntax = CallSyntax::kNamed;
  form.arguments = ArgumentSyntax::kKeywords;
  return form;
}

ToolCallForm quoted(std::string begin, std::string end, std::string quote) {
  ToolCallForm form = json_calls("", "", std::move(begin), std::move(end), "");
  form.syntax = CallSyntax::kNamed;
  form.arguments = ArgumentSyntax::kQuoted;
  form.quote = std::move(quote);
  return form;
}

ToolCallForm llama3_json() {
  ToolCallForm form = json_array("", "");
  form.arguments_key = "parameters";
  form.separator = "; ";
  form.other_begins = {"<|python_tag|>"};
  return form;
}

ToolCallForm mistral_nemo() {
  ToolCallForm form = json_array("[TOOL_CALLS][", "]");
  form.id_is_last = true;
  return form;
}

ToolCallForm cohere() {
  ToolCallForm form = json_array("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>");
  form.separator = ",\n    ";
  form.name_key = "tool_name";
  form.arguments_key = "parameters";
  return form;
}

ToolCallForm apertus() {
  ToolCallForm form = json_array("<|tools_prefix|>[", "]<|tools_suffix|>");
  form.name_is_key = true;
  return form;
}

// Tagged arguments in the manner of XML, with a call's tag within that of the section.
ToolCallForm invocations(const std::string& section_begin, const std::string& section_end,
                         const std::string& prefix, std::vector<KeyEnd> key_ends) {
  return tagged(json_calls(section_begin, section_end, "<" + prefix + "invoke name=\"",
                           "</" + prefix + "invoke>\n", ""),
                "\">\n", "<" + prefix + "parameter name=\"", std::move(key_ends),
                "</" + prefix + "parameter>\n");
}

ToolCallForm dsml(const std::string& section) {
  return invocations("<｜DSML｜" + section + ">\n", "</｜DSML｜" + section + ">", "｜DSML｜",
                     {{"\" string=\"true\">", ArgumentType::kString},
                      {"\" string=\"false\">", ArgumentType::kJson}});
}

// A value's tag is its key, and every tag begins with a mark of the vocabulary.
ToolCallForm minimax_m3() {
  const std::string mark = "]<]minimax[>[";
  ToolCallForm form = tagged(json_calls(mark + "<tool_call>\n", mark + "</tool_call>",
                                        mark + "<invoke name=\"", mark + "</invoke>\n", ""),
                             "\">", mark + "<", {{">"}}, mark + "</");
  form.tagged.value_end_has_key = true;
  form.tagged.close_end = ">";
  form.tagged.nests = true;
  return form;
}

ToolCallForm arg_keys(const std::string& space) {
  return tagged(json_calls("", "", "<tool_call>", "</tool_call>", space), space, "<arg_key>",
                {{"</arg_key>" + space + "<arg_value>"}}, "</arg_value>" + space);
}

ToolCallForm kimi_k2() {
  ToolCallForm form =
      with_slot(named_json(json_calls("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
                                      "<|tool_call_begin|>", "<|tool_call_end|>", ""),
                           ":"),
                "<|tool_call_argument_begin|>", false);
  form.name_prefix = "functions.";
  form.call_is_id = true;
  return form;
}

ToolCallForm hermes() { return json_calls("", "", "<tool_call>\n", "\n</tool_call>", "\n"); }

ToolCallForm qwen3_coder(const std::string& tag, const std::string& space) {
  return tagged(
      json_calls("", "", "<" + tag + ">\n<function=", "</function>\n</" + tag + ">", "\n"), ">\n",
      "<parameter=", {{">" + space}}, space + "</parameter>\n");
}

// Families that a sign in their template is enough to tell.
std::vector<KnownToolForm> sure_forms() {
  return {
      // gpt-oss: channel_reader.h knows its messages.
      {.names = {"openai"},
       .calls = named_json(json_calls("", "", "<|start|>assistant to=functions.", "<|call|>", ""),
                           "<|channel|>commentary json<|message|>"),
       .signs = {"<|channel|>", "<|message|>", "<|start|>assistant"},
       .sure = true,
       .channels = true},
      {.names = {"gemma4"},
       .calls = quoted("<|tool_call>call:", "<tool_call|>", "<|\"|>"),
       .signs = {"<|tool_call>", "<|\"|>"},
       .sure = true},
      {.names = {"functiongemma"},
       .calls = quoted("<start_function_call>call:", "<end_function_call>", "<escape>"),
       .signs = {"<start_function_call>", "<escape>"},
       .sure = true},
      {.names = {"kimi_k2"},
       .calls = kimi_k2(),
       .signs = {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
       .sure = true,
       .ids = CallIdStyle::kKimi},
      // The templates of Llama 3 write calls as bare JSON; the model may announce them.
      {.names = {"llama3_json", "llama4_json"},
       .calls = llama3_json(),
       .signs = {"<|python_tag|>", "\"parameters\": "},
       .sure = true},
      {.names = {"llama4_pythonic", "pythonic"},
       .calls = keywords("[", "]", ", "),
       .signs = {"[func_name1("},
       .sure = true},
      {.names = {"minimax_m3"}, .calls = minimax_m3(), .signs = {"]<]minimax[>["}, .sure = true},
  };
}

// A name between markers, then arguments.
std::vector<KnownToolForm> named_forms() {
  const std::string deep_begin = "<｜tool▁calls▁begin｜>";
  const std::string deep_end = "<｜tool▁calls▁end｜>";
  const std::string deep_call = "<｜tool▁call▁begin｜>";
  const std::string deep_call_end = "<｜tool▁call▁end｜>";
  return {
      {.names = {"olmo3"},
       .calls = keywords("<function_calls>", "</function_calls>", "\n"),
       .signs = {"<function_calls>"}},
      {.names = {"lfm2"},
       .calls = keywords("<|tool_call_start|>[", "]<|tool_call_end|>", ", "),
       .signs = {"<|tool_call_start|>"}},
      {.names = {"lfm2"},
       .calls = keywords("<|tool_call_start|>[", "]<|tool_call_end|>", ", "),
       .signs = {"<|tool_list_start|>"}},
      {.names = {"lfm2"},
       .calls = keywords("<|tool_call_start|>[", "]<|tool_call_end|>", ", "),
       .signs = {"List of tools: [", "keep_past_thinking"}},
      {.names = {"deepseek_v3"},
       .calls = named_json(json_calls(deep_begin, deep_end, deep_call + "function<｜tool▁sep｜>",
                                      "\n```" + deep_call_end, "\n"),
                           "\n```json\n"),
       .signs = {"<｜tool▁calls▁begin｜>", "```json"}},
      {.names = {"deepseek_v31"},
       .calls = named_json(json_calls(deep_begin, deep_end, deep_call, deep_call_end, ""),
                           "<｜tool▁sep｜>"),
       .signs = {"<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"}},
      {.names = {"mistral"},
       .calls = with_slot(named_json(json_calls("", "", "[TOOL_CALLS]", "", ""), "[CALL_ID]"),
                          "[ARGS]", true),
       .signs = {"[TOOL_CALLS]", "[ARGS]"},
       .ids = CallIdStyle::kNine},
  };
}

// A name, then values between tags.
std::vector<KnownToolForm> tagged_forms() {
  return {
      {.names = {"deepseek_v32"},
       .calls = dsml("function_calls"),
       .signs = {"｜DSML｜", "function_calls"}},
      {.names = {"deepseek_v4", "deepseek_v41"},
       .calls = dsml("tool_calls"),
       .signs = {"｜DSML｜", "tool_calls"}},
      {.names = {"qwen3_coder", "qwen3_xml", "mimo", "nemotron_v3", "step3p5"},
       .calls = qwen3_coder("tool_call", "\n"),
       .signs = {"<function=", "<parameter="}},
      {.names = {"seed_oss"},
       .calls = qwen3_coder("seed:tool_call", ""),
       .signs = {"<seed:tool_call>"}},
      {.names = {"glm45", "ling3"},
       .calls = arg_keys("\n"),
       .signs = {"<arg_key>", "</arg_key>\n"}},
      {.names = {"glm47", "poolside_v1"}, .calls = arg_keys(""), .signs = {"<arg_key>"}},
      {.names = {"minimax_m2"},
       .calls = invocations("<minimax:tool_call>\n", "</minimax:tool_call>", "", {{"\">"}}),
       .signs = {"<minimax:tool_call>"}},
  };
}

// Objects of JSON; the most general signs come last.
std::vector<KnownToolForm> json_forms() {
  return {
      {.names = {"mistral_nemo"},
       .calls = mistral_nemo(),
       .signs = {"[TOOL_CALLS]"},
       .ids = CallIdStyle::kNine},
      {.names = {"phi4_mini_json"}, .calls = json_array("functools[", "]"), .signs = {"functools"}},
      {.names = {"granite"},
       .calls = json_array("<|tool_call|>[", "]"),
       .signs = {"<|tool_call|>"}},
      {.names = {"granite-20b-fc"},
       .calls = json_calls("", "", "<function_call> ", "", ""),
       .signs = {"<function_call>"}},
      {.names = {"cohere_command3", "cohere_command4"},
       .calls = cohere(),
       .signs = {"<|START_ACTION|>"}},
      {.names = {"apertus"}, .calls = apertus(), .signs = {"<|tools_prefix|>"}},
      {.names = {"internlm"},
       .calls = json_calls("", "", "<|action_start|><|plugin|>\n", "<|action_end|>", ""),
       .signs = {"<|action_start|>"}},
      {.names = {"longcat"},
       .calls = json_calls("", "", "<longcat_tool_call>\n", "\n</longcat_tool_call>", "\n"),
       .signs = {"<longcat_tool_call>"}},
      {.names = {"jamba", "hunyuan_a13b"},
       .calls = json_array("<tool_calls>[", "]</tool_calls>"),
       .signs = {"<tool_calls>"}},
      {.names = {"gigachat3"},
       .calls = json_calls("", "", "<|function_call|>", "", ""),
       .signs = {"<|function_call|>"}},
      {.names = {"xlam"}, .calls = json_array("[", "]")},
      {.names = {"hermes", "qwen3_json", "granite4", "ernie45"},
       .calls = hermes(),
       .signs = {"<tool_call>"}},
  };
}

std::vector<KnownToolForm> make_tool_forms() {
  std::vector<KnownToolForm> all = sure_forms();
  for (const auto& more : {named_forms(), tagged_forms(), json_forms()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<KnownReasoningForm> make_reasoning_forms() {
  return {
      {{"deepseek_r1", "deepseek_v3",  "deepseek_v4", "deepseek_v41",
        "ernie45",     "glm45",        "glm47",       "granite_thinking_parser",
        "holo2",       "hunyuan_a13b", "k2_horizon",  "kimi_k2",
        "ling3",       "mimo",         "minicpmv",    "minimax_m2",
        "nemotron_v3", "olmo3",        "plamo3",      "poolside_v1",
        "qwen3",       "step3",        "step3p5"},
       {"<think>\n", "\n</think>\n\n"}},
      {{"mistral"}, {"[THINK]", "[/THINK]"}},
      {{"seed_oss"}, {"<seed:think>", "</seed:think>\n"}},
      {{"minimax_m3"}, {"<mm:think>", "</mm:think>"}},
      {{"cohere_command3", "cohere_command4"}, {"<|START_THINKING|>", "<|END_THINKING|>"}},
      {{"gemma4"}, {"<|channel>thought\n", "\n<channel|>"}},
      {{"granite"}, {"Here is my thought process:", "Here is my response:"}},
      {{"openai_gptoss"}, {"<|channel|>analysis<|message|>", "<|end|>"}, true},
  };
}

template <class Form>
std::string list_names(std::span<const Form> forms) {
  std::vector<std::string_view> names;
  for (const Form& form : forms) names.insert(names.end(), form.names.begin(), form.names.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string listed;
  for (const std::string_view name : names) {
    listed += (listed.empty() ? "" : ", ") + std::string(name);
  }
  return listed;
}

template <class Form>
const Form* find_by_name(std::span<const Form> forms, std::string_view name) {
  for (const Form& form : forms) {
    if (std::find(form.names.begin(), form.names.end(), name) != form.names.end()) return &form;
  }
  return nullptr;
}

}  // namespace

std::span<const KnownToolForm> known_tool_forms() {
  static const std::vector<KnownToolForm> kForms = make_tool_forms();
  return kForms;
}

std::span<const KnownReasoningForm> known_reasoning_forms() {
  static const std::vector<KnownReasoningForm> kForms = make_reasoning_forms();
  return kForms;
}

const KnownToolForm* find_tool_form(std::string_view name) {
  return find_by_name(known_tool_forms(), name);
}

const KnownReasoningForm* find_reasoning_form(std::string_view name) {
  return find_by_name(known_reasoning_forms(), name);
}

std::string list_tool_forms() { return list_names(known_tool_forms()); }
std::string list_reasoning_forms() { return list_names(known_reasoning_forms()); }

const ToolCallForm& generic_tool_form() {
  static const ToolCallForm kForm = [] {
    ToolCallForm form = json_calls("", "", "{\"tool_call\": ", "}", "\n");
    // As models write it of their own accord.
    form.other_begins = {"{ \"tool_call\":",  "{\"tool_call\" :",    "{ \"tool_call\" :",
                         "{\n\"tool_call\":", "{\n  \"tool_call\":", "{\n    \"tool_call\":"};
    return form;
  }();
  return kForm;
}

}  // namespace pagoda::chat
