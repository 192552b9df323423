/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar-test-embedded: a program with a main loop of its own, which runs the commands on its
 * standard input and answers each with one line, for test_embedded.py:
 *
 *     nightjar-test-embedded ADDRESS/PREFIX ROOT POLICY ACCESS-LOG EAL-ARGUMENT...
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

#include <nightjar/server.h>

static struct nj_server_config config;
static struct nj_server *server;
static int n_eal;
static char **eal;
static atomic_int n_hooks[2], n_log[NJ_LOG_INFO + 1], n_signals, n_stuck;
static atomic_bool is_released; /* the handler of /stuck may return */

/* --- what the server calls -------------------------------------------------------------------- */

static void where(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char text[32];

    (void)req;
    (void)arg;
    int n = snprintf(text, sizeof text, "lcore %d\n", (int)nj_lcore_id());
    nj_response_write(resp, text, (size_t)n);
}

/* Does not return when it is cancelled. */
static void stuck(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)resp;
    (void)arg;
    atomic_fetch_add(&n_stuck, 1);
    while (!atomic_load(&is_released))
        usleep(1000);
}

static const struct nj_route routes[] = {
    {.method = "GET",
     .path = "/where",
     .type = NJ_NON_BLOCKING,
     .handle = where,
     .pin_to_lcore = true},
    {.method = "GET", .path = "/stuck", .type = NJ_OS_BLOCKING, .handle = stuck},
    {.method = "GET",
     .path = "/stuck-inline",
     .type = NJ_NON_BLOCKING,
     .handle = stuck,
     .pin_to_lcore = true},
};

static void lcore_init(unsigned lcore, void *ctx)
{
    if (lcore == nj_lcore_id() && ctx == &config)
        atomic_fetch_add(&n_hooks[0], 1);
}

static void lcore_fini(unsigned lcore, void *ctx)
{
    if (lcore == nj_lcore_id() && ctx == &config)
        atomic_fetch_add(&n_hooks[1], 1);
}

static void take_line(void *ctx, enum nj_log_level level, const char *line)
{
    if (ctx == &config && !strchr(line, '\n'))
        atomic_fetch_add(&n_log[level], 1);
    if (getenv("NJ_TEST_LOG"))
        fprintf(stderr, "log %d: %s\n", (int)level, line);
}

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

/* --- resources that the process holds --------------------------------------------------------- */

static void count_zone(const struct rte_memzone *zone, void *n)
{
    (void)zone;
    ++*(int *)n;
}

static void count_pool(struct rte_mempool *pool, void *n)
{
    (void)pool;
    ++*(int *)n;
}

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2 - (strcmp(folder, "/proc/self/fd") == 0); /* "." and ".."; that of this look */
}

static void resources(void)
{
    struct rte_malloc_socket_stats heap;
    unsigned long n_allocs = 0, n_bytes = 0;
    int n_zones = 0, n_pools = 0;

    rte_memzone_walk(count_zone, &n_zones);
    rte_mempool_walk(count_pool, &n_pools);
    for (int i = 0; i < RTE_MAX_NUMA_NODES; i++)
        if (rte_malloc_get_socket_stats(i, &heap) == 0) {
            n_allocs += heap.alloc_count;
            n_bytes += heap.heap_allocsz_bytes;
        }
    printf("zones=%d pools=%d allocs=%lu bytes=%lu fds=%d threads=%d\n", n_zones, n_pools, n_allocs,
           n_bytes, count_entries("/proc/self/fd"), count_entries("/proc/self/task"));
}

/* --- commands --------------------------------------------------------------------------------- */

static bool is_same_mask(const sigset_t *a, const sigset_t *b)
{
    bool is_same = true;

    for (int i = 1; i <= SIGRTMAX; i++)
        is_same = is_same && sigismember(a, i) == sigismember(b, i);
    return is_same;
}

