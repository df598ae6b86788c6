// A failing disk for tests: loaded before the C library, it replaces calls on part files.
//
// FAULTY_DISK=CALL:HOW[:AFTER][,…], where CALL is pwrite, fdatasync, fsync, fallocate, rename, renameat2, link, flock,
// fsetxattr, fremovexattr or dirsync (fsync of a directory). HOW is an error number, "short" (one byte per call for the
// first 4096 calls), "interrupted" (EINTR on every other call), "slow" (3 s, once), "kill" (SIGKILL instead of the
// call) or "swap" (flock only: after the lock another file has the part's name). AFTER is the number of calls that
// succeed first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int is_part_at(int fd, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(link, path, 4095);
    if (count < 0) return 0;
    path[count] = 0;
    return strstr(path, ".segdl-part") != NULL;
}

static int is_part(int fd) {
    char path[4096];
    return is_part_at(fd, path);
}

// The fault of a call: 0 for none, > 0 for this error, < 0 for one of these.
enum { SHORT = -1, INTERRUPTED = -2, SLOW = -3, SWAP = -4 };

// The text after the call's colon, or null.
static const char *specification(const char *call) {
    size_t length = strlen(call);
    for (const char *spec = getenv("FAULTY_DISK"); spec && *spec; spec += strspn(spec, ",")) {
        if (!strncmp(spec, call, length) && spec[length] == ':') return spec + length + 1;
        spec += strcspn(spec, ",");
    }
    return NULL;
}

static int fault_of_part(const char *call, int *count) {
    const char *how = specification(call);
    if (!how) return 0;
    const char *after = memchr(how, ':', strcspn(how, ","));
    int before = __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    if (after && before < atoi(after + 1)) return 0;
    if (!strncmp(how, "short", 5)) return before < 4096 ? SHORT : 0;
    if (!strncmp(how, "interrupted", 11)) return before % 2 ? 0 : INTERRUPTED;
    if (!strncmp(how, "slow", 4)) return before == 0 ? SLOW : 0;
    if (!strncmp(how, "swap", 4)) return SWAP;
    if (!strncmp(how, "kill", 4)) kill(getpid(), SIGKILL);
    return atoi(how);
}

static int fault(const char *call, int fd, int *count) {
    return strcmp(call, "dirsync") && !is_part(fd) ? 0 : fault_of_part(call, count);
}

static ssize_t faulty_pwrite(const char *name, int fd, const void *bytes, size_t length, off_t offset) {
    static int count;
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
    int what = fault("pwrite", fd, &count);
    if (what > 0 || what == INTERRUPTED) {
        errno = what > 0 ? what : EINTR;
        return -1;
    }
    if (what == SLOW) usleep(3000 * 1000);
    return real(fd, bytes, what == SHORT && length > 1 ? 1 : length, offset);
}

ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { return faulty_pwrite("pwrite", fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) { return faulty_pwrite("pwrite64", fd, b, n, o); }

static int faulty_sync(const char *name, int fd) {
    static int count;
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    int what = fault(name, fd, &count);
    if (what > 0) {
        errno = what;
        return -1;
    }
    return real(fd);
}

int fdatasync(int fd) { return faulty_sync("fdatasync", fd); }
int fsync(int fd) {
    static int count;
    struct stat status;
    int what = fstat(fd, &status) || !S_ISDIR(status.st_mode) ? 0 : fault("dirsync", fd, &count);
    if (what <= 0) return faulty_sync("fsync", fd);
    errno = what;
    return -1;
}

static int faulty_allocate(const char *name, int fd, int mode, off_t offset, off_t length) {
    static int count;
    int (*real)(int, int, off_t, off_t) = dlsym(RTLD_NEXT, name);
    int what = fault("fallocate", fd, &count);
    if (what > 0) {
        errno = what;
        return -1;
    }
    return real(fd, mode, offset, length);
}

int fallocate(int fd, int m, off_t o, off_t n) { return faulty_allocate("fallocate", fd, m, o, n); }
int fallocate64(int fd, int m, off_t o, off_t n) { return faulty_allocate("fallocate64", fd, m, o, n); }

// Calls that only succeed or fail.
#define FAILING(call, isOfPart, parameters, arguments)              \
    int call parameters {                                           \
        static int count;                                           \
        int (*real) parameters = dlsym(RTLD_NEXT, #call);           \
        int what = isOfPart ? fault_of_part(#call, &count) : 0;     \
        if (what <= 0) return real arguments;                       \
        errno = what;                                               \
        return -1;                                                  \
    }

FAILING(rename, strstr(from, ".segdl-part") != NULL, (const char *from, const char *to), (from, to))
FAILING(link, strstr(from, ".segdl-part") != NULL, (const char *from, const char *to), (from, to))
FAILING(renameat2, strstr(from, ".segdl-part") != NULL, (int a, const char *from, int b, const char *to, unsigned flags),
        (a, from, b, to, flags))
FAILING(fsetxattr, is_part(fd), (int fd, const char *name, const void *value, size_t size, int flags),
        (fd, name, value, size, flags))
FAILING(fremovexattr, is_part(fd), (int fd, const char *name), (fd, name))

int flock(int fd, int operation) {
    static int count;
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    int what = fault("flock", fd, &count), answer = what > 0 ? -1 : real(fd, operation);
    if (what > 0) errno = what;
    char path[4096], moved[4104];
    if (what == SWAP && answer == 0 && is_part_at(fd, path)) {
        snprintf(moved, sizeof moved, "%s.moved", path);
        rename(path, moved);
        fclose(fopen(path, "w"));
    }
    return answer;
}
