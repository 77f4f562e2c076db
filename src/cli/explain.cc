// pagoda explain: what of a prompt a running server has in its cache, and why not more.
#include <fmt/format.h>

#include <boost/system/system_error.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "base/file_bytes.h"
#include "base/result.h"
#include "cli/access_flags.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/prompt_text.h"
#include "gguf/printable.h"
#include "net/http_json.h"
#include "net/url.h"
#include "terminal/json_text.h"

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
constexpr std::size_t kTokenBytesMax = 60;
constexpr std::size_t kAdviceBytesMax = 1000;

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

std::string count(const Json& number) { return format_grouped(number.get<std::uint64_t>()); }

std::string quoted(const Json& token) {
  return fmt::format(
      "\"{}\"", gguf::printable(token.at("text").get_ref<const std::string&>(), kTokenBytesMax));
}

std::string place_text(const Json& at) {
  const std::string source = at.at("source");
  const std::string where = at.at("message").is_null()
                                ? source
                                : fmt::format("messages[{}] ({})", count(at["message"]), source);
  return fmt::format("{}, character {}", where, count(at.at("character")));
}

std::string explanation_text(const Json& why) {
  const Json& tiers = why.at("matched_by_tier");
  const Json& at = why.at("stopped_at");
  std::string text = fmt::format("cached     {} of {} prompt tokens", count(why["matched_tokens"]),
                                 count(why["prompt_tokens"]));
  if (tiers.at("tier") != 0)
    text += fmt::format(", {} of them in another tier", count(tiers["tier"]));
  text += fmt::format("\nreason     {}\n", why.at("reason").get_ref<const std::string&>());
  text += fmt::format("stops at   token {}, {}", count(at.at("token")), quoted(at.at("asked")));
  if (!why.at("stored").is_null()) {
    text += fmt::format(" where the cache has {}", quoted(why["stored"]));
  }
  text += fmt::format("\nwhere      {}\n", place_text(at));
  const std::uint64_t reachable = why.at("reachable_tokens");
  if (reachable > why["matched_tokens"].get<std::uint64_t>()) {
    text += fmt::format("could be   {} tokens\n", format_grouped(reachable));
  }
  return text + fmt::format("advice     {}\n",
                            gguf::printable(why.at("advice").get_ref<const std::string&>(),
                                            kAdviceBytesMax));
}

Status explain(const ExplainOptions& options) {
  ASSIGN_OR_RETURN(const net::Url url, net::parse_url(options.url, "URL"));
  ASSIGN_OR_RETURN(const std::string body, read_body(options.prompt, options.file));
  try {
    const Json told = net::post_json(url, options.access, "/cache/explain", body);
    if (options.json) {
      fmt::print("{}\n", terminal::json_text(told));
      return ok_status();
    }
    const Json all = told.is_array() ? told : Json::array({told});
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all.size() > 1) fmt::print("{}prompt {}\n", i > 0 ? "\n" : "", i);
      fmt::print("{}", explanation_text(all[i]));
    }
  } catch (const boost::system::system_error& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", options.url, trouble.code().message())};
  } catch (const std::exception& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", options.url, trouble.what())};
  }
  return ok_status();
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
