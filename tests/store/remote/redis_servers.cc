#include "store/remote/redis_servers.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <regex>

#include "base/assert.h"
#include "test_data.h"

namespace pagoda::store {

RedisServers::RedisServers(std::vector<std::string> words) {
  words.insert(words.begin(), {"python3", source_folder() + "/tools/redis_servers.py"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int down[2];
  int up[2];
  ASSERT(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0, "descriptors for pipes");
  script_ = fork();
  if (script_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(down[0], 0);
    dup2(up[1], 1);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  to_ = fdopen(down[1], "w");
  from_ = fdopen(up[0], "r");
  const std::string servers = line();
  const std::regex one(R"re("port": (\d+), "pid": (\d+))re");
  for (std::sregex_iterator each(servers.begin(), servers.end(), one), end; each != end; ++each) {
    ports_.push_back(std::stoi((*each)[1]));
    processes_.push_back(std::stoi((*each)[2]));
  }
}

RedisServers::~RedisServers() {
  for (const pid_t process : processes_) ::kill(process, SIGCONT);
  std::fclose(to_);  // the script ends with its input
  waitpid(script_, nullptr, 0);
  std::fclose(from_);
}

std::string RedisServers::host_and_port(std::size_t node) const {
  return "127.0.0.1:" + std::to_string(port(node));
}

std::string RedisServers::line() {
  std::string text;
  for (int c = 0; (c = std::fgetc(from_)) != EOF && c != '\n';) text += static_cast<char>(c);
  return text;
}

std::string RedisServers::ask(const std::string& command) {
  std::fputs((command + "\n").c_str(), to_);
  std::fflush(to_);
  return line();
}

}  // namespace pagoda::store
