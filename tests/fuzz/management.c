/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: a request of the management listener, behind the framing of HTTP, which is
 * libmicrohttpd's. The input is "METHOD URL\nAUTHORIZATION\nHOST\nBODY". The request is answered by
 * its route, as at the Unix socket, on a server of one shard and without lcores: paths, queries,
 * and bodies with limits, networks, times, and ids of transfers. A GET changes nothing, and a
 * change that is refused neither.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/policy_snapshots.h"
#include "config/settings_validate.h"
#include "mgmt/capture.h"
#include "mgmt/document.h"
#include "mgmt/http_exchange.h"
#include "mgmt/trace.h"
#include "mgmt/transfers.h"
#include "support/shard_rig.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct nj_server_config config;
static struct nj_settings settings;
static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nj_lcore_control control;
static struct nj_lcore lcore = {.control = &control};
static struct nj_lcore_log lcore_log;
static struct nj_dpdk_port device = {.name = "net_ring0", .driver = "net_ring"};
static struct nj_port_stats port_stats = {.link_up = true};
static struct nj_tsc_clock tsc_clock = {.ns_per_cycle_q32 = 1ull << 32};
static struct nj_class_rate rates[NJ_CLASSES_MAX];
static _Atomic nj_ns supervised_at, unpolled[1], ready_stall = NJ_SEC;
static _Atomic bool is_stopping, is_yielding;
static struct nj_mgmt_reloads reloads;
static struct rig *rig;
static struct nj_mgmt_view view;
static const struct nj_mgmt_view without_lcores = {.clock = &tsc_clock}; /* of streams */
static struct nj__mgmt_events events;
static struct nj_mgmt_tokens tokens;
static uint64_t version; /* of the policy */

/* --- a server -------------------------------------------------------------------------------- */

static void set_policy(void *ctx, const struct nj_policy *p)
{
    version = p->version;
}

static uint64_t adopted(void *ctx)
{
    return version;
}

static bool has_responses(void *ctx, uint8_t slot)
{
    return false;
}

static bool change_limits(void *policies, const char *change, char *why, size_t why_bytes)
{
    return nj_policies_change(policies, change, NJ_SEC, why, why_bytes) > 0;
}

static void reset_handlers(void *ctx)
{
    NJ_CHECK(!"no request resets counts");
}

static bool reload(void *ctx, char **errors)
{
    *errors = strdup("a.conf:1: \"x\\y\n\xff");
    return false;
}

static bool reopen_log(void *ctx)
{
    return false;
}

static bool diff(void *ctx, nj_config_change_fn *see, void *of, char **errors, char **restart)
{
    const struct nj_config_change change = {.section = "server", .key = "rate", .running = "\xff"};

    see(of, &change);
    *errors = strdup("a.conf:1: b\n");
    *restart = NULL;
    return false;
}

static struct nj_policies *make_policies(void)
{
    static const struct nj_policy_ops ops = {NULL, set_policy, adopted, has_responses};
    static char path[] = "/tmp/nj-fuzz-XXXXXX"; /* the configuration keeps its name */
    char why[256];
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");

    NJ_CHECK(f && fputs("[server]\nrate = 10MiB/s\n[class video]\npath = /video/\nstreams = 4\n"
                        "[site www.example.org]\n",
                        f) >= 0);
    fclose(f);
    nj_server_config_init(&config);
    config.policy_file = path;
    config.addr[0] = "198.18.0.2/24";
    config.root = "/";
    NJ_CHECK(nj_settings_from_config(&settings, &config, why, sizeof why) == 0);
    struct nj_policies *policies = nj_policies_new(&settings, 0, why, sizeof why);
    NJ_CHECK(policies);
    unlink(path);
    version = nj_policies_initial(policies)->version;
    nj_policies_set_ops(policies, &ops);
    return policies;
}

static struct nj_worker_pool *start_workers(void)
{
    const struct nj_worker_pool_config pool = {
        .n_shards = 1, .kind = {{.n_max = 1, .tasks_max = 4}, {.n_max = 1, .tasks_max = 4}}};
    struct nj_worker_pool *workers;

    NJ_CHECK(nj_worker_pool_start(&pool, &workers) == 0);
    return workers;
}

/* LeakSanitizer does not look into the pages of a shard. */
static void end(void)
{
    rig_free(rig);
}