static void start(struct nj_server **out)
{
    char why[512];
    sigset_t before, after;
    cpu_set_t cpus, cpus_after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus);
    *out = nj_server_new(n_eal, eal, &config, why, sizeof why);
    if (!*out) {
        printf("new: %s\n", why);
        return;
    }
    if (nj_server_start(*out, why, sizeof why) != 0) {
        printf("start: %s\n", why);
        return;
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    pthread_getaffinity_np(pthread_self(), sizeof cpus_after, &cpus_after);
    printf("serves %s %s\n", is_same_mask(&before, &after) ? "mask" : "-",
           CPU_EQUAL(&cpus, &cpus_after) ? "cpus" : "-");
}

static void start_second(void)
{
    struct nj_server *second = NULL;

    start(&second);
    nj_server_free(second);
}

static void stats(void)
{
    struct nj_server_stats s;

    nj_server_stats_init(&s);
    nj_server_read_stats(server, &s);
    printf("requests=%lu 2xx=%lu 4xx=%lu body=%lu accepted=%lu connections=%lu rx=%lu tx=%lu\n",
           s.requests, s.status_2xx, s.status_4xx, s.body_bytes, s.accepted, s.connections,
           s.rx_packets, s.tx_packets);
}

static void end(void)
{
    int waited = nj_server_wait(server), freed = nj_server_free(server);

    server = NULL;
    printf("ended %s, freed %s\n", nj_strerror(waited), nj_strerror(freed));
}

static void obey(const char *line)
{
    if (strcmp(line, "start") == 0) {
        start(&server);
    } else if (strcmp(line, "second") == 0) {
        start_second();
    } else if (strcmp(line, "run") == 0) {
        printf("run returned %d\n", nj_server_run(n_eal, eal, &config));
    } else if (strcmp(line, "cleanup") == 0) {
        nj_eal_cleanup();
        printf("cleaned up\n");
    } else if (strcmp(line, "reload") == 0) {
        printf("%s\n", nj_strerror(nj_server_reload(server)));
    } else if (strcmp(line, "stats") == 0) {
        stats();
    } else if (strcmp(line, "stop") == 0) {
        nj_server_stop(server);
        printf("stopping\n");
    } else if (strcmp(line, "end") == 0) {
        end();
    } else if (strcmp(line, "resources") == 0) {
        resources();
    } else if (strcmp(line, "release") == 0) {
        atomic_store(&is_released, true);
        printf("released\n");
    } else if (strncmp(line, "mtu ", 4) == 0) {
        config.mtu = (uint16_t)atoi(line + 4);
        printf("mtu %u\n", config.mtu);
    } else if (strcmp(line, "counts") == 0) {
        printf("init=%d fini=%d errors=%d warnings=%d infos=%d signals=%d stuck=%d\n", n_hooks[0],
               n_hooks[1], n_log[NJ_LOG_ERROR], n_log[NJ_LOG_WARNING], n_log[NJ_LOG_INFO],
               n_signals, n_stuck);
    } else {
        printf("what is %s?\n", line);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[64];

    if (argc < 6)
        return 2;
    nj_server_config_init(&config);
    config.addr[0] = argv[1];
    config.root = argv[2];
    config.policy_file = argv[3];
    config.access_log = argv[4];
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    config.drain_timeout_s = 1;
    config.log = take_line;
    config.log_ctx = &config;
    config.lcore_init = lcore_init;
    config.lcore_fini = lcore_fini;
    config.lcore_ctx = &config;
    argv[4] = argv[0];
    n_eal = argc - 4;
    eal = argv + 4;
    signal(SIGTERM, on_signal);
    if (getenv("NJ_TEST_OWN_EAL")) {
        if (rte_eal_init(n_eal, eal) < 0)
            return 1;
        n_eal = 0;
        eal = NULL;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        obey(line);
    }
    if (getenv("NJ_TEST_OWN_EAL"))
        rte_eal_cleanup();
    nj_eal_cleanup();
    return 0;
}
