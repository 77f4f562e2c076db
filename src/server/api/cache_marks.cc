#include "server/api/cache_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr const char* kAnthropic = "cache_control";
constexpr const char* kOpenAi = "prompt_cache_breakpoint";
constexpr std::array kMarkNames = {kAnthropic, kOpenAi};
constexpr double kAnthropicSeconds = 5 * 60;
constexpr double kOpenAiSeconds = 30 * 60;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

CacheLifetime lifetime_of_mark(const Fields& mark, double seconds) {
  const auto ttl = mark.text("ttl");
  return ttl ? read_lifetime(*ttl, seconds) : CacheLifetime{.seconds = seconds};
}

std::optional<CacheLifetime> take_mark(Json& object, const std::string& path) {
  std::optional<CacheLifetime> lifetime = read_mark(Fields(object, path));
  for (const char* const name : kMarkNames) object.erase(name);
  return lifetime;
}

std::size_t end_of_message(const text::OriginText& rendered, std::uint32_t message) {
  std::size_t end = 0;
  for (const text::OriginText::Run& run : rendered.runs()) {
    if (run.origin.message == message) end = run.end;
  }
  return end;
}

std::size_t end_of_tools(const text::OriginText& rendered) {
  constexpr text::Origin kToolList = {text::Source::kTool, text::Origin::kNoMessage};
  std::size_t end = 0;
  for (const text::OriginText::Run& run : rendered.runs()) {
    if (run.origin == kToolList) end = run.end;
  }
  return end;
}

bool is_system_prompt(const Json& message) {
  const auto role = message.find("role");
  return role != message.end() && (*role == "system" || *role == "developer");
}

// Walks the bytes that one message has in the prompt.
class MessageText {
 public:
  MessageText(const text::OriginText& rendered, std::uint32_t message)
      : rendered_(rendered), message_(message) {}

  // Passes the text, which comes next but for spaces and the template's own text between parts.
  // False: something else comes.
  bool pass(std::string_view text) {
    const std::string_view bytes = rendered_.bytes();
    const auto runs = rendered_.runs();
    for (; run_ < runs.size(); ++run_) {
      const bool is_own = runs[run_].origin.message == message_;
      while (at_ < runs[run_].end && (!is_own || is_blank(bytes[at_]))) ++at_;
      if (at_ < runs[run_].end) break;
    }
    if (!bytes.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    while (run_ < runs.size() && runs[run_].end <= at_) ++run_;
    return true;
  }
  std::size_t at() const { return at_; }

 private:
  const text::OriginText& rendered_;
  std::uint32_t message_;
  std::size_t run_ = 0;
  std::size_t at_ = 0;  // in bytes
};

// Returns the byte behind the part, or 0 where its text is not found.
std::size_t end_of_part(const text::OriginText& rendered, const CacheMark& mark,
                        const Json& content) {
  if (!content.is_array()) return 0;
  MessageText text(rendered, mark.message);
  for (std::uint32_t i = 0; i <= mark.part && i < content.size(); ++i) {
    const auto part = content[i].find("text");
    if (part == content[i].end() || !part->is_string()) return 0;
    const std::string_view bytes = without_spaces(part->get_ref<const std::string&>());
    if (!bytes.empty() && !text.pass(bytes)) return 0;
  }
  return text.at();
}

std::size_t end_of_mark(const text::OriginText& rendered, const CacheMark& mark,
                        const Json& messages) {
  if (mark.message == CacheMark::kTools) {
    const std::size_t end = end_of_tools(rendered);
    // Templates without tools of their own show them in the system prompt.
    return end > 0 || !is_system_prompt(messages.front()) ? end : end_of_message(rendered, 0);
  }
  const Json& message = messages[mark.message];
  const auto content = message.find("content");
  std::size_t end = 0;
  if (mark.part != CacheMark::kWholeMessage && content != message.end()) {
    end = end_of_part(rendered, mark, *content);
  }
  if (end == 0) end = end_of_message(rendered, mark.message);
  return is_system_prompt(message) ? std::max(end, end_of_tools(rendered)) : end;
}

}  // namespace

std::optional<CacheLifetime> read_mark(const Fields& fields) {
  if (const Json* const mark = fields.object(kAnthropic)) {
    const Fields members(*mark, fields.path_of(kAnthropic));
    const std::string_view type = members.required_text("type");
    if (type != "ephemeral") {
      const std::string path = members.path_of("type");
      throw ApiError(400, fmt::format("{}: is \"{}\", expected \"ephemeral\"", path, type), path);
    }
    return lifetime_of_mark(members, kAnthropicSeconds);
  }
  if (const Json* const mark = fields.object(kOpenAi)) {
    const Fields members(*mark, fields.path_of(kOpenAi));
    members.text("mode");
    return lifetime_of_mark(members, kOpenAiSeconds);
  }
  return std::nullopt;
}

void copy_mark(const Json& from, Json& to) {
  for (const char* const name : kMarkNames) {
    const auto found = from.find(name);
    if (found != from.end() && !found->is_null()) to[name] = *found;
  }
}

void take_tool_marks(Json& tools, std::vector<CacheMark>& marks) {
  std::optional<CacheLifetime> last;
  for (std::size_t i = 0; tools.is_array() && i < tools.size(); ++i) {
    const std::string path = element_path("tools", i);
    if (auto mark = take_mark(tools[i], path)) last = std::move(mark);
    const auto function = tools[i].find("function");
    if (function == tools[i].end() || !function->is_object()) continue;
    if (auto mark = take_mark(*function, path + ".function")) last = std::move(mark);
  }
  if (last) marks.push_back({.lifetime = *std::move(last)});
}

void take_message_marks(Json& messages, std::vector<CacheMark>& marks) {
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    const std::string path = element_path("messages", i);
    Json& message = messages[i];
    if (auto mark = take_mark(message, path)) {
      marks.push_back({.message = i, .lifetime = *std::move(mark)});
    }
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) continue;
    for (std::uint32_t part = 0; part < content->size(); ++part) {
      if (!(*content)[part].is_object()) continue;
      if (auto mark = take_mark((*content)[part], element_path(path + ".content", part))) {
        marks.push_back({.message = i, .part = part, .lifetime = *std::move(mark)});
      }
    }
  }
}

std::uint64_t drop_early_marks(std::vector<CacheMark>& marks) {
  const std::size_t dropped = marks.size() - std::min(marks.size(), kMarksMax);
  marks.erase(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(dropped));
  return dropped;
}

void follow_messages(std::span<const std::uint32_t> kept, std::vector<CacheMark>& marks) {
  std::vector<CacheMark> followed;
  for (CacheMark& mark : marks) {
    if (mark.message != CacheMark::kTools) {
      const auto place = std::lower_bound(kept.begin(), kept.end(), mark.message);
      if (place == kept.end() || *place != mark.message) continue;
      mark.message = static_cast<std::uint32_t>(place - kept.begin());
    }
    followed.push_back(std::move(mark));
  }
  marks = std::move(followed);
}

void place_marks(const text::OriginText& rendered, const text::PromptTokens& tokens,
                 const Json& messages, std::vector<CacheMark>& marks) {
  for (CacheMark& mark : marks) {
    const std::size_t end = end_of_mark(rendered, mark, messages);
    const auto behind = std::lower_bound(tokens.begins.begin(), tokens.begins.end(), end);
    mark.tokens = static_cast<std::uint64_t>(behind - tokens.begins.begin());
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const CacheMark& a, const CacheMark& b) { return a.tokens < b.tokens; });
}

}  // namespace pagoda::server
