#include "server/api/structured_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api_error.h"
#include "text/strict_json.h"

namespace pagoda::server {
namespace {

using structured::GrammarBuilder;
using NodeResult = Result<structured::GrammarNodeId>;

// The memory that a grammar takes at most while it is compiled: limits of src/structured.
constexpr std::uint64_t kCompilingBytes = std::uint64_t{32} << 20;

enum class Language : std::uint8_t { kJsonObject, kSchema, kRegex, kChoice, kGbnf };

// The grammar that one field asks for, not compiled yet.
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

// An empty schema is a schema.
bool is_empty(const Json& value) {
  if (value.is_object()) return false;
  return value.is_string() ? value.get_ref<const std::string&>().empty()
                           : value.is_array() && value.empty();
}

bool has_no_text(const Json& value) {
  return is_empty(value) ||
         (value.is_string() &&
          value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos);
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
  if (const Json* const schema = members.find("schema")) {  // llama.cpp's form
    asked.push_back({Language::kSchema, schema, members.path_of("schema")});
    return;
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
    if (value == nullptr) continue;
    // vLLM refuses these; an empty expression has one answer, the empty one.
    if (has_no_text(*value) && one.language != Language::kRegex) {
      const std::string path = members.path_of(one.name);
      throw ApiError(
          400, fmt::format("{}: is empty; leave it out for an answer without a grammar", path),
          path);
    }
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
    const bool is_off = value.is_null() || value == false || is_empty(value);
    if (!is_known_member(name) && !is_off) {
      refuse_constraint(members.path_of(name), "is not supported");
    }
  }
}

const std::string& text_of(const Asked& asked) {
  if (!asked.value->is_string()) refuse_type(asked.path, *asked.value, "a string");
  return asked.value->get_ref<const std::string&>();
}

NodeResult schema_node(const Asked& asked, const ReadingTerms& terms, GrammarBuilder& builder) {
  if (!asked.value->is_string()) return builder.schema(*asked.value);
  // vLLM takes a schema's text, too.
  const Result<Json> schema = text::parse_strict_json(text_of(asked), &terms.memory);
  if (schema.ok()) return builder.schema(schema.value());
  if (schema.error().code == ErrorCode::kExhausted) throw terms.memory.refusal();
  return Error(schema.error());
}

NodeResult choice_node(const Asked& asked, GrammarBuilder& builder) {
  if (!asked.value->is_array()) refuse_type(asked.path, *asked.value, "an array of strings");
  std::vector<std::string> texts;
  for (const Json& text : *asked.value) {
    if (!text.is_string()) refuse_type(element_path(asked.path, texts.size()), text, "a string");
    texts.push_back(text.get<std::string>());
  }
  return builder.choice(std::move(texts));
}

NodeResult compile_asked(const Asked& asked, const ReadingTerms& terms, GrammarBuilder& builder) {
  switch (asked.language) {
    case Language::kJsonObject:
      return builder.json_object();
    case Language::kSchema:
      return schema_node(asked, terms, builder);
    case Language::kRegex:
      return builder.regex(text_of(asked));
    case Language::kChoice:
      return choice_node(asked, builder);
    case Language::kGbnf:
      return builder.gbnf(text_of(asked));
  }
  return Error{ErrorCode::kUnsupported, "no such language"};
}

std::optional<Asked> find_constraint(const Fields& fields) {
  std::vector<Asked> asked;
  read_response_format(fields, asked);
  read_structured_outputs(fields, asked);
  for (const NamedLanguage& one : kFields) {
    const Json* const value = fields.find(one.name);
    if (value == nullptr || is_empty(*value)) continue;
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

}  // namespace

bool asks_for_no_structure(const Json& value) {
  if (!value.is_object()) return is_empty(value);
  return value.empty() || (value.size() == 1 && value.contains("type") && value["type"] == "text");
}

void begin_compiling(const ReadingTerms& terms) {
  if (!terms.may_take_long) throw TakesLong();
  if (!terms.memory.take(kCompilingBytes)) throw terms.memory.refusal();
}

std::optional<AskedGrammar> read_structured_fields(const Fields& fields, const ReadingTerms& terms,
                                                   GrammarBuilder& builder) {
  const std::optional<Asked> asked = find_constraint(fields);
  if (!asked) return std::nullopt;
  begin_compiling(terms);
  const NodeResult node = compile_asked(*asked, terms, builder);
  if (node.ok()) return AskedGrammar{node.value(), asked->path};
  refuse_grammar(asked->path, node.error());
}

}  // namespace pagoda::server
