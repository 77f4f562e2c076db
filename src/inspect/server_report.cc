#include "inspect/server_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "net/http_json.h"
#include "net/url.h"
#include "terminal/json_text.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;

std::string count_of(const Json& object, const char* name) {
  return format_grouped(object.at(name).get<std::uint64_t>());
}

// A limit of 0 retains nothing.
std::string limit_of(const Json& object, const char* name) {
  return object.at(name) == 0 ? "0: off" : count_of(object, name);
}

// "1 block", "2 blocks".
std::string blocks_of(const Json& object, const char* name) {
  const bool is_one = object.at(name).get<std::uint64_t>() == 1;
  return fmt::format("{} block{}", count_of(object, name), is_one ? "" : "s");
}

// Who retains how much, and the grants that run.
std::string retained_rows(const Json& retained) {
  std::string text;
  if (const auto tenants = retained.find("tenants"); tenants != retained.end()) {
    for (const Json& tenant : *tenants) {
      text += fmt::format("           {} of {}\n", blocks_of(tenant, "blocks"),
                          tenant.at("tenant").get_ref<const std::string&>());
    }
  }
  const Json& grants = retained.at("grants");
  if (grants.empty()) return text;
  text +=
      fmt::format("\n  {:<8}{:>10}{:>10}{:>14}\n", "whose", "blocks", "priority", "seconds left");
  for (const Json& grant : grants) {
    text += fmt::format("  {:<8}{:>10}{:>10}{:>14.1f}\n",
                        grant.at("tenant").get_ref<const std::string&>(), count_of(grant, "blocks"),
                        grant.at("priority").get<std::uint64_t>(),
                        grant.at("seconds_left").get<double>());
  }
  return text;
}

std::string rate_of(const Json& point) {
  const Json& rate = point.at("hit_rate");
  return rate.is_null() ? "unknown" : fmt::format("{:.1f} %", 100 * rate.get<double>());
}

// Sizes of the cache, a row each. Of neighbours with one rate the first is shown, and the size that
// runs.
std::string size_rows(const Json& curve) {
  std::string text = fmt::format("\n  {:>14}{:>12}{:>10}\n", "blocks", "memory", "lru");
  std::string above;
  bool folds = false;
  for (const Json& point : curve.at("lru")) {
    const bool is_now = point.at("blocks") == curve.at("blocks");
    const std::string rate = rate_of(point);
    if (rate == above && !is_now) {
      folds = true;
      continue;
    }
    above = rate;
    text +=
        fmt::format("  {:>14}{:>12}{:>10}{}\n", count_of(point, "blocks"),
                    format_byte_size(point.at("bytes").get<double>()), rate, is_now ? "  now" : "");
  }
  if (folds) text += "  sizes that are left out have the rate of the row above them\n";
  return text;
}

// Policies, a row each; one row for all where no figure differs.
std::string policy_rows(const Json& curve) {
  const auto rates_of = [](const Json& row) {
    const Json& points = row.at("points");
    return fmt::format("{:>10}{:>10}{:>10}", rate_of(points.at(0)), rate_of(points.at(1)),
                       rate_of(points.at(2)));
  };
  const Json& rows = curve.at("policies");
  std::string text =
      fmt::format("\n  {:<16}{:>10}{:>10}{:>10}\n", "policy", "half", "now", "twice");
  const bool are_alike =
      rows.size() > 1 && std::all_of(rows.begin(), rows.end(), [&](const Json& row) {
        return rates_of(row) == rates_of(rows.front());
      });
  if (are_alike) return text + fmt::format("  {:<16}{}\n", "each of them", rates_of(rows.front()));
  for (const Json& row : rows) {
    const bool runs = row.at("policy") == curve.at("policy");
    text += fmt::format("  {:<16}{}{}\n", row.at("policy").get_ref<const std::string&>(),
                        rates_of(row), runs ? "  runs" : "");
  }
  return text;
}

}  // namespace

std::string blocks_text(const Json& info, const Json& retained) {
  const Json& now = info.at("now");
  return fmt::format("blocks     {} in all, {} free, {} reusable\n", count_of(now, "blocks_all"),
                     count_of(now, "blocks_free"), count_of(now, "blocks_idle")) +
         fmt::format("retained   {} (limit {}; per tenant {})\n",
                     count_of(retained, "blocks_retained"),
                     limit_of(retained, "blocks_retained_max"),
                     limit_of(retained, "blocks_per_tenant_max")) +
         retained_rows(retained);
}

std::string advice_text(const Json& curve) {
  std::string text;
  const auto all = curve.find("advice");
  if (all == curve.end()) return text;
  for (const Json& advice : *all) {
    text += fmt::format("{}{}\n", text.empty() ? "\nadvice     " : "           ",
                        advice.at("text").get_ref<const std::string&>());
  }
  return text;
}

std::string curve_text(const Json& curve) {
  if (!curve.at("enabled").get<bool>() || curve.at("blocks_asked") == 0) return "";
  return fmt::format(
             "\n"
             "hit rates  in memory, of {} looked up, estimated from a sample of {:.1f} % of all "
             "blocks\n",
             blocks_of(curve, "blocks_asked"), 100 * curve.at("sampling_rate").get<double>()) +
         size_rows(curve) + policy_rows(curve);
}

Status inspect_server(const std::string& url, const net::ServerAccess& access, bool json) {
  ASSIGN_OR_RETURN(const net::Url parsed, net::parse_url(url, "URL"));
  try {
    const Json info = net::get_json(parsed, access, "/server_info");
    const Json retained = net::get_json(parsed, access, "/cache/retained");
    const Json curve = net::get_json(parsed, access, "/cache/curve");
    const Json all = {{"server_info", info}, {"retained", retained}, {"curve", curve}};
    fmt::print(
        "{}",
        json ? terminal::json_text(all) + "\n"
             : fmt::format("{}: {}\n\n{}{}{}", url, info.at("model").get_ref<const std::string&>(),
                           blocks_text(info, retained), curve_text(curve), advice_text(curve)));
  } catch (const boost::system::system_error& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", url, trouble.code().message())};
  } catch (const std::exception& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", url, trouble.what())};
  }
  return ok_status();
}

}  // namespace pagoda::inspect
