/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-attack: attackers and innocent clients of one server, for ./dev bench attacks.
 *
 *   nj-attack EAL-ARGUMENTS -- CONNECTIONS-MAX GATEWAY SERVER PATH RATE
 *
 * The innocents (innocents.h) request PATH all the time, RATE times per second in all. The program
 * prints a line of JSON when they are connected. Then it reads commands from standard input, one
 * per line, and prints a line of JSON when a command is done:
 *
 *   attack KIND N OPEN-RATE PIECE-RATE DEPTH   (attackers.h) done when N were opened
 *   measure SECONDS   the innocents' latencies, and what the attackers sent and received since the
 *                     attack began
 *   end               resets the connections of the attack
 *
 * All is one thread, which polls: as a process each, they would wait for one another on a CPU, and
 * the latencies would be those of the kernel's scheduler. Each step is short, sends the innocents'
 * requests first, and is measured: `step_ns` is the mean length of the step at a random time.
 * A response waits for half of it in the mean. A step of more than STALL means that the program
 * stood still.
 *
 * Hosts have addresses of their own: attackers from 198.18.1.0 on, innocents from 198.18.3.0. The
 * server reaches them by GATEWAY, which is this program.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_pause.h>

#include "attackers.h"
#include "base/compiler.h"
#include "dpdk/eal.h"
#include "dpdk/tsc_clock.h"
#include "innocents.h"

#define SERVER_PORT   80u
#define CONNS_SPARE   4096u /* connections that are closing */
#define FRAMES_MAX    8u    /* received per step */
#define STALL         (100 * NJ_US)
#define STALL_TIMEOUT (30 * NJ_SEC)
#define LATE_MAX      (2 * NJ_SEC) /* for the last responses of a measurement */
#define POLL_EVERY    (1 * NJ_MS)  /* between two reads of standard input */

enum command { CONNECT, IDLE, ATTACK, MEASURE, END, QUIT };

/* Of the steps of a measurement. */
struct steps {
    double n_ns, n_busy_ns; /* of all, and of those with work */
    double n_moving_ns, n_square, n_stalled_ns;
};

struct bench {
    struct hosts hosts; /* first: aligned */
    struct nj_tsc_clock clock;
    struct innocents innocents;
    struct attackers attackers;
    struct steps steps;
    enum command command;
    nj_ns began_at, polled_at, measured_from, measured_to;
    const char *path;
    double rate;
    char line[128]; /* an incomplete command */
    uint32_t n_line;
};

static _Noreturn void fail(const char *error)
{
    fprintf(stderr, "nj-attack: %s\n", error);
    exit(1);
}

/* --- commands ------------------------------------------------------------------------------ */

static void done(struct bench *b)
{
    fflush(stdout);
    b->command = b->command == QUIT ? QUIT : IDLE;
}

static void do_connect(struct bench *b, nj_ns now)
{
    if (!b->hosts.server_known)
        return;
    if (!b->innocents.hosts) {
        if (!innocents_connect(&b->innocents, &b->hosts, SERVER_PORT, b->path, b->rate, now))
            fail("cannot connect the innocents");
        return;
    }
    if (!innocents_are_open(&b->innocents))
        return;
    printf("{\"done\": \"connect\"}\n");
    done(b);
}

static void do_attack(struct bench *b)
{
    if (b->attackers.n.opened < b->attackers.n_slots)
        return;
    printf("{\"done\": \"attack\", \"open\": %u}\n", b->attackers.n_open);
    done(b);
}

static void print_statuses(const struct attack_counts *n)
{
    const char *comma = "";

    printf("\"status\": {");
    for (uint32_t i = 0; i < ATTACK_STATUS_MAX; i++)
        if (n->status[i] > 0) {
            printf("%s\"%u\": %lu", comma, i, (unsigned long)n->status[i]);
            comma = ", ";
        }
    printf("}");
}

