#include "chat/form_file.h"

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/strict_json.h"

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

// Place is a value of a file and its path, "calls.tagged.key_ends[0]". All places of a file share
// one error: the first stays, and reading goes on.
struct Place {
  const Json& value;
  std::string path;
  std::string& error;

  void fail(const std::string& message) const {
    if (error.empty()) error = path.empty() ? message : path + ": " + message;
  }
};

void read(const Place& place, std::string& field) {
  if (!place.value.is_string()) return place.fail("must be a text");
  field = place.value.get<std::string>();
}

void read(const Place& place, bool& field) {
  if (!place.value.is_boolean()) return place.fail("must be true or false");
  field = place.value.get<bool>();
}

template <class Value>
void read_word(const Place& place, std::initializer_list<std::pair<std::string_view, Value>> words,
               Value& field) {
  std::string known;
  for (const auto& [word, value] : words) {
    if (place.value == word) {
      field = value;
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  place.fail("must be one of " + known);
}

void read(const Place& place, CallSyntax& field) {
  read_word(place, {{"json_object", CallSyntax::kJsonObject}, {"named", CallSyntax::kNamed}},
            field);
}

void read(const Place& place, ArgumentSyntax& field) {
  read_word(place,
            {{"json", ArgumentSyntax::kJson},
             {"tagged", ArgumentSyntax::kTagged},
             {"quoted", ArgumentSyntax::kQuoted},
             {"keywords", ArgumentSyntax::kKeywords}},
            field);
}

void read(const Place& place, ArgumentType& field) {
  read_word(place,
            {{"by_schema", ArgumentType::kBySchema},
             {"string", ArgumentType::kString},
             {"nullable_string", ArgumentType::kNullableString},
             {"json", ArgumentType::kJson}},
            field);
}

void read(const Place& place, JsonKind& field) {
  read_word(place,
            {{"any", JsonKind::kAny},
             {"number", JsonKind::kNumber},
             {"boolean", JsonKind::kBoolean},
             {"null", JsonKind::kNull},
             {"array", JsonKind::kArray},
             {"object", JsonKind::kObject}},
            field);
}

void read(const Place& place, CallIdStyle& field) {
  read_word(
      place,
      {{"any", CallIdStyle::kAny}, {"nine", CallIdStyle::kNine}, {"kimi", CallIdStyle::kKimi}},
      field);
}

void read(const Place& place, KeyEnd& field);

template <class Value>
void read(const Place& place, std::vector<Value>& field) {
  if (!place.value.is_array()) return place.fail("must be a list");
  for (std::size_t i = 0; i < place.value.size(); ++i) {
    read({place.value[i], fmt::format("{}[{}]", place.path, i), place.error}, field.emplace_back());
  }
}

void read(const Place& place, TaggedArguments& field);
void read(const Place& place, ToolCallForm& field);

// ObjectReader reads the members of an object into fields, and finds members that no field has.
class ObjectReader {
 public:
  explicit ObjectReader(const Place& place) : place_(place) {
    if (!place.value.is_object()) place.fail("must be an object");
  }

  // Reads the member into the field; a member that is left out changes nothing.
  template <class Field>
  ObjectReader& may(const std::string& key, Field& field) {
    keys_.insert(key);
    if (place_.value.contains(key)) read(member(key), field);
    return *this;
  }
  template <class Field>
  ObjectReader& must(const std::string& key, Field& field) {
    if (!place_.value.contains(key)) place_.fail(fmt::format("\"{}\" is missing", key));
    return may(key, field);
  }
  // Refuses members that were not read.
  void end() const {
    if (!place_.value.is_object()) return;
    for (const auto& [key, value] : place_.value.items()) {
      if (!keys_.contains(key)) member(key).fail("unknown key");
    }
  }

 private:
  Place member(const std::string& key) const {
    return {place_.value[key], place_.path.empty() ? key : place_.path + "." + key, place_.error};
  }

  const Place& place_;
  std::set<std::string> keys_;
};

void read(const Place& place, KeyEnd& field) {
  ObjectReader(place)
      .must("text", field.text)
      .may("type", field.type)
      .may("kind", field.kind)
      .end();
}

void read(const Place& place, TaggedArguments& field) {
  ObjectReader(place)
      .must("key_begin", field.key_begin)
      .must("key_ends", field.key_ends)
      .must("value_end", field.value_end)
      .may("value_end_has_key", field.value_end_has_key)
      .may("close_end", field.close_end)
      .may("nests", field.nests)
      .may("text_begin", field.text_begin)
      .may("text_end", field.text_end)
      .end();
}

void read(const Place& place, ToolCallForm& field) {
  ObjectReader(place)
      .may("before", field.before)
      .may("section_begin", field.section_begin)
      .may("section_end", field.section_end)
      .may("call_begin", field.call_begin)
      .may("call_end", field.call_end)
      .may("separator", field.separator)
      .may("other_begins", field.other_begins)
      .may("syntax", field.syntax)
      .may("name_key", field.name_key)
      .may("arguments_key", field.arguments_key)
      .may("name_is_key", field.name_is_key)
      .may("id_is_last", field.id_is_last)
      .may("arguments", field.arguments)
      .may("name_prefix", field.name_prefix)
      .may("name_end", field.name_end)
      .may("arguments_begin", field.arguments_begin)
      .may("has_slot", field.has_slot)
      .may("slot_is_id", field.slot_is_id)
      .may("call_is_id", field.call_is_id)
      .may("tagged", field.tagged)
      .may("quote", field.quote)
      .end();
}

void read(const Place& place, KnownToolForm& field) {
  std::string models;  // for people
  ObjectReader(place)
      .must("models", models)
      .must("names", field.names)
      .may("signs", field.signs)
      .may("sure", field.sure)
      .may("channels", field.channels)
      .may("ids", field.ids)
      .must("calls", field.calls)
      .end();
}

void read(const Place& place, KnownReasoningForm& field) {
  std::string models;  // for people
  ObjectReader(place)
      .must("models", models)
      .must("names", field.names)
      .may("channels", field.channels)
      .must("begin", field.reasoning.begin)
      .must("end", field.reasoning.end)
      .end();
}

template <class Form>
Result<Form> read_form(std::string_view file, std::string_view text) {
  const auto failed = [&](const std::string& message) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", file, message)};
  };
  const Result<Json> parsed = text::parse_strict_json(text);
  if (!parsed.ok()) return failed(parsed.error().message);
  std::string error;
  Form form;
  read({parsed.value(), {}, error}, form);
  if (!error.empty()) return failed(error);
  if (form.names.empty()) return failed("names: must have at least one name");
  return form;
}

}  // namespace

Result<KnownToolForm> read_tool_form(std::string_view file, std::string_view text) {
  return read_form<KnownToolForm>(file, text);
}

Result<KnownReasoningForm> read_reasoning_form(std::string_view file, std::string_view text) {
  return read_form<KnownReasoningForm>(file, text);
}

}  // namespace pagoda::chat
