// A Jinja template.
//
// The dialect is the part of Jinja2 that chat templates use, configured as in Hugging Face
// transformers; see docs/guide/chat_templates.md. Immutable after parse(): any number of threads
// may render at once.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/heap.h"
#include "text/jinja/syntax.h"
#include "text/origin_text.h"

namespace pagoda::text::jinja {

class Template {
 public:
  static constexpr std::size_t kSourceBytesMax = 1U << 20;

  // Errors read "NAME:LINE:COLUMN: what is wrong".
  static Result<Template> parse(std::string name, std::string_view source);

  // Binds the names that the template sees; it may throw Fault.
  using Bind = std::function<void(Heap&, Scope&)>;

  // Returns kInvalidArgument when the template fails for these values or raises an exception,
  // kOutOfRange beyond a limit, kExhausted when the account has no more memory. `now` is the time
  // for strftime_now.
  Result<OriginText> render(const Bind& bind, std::time_t now,
                            const RenderLimits& limits = {}) const;

 private:
  Template(std::string name, Block block) : name_(std::move(name)), block_(std::move(block)) {}

  std::string name_;
  Block block_;
};

}  // namespace pagoda::text::jinja
