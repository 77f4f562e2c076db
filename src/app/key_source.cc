#include "app/key_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "app/cache_folder.h"
#include "server/access/secret.h"
#include "server/request_target.h"

namespace pagoda::app {
namespace {

Status check_origin(const std::string& origin) {
  const bool has_scheme = origin.starts_with("http://") || origin.starts_with("https://");
  const std::size_t host = origin.find("//") + 2;
  if (origin == "*" || (has_scheme && origin.find('/', host) == std::string::npos)) {
    return ok_status();
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("`cors_origin`: \"{}\" is no origin, expected one like "
                           "https://chat.example.com, or *",
                           origin)};
}

Result<std::vector<std::string>> read_hosts(const std::vector<std::string>& given) {
  std::vector<std::string> hosts;
  for (const std::string& name : given) {
    const std::optional<std::string> host = server::host_of(name);
    if (!host || host->empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("`allowed_hosts`: \"{}\" is no host's name, expected one like "
                               "gpu1.example.com, or *",
                               name)};
    }
    hosts.push_back(*host);
  }
  return hosts;
}

}  // namespace

Status set_access(const AccessOptions& options, server::ServerOptions& made) {
  if (options.certificate_file.empty() != options.certificate_key_file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "`ssl_certfile` and `ssl_keyfile`: expected both or none"};
  }
  if (!options.certificate_file.empty()) {
    made.tls = server::TlsFiles{options.certificate_file, options.certificate_key_file};
  }
  for (const std::string& origin : options.cors_origins) RETURN_IF_ERROR(check_origin(origin));
  for (const std::string& key : options.api_keys) {
    const Status checked = server::check_key(key);
    if (!checked.ok()) return Error{checked.error().code, "`api_key`: " + checked.error().message};
  }
  made.access.cors_origins = options.cors_origins;
  ASSIGN_OR_RETURN(made.access.own_names, read_hosts(options.allowed_hosts));
  made.access.checks_host_with_keys = !options.allowed_hosts.empty();
  if (const auto own = server::host_of(made.host)) made.access.own_names.push_back(*own);
  made.access.metrics_need_admin = options.metrics_need_admin;
  made.access.show_prompts_to_admins = options.show_prompts_to_admins;
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
        options_.secret_file.empty() ? cache_folder() + "/secret" : options_.secret_file;
    ASSIGN_OR_RETURN(secret_, server::read_or_make_secret(path));
  }
  shows_keys_to_others_ = shows_keys_to_others;
  return server::KeyRing::make(list, tenants_, secret_);
}

std::vector<std::string> KeySource::warnings() const {
  std::vector<std::string> warnings;
  if (shows_keys_to_others_) {
    warnings.push_back(fmt::format(
        "`api_keys`: others may read the keys in {}; chmod 600 it, or write them as sha256:…",
        options_.key_file));
  }
  struct stat status = {};
  if (!options_.certificate_key_file.empty() &&
      ::stat(options_.certificate_key_file.c_str(), &status) == 0 &&
      (status.st_mode & S_IRWXO) != 0) {
    warnings.push_back(fmt::format("`ssl_keyfile`: everyone may read {}; chmod 600 it",
                                   options_.certificate_key_file));
  }
  return warnings;
}

}  // namespace pagoda::app
