#include "profile.h"

#include <kj/common.h>
#include <stdlib.h>

namespace oc::github {

namespace {

using kit::Access;

void allow(kit::Profile& profile, const std::string& path) { profile.files.push_back({path, Access::Read, true}); }

// Where /etc/resolv.conf really lies: its writers replace it, so the folder is needed, but not all of /etc.
std::string folderOfResolver() {
  char* real = realpath("/etc/resolv.conf", nullptr);
  if (real == nullptr) return "";
  KJ_DEFER(free(real));
  std::string path = real;
  auto folder = path.substr(0, path.rfind('/'));
  return folder == "/etc" ? "" : folder;
}

void allowResolver(kit::Profile& profile) {
  for (auto path :
       {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services"}) {
    allow(profile, path);
  }
  auto folder = folderOfResolver();
  if (!folder.empty()) allow(profile, folder);
}

void allowCertificates(kit::Profile& profile, const Job& job) {
  for (auto path :
       {"/etc/ssl", "/etc/pki", "/usr/lib/ssl", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates"}) {
    allow(profile, path);
  }
  if (!job.caFile.empty()) allow(profile, job.caFile);
}

}  // namespace

kit::Profile profileOf(const Job& job) {
  kit::Profile profile;
  profile.seccomp = kit::SeccompList::Alone;
  profile.denyWriteExecute = true;
  profile.maxOpenFiles = 128;
  if (job.role == Role::Webhook) {
    profile.denyAllSockets = true;
    profile.maxAddressSpace = 512u << 20;
    return profile;
  }
  profile.networkNamespace = kit::Need::No;
  profile.files = {{"/dev/urandom", Access::Read, true}};
  allowResolver(profile);
  allowCertificates(profile, job);
  profile.connectPorts = {53};
  if (job.proxy) profile.connectPorts.push_back(job.proxy->port);
  if (!job.proxy || job.proxyHasExceptions) profile.connectPorts.push_back(job.apiHost.port);
  profile.maxAddressSpace = 1u << 30;
  return profile;
}

}  // namespace oc::github
