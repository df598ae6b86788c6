// A long, lossy path between two TUN devices, in user space: rate, one-way delay, a queue of limited length, random
// loss.
//
// link DEVICE_A DEVICE_B MBIT_PER_S DELAY_MS LOSS_PER_MILLION QUEUE_PACKETS SEED
//
// Packets from A to B (requests, acknowledgements) are delayed only. Packets from B to A queue for the link, are lost
// at random, and are dropped when the queue is full. Prints "ready" when both devices exist, and the packet counts at
// its end.
#define _GNU_SOURCE
#include "tools.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PACKET_MAX = 2048, SLOTS = 1 << 14 };

struct packet { uint64_t due; int length; char bytes[PACKET_MAX]; };

struct way {
    int from, to;
    double rate;            // bytes per nanosecond; 0 for none
    uint64_t delay, free_at; // nanoseconds
    uint32_t loss;          // of a million
    int queue_max;
    struct packet *slots;
    uint32_t head, tail;    // slots in use: [head, tail)
    uint64_t carried, lost, dropped;
};

static volatile sig_atomic_t is_over;
static uint64_t state;

static void end(int number) { (void)number; is_over = 1; }

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// SplitMix64: https://prng.di.unimi.it/splitmix64.c
static uint64_t draw(void) {
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int device(const char *name) {
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0 || ioctl(descriptor, TUNSETIFF, &request) < 0) {
        perror(name);
        exit(1);
    }
    return descriptor;
}

// Receives all packets that have arrived.
static void take(struct way *way, uint64_t time) {
    while (way->tail - way->head < SLOTS) {
        struct packet *packet = &way->slots[way->tail % SLOTS];
        ssize_t length = read(way->from, packet->bytes, PACKET_MAX);
        if (length <= 0) return;
        if (way->loss && draw() % 1000000 < way->loss) {
            way->lost++;
            continue;
        }
        uint64_t start = way->free_at > time ? way->free_at : time;
        uint64_t takes = way->rate > 0 ? (uint64_t)(length / way->rate) : 0;
        // The queue, in packets of this length: drop-tail, as in a router.
        if (takes > 0 && (start - time) / takes > (uint64_t)way->queue_max) {
            way->dropped++;
            continue;
        }
        way->free_at = start + takes;
        packet->due = way->free_at + way->delay;
        packet->length = (int)length;
        way->tail++;
    }
}

// Delivers the packets that are due.
static void give(struct way *way, uint64_t time) {
    while (way->head != way->tail && way->slots[way->head % SLOTS].due <= time) {
        struct packet *packet = &way->slots[way->head % SLOTS];
        if (write(way->to, packet->bytes, (size_t)packet->length) < 0 && errno == EAGAIN) return;
        way->carried++;
        way->head++;
    }
}

int carry(int count, char **words) {
    if (count != 8) {
        fprintf(stderr, "usage: link DEVICE_A DEVICE_B MBIT_PER_S DELAY_MS LOSS_PER_MILLION QUEUE_PACKETS SEED\n");
        return 2;
    }
    struct way down = { .rate = atof(words[3]) / 8000, .loss = (uint32_t)atol(words[5]), .queue_max = atoi(words[6]) };
    struct way up = { 0 };
    up.from = down.to = device(words[1]);
    down.from = up.to = device(words[2]);
    up.delay = down.delay = (uint64_t)(atof(words[4]) * 1e6);
    up.slots = malloc(sizeof(struct packet) * SLOTS);
    down.slots = malloc(sizeof(struct packet) * SLOTS);
    state = strtoull(words[7], NULL, 10);
    if (!up.slots || !down.slots) return 1;
    signal(SIGINT, end);
    signal(SIGTERM, end);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    printf("ready\n");
    fflush(stdout);
    while (!is_over) {
        uint64_t time = now(), next = 0;
        take(&up, time);
        take(&down, time);
        time = now();
        give(&up, time);
        give(&down, time);
        for (int i = 0; i < 2; i++) {
            struct way *way = i ? &up : &down;
            if (way->head == way->tail) continue;
            uint64_t due = way->slots[way->head % SLOTS].due;
            if (!next || due < next) next = due;
        }
        // At least 50 µs ahead: a packet occupies the link for 60, and each wake-up has a cost.
        if (next && next < time + 50000) next = time + 50000;
        struct itimerspec at = { .it_value = { (time_t)(next / 1000000000u), (long)(next % 1000000000u) } };
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        struct pollfd polled[] = {
            { up.from, POLLIN, 0 }, { down.from, POLLIN, 0 }, { timer, POLLIN, 0 },
        };
        poll(polled, 3, 1000);
    }
    fprintf(stderr, "down: %llu carried, %llu lost, %llu dropped; up: %llu carried\n", (unsigned long long)down.carried,
            (unsigned long long)down.lost, (unsigned long long)down.dropped, (unsigned long long)up.carried);
    return 0;
}
