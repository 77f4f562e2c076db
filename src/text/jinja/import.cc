#include "text/jinja/import.h"

#include <fmt/format.h>

#include "text/jinja/fault.h"
#include "text/strict_json.h"
#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

Value import_text(const std::string& bytes, Origin origin, Heap& heap) {
  const std::size_t valid = utf8_valid_prefix(bytes);
  heap.read_bytes(bytes.size());
  if (valid != bytes.size()) fail(fmt::format("a string is not UTF-8 at byte {}", valid));
  return heap.text(bytes, origin);
}

}  // namespace

Result<JsonInput> parse_json(std::string_view text, Heap& heap) {
  heap.read_characters(text.size());
  auto parsed = parse_strict_json(text, heap.limits().account);
  if (!parsed.ok() && parsed.error().code == ErrorCode::kExhausted) {
    fail_exhausted(parsed.error().message);
  }
  return parsed;
}

Value import_json(const JsonInput& json, Origin origin, Heap& heap) {
  const Heap::Level level(heap);
  heap.step();
  switch (json.type()) {
    case JsonInput::value_t::boolean:
      return Value::boolean(json.get<bool>(), origin);
    case JsonInput::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>(), origin);
    case JsonInput::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > INT64_MAX) fail("an integer beyond 64 bits");
      return Value::integer(json.get<std::int64_t>(), origin);
    case JsonInput::value_t::number_float:
      return Value::real(json.get<double>(), origin);
    case JsonInput::value_t::string:
      return import_text(json.get_ref<const std::string&>(), origin, heap);
    case JsonInput::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const JsonInput& item : json) items.push_back(import_json(item, origin, heap));
      return heap.list(std::move(items));
    }
    case JsonInput::value_t::object: {
      const Value dict = heap.dict();
      for (const auto& [key, value] : json.items()) {
        const Value name = import_text(key, origin, heap);
        dict.as_dict().set(name, import_json(value, origin, heap), heap);
      }
      return dict;
    }
    default:
      return Value::none(origin);
  }
}

}  // namespace pagoda::text::jinja
