#include "provider.h"

int main(int argc, char** argv) {
  oc::srt::SrtProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
