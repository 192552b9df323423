/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of every type call nj_response_*() in random order while clients reset and policies
 * change: every buffer is released exactly once and nothing leaks. */
#include <criterion/criterion.h>

#include "h2/h2_internal.h"
#include "support/handlers_rig.h"

#define LENT       (256u << 10)
#define ROUNDS     60u
#define N_CLIENTS  4u
#define N_POLICIES 64u

static uint8_t lent[LENT];
static uint64_t seed;
static uint32_t n_lent, n_released;

static uint32_t below(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

static void release(void *arg)
{
    n_released++;
}

/* Some of these do not exist, some exist for a while. */
static const char *const class_names[] = {"default", "a", "b", "c", "none"};
static const char *const files[] = {"/whole", "/big", "/none", "/dir", "/index.html"};
static const uint64_t rates[] = {0, 1, 1000, 1u << 20, UINT64_MAX};
static const unsigned statuses[] = {200, 204, 304, 404, 503};
static const char *const lengths[] = {"0", "1000", "200000", "5368709120"};
static const char *const names[] = {"x", "content-type", "cache-control", "date", "etag"};

static void act(struct nj_request *req, struct nj_response *resp, void *arg);

static void say(struct nj_response *resp)
{
    switch (below(9)) {
    case 0:
        nj_response_status(resp, statuses[below(NJ_ARRAY_LEN(statuses))]);
        break;
    case 1:
        for (uint32_t i = below(50) ? below(4) : 50; i > 0; i--)
            nj_response_header(resp, names[below(NJ_ARRAY_LEN(names))], "text/mine");
        break;
    case 2:
        if (below(4) == 0)
            nj_response_header(resp, "content-length", lengths[below(NJ_ARRAY_LEN(lengths))]);
        break;
    case 3:
        nj_response_trailer(resp, "trailer-x", "t");
        break;
    case 4:
        nj_response_write(resp, lent, below(3000));
        break;
    case 5:
        nj_response_try_write(resp, lent, below(LENT));
        break;
    case 6:
        n_lent += nj_response_send(resp, lent, below(4) ? below(LENT) : 0, release, lent) == 0;
        break;
    case 7:
        nj_response_file(resp, files[below(NJ_ARRAY_LEN(files))]);
        break;
    case 8:
        nj_response_flush(resp);
        break;
    }
}

static void wish(struct nj_request *req, struct nj_response *resp)
{
    char buf[3000];

    switch (below(7)) {
    case 0:
        nj_response_class(resp, class_names[below(NJ_ARRAY_LEN(class_names))]);
        break;
    case 1:
        nj_response_rate(resp, rates[below(NJ_ARRAY_LEN(rates))]);
        break;
    case 2:
        nj_response_priority(resp, below(9), below(2));
        break;
    case 3:
        nj_request_read(req, buf, 1 + below(sizeof buf));
        break;
    case 4:
        if (below(8) == 0)
            nj_response_reset(resp);
        break;
    case 5:
        nj_sleep(nj_must_not_block() || !nj_fiber_self() ? 0 : below(50) * NJ_MS);
        break;
    case 6:
        nj_response_on_timer(resp, below(50) * NJ_MS, act, NULL);
        break;
    }
}

static void gone(struct nj_request *req, struct nj_response *resp, void *arg)
{
    say(resp);
    wish(req, resp);
}

static void act(struct nj_request *req, struct nj_response *resp, void *arg)
{
    for (uint32_t i = below(6); i > 0; i--) {
        say(resp);
        if (below(2))
            wish(req, resp);
    }
    if (below(6) == 0)
        nj_response_end(resp);
}

static void handle(struct nj_request *req, struct nj_response *resp, void *arg)
{
    if (below(2)) {
        nj_response_defer(resp);
        nj_response_on_cancelled(resp, gone, NULL);
        nj_response_on_writable(resp, act, NULL);
        nj_request_on_body(req, act, NULL);
        nj_response_on_timer(resp, (1 + below(50)) * NJ_MS, act, NULL);
    }
    if (below(2))
        nj_response_class(resp, class_names[below(NJ_ARRAY_LEN(class_names))]);
    act(req, resp, arg);
}

static const struct nj_route routes[] = {
    {.path = "/0", .type = NJ_NON_BLOCKING, .handle = handle, .body_max_bytes = 5000},
    {.path = "/1", .type = NJ_BLOCKING, .handle = handle, .body_max_bytes = 5000},
    {.path = "/2", .type = NJ_OS_BLOCKING, .handle = handle, .body_max_bytes = 5000},
    {.path = "/3", .type = NJ_EITHER, .handle = handle},
    {.path = "/4", .type = NJ_UNTYPED, .handle = handle},
};

/* ---- policies ---- */

static struct nj_policy policies[N_POLICIES];
static uint32_t n_policies, n_owners;

static bool has_slot(const struct nj_policy *p, uint32_t slot)
{
    for (uint32_t i = 0; i < p->n_classes; i++)
        if (p->classes[i].slot == slot)
            return true;
    return false;
}

static const struct nj_class *class_of(const struct nj_policy *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_classes; i++)
        if (strcmp(p->classes[i].name, name) == 0)
            return &p->classes[i];
    return NULL;
}