static void print_measured(const struct bench *b)
{
    const struct innocents *v = &b->innocents;
    const struct attack_counts *n = &b->attackers.n;
    const struct steps *s = &b->steps;
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p99.9", .999}};

    printf("{\"done\": \"measure\", \"asked\": %lu, \"answered\": %lu, \"full\": %lu, ",
           (unsigned long)v->n_asked, (unsigned long)v->n_answered, (unsigned long)v->n_full);
    for (size_t i = 0; i < NJ_ARRAY_LEN(quantiles); i++)
        printf("\"%s\": %lu, ", quantiles[i].name,
               (unsigned long)fine_histogram_quantile(&v->latency, quantiles[i].share));
    printf("\"late_p99\": %lu, \"step_ns\": %.0f, \"client_busy\": %.4f, ",
           (unsigned long)fine_histogram_quantile(&v->late, .99), s->n_square / s->n_moving_ns,
           s->n_busy_ns / s->n_ns);
    printf("\"stalled\": %lu, \"stalled_share\": %.5f, ", (unsigned long)v->n_stalled,
           s->n_stalled_ns / s->n_ns);
    printf("\"open\": %u, \"opened\": %lu, \"refused\": %lu, \"by_fin\": %lu, \"by_rst\": %lu, "
           "\"pieces\": %lu, \"held\": %lu, \"forgotten\": %lu, \"responses\": %lu, "
           "\"bytes\": %lu, ",
           b->attackers.n_open, (unsigned long)n->opened, (unsigned long)n->refused,
           (unsigned long)n->by_fin, (unsigned long)n->by_rst, (unsigned long)n->pieces,
           (unsigned long)n->held, (unsigned long)n->forgotten, (unsigned long)n->responses,
           (unsigned long)n->bytes);
    print_statuses(n);
    printf("}\n");
}

static void do_measure(struct bench *b, nj_ns now)
{
    if (b->innocents.broken)
        fail("an innocent's connection ended, or a response was not 200");
    if (!innocents_are_measured(&b->innocents, now) && now < b->measured_to + LATE_MAX)
        return;
    print_measured(b);
    done(b);
}

static void do_end(struct bench *b, nj_ns now)
{
    if (!attackers_end(&b->attackers, now) || b->hosts.n_txq > 0)
        return;
    if (b->command == END)
        printf("{\"done\": \"end\"}\n");
    done(b);
}

static void begin_measuring(struct bench *b, double seconds, nj_ns now)
{
    b->measured_from = now;
    b->measured_to = now + (nj_ns)(seconds * (double)NJ_SEC);
    b->steps = (struct steps){0};
    innocents_measure(&b->innocents, b->measured_from, b->measured_to);
    b->command = MEASURE;
}

static void begin(struct bench *b, const char *line, nj_ns now)
{
    char kind[32];
    unsigned n, depth;
    double opens, pieces, seconds;

    b->began_at = now;
    if (sscanf(line, "attack %31s %u %lf %lf %u", kind, &n, &opens, &pieces, &depth) == 5 &&
        attackers_begin(&b->attackers, kind, n, opens, pieces, depth, now))
        b->command = ATTACK;
    else if (sscanf(line, "measure %lf", &seconds) == 1 && seconds > 0 && seconds < 3600)
        begin_measuring(b, seconds, now);
    else if (strcmp(line, "end") == 0)
        b->command = END;
    else
        fail("unknown command, or a number of it is too large");
}

static void read_command(struct bench *b, nj_ns now)
{
    char c;
    ssize_t n;

    b->polled_at = now;
    while (b->command == IDLE && (n = read(STDIN_FILENO, &c, 1)) >= 0) {
        if (n == 0) {
            b->command = QUIT;
        } else if (c == '\n') {
            b->line[b->n_line] = '\0';
            b->n_line = 0;
            begin(b, b->line, now);
        } else if (b->n_line < sizeof b->line - 1) {
            b->line[b->n_line++] = c;
        }
    }
}

static void run_command(struct bench *b, nj_ns now)
{
    switch (b->command) {
    case CONNECT:
        do_connect(b, now);
        break;
    case IDLE:
        if (now - b->polled_at >= POLL_EVERY)
            read_command(b, now);
        return;
    case ATTACK:
        do_attack(b);
        break;
    case MEASURE:
        do_measure(b, now);
        return;
    case END:
    case QUIT:
        do_end(b, now);
        break;
    }
    if (b->command != IDLE && now - b->began_at > STALL_TIMEOUT)
        fail("a command is not done after 30 s");
}

