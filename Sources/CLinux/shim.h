// System calls that the C library's headers hide from Swift behind feature macros.
#pragma once
#include <errno.h>
#include <linux/magic.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define MFD_CLOEXEC 1U
#define O_PATH 010000000
// Hidden by glibc; musl has the same value.
#define SEGDL_SPAWN_SETSID 0x80

// The facts of a file. Swift attributes glibc's struct stat to whichever C module it loads first, and then hides its members
// from files that do not import that one.
struct segdl_file_facts {
    unsigned int permissions;
    int is_directory;
    int is_socket;
    int is_pipe;
    int is_character_device;
    unsigned int user;
    unsigned long device;
    unsigned long inode;
    long long length;
};

// fstat(2) if there is no path, otherwise stat(2) or lstat(2).
static inline int segdl_file_facts(const char *path, int descriptor, int follows_links, struct segdl_file_facts *facts) {
    struct stat status;
    int result = !path ? fstat(descriptor, &status) : follows_links ? stat(path, &status) : lstat(path, &status);
    if (result != 0) return -1;
    facts->permissions = status.st_mode & 07777;
    facts->is_directory = S_ISDIR(status.st_mode);
    facts->is_socket = S_ISSOCK(status.st_mode);
    facts->is_pipe = S_ISFIFO(status.st_mode);
    facts->is_character_device = S_ISCHR(status.st_mode);
    facts->user = status.st_uid;
    facts->device = status.st_dev;
    facts->inode = status.st_ino;
    facts->length = status.st_size;
    return 0;
}

// The bytes that are free in an open file's tmpfs; -1 if it is in another file system.
static inline long long segdl_free_memory(int descriptor) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0 || status.f_type != TMPFS_MAGIC) return -1;
    return (long long)status.f_bavail * status.f_bsize;
}

// sched_getaffinity(2) as a number; 1 if the mask is longer than 8192 bits.
extern long syscall(long number, ...);
static inline int segdl_processor_count(void) {
    unsigned long mask[128];
    long length = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int count = 0;
    for (long word = 0; word * (long)sizeof *mask < length; word++) count += __builtin_popcountl(mask[word]);
    return count > 0 ? count : 1;
}

// openat2(2) below a directory, without symbolic links. glibc has no function for it.
static inline int segdl_open_beneath(int directory, const char *path, int flags) {
    struct { unsigned long long flags, mode, resolve; } how = {
        (unsigned)flags, 0,
        0x08 | 0x04, // RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS
    };
    long descriptor;
    // EAGAIN: another process moved a directory in the meantime.
    for (int attempt = 0; attempt < 16; attempt++) {
        descriptor = syscall(437, directory, path, &how, sizeof how);
        if (descriptor >= 0 || errno != EAGAIN) break;
    }
    return (int)descriptor;
}

extern int fallocate(int descriptor, int mode, off_t offset, off_t length);
extern int pipe2(int descriptors[2], int flags);
extern int memfd_create(const char *name, unsigned int flags);
extern int renameat2(int directory, const char *path, int target_directory, const char *target, unsigned int flags);
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
