// Runs a command and writes its costs to a file: seconds, processor seconds in user space and in the kernel, and the
// peak memory of its largest process in KiB.
//
// measure FILE COMMAND [ARGUMENT ...]
//
// A separate process, because a child's peak starts at its parent's memory, and this process has little.
#define _GNU_SOURCE
#include "tools.h"
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

int measure(int count, char **words) {
    if (count < 3) {
        fprintf(stderr, "usage: measure FILE COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child = fork();
    if (child == 0) {
        execvp(words[2], words + 2);
        perror(words[2]);
        _exit(127);
    }
    // An interrupt is for the command; this process waits for its end.
    signal(SIGINT, SIG_IGN);
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) return 126;
    clock_gettime(CLOCK_MONOTONIC, &end);
    FILE *file = fopen(words[1], "w");
    if (!file) return 126;
    fprintf(file, "%.6f %.6f %.6f %ld\n", (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
            seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss);
    if (fclose(file) != 0) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
