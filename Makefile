# A thin front: Meson and Ninja build, the scripts do the rest.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: all test demo install clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	packaging/dependencies build
	meson setup $(BUILD) -Dtests=false --prefix=$(PREFIX)

test:
	tests/run

demo:
	packaging/quickstart

install: all
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) build-test build-clang build-sanitize
