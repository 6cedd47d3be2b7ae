// Looking at the operator's files without ever failing because of them.
#pragma once

#include <string>
#include <vector>

namespace oc::sandbox {

// Where the path leads; the path itself where that cannot be told (a loop, a directory that may not be searched).
std::string resolved(const std::string& path);

// Each link that has to be followed to get to what the path names; at most 40.
std::vector<std::string> linksOnTheWayTo(const std::string& path);

bool exists(const std::string& path);       // following links
bool isDirectory(const std::string& path);  // following links
bool isSocket(const std::string& path);     // following links
bool isProgram(const std::string& path);    // a regular file that this process may run

// On a file system that the kernel makes up, wherever it is mounted: proc, sys, control groups and the like. Who reads
// a machine's proc goes on to all of its files, by /proc/PID/root.
bool isKernelsOwn(const std::string& path);

// Absolute paths, sorted; empty when the directory cannot be listed.
std::vector<std::string> childrenOf(const std::string& directory);

}  // namespace oc::sandbox
