// System calls that the C library's headers hide from Swift behind feature macros.
#pragma once
#include <spawn.h>
#include <sys/types.h>
#include <sys/xattr.h>

#define MFD_CLOEXEC 1U

extern int fallocate(int descriptor, int mode, off_t offset, off_t length);
extern int pipe2(int descriptors[2], int flags);
extern int memfd_create(const char *name, unsigned int flags);
extern int renameat2(int directory, const char *path, int target_directory, const char *target, unsigned int flags);
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
