#include "text/jinja/template.h"

#include <fmt/format.h>

#include <utility>

#include "text/abbreviated.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

// A template may raise an exception with a text of any length.
constexpr std::size_t kMessageBytesMax = 1000;

Error placed(const std::string& name, const Fault& fault, ErrorCode code) {
  const std::string message = abbreviated(fault.message, kMessageBytesMax);
  if (!fault.place) return {code, fmt::format("{}: {}", name, message)};
  return {code, fmt::format("{}:{}:{}: {}", name, fault.place->line, fault.place->column, message)};
}

}  // namespace

Result<Template> Template::parse(std::string name, std::string_view source) {
  if (source.size() > kSourceBytesMax) {
    return Error{ErrorCode::kOutOfRange, fmt::format("{}: a template of {} bytes, at most {}", name,
                                                     source.size(), kSourceBytesMax)};
  }
  const std::size_t valid = utf8_valid_prefix(source);
  if (valid != source.size()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: the template is not UTF-8 at byte {}", name, valid)};
  }
  try {
    Block block = parse_template(source);
    return Template(std::move(name), std::move(block));
  } catch (const Fault& fault) {
    return placed(name, fault, ErrorCode::kCorrupt);
  }
}

Result<OriginText> Template::render(const Bind& bind, std::time_t now,
                                    const RenderLimits& limits) const {
  try {
    Heap heap(limits);
    Scope& scope = heap.scope(nullptr);
    bind_functions(scope);
    bind(heap, scope);
    return Interpreter(heap, now).run(block_, scope);
  } catch (const Fault& fault) {
    return placed(name_, fault, fault.code);
  }
}

}  // namespace pagoda::text::jinja
