#include "server/api/structured_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api/chat_prompt.h"
#include "server/api_error.h"
#include "structured/grammar.h"
#include "structured/matcher.h"
#include "text/abbreviated.h"

namespace pagoda::server {
namespace {

using GrammarResult = Result<std::shared_ptr<const structured::Grammar>>;

enum class Language : std::uint8_t { kJsonObject, kSchema, kRegex, kChoice, kGbnf };

// What one field asks for.
struct Asked {
  Language language;
  const Json* value;  // nullptr for kJsonObject
  std::string path;
};

struct NamedLanguage {
  const char* name;
  Language language;
};

// Members of structured_outputs.
constexpr std::array<NamedLanguage, 4> kMembers = {{{"json", Language::kSchema},
                                                    {"regex", Language::kRegex},
                                                    {"choice", Language::kChoice},
                                                    {"grammar", Language::kGbnf}}};
// Members of structured_outputs that may be false.
constexpr std::array<const char*, 2> kRefinements = {"disable_any_whitespace",
                                                     "disable_additional_properties"};
// Fields of the body.
constexpr std::array<NamedLanguage, 6> kFields = {{{"guided_json", Language::kSchema},
                                                   {"guided_regex", Language::kRegex},
                                                   {"guided_choice", Language::kChoice},
                                                   {"guided_grammar", Language::kGbnf},
                                                   {"json_schema", Language::kSchema},
                                                   {"grammar", Language::kGbnf}}};

// Clients send empty values for what they do not use. An empty schema is a schema.
bool asks_for_no_grammar(const Json& value) {
  if (value.is_object()) return false;
  return value.is_string() ? value.get_ref<const std::string&>().empty()
                           : value.is_array() && value.empty();
}

bool is_known_member(std::string_view name) {
  return name == "json_object" ||
         std::any_of(kMembers.begin(), kMembers.end(),
                     [name](const NamedLanguage& one) { return name == one.name; }) ||
         std::find(kRefinements.begin(), kRefinements.end(), name) != kRefinements.end();
}

[[noreturn]] void refuse_constraint(const std::string& path, std::string_view what) {
  throw ApiError(400, fmt::format("{}: {}", path, what), path, "unsupported_parameter");
}

void read_response_format(const Fields& fields, std::vector<Asked>& asked) {
  const Json* const format = fields.object("response_format");
  if (format == nullptr) return;
  const Fields members(*format, fields.path_of("response_format"));
  members.require("type");
  const std::string_view type = members.text("type").value_or("");
  if (type == "text") return;
  if (type == "json_object") {
    // llama.cpp's form has a schema here.
    const Json* const schema = members.find("schema");
    asked.push_back({schema == nullptr ? Language::kJsonObject : Language::kSchema, schema,
                     members.path_of(schema == nullptr ? "type" : "schema")});
    return;
  }
  if (type != "json_schema") {
    refuse_constraint(members.path_of("type"),
                      "is not supported, except text, json_object and json_schema");
  }
  members.require("json_schema");
  const Json* const outer = members.object("json_schema");
  const Fields schema(*outer, members.path_of("json_schema"));
  schema.boolean("strict");  // either way the answer obeys the schema
  asked.push_back({Language::kSchema, &schema.require("schema"), schema.path_of("schema")});
}

void read_structured_outputs(const Fields& fields, std::vector<Asked>& asked) {
  const Json* const outputs = fields.object("structured_outputs");
  if (outputs == nullptr) return;
  const Fields members(*outputs, fields.path_of("structured_outputs"));
  for (const NamedLanguage& one : kMembers) {
    const Json* const value = members.find(one.name);
    if (value == nullptr || asks_for_no_grammar(*value)) continue;
    asked.push_back({one.language, value, members.path_of(one.name)});
  }
  if (members.boolean("json_object").value_or(false)) {
    asked.push_back({Language::kJsonObject, nullptr, members.path_of("json_object")});
  }
  for (const char* const name : kRefinements) {
    if (members.boolean(name).value_or(false)) {
      refuse_constraint(members.path_of(name),
                        "is not supported: white space is bounded, and objects are "
                        "closed unless their schema says otherwise");
    }
  }
  for (const auto& [name, value] : outputs->items()) {
    if (!is_known_member(name) && !value.is_null() && !asks_for_no_grammar(value)) {
      refuse_constraint(members.path_of(name), "is not supported");
    }
  }
}

const std::string& text_of(const Asked& asked) {
  if (!asked.value->is_string()) refuse_type(asked.path, *asked.value, "a string");
  return asked.value->get_ref<const std::string&>();
}

GrammarResult schema_grammar(const Asked& asked) {
  if (!asked.value->is_string()) return structured::grammar_from_schema(*asked.value);
  // vLLM takes a schema's text, too.
  const Result<Json> schema = text::parse_strict_json(text_of(asked));
  if (!schema.ok()) return Error(schema.error());
  return structured::grammar_from_schema(schema.value());
}

GrammarResult choice_grammar(const Asked& asked) {
  if (!asked.value->is_array()) refuse_type(asked.path, *asked.value, "an array of strings");
  std::vector<std::string> texts;
  for (const Json& text : *asked.value) {
    if (!text.is_string()) refuse_type(element_path(asked.path, texts.size()), text, "a string");
    texts.push_back(text.get<std::string>());
  }
  return structured::grammar_from_choice(std::move(texts));
}

GrammarResult compile_constraint(const Asked& asked) {
  switch (asked.language) {
    case Language::kJsonObject:
      return structured::grammar_of_json_object();
    case Language::kSchema:
      return schema_grammar(asked);
    case Language::kRegex:
      return structured::grammar_from_regex(text_of(asked));
    case Language::kChoice:
      return choice_grammar(asked);
    case Language::kGbnf:
      return structured::grammar_from_gbnf(text_of(asked));
  }
  return Error{ErrorCode::kUnsupported, "no such language"};
}

std::optional<Asked> find_constraint(const Fields& fields) {
  std::vector<Asked> asked;
  read_response_format(fields, asked);
  read_structured_outputs(fields, asked);
  for (const NamedLanguage& one : kFields) {
    const Json* const value = fields.find(one.name);
    if (value == nullptr || asks_for_no_grammar(*value)) continue;
    asked.push_back({one.language, value, fields.path_of(one.name)});
  }
  if (asked.empty()) return std::nullopt;
  if (asked.size() > 1) {
    throw ApiError(400,
                   fmt::format("{}: cannot be combined with {}: an answer obeys one grammar",
                               asked[1].path, asked[0].path),
                   asked[1].path);
  }
  return std::move(asked.front());
}

[[noreturn]] void refuse_grammar(const Asked& asked, const Error& error) {
  constexpr std::size_t kMessageBytesMax = 1000;
  throw ApiError(
      400, fmt::format("{}: {}", asked.path, text::abbreviated(error.message, kMessageBytesMax)),
      asked.path, "invalid_grammar");
}

}  // namespace

void read_constraint(const Fields& fields, const ServedModel& model, bool may_take_long,
                     CompletionRequest& request) {
  const std::optional<Asked> asked = find_constraint(fields);
  if (!asked) return;
  if (model.mask_vocabulary == nullptr)
    refuse_constraint(asked->path, "is not supported with this model");
  if (!may_take_long) throw TakesLong();
  const GrammarResult grammar = compile_constraint(*asked);
  if (!grammar.ok()) refuse_grammar(*asked, grammar.error());
  auto matcher = std::make_shared<structured::Matcher>(grammar.value(), model.mask_vocabulary);
  // The first mask is computed here: a grammar that is too ambiguous for it is the client's error,
  // and all choices begin with it.
  std::vector<structured::MaskWord> mask(model.mask_vocabulary->words());
  const Status first = matcher->fill_mask(mask);
  if (!first.ok()) refuse_grammar(*asked, first.error());
  request.engine.constraint = std::move(matcher);
}

}  // namespace pagoda::server
