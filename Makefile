# A thin front: Meson and Ninja build, the scripts do the rest.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: all test demo gateway-image install deb clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	packaging/dependencies build
	meson setup $(BUILD) -Dtests=false --prefix=$(PREFIX)

test:
	tests/run

demo:
	packaging/quickstart

# Loads the gateway's image into Docker and prints its id, for OPEN_CONDUIT_GATEWAY_IMAGE.
gateway-image: $(BUILD)/build.ninja
	@ninja -C $(BUILD) open-conduit-gateway >&2
	@BUILD=$(abspath $(BUILD)) packaging/gateway-image

install: all
	meson install -C $(BUILD) --no-rebuild

deb: all
	packaging/deb --build $(BUILD)

clean:
	rm -rf $(BUILD) build-test build-clang build-sanitize
