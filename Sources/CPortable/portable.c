#define _GNU_SOURCE  // environ
#include "portable.h"

#ifndef SEGDL_PORTABLE

void segdl_restore_environment(void) {}

#else

#include <unistd.h>

// Swift's runtime looks for its backtracer beside the program before main begins, and aborts if there is no /proc:
// "Unable to obtain Swift runtime path". With a path in this variable it does not look. Its constructors see only this
// environment, in the form in which a process receives it (System V ABI, AMD64, 3.4.1): they walk back from there to the
// number of arguments, so the real arguments are stated too.
static char backtracer[] = "SWIFT_BACKTRACE=enable=no,swift-backtrace=/nonexistent";
static struct {
    long argument_count;
    char *end_of_arguments;
    char *variables[2];
} stack = {0, 0, {backtracer, 0}};
static char **original;

// Of Swift's runtime (stdlib/public/stubs/CommandLine.cpp).
extern void _swift_stdlib_overrideUnsafeArgvArgc(char **arguments, int count);

// Functions of this section run before all constructors.
static void state_backtracer(int count, char **arguments, char **environment) {
    _swift_stdlib_overrideUnsafeArgvArgc(arguments, count);
    original = environment;
    environ = stack.variables;
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(int, char **, char **) =
    state_backtracer;

void segdl_restore_environment(void) {
    if (environ == stack.variables) environ = original;
}

// Foundation brings 34 MB of ICU's data about languages, calendars and time zones. These are the tables that a URL's host
// needs (scripts/icu-subset), under the name that the linker then finds first.
__asm__(
    ".pushsection .rodata.icudt76_dat, \"a\"\n"
    ".balign 16\n"
    ".globl icudt76_dat\n"
    "icudt76_dat: .incbin \"" SEGDL_ICU_DATA "\"\n"
    ".popsection\n");

#endif