/* --- the loop ------------------------------------------------------------------------------ */

static uint32_t process_events(struct bench *b, nj_ns now)
{
    struct nj_list batch;
    struct nj_tcb *t;
    uint8_t events;
    uint32_t n = 0;

    nj_list_init(&batch);
    nj_tcp_take_ready_batch(&b->hosts.tcp, &batch);
    for (; (t = nj_tcp_next_ready(&batch, &events)); n++) {
        struct party *p = t->user;
        if (p->kind == PARTY_INNOCENT)
            innocents_event(&b->innocents, nj_container_of(p, struct innocent, party), events, now);
        else
            attackers_event(&b->attackers, nj_container_of(p, struct attacker, party), events, now);
    }
    return n;
}

static void note_step(struct bench *b, nj_ns from, nj_ns to, bool busy)
{
    double ns = (double)(to - from);

    if (b->command != MEASURE || from < b->measured_from || to > b->measured_to)
        return;
    b->steps.n_ns += ns;
    b->steps.n_busy_ns += busy ? ns : 0;
    if (to - from > STALL) {
        b->steps.n_stalled_ns += ns;
        return;
    }
    b->steps.n_moving_ns += ns;
    b->steps.n_square += ns * ns;
}

static void run(struct bench *b)
{
    nj_ns now = nj_tsc_clock_now(&b->clock);

    while (b->command != QUIT || b->attackers.n_vacant < b->attackers.n_slots) {
        uint32_t work = hosts_in(&b->hosts, FRAMES_MAX, now);
        work += process_events(b, now);
        if (innocents_are_open(&b->innocents) &&
            innocents_step(&b->innocents, nj_tsc_clock_now(&b->clock)) > 0)
            work += hosts_out(&b->hosts, nj_tsc_clock_now(&b->clock));
        work += attackers_step(&b->attackers, now);
        run_command(b, now);
        work += hosts_out(&b->hosts, now);
        if (work == 0)
            rte_pause();
        nj_ns next = nj_tsc_clock_now(&b->clock);
        note_step(b, now, next, work > 0);
        if (next - now > STALL)
            innocents_stalled(&b->innocents, next);
        now = next;
    }
}

static uint32_t read_ip(const char *text)
{
    struct in_addr in;

    if (inet_pton(AF_INET, text, &in) != 1)
        fail("an address is not an IPv4 address");
    return ntohl(in.s_addr);
}

static void open_all(struct bench *b, char **args)
{
    char why[256];
    uint32_t n_max = (uint32_t)strtoul(args[0], NULL, 10);

    if (n_max == 0 || n_max > 1u << 20)
        fail("an invalid number of connections");
    b->path = args[3];
    b->rate = strtod(args[4], NULL);
    if (strlen(b->path) > H2_PATH_BYTES_MAX || !(b->rate >= 1))
        fail("the path is too long, or the rate is below 1");
    nj_tsc_clock_init(&b->clock);
    nj_ns now = nj_tsc_clock_now(&b->clock);
    if (!hosts_open(&b->hosts, read_ip(args[1]), read_ip(args[2]), n_max + CONNS_SPARE, now, why,
                    sizeof why))
        fail(why);
    if (!attackers_init(&b->attackers, &b->hosts, SERVER_PORT, b->path, n_max))
        fail("out of memory");
    b->began_at = now;
}

int main(int argc, char **argv)
{
    char why[256];
    int n_eal = 0;

    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    if (argc - n_eal != 6)
        fail("usage: EAL-ARGUMENTS -- CONNECTIONS-MAX GATEWAY SERVER PATH RATE");
    char **args = argv + n_eal + 1;
    struct bench *b = aligned_alloc(NJ_CACHE_LINE, RTE_CACHE_LINE_ROUNDUP(sizeof *b));
    if (!b)
        fail("out of memory");
    memset(b, 0, sizeof *b);
    argv[n_eal] = NULL;
    if (nj_eal_init(n_eal, argv, why, sizeof why) != 0)
        fail(why);
    open_all(b, args);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    run(b);
    attackers_fini(&b->attackers);
    hosts_close(&b->hosts);
    nj_eal_fini();
    free(b);
    return 0;
}
