#include "base/crypto.h"

#include <malloc.h>

#include <cstdlib>
#include <new>
#include <set>

#include "tests/catch.h"

using namespace oc;

namespace {

// What the allocator gets back is looked through for this text.
std::string_view lookedFor;
int freedWithMarker = 0;

void inspectAndFree(void* block) {
  if (block != nullptr && !lookedFor.empty()) {
    std::string_view bytes(static_cast<char*>(block), malloc_usable_size(block));
    if (bytes.find(lookedFor) != std::string_view::npos) ++freedWithMarker;
  }
  std::free(block);
}

}  // namespace

void* operator new(size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
// All that operator delete gets must come from malloc here, or AddressSanitizer calls it a mismatch.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void operator delete(void* block) noexcept { inspectAndFree(block); }
void operator delete(void* block, size_t) noexcept { inspectAndFree(block); }

namespace {

std::string unhex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string hexOf(std::string_view bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string hmacHex(std::string_view key, std::string_view message) { return hexOf(hmacSha256(key, message)); }

}  // namespace

TEST_CASE("SHA-256 gives the values of FIPS 180's examples") {
  CHECK(sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256Hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256Hex(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 covers bytes after a zero byte") {
  CHECK(sha256Hex(std::string_view("a\0b", 3)) != sha256Hex(std::string_view("a\0c", 3)));
}

TEST_CASE("HMAC-SHA-256 gives the values of RFC 4231") {
  CHECK(hmacHex(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmacHex("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmacHex(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hmacHex(unhex("0102030405060708090a0b0c0d0e0f10111213141516171819"), std::string(50, '\xcd')) ==
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  // Truncated to 128 bits in the RFC.
  CHECK(hmacHex(std::string(20, '\x0c'), "Test With Truncation").substr(0, 32) == "a3b6167473100ee06e0c796c2955552b");
  CHECK(hmacHex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(hmacHex(std::string(131, '\xaa'),
                "This is a test using a larger than block-size key and a larger than block-size data. The "
                "key needs "
                "to be hashed before being used by the HMAC algorithm.") ==
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST_CASE("HMAC-SHA-256 takes an empty key and an empty message") {
  CHECK(hmacHex({}, {}) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("secrets are compared by all of their bytes") {
  CHECK(equalSecrets("", ""));
  CHECK(equalSecrets(std::string_view("a\0b", 3), std::string_view("a\0b", 3)));
  CHECK_FALSE(equalSecrets(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
  CHECK_FALSE(equalSecrets("key", "key "));
  CHECK_FALSE(equalSecrets("", "k"));
}

TEST_CASE("a secret that was moved lives in one place only") {
  SecretBytes first("0123456789");
  const char* where = first.view().data();
  SecretBytes second = std::move(first);
  // The very same memory: nothing was copied, although a string as short as this fits into the object itself.
  CHECK(second.view().data() == where);
  CHECK(second.view() == "0123456789");
  CHECK(first.size() == 0);

  SecretBytes third("another");
  third = std::move(second);
  CHECK(third.view().data() == where);
  CHECK(second.size() == 0);

  SecretBytes copy = third.clone();
  CHECK(copy.view() == third.view());
  CHECK(copy.view().data() != where);
}

TEST_CASE("a secret's memory is wiped before it goes back to the allocator") {
  std::string marker = "marker-" + hexOf(randomBytes(24));
  freedWithMarker = 0;
  lookedFor = marker;
  { std::string plain = marker + "."; }
  CHECK(freedWithMarker > 0);  // what is not wiped is found

  freedWithMarker = 0;
  {
    SecretBytes ends(marker);
    SecretBytes overwritten(marker);
    overwritten = SecretBytes("other");
    SecretBytes moved = std::move(ends);
  }
  CHECK(freedWithMarker == 0);
  lookedFor = {};
}

TEST_CASE("random secrets have the length that was asked for and differ") {
  auto a = SecretBytes::random(32), b = SecretBytes::random(32);
  CHECK(a.size() == 32);
  CHECK_FALSE(equalSecrets(a.view(), b.view()));
  CHECK(SecretBytes::random(0).size() == 0);
  CHECK(randomBytes(33).size() == 33);
  CHECK(randomBytes(32) != randomBytes(32));
}

TEST_CASE("identifiers differ and have no look-alikes") {
  std::set<std::string> seen;
  std::set<char> letters;
  for (int i = 0; i < 5000; ++i) {
    auto id = newId("w-");
    REQUIRE(id.size() == 10);
    REQUIRE(id.substr(0, 2) == "w-");
    letters.insert(id.begin() + 2, id.end());
    seen.insert(id);
  }
  CHECK(seen.size() == 5000);
  CHECK(std::string(letters.begin(), letters.end()) == "23456789abcdefghjkmnpqrstuvwxyz");
}
