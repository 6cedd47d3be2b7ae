#include "daemon/sandbox/other_names.h"

#include "tests/catch.h"

using namespace oc::sandbox;

namespace {

constexpr auto list =
    "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "21 20 0:5 / /proc rw - proc proc rw\n"
    "22 20 8:2 /@home /home rw - btrfs /dev/sda2 rw,subvol=/@home\n"
    "23 20 8:2 / /mnt/all rw - btrfs /dev/sda2 rw\n"
    "24 20 8:2 /@home/u/.ssh /srv/some\\040keys rw - btrfs /dev/sda2 rw\n"
    "25 20 8:1 /srv/data /data rw - ext4 /dev/sda1 rw\n"
    "cut off\n"
    "26 20 8:1 relative /x rw\n";

std::vector<std::string> namesOf(const std::string& path, size_t mount) {
  std::vector<std::string> names;
  auto mounts = parseMounts(list);
  for (auto& found : namesInOtherMounts(mounts, mounts.at(mount), path))
    names.push_back(found.name + " of " + found.of);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("C2 the kernel's list of mounts is read, blanks in names and broken lines included") {
  auto mounts = parseMounts(list);
  REQUIRE(mounts.size() == 6);
  CHECK(mounts[4].id == 24);
  CHECK(mounts[4].device == "8:2");
  CHECK(mounts[4].root == "/@home/u/.ssh");
  CHECK(mounts[4].point == "/srv/some keys");
  CHECK(parseMounts("").empty());
}

TEST_CASE("C2 what is mounted twice has two names, and so have its parts") {
  CHECK(namesOf("/home/u/.ssh", 2) == Names{"/mnt/all/@home/u/.ssh of /home/u/.ssh", "/srv/some keys of /home/u/.ssh"});
  CHECK(namesOf("/home/u/.ssh/id", 2) ==
        Names{"/mnt/all/@home/u/.ssh/id of /home/u/.ssh/id", "/srv/some keys/id of /home/u/.ssh/id"});
  CHECK(namesOf("/home/u", 2) == Names{"/mnt/all/@home/u of /home/u", "/srv/some keys of /home/u/.ssh"});
  CHECK(namesOf("/mnt/all/@home/u/x", 3) == Names{"/home/u/x of /mnt/all/@home/u/x"});
  CHECK(namesOf("/mnt/all", 3) == Names{"/home of /mnt/all/@home", "/srv/some keys of /mnt/all/@home/u/.ssh"});
  CHECK(namesOf("/data/x", 5) == Names{"/srv/data/x of /data/x"});
  CHECK(namesOf("/srv", 0) == Names{"/data of /srv/data"});
}

TEST_CASE("C2 what is mounted once has one name, and so has the root") {
  CHECK(namesOf("/etc", 0).empty());
  CHECK(namesOf("/proc/self", 1).empty());
  CHECK(namesOf("/", 0).empty());
  CHECK(namesOf("/elsewhere", 2).empty());
  CHECK(OtherNames().of("/no/such/path/here").empty());
  CHECK(OtherNames().of("").empty());
}
