/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-memory-client: many clients of one server, most of them idle.
 *
 *   nj-memory-client EAL-ARGUMENTS -- CONNECTIONS-MAX GATEWAY SERVER[:PORT] BODY-FILE
 *
 * Reads commands from standard input, one per line. Prints a line of JSON on standard output when a
 * command is done. `open N` opens connections until N are open. `get K` requests /body on K random
 * connections, one after another, and compares the responses with the file. `abort` resets all
 * connections, as does the end of the input. Prints its progress on standard error every second.
 *
 * Client host i has the address 198.18.1.0 + i. The server reaches the hosts by GATEWAY, which is
 * this program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_pause.h>

#include "base/prng.h"
#include "dpdk/eal.h"
#include "dpdk/tsc_clock.h"
#include "telem/counters.h"
#include "get.h"
#include "hosts.h"

#define HOST_FIRST     0xc6120100u /* 198.18.1.0 */
#define PER_HOST       1000u       /* connections of a host; a /22 has enough hosts for 1,000,000 */
#define PORT_FIRST     10000u
#define IN_FLIGHT_MAX  1024u /* handshakes at a time: a quarter of a server's backlog */
#define GETS_MAX       100000u
#define GET_TIMEOUT    (10 * NJ_SEC)
#define STALL_TIMEOUT  (30 * NJ_SEC) /* without progress of a command */
#define RESPONSE_MAX   65536u
#define POLL_EVERY     (5 * NJ_MS) /* between two reads of standard input */
#define FRAMES_MAX     128u        /* received per step; output waits for them */
#define YIELD_AFTER    64u         /* steps without work */
#define SLEEP_AFTER    2048u
#define SLEEP_NS       50000
#define PICK_TRIES_MAX 1000u

struct slot {
    struct nj_tcb *tcb;
    bool open, requested;
};

enum command { IDLE, OPEN, GET, ABORT, QUIT };

struct bench {
    struct hosts hosts; /* first: aligned */
    struct nj_tsc_clock clock;
    struct nj_prng prng;
    uint16_t port;
    uint8_t *body;
    uint32_t n_body;

    struct slot *slot;
    uint32_t n_slots, n_fresh; /* slots from n_fresh on were never used */
    uint32_t *vacant;          /* slots whose connection has ended */
    uint32_t n_vacant;
    uint32_t n_opening, n_open, n_refused, n_lost;

    enum command command;
    uint32_t wanted;
    nj_ns began_at, progress_at, printed_at, polled_at;
    uint32_t printed_open;
    uint32_t abort_next;

    struct slot *current; /* of the GET in flight, or NULL */
    uint32_t n_response, n_gets;
    nj_ns requested_at;
    uint8_t response[RESPONSE_MAX];
    uint32_t rtt_us[GETS_MAX];

    char line[64]; /* an incomplete command */
    uint32_t n_line;
};

static _Noreturn void fail(const char *error)
{
    fprintf(stderr, "nj-memory-client: %s\n", error);
    exit(1);
}

/* --- connections --------------------------------------------------------------------------- */

static void open_one(struct bench *b, nj_ns now)
{
    uint32_t i = b->n_vacant > 0 ? b->vacant[--b->n_vacant] : b->n_fresh++;
    struct slot *s = &b->slot[i];
    uint32_t n_hosts = (b->n_slots + PER_HOST - 1) / PER_HOST;

    s->tcb = hosts_connect(&b->hosts, HOST_FIRST + i % n_hosts,
                           (uint16_t)(PORT_FIRST + i / n_hosts), b->port, now);
    if (!s->tcb)
        fail("cannot open a connection, although a slot is free");
    s->tcb->user = s;
    s->open = s->requested = false;
    b->n_opening++;
}

static void vacate(struct bench *b, struct slot *s)
{
    bool opened = s->open;

    if (b->current == s && b->command == GET)
        fail("a connection ended without a response to its request");
    b->n_open -= opened;
    b->n_opening -= !opened;
    if (b->command != ABORT && b->command != QUIT) {
        b->n_lost += opened;
        b->n_refused += !opened;
    }
    *s = (struct slot){0};
    b->vacant[b->n_vacant++] = (uint32_t)(s - b->slot);
}

static void read_all(struct bench *b, struct slot *s)
{
    const uint8_t *data;
    uint32_t n;

    while ((n = nj_tcp_recv_peek(s->tcb, &data)) > 0) {
        if (s == b->current) {
            if (n > RESPONSE_MAX - b->n_response)
                fail("a response is too long");
            memcpy(b->response + b->n_response, data, n);
            b->n_response += n;
        }
        nj_tcp_recv_take(&b->hosts.tcp, s->tcb, n);
    }
}

