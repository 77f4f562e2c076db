// pagoda template check, through its command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/captured_command.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;

Captured check_template(const std::string& name, std::vector<std::string> more = {}) {
  const std::string data = test_data();
  std::vector<std::string> words = {"template", "check", data + "/vocab/ggml-vocab-gpt-2.gguf",
                                    "--chat-template", data + "/chat/templates/" + name + ".jinja"};
  words.insert(words.end(), more.begin(), more.end());
  return run_captured(words);
}

TEST(Template, SaysWhatWasDerivedAndWhatTheNextTurnLoses) {
  const Captured shown = check_template("qwen3");
  EXPECT_EQ(shown.exit_status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("<tool_call>\\n"));
  EXPECT_THAT(shown.out, HasSubstr("\\n</think>\\n\\n"));
  EXPECT_THAT(shown.out, HasSubstr("leaves out the reasoning of earlier turns"));
  EXPECT_THAT(shown.out, HasSubstr("--chat-template"));
}

TEST(Template, JsonHasTheSame) {
  const Captured shown = check_template("qwen3", {"--json", "--turns", "2"});
  const auto report = nlohmann::json::parse(shown.out);
  EXPECT_EQ(report["tool_calls"]["from"], "derived");
  EXPECT_THAT(report["under_a_grammar"].get<std::string>(), HasSubstr("other tokens"));
  for (const auto& conversation : report["next_turns"]) {
    ASSERT_EQ(conversation["turns"].size(), 2U);
    for (const auto& turn : conversation["turns"]) {
      EXPECT_EQ(turn["cached_tokens"].get<int>(),
                turn["kept_tokens"].get<int>() + turn["lost_tokens"].get<int>());
      EXPECT_EQ(turn.contains("cause"), turn["lost_tokens"].get<int>() > 0);
    }
  }
}

// A folder whose template for tools lies beside its main one, which knows none.
TEST(Template, TheTemplateForToolsIsTheOneThatCallsAreReadBy) {
  const std::string data = test_data();
  const std::string folder = testing::TempDir() + "/template_tools_" + std::to_string(::getpid());
  std::filesystem::copy(data + "/models/hf_qwen2_words", folder);
  std::filesystem::copy(data + "/hf_tokenizers/qwen2/tokenizer.json", folder);
  std::ofstream(folder + "/chat_template.jinja")
      << "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const auto calls_of = [&] {
    const Captured shown = run_captured({"template", "check", folder, "--json"});
    EXPECT_EQ(shown.exit_status, 0) << shown.err;
    return nlohmann::json::parse(shown.out)["tool_calls"]["from"].get<std::string>();
  };
  EXPECT_EQ(calls_of(), "generic");
  std::filesystem::create_directory(folder + "/additional_chat_templates");
  std::filesystem::copy(data + "/chat/templates/qwen3.jinja",
                        folder + "/additional_chat_templates/tool_use.jinja");
  EXPECT_EQ(calls_of(), "derived");
  std::filesystem::remove_all(folder);
}

TEST(Template, AnUnknownParserIsAnErrorWithItsFlag) {
  const Captured refused = check_template("qwen3", {"--reasoning-parser", "nobody"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--reasoning-parser: unknown parser \"nobody\""));
  EXPECT_THAT(refused.err, HasSubstr("deepseek_r1"));
}

}  // namespace
}  // namespace pagoda::cli
