#include "app/key_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "cli/options.h"
#include "server/access/secret.h"
#include "server/request_target.h"

namespace pagoda::app {
namespace {

std::string default_secret_path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string base = cache != nullptr && *cache != '\0'
                               ? std::string(cache)
                               : fmt::format("{}/.cache", home != nullptr ? home : "");
  return base + "/pagoda/secret";
}

Status check_origin(const std::string& origin) {
  const bool has_scheme = origin.starts_with("http://") || origin.starts_with("https://");
  const std::size_t host = origin.find("//") + 2;
  if (origin == "*" || (has_scheme && origin.find('/', host) == std::string::npos)) {
    return ok_status();
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--cors-origin: \"{}\" is no origin, expected one like "
                           "https://chat.example.com, or *",
                           origin)};
}

// What an unset variable of a script leaves of a flag would open a door that was to be shut.
std::string refuse_empty(const std::string& value) { return value.empty() ? "is empty" : ""; }

// The same of a variable that stands for a flag: CLI11 takes an empty one for none.
Status check_variables(const AccessOptions& options) {
  const std::pair<const char*, bool> flags[] = {
      {"--api-key", !options.api_keys.empty()},
      {"--api-keys", !options.key_file.empty()},
      {"--secret-file", !options.secret_file.empty()},
      {"--cors-origin", !options.cors_origins.empty()},
      {"--allowed-hosts", !options.allowed_hosts.empty()},
      {"--ssl-certfile", !options.certificate_file.empty()},
      {"--ssl-keyfile", !options.certificate_key_file.empty()}};
  for (const auto& [flag, is_given] : flags) {
    const std::string name = cli::environment_name(flag);
    const char* const value = std::getenv(name.c_str());
    if (is_given || value == nullptr || *value != '\0') continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is empty; unset it, or give it a value", name)};
  }
  return ok_status();
}

Result<std::vector<std::string>> read_hosts(const std::vector<std::string>& given) {
  std::vector<std::string> hosts;
  for (const std::string& name : given) {
    const std::optional<std::string> host = server::host_of(name);
    if (!host || host->empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--allowed-hosts: \"{}\" is no host's name, expected one like "
                               "gpu1.example.com, or *",
                               name)};
    }
    hosts.push_back(*host);
  }
  return hosts;
}

}  // namespace

void add_access_options(CLI::App& command, AccessOptions& options) {
  const auto add = [&](const char* flag, auto& value, const char* description) {
    return command.add_option(flag, value, description)->check(refuse_empty);
  };
  add("--api-key", options.api_keys,
      "a key that requests must carry, once or more: for everything, admin included "
      "(default: no key is needed)")
      ->allow_extra_args(false);
  add("--api-keys", options.key_file,
      "file with tenants, their limits and their keys; SIGHUP reads it again");
  add("--secret-file", options.secret_file,
      "what tenants' salts are made with; made when missing (default: secret in the cache folder)");
  add("--cors-origin", options.cors_origins,
      "whose pages may ask, e.g. https://chat.example.com, once or more; * for all (default: the "
      "server's own)")
      ->allow_extra_args(false);
  add("--allowed-hosts", options.allowed_hosts,
      "names of this server besides addresses, localhost and --host, with commas between them; "
      "requests for others are 403; * for all (default: none; not checked where there are keys)")
      ->delimiter(',')
      ->allow_extra_args(false);
  add("--ssl-certfile", options.certificate_file,
      "certificate and chain in PEM: serve https; SIGHUP reads it again");
  add("--ssl-keyfile", options.certificate_key_file, "the certificate's key in PEM");
  command.add_flag("--metrics-need-admin", options.metrics_need_admin,
                   "/metrics needs an admin's key too (default: open to all)");
}

Status set_access(const AccessOptions& options, server::ServerOptions& made) {
  RETURN_IF_ERROR(check_variables(options));
  if (options.certificate_file.empty() != options.certificate_key_file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "--ssl-certfile and --ssl-keyfile: expected both or none"};
  }
  if (!options.certificate_file.empty()) {
    made.tls = server::TlsFiles{options.certificate_file, options.certificate_key_file};
  }
  for (const std::string& origin : options.cors_origins) RETURN_IF_ERROR(check_origin(origin));
  for (const std::string& key : options.api_keys) {
    const Status checked = server::check_key(key);
    if (!checked.ok()) return Error{checked.error().code, "--api-key: " + checked.error().message};
  }
  made.access.cors_origins = options.cors_origins;
  ASSIGN_OR_RETURN(made.access.own_names, read_hosts(options.allowed_hosts));
  made.access.checks_host_with_keys = !options.allowed_hosts.empty();
  if (const auto own = server::host_of(made.host)) made.access.own_names.push_back(*own);
  made.access.metrics_need_admin = options.metrics_need_admin;
  return ok_status();
}

Result<std::shared_ptr<const server::KeyRing>> KeySource::read() {
  if (options_.api_keys.empty() && options_.key_file.empty()) {
    return std::shared_ptr<const server::KeyRing>();
  }
  server::KeyList list;
  if (!options_.key_file.empty()) {
    ASSIGN_OR_RETURN(list, server::read_key_file(options_.key_file));
  }
  const bool shows_keys_to_others = list.shows_keys && list.is_open_to_others;
  for (const std::string& key : options_.api_keys) {
    list.keys.push_back(server::key_for_everything(key));
  }
  if (secret_.empty()) {
    const std::string path =
        options_.secret_file.empty() ? default_secret_path() : options_.secret_file;
    ASSIGN_OR_RETURN(secret_, server::read_or_make_secret(path));
  }
  shows_keys_to_others_ = shows_keys_to_others;
  return server::KeyRing::make(list, tenants_, secret_);
}

std::vector<std::string> KeySource::warnings() const {
  std::vector<std::string> warnings;
  if (shows_keys_to_others_) {
    warnings.push_back(fmt::format(
        "--api-keys: others may read the keys in {}; chmod 600 it, or write them as sha256:…",
        options_.key_file));
  }
  struct stat status = {};
  if (!options_.certificate_key_file.empty() &&
      ::stat(options_.certificate_key_file.c_str(), &status) == 0 &&
      (status.st_mode & S_IRWXO) != 0) {
    warnings.push_back(fmt::format("--ssl-keyfile: everyone may read {}; chmod 600 it",
                                   options_.certificate_key_file));
  }
  return warnings;
}

}  // namespace pagoda::app