static void add_class(struct nj_policy *p, const struct nj_policy *before, const char *name)
{
    static const uint64_t limits[] = {0, 10000, 1u << 20};
    struct nj_class *c = &p->classes[p->n_classes];
    const struct nj_class *was = class_of(before, name);

    *c = (struct nj_class){.slot = was ? was->slot : 0, .slot_gen = was ? was->slot_gen : 0};
    strcpy(c->name, name);
    if (!was && p->n_classes > 0) {
        c->slot = 1;
        while (has_slot(p, c->slot) || has_slot(before, c->slot))
            c->slot++;
        c->slot_gen = ++n_owners;
    }
    c->caps.streams_max = p->n_classes == 0 || below(3) == 0 ? 0 : 1 + below(4);
    c->request.ceiling = limits[below(NJ_ARRAY_LEN(limits))];
    c->client.ceiling = limits[below(NJ_ARRAY_LEN(limits))];
    c->total.ceiling = limits[below(NJ_ARRAY_LEN(limits))];
    p->n_classes++;
}

static const struct nj_policy *next_policy(void)
{
    struct nj_policy *p = &policies[n_policies];
    const struct nj_policy *before = n_policies > 0 ? p - 1 : p;

    *p = (struct nj_policy){.version = ++n_policies, .client_bits4 = 32, .client_bits6 = 64};
    add_class(p, before, class_names[0]);
    for (uint32_t i = 1; i < 4; i++)
        if (below(2))
            add_class(p, before, class_names[i]);
    return p;
}

/* ---- clients ---- */

static void ask_some(struct hr_client *c)
{
    static const char *const methods[] = {"GET", "HEAD", "POST"};
    char path[3];

    for (uint32_t i = below(4); i > 0 && nghttp2_session_get_next_stream_id(c->s) < 500; i--) {
        uint32_t which = below(3), n_body = which == 2 ? 1 + below(8000) : 0;
        snprintf(path, sizeof path, "/%u", below(NJ_ARRAY_LEN(routes)));
        hr_ask(c, methods[which], path, n_body, below(n_body + 1), below(2) ? "range" : NULL,
               below(2) ? "bytes=0-99" : "bytes=0-9,100-109");
    }
}

static void touch_some(struct hr_client *c)
{
    int32_t next = (int32_t)nghttp2_session_get_next_stream_id(c->s);

    for (int32_t id = 1; id < next; id += 2) {
        struct hr_reply *a = hr_reply_of(c, id);
        if (a->closed || below(6) > 0)
            continue;
        if (below(2))
            hr_send_more(c, id, below(4000));
        else
            hr_reset(c, id);
    }
    if (below(2)) {
        nghttp2_submit_window_update(c->s, 0, 0, (int32_t)(1 + below(100000)));
        if (next > 1 && !hr_reply_of(c, next - 2)->closed)
            nghttp2_submit_window_update(c->s, 0, next - 2, (int32_t)(1 + below(100000)));
    }
}

static void step_some(struct hr *h)
{
    for (uint32_t i = below(8); i > 0; i--)
        hr_step(h);
    h->r->now += below(20) * NJ_MS;
    hr_step(h);
}

static void run(uint64_t of)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    struct hr_client *c[N_CLIENTS];

    seed = of * 0x9e3779b97f4a7c15u + 1;
    n_lent = n_released = n_policies = 0;
    h->config.conns.policy = next_policy();
    hr_start(h);
    h->r->s->conns.h2->limits.glitches_max = 1u << 30;
    for (uint32_t i = 0; i < N_CLIENTS; i++)
        c[i] = hr_connect_with(h, &(struct hr_options){.no_auto = below(2)});
    for (uint32_t round = 0; round < ROUNDS; round++) {
        h->r->files_slow = below(3) == 0;
        h->workers_slow = below(3) == 0;
        if (below(4) == 0)
            nj_conns_set_policy(&h->r->s->conns, next_policy());
        for (uint32_t i = 0; i < N_CLIENTS; i++) {
            ask_some(c[i]);
            step_some(h);
            touch_some(c[i]);
        }
    }
    h->r->files_slow = h->workers_slow = false;
    hr_free(h);
    cr_expect_eq(n_lent, n_released, "seed %lu: %u lent, %u came back", of, n_lent, n_released);
}

/* SEED=n runs one seed, N=n runs n seeds. */
Test(conn_handler_tasks_random, any_order)
{
    const char *seed_given = getenv("SEED"), *n_given = getenv("N");
    uint64_t first = seed_given ? strtoull(seed_given, NULL, 10) : 1;
    uint64_t n = n_given ? strtoull(n_given, NULL, 10) : seed_given ? 1 : 20;

    for (uint32_t i = 0; i < LENT; i++)
        lent[i] = rig_byte(i);
    for (uint64_t i = first; i < first + n; i++) {
        printf("seed %lu\n", i);
        fflush(stdout); /* before it may abort */
        run(i);
    }
}
