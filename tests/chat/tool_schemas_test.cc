// What schemas of tools say of arguments, and what reading hostile ones costs.
#include "chat/tool_schemas.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;
using Members = Json::object_t::Container;

// An object with so many members: an insertion by key would compare it with all others.
Json many(int count, const Json& value) {
  Json object = Json::object();
  Members& members = object.get_ref<Json::object_t&>();
  for (int i = 0; i < count; ++i) members.emplace_back("m" + std::to_string(i), value);
  return object;
}

Json tool(const std::string& name, Json parameters) {
  return {{"type", "function"},
          {"function", {{"name", name}, {"parameters", std::move(parameters)}}}};
}

TEST(ToolSchemas, ReferencesAreFollowedInBothPlaces) {
  for (const char* const place : {"$defs", "definitions"}) {
    Json parameters = {{"properties",
                        {{"city", {{"$ref", "#/" + std::string(place) + "/City"}}},
                         {"count", {{"$ref", "#/" + std::string(place) + "/Count"}}},
                         {"other", {{"$ref", "#/" + std::string(place) + "/Nobody"}}},
                         {"far", {{"$ref", "https://example.com/City"}}}}}};
    parameters[place] = {{"City", {{"type", "string"}}}, {"Count", {{"type", "integer"}}}};
    const ToolSchemas schemas(Json::array({tool("f", parameters)}));
    EXPECT_EQ(schemas.type_of("f", "city"), ArgumentType::kString) << place;
    EXPECT_EQ(schemas.type_of("f", "count"), ArgumentType::kJson) << place;
    EXPECT_EQ(schemas.type_of("f", "other"), ArgumentType::kBySchema) << place;
    EXPECT_EQ(schemas.type_of("f", "far"), ArgumentType::kBySchema) << place;
  }
}

// Each argument would look through all definitions, or through the whole list of values: hours.
TEST(ToolSchemas, ManyReferencesTakeLinearTime) {
  constexpr int kCount = 200'000;
  Json parameters = {{"properties", many(kCount, {{"$ref", "#/$defs/last"}})},
                     {"$defs", many(kCount, {{"type", "string"}})}};
  parameters["$defs"]["last"] = {{"enum", Json(std::vector<int>(kCount, 1))}};
  const ToolSchemas schemas(Json::array({tool("f", parameters)}));
  EXPECT_EQ(schemas.type_of("f", "m0"), ArgumentType::kJson);
  EXPECT_EQ(schemas.type_of("f", "m" + std::to_string(kCount - 1)), ArgumentType::kBySchema)
      << "the budget of a request is spent";
}

TEST(ToolSchemas, ShapesOfAllToolsTogetherAreBounded) {
  const Json again = {{"$ref", "#/$defs/x"}};
  const Json parameters = {
      {"properties", {{"a", again}}},
      {"$defs",
       {{"x", {{"properties", {{"a", again}, {"b", again}, {"c", again}, {"d", again}}}}}}}};
  Json tools = Json::array();
  for (int i = 0; i < 4000; ++i) tools.push_back(tool("f" + std::to_string(i), parameters));
  const ToolSchemas schemas(tools, true);
  EXPECT_FALSE(schemas.shape_of("f0", "a").members.empty());
  EXPECT_TRUE(schemas.contains("f3999"));
  EXPECT_LT(schemas.bytes(), 64u << 20);
}

}  // namespace
}  // namespace pagoda::chat
