#include "provider.h"

int main(int argc, char** argv) {
  oc::host::HostProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
