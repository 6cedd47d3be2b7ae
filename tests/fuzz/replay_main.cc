// Goes through inputs, one after the other, as libFuzzer would: for builds without it.
//
//   fuzz-NAME [--changed N] FILE|FOLDER…    a file is an input; one that ends in .hex has an input a line, as hex
//   digits
//
// With --changed, each is also played N times with a few of its bytes changed: always the same ones.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

size_t played = 0, changed = 0;
std::mt19937 random_numbers(1);

void playOnce(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  ++played;
}

void play(const std::string& bytes) {
  playOnce(bytes);
  for (size_t i = 0; i < changed && !bytes.empty(); ++i) {
    auto other = bytes;
    for (size_t left = 1 + random_numbers() % 4; left > 0; --left) {
      other[random_numbers() % other.size()] = static_cast<char>(random_numbers());
    }
    // Its end is a place like any other.
    if (random_numbers() % 8 == 0) other.resize(random_numbers() % other.size() + 1);
    playOnce(other);
  }
}

std::string fromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

void playFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fprintf(stderr, "%s cannot be read\n", path.c_str());
    exit(1);
  }
  if (path.ends_with(".hex")) {
    for (std::string line; std::getline(file, line);) play(fromHex(line));
  } else {
    play({std::istreambuf_iterator<char>(file), {}});
  }
}

void playAll(const std::string& path) {
  struct stat stats;
  if (stat(path.c_str(), &stats) == 0 && S_ISDIR(stats.st_mode)) {
    std::vector<std::string> names;
    auto* folder = opendir(path.c_str());
    while (auto* entry = readdir(folder)) names.push_back(entry->d_name);
    closedir(folder);
    std::sort(names.begin(), names.end());
    for (auto& name : names) {
      if (name[0] != '.') playAll(path + "/" + name);
    }
  } else {
    playFile(path);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int first = 1;
  if (argc > 2 && std::string(argv[1]) == "--changed") {
    changed = std::stoul(argv[2]);
    first = 3;
  }
  for (int i = first; i < argc; ++i) playAll(argv[i]);
  if (played == 0) {
    fprintf(stderr, "there was no input\n");
    return 1;
  }
  printf("%zu inputs\n", played);
}
