#include "cli/access_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "cli/options.h"

namespace pagoda::cli {
namespace {

// Refuses the empty value that an unset variable of a script leaves: the server would be open
// instead of protected.
std::string refuse_empty(const std::string& value) { return value.empty() ? "is empty" : ""; }

}  // namespace

void add_access_options(const CommandSpec& command, net::ServerAccess& access,
                        const std::string& whose_key) {
  command.add_option("--api-key", access.api_key, whose_key);
  const Flag file = command.add_option(
      "--ca-file", access.ca_file,
      "PEM file of the certificates that an https server's is checked against (default: the "
      "system's)");
  command.add_flag("--insecure", access.insecure, "accept any certificate of an https server")
      .excludes(file);
}

void add_access_options(const CommandSpec& command, app::AccessOptions& options) {
  const auto add = [&](const char* flag, auto& value, const char* description) {
    return command.add_option(flag, value, description).check(refuse_empty);
  };
  add("--api-key", options.api_keys,
      "a key that requests must carry, once or more: for everything, admin included "
      "(default: no key is needed)")
      .one_value_each();
  add("--api-keys", options.key_file,
      "file with tenants, their limits and their keys; SIGHUP reads it again");
  add("--secret-file", options.secret_file,
      "file with the secret of tenants' salts; created when missing (default: secret in the cache "
      "folder)");
  add("--cors-origin", options.cors_origins,
      "origins whose pages may send requests (CORS), e.g. https://chat.example.com, once or more; "
      "* for all (default: the server's own)")
      .one_value_each();
  add("--allowed-hosts", options.allowed_hosts,
      "names of this server besides addresses, localhost and --host, with commas between them; "
      "requests for others are 403; * for all (default: none; not checked where there are keys)")
      .delimiter(',')
      .one_value_each();
  add("--ssl-certfile", options.certificate_file,
      "certificate and chain in PEM: serve https; SIGHUP reads it again");
  add("--ssl-keyfile", options.certificate_key_file, "the certificate's key in PEM");
  command.add_flag("--metrics-need-admin", options.metrics_need_admin,
                   "/metrics needs an admin's key too (default: open to all)");
  command.add_flag("--show-prompts-to-admins", options.show_prompts_to_admins,
                   "the page and /cache/branch show admins the text of private prompts too: of "
                   "tenants, and with a salt (default: of public ones alone)");
}

// The same of a variable that stands for a flag: CLI11 takes an empty one for none.
Status check_access_variables(const app::AccessOptions& options) {
  const std::pair<const char*, bool> flags[] = {
      {"--api-key", !options.api_keys.empty()},
      {"--api-keys", !options.key_file.empty()},
      {"--secret-file", !options.secret_file.empty()},
      {"--cors-origin", !options.cors_origins.empty()},
      {"--allowed-hosts", !options.allowed_hosts.empty()},
      {"--ssl-certfile", !options.certificate_file.empty()},
      {"--ssl-keyfile", !options.certificate_key_file.empty()}};
  for (const auto& [flag, is_given] : flags) {
    const std::string name = environment_name(flag);
    const char* const value = std::getenv(name.c_str());
    if (is_given || value == nullptr || *value != '\0') continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is empty; unset it, or give it a value", name)};
  }
  return ok_status();
}

}  // namespace pagoda::cli
