// What a program is made of.
#pragma once

// The commit's hash and date; a null pointer unless a script built the program.
const char *segdl_build_commit(void);
// The Swift compiler's version and the target; a null pointer unless a script built the program.
const char *segdl_build_compiler(void);
// The Swift packages with their versions, separated by commas; a null pointer unless a script built the program.
const char *segdl_build_packages(void);
// The libraries in C that the program runs with, and their versions, separated by commas.
const char *segdl_libraries(void);