static void start(void)
{
    char why[256];
    struct nj_policies *policies = make_policies();

    rig = rig_new();
    NJ_CHECK(atexit(end) == 0);
    nj__documents_init();
    NJ_CHECK(nj__mgmt_token_set(&tokens.write, TOKEN, strlen(TOKEN)));
    supervised_at = UINT64_MAX - 10 * NJ_SEC;
    view = (struct nj_mgmt_view){
        .clock = &tsc_clock,
        .n_ports = 1,
        .n_shards = 1,
        .port[0] = {&device, &port_stats, 0, 1},
        .port_stats_lock = &stats_lock,
        .shard[0] = rig->s,
        .lcore = &lcore,
        .lcore_log = &lcore_log,
        .workers = start_workers(),
        .policies = policies,
        .clients = nj_clients_new(64),
        .class_rate = rates,
        .routes = nj_routes_new(NULL, 0, why, sizeof why),
        .config = &config,
        .supervised_at = &supervised_at,
        .is_stopping = &is_stopping,
        .is_yielding = &is_yielding,
        .unpolled = unpolled,
        .ready_stall = &ready_stall,
        .reloads = &reloads,
        .transfers = nj_mgmt_transfers_new(NULL, 0),
        .hooks = {policies, change_limits, reset_handlers, reload, reopen_log, diff},
    };
    NJ_CHECK(view.transfers);
    view.capture = nj_mgmt_capture_new(&without_lcores);
    view.trace = nj_mgmt_trace_new(&without_lcores);
    NJ_CHECK(view.capture && view.trace);
}

/* --- a request ------------------------------------------------------------------------------- */

/* A copy of the next line, in memory of its length. Zeros end it. */
static char *take_line(const uint8_t **p, size_t *n)
{
    const uint8_t *end = memchr(*p, '\n', *n);
    size_t n_line = end ? (size_t)(end - *p) : *n;
    char *line = strndup((const char *)*p, n_line);

    NJ_CHECK(line);
    *p += n_line + (end != NULL);
    *n -= n_line + (end != NULL);
    return line;
}

/* One object in one line, or lines of text. */
static void check_body(const struct nj__mgmt_request *r, unsigned status, const char *text,
                       size_t n)
{
    NJ_CHECK(n > 0 && text[n - 1] == '\n' && strlen(text) == n);
    NJ_CHECK(status == 200 || status == 400 || status == 404 || status == 422 || status == 503);
    if (strcmp(r->type, NJ__MGMT_JSON) != 0)
        return;
    NJ_CHECK(text[0] == '{' && text[n - 2] == '}' && strchr(text, '\n') == text + n - 1);
}

static void answer(const struct nj__mgmt_route *route, struct nj__mgmt_request *r)
{
    bool changes = strcmp(route->method, "GET") != 0;
    uint64_t before = version;
    char *text = NULL, part[1024];
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    NJ_CHECK(out);
    unsigned status = route->answer(r, out);
    fclose(out);
    if (r->stream.read) {
        NJ_CHECK(status == 200 && n == 0);
        r->stream.read(r->stream.of, part, sizeof part);
        r->stream.end(r->stream.of);
        free(text);
        return;
    }
    check_body(r, status, text, n);
    NJ_CHECK(version == before || (changes && status == 200));
    free(text);
}

static void ask(const char *method, const char *url, const uint8_t *body, size_t n_body)
{
    static struct nj__mgmt_exchange e;
    char allowed[NJ__MGMT_ALLOWED_BYTES], *path = strdup(url), *copy = malloc(n_body + 1);

    NJ_CHECK(path && copy);
    path[strcspn(path, "?")] = '\0';
    memcpy(copy, body, n_body);
    copy[n_body] = '\0';
    nj__mgmt_exchange_begin(&e, url);
    const struct nj__mgmt_route *route = nj__mgmt_route_find(path, method, allowed);
    NJ_CHECK(strlen(allowed) < sizeof allowed);
    if (route && !e.is_too_long && n_body <= NJ__MGMT_BODY_MAX) {
        struct nj__mgmt_request r = {.view = &view,
                                     .events = &events,
                                     .rest = nj__mgmt_route_rest(route, path),
                                     .query = e.query,
                                     .accept = "",
                                     .body = copy,
                                     .n_body = n_body,
                                     .type = NJ__MGMT_TEXT};
        answer(route, &r);
    }
    free(path);
    free(copy);
}

static void unblock_all(void)
{
    struct nj_block block[NJ_BLOCKS_MAX];
    char why[256];

    for (uint32_t n = nj_policies_blocks(view.policies, block); n > 0; n--)
        NJ_CHECK(nj_policies_unblock(view.policies, &block[n - 1].net, why, sizeof why));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (!view.policies)
        start();
    char *line = take_line(&data, &n_bytes), *authorization = take_line(&data, &n_bytes),
         *host = take_line(&data, &n_bytes), *space = strchr(line, ' ');
    bool is_right = nj__mgmt_tokens_right(&tokens, authorization) == NJ_MGMT_WRITE;

    NJ_CHECK(!is_right || strstr(authorization, TOKEN));
    (void)nj__mgmt_is_local_host(host);
    if (space) {
        *space = '\0';
        ask(line, space + 1, data, n_bytes);
        unblock_all();
    }
    free(line);
    free(authorization);
    free(host);
    return 0;
}
