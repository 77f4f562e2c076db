#include "server/sse_template.h"

#include <gtest/gtest.h>

#include "server/json.h"
#include "server/json_string.h"

namespace pagoda::server {
namespace {

std::string event(std::string_view text, std::string_view model = "tiny") {
  const Json value = {{"id", "cmpl-1"},
                      {"model", model},
                      {"choices", Json::array({{{"index", 0}, {"text", text}}})}};
  return "data: " + dump_json(value) + "\n\n";
}

TEST(SseTemplateTest, ARenderedEventIsTheEventThatWouldHaveBeenWritten) {
  const auto sse_template = SseTemplate::from_event(event(SseTemplate::kPlaceholder));
  ASSERT_TRUE(sse_template.has_value());
  for (const std::string_view text :
       {"", " and", "\"quoted\" \\ back", "\n\t\x01", "\x01\x02", "caf\xc3\xa9", "\xc3", "\x7f",
        "\xf0\x9f\x98\x80 ok", "</script>"}) {
    std::string out = "before ";
    sse_template->render(text, out);
    EXPECT_EQ(out, "before " + event(text));
  }
}

TEST(SseTemplateTest, EveryByteIsEscapedAsInAnyOtherJson) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = std::string("a") + static_cast<char>(byte) + "b";
    std::string out;
    append_json_string(text, out);
    EXPECT_EQ(out, dump_json(text)) << byte;
  }
}

TEST(SseTemplateTest, APlaceholderElsewhereIsNoPlaceForText) {
  EXPECT_FALSE(SseTemplate::from_event(event(SseTemplate::kPlaceholder, SseTemplate::kPlaceholder))
                   .has_value());
  EXPECT_FALSE(SseTemplate::from_event(event("no mark")).has_value());
}

}  // namespace
}  // namespace pagoda::server
