#include "chat/known_forms.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "chat/form_file.h"
#include "chat/reasoning_form_files.h"
#include "chat/tool_form_files.h"

namespace pagoda::chat {
namespace {

using EmbeddedFile = std::pair<std::string_view, std::string_view>;  // name, text

// The files are part of the program: one that cannot be read is a bug of ours.
template <class Form>
std::vector<Form> read_files(std::span<const EmbeddedFile> files,
                             Result<Form> (*read)(std::string_view, std::string_view)) {
  std::vector<Form> forms;
  for (const auto& [name, text] : files) {
    Result<Form> form = read(name, text);
    ASSERT(form.ok(), form.error().message.c_str());
    forms.push_back(std::move(form).value());
  }
  return forms;
}

template <class Form>
std::string list_names(std::span<const Form> forms) {
  std::vector<std::string_view> names;
  for (const Form& form : forms) names.insert(names.end(), form.names.begin(), form.names.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string listed;
  for (const std::string_view name : names) {
    listed += (listed.empty() ? "" : ", ") + std::string(name);
  }
  return listed;
}

template <class Form>
const Form* find_by_name(std::span<const Form> forms, std::string_view name) {
  for (const Form& form : forms) {
    if (std::find(form.names.begin(), form.names.end(), name) != form.names.end()) return &form;
  }
  return nullptr;
}

}  // namespace

std::span<const KnownToolForm> known_tool_forms() {
  static const std::vector<KnownToolForm> kForms =
      read_files<KnownToolForm>(kToolFormFiles, read_tool_form);
  return kForms;
}

std::span<const KnownReasoningForm> known_reasoning_forms() {
  static const std::vector<KnownReasoningForm> kForms =
      read_files<KnownReasoningForm>(kReasoningFormFiles, read_reasoning_form);
  return kForms;
}

const KnownToolForm* find_tool_form(std::string_view name) {
  return find_by_name(known_tool_forms(), name);
}

const KnownReasoningForm* find_reasoning_form(std::string_view name) {
  return find_by_name(known_reasoning_forms(), name);
}

std::string list_tool_forms() { return list_names(known_tool_forms()); }
std::string list_reasoning_forms() { return list_names(known_reasoning_forms()); }

const ToolCallForm& generic_tool_form() {
  static const ToolCallForm kForm = [] {
    ToolCallForm form;
    form.call_begin = "{\"tool_call\": ";
    form.call_end = "}";
    form.separator = "\n";
    // As models write it of their own accord.
    form.other_begins = {"{ \"tool_call\":",  "{\"tool_call\" :",    "{ \"tool_call\" :",
                         "{\n\"tool_call\":", "{\n  \"tool_call\":", "{\n    \"tool_call\":"};
    return form;
  }();
  return kForm;
}

}  // namespace pagoda::chat
