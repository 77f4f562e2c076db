// Forms that are data: every file is read and in the program, and what is wrong in one is named.
#include "chat/known_forms.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "chat/form_file.h"
#include "test_data.h"

namespace pagoda::chat {
namespace {

std::vector<std::filesystem::path> form_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path root = std::filesystem::path(source_folder()) / "src/chat/forms";
  for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
    files.push_back(entry.path());
  }
  return files;
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A file has the first of its names, and no two files have a name in common.
template <class Form, class Read, class Find>
void expect_all_are_known(const std::string& folder, const Read& read, const Find& find) {
  std::set<std::string> names;
  const auto files = form_files(folder);
  ASSERT_FALSE(files.empty());
  for (const std::filesystem::path& file : files) {
    const Result<Form> form = read(file.filename().string(), text_of(file));
    ASSERT_TRUE(form.ok()) << form.error().message;
    EXPECT_EQ(file.filename(), form.value().names.front() + ".json");
    for (const std::string& name : form.value().names) {
      EXPECT_TRUE(names.insert(name).second) << name << " is in two files";
      const Form* const known = find(name);
      ASSERT_NE(known, nullptr) << name << " is in no list of src/chat/CMakeLists.txt";
      EXPECT_EQ(known->names, form.value().names);
    }
  }
}

TEST(KnownForms, EveryFileOfToolCallsIsReadAndHasNamesOfItsOwn) {
  expect_all_are_known<KnownToolForm>("tool_calls", read_tool_form, find_tool_form);
  EXPECT_EQ(known_tool_forms().size(), form_files("tool_calls").size());
}

TEST(KnownForms, EveryFileOfReasoningIsReadAndHasNamesOfItsOwn) {
  expect_all_are_known<KnownReasoningForm>("reasoning", read_reasoning_form, find_reasoning_form);
  EXPECT_EQ(known_reasoning_forms().size(), form_files("reasoning").size());
}

TEST(KnownForms, EveryFieldOfAFileIsRead) {
  const Result<KnownToolForm> read = read_tool_form("all.json", R"({
      "models": "none", "names": ["all", "each"], "signs": [["a", "b"], ["c"]],
      "sure": true, "channels": true, "ids": "kimi",
      "calls": {
        "before": "1", "section_begin": "2", "section_end": "3", "call_begin": "4",
        "call_end": "5", "separator": "6", "other_begins": ["7", "8"], "syntax": "named",
        "name_key": "9", "arguments_key": "10", "name_is_key": true, "id_is_last": true,
        "arguments": "tagged", "name_prefix": "11", "name_end": "12", "arguments_begin": "13",
        "has_slot": true, "slot_is_id": true, "call_is_id": true,
        "tagged": {
          "key_begin": "14",
          "key_ends": [{"text": "15", "type": "nullable_string"}, {"text": "16"}],
          "value_end": "17", "value_end_has_key": true, "close_end": "18", "nests": true
        },
        "quote": "19"
      }})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const KnownToolForm& form = read.value();
  EXPECT_EQ(form.names, (std::vector<std::string>{"all", "each"}));
  EXPECT_EQ(form.signs, (std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}}));
  EXPECT_TRUE(form.sure && form.channels);
  EXPECT_EQ(form.ids, CallIdStyle::kKimi);
  const ToolCallForm expected = {
      .before = "1",
      .section_begin = "2",
      .section_end = "3",
      .call_begin = "4",
      .call_end = "5",
      .separator = "6",
      .other_begins = {"7", "8"},
      .syntax = CallSyntax::kNamed,
      .name_key = "9",
      .arguments_key = "10",
      .name_is_key = true,
      .id_is_last = true,
      .arguments = ArgumentSyntax::kTagged,
      .name_prefix = "11",
      .name_end = "12",
      .arguments_begin = "13",
      .has_slot = true,
      .slot_is_id = true,
      .call_is_id = true,
      .tagged = {.key_begin = "14",
                 .key_ends = {{"15", ArgumentType::kNullableString}, {"16"}},
                 .value_end = "17",
                 .value_end_has_key = true,
                 .close_end = "18",
                 .nests = true},
      .quote = "19"};
  EXPECT_EQ(form.calls, expected);
}

TEST(KnownForms, AnErrorNamesTheFileAndThePlace) {
  const auto error_of = [](const std::string& text) {
    const Result<KnownToolForm> form = read_tool_form("x.json", text);
    return form.ok() ? "none" : form.error().message;
  };
  const auto with = [&](const std::string& more) {
    return error_of(R"({"models": "none", "names": ["x"], )" + more + "}");
  };
  EXPECT_EQ(with(R"("calls": {})"), "none");
  EXPECT_EQ(with(R"("calls": {}, "sign": [])"), "x.json: sign: unknown key");
  EXPECT_EQ(with(R"("calls": {"call_start": "<"})"), "x.json: calls.call_start: unknown key");
  EXPECT_EQ(with(R"("calls": {"tagged": {"key_begin": "", "value_end": "", "key_ends":
                 [{"text": ">"}, {"text": ">", "sort": "json"}]}})"),
            "x.json: calls.tagged.key_ends[1].sort: unknown key");
  EXPECT_EQ(with(R"("calls": {"tagged": {"key_begin": "", "value_end": ""}})"),
            "x.json: calls.tagged: \"key_ends\" is missing");
  EXPECT_EQ(with(R"("calls": {"syntax": "nmed"})"),
            "x.json: calls.syntax: must be one of json_object, named");
  EXPECT_EQ(with(R"("calls": {"has_slot": 1})"), "x.json: calls.has_slot: must be true or false");
  EXPECT_EQ(with(R"("calls": {"quote": 1})"), "x.json: calls.quote: must be a text");
  EXPECT_EQ(with(R"("calls": [])"), "x.json: calls: must be an object");
  EXPECT_EQ(with(R"("calls": {}, "signs": ["a"])"), "x.json: signs[0]: must be a list");
  EXPECT_EQ(with(R"("sure": true)"), "x.json: \"calls\" is missing");
  EXPECT_EQ(error_of(R"({"names": ["x"], "calls": {}})"), "x.json: \"models\" is missing");
  EXPECT_EQ(error_of(R"({"models": "none", "names": [], "calls": {}})"),
            "x.json: names: must have at least one name");
  EXPECT_EQ(error_of("[]"), "x.json: must be an object");
  EXPECT_TRUE(error_of("{").starts_with("x.json: ")) << error_of("{");
  EXPECT_TRUE(with(R"("calls": {}, "calls": {})").find("calls") != std::string::npos)
      << "a key that occurs twice";
  const Result<KnownReasoningForm> reasoning =
      read_reasoning_form("r.json", R"({"models": "none", "names": ["r"], "begin": "<"})");
  ASSERT_FALSE(reasoning.ok());
  EXPECT_EQ(reasoning.error().message, "r.json: \"end\" is missing");
}

}  // namespace
}  // namespace pagoda::chat