/* Processes the events of connections. Returns the number of connections with events. */
static uint32_t process_events(struct bench *b, nj_ns now)
{
    struct nj_list batch;
    struct nj_tcb *t;
    uint8_t events;
    uint32_t n = 0;

    nj_list_init(&batch);
    nj_tcp_take_ready_batch(&b->hosts.tcp, &batch);
    for (; (t = nj_tcp_next_ready(&batch, &events)); n++) {
        struct slot *s = t->user;
        if (events & NJ_TCP_EV_DEAD) {
            nj_tcp_release(&b->hosts.tcp, t, now);
            vacate(b, s);
            b->progress_at = now;
            continue;
        }
        if (events & NJ_TCP_EV_OPENED) {
            s->open = true;
            b->n_opening--;
            b->n_open++;
            b->progress_at = now;
        }
        read_all(b, s);
        if (events & NJ_TCP_EV_PEER_FIN)
            nj_tcp_abort(&b->hosts.tcp, t, now); /* the server ended the connection */
    }
    return n;
}

/* --- commands ------------------------------------------------------------------------------ */

static double seconds(const struct bench *b, nj_ns now)
{
    return (double)(now - b->began_at) / (double)NJ_SEC;
}

static void done(struct bench *b)
{
    fflush(stdout);
    b->command = b->command == QUIT ? QUIT : IDLE;
}

static void do_open(struct bench *b, nj_ns now)
{
    while (b->hosts.server_known && b->n_open + b->n_opening < b->wanted &&
           b->n_opening < IN_FLIGHT_MAX && hosts_room(&b->hosts) > 0)
        open_one(b, now);
    if (b->n_open < b->wanted)
        return;
    printf("{\"done\": \"open\", \"open\": %u, \"refused\": %u, \"lost\": %u, \"seconds\": %.3f}\n",
           b->n_open, b->n_refused, b->n_lost, seconds(b, now));
    done(b);
}

/* A random open connection without an earlier request. */
static struct slot *pick(struct bench *b)
{
    for (uint32_t i = 0; i < PICK_TRIES_MAX; i++) {
        struct slot *s = &b->slot[nj_prng_below(&b->prng, b->n_fresh)];
        if (s->open && !s->requested)
            return s;
    }
    fail("found no open connection without an earlier request");
}

