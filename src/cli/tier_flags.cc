#include "cli/tier_flags.h"

#include "base/byte_size.h"

namespace pagoda::cli {
namespace {

// "8" and "0.5" are numbers of GiB.
std::string in_gigabytes(const std::string& text) {
  const bool is_bare = text.find_first_not_of("0123456789.") == std::string::npos;
  return is_bare && !text.empty() ? text + "GiB" : text;
}

void add_peer_options(const CommandSpec& command, app::PeerOptions& flags) {
  command.add_option("--kv-peer-listen", flags.listen,
                     "serve pages of the KV cache to other servers here, e.g. 10.0.0.5:8998; they "
                     "need the same --kv-store-key (default: to nobody)");
  command.add_option("--kv-peer", flags.peers,
                     "servers that are asked for the pages of every prompt: "
                     "HOST:PORT[,HOST:PORT]… of their --kv-peer-listen (default: none)");
  command.add_option("--kv-peer-allow", flags.allow,
                     "hosts that a request may name as where its pages are, beside those of "
                     "--kv-peer: names, addresses and networks, e.g. 10.0.0.0/8,worker-1 "
                     "(default: localhost,127.0.0.0/8,::1)");
  command.add_flag("--kv-peer-tls", flags.tls,
                   "serve pages over TLS, by --ssl-certfile, and fetch them so");
  command.add_option("--kv-peer-ca-file", flags.ca_file,
                     "CA certificates of the other servers, PEM (default: the system's)");
  command
      .add_option("--kv-peer-lease", flags.lease_s,
                  "seconds for which a page that another server asked for stays (default 30)")
      .range(0.1, 3600.0);
  command
      .add_option("--kv-peer-lease-share", flags.lease_share,
                  "share of the KV cache that such pages may hold at a time (default 0.25)")
      .range(0.0, 1.0);
  command
      .add_option("--kv-peer-timeout", flags.timeout_s,
                  "seconds to wait for a page of another server (default 2)")
      .range(0.001, 60.0);
  command
      .add_option("--kv-peer-wait", flags.wait_s,
                  "seconds that a request waits for the server that it names, and for what that "
                  "still computes, before it computes itself (default 60)")
      .range(0.001, 3600.0);
  command.add_choice("--disaggregation-mode", flags.mode,
                     {{"null", server::Disaggregation::kNone},
                      {"prefill", server::Disaggregation::kPrefill},
                      {"decode", server::Disaggregation::kDecode}},
                     "what to do with requests that have SGLang's bootstrap fields: prefill "
                     "computes the prompt for another server, decode waits for that and answers, "
                     "null ignores them (default null)");
}

}  // namespace

void add_tier_options(const CommandSpec& command, app::TierSetOptions& flags) {
  command.add_option(
      "--kv-disk", flags.disk,
      "folder that keeps KV over restarts, or off (default: kv in the cache folder)");
  command
      .add_option(
          "--kv-disk-size", flags.disk_size,
          "limit of the disk tier, e.g. 50GiB (default: 20GiB, or a tenth of the free space)")
      .capacity();
  command.add_option("--kv-remote", flags.remote,
                     "remote tier that servers share: redis://[[user]:password@]host[:port][/db], "
                     "redis-cluster://host[:port][,host[:port]]…, "
                     "redis-sentinel://host[:port][,…]/service, rediss…://, "
                     "memcached://host[:port] (default: none)");
  command
      .add_option("--kv-remote-ttl", flags.remote_ttl_s,
                  "time to live of pages in the remote tier, in seconds (default 86400)")
      .range(1.0, 31536000.0);
  command
      .add_option("--kv-remote-timeout", flags.remote_timeout_s,
                  "seconds to wait for the remote tier (default 2)")
      .range(0.001, 60.0);
  command.add_option("--kv-remote-ca-file", flags.ca_file,
                     "CA certificates of the remote tier, PEM (default: the system's)");
  const Flag host_size =
      command.add_option("--kv-host-size", flags.host_size,
                         "host memory tier beside the KV cache, e.g. 8GiB (default 0: none)");
  host_size.capacity();
  command
      .add_parsed(
          "--kv-offloading-size",
          [&flags](const std::string& text) {
            flags.host_size = in_gigabytes(text);
            const Result<std::uint64_t> bytes = parse_byte_size(flags.host_size);
            return bytes.ok() ? std::string() : bytes.error().message;
          },
          "the same as vLLM counts it: a number without a unit is in GiB")
      .type_name("SIZE")
      .excludes(host_size);
  command.add_option("--kv-store-key", flags.key_file,
                     "file of 32 bytes or 64 hexadecimal digits: encrypts pages on disk and in "
                     "remote stores (AES-256-GCM)");
  add_peer_options(command, flags.peer);
  command.add_choice(
      "--kv-write", flags.write,
      {{"use", engine::WriteMode::kUse},
       {"through", engine::WriteMode::kThrough},
       {"off", engine::WriteMode::kOff}},
      "when blocks are offloaded to tiers: use (on their second use, before they are evicted "
      "and at a clean stop), through (when they are computed), off (default use)");
  command.add_choice("--kv-load", flags.load,
                     {{"auto", engine::LoadMode::kAuto}, {"always", engine::LoadMode::kAlways}},
                     "auto: load from a tier or compute, whatever ends first; always: load "
                     "(default auto)");
  command
      .add_option("--kv-stop-seconds", flags.stop_s,
                  "seconds to write blocks worth keeping at a clean stop (default 10)")
      .range(0.0, 3600.0);
  command
      .add_option("--kv-disk-bytes-per-second", flags.disk_bytes_per_s,
                  "throttle the disk tier to this speed, for tests (default 0: no limit)")
      .type_name("N");
}

}  // namespace pagoda::cli
