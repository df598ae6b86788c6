// Benchmark tools that are better in C: the floor, a long path, and a parent with little memory.
#include "tools.h"
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "limit") == 0) return limit(count - 1, words + 1);
    if (count > 1 && strcmp(words[1], "link") == 0) return carry(count - 1, words + 1);
    if (count > 1 && strcmp(words[1], "measure") == 0) return measure(count - 1, words + 1);
    fprintf(stderr, "usage: segdl-benchmark-tools limit|link|measure ...\n");
    return 2;
}
