#include "build_record.h"

#include <expat.h>
#include <libdeflate.h>
#include <nettle/version.h>
#include <sqlite3.h>
#include <stdio.h>
#include <zlib.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

// Package.swift defines them for a build that scripts/build-record describes.
#ifndef SEGDL_BUILD_COMMIT
#define SEGDL_BUILD_COMMIT 0
#endif
#ifndef SEGDL_BUILD_COMPILER
#define SEGDL_BUILD_COMPILER 0
#endif
#ifndef SEGDL_BUILD_PACKAGES
#define SEGDL_BUILD_PACKAGES 0
#endif

const char *segdl_build_commit(void) { return SEGDL_BUILD_COMMIT; }
const char *segdl_build_compiler(void) { return SEGDL_BUILD_COMPILER; }
const char *segdl_build_packages(void) { return SEGDL_BUILD_PACKAGES; }

const char *segdl_libraries(void) {
    static char text[256];
#ifdef __GLIBC__
    const char *c_library = "glibc ", *c_version = gnu_get_libc_version();
#else
    const char *c_library = "musl", *c_version = "";
#endif
    // libdeflate states its version only to the compiler.
    snprintf(text, sizeof text, "%s%s, zlib %s, libdeflate %s, nettle %d.%d, expat %s, sqlite %s", c_library, c_version,
             zlibVersion(), LIBDEFLATE_VERSION_STRING, nettle_version_major(), nettle_version_minor(),
             XML_ExpatVersion() + sizeof "expat_" - 1, sqlite3_libversion());
    return text;
}