static void send_request(struct bench *b, nj_ns now)
{
    uint8_t request[GET_REQUEST_BYTES];
    uint32_t n = get_request(request, "/body");

    b->current = pick(b);
    b->current->requested = true;
    b->requested_at = now;
    b->n_response = 0;
    if (!nj_tcp_send_copy(&b->hosts.tcp, b->current->tcb, request, n))
        fail("no buffer for a request");
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void do_get(struct bench *b, nj_ns now)
{
    if (b->current) {
        switch (get_check_response(b->response, b->n_response, b->body, b->n_body)) {
        case GET_MORE:
            if (now - b->requested_at > GET_TIMEOUT)
                fail("no response within 10 s");
            return;
        case GET_WRONG:
            fail("a response does not have status 200 and the bytes of the file");
        case GET_OK:
            break;
        }
        b->rtt_us[b->n_gets++] = (uint32_t)((now - b->requested_at) / NJ_US);
        b->current = NULL;
        b->progress_at = now;
    }
    if (b->n_gets < b->wanted) {
        send_request(b, now);
        return;
    }
    qsort(b->rtt_us, b->n_gets, sizeof *b->rtt_us, by_value);
    printf("{\"done\": \"get\", \"ok\": %u, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u, "
           "\"seconds\": %.3f}\n",
           b->n_gets, b->rtt_us[b->n_gets / 2], b->rtt_us[b->n_gets * 99ul / 100],
           b->rtt_us[b->n_gets - 1], seconds(b, now));
    done(b);
}

/* Resets all connections. True: all have ended, and their RSTs were sent. */
static bool do_abort(struct bench *b, nj_ns now)
{
    while (b->abort_next < b->n_fresh && hosts_room(&b->hosts) > 0) {
        struct slot *s = &b->slot[b->abort_next++];
        if (s->tcb)
            nj_tcp_abort(&b->hosts.tcp, s->tcb, now);
    }
    if (b->n_open + b->n_opening > 0 || b->hosts.n_txq > 0)
        return false;
    if (b->command == ABORT)
        printf("{\"done\": \"abort\", \"open\": %u, \"seconds\": %.3f}\n", b->n_open,
               seconds(b, now));
    done(b);
    return true;
}

static void begin(struct bench *b, const char *line, nj_ns now)
{
    unsigned n = 0;

    b->began_at = b->progress_at = now;
    if (sscanf(line, "open %u", &n) == 1 && n <= b->n_slots)
        b->command = OPEN;
    else if (sscanf(line, "get %u", &n) == 1 && n > 0 && n <= GETS_MAX && n <= b->n_open)
        b->command = GET;
    else if (strcmp(line, "abort") == 0)
        b->command = ABORT;
    else
        fail("unknown command, or its number is too large");
    b->wanted = n;
    b->abort_next = b->n_gets = b->n_refused = b->n_lost = 0;
    b->current = NULL;
}

static void read_command(struct bench *b, nj_ns now)
{
    char c;
    ssize_t n;

    b->polled_at = now;
    while (b->command == IDLE && (n = read(STDIN_FILENO, &c, 1)) >= 0) {
        if (n == 0) {
            b->command = QUIT;
            b->abort_next = 0;
            b->progress_at = now;
        } else if (c == '\n') {
            b->line[b->n_line] = '\0';
            b->n_line = 0;
            begin(b, b->line, now);
        } else if (b->n_line < sizeof b->line - 1) {
            b->line[b->n_line++] = c;
        }
    }
}

/* --- the loop ------------------------------------------------------------------------------ */

static void print_progress(struct bench *b, nj_ns now)
{
    static const char *const activity[] = {"holding", "opening", "requesting", "resetting",
                                           "resetting"};

    if (now - b->printed_at < NJ_SEC)
        return;
    double secs = (double)(now - b->printed_at) / (double)NJ_SEC;
    fprintf(stderr, "%s: %u open (%+.0f/s), %u opening, %u refused, %u lost, %lu retransmissions\n",
            activity[b->command], b->n_open, ((double)b->n_open - b->printed_open) / secs,
            b->n_opening, b->n_refused, b->n_lost,
            (unsigned long)nj_counter_read(&b->hosts.counters, NJ_C_tcp_retransmit));
    b->printed_at = now;
    b->printed_open = b->n_open;
}

static void relax(uint32_t n_idle)
{
    if (n_idle < YIELD_AFTER)
        rte_pause();
    else if (n_idle < SLEEP_AFTER)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

static void run(struct bench *b)
{
    uint32_t n_idle = 0;

    for (;;) {
        nj_ns now = nj_tsc_clock_now(&b->clock);
        uint32_t work = hosts_in(&b->hosts, FRAMES_MAX, now) + process_events(b, now);
        if (b->command == OPEN)
            do_open(b, now);
        else if (b->command == GET)
            do_get(b, now);
        else if (b->command == IDLE && now - b->polled_at >= POLL_EVERY)
            read_command(b, now);
        if ((b->command == ABORT || b->command == QUIT) && do_abort(b, now) && b->command == QUIT)
            return;
        work += hosts_out(&b->hosts, now);
        if (b->command != IDLE && now - b->progress_at > STALL_TIMEOUT)
            fail("no progress for 30 s");
        print_progress(b, now);
        n_idle = work ? 0 : n_idle + 1;
        if (n_idle > 0)
            relax(n_idle);
    }
}

static void read_body(struct bench *b, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size > (off_t)RESPONSE_MAX / 2)
        fail("the body file cannot be read, or is longer than 32 KiB");
    b->n_body = (uint32_t)st.st_size;
    b->body = malloc(b->n_body + 1);
    if (!b->body || read(fd, b->body, b->n_body) != st.st_size)
        fail("the body file cannot be read");
    close(fd);
}

static uint32_t read_ip(const char *text)
{
    struct in_addr in;
    if (inet_pton(AF_INET, text, &in) != 1)
        fail("an address is not an IPv4 address");
    return ntohl(in.s_addr);
}

/* GATEWAY SERVER[:PORT] */
static void open_hosts(struct bench *b, char **argv)
{
    char why[256], *colon = strchr(argv[1], ':');

    b->port = 80;
    if (colon) {
        *colon = '\0';
        b->port = (uint16_t)atoi(colon + 1);
    }
    nj_tsc_clock_init(&b->clock);
    nj_ns now = nj_tsc_clock_now(&b->clock);
    if (!hosts_open(&b->hosts, read_ip(argv[0]), read_ip(argv[1]), b->n_slots, now, why,
                    sizeof why))
        fail(why);
    nj_prng_init(&b->prng, now);
    b->printed_at = now;
}

int main(int argc, char **argv)
{
    char why[256];
    int n_eal = 0;

    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    if (argc - n_eal != 5)
        fail("usage: EAL-ARGUMENTS -- CONNECTIONS-MAX GATEWAY SERVER[:PORT] BODY-FILE");
    char **args = argv + n_eal + 1;
    struct bench *b = aligned_alloc(NJ_CACHE_LINE, RTE_CACHE_LINE_ROUNDUP(sizeof *b));
    if (!b)
        fail("out of memory");
    memset(b, 0, sizeof *b);
    b->n_slots = (uint32_t)strtoul(args[0], NULL, 10);
    b->slot = calloc(b->n_slots, sizeof *b->slot);
    b->vacant = calloc(b->n_slots, sizeof *b->vacant);
    if (b->n_slots == 0 || b->n_slots > 1u << 24 || !b->slot || !b->vacant)
        fail("out of memory, or an invalid number of connections");
    read_body(b, args[3]);
    argv[n_eal] = NULL;
    if (nj_eal_init(n_eal, argv, why, sizeof why) != 0)
        fail(why);
    open_hosts(b, args + 1);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    run(b);
    hosts_close(&b->hosts);
    nj_eal_fini();
    free(b->slot);
    free(b->vacant);
    free(b->body);
    free(b);
    return 0;
}
