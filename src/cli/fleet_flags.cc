#include "cli/fleet_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/byte_size.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

Result<std::vector<replay::RouterKind>> parse_routers(std::string_view list) {
  std::vector<replay::RouterKind> routers;
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    more = comma != std::string_view::npos;
    list.remove_prefix(more ? comma + 1 : list.size());
    bool known = false;
    for (std::size_t i = 0; i < replay::kRouterNames.size(); ++i) {
      if (word != "all" && word != replay::kRouterNames[i]) continue;
      routers.push_back(static_cast<replay::RouterKind>(i));
      known = true;
    }
    if (!known) {
      return invalid(fmt::format(
          "--router: '{}' is not one of all, round-robin, sticky, cache-aware, exact", word));
    }
  }
  return routers;
}

// Flags that need --servers, on their way into the command.
class FleetSpec {
 public:
  FleetSpec(const CommandSpec& command, FleetFlags& flags) : command_(command), flags_(flags) {}

  template <class Value>
  Flag add(const std::string& name, Value& value, const std::string& help) const {
    return noted(name, command_.add_option(name, value, help));
  }
  Flag add_choice(const std::string& name, bool& value,
                  std::initializer_list<std::pair<const char*, bool>> choices,
                  const std::string& help) const {
    return noted(name, command_.add_choice(name, value, choices, help));
  }
  // A rate of bytes a second.
  Flag add_bandwidth(const std::string& name, double& bytes, const std::string& help) const {
    const auto read = [&bytes](const std::string& text) {
      const Result<std::uint64_t> parsed = parse_byte_size(text);
      if (!parsed.ok()) return parsed.error().message;
      bytes = static_cast<double>(parsed.value());
      return std::string();
    };
    return noted(name, command_.add_parsed(name, read, help).type_name("SIZE"));
  }

 private:
  Flag noted(const std::string& name, const Flag& flag) const {
    flags_.of_several.emplace_back(name, flag);
    return flag;
  }

  const CommandSpec& command_;
  FleetFlags& flags_;
};

void add_costs(const FleetSpec& spec, replay::FleetCosts& costs) {
  spec.add("--prefill-rate", costs.prefill_tokens,
           "prompt tokens that a server computes in a second (35000)")
      .range(1e-3, 1e9);
  spec.add("--decode-rate", costs.decode_tokens,
           "tokens of one answer in a second (150); 0: all at once")
      .range(0.0, 1e9);
  spec.add_bandwidth("--host-bandwidth", costs.host_bytes,
                     "bytes a second between main memory and the cache, each way (52GB)");
  spec.add_bandwidth("--disk-bandwidth", costs.disk_bytes,
                     "bytes a second of a server's disk, each way (2GB)");
  spec.add_bandwidth("--network-bandwidth", costs.network_bytes,
                     "bytes a second of a server's network, each way (12.5GB)");
  spec.add_bandwidth("--store-bandwidth", costs.store_bytes,
                     "bytes a second of the shared store, each way (0: no bound)");
  spec.add("--network-latency", costs.network_latency_s,
           "seconds that a read over the network takes besides (0.0005)")
      .range(0.0, 10.0);
}

void add_routing(const FleetSpec& spec, replay::RouterOptions& routing) {
  spec.add_choice("--sticky-by", routing.sticky_by_first_block,
                  {{"conversation", false}, {"first-block", true}},
                  "conversation or first-block: the key of --router sticky (conversation)");
  spec.add("--cache-threshold", routing.cache_threshold,
           "share of a prompt that a server must have for --router cache-aware (0.3)")
      .range(0.0, 1.0);
  spec.add("--balance-abs-threshold", routing.balance_abs_threshold,
           "requests in flight by which servers may differ for it (64)")
      .range(0u, 1u << 30);
  spec.add("--balance-rel-threshold", routing.balance_rel_threshold,
           "times by which they may differ (1.5)")
      .range(1.0, 1e9);
}

void add_fleet_arrivals(const FleetSpec& spec, FleetFlags& flags) {
  const Flag speed =
      spec.add("--speed", flags.base.arrivals.speed, "speed of the trace; 2: twice as fast (1)");
  speed.range(1e-6, 1e6);
  spec.add("--load", flags.load,
           "instead: so fast that prompts, uncached, take this share of all servers' time")
      .range(1e-6, 1e3)
      .excludes(speed);
  spec.add_choice("--arrivals", flags.base.arrivals.poisson, {{"trace", false}, {"poisson", true}},
                  "trace: at its times; poisson: as often, at random (trace)");
  spec.add("--seed", flags.base.seed, "of arrivals and of --router sticky (0)");
}

}  // namespace

void add_fleet_options(const CommandSpec& command, FleetFlags& flags) {
  command.group("Several servers");
  command
      .add_option("--servers", flags.servers,
                  "servers behind a router, with a cache of --capacity each; several with commas")
      .delimiter(',')
      .range(1u, replay::kFleetServersMax);
  const FleetSpec spec(command, flags);
  spec.add("--router", flags.routers,
           "round-robin, sticky, cache-aware or exact; several with commas, or all (round-robin)")
      .type_name("LIST");
  spec.add(
          "--tier", flags.tiers,
          "host:64GiB or disk:1TiB of each server, shared:200% of all, or peer: the other servers' "
          "caches; may be repeated, in the order in which they are asked")
      .type_name("KIND[:SIZE]")
      .one_value_each();
  command.group("Arrivals at several servers");
  add_fleet_arrivals(spec, flags);
  command.group("Speed of several servers");
  add_costs(spec, flags.base.costs);
  command.group("Routing to several servers");
  add_routing(spec, flags.base.routing);
}

Status check_no_fleet(const FleetFlags& flags) {
  for (const auto& [name, flag] : flags.of_several) {
    if (flag.count() > 0 && !flag.is_from_environment()) {
      return invalid(fmt::format("{}: only with --servers", name));
    }
  }
  return ok_status();
}

Result<replay::FleetQuestion> understand_fleet(const FleetFlags& flags,
                                               std::uint64_t block_tokens) {
  replay::FleetQuestion question;
  question.base = flags.base;
  question.base.block_tokens = block_tokens;
  if (flags.load > 0) question.base.arrivals.load = flags.load;
  question.servers = flags.servers;
  ASSIGN_OR_RETURN(question.routers, parse_routers(flags.routers));
  for (const std::string& text : flags.tiers) {
    ASSIGN_OR_RETURN(replay::FleetTier tier,
                     replay::parse_fleet_tier(text, question.base.block_bytes()));
    const bool again =
        std::any_of(question.tiers.begin(), question.tiers.end(),
                    [&](const replay::FleetTier& other) { return other.kind == tier.kind; });
    if (again) {
      return invalid(
          fmt::format("--tier: '{}' is there twice", replay::fleet_tier_name(tier.kind)));
    }
    question.tiers.push_back(std::move(tier));
  }
  return question;
}

}  // namespace pagoda::cli
