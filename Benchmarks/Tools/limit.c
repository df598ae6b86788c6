// The floor for any downloader: N connections, one poll loop, recv of up to 1 MiB, pwrite. No checks, no syncs.
// limit PORT PATH OUTPUT CONNECTIONS SIZE
#define _GNU_SOURCE
#include "tools.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, BUFFER = 1 << 20 };

static char buffer[BUFFER];

int limit(int count, char **words) {
    if (count != 6) return 64;
    int port = atoi(words[1]), n = atoi(words[4]), open_count = n;
    long size = atol(words[5]);
    int output = open(words[3], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (output < 0 || n < 1 || n > CONNECTIONS_MAX || ftruncate(output, size) != 0) return 1;

    struct pollfd polls[CONNECTIONS_MAX];
    long position[CONNECTIONS_MAX], end[CONNECTIONS_MAX];
    int in_head[CONNECTIONS_MAX];
    for (int i = 0; i < n; i++) {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) return 2;
        position[i] = size / n * i;
        end[i] = i == n - 1 ? size : size / n * (i + 1);
        in_head[i] = 1;
        char request[512];
        int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nRange: bytes=%ld-%ld\r\n\r\n",
                              words[2], position[i], end[i] - 1);
        if (send(connection, request, length, 0) != length) return 2;
        polls[i] = (struct pollfd){.fd = connection, .events = POLLIN};
    }
    while (open_count > 0) {
        poll(polls, n, -1);
        for (int i = 0; i < n; i++) {
            if (polls[i].fd < 0 || polls[i].revents == 0) continue;
            long length = recv(polls[i].fd, buffer, sizeof buffer, 0);
            if (length <= 0) return 3;
            char *data = buffer;
            if (in_head[i]) {
                char *head_end = memmem(buffer, length, "\r\n\r\n", 4);
                if (head_end == NULL) return 4;
                data = head_end + 4;
                length -= data - buffer;
                in_head[i] = 0;
            }
            if (length > 0 && pwrite(output, data, length, position[i]) != length) return 5;
            position[i] += length;
            if (position[i] >= end[i]) {
                close(polls[i].fd);
                polls[i].fd = -1;
                open_count--;
            }
        }
    }
    return 0;
}
