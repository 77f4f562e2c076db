// Calls of the history that a template does not show, and arguments that nobody should trust.
#include "chat/history_calls.h"

#include <gtest/gtest.h>

#include "chat/known_forms.h"

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

Json history(const std::string& arguments) {
  return Json::array(
      {{{"role", "user"}, {"content", "?"}},
       {{"role", "assistant"},
        {"content", nullptr},
        {"tool_calls", {{{"function", {{"name", "f"}, {"arguments", arguments}}}}}}}});
}

TEST(HistoryCalls, DeepArgumentsAreNoneAndLongOnesAreRefused) {
  for (const KnownToolForm& known : known_tool_forms()) {
    Json deep = history("{\"a\": " + std::string(20000, '[') + std::string(20000, ']') + "}");
    EXPECT_TRUE(write_history_calls(known.calls, deep).ok()) << known.names.front();
    EXPECT_TRUE(deep[1]["content"].is_string());

    std::string many = "{";
    for (int i = 0; i < 60000; ++i) many += "\"" + std::to_string(i) + "\":1,";
    many.back() = '}';
    Json flat = history(many);
    EXPECT_TRUE(write_history_calls(known.calls, flat).ok());

    Json huge = history("{\"a\": \"" + std::string(2 << 20, 'x') + "\"}");
    const Status refused = write_history_calls(known.calls, huge);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              "messages[1].tool_calls[0].function.arguments: more than 1048576 bytes of arguments");
  }
}

}  // namespace
}  // namespace pagoda::chat
