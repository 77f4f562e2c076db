#include "server/api/responses/output_items.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"

namespace pagoda::server::responses {
namespace {

Json as_parts(Json text, bool is_answer) {
  Json part = {{"type", is_answer ? "output_text" : "input_text"}};
  part["text"] = std::move(text);
  if (is_answer) part["annotations"] = Json::array();
  return Json::array({std::move(part)});
}

Json as_output_message(Json item, std::string id) {
  Json message = {{"id", std::move(id)}, {"type", "message"}, {"status", "completed"}};
  Json::object_t::Container& members = message.get_ref<Json::object_t&>();
  const std::size_t own = members.size();
  for (auto& [name, value] : item.get_ref<Json::object_t&>()) {
    std::size_t at = 0;
    while (at < own && members[at].first != name) ++at;
    if (at == own) {
      // To the end: an insertion would compare each with all before it.
      members.emplace_back(name, std::move(value));
    } else if (!value.is_null()) {
      members[at].second = std::move(value);
    }
  }
  Json& content = message["content"];
  if (content.is_string()) content = as_parts(std::move(content), message["role"] == "assistant");
  return message;
}

}  // namespace

Json as_output_items(Json input, TranslationMemory& memory) {
  if (input.is_string()) {
    Json message = {{"role", "user"}};
    message["content"] = std::move(input);
    input = Json::array({std::move(message)});
  }
  const std::uint64_t seed = fresh_seed();  // ids of several replies stand in one conversation
  for (std::size_t i = 0; i < input.size(); ++i) {
    const auto type = input[i].find("type");
    const bool is_message = type == input[i].end() || type->is_null() || *type == "message";
    if (!is_message) continue;
    memory.add(kTranslatedBytes);
    input[i] = as_output_message(std::move(input[i]), fmt::format("msg_{:016x}{}", seed, i));
  }
  return input;
}

}  // namespace pagoda::server::responses
