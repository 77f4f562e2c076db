// pagoda explain: what of a prompt a running server has in its cache, and why not more.
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file_bytes.h"
#include "base/result.h"
#include "cli/access_flags.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/prompt_text.h"
#include "inspect/explanation_report.h"
#include "net/url.h"

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExplainExamples = R"(Examples:
  pagoda explain http://127.0.0.1:8000 -p 'What is a pagoda?'
  pagoda explain http://127.0.0.1:8000 --file prompt.json
      prompt.json: the body of a request, {"messages": [...]} or {"prompt": "..."}
  pagoda explain http://127.0.0.1:8000 --file prompt.json --json
  echo '{"prompt": "Once upon a time"}' | pagoda explain http://127.0.0.1:8000
      without --file the body is read from stdin
Nothing is generated, and the cache is not touched. A request with
"cache_explain": true gets the same beside its output.)";

constexpr std::size_t kBodyBytesMax = std::size_t{1} << 30;

struct ExplainOptions {
  std::string url;
  std::string file;
  std::string prompt;  // empty: the file's
  net::ServerAccess access;
  bool json = false;
};

Result<std::string> read_body(const std::string& prompt, const std::string& file) {
  if (!prompt.empty()) {
    const Json message = {{"role", "user"}, {"content", prompt_text(prompt)}};
    return Json{{"messages", Json::array({message})}}.dump();
  }
  if (file.empty()) return std::string(std::istreambuf_iterator<char>(std::cin), {});
  ASSIGN_OR_RETURN(FileBytes read, read_file_bytes(file, kBodyBytesMax));
  return std::move(read.bytes);
}

Status explain(const ExplainOptions& options) {
  ASSIGN_OR_RETURN(const net::Url url, net::parse_url(options.url, "URL"));
  ASSIGN_OR_RETURN(const std::string body, read_body(options.prompt, options.file));
  return inspect::explain_prompt({options.url, url}, options.access, body, options.json);
}

}  // namespace

void add_explain_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command = app.add_subcommand(
      "explain", "Why a prompt would miss the cache of a running server, and what would help");
  command.footer(kExplainExamples);
  const auto options = std::make_shared<ExplainOptions>();
  command.add_option("URL", options->url, "http[s]://host:port of a server").required();
  command.add_option("--file", options->file,
                     "the body of a chat or text completion, as JSON; default: stdin");
  command.add_option("-p,--prompt", options->prompt,
                     "instead of a body: this text as the only message of a chat; \"-\" reads it "
                     "from stdin");
  add_access_options(command, options->access, "a key for the server");
  command.add_flag("--json", options->json, "one JSON value on stdout");
  command.callback([options, &exit_status] {
    const Status told = explain(*options);
    if (!told.ok()) print_error(told.error().message);
    exit_status = told.ok() ? 0 : 1;
  });
}

}  // namespace pagoda::cli
