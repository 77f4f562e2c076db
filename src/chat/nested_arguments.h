// Values of tagged arguments as JSON, also those that are tags within tags:
//   <city>Rome</city><stops><item><name>Bern</name></item><item>…</item></stops>
// Elements of an array are tags named "item". What is an array, an object or a text is known from
// the tool's schema, and guessed where that leaves it open.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "chat/answer_form.h"
#include "chat/tool_schemas.h"

namespace pagoda::chat {

// Finds the closing tag of a value while its text comes in pieces.
class NestedScanner {
 public:
  // The form must outlive the scanner; its value_end begins with its key_begin.
  explicit NestedScanner(const TaggedArguments& form) : form_(&form) {}

  // `text` is everything behind the opening tag, longer at each call; no tag is looked for before
  // byte `from`. Returns where the closing tag begins, once it is there.
  std::optional<std::size_t> find_end(std::string_view text, std::size_t from);

 private:
  const TaggedArguments* form_;
  std::size_t at_ = 0;
  std::size_t open_ = 0;  // tags within the value
};

// A value without tags: a string as it stands, anything else is JSON where it can be.
std::string tagged_value_json(ArgumentType type, std::string_view value);

// A value with tags within, or an empty one that the schema says is an object or an array. Nothing
// where it is neither.
std::optional<std::string> nested_value_json(const TaggedArguments& form, std::string_view value,
                                             const ArgumentShape& shape);

}  // namespace pagoda::chat
