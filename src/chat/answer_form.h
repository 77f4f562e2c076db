// The form of a model's answers: how reasoning, content and tool calls are written in its text.
//
// A form is a description: derive.h finds it from a chat template, known_forms.h lists those of
// families whose template does not show it, answer_parser.h reads answers by it, and
// call_literals.h gives a constrained decoder the texts around a call's arguments.
//
// Literals keep the white space that the template writes, so that an answer whose parts come back
// in the history renders to the text that the model wrote. Readers take any white space there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagoda::chat {

//   <think>\nRsn\n</think>\n\nCnt
struct ReasoningForm {
  std::string begin;  // "<think>\n"; empty: every generation prompt opens the reasoning
  std::string end;    // "\n</think>\n\n"

  bool operator==(const ReasoningForm&) const = default;
};

enum class CallSyntax : std::uint8_t {
  kJsonObject,  // {"name": "N", "arguments": {…}}
  kNamed,       // call_begin N name_end arguments call_end
};

// How the arguments behind a name are written.
enum class ArgumentSyntax : std::uint8_t {
  kJson,      // {"city": "Rome", "days": 2}
  kTagged,    // <parameter=city>\nRome\n</parameter>
  kQuoted,    // {city:<|"|>Rome<|"|>,days:2}: keys are bare, strings stand between quotes of their
              // own
  kKeywords,  // (city="Rome", days=2), as in Python
};

// How a tagged value is read: a string is text as it stands, anything else is JSON.
enum class ArgumentType : std::uint8_t {
  kBySchema,
  kString,
  kNullableString,  // a string, or the word null
  kJson,
};

enum class JsonKind : std::uint8_t { kAny, kNumber, kBoolean, kNull, kArray, kObject };

struct KeyEnd {
  std::string text;  // ">\n", "\" string=\"true\">"
  ArgumentType type = ArgumentType::kBySchema;
  JsonKind kind = JsonKind::kAny;  // of kJson: templates write this end before such values alone

  bool operator==(const KeyEnd&) const = default;
};

struct TaggedArguments {
  std::string key_begin;           // "<parameter="
  std::vector<KeyEnd> key_ends;    // some templates write the value's type behind its key
  std::string value_end;           // "\n</parameter>\n"
  bool value_end_has_key = false;  // value_end is followed by the key and `close_end`: "</city>"
  std::string close_end;
  bool nests = false;  // objects and arrays are tags within tags (nested_arguments.h)
  // Around a text that would be taken for tags, or has several lines: "<![CDATA[", "]]>".
  std::string text_begin = {};
  std::string text_end = {};

  bool operator==(const TaggedArguments&) const = default;
};

//   before section_begin call_begin CALL call_end separator call_begin CALL call_end section_end
struct ToolCallForm {
  std::string before;         // the white space between content and calls
  std::string section_begin;  // "[TOOL_CALLS]["
  std::string section_end;    // "]"
  std::string call_begin;     // "<tool_call>\n"
  std::string call_end;       // "\n</tool_call>"
  std::string separator;      // "\n"
  // These also begin a section, though the template does not write them: "<|python_tag|>".
  std::vector<std::string> other_begins = {};

  CallSyntax syntax = CallSyntax::kJsonObject;
  std::string name_key = "name";            // of kJsonObject
  std::string arguments_key = "arguments";  // of kJsonObject
  bool name_is_key = false;                 // {"N": {…}}
  bool id_is_last = false;                  // {"name": "N", "arguments": {…}, "id": "…"}

  ArgumentSyntax arguments = ArgumentSyntax::kJson;  // of kNamed, like everything below
  std::string name_prefix = {};                      // "functions."; models may leave it out
  std::string name_end = {};                         // ">\n", "[CALL_ID]", ":"
  // Behind the call's id or number, where name_end is followed by one: "[ARGS]".
  std::string arguments_begin = {};
  bool has_slot = false;    // name_end is followed by an id or a number
  bool slot_is_id = false;  // and it is the id
  bool call_is_id = false;  // all that stands before arguments_begin is the id: "functions.N:0"
  TaggedArguments tagged = {};
  std::string quote = {};  // of kQuoted: "<|\"|>"

  bool operator==(const ToolCallForm&) const = default;
};

// The ids that a template accepts in the history.
enum class CallIdStyle : std::uint8_t {
  kAny,
  kNine,  // nine letters and digits, as Mistral's templates demand
  kKimi,  // "functions.N:0"
};

struct AnswerForm {
  std::string name;  // "hermes", or "derived"
  std::optional<ReasoningForm> reasoning = {};
  std::optional<ToolCallForm> calls = {};
  std::string content_begin = {};  // "<|START_TEXT|>"
  std::string content_end = {};
  // Ends a turn before its last token, which no answer shows: "<|close|>message<|sep|>".
  std::string turn_end = {};
  bool channels = false;  // gpt-oss: the parts are messages of the harmony format
  // The calls are an object of JSON that constrained decoding makes the model write, because its
  // template has no place for tools.
  bool generic = false;
  CallIdStyle ids = CallIdStyle::kAny;

  bool operator==(const AnswerForm&) const = default;
};

}  // namespace pagoda::chat
