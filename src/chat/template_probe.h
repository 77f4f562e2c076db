// Renders small conversations that differ in one thing, for derive.h to compare.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace pagoda::chat {

// Words that no template contains.
inline constexpr const char* kProbeUser = "qUeSTioN";
inline constexpr const char* kProbeNext = "nEXtoNe";  // the user's message behind an answer
inline constexpr const char* kProbeContent = "aNSweR";
inline constexpr const char* kProbeReasoning = "rEaSOn";
inline constexpr const char* kProbeNames[] = {"pRobe_one", "pRobe_two"};
inline constexpr const char* kProbeKeys[] = {"kEy_one", "kEy_two"};
inline constexpr const char* kProbeValues[] = {"vALue one", "vALue two"};
inline constexpr const char* kProbeIds[] = {"pRobeid01", "pRobeid02"};  // nine letters and digits

struct ProbeCall {
  int name = 0;  // of kProbeNames
  text::ChatJson arguments = text::ChatJson::object();
};

// The assistant's message that follows the user's.
struct ProbeMessage {
  bool content = false;
  bool reasoning = false;
  std::vector<ProbeCall> calls = {};
  std::string_view id = {};  // of the first call, in the place of kProbeIds[0]
};

class TemplateProbe {
 public:
  // The template must outlive the probe.
  explicit TemplateProbe(const text::ChatTemplate& chat);

  // Returns the text that the template writes behind the user's words; nothing where it fails.
  std::optional<std::string> tail(const ProbeMessage& message) const;
  // Some templates end a turn of words only where another message follows. Returns the text that
  // ends it there and ends `written`, too; empty where there is none.
  std::string late_end(std::string_view written) const;
  // The same of the generation prompt; without `thinking`, of one that asks for none.
  std::optional<std::string> generation_tail(bool thinking = true) const;
  // Does the template write the tools into the prompt?
  bool shows_tools() const;

 private:
  std::optional<std::string> render(const text::Conversation& conversation) const;
  std::optional<std::string> behind_user(const text::Conversation& conversation) const;

  const text::ChatTemplate& chat_;
  std::string tools_text_;  // the tools, where the template writes them behind the user's words
  bool with_tools_ = true;  // false: the template fails where there are tools
};

// The arguments {kProbeKeys[0]: kProbeValues[0], …} of `count` keys.
text::ChatJson probe_arguments(int count);

}  // namespace pagoda::chat
