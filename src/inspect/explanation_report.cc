#include "inspect/explanation_report.h"

#include <fmt/format.h>

#include <boost/system/system_error.hpp>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "gguf/printable.h"
#include "net/http_json.h"
#include "terminal/json_text.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTokenBytesMax = 60;
constexpr std::size_t kAdviceBytesMax = 1000;

std::string count(const Json& number) { return format_grouped(number.get<std::uint64_t>()); }

std::string quoted(const Json& token) {
  return fmt::format(
      "\"{}\"", gguf::printable(token.at("text").get_ref<const std::string&>(), kTokenBytesMax));
}

std::string place_text(const Json& at) {
  const std::string source = at.at("source");
  const std::string where =
      at.at("path").is_null()
          ? source
          : fmt::format("{} ({})", at["path"].get_ref<const std::string&>(), source);
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

}  // namespace

Status explain_prompt(const AskedServer& server, const net::ServerAccess& access,
                      const std::string& body, bool json) {
  try {
    const Json told = net::post_json(server.url, access, "/cache/explain", body);
    if (json) {
      fmt::print("{}\n", terminal::json_text(told));
      return ok_status();
    }
    const Json all = told.is_array() ? told : Json::array({told});
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all.size() > 1) fmt::print("{}prompt {}\n", i > 0 ? "\n" : "", i);
      fmt::print("{}", explanation_text(all[i]));
    }
  } catch (const boost::system::system_error& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", server.name, trouble.code().message())};
  } catch (const std::exception& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", server.name, trouble.what())};
  }
  return ok_status();
}

}  // namespace pagoda::inspect
